//! What a power cut can leave on a disk.
//!
//! [`Model`] follows a trace up to the cut and keeps apart what is durable and what is not yet. [`Model::image`] then builds one of
//! the disks that may be found afterwards. The disk is one that keeps the promises of POSIX and no more than journaling file
//! systems (ext4, XFS, Btrfs) add to them:
//!
//! - What was written to a file before a sync of it began is there, if the sync had returned.
//! - Of later writes each sector of 512 bytes stands, by itself, as it was at some moment between that sync and the cut; so does the
//!   length of the file. A hole reads as zeros. A sector is never half old and half new.
//! - Names are durable when their folder was synced. A sync of a file does not make its name durable, though on ext4 it would.
//! - Later changes of a folder survive up to some moment, in their order: journals do not reorder them. A rename is never half
//!   done. Folders and files are independent of one another: a name may survive without the contents, and the contents without
//!   the name.
//! - `sync_file_range` promises nothing.
//!
//! Not in the model: disks that lie about having written, sectors that are torn, bits that rot. For the last see the tests of
//! damaged files.

use crate::random::Random;
use crate::trace::{self, Record};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// What a disk writes as a whole.
pub const SECTOR_BYTES: u64 = 512;

/// How much of what was not durable is found after the cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Survival {
    /// Nothing: the worst for what was promised.
    Nothing,
    /// Everything, as if only the process had ended.
    Everything,
    /// A part of it, another one for each file and folder.
    Part,
}

/// The files and folders below the root of a disk, by their paths from there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    /// Contents; `None` for a folder.
    pub nodes: BTreeMap<PathBuf, Option<Vec<u8>>>,
}

impl Image {
    /// Makes an existing empty folder into this disk.
    pub fn write_to(&self, root: &Path) -> io::Result<()> {
        for (path, contents) in &self.nodes {
            match contents {
                None => fs::create_dir(root.join(path))?,
                Some(contents) => fs::write(root.join(path), contents)?,
            }
        }
        Ok(())
    }
}

/// A disk at one moment of a trace.
#[derive(Debug)]
pub struct Model<'t> {
    root: Vec<u8>,
    nodes: Vec<Node<'t>>,
    /// Every path as the process sees it, and its node.
    paths: BTreeMap<Vec<u8>, usize>,
    descriptors: HashMap<u64, usize>,
}

#[derive(Debug)]
enum Node<'t> {
    File { durable: Vec<u8>, pending: Vec<Pending<Write<'t>>> },
    Folder { durable: BTreeMap<Vec<u8>, usize>, pending: Vec<Pending<Entry>> },
}

/// Something done after the last sync, and where in the trace.
#[derive(Debug)]
struct Pending<T> {
    at: u64,
    what: T,
}

#[derive(Debug)]
enum Write<'t> {
    Bytes { offset: u64, data: Cow<'t, [u8]> },
    Resize(u64),
}

#[derive(Debug)]
enum Entry {
    Bind { name: Vec<u8>, node: usize },
    Unbind { name: Vec<u8> },
    Rename { from: Vec<u8>, to: Vec<u8>, node: usize },
}

impl Write<'_> {
    fn length_after(&self, length: u64) -> u64 {
        match self {
            Write::Bytes { offset, data } => length.max(offset + data.len() as u64),
            Write::Resize(length) => *length,
        }
    }

    /// Changes the sectors that `survives` says it does, in a file that is long enough.
    fn apply(&self, contents: &mut [u8], mut survives: impl FnMut(u64) -> bool) {
        let (start, end) = match self {
            Write::Bytes { offset, data } => (*offset, offset + data.len() as u64),
            Write::Resize(length) => (*length, contents.len() as u64),
        };
        let mut at = start;
        while at < end {
            let sector = at / SECTOR_BYTES;
            let stop = end.min((sector + 1) * SECTOR_BYTES);
            if survives(sector) {
                let target = &mut contents[at as usize..stop as usize];
                match self {
                    Write::Bytes { data, .. } => {
                        target.copy_from_slice(&data[(at - start) as usize..(stop - start) as usize]);
                    }
                    Write::Resize(_) => target.fill(0),
                }
            }
            at = stop;
        }
    }
}

