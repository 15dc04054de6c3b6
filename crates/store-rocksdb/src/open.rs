//! Opening a folder: what must be there, and what to say when it is not.
//!
//! The messages are for whoever started the server; each is one sentence that names the folder.

use crate::condition::{self, Left};
use crate::format::{FORMAT, FORMAT_KEY, LAST_VERSION_KEY};
use crate::list_check;
use crate::log_check::{self, Damage, Logs};
use crate::options::{Durability, Options};
use crate::settings;
use partita_store::Version;
use rocksdb::properties::MIN_LOG_NUMBER_TO_KEEP;
use rocksdb::{DB, ErrorKind, FlushOptions, IteratorMode, WriteBatch};
use std::fs::{self, File, TryLockError};
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
    /// A file was damaged, so that commits which were acknowledged would be missing without a word.
    Damaged {
        /// The file.
        file: PathBuf,
        /// How far it can be relied on at the most.
        offset: u64,
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
            OpenError::Damaged { file, offset } => write!(
                f,
                "The file {} is damaged, at or before byte {offset}, and what was written later would be lost; restore a \
                 backup, or keep a copy of the folder and start once with --accept-damage to go on without it.",
                file.display()
            ),
            OpenError::Failed { folder, why } => {
                write!(f, "The data folder {} cannot be opened: {why}.", folder.display())
            }
        }
    }
}

impl std::error::Error for OpenError {}

impl From<Damage> for OpenError {
    fn from(Damage { file, offset }: Damage) -> OpenError {
        OpenError::Damaged { file, offset }
    }
}

/// A database and what was found when it was opened.
pub(crate) struct Opened {
    pub(crate) database: DB,
    pub(crate) last_version: Version,
    /// The folder, locked for as long as this is there.
    pub(crate) lock: File,
}

/// Opens or creates the database in a folder.
pub(crate) fn open(folder: &Path, options: &Options) -> Result<Opened, OpenError> {
    let folder = prepare(folder).map_err(|error| io_error(folder, &error))?;
    let lock = lock(&folder)?;
    let settings = settings::database(options).map_err(|error| database_error(&folder, &error))?;
    match condition::left(&folder).map_err(|error| io_error(&folder, &error))? {
        Left::Closed => {}
        Left::Damaged(damage) if !options.accept_damage => return Err(damage.into()),
        Left::Damaged(_) | Left::Open => {
            // A new folder has no list yet, and nothing in it that could be lost. One that has logs and no list RocksDB refuses.
            if let Ok(list) = condition::list_of_files(&folder) {
                list_check::end_where_torn(&folder.join(list)).map_err(|error| io_error(&folder, &error))?;
                check_logs(&folder, &settings, options.accept_damage)?;
                sync_logs(&folder).map_err(|error| io_error(&folder, &error))?;
            }
        }
    }
    if let Some(written) = condition::written(&folder) {
        log_check::remove_empty(&folder, written.since).map_err(|error| io_error(&folder, &error))?;
    }
    let database = DB::open(&settings, &folder).map_err(|error| database_error(&folder, &error))?;
    let last_version = check_format(&database, &folder)?;
    if options.accept_damage {
        // So that nothing needs a damaged log any longer, and the next start does not find it again.
        database.flush().map_err(|error| database_error(&folder, &error))?;
    }
    condition::note_durability(&folder, options.durability).map_err(|error| io_error(&folder, &error))?;
    write_out_old_logs(&database, &folder)?;
    Ok(Opened { database, last_version, lock })
}

/// RocksDB has a lock of its own, but files are looked at, and some removed, before it opens them.
fn lock(folder: &Path) -> Result<File, OpenError> {
    let failed = |error: io::Error| io_error(folder, &error);
    let lock = File::open(folder).map_err(failed)?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => Err(OpenError::Locked { folder: folder.to_path_buf() }),
        // There are file systems without locks.
        Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => Ok(lock),
        Err(TryLockError::Error(error)) => Err(failed(error)),
    }
}

