//! Backups: a folder of the engine's files with `partita-backup.json`, which names every one of them with its checksum.
//!
//! What stands under its final name is whole. A backup and a folder that is being restored are made under a name that ends
//! in `.partial`, synced, and only then renamed; what a killed command leaves behind under such a name is removed by the
//! next one.

use partita_model::Ticks;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The name of the list in a backup.
pub(crate) const LIST: &str = "partita-backup.json";
/// What the list calls its own form.
const FORMAT: u32 = 1;
const BUFFER_BYTES: usize = 1 << 20;

/// What is in a backup.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Backup {
    format: u32,
    /// When the command began: every write that was acknowledged before is in it.
    pub(crate) date: String,
    /// Which program made it.
    pub(crate) version: String,
    /// Its files.
    pub(crate) files: Vec<BackupFile>,
}

/// A file of a backup.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct BackupFile {
    /// Its name in the folder.
    pub(crate) name: String,
    /// How long it is.
    pub(crate) bytes: u64,
    /// Its checksum in hexadecimal digits, as `sha256sum` prints it.
    pub(crate) sha256: String,
}

/// A folder that is being made.
#[derive(Debug)]
pub(crate) struct NewFolder {
    /// Where it is made.
    pub(crate) partial: PathBuf,
    path: PathBuf,
}

impl NewFolder {
    /// Sees that a new folder can be made under this name. An error is a sentence.
    pub(crate) fn prepare(path: &Path) -> Result<NewFolder, String> {
        let failed = |error: io::Error| format!("Cannot make {}: {error}.", path.display());
        let path = std::path::absolute(path).map_err(failed)?;
        let Some((parent, name)) = path.parent().zip(path.file_name()) else {
            return Err(format!("{} cannot be made anew.", path.display()));
        };
        match fs::read_dir(&path).map(|mut entries| entries.next().is_none()) {
            Ok(false) => {
                return Err(format!("{} is not empty: give a folder that does not exist yet.", path.display()));
            }
            Ok(true) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => fs::create_dir_all(parent).map_err(failed)?,
            Err(error) => return Err(failed(error)),
        }
        let mut partial = name.to_owned();
        partial.push(".partial");
        let partial = path.with_file_name(partial);
        match fs::remove_dir_all(&partial) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(error)),
            _ => Ok(NewFolder { partial, path }),
        }
    }

    /// Gives the folder its name, once all that is in it is on the disk.
    pub(crate) fn finish(self) -> io::Result<()> {
        File::open(&self.partial)?.sync_all()?;
        fs::rename(&self.partial, &self.path)?;
        self.path.parent().map_or(Ok(()), |parent| File::open(parent)?.sync_all())
    }

    /// Removes what was made so far.
    pub(crate) fn abandon(self) {
        let _ = fs::remove_dir_all(&self.partial);
    }
}

impl Backup {
    /// Makes a backup of the engine's files in a folder: syncs them and writes the list. With `copy` it shares no file
    /// with the data it was made from.
    pub(crate) fn write(folder: &Path, copy: bool, began: SystemTime) -> io::Result<Backup> {
        let mut files = Vec::new();
        // Listed first: copies come and go beside them.
        for entry in fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()? {
            let path = entry.path();
            if copy && entry.metadata()?.nlink() > 1 {
                let own = path.with_extension("copy");
                copy_file(&path, &own)?;
                fs::rename(&own, &path)?;
            }
            let mut file = File::open(&path)?;
            let (bytes, sha256) = checksum(&mut file, &mut io::sink())?;
            file.sync_all()?;
            files.push(BackupFile { name: entry.file_name().to_string_lossy().into_owned(), bytes, sha256 });
        }
        files.sort_by(|one, other| one.name.cmp(&other.name));
        let date = Ticks::from_system_time(began).to_string();
        let backup = Backup { format: FORMAT, date, version: env!("CARGO_PKG_VERSION").into(), files };
        let mut list = File::create(folder.join(LIST))?;
        list.write_all(&serde_json::to_vec_pretty(&backup)?)?;
        list.write_all(b"\n")?;
        list.sync_all()?;
        Ok(backup)
    }

    /// Reads the list of a backup. An error is a sentence.
    pub(crate) fn read(folder: &Path) -> Result<Backup, String> {
        let path = folder.join(LIST);
        let bytes = fs::read(&path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => format!("{} is not a backup: it has no {LIST}.", folder.display()),
            _ => format!("Cannot read {}: {error}.", path.display()),
        })?;
        let backup: Backup =
            serde_json::from_slice(&bytes).map_err(|error| format!("{} is damaged: {error}.", path.display()))?;
        if backup.format > FORMAT {
            return Err(format!("{} was written by a later version of Partita.", path.display()));
        }
        // A list that leads out of its folder was not written by us.
        match backup.files.iter().find(|file| Path::new(&file.name).file_name() != Some(file.name.as_ref())) {
            Some(file) => Err(format!("{} is damaged: '{}' is not the name of a file.", path.display(), file.name)),
            None => Ok(backup),
        }
    }

    /// How many bytes its files have.
    pub(crate) fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// What differs from the list, a sentence for each file.
    pub(crate) fn verify(&self, folder: &Path) -> Vec<String> {
        self.files.iter().filter_map(|file| file.read(folder, &mut io::sink()).err()).collect()
    }

    /// Copies the files into a new folder, and verifies each on the way. An error is a sentence.
    pub(crate) fn copy_to(&self, folder: &Path, to: &Path) -> Result<(), String> {
        let failed = |error: io::Error| format!("Cannot write {}: {error}.", to.display());
        fs::create_dir(to).map_err(failed)?;
        for file in &self.files {
            let mut copy = File::create_new(to.join(&file.name)).map_err(failed)?;
            file.read(folder, &mut copy)?;
            copy.sync_all().map_err(failed)?;
        }
        Ok(())
    }
}

impl BackupFile {
    /// Reads the file into `to`. An error, also if it is not as it was written, is a sentence.
    fn read(&self, folder: &Path, to: &mut impl Write) -> Result<(), String> {
        let path = folder.join(&self.name);
        let found = File::open(&path).and_then(|mut file| checksum(&mut file, to));
        match found {
            Err(error) => Err(format!("{} cannot be copied: {error}.", path.display())),
            Ok((bytes, _)) if bytes != self.bytes => Err(format!(
                "{} is damaged: it has {bytes} bytes, and was written with {}.",
                path.display(),
                self.bytes
            )),
            Ok((_, sha256)) if sha256 != self.sha256 => {
                Err(format!("{} is damaged: its checksum is not that of {LIST}.", path.display()))
            }
            Ok(_) => Ok(()),
        }
    }
}

fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    fs::copy(from, to)?;
    File::open(to)?.sync_all()
}

/// Copies a file and counts it: its length and checksum.
fn checksum(from: &mut File, to: &mut impl Write) -> io::Result<(u64, String)> {
    let mut hash = Sha256::new();
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut bytes = 0;
    loop {
        let count = from.read(&mut buffer)?;
        if count == 0 {
            let digits = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
            return Ok((bytes, digits));
        }
        hash.update(&buffer[..count]);
        to.write_all(&buffer[..count])?;
        bytes += count as u64;
    }
}
