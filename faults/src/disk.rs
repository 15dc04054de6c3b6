//! A folder that stands for a disk, and the real binary on it.

use crate::image::{Image, Model, Survival};
use crate::random::Random;
use crate::trace;
use partita_testing::process::{self, Process};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::{env, fs};
use tempfile::TempDir;

/// A disk with what is beside it: the trace of what was done to it, and the rules by which it fails.
#[derive(Debug)]
pub struct Disk {
    folder: TempDir,
    base: Image,
    location: PathBuf,
}

impl Disk {
    /// A disk that holds this. The data folder of servers on it is `location` from its root.
    pub fn new(base: Image, location: &str) -> Disk {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let disk = Disk { folder, base, location: location.into() };
        fs::create_dir(disk.root()).expect("a folder");
        disk.base.write_to(&disk.root()).expect("a disk of our own");
        disk
    }

    /// An empty disk.
    pub fn empty() -> Disk {
        Disk::new(Image::default(), "data")
    }

    /// Its root as processes see it.
    pub fn root(&self) -> PathBuf {
        self.folder.path().join("disk")
    }

    /// The folder of the data.
    pub fn data(&self) -> PathBuf {
        self.root().join(&self.location)
    }

    /// Where the trace is.
    pub fn trace_path(&self) -> PathBuf {
        self.folder.path().join("trace")
    }

    /// What was recorded so far.
    pub fn trace(&self) -> Vec<u8> {
        fs::read(self.trace_path()).expect("the library writes a trace")
    }

    /// What the disk is at a moment of its trace.
    pub fn model<'t>(&self, trace: &'t [u8], cut: u64) -> Model<'t> {
        let mut model = Model::new(&self.root(), &self.base);
        model.follow(trace, cut);
        model
    }

    /// Makes the disk what its trace says, before the next process that is traced. A kill may come between a call and its record,
    /// or in the middle of either; then the last call is undone, as if the kill had come before it.
    pub fn undo_unrecorded(&self) {
        let trace = self.trace();
        let mut rest = trace.as_slice();
        while trace::decode(&mut rest).is_some() {}
        let recorded = &trace[..trace.len() - rest.len()];
        fs::write(self.trace_path(), recorded).expect("a file of our own");
        let image = self.model(recorded, u64::MAX).image(Survival::Everything, &mut Random::new(0));
        fs::remove_dir_all(self.root()).and_then(|()| fs::create_dir(self.root())).expect("a folder of our own");
        image.write_to(&self.root()).expect("a disk of our own");
    }

    /// Sets the rules for faults; those that were set before are forgotten. They hold at once.
    pub fn control(&self, rules: &str) {
        let (path, new) = (self.folder.path().join("control"), self.folder.path().join("control.new"));
        fs::write(&new, rules).and_then(|()| fs::rename(&new, path)).expect("a file of our own");
    }

    /// Starts a server that is traced.
    pub fn start(&self, arguments: &[&str]) -> Process {
        self.try_start(arguments, &self.trace_path()).unwrap_or_else(|(status, said)| panic!("{status}\n{said}"))
    }

    /// Starts a server that is not traced, or says how it ended and what it said. Its syncs are left out too.
    pub fn start_untraced(&self, arguments: &[&str]) -> Result<Process, (ExitStatus, String)> {
        self.try_start(arguments, Path::new("/dev/null"))
    }

    fn try_start(&self, arguments: &[&str], trace: &Path) -> Result<Process, (ExitStatus, String)> {
        let mut command = process::command();
        command
            .args(["--table-port", "0", "--admin-port", "0", "--location"])
            .arg(self.data())
            .args(arguments)
            .env("LD_PRELOAD", library())
            .env("PARTITA_FAULTS_FOLDER", self.root())
            .env("PARTITA_FAULTS_TRACE", trace)
            .env("PARTITA_FAULTS_CONTROL", self.folder.path().join("control"));
        Process::spawn(command)
    }
}

/// The library, which Cargo builds beside the tests of this crate.
fn library() -> PathBuf {
    let test = env::current_exe().expect("a test is a file");
    let name = "libpartita_faults_preload.so";
    let built = test.ancestors().flat_map(|folder| [folder.join(name), folder.join("deps").join(name)]);
    built.into_iter().find(|path| path.is_file()).unwrap_or_else(|| panic!("no {name} near {}", test.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::Record;
    use std::borrow::Cow;
    use std::os::unix::ffi::OsStrExt;

    /// The process was killed when it had made a call and not recorded it whole.
    #[test]
    fn what_was_not_recorded_is_undone() {
        let base = Image { nodes: [("data".into(), None), ("data/log".into(), Some(b"one ".to_vec()))].into() };
        let disk = Disk::new(base, "data");
        let log = disk.data().join("log");
        let open =
            Record::Open { fd: 7, path: Cow::Borrowed(log.as_os_str().as_bytes()), created: false, truncated: false };
        let write = |offset, data| Record::Write { fd: 7, offset, data: Cow::Borrowed(data) };
        let mut trace = Vec::new();
        [Record::Start, open, write(4, b"two ")].iter().for_each(|record| record.encode(&mut trace));
        let recorded = trace.clone();
        write(8, b"three ").encode(&mut trace);
        trace.pop();
        fs::write(disk.trace_path(), trace).expect("a file of our own");
        fs::write(&log, "one two three ").expect("a file of our own");
        fs::write(disk.data().join("new"), "").expect("a file of our own");
        disk.undo_unrecorded();
        assert_eq!(fs::read_to_string(&log).expect("it is there"), "one two ");
        assert!(!disk.data().join("new").exists());
        assert_eq!(disk.trace(), recorded);
    }
}
