//! Two engines side by side.
//!
//! Every call goes to both, and a difference between their answers is a panic that says what differed: values, order,
//! conflicts and ends of scans must agree. Versions are given by each engine on its own, so they are not compared but
//! paired: the commit that gave version *l* on the left gave *r* on the right, and wherever the left says *l* the right
//! must say *r*. Callers see the left engine's answers and versions.
//!
//! Commits run one at a time and not during reads, since two engines could honestly order concurrent calls in two ways.
//! For tests; it shows no engine's speed and none of its concurrency.

use crate::{Batch, Error, Expect, Result, Row, RowRef, Scan, ScanEnd, Space, Step, Store, Version, Visitor};
use async_trait::async_trait;
use std::collections::HashMap;
use std::time::{Duration, Instant};
use tokio::sync::RwLock;

/// Runs two engines and panics when their answers differ.
#[derive(Debug)]
pub struct Mirror<L, R> {
    left: L,
    right: R,
    pairs: RwLock<Pairs>,
}

/// Versions of each engine by the versions of the other.
#[derive(Debug, Default)]
struct Pairs {
    right_by_left: HashMap<Version, Version>,
    left_by_right: HashMap<Version, Version>,
}

/// Less than any version an engine gives.
const NO_VERSION: Version = 0;

/// What a scan gave to its visitor, and what the visitor answered.
struct Visited {
    partition: Vec<u8>,
    row: Vec<u8>,
    version: Version,
    value: Vec<u8>,
    step: Step,
}

impl<L: Store, R: Store> Mirror<L, R> {
    /// Mirrors two engines that hold no rows yet.
    pub fn new(left: L, right: R) -> Mirror<L, R> {
        Mirror { left, right, pairs: RwLock::default() }
    }
}

impl Pairs {
    fn right_of(&self, left: Version) -> Version {
        self.right_by_left.get(&left).copied().unwrap_or(NO_VERSION)
    }

    fn left_of(&self, right: Version) -> Version {
        self.left_by_right.get(&right).copied().unwrap_or(NO_VERSION)
    }

    /// Whether neither version was given before.
    fn add(&mut self, left: Version, right: Version) -> bool {
        let new_left = self.right_by_left.insert(left, right).is_none();
        self.left_by_right.insert(right, left).is_none() && new_left
    }

    fn right_batch(&self, left: &Batch) -> Batch {
        let mut right = left.clone();
        for item in &mut right.items {
            if let Expect::Version(version) = &mut item.expect {
                *version = self.right_of(*version);
            }
        }
        right
    }

    fn same_error(&self, left: &Error, right: &Error) -> bool {
        match (left, right) {
            (Error::Conflict { index, found }, Error::Conflict { index: right_index, found: right_found }) => {
                index == right_index && found.map(|version| self.right_of(version)) == *right_found
            }
            (Error::SpaceDropped, Error::SpaceDropped)
            | (Error::KeyTooLong, Error::KeyTooLong)
            | (Error::OutcomeUnknown(_), Error::OutcomeUnknown(_))
            | (Error::Unavailable(_), Error::Unavailable(_))
            | (Error::WritesRefused(_), Error::WritesRefused(_))
            | (Error::Corrupt(_), Error::Corrupt(_)) => true,
            _ => false,
        }
    }

    fn same_row(&self, left: &Option<Row>, right: &Option<Row>) -> bool {
        match (left, right) {
            (None, None) => true,
            (Some(left), Some(right)) => left.value == right.value && self.right_of(left.version) == right.version,
            _ => false,
        }
    }
}

#[async_trait]
impl<L: Store, R: Store> Store for Mirror<L, R> {
    async fn get(&self, space: Space, partition: &[u8], row: &[u8]) -> Result<Option<Row>> {
        let pairs = self.pairs.read().await;
        let left = self.left.get(space, partition, row).await;
        let right = self.right.get(space, partition, row).await;
        let same = match (&left, &right) {
            (Ok(left), Ok(right)) => pairs.same_row(left, right),
            (Err(left), Err(right)) => pairs.same_error(left, right),
            _ => false,
        };
        assert!(same, "get of {space:?}, {partition:02x?}, {row:02x?} differs:\n left {left:?}\nright {right:?}");
        left
    }

