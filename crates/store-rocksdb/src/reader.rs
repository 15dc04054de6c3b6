//! A folder read without changing it: for checking it, and for getting out of a damaged one what can still be read.
//!
//! A store stops at damage, and it should. Here the reader is told of it, and may go on behind it: the rows that may have
//! been in the damaged place are left out, those of older files among them too, since the lost place may have held a
//! newer version or a deletion. Only where a file is lost as a whole, which mostly spans all keys, older rows are shown,
//! and the reader is told that they may be.

use crate::condition::{self, Left};
use crate::files::log;
use crate::files::table::{self, Hidden};
use crate::format::{FORMAT, FORMAT_KEY, LAST_VERSION_KEY, split_value};
use crate::open::{OpenError, database_error, io_error};
use crate::{Options, list_check, settings};
use partita_store::Version;
use rocksdb::{DB, DBRawIterator, LiveFile, ReadOptions};
use rustix::fs::{FlockOperation, fcntl_lock};
use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::{fmt, io};

const LOCK: &str = "LOCK";
const CACHE_BYTES: usize = 8 << 20;
/// Scans read this far ahead.
const READ_AHEAD_BYTES: usize = 2 << 20;

/// A folder that is read and not changed. While it is open no store can open the folder.
pub struct Reader {
    database: DB,
    folder: PathBuf,
    files: Vec<LiveFile>,
    lost: Vec<Lost>,
    has_manifest: bool,
    /// Behind the database, so that it goes last.
    _salvage: Option<Salvage>,
    _lock: Option<File>,
}

/// A stretch in which rows may be missing or not the latest, for a file is gone: its first key, its last, and the file.
pub type Lost = (Vec<u8>, Vec<u8>, String);

/// A part of the folder that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// What is wrong, with the name of the file.
    pub what: String,
    /// The rows that were left out: from the first key to before the second, or to the end.
    pub keys: (Vec<u8>, Option<Vec<u8>>),
}

