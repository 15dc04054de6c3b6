//! What nobody can see any more is reclaimed in the background, by any node.
//!
//! Rows of dropped spaces go in bounded batches. A space is done with when nothing was found and the drop is so long ago
//! that every statement which had not seen it has ended. Nodes that sweep at the same time, or die at it, do no harm: to
//! delete what was deleted is nothing.
//!
//! Tombstones keep the version that a row created again must exceed. They can go once no version below them can be
//! given any more: first the floor is raised, and with it the least version that the database takes; then, when
//! everybody who may not have seen that has ended, the tombstones below it are deleted. No clock has to be right.

use crate::failure::Failure;
use crate::pool::jittered;
use crate::sql;
use crate::store::{Shared, answered};
use partita_store::{Error, Result};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio_postgres::Client;
use tokio_postgres::types::ToSql;
use tracing::warn;

const INTERVAL: Duration = Duration::from_secs(10);
/// Deletes in a sweep for a space or for tombstones, so that a sweep ends.
const BATCHES_MAX: usize = 100;

/// How long things are kept before they are reclaimed.
#[derive(Clone, Copy, Debug)]
pub struct Grace {
    /// Longer than any statement can run.
    pub statements: Duration,
    /// The age at which tombstones may go.
    pub tombstones: Duration,
    /// The time between two raises of the floor.
    pub floor: Duration,
}

impl Default for Grace {
    fn default() -> Grace {
        Grace {
            statements: Duration::from_secs(120),
            tombstones: Duration::from_secs(3600),
            floor: Duration::from_secs(600),
        }
    }
}

/// Sweeps for ever.
pub(crate) async fn now_and_then(shared: Arc<Shared>) {
    loop {
        tokio::time::sleep(jittered(INTERVAL)).await;
        if let Err(error) = sweep(&shared, Grace::default()).await {
            warn!(%error, "nothing can be swept now");
        }
    }
}

pub(crate) async fn sweep(shared: &Shared, grace: Grace) -> Result<()> {
    let lease = shared.pool.lease().await?;
    match sweep_with(&lease.client, shared, grace).await {
        Ok(()) => {
            lease.give_back();
            Ok(())
        }
        Err(failure) => {
            lease.give_back_after(&failure);
            Err(Error::Unavailable(failure.into_words()))
        }
    }
}

async fn sweep_with(client: &Client, shared: &Shared, grace: Grace) -> std::result::Result<(), Failure> {
    let statements = grace.statements.as_secs_f64();
    for row in answered(client.query(sql::UNSWEPT, &[])).await? {
        let space: i64 = row.get(0);
        for _ in 0..BATCHES_MAX {
            let rows = run(client, sql::SWEEP_ROWS, &[&space]).await?;
            shared.counters.swept_rows.fetch_add(rows, Relaxed);
            if rows == 0 {
                break;
            }
        }
        let marked = run(client, sql::MARK_SWEPT, &[&space, &statements]).await?;
        shared.counters.swept_spaces.fetch_add(marked, Relaxed);
    }
    for _ in 0..BATCHES_MAX {
        let rows = run(client, sql::SWEEP_GRAVES, &[&statements]).await?;
        shared.counters.swept_rows.fetch_add(rows, Relaxed);
        if rows == 0 {
            break;
        }
    }
    let age = (grace.tombstones.as_micros() * 10) as i64;
    run(client, sql::RAISE_FLOOR, &[&age, &grace.floor.as_secs_f64()]).await?;
    Ok(())
}

/// Runs a statement and says how many rows it changed. None if somebody else sweeps, or writes, in the same place: the
/// next sweep finds what is left.
async fn run(client: &Client, sql: &str, values: &[&(dyn ToSql + Sync)]) -> std::result::Result<u64, Failure> {
    match answered(client.execute(sql, values)).await {
        Err(Failure::Race) => Ok(0),
        result => result,
    }
}