impl Entry {
    fn apply(&self, entries: &mut BTreeMap<Vec<u8>, usize>) {
        match self {
            Entry::Bind { name, node } => drop(entries.insert(name.clone(), *node)),
            Entry::Unbind { name } => drop(entries.remove(name)),
            Entry::Rename { from, to, node } => {
                entries.remove(from);
                entries.insert(to.clone(), *node);
            }
        }
    }
}

impl<'t> Model<'t> {
    /// A disk whose root is the folder `root` of the process, and that holds `base` for good.
    pub fn new(root: &Path, base: &Image) -> Model<'t> {
        let root = root.as_os_str().as_bytes().to_vec();
        let mut model =
            Model { root: root.clone(), nodes: Vec::new(), paths: BTreeMap::new(), descriptors: HashMap::new() };
        model.nodes.push(Node::Folder { durable: BTreeMap::new(), pending: Vec::new() });
        model.paths.insert(root.clone(), 0);
        // A folder comes before what is in it.
        for (path, contents) in &base.nodes {
            let node = model.nodes.len();
            model.nodes.push(match contents {
                None => Node::Folder { durable: BTreeMap::new(), pending: Vec::new() },
                Some(contents) => Node::File { durable: contents.clone(), pending: Vec::new() },
            });
            let path = [&root, &b"/"[..], path.as_os_str().as_bytes()].concat();
            let (folder, name) = split(&path);
            let folder = model.paths[folder];
            if let Node::Folder { durable, .. } = &mut model.nodes[folder] {
                durable.insert(name.to_vec(), node);
            }
            model.paths.insert(path, node);
        }
        model
    }

    /// Follows the records of a trace that end at or before `cut`.
    pub fn follow(&mut self, trace: &'t [u8], cut: u64) {
        let mut rest = trace;
        loop {
            let at = (trace.len() - rest.len()) as u64;
            let Some(record) = trace::decode(&mut rest) else { return };
            if (trace.len() - rest.len()) as u64 > cut {
                return;
            }
            self.step(at, record);
        }
    }

    fn step(&mut self, at: u64, record: Record<'t>) {
        match record {
            Record::Start => self.descriptors.clear(),
            Record::Open { fd, path, created, truncated } => {
                let node = match self.paths.get(path.as_ref()) {
                    Some(node) if !created => *node,
                    _ => self.bind(at, &path, Node::File { durable: Vec::new(), pending: Vec::new() }),
                };
                self.descriptors.insert(fd, node);
                if truncated {
                    self.write(at, fd, Write::Resize(0));
                }
            }
            Record::Close { fd } => drop(self.descriptors.remove(&fd)),
            Record::Write { fd, offset, data } => self.write(at, fd, Write::Bytes { offset, data }),
            Record::Resize { fd, length } => self.write(at, fd, Write::Resize(length)),
            Record::Sync { fd, began } => {
                if let Some(&node) = self.descriptors.get(&fd) {
                    self.nodes[node].sync(began);
                }
            }
            Record::Rename { from, to } => {
                let Some(node) = self.paths.remove(from.as_ref()) else { return };
                self.paths.insert(to.to_vec(), node);
                let ((old, from), (new, to)) = (split(&from), split(&to));
                let (from, to) = (from.to_vec(), to.to_vec());
                if old == new {
                    self.change(at, old, Entry::Rename { from, to, node });
                } else {
                    self.change(at, new, Entry::Bind { name: to, node });
                    self.change(at, old, Entry::Unbind { name: from });
                }
            }
            Record::Link { from, to } => {
                let Some(&node) = self.paths.get(from.as_ref()) else { return };
                self.paths.insert(to.to_vec(), node);
                let (folder, name) = split(&to);
                self.change(at, folder, Entry::Bind { name: name.to_vec(), node });
            }
            Record::Unlink { path } | Record::RemoveFolder { path } => {
                self.paths.remove(path.as_ref());
                let (folder, name) = split(&path);
                self.change(at, folder, Entry::Unbind { name: name.to_vec() });
            }
            Record::MakeFolder { path } => {
                self.bind(at, &path, Node::Folder { durable: BTreeMap::new(), pending: Vec::new() });
            }
        }
    }

    fn bind(&mut self, at: u64, path: &[u8], new: Node<'t>) -> usize {
        let node = self.nodes.len();
        self.nodes.push(new);
        self.paths.insert(path.to_vec(), node);
        let (folder, name) = split(path);
        self.change(at, folder, Entry::Bind { name: name.to_vec(), node });
        node
    }

    fn change(&mut self, at: u64, folder: &[u8], what: Entry) {
        if let Some(&folder) = self.paths.get(folder)
            && let Node::Folder { pending, .. } = &mut self.nodes[folder]
        {
            pending.push(Pending { at, what });
        }
    }

    fn write(&mut self, at: u64, fd: u64, what: Write<'t>) {
        if let Some(&node) = self.descriptors.get(&fd)
            && let Node::File { pending, .. } = &mut self.nodes[node]
        {
            pending.push(Pending { at, what });
        }
    }

    /// One of the disks that a power cut now would leave.
    pub fn image(&self, survival: Survival, random: &mut Random) -> Image {
        let mut image = Image::default();
        self.collect(0, Path::new(""), survival, random, &mut image);
        image
    }

    fn collect(&self, node: usize, path: &Path, survival: Survival, random: &mut Random, image: &mut Image) {
        match &self.nodes[node] {
            Node::File { durable, pending } => {
                let contents = contents(durable, pending, survival, random);
                image.nodes.insert(path.to_path_buf(), Some(contents));
            }
            Node::Folder { durable, pending } => {
                if !path.as_os_str().is_empty() {
                    image.nodes.insert(path.to_path_buf(), None);
                }
                let survivors = match survival {
                    Survival::Nothing => 0,
                    Survival::Everything => pending.len(),
                    Survival::Part => random.up_to(pending.len()),
                };
                let mut entries = durable.clone();
                pending[..survivors].iter().for_each(|pending| pending.what.apply(&mut entries));
                for (name, node) in entries {
                    self.collect(node, &path.join(OsStr::from_bytes(&name)), survival, random, image);
                }
            }
        }
    }

    /// The root of the disk in the process.
    pub fn root(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.root))
    }
}

