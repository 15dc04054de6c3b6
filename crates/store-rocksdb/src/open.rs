//! Opening a folder: what must be there, and what to say when it is not.
//!
//! The messages are for whoever started the server; each is one sentence that names the folder.

use crate::format::{FORMAT, FORMAT_KEY, LAST_VERSION_KEY};
use crate::options::Options;
use crate::settings;
use partita_store::Version;
use rocksdb::{DB, ErrorKind, FlushOptions, IteratorMode, WriteBatch};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::{fmt, io};

/// Each of them costs a start about as much as opening a file; writing them out costs a sync or two.
const LOGS_KEPT_MAX: usize = 8;

/// Why a folder could not be opened.
#[derive(Debug)]
pub enum OpenError {
    /// Another store has it open, in this process or another.
    Locked {
        /// The folder.
        folder: PathBuf,
    },
    /// The path, or a part of it, is something else than a folder.
    NotAFolder {
        /// The path.
        folder: PathBuf,
    },
    /// The folder cannot be created, or not be written to.
    NotWritable {
        /// The folder.
        folder: PathBuf,
        /// What the operating system said.
        why: String,
    },
    /// It was written by a later version of Partita.
    TooNew {
        /// The folder.
        folder: PathBuf,
        /// The format that was found.
        found: u32,
    },
    /// What it holds cannot be read, or was not written by Partita.
    Corrupt {
        /// The folder.
        folder: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// Anything else.
    Failed {
        /// The folder.
        folder: PathBuf,
        /// What went wrong.
        why: String,
    },
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Locked { folder } => {
                write!(f, "The data folder {} is in use by another Partita process.", folder.display())
            }
            OpenError::NotAFolder { folder } => write!(f, "The data folder {} is not a folder.", folder.display()),
            OpenError::NotWritable { folder, why } => {
                write!(f, "The data folder {} cannot be written to: {why}.", folder.display())
            }
            OpenError::TooNew { folder, found } => write!(
                f,
                "The data folder {} was written by a later version of Partita (format {found}, this one knows up to {FORMAT}).",
                folder.display()
            ),
            OpenError::Corrupt { folder, why } => {
                write!(f, "The data folder {} cannot be read: {why}.", folder.display())
            }
            OpenError::Failed { folder, why } => {
                write!(f, "The data folder {} cannot be opened: {why}.", folder.display())
            }
        }
    }
}

impl std::error::Error for OpenError {}

/// Opens or creates the database in a folder, and says which version was the last.
pub(crate) fn open(folder: &Path, options: &Options) -> Result<(DB, Version), OpenError> {
    let folder = prepare(folder).map_err(|error| io_error(folder, &error))?;
    let database = settings::database(options)
        .and_then(|settings| DB::open(&settings, &folder))
        .map_err(|error| database_error(&folder, &error))?;
    let last = check_format(&database, &folder)?;
    write_out_old_logs(&database, &folder)?;
    Ok((database, last))
}

/// Creates the folder where needed, and returns its one true path: RocksDB notices a second opening within a process by
/// comparing paths as they are spelled.
fn prepare(folder: &Path) -> io::Result<PathBuf> {
    let existed = folder.try_exists()?;
    fs::create_dir_all(folder)?;
    let folder = folder.canonicalize()?;
    if !existed && let Some(parent) = folder.parent() {
        // RocksDB syncs what is in the folder. That the folder itself is there has to be synced too, or a power cut takes
        // it with every acknowledged commit.
        File::open(parent)?.sync_all()?;
    }
    Ok(folder)
}

fn check_format(database: &DB, folder: &Path) -> Result<Version, OpenError> {
    let corrupt = |why: &str| OpenError::Corrupt { folder: folder.to_path_buf(), why: why.to_owned() };
    let read = |key| database.get(key).map_err(|error| database_error(folder, &error));
    let Some(format) = read(FORMAT_KEY)? else {
        if database.iterator(IteratorMode::Start).next().is_some() {
            return Err(corrupt("it holds a database that Partita did not write"));
        }
        mark(database).map_err(|error| database_error(folder, &error))?;
        return Ok(0);
    };
    let found = format.try_into().map(u32::from_be_bytes).map_err(|_| corrupt("its format mark is damaged"))?;
    if found > FORMAT {
        return Err(OpenError::TooNew { folder: folder.to_path_buf(), found });
    }
    match read(LAST_VERSION_KEY)? {
        Some(last) => last.try_into().map(Version::from_be_bytes).map_err(|_| corrupt("its last version is damaged")),
        None => Err(corrupt("its last version is missing")),
    }
}

/// Rows that were replayed from logs stay in memory, and the logs in the folder, until enough rows have come to be worth
/// a table file. A store that is started often and written to little would gather a log for every start; when there are
/// several, they are written out in the background.
fn write_out_old_logs(database: &DB, folder: &Path) -> Result<(), OpenError> {
    let files = fs::read_dir(folder).map_err(|error| io_error(folder, &error))?;
    let logs = files.flatten().filter(|file| file.path().extension().is_some_and(|extension| extension == "log"));
    if logs.count() > LOGS_KEPT_MAX {
        let mut settings = FlushOptions::default();
        settings.set_wait(false);
        database.flush_opt(&settings).map_err(|error| database_error(folder, &error))?;
    }
    Ok(())
}

/// Not synced: the marks stand in the log before the first commit, whose sync covers them. If they are lost there is no
/// row either, and the next start writes them anew.
fn mark(database: &DB) -> Result<(), rocksdb::Error> {
    let mut marks = WriteBatch::default();
    marks.put(FORMAT_KEY, FORMAT.to_be_bytes());
    marks.put(LAST_VERSION_KEY, 0_u64.to_be_bytes());
    database.write(marks)
}

pub(crate) fn io_error(folder: &Path, error: &io::Error) -> OpenError {
    let folder = folder.to_path_buf();
    match error.kind() {
        io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => OpenError::NotAFolder { folder },
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::StorageFull => {
            OpenError::NotWritable { folder, why: error.to_string() }
        }
        _ => OpenError::Failed { folder, why: error.to_string() },
    }
}

pub(crate) fn database_error(folder: &Path, error: &rocksdb::Error) -> OpenError {
    let folder = folder.to_path_buf();
    let why = error.to_string();
    // RocksDB tells these apart by their texts only. The first is said of a lock held by this process, the second of one
    // held by another.
    if why.contains("lock hold by current process") || why.contains("While lock file") {
        return OpenError::Locked { folder };
    }
    match error.kind() {
        ErrorKind::Corruption => OpenError::Corrupt { folder, why },
        ErrorKind::IOError if ["Permission denied", "Read-only", "No space"].iter().any(|text| why.contains(text)) => {
            OpenError::NotWritable { folder, why }
        }
        _ => OpenError::Failed { folder, why },
    }
}