/// What was found in a file that is not as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileProblem {
    /// The name of the file in its folder.
    pub file: String,
    /// What is wrong with it.
    pub what: String,
    /// Whether it is how a killed process may have left the file, and harmless.
    pub is_harmless: bool,
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl Reader {
    /// Opens the folder, if no store has it open. Where a power cut has torn the list of files, it is read as the next start will leave it.
    pub fn open(folder: impl AsRef<Path>) -> Result<Reader, OpenError> {
        let folder = folder.as_ref();
        let folder = folder.canonicalize().map_err(|error| io_error(folder, &error))?;
        if !folder.join("CURRENT").is_file() {
            let why = "it holds no data of Partita".to_owned();
            return Err(OpenError::Corrupt { folder, why });
        }
        let lock = lock(&folder)?;
        let salvage = Salvage::of_torn(&folder).map_err(|error| io_error(&folder, &error))?;
        let (database, files) = open(salvage.as_ref().map_or(&folder, |salvage| &salvage.0))?;
        Ok(Reader { database, folder, files, lost: Vec::new(), has_manifest: true, _salvage: salvage, _lock: lock })
    }

    /// Opens what is left of a damaged folder. A table file that is missing or that cannot be opened keeps RocksDB from
    /// reading anything; then a folder is made elsewhere, of links to the other files, and read in its place.
    pub fn salvage(folder: impl AsRef<Path>) -> Result<Reader, OpenError> {
        let folder = folder.as_ref();
        let known = match Reader::open(folder) {
            Ok(reader) => {
                let files = reader.files.iter().cloned();
                let (lost, left): (Vec<_>, Vec<_>) = files.partition(|file| reader.is_lost(file));
                if lost.is_empty() {
                    return Ok(reader);
                }
                Some((lost, left))
            }
            // Nothing says then which files count and what was in those that are gone.
            Err(OpenError::Corrupt { .. } | OpenError::Failed { .. }) => None,
            Err(error) => return Err(error),
        };
        let failed = |error: io::Error| io_error(folder, &error);
        let folder = folder.canonicalize().map_err(failed)?;
        let lock = lock(&folder)?;
        let names = |files: &[LiveFile]| files.iter().map(|file| file_name(file).to_owned()).collect::<Vec<_>>();
        let salvage = Salvage::make(&folder, known.as_ref().map(|(_, left)| names(left))).map_err(failed)?;
        let repaired = settings().and_then(|settings| DB::repair(&settings, &salvage.0));
        repaired.map_err(|error| database_error(&folder, &error))?;
        let (database, files) = open(&salvage.0)?;
        let has_manifest = known.is_some();
        let (mut lost, left) = known.unwrap_or_default();
        // The repair puts aside what it cannot read to the end.
        lost.extend(left.into_iter().filter(|file| salvage.0.join("lost").join(file_name(file)).is_symlink()));
        let mut lost: Vec<Lost> = lost.into_iter().filter_map(stretch).collect();
        lost.sort();
        Ok(Reader { database, folder, files, lost, has_manifest, _salvage: Some(salvage), _lock: lock })
    }

    /// Where [`Reader::salvage`] may have rows that are not the latest, or none, in order.
    pub fn lost(&self) -> &[Lost] {
        &self.lost
    }

    /// Whether it is known which files count. If not, all were taken, also such as were about to be removed.
    pub fn has_manifest(&self) -> bool {
        self.has_manifest
    }

    /// Whether RocksDB cannot open a table file.
    fn is_lost(&self, file: &LiveFile) -> bool {
        let path = self.folder.join(file_name(file));
        let is_long = fs::metadata(&path).is_ok_and(|metadata| metadata.len() == file.size as u64);
        !is_long || table::verify(&path).is_ok_and(|places| places.iter().any(|place| place.hides == Hidden::All))
    }

    /// Verifies every checksum of the table files, and that they are there and as long as they should be.
    pub fn verify_tables(&self) -> Vec<FileProblem> {
        let mut problems = Vec::new();
        for file in &self.files {
            let name = file_name(file);
            let mut add = |what| problems.push(FileProblem { file: name.to_owned(), what, is_harmless: false });
            let path = self.folder.join(name);
            match fs::metadata(&path) {
                Err(error) => add(format!("it cannot be read: {error}")),
                Ok(metadata) if metadata.len() != file.size as u64 => {
                    add(format!("it has {} bytes, and was written with {}", metadata.len(), file.size));
                }
                Ok(_) => match table::verify(&path) {
                    Err(error) => add(format!("it cannot be read: {error}")),
                    Ok(places) => places.into_iter().for_each(|place| add(place.what)),
                },
            }
        }
        problems
    }

    /// Verifies every checksum of the logs and of the manifest, which has the same form. What stands in a log behind
    /// damage is not among the rows.
    pub fn verify_logs(&self) -> Result<Vec<FileProblem>, OpenError> {
        let unreadable = |error| io_error(&self.folder, &error);
        let current = fs::read_to_string(self.folder.join("CURRENT")).unwrap_or_default();
        let torn_list = torn_list(&self.folder);
        let mut problems = Vec::new();
        for entry in fs::read_dir(&self.folder).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if !name.ends_with(".log") && name != current.trim_end() {
                continue;
            }
            let (what, is_harmless) = match log::verify(&entry.path()) {
                Ok(log::Log::Whole) => continue,
                Ok(log::Log::Unfinished(bytes)) => {
                    (format!("its last {bytes} bytes are a record that was never finished"), true)
                }
                Ok(log::Log::Damaged(_)) if torn_list.as_ref().is_some_and(|(list, _)| *list == name) => {
                    ("its end was torn by a power cut, and the next start will leave it out".to_owned(), true)
                }
                Ok(log::Log::Damaged(offset)) => (format!("the record at offset {offset} has a wrong checksum"), false),
                Err(error) => (format!("it cannot be read: {error}"), false),
            };
            problems.push(FileProblem { file: name, what, is_harmless });
        }
        problems.sort_by(|one, other| one.file.cmp(&other.file));
        Ok(problems)
    }

    /// The greatest version that was given to a row, or what is wrong with what is stored beside the rows.
    pub fn last_version(&self) -> Result<Version, String> {
        let read = |key: &[u8]| match self.database.get(key) {
            Ok(Some(bytes)) => Ok(bytes),
            Ok(None) => Err(format!("the mark '{}' is missing", key[1..].escape_ascii())),
            Err(error) => Err(error.into_string()),
        };
        let format = read(FORMAT_KEY)?.try_into().map(u32::from_be_bytes);
        match format {
            Ok(format) if format <= FORMAT => {}
            Ok(format) => return Err(format!("it was written by a later version of Partita, in format {format}")),
            Err(_) => return Err("its format mark is damaged".into()),
        }
        read(LAST_VERSION_KEY)?.try_into().map(Version::from_be_bytes).map_err(|_| "its last version is damaged".into())
    }

    /// The rows from a key on, up to before another or to the last.
    pub fn rows(&self, from: Vec<u8>, end: Option<Vec<u8>>) -> Rows<'_> {
        let mut settings = ReadOptions::default();
        settings.fill_cache(false);
        settings.set_readahead_size(READ_AHEAD_BYTES);
        if let Some(end) = &end {
            settings.set_iterate_upper_bound(end.clone());
        }
        Rows { reader: self, rows: self.database.raw_iterator_opt(settings), next: Next::Seek(from), end }
    }
}

