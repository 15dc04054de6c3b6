//! The store itself: what callers hold, and the threads behind it.

use crate::columns::Columns;
use crate::commit::Commit;
use crate::committer::Committer;
use crate::condition;
use crate::counters::Counters;
use crate::failure::{Failure, read_error};
use crate::format::split_value;
use crate::in_one_go::in_one_go;
use crate::open::{self, OpenError, Opened};
use crate::options::{Durability, Options};
use crate::places::{Place, PlacedFiles};
use crate::queue::Queue;
use crate::reclaim;
use crate::row_cache::{Found, KeyHash, RowCache};
use crate::runway::{self, Runway};
use crate::scan::{self, Helpers};
use crate::settings;
use crate::spaces::Spaces;
use crate::survey::{self, Surveyor};
use async_trait::async_trait;
use bytes::Bytes;
use partita_store::{
    Batch, Error, Result, Row, Scan, ScanEnd, Space, Store, Version, Versions, Visitor, encode_key, encode_key_to,
};
use rocksdb::checkpoint::Checkpoint;
use rocksdb::{DB, ReadOptions, properties};
use std::cell::RefCell;
use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use std::{fmt, fs};
use tokio::runtime::{Handle, RuntimeFlavor};

/// Syncing more often than a disk can would only keep the thread busy.
const SYNC_INTERVAL_MIN: Duration = Duration::from_millis(1);

/// What a start replays of the log in a few milliseconds.
const REPLAY_BYTES_MAX: u64 = 2 << 20;

thread_local! {
    /// For the key of the row that is read, which is needed until it is found.
    static KEY: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Rows in a folder, kept by RocksDB.
///
/// Dropping it closes it.
pub struct RocksStore {
    pub(crate) shared: Arc<Shared>,
    threads: Mutex<Option<Threads>>,
}

/// What the threads work on.
pub(crate) struct Shared {
    pub(crate) database: DB,
    /// How single rows are read.
    pub(crate) reads: ReadOptions,
    pub(crate) rows: RowCache,
    pub(crate) files: PlacedFiles,
    pub(crate) surveyor: Surveyor,
    pub(crate) columns: Columns,
    pub(crate) queue: Queue,
    pub(crate) spaces: Spaces,
    pub(crate) helpers: Helpers,
    pub(crate) counters: Counters,
    pub(crate) failure: Failure,
    /// The number of the last group that readers can see.
    pub(crate) last_group: AtomicU64,
    /// Whether something was written that was not synced.
    pub(crate) unsynced: AtomicBool,
    pub(crate) closing: AtomicBool,
    /// Let go of behind the database.
    _lock: File,
}

struct Threads {
    committer: JoinHandle<()>,
    reclaim: JoinHandle<()>,
    survey: JoinHandle<()>,
    /// Ends with the committer.
    runway: Option<JoinHandle<()>>,
    /// The thread that syncs, if there is one, and what ends it when it is dropped.
    sync: Option<(JoinHandle<()>, Sender<()>)>,
}

impl RocksStore {
    /// Opens the store in a folder, or makes a new one there. The folder belongs to this store until it is closed.
    pub fn open(folder: impl AsRef<Path>, options: Options) -> std::result::Result<RocksStore, OpenError> {
        let folder = folder.as_ref();
        let Opened { database, last_version, lock } = open::open(folder, &options)?;
        let shared = Arc::new(Shared {
            database,
            reads: settings::read_row(),
            rows: RowCache::new(settings::row_cache_bytes(&options), settings::place_bytes(&options)),
            files: PlacedFiles::default(),
            surveyor: Surveyor::new(),
            columns: Columns::new(settings::column_bytes(&options)),
            queue: Queue::default(),
            spaces: Spaces::new(),
            helpers: Helpers::new(),
            counters: Counters::default(),
            failure: Failure::default(),
            last_group: AtomicU64::new(0),
            unsynced: AtomicBool::new(false),
            closing: AtomicBool::new(false),
            _lock: lock,
        });
        let threads = Threads::start(&shared, options, last_version)
            .map_err(|error| OpenError::Failed { folder: folder.to_path_buf(), why: error.to_string() })?;
        Ok(RocksStore { shared, threads: Mutex::new(Some(threads)) })
    }

    /// Makes a copy of the store in a folder that does not exist yet, as of one moment between call and return, while
    /// commits go on. Where files can be linked it shares the table files, which never change, and takes no space of its
    /// own at first.
    pub fn checkpoint(&self, folder: &Path) -> Result<()> {
        self.shared.failure.check()?;
        Checkpoint::new(&self.shared.database)
            .and_then(|checkpoint| checkpoint.create_checkpoint(folder))
            .map_err(read_error)
    }

    /// Finishes the commits that wait, syncs, and stops the threads. Later commits are refused; the folder is free for
    /// another store once this one is dropped.
    pub fn close(&self) {
        let threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(threads) = threads else { return };
        self.shared.queue.close();
        self.shared.surveyor.close();
        // A thread that panicked has said so, and has no more to do.
        let _ = threads.committer.join();
        let _ = threads.runway.map(JoinHandle::join);
        if let Some((thread, stop)) = threads.sync {
            drop(stop);
            let _ = thread.join();
        }
        // With `None` too: a store that was closed in order is whole, whatever the machine does next.
        self.shared.sync();
        self.shared.write_out();
        self.shared.closing.store(true, Ordering::Release);
        self.shared.database.cancel_all_background_work(true);
        let _ = threads.reclaim.join();
        let _ = threads.survey.join();
        self.shared.note_closed();
    }
}

impl Drop for RocksStore {
    fn drop(&mut self) {
        self.close();
    }
}

impl fmt::Debug for RocksStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RocksStore").field("folder", &self.shared.database.path()).finish_non_exhaustive()
    }
}

