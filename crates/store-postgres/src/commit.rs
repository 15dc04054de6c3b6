//! Commits: one statement, one round trip, all or nothing.
//!
//! A batch of one row, which is nearly all there are, has a statement of its own that writes the row if everything holds.
//! When it wrote nothing, or when there is more to a batch, the statement for any batch is sent, which also says what did
//! not hold. Either way it is one round trip. The version is chosen here, before the statement is sent; the database refuses it unless it is above
//! whatever the rows ever had, and then this node goes on above that.

use crate::failure::Failure;
use crate::pool::{Connection, jittered};
use crate::sql::{self, expect};
use crate::store::{Shared, answered};
use crate::together;
use partita_store::{Action, Batch, Error, Expect, Item, Result, Version};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use tokio_postgres::types::ToSql;

/// How long a commit that others overtake is tried again.
const PATIENCE: Duration = Duration::from_secs(20);
/// The first pause behind a lost race, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(200));

/// What became of a statement that was answered.
enum Outcome {
    Committed,
    /// Nothing was written; the statement for any batch will say why.
    NotWritten,
    Dropped,
    Conflict {
        index: usize,
        found: Option<Version>,
    },
    /// The version is not above this one, which was given before.
    TooOld(Version),
}

impl Shared {
    pub(crate) async fn commit(self: &Arc<Shared>, batch: Batch) -> Result<Version> {
        let begun = Instant::now();
        let mut pause = PAUSES.0;
        let can_be_single = batch.drop_space.is_none() && batch.items.len() == 1 && has_own_statement(&batch.items[0]);
        let mut is_single = can_be_single;
        if is_single
            && self.pool.engine().goes_together()
            && let [Item { expect: Expect::Absent, action: Action::Put(value), .. }] = &batch.items[..]
        {
            let version = self.next_version();
            match self.insert_together(&batch, version, value).await {
                together::Outcome::Done(true) => {
                    self.counters.commits.fetch_add(1, Relaxed);
                    return Ok(version);
                }
                together::Outcome::Done(false) => is_single = false,
                together::Outcome::Alone => {}
                together::Outcome::Unreached(why) => return Err(Error::Unavailable(why)),
                together::Outcome::Lost(why) => {
                    self.counters.lost.fetch_add(1, Relaxed);
                    return Err(Error::OutcomeUnknown(why));
                }
            }
        }
        loop {
            let lease = self.pool.lease().await?;
            let version = self.next_version();
            let outcome = match &batch.items[..] {
                [item] if is_single => one(&lease, &batch, item, version).await,
                _ => any(&lease, &batch, version).await,
            };
            let failure = match outcome {
                Ok(outcome) => {
                    lease.give_back();
                    match outcome {
                        Outcome::Committed => {
                            self.counters.commits.fetch_add(1, Relaxed);
                            return Ok(version);
                        }
                        Outcome::NotWritten => is_single = false,
                        Outcome::Dropped => return Err(Error::SpaceDropped),
                        Outcome::Conflict { index, found } => {
                            self.counters.conflicts.fetch_add(1, Relaxed);
                            return Err(Error::Conflict { index, found });
                        }
                        Outcome::TooOld(known) => self.raise_versions(known),
                    }
                    continue;
                }
                Err(failure) => failure,
            };
            lease.give_back_after(&failure);
            match failure {
                Failure::Race if begun.elapsed() < PATIENCE => {
                    self.counters.retries.fetch_add(1, Relaxed);
                    tokio::time::sleep(jittered(pause)).await;
                    pause = (pause * 2).min(PAUSES.1);
                    is_single = can_be_single;
                }
                Failure::Lost(why) => {
                    self.counters.lost.fetch_add(1, Relaxed);
                    return Err(Error::OutcomeUnknown(why));
                }
                Failure::Corrupt(why) => return Err(Error::Corrupt(why)),
                Failure::KeyTooLong => return Err(Error::KeyTooLong),
                failure => return Err(Error::Unavailable(failure.into_words())),
            }
        }
    }
}

/// Whether there is a statement for the item alone.
fn has_own_statement(item: &Item) -> bool {
    match item.action {
        Action::Put(_) => true,
        Action::Delete => matches!(item.expect, Expect::Present | Expect::Version(_)),
        Action::Nothing => false,
    }
}

