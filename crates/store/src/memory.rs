//! The smallest engine: a sorted map under a lock.
//!
//! It is what `--in-memory` runs on, and the reference that other engines are compared with, so it is written to be
//! seen right at a glance: rows are kept under [`Position`], whose order is the order of the contract, and not under
//! encoded keys. A scan holds the lock for reading while it runs and so sees one moment; writers wait for it. Nothing
//! outlives the process, hence a commit is as durable as it gets when it returns.

use crate::{
    Action, Batch, Clock, Error, Result, Row, RowRef, Scan, ScanEnd, Space, Step, Store, Version, Versions, Visitor,
};
use async_trait::async_trait;
use bytes::Bytes;
use partita_model::Position;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Instant;

/// Reading the clock costs more than visiting a row.
const ROWS_BETWEEN_DEADLINE_CHECKS: usize = 32;

/// An engine that keeps rows in memory.
#[derive(Debug)]
pub struct Memory {
    state: RwLock<State>,
}

#[derive(Debug)]
struct State {
    spaces: HashMap<Space, BTreeMap<Position, Row>>,
    dropped: HashSet<Space>,
    versions: Versions,
    commits: u64,
    conflicts: u64,
}

impl Memory {
    /// An engine without rows.
    pub fn new() -> Memory {
        Memory::with_clock(Clock::system())
    }

    /// An engine without rows that takes its versions from a clock.
    pub fn with_clock(clock: Clock) -> Memory {
        let state = State {
            spaces: HashMap::new(),
            dropped: HashSet::new(),
            versions: Versions::after(0, clock),
            commits: 0,
            conflicts: 0,
        };
        Memory { state: RwLock::new(state) }
    }

    // A visitor that panics poisons nothing, since it runs under a read lock; a commit changes rows only after
    // everything that could fail. The state behind a poisoned lock is therefore still whole.
    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Memory {
    fn default() -> Memory {
        Memory::new()
    }
}

impl State {
    fn check_not_dropped(&self, space: Space) -> Result<()> {
        if self.dropped.contains(&space) { Err(Error::SpaceDropped) } else { Ok(()) }
    }

    fn get(&self, space: Space, partition: &[u8], row: &[u8]) -> Result<Option<Row>> {
        self.check_not_dropped(space)?;
        let position = Position::new(partition, row);
        Ok(self.spaces.get(&space).and_then(|rows| rows.get(&position)).cloned())
    }

    fn check_expectations(&self, batch: &Batch) -> Result<()> {
        let rows = self.spaces.get(&batch.space);
        for (index, item) in batch.items.iter().enumerate() {
            let position = Position::new(batch.partition.as_slice(), item.row.as_slice());
            let found = rows.and_then(|rows| rows.get(&position)).map(|row| row.version);
            if !item.expect.holds(found) {
                return Err(Error::Conflict { index, found });
            }
        }
        Ok(())
    }

    fn commit(&mut self, batch: Batch) -> Result<Version> {
        self.check_not_dropped(batch.space)?;
        self.check_expectations(&batch).inspect_err(|_| self.conflicts += 1)?;
        let version = self.versions.next_version();
        let rows = self.spaces.entry(batch.space).or_default();
        for item in batch.items {
            let position = Position::new(batch.partition.as_slice(), item.row);
            match item.action {
                Action::Put(value) => {
                    // Kept for long, and the writer may have made more room for it than it needed.
                    let value = Bytes::copy_from_slice(&value);
                    rows.insert(position, Row { version, value });
                }
                Action::Delete => {
                    rows.remove(&position);
                }
                Action::Nothing => {}
            }
        }
        if let Some(space) = batch.drop_space {
            self.spaces.remove(&space);
            self.dropped.insert(space);
        }
        self.commits += 1;
        Ok(version)
    }

    fn scan(&self, scan: Scan<'_>, visitor: &mut Visitor<'_>) -> ScanEnd {
        let Some(rows) = self.spaces.get(&scan.space) else { return ScanEnd::Exhausted };
        let mut rest = rows.range(scan.start..);
        let mut visited = 0;
        let mut sieve = scan.sieve;
        while let Some((position, row)) = rest.next() {
            if scan.end.as_ref().is_some_and(|end| position >= end) {
                return ScanEnd::Exhausted;
            }
            if visited > 0 && visited % ROWS_BETWEEN_DEADLINE_CHECKS == 0 && Instant::now() >= scan.deadline {
                return ScanEnd::Deadline(position.clone());
            }
            visited += 1;
            let Position { partition, row: name } = position;
            let row = RowRef { partition, row: name, version: row.version, value: &row.value };
            if let Some(sieve) = sieve
                && !sieve.keeps(row)
            {
                sieve.passed_over(1);
                continue;
            }
            sieve = scan.sieve;
            match visitor(row) {
                Step::Next => {}
                Step::NextAny => sieve = None,
                Step::Seek(target) => {
                    assert!(target > *position, "a scan seeks forwards only");
                    rest = rows.range(target..);
                }
                Step::Stop => return ScanEnd::Stopped,
            }
        }
        ScanEnd::Exhausted
    }
}

#[async_trait]
impl Store for Memory {
    async fn get(&self, space: Space, partition: &[u8], row: &[u8]) -> Result<Option<Row>> {
        self.read().get(space, partition, row)
    }

    fn get_now(&self, space: Space, partition: &[u8], row: &[u8]) -> Option<Result<Option<Row>>> {
        Some(self.read().get(space, partition, row))
    }

    async fn scan(&self, scan: Scan<'_>, visitor: &mut Visitor<'_>) -> Result<ScanEnd> {
        let state = self.read();
        state.check_not_dropped(scan.space)?;
        Ok(state.scan(scan, visitor))
    }

    async fn commit(&self, batch: Batch) -> Result<Version> {
        self.write().commit(batch)
    }

    fn figures(&self) -> Vec<(&'static str, u64)> {
        let state = self.read();
        let rows: usize = state.spaces.values().map(BTreeMap::len).sum();
        vec![
            ("commits_total", state.commits),
            ("commit_conflicts_total", state.conflicts),
            ("dropped_spaces", state.dropped.len() as u64),
            ("rows", rows as u64),
        ]
    }
}