impl Threads {
    fn start(shared: &Arc<Shared>, options: Options, last_version: Version) -> std::io::Result<Threads> {
        let (to_reclaim, dropped) = mpsc::channel();
        let Options { durability, clock, .. } = options;
        let versions = Versions::after(last_version, clock);
        let (runway, thread) = match durability {
            Durability::Sync => {
                let (extend, asked) = mpsc::sync_channel(1);
                let run = move |shared: &Shared| runway::run(shared.database.path(), &asked);
                (Some(Runway::new(extend)), Some(spawn("partita-runway", shared, run)?))
            }
            Durability::Interval(_) | Durability::None => (None, None),
        };
        let committer = spawn("partita-commit", shared, move |shared| {
            Committer::new(shared, durability, versions, to_reclaim, runway).run();
        })?;
        let reclaim = spawn("partita-reclaim", shared, move |shared| {
            reclaim::run(shared, &dropped, &settings::write(durability));
        })?;
        let survey = spawn("partita-survey", shared, survey::run)?;
        let sync = match durability {
            Durability::Sync | Durability::None => None,
            Durability::Interval(interval) => {
                let (stop, stopped) = mpsc::channel();
                let run = move |shared: &Shared| sync_regularly(shared, interval, &stopped);
                Some((spawn("partita-sync", shared, run)?, stop))
            }
        };
        Ok(Threads { committer, reclaim, survey, runway: thread, sync })
    }
}

fn spawn(
    name: &str,
    shared: &Arc<Shared>,
    run: impl FnOnce(&Shared) + Send + 'static,
) -> std::io::Result<JoinHandle<()>> {
    let shared = Arc::clone(shared);
    thread::Builder::new().name(name.to_owned()).spawn(move || run(&shared))
}

/// Syncs the log every `interval` until the other end of `stopped` is gone.
fn sync_regularly(shared: &Shared, interval: Duration, stopped: &Receiver<()>) {
    let interval = interval.max(SYNC_INTERVAL_MIN);
    while stopped.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
        shared.sync();
    }
}

impl Shared {
    fn sync(&self) {
        if self.failure.is_set() || !self.unsynced.swap(false, Ordering::AcqRel) {
            return;
        }
        match self.database.flush_wal(true) {
            Ok(()) => self.counters.syncs.add(1),
            Err(error) => self.failure.set(error.as_ref()),
        }
    }

    /// From now on the files stay as they are.
    fn note_closed(&self) {
        if !self.failure.is_set() {
            // Without the note the next start knows less; nothing else depends on it.
            let _ = condition::note_closed(self.database.path(), open::least_log_needed(&self.database));
        }
    }

    /// Spares the next start to replay much of the log.
    fn write_out(&self) {
        if !self.failure.is_set() && self.property(properties::CUR_SIZE_ALL_MEM_TABLES) > REPLAY_BYTES_MAX {
            // What was not written out is still in the log.
            let _ = self.database.flush();
        }
    }

    /// A row that is in memory, or of which it is known where it stands.
    fn get_at_once(&self, space: Space, partition: &[u8], row: &[u8]) -> Option<Row> {
        KEY.with_borrow_mut(|key| {
            key.clear();
            encode_key_to(space, partition, row, key);
            let hash = self.rows.hash(key);
            match self.rows.find(hash, key) {
                // Its space was not dropped, or it would not be there.
                Found::Row(row) => Some(row),
                Found::Place(place, ticket) => {
                    let row = self.get_at_place(hash, key, place).filter(|_| self.spaces.is_there(space))?;
                    Some(match ticket {
                        Some(ticket) => self.rows.keep(hash, ticket, key, row.version, &row.value),
                        None => row,
                    })
                }
                Found::Nothing => None,
            }
        })
    }

    fn get_at_place(&self, hash: KeyHash, key: &[u8], place: Place) -> Option<Row> {
        let row = self.files.read(key, place);
        if row.is_none() {
            self.rows.forget_place(hash);
        }
        row
    }