/// Sends the statement for one row.
async fn one(
    connection: &Connection,
    batch: &Batch,
    item: &Item,
    version: Version,
) -> std::result::Result<Outcome, Failure> {
    let Connection { client, statements, .. } = connection;
    let (space, version) = (sql::space(batch.space), version as i64);
    let (partition, row) = (&batch.partition, &item.row);
    let value = written(&item.action);
    let copy = sql::copy(space, partition);
    let count = match item.expect {
        Expect::Absent => {
            let values: [&(dyn ToSql + Sync); 6] = [&space, partition, row, &version, &value, &copy];
            answered(client.execute(&statements.insert_absent, &values)).await
        }
        Expect::Any => {
            let values: [&(dyn ToSql + Sync); 6] = [&space, partition, row, &version, &value, &copy];
            answered(client.execute(&statements.put_any, &values)).await
        }
        Expect::Present | Expect::Version(_) => {
            let expected = match item.expect {
                Expect::Version(expected) => Some(stored(expected)),
                _ => None,
            };
            let values: [&(dyn ToSql + Sync); 7] = [&space, partition, row, &version, &value, &expected, &copy];
            answered(client.execute(&statements.change, &values)).await
        }
    };
    Ok(if count? == 1 { Outcome::Committed } else { Outcome::NotWritten })
}

/// The items of a batch as arrays.
struct Arrays<'b> {
    rows: Vec<&'b [u8]>,
    expects: Vec<i64>,
    writes: Vec<bool>,
    values: Vec<Option<&'b [u8]>>,
    places: Vec<i64>,
}

impl Arrays<'_> {
    fn of(batch: &Batch) -> Arrays<'_> {
        // Whoever locks rows in the same order does not wait for one another in a circle.
        let mut places: Vec<usize> = (0..batch.items.len()).collect();
        places.sort_unstable_by_key(|&place| &batch.items[place].row);
        let items = || places.iter().map(|&place| &batch.items[place]);
        Arrays {
            rows: items().map(|item| &item.row[..]).collect(),
            expects: items().map(|item| expected(item.expect)).collect(),
            writes: items().map(|item| item.action != Action::Nothing).collect(),
            values: items().map(|item| written(&item.action)).collect(),
            places: places.iter().map(|&place| place as i64).collect(),
        }
    }
}

/// Sends the statement for any batch.
async fn any(connection: &Connection, batch: &Batch, version: Version) -> std::result::Result<Outcome, Failure> {
    let Connection { client, statements, .. } = connection;
    let Arrays { rows, expects, writes, values, places } = Arrays::of(batch);
    let drop_space = batch.drop_space.map(sql::space);
    let changes = drop_space.is_some() || writes.contains(&true);
    let (space, partition, given) = (sql::space(batch.space), &batch.partition, version as i64);
    let copy = sql::copy(space, partition);
    let parameters: [&(dyn ToSql + Sync); 11] =
        [&space, partition, &given, &rows, &expects, &writes, &values, &places, &drop_space, &changes, &copy];
    let answer = answered(async {
        let statement = client.query_one(&statements.batch, &parameters);
        match connection.engine.batch_bounds() {
            None => statement.await,
            // All three are sent together.
            Some((begin, end)) => {
                let all = tokio::try_join!(client.batch_execute(begin), statement, client.batch_execute(end));
                all.map(|((), answer, ())| answer)
            }
        }
    });
    let answer = answer.await?;
    let (is_dropped, failed, newest): (bool, i64, i64) = (answer.get(0), answer.get(1), answer.get(2));
    Ok(if is_dropped {
        Outcome::Dropped
    } else if let Ok(index) = usize::try_from(failed) {
        let found: Option<i64> = answer.get(3);
        Outcome::Conflict { index, found: found.map(|version| version as Version) }
    } else if newest >= given {
        Outcome::TooOld(newest as Version)
    } else {
        Outcome::Committed
    })
}

/// The value that an action leaves, if any.
fn written(action: &Action) -> Option<&[u8]> {
    match action {
        Action::Put(value) => Some(value),
        Action::Delete | Action::Nothing => None,
    }
}

fn expected(expect: Expect) -> i64 {
    match expect {
        Expect::Any => expect::ANY,
        Expect::Absent => expect::ABSENT,
        Expect::Present => expect::PRESENT,
        Expect::Version(version) => stored(version),
    }
}

/// A version as it is stored; one that no clock tells is no row's.
fn stored(version: Version) -> i64 {
    i64::try_from(version).unwrap_or(expect::NEVER)
}