/// Creates the folder where needed, and returns its one true path: RocksDB notices a second opening within a process by
/// comparing paths as they are spelled.
fn prepare(folder: &Path) -> io::Result<PathBuf> {
    let missing = folder.ancestors().take_while(|path| path.try_exists().is_ok_and(|exists| !exists));
    // The last of them may be the empty path, which stands for the folder we are in.
    let created = missing.filter(|path| !path.as_os_str().is_empty()).count();
    fs::create_dir_all(folder)?;
    let folder = folder.canonicalize()?;
    if !folder.join("CURRENT").try_exists()? {
        // RocksDB syncs what is in the folder. That the folder itself is there, and those above it, has to be synced too, or a
        // power cut takes it with every acknowledged commit. A start that was interrupted may have made any of them; one that
        // we may not open is none of ours.
        for (index, above) in folder.ancestors().skip(1).enumerate() {
            let synced = File::open(above).and_then(|above| above.sync_all());
            if index < created {
                synced?;
            }
        }
    }
    Ok(folder)
}

/// Makes durable what a process has left behind that was killed. RocksDB replays it and writes a new log, but does not sync
/// the old one: a power cut could then take what readers have seen, out of the middle of what was committed.
fn sync_logs(folder: &Path) -> io::Result<()> {
    let logs = log_check::numbered(folder)?;
    for (_, log) in &logs {
        File::open(log)?.sync_data()?;
    }
    File::open(folder)?.sync_all()
}

/// Refuses logs that RocksDB would replay only in part, although all of it was acknowledged. Where that may be, or is accepted,
/// ends them where the first part ends.
fn check_logs(folder: &Path, settings: &rocksdb::Options, accept_damage: bool) -> Result<(), OpenError> {
    let failed = |error| io_error(folder, &error);
    let Some(written) = condition::written(folder) else { return Ok(()) };
    let logs = Logs::read(folder, written.since).map_err(failed)?;
    if logs.damage(0).is_some() {
        // It may be in a log that is no longer needed and was about to be removed. RocksDB knows, and opened like this it
        // leaves the folder as it is.
        let database =
            DB::open_for_read_only(settings, folder, false).map_err(|error| database_error(folder, &error))?;
        match logs.damage(least_log_needed(&database)) {
            Some(damage) if written.synced && !accept_damage => return Err(damage.into()),
            Some(damage) => logs.end_at(&damage).map_err(failed)?,
            None => {}
        }
    }
    Ok(())
}

/// Logs with lesser numbers are left over, and not replayed.
pub(crate) fn least_log_needed(database: &DB) -> u64 {
    database.property_int_value(MIN_LOG_NUMBER_TO_KEEP).ok().flatten().unwrap_or(0)
}

fn check_format(database: &DB, folder: &Path) -> Result<Version, OpenError> {
    let corrupt = |why: &str| OpenError::Corrupt { folder: folder.to_path_buf(), why: why.to_owned() };
    let read = |key| database.get(key).map_err(|error| database_error(folder, &error));
    let Some(format) = read(FORMAT_KEY)? else {
        if database.iterator(IteratorMode::Start).next().is_some() {
            return Err(corrupt("it holds a database that Partita did not write"));
        }
        mark(database, 0).map_err(|error| database_error(folder, &error))?;
        return Ok(0);
    };
    let found = format.try_into().map(u32::from_be_bytes).map_err(|_| corrupt("its format mark is damaged"))?;
    if found > FORMAT {
        return Err(OpenError::TooNew { folder: folder.to_path_buf(), found });
    }
    let last = read(LAST_VERSION_KEY)?.ok_or_else(|| corrupt("its last version is missing"))?;
    let last = last.try_into().map(Version::from_be_bytes).map_err(|_| corrupt("its last version is damaged"))?;
    mark(database, last).map_err(|error| database_error(folder, &error))?;
    Ok(last)
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

/// The first record of the new log. Synced whatever the durability: `log_check` relies on it.
fn mark(database: &DB, last: Version) -> Result<(), rocksdb::Error> {
    let mut marks = WriteBatch::default();
    marks.put(FORMAT_KEY, FORMAT.to_be_bytes());
    marks.put(LAST_VERSION_KEY, last.to_be_bytes());
    database.write_opt(marks, &settings::write(Durability::Sync))
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
