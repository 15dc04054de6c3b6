//! What is known of the files of a folder beside what RocksDB knows: a small file next to them.
//!
//! RocksDB forgives logs and lists of files (`MANIFEST`) that end early, since a power cut leaves them so, and shows what they
//! held before. Whether that is forgivable is written here, and read before RocksDB opens the folder.
//!
//! ```text
//!   sync 9                               from 000009.log on, every record was synced before the next one was written;
//!                                        or `interval 9`, or `none 9`: only the first record of each process was
//!   closed MANIFEST-000024 495 0c8a1f33  the store was closed, and these files had so many bytes with this checksum, not
//!                                        counting zeros behind the last record of a log
//!   closed 000027.log 58123 99e02a61
//! ```
//!
//! The first line is durable before the first commit. The others hold until the folder is opened again, when RocksDB begins a new
//! list of files. A file that cannot be read says nothing.

use crate::log_check::{self, Damage};
use crate::options::Durability;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

const FILE: &str = "CONDITION";
const NEW_FILE: &str = "CONDITION.new";
/// Holds the name of the list of files.
const CURRENT: &str = "CURRENT";

/// How logs were written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Written {
    /// Whether every record was synced before the next one.
    pub(crate) synced: bool,
    /// The number of the first log of which that is known.
    pub(crate) since: u64,
}

/// How the logs of a folder were written, if that is known.
pub(crate) fn written(folder: &Path) -> Option<Written> {
    let text = fs::read_to_string(folder.join(FILE)).ok()?;
    let (name, since) = text.lines().next()?.split_once(' ')?;
    Some(Written { synced: name == "sync", since: since.parse().ok()? })
}

/// Notes how logs are written from now on. Nothing was written to the newest one yet that is not synced.
pub(crate) fn note_durability(folder: &Path, durability: Durability) -> io::Result<()> {
    let name = match durability {
        Durability::Sync => "sync",
        Durability::Interval(_) => "interval",
        Durability::None => "none",
    };
    let found = fs::read_to_string(folder.join(FILE)).unwrap_or_default();
    if written(folder).is_some() && found.split(' ').next() == Some(name) {
        return Ok(());
    }
    let newest = log_check::numbered(folder)?.last().map_or(0, |(number, _)| *number);
    write(folder, &format!("{name} {newest}\n"))
}

/// Notes that the store was closed: the list of files, and the logs from a number on, are as they shall be found.
pub(crate) fn note_closed(folder: &Path, least_log: u64) -> io::Result<()> {
    let found = fs::read_to_string(folder.join(FILE))?;
    let Some(first) = found.lines().next() else { return Ok(()) };
    let mut text = format!("{first}\n");
    let mut note = |file: &Path, contents: &[u8]| {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        text.push_str(&format!("closed {name} {} {:08x}\n", contents.len(), crc32c::crc32c(contents)));
    };
    let list = folder.join(list_of_files(folder)?);
    note(&list, &fs::read(&list)?);
    for (_, log) in log_check::numbered(folder)?.into_iter().filter(|(number, _)| *number >= least_log) {
        note(&log, log_check::records(&fs::read(&log)?));
    }
    write(folder, &text)
}

/// How the last process left a folder.
#[derive(Debug)]
pub(crate) enum Left {
    /// Closed in order, and everything is as it was then: synced, and whole.
    Closed,
    /// Closed in order, and something has changed since.
    Damaged(Damage),
    /// In the middle of something, or nothing is known of it.
    Open,
}

/// Looks how the last process left a folder.
pub(crate) fn left(folder: &Path) -> io::Result<Left> {
    let text = fs::read_to_string(folder.join(FILE)).unwrap_or_default();
    let closed: Vec<_> = text.lines().filter_map(Closed::parse).collect();
    match (closed.first(), list_of_files(folder)) {
        (Some(first), Ok(current)) if first.name == current => {}
        _ => return Ok(Left::Open),
    }
    for Closed { name, length, checksum } in closed {
        let file = folder.join(name);
        let found = match fs::read(&file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            found => found?,
        };
        let noted = usize::try_from(length).ok().and_then(|length| found.get(..length));
        if noted.is_none_or(|noted| crc32c::crc32c(noted) != checksum) {
            return Ok(Left::Damaged(Damage { offset: length.min(found.len() as u64), file }));
        }
    }
    Ok(Left::Closed)
}

/// A line about a file of a store that was closed.
struct Closed<'a> {
    name: &'a str,
    length: u64,
    checksum: u32,
}

impl Closed<'_> {
    fn parse(line: &str) -> Option<Closed<'_>> {
        let mut words = line.strip_prefix("closed ")?.split(' ');
        let (name, length, checksum) = (words.next()?, words.next()?, words.next()?);
        Some(Closed { name, length: length.parse().ok()?, checksum: u32::from_str_radix(checksum, 16).ok()? })
    }
}

/// The name of the list of files.
pub(crate) fn list_of_files(folder: &Path) -> io::Result<String> {
    Ok(fs::read_to_string(folder.join(CURRENT))?.trim_end().to_owned())
}

/// Replaces the file as a whole: half of a line would be a lie.
fn write(folder: &Path, text: &str) -> io::Result<()> {
    let new = folder.join(NEW_FILE);
    let mut file = File::create(&new)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(new, folder.join(FILE))?;
    File::open(folder)?.sync_all()
}
