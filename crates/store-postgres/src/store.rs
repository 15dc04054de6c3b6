//! The engine: what all its parts share.

use crate::failure::Failure;
use crate::options::Options;
use crate::pool::Pool;
use crate::sql;
use crate::sweep::{self, Grace};
use crate::together::{Found, Inserter, Outcome, Queues, Reader, found_in};
use async_trait::async_trait;
use partita_store::{Batch, Clock, Error, Result, Row, Scan, ScanEnd, Space, Store, Version, Versions, Visitor};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_postgres::Error as PgError;
use tokio_postgres::types::ToSql;

/// Longer than the database lets any statement run; who has not answered by then has gone silent.
pub(crate) const SILENCE: Duration = Duration::from_secs(35);
/// How often something that only reads is tried when connections break.
const READ_TRIES: usize = 3;

/// An engine that keeps rows in a database.
#[derive(Debug)]
pub struct PostgresStore {
    shared: Arc<Shared>,
    sweeper: JoinHandle<()>,
}

/// What requests and the sweeper share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) pool: Pool,
    clock: Clock,
    versions: Mutex<Versions>,
    pub(crate) readers: Queues<Reader>,
    pub(crate) inserters: Queues<Inserter>,
    pub(crate) counters: Counters,
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) commits: AtomicU64,
    pub(crate) conflicts: AtomicU64,
    pub(crate) retries: AtomicU64,
    pub(crate) lost: AtomicU64,
    pub(crate) swept_rows: AtomicU64,
    pub(crate) swept_spaces: AtomicU64,
}

impl PostgresStore {
    /// Connects to the database, and makes the tables if there are none. An error is a sentence for the user.
    pub async fn open(options: Options) -> std::result::Result<PostgresStore, String> {
        let clock = options.clock.clone();
        let versions = Mutex::new(Versions::after(0, clock.clone()));
        let pool = Pool::open(options).await?;
        let (readers, inserters, counters) = (Queues::of_readers(), Queues::of_inserters(), Counters::default());
        let shared = Arc::new(Shared { pool, clock, versions, readers, inserters, counters });
        let sweeper = tokio::spawn(sweep::now_and_then(shared.clone()));
        Ok(PostgresStore { shared, sweeper })
    }

    /// Reclaims what nobody can see any more, once; the sweeper does so every few seconds.
    pub async fn sweep(&self, grace: Grace) -> Result<()> {
        sweep::sweep(&self.shared, grace).await
    }
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        self.sweeper.abort();
    }
}

impl Shared {
    fn versions(&self) -> MutexGuard<'_, Versions> {
        self.versions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A version that this node has not given yet, and not less than its clock.
    pub(crate) fn next_version(&self) -> Version {
        self.versions().next_version()
    }

    /// Goes on above a version that another node gave.
    pub(crate) fn raise_versions(&self, above: Version) {
        let mut versions = self.versions();
        if versions.last() < above {
            *versions = Versions::after(above, self.clock.clone());
        }
    }

    async fn get(self: &Arc<Shared>, space: Space, partition: &[u8], row: &[u8]) -> Result<Option<Row>> {
        if self.pool.engine().goes_together() {
            match self.read_together(space, partition, row).await {
                Outcome::Done(Found::Row(row)) => return Ok(row),
                Outcome::Done(Found::Dropped) => return Err(Error::SpaceDropped),
                Outcome::Unreached(why) => return Err(Error::Unavailable(why)),
                Outcome::Lost(_) => _ = self.counters.lost.fetch_add(1, Relaxed),
                Outcome::Alone => {}
            }
        }
        let space = sql::space(space);
        let copy = sql::copy(space, partition);
        for attempt in 1.. {
            let lease = self.pool.lease().await?;
            let parameters: [&(dyn ToSql + Sync); 4] = [&space, &partition, &row, &copy];
            match answered(lease.client.query_one(&lease.statements.get, &parameters)).await {
                Ok(found) => {
                    lease.give_back();
                    return match found_in(&found, 0) {
                        Found::Row(row) => Ok(row),
                        Found::Dropped => Err(Error::SpaceDropped),
                    };
                }
                Err(failure) => {
                    lease.give_back_after(&failure);
                    self.read_failed(failure, attempt)?;
                }
            }
        }
        unreachable!("the last attempt returns")
    }

    /// What becomes of something that only reads: it is tried again, or it is an error.
    pub(crate) fn read_failed(&self, failure: Failure, attempt: usize) -> Result<()> {
        if let Failure::Lost(_) = failure {
            self.counters.lost.fetch_add(1, Relaxed);
        }
        match failure {
            Failure::Corrupt(why) => Err(Error::Corrupt(why)),
            Failure::Race | Failure::Lost(_) | Failure::ReadOnly if attempt < READ_TRIES => {
                self.counters.retries.fetch_add(1, Relaxed);
                Ok(())
            }
            failure => Err(Error::Unavailable(failure.into_words())),
        }
    }
}

/// The answer to a statement, which must come within some time.
pub(crate) async fn answered<T>(
    statement: impl Future<Output = std::result::Result<T, PgError>>,
) -> std::result::Result<T, Failure> {
    match tokio::time::timeout(SILENCE, statement).await {
        Ok(answer) => Ok(answer?),
        Err(_) => Err(Failure::Lost("the database does not answer".into())),
    }
}

#[async_trait]
impl Store for PostgresStore {
    async fn get(&self, space: Space, partition: &[u8], row: &[u8]) -> Result<Option<Row>> {
        self.shared.get(space, partition, row).await
    }

    async fn scan(&self, scan: Scan<'_>, visitor: &mut Visitor<'_>) -> Result<ScanEnd> {
        self.shared.scan(scan, visitor).await
    }

    async fn commit(&self, batch: Batch) -> Result<Version> {
        self.shared.commit(batch).await
    }

    async fn ready(&self) -> std::result::Result<(), String> {
        self.shared.pool.ready().await
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn figures(&self) -> Vec<(&'static str, u64)> {
        let (connections, idle) = self.shared.pool.figures();
        let Counters { commits, conflicts, retries, lost, swept_rows, swept_spaces } = &self.shared.counters;
        vec![
            ("connections", connections as u64),
            ("idle_connections", idle as u64),
            ("connections_opened_total", self.shared.pool.opened.load(Relaxed)),
            ("connections_lost_total", lost.load(Relaxed)),
            ("commits_total", commits.load(Relaxed)),
            ("commit_conflicts_total", conflicts.load(Relaxed)),
            ("retries_total", retries.load(Relaxed)),
            ("swept_rows_total", swept_rows.load(Relaxed)),
            ("swept_spaces_total", swept_spaces.load(Relaxed)),
        ]
    }
}