fn settings() -> Result<rocksdb::Options, rocksdb::Error> {
    let mut settings = settings::database(&Options { cache_bytes: CACHE_BYTES, ..Options::default() })?;
    settings.create_if_missing(false);
    // Would refuse to open a folder in which a file was cut short; what is wrong with files is ours to say.
    settings.set_paranoid_checks(false);
    Ok(settings)
}

fn open(folder: &Path) -> Result<(DB, Vec<LiveFile>), OpenError> {
    let opened = settings().and_then(|settings| DB::open_for_read_only(&settings, folder, false));
    let opened = opened.and_then(|database| Ok((database.live_files()?, database)));
    opened.map(|(files, database)| (database, files)).map_err(|error| database_error(folder, &error))
}

/// The keys of a file that is lost.
fn stretch(file: LiveFile) -> Option<Lost> {
    let name = file_name(&file).to_owned();
    Some((file.start_key?, file.end_key?, name))
}

/// A folder of links, removed when it is no longer needed.
struct Salvage(PathBuf);

impl Salvage {
    /// Links to everything but a list of files that was torn, and a copy of the list without its end.
    fn of_torn(folder: &Path) -> io::Result<Option<Salvage>> {
        let Some((list, end)) = torn_list(folder) else { return Ok(None) };
        let salvage = Salvage::make(folder, None)?;
        symlink(folder.join("CURRENT"), salvage.0.join("CURRENT"))?;
        fs::write(salvage.0.join(&list), &fs::read(folder.join(&list))?[..end])?;
        Ok(Some(salvage))
    }

    /// Links to these table files, or to all, and to the logs.
    fn make(folder: &Path, tables: Option<Vec<String>>) -> io::Result<Salvage> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let place = std::env::temp_dir().join(format!("partita-salvage-{}-{number}", std::process::id()));
        // In a folder that all users share.
        DirBuilder::new().mode(0o700).create(&place)?;
        let salvage = Salvage(place);
        for entry in fs::read_dir(folder)? {
            let name = entry?.file_name();
            let text = name.to_string_lossy();
            let is_table =
                text.ends_with(".sst") && tables.as_ref().is_none_or(|tables| tables.contains(&text.into_owned()));
            if is_table || name.to_string_lossy().ends_with(".log") {
                symlink(folder.join(&name), salvage.0.join(&name))?;
            }
        }
        match fs::read_dir(&salvage.0)?.next() {
            Some(_) => Ok(salvage),
            None => Err(io::Error::other("it holds no data of Partita")),
        }
    }
}