    async fn scan(&self, scan: Scan<'_>, visitor: &mut Visitor<'_>) -> Result<ScanEnd> {
        let pairs = self.pairs.read().await;
        let mut visits = Vec::new();
        let left = self
            .left
            .scan(scan.clone(), &mut |row| {
                let step = visitor(row);
                visits.push(Visited {
                    partition: row.partition.to_vec(),
                    row: row.row.to_vec(),
                    version: row.version,
                    value: row.value.to_vec(),
                    step: step.clone(),
                });
                step
            })
            .await;

        // Engines look at the clock at different rows. The right one is therefore given time enough, and is asked to
        // read just as far as the left one came. It is given no sieve either, and what the left one did not show must be
        // rows that the sieve lets pass.
        let mut again = Scan { sieve: None, ..scan.clone() };
        again.deadline = Instant::now() + Duration::from_secs(3600);
        let mut expected_end = left.as_ref().ok().cloned();
        if let Some(ScanEnd::Deadline(position)) = &expected_end {
            again.end = Some(position.clone());
            expected_end = Some(ScanEnd::Exhausted);
        }

        let mut difference = None;
        let mut seen = 0;
        let mut last_step = Step::Next;
        let right = self
            .right
            .scan(again, &mut |row| {
                let visited = visits.get(seen);
                let same = visited.is_some_and(|visited| {
                    visited.partition == row.partition
                        && visited.row == row.row
                        && visited.value == row.value
                        && pairs.right_of(visited.version) == row.version
                });
                if same {
                    last_step = visits[seen].step.clone();
                    seen += 1;
                    return last_step.clone();
                }
                // A sieve may look at versions, and the left one's are those it knows.
                let on_the_left = RowRef { version: pairs.left_of(row.version), ..row };
                if last_step != Step::NextAny && scan.sieve.is_some_and(|sieve| !sieve.keeps(on_the_left)) {
                    return Step::Next;
                }
                difference = Some(match visited {
                    None => format!("the right has a further row {row:02x?}"),
                    Some(Visited { partition, row: name, .. }) => {
                        format!("row {seen} is {partition:02x?}, {name:02x?} left and {row:02x?} right")
                    }
                });
                Step::Stop
            })
            .await;
        assert!(difference.is_none(), "{scan:?} differs: {}", difference.unwrap_or_default());
        let same = match (&left, &right) {
            (Ok(_), Ok(right)) => seen == visits.len() && expected_end.as_ref() == Some(right),
            (Err(left), Err(right)) => pairs.same_error(left, right),
            _ => false,
        };
        let rows = visits.len();
        assert!(same, "{scan:?} differs:\n left {left:?} after {rows} rows\nright {right:?} after {seen} rows");
        left
    }

    async fn commit(&self, batch: Batch) -> Result<Version> {
        let mut pairs = self.pairs.write().await;
        let right = self.right.commit(pairs.right_batch(&batch)).await;
        let left = self.left.commit(batch.clone()).await;
        let same = match (&left, &right) {
            (Ok(left), Ok(right)) => pairs.add(*left, *right),
            (Err(left), Err(right)) => pairs.same_error(left, right),
            _ => false,
        };
        assert!(same, "{batch:?} differs, or a version was given twice:\n left {left:?}\nright {right:?}");
        left
    }

    fn writes_refused(&self) -> Option<String> {
        self.left.writes_refused().or_else(|| self.right.writes_refused())
    }

    async fn ready(&self) -> std::result::Result<(), String> {
        self.left.ready().await?;
        self.right.ready().await
    }

    fn is_shared(&self) -> bool {
        self.left.is_shared() || self.right.is_shared()
    }

    fn figures(&self) -> Vec<(&'static str, u64)> {
        self.left.figures()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Action, Item, Memory};
    use bytes::Bytes;

    fn put(value: &'static [u8]) -> Batch {
        let action = Action::Put(Bytes::from_static(value));
        let items = vec![Item { row: b"r".to_vec(), expect: Expect::Any, action }];
        Batch { space: Space(1), partition: b"p".to_vec(), items, drop_space: None }
    }

    fn everything() -> Scan<'static> {
        let deadline = Instant::now() + Duration::from_secs(3600);
        Scan { space: Space(1), start: Default::default(), end: None, deadline, rows_hint: 10, sieve: None }
    }

    #[tokio::test]
    #[should_panic(expected = "get of Space(1)")]
    async fn a_differing_value_panics() {
        let mirror = Mirror::new(Memory::new(), Memory::new());
        mirror.commit(put(b"same")).await.unwrap();
        mirror.right.commit(put(b"other")).await.unwrap();
        let _ = mirror.get(Space(1), b"p", b"r").await;
    }

    #[tokio::test]
    #[should_panic(expected = "the right has a further row")]
    async fn a_further_row_panics() {
        let mirror = Mirror::new(Memory::new(), Memory::new());
        mirror.right.commit(put(b"more")).await.unwrap();
        let _ = mirror.scan(everything(), &mut |_| Step::Next).await;
    }

    #[tokio::test]
    #[should_panic(expected = "after 1 rows")]
    async fn a_missing_row_panics() {
        let mirror = Mirror::new(Memory::new(), Memory::new());
        mirror.left.commit(put(b"more")).await.unwrap();
        let _ = mirror.scan(everything(), &mut |_| Step::Next).await;
    }

    #[tokio::test]
    #[should_panic(expected = "differs, or a version was given twice")]
    async fn a_differing_conflict_panics() {
        let mirror = Mirror::new(Memory::new(), Memory::new());
        mirror.right.commit(put(b"more")).await.unwrap();
        let mut batch = put(b"first");
        batch.items[0].expect = Expect::Absent;
        let _ = mirror.commit(batch).await;
    }
}