    /// A row, to be checked against the dropped spaces.
    fn get_from_database(&self, key: &[u8]) -> Result<Option<Row>> {
        let hash = self.rows.hash(key);
        let ticket = self.rows.ticket(hash);
        let Some(stored) = self.database.get_pinned_opt(key, &self.reads).map_err(read_error)? else { return Ok(None) };
        let (version, value) = split_value(&stored)?;
        self.surveyor.count();
        Ok(Some(match ticket {
            Some(ticket) => self.rows.keep(hash, ticket, key, version, value),
            None => Row { version, value: Bytes::copy_from_slice(value) },
        }))
    }

    pub(crate) fn property(&self, name: &properties::PropName) -> u64 {
        self.database.property_int_value(name).ok().flatten().unwrap_or(0)
    }

    /// The files of the folder as they are, the log included.
    fn disk_bytes(&self) -> u64 {
        let Ok(files) = fs::read_dir(self.database.path()) else { return 0 };
        files.flatten().filter_map(|file| file.metadata().ok()).map(|metadata| metadata.len()).sum()
    }
}

#[async_trait]
impl Store for RocksStore {
    async fn get(&self, space: Space, partition: &[u8], row: &[u8]) -> Result<Option<Row>> {
        if let Some(row) = self.shared.get_at_once(space, partition, row) {
            return Ok(Some(row));
        }
        let (shared, key) = (self.shared.clone(), encode_key(space, partition, row));
        let found = in_one_go(move || shared.get_from_database(&key)).await;
        self.shared.spaces.check(space).await.and(found)
    }

    fn get_now(&self, space: Space, partition: &[u8], row: &[u8]) -> Option<Result<Option<Row>>> {
        self.shared.get_at_once(space, partition, row).map(|row| Ok(Some(row)))
    }

    async fn scan(&self, scan: Scan<'_>, visitor: &mut Visitor<'_>) -> Result<ScanEnd> {
        self.shared.spaces.check(scan.space).await?;
        let Shared { database, helpers, columns, .. } = &*self.shared;
        let end = scan::run(database, helpers, columns, &scan, visitor, |rest| {
            // Where there are other threads, they go on with the tasks of this one meanwhile.
            match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
                Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(rest),
                _ => rest(),
            }
        });
        self.shared.spaces.check(scan.space).await?;
        end
    }

    async fn commit(&self, batch: Batch) -> Result<Version> {
        self.shared.failure.check()?;
        let Shared { database, reads, rows, last_group, .. } = &*self.shared;
        let (mut commit, answered) = Commit::new(batch, rows);
        commit.read_versions(database, reads, rows, last_group.load(Ordering::Acquire))?;
        self.shared.queue.push(commit)?;
        match answered.await {
            Ok(outcome) => outcome,
            Err(_) => Err(Error::OutcomeUnknown("the thread that commits has ended".to_owned())),
        }
    }

    fn writes_refused(&self) -> Option<String> {
        self.shared.failure.why().map(str::to_owned)
    }

    fn figures(&self) -> Vec<(&'static str, u64)> {
        let Shared { counters, queue, spaces, .. } = &*self.shared;
        let property = |name| self.shared.property(name);
        let rows = self.shared.rows.figures();
        let columns = self.shared.columns.figures();
        vec![
            ("commits_total", counters.commits.get()),
            ("commit_conflicts_total", counters.conflicts.get()),
            ("commit_groups_total", counters.groups.get()),
            ("commit_late_reads_total", counters.committer_reads.get()),
            ("commit_queue_commits", queue.len() as u64),
            ("syncs_total", counters.syncs.get()),
            ("writes_refused", u64::from(self.shared.failure.is_set())),
            ("background_errors_total", property(properties::BACKGROUND_ERRORS)),
            ("dropped_spaces", spaces.dropped_count() as u64),
            ("reclaims_pending", counters.reclaims_pending.get()),
            ("estimated_rows", property(properties::ESTIMATE_NUM_KEYS)),
            ("running_compactions", property(properties::NUM_RUNNING_COMPACTIONS)),
            ("pending_compaction_bytes", property(properties::ESTIMATE_PENDING_COMPACTION_BYTES)),
            ("writes_stopped", property(properties::IS_WRITE_STOPPED)),
            ("row_cache_rows", rows.rows),
            ("row_cache_bytes", rows.bytes),
            ("row_places", rows.places),
            ("row_place_bytes", rows.place_bytes),
            ("row_place_reads_total", rows.place_hits),
            ("row_place_files", self.shared.files.count() as u64),
            ("row_cache_hits_total", rows.hits),
            ("row_cache_misses_total", rows.misses),
            ("column_rows", columns.rows),
            ("column_bytes", columns.bytes),
            ("column_rows_passed_over_total", columns.passed_over),
            ("block_cache_bytes", property(properties::BLOCK_CACHE_USAGE)),
            ("memtable_bytes", property(properties::CUR_SIZE_ALL_MEM_TABLES)),
            ("table_file_bytes", property(properties::TOTAL_SST_FILES_SIZE)),
            ("disk_bytes", self.shared.disk_bytes()),
        ]
    }
}