impl Drop for Salvage {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The list of files and where its last whole record ends, if a power cut has torn it.
fn torn_list(folder: &Path) -> Option<(String, usize)> {
    let Ok(Left::Open) = condition::left(folder) else { return None };
    let list = condition::list_of_files(folder).ok()?;
    let end = list_check::torn(&folder.join(&list))?;
    Some((list, end))
}

/// Refuses a folder that a store has open, and keeps stores from opening it meanwhile. A folder that was never opened by
/// one, such as a backup, has no file to lock.
fn lock(folder: &Path) -> Result<Option<File>, OpenError> {
    let Ok(file) = File::open(folder.join(LOCK)) else { return Ok(None) };
    // RocksDB takes the whole file for itself; sharing it is refused then.
    match fcntl_lock(&file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => Ok(Some(file)),
        Err(rustix::io::Errno::AGAIN | rustix::io::Errno::ACCESS) => {
            Err(OpenError::Locked { folder: folder.to_path_buf() })
        }
        Err(error) => Err(io_error(folder, &error.into())),
    }
}

/// Rows in order, with what could not be read among them.
pub struct Rows<'a> {
    reader: &'a Reader,
    rows: DBRawIterator<'a>,
    next: Next,
    end: Option<Vec<u8>>,
}

enum Next {
    Seek(Vec<u8>),
    Step,
    Nothing,
}

/// A row as it is stored.
#[derive(Clone, Copy, Debug)]
pub struct StoredRow<'a> {
    /// Its key, see [`partita_store::decode_key`].
    pub key: &'a [u8],
    /// What is stored under it.
    pub stored: &'a [u8],
}

impl<'a> StoredRow<'a> {
    /// Version and value.
    pub fn split(self) -> partita_store::Result<(Version, &'a [u8])> {
        split_value(self.stored)
    }
}

impl fmt::Debug for Rows<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rows").finish_non_exhaustive()
    }
}

impl Rows<'_> {
    /// The next row. After damage the next call goes on behind it.
    pub fn next_row(&mut self) -> Option<Result<StoredRow<'_>, Damage>> {
        let from = match std::mem::replace(&mut self.next, Next::Step) {
            Next::Nothing => {
                self.next = Next::Nothing;
                return None;
            }
            Next::Seek(from) => {
                self.rows.seek(&from);
                from
            }
            Next::Step => {
                // The place of the row before is where damage may begin.
                let mut from = self.rows.key().unwrap_or_default().to_vec();
                from.push(0);
                self.rows.next();
                from
            }
        };
        if self.rows.valid() {
            return self.rows.item().map(|(key, stored)| Ok(StoredRow { key, stored }));
        }
        match self.rows.status() {
            Ok(()) => {
                self.next = Next::Nothing;
                None
            }
            Err(error) => Some(Err(self.damage(from, &error.into_string()))),
        }
    }

    /// Finds out where rows can be read again.
    fn damage(&mut self, from: Vec<u8>, what: &str) -> Damage {
        let mut to = from.clone();
        loop {
            let file = self.rows.status().err().and_then(|error| self.reader.file_of(&error.into_string()));
            let behind = file.and_then(|file| self.reader.behind_damage(file, &to));
            match behind.filter(|behind| *behind > to && self.end.as_ref().is_none_or(|end| behind < end)) {
                None => {
                    self.next = Next::Nothing;
                    return Damage { what: what.to_owned(), keys: (from, self.end.clone()) };
                }
                Some(behind) => to = behind,
            }
            self.rows.seek(&to);
            if self.rows.status().is_ok() {
                self.next = Next::Seek(to.clone());
                return Damage { what: what.to_owned(), keys: (from, Some(to)) };
            }
        }
    }
}

impl Reader {
    /// The table file that an error of RocksDB names.
    fn file_of(&self, error: &str) -> Option<&LiveFile> {
        self.files.iter().find(|file| error.contains(file_name(file)))
    }

    /// The first key behind the damaged place that reading from `from` met.
    fn behind_damage(&self, file: &LiveFile, from: &[u8]) -> Option<Vec<u8>> {
        let places = table::verify(&self.folder.join(file_name(file))).unwrap_or_default();
        let last = places.into_iter().find_map(|place| match place.hides {
            Hidden::Between(_, up_to) if up_to.as_slice() >= from => Some(up_to),
            _ => None,
        });
        let mut behind = last.or_else(|| file.end_key.clone())?;
        behind.push(0);
        Some(behind)
    }
}

fn file_name(file: &LiveFile) -> &str {
    file.name.trim_start_matches('/')
}