impl Node<'_> {
    fn sync(&mut self, began: u64) {
        match self {
            Node::File { durable, pending } => {
                let covered = pending.partition_point(|pending| pending.at < began);
                for Pending { what, .. } in pending.drain(..covered) {
                    durable.resize(what.length_after(durable.len() as u64) as usize, 0);
                    what.apply(durable, |_| true);
                }
            }
            Node::Folder { durable, pending } => {
                let covered = pending.partition_point(|pending| pending.at < began);
                pending.drain(..covered).for_each(|pending| pending.what.apply(durable));
            }
        }
    }
}

fn split(path: &[u8]) -> (&[u8], &[u8]) {
    let slash = path.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
    (&path[..slash], &path[(slash + 1).min(path.len())..])
}

/// The contents of a file of which a part survived. In a third of the cases all of it stands at one moment, as if it had been
/// written in order; in a third each sector stands at its own; else it is all or nothing.
fn contents(durable: &[u8], pending: &[Pending<Write<'_>>], survival: Survival, random: &mut Random) -> Vec<u8> {
    let all = pending.len();
    let (common, scattered) = match survival {
        Survival::Nothing => (0, false),
        Survival::Everything => (all, false),
        Survival::Part => match random.below(6) {
            0 => (0, false),
            1 => (all, false),
            2 | 3 => (random.up_to(all), false),
            _ => (0, true),
        },
    };
    let length_moment = if scattered { random.up_to(all) } else { common };
    let mut moments = HashMap::new();
    let mut moment = |sector| {
        if scattered { *moments.entry(sector).or_insert_with(|| random.up_to(all)) } else { common }
    };
    let lengths = pending.iter().scan(durable.len() as u64, |length, pending| {
        *length = pending.what.length_after(*length);
        Some(*length)
    });
    let lengths: Vec<u64> = [durable.len() as u64].into_iter().chain(lengths).collect();
    let mut contents = durable.to_vec();
    contents.resize(lengths.iter().copied().max().unwrap_or(0) as usize, 0);
    for (index, pending) in pending.iter().enumerate() {
        pending.what.apply(&mut contents, |sector| index < moment(sector));
    }
    contents.truncate(lengths[length_moment] as usize);
    contents
}

#[cfg(test)]
mod tests;
