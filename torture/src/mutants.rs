//! Stores that break one promise each, to show that the check notices.
//!
//! Each is a wrapper around a correct engine, and as small a lie as could be found. None of it is part of the server: a
//! server is started on such a store instead of its own, in a test or by `torture serve --mutant`.

mod halves;
mod scans;
mod spaces;
mod write_behind;

use async_trait::async_trait;
use partita_store::{
    Action, Batch, Clock, Error, Expect, Item, Memory, Result, Row, RowRef, Scan, ScanEnd, Space, Store, Version,
    Visitor,
};
use partita_store_rocksdb::{Options, RocksStore};
use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A promise that is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutant {
    /// A change with `If-Match` is made though the ETag is another.
    IgnoresVersions,
    /// A change of an entity that must be there is made though it is not.
    IgnoresAbsence,
    /// An insert is made though the entity is there.
    IgnoresPresence,
    /// A transaction is applied in two halves.
    HalvesBatches,
    /// The second half of a transaction that fails is left out, and the first is not.
    AppliesBeforeFailure,
    /// A commit is answered before it is applied.
    AnswersEarly,
    /// A commit is answered and seen by all, and on the disk some time later.
    WritesBehind,
    /// Now and then a commit is answered and not applied.
    LosesCommits,
    /// A row that was read is kept for a while, whatever becomes of it.
    ReadsStale,
    /// Versions go backwards now and then.
    TurnsVersions,
    /// A page is read from two moments.
    TearsScans,
    /// Where a page goes on, a row is skipped.
    SkipsRows,
    /// Where a page goes on, a row is shown again.
    RepeatsRows,
    /// A dropped table is not emptied, and the next one gets its rows.
    ReusesSpaces,
    /// A table is emptied row by row before it is dropped.
    DropsSlowly,
}

impl Mutant {
    /// All of them, with their names.
    pub const ALL: [(Mutant, &str); 15] = [
        (Mutant::IgnoresVersions, "ignores-versions"),
        (Mutant::IgnoresAbsence, "ignores-absence"),
        (Mutant::IgnoresPresence, "ignores-presence"),
        (Mutant::HalvesBatches, "halves-batches"),
        (Mutant::AppliesBeforeFailure, "applies-before-failure"),
        (Mutant::AnswersEarly, "answers-early"),
        (Mutant::WritesBehind, "writes-behind"),
        (Mutant::LosesCommits, "loses-commits"),
        (Mutant::ReadsStale, "reads-stale"),
        (Mutant::TurnsVersions, "turns-versions"),
        (Mutant::TearsScans, "tears-scans"),
        (Mutant::SkipsRows, "skips-rows"),
        (Mutant::RepeatsRows, "repeats-rows"),
        (Mutant::ReusesSpaces, "reuses-spaces"),
        (Mutant::DropsSlowly, "drops-slowly"),
    ];

    /// The mutant of a name.
    pub fn parse(name: &str) -> Option<Mutant> {
        Mutant::ALL.iter().find(|(_, other)| *other == name).map(|(mutant, _)| *mutant)
    }
}

/// The engine of a server that keeps its promises, or of one that breaks one. Without a folder it is in memory.
pub fn open(mutant: Option<Mutant>, folder: Option<&Path>) -> std::result::Result<Arc<dyn Store>, String> {
    let hand = Hand::default();
    let engine = |clock: Clock| -> std::result::Result<Arc<dyn Store>, String> {
        let Some(folder) = folder else { return Ok(Arc::new(Memory::with_clock(clock))) };
        let options = Options { clock, ..Options::default() };
        Ok(Arc::new(RocksStore::open(folder, options).map_err(|error| error.to_string())?))
    };
    Ok(match mutant {
        None => engine(Clock::system())?,
        Some(Mutant::WritesBehind) => Arc::new(write_behind::WriteBehind::open(engine(hand.clock())?, hand)?),
        Some(Mutant::AnswersEarly) => Arc::new(Early { engine: engine(hand.clock())?, hand, turn: Arc::default() }),
        Some(Mutant::HalvesBatches) => Arc::new(halves::Halves::new(engine(hand.clock())?, hand)),
        Some(Mutant::ReusesSpaces) => Arc::new(spaces::Reuse::new(engine(Clock::system())?)),
        Some(mutant) => Arc::new(Broken {
            engine: engine(Clock::system())?,
            mutant,
            commits: AtomicU64::new(0),
            cache: Mutex::default(),
        }),
    })
}

/// A clock that tells which version the next commit is to have, so that it can be known before.
#[derive(Clone, Debug, Default)]
struct Hand(Arc<AtomicU64>);

impl Hand {
    fn clock(&self) -> Clock {
        let time = self.0.clone();
        Clock::new(move || partita_model::Ticks(time.load(Ordering::SeqCst)))
    }

    fn set(&self, version: Version) {
        self.0.store(version, Ordering::SeqCst);
    }

    /// A version that is greater than all before.
    fn next(&self) -> Version {
        let now = Clock::system().now().0;
        let before = self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |last| Some(now.max(last + 1)));
        now.max(before.expect("the function has an answer") + 1)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lets others go first for a moment.
async fn pause() {
    tokio::time::sleep(Duration::from_micros(200)).await;
}

/// Whether a batch is of a table and not of the catalogue, which mutants leave alone lest the server notice by itself.
fn is_of_a_table(batch: &Batch) -> bool {
    batch.space != Space(0)
}

/// The names of a row.
type RowName = (Space, Vec<u8>, Vec<u8>);

/// A store that breaks a promise in passing.
#[derive(Debug)]
struct Broken {
    engine: Arc<dyn Store>,
    mutant: Mutant,
    commits: AtomicU64,
    /// Rows that were read, and how often they may still be read from here.
    cache: Mutex<HashMap<RowName, (Option<Row>, u32)>>,
}

impl Broken {
    /// The version that readers are shown.
    fn shown(&self, version: Version) -> Version {
        match self.mutant {
            Mutant::TurnsVersions => turned(version),
            _ => version,
        }
    }

    /// Half of what could be done is done, and then the whole is refused.
    async fn apply_before_failure(&self, batch: Batch) -> Result<Version> {
        let done = self.engine.commit(batch.clone()).await;
        if let Err(Error::Conflict { index, .. }) = &done {
            let items = batch.items[..*index].to_vec();
            let _ = self.engine.commit(Batch { items, ..batch }).await;
        }
        done
    }

    /// Checks everything and changes nothing.
    async fn lose(&self, mut batch: Batch) -> Result<Version> {
        batch.items.iter_mut().for_each(|item| item.action = Action::Nothing);
        self.engine.commit(batch).await
    }

    async fn cached(&self, space: Space, partition: &[u8], row: &[u8]) -> Result<Option<Row>> {
        const READS_MAX: u32 = 5;
        let name = (space, partition.to_vec(), row.to_vec());
        if let Some((row, reads)) = lock(&self.cache).get_mut(&name)
            && *reads > 0
        {
            *reads -= 1;
            return Ok(row.clone());
        }
        let found = self.engine.get(space, partition, row).await?;
        lock(&self.cache).insert(name, (found.clone(), READS_MAX));
        Ok(found)
    }

    /// Deletes some rows of a space before it is dropped.
    async fn empty(&self, space: Space) -> Result<()> {
        let rows = scans::rows(&*self.engine, space).await?;
        for (partition, row) in rows.into_iter().step_by(3) {
            let item = Item { row, expect: Expect::Any, action: Action::Delete };
            let batch = Batch { space, partition, items: vec![item], drop_space: None };
            self.engine.commit(batch).await?;
        }
        pause().await;
        Ok(())
    }
}

/// Turned about in steps of 52 ms: each version still stands for one moment, and not in order.
fn turned(version: Version) -> Version {
    version ^ (1 << 19)
}

#[async_trait]
impl Store for Broken {
    async fn get(&self, space: Space, partition: &[u8], row: &[u8]) -> Result<Option<Row>> {
        match self.mutant {
            Mutant::ReadsStale if space != Space(0) => self.cached(space, partition, row).await,
            _ => {
                let found = self.engine.get(space, partition, row).await?;
                Ok(found.map(|row| Row { version: self.shown(row.version), ..row }))
            }
        }
    }

    async fn scan(&self, scan: Scan<'_>, visitor: &mut Visitor<'_>) -> Result<ScanEnd> {
        match self.mutant {
            Mutant::TearsScans => scans::torn(&*self.engine, scan, visitor).await,
            Mutant::SkipsRows => scans::skipping(&*self.engine, scan, visitor).await,
            Mutant::RepeatsRows => scans::repeating(&*self.engine, scan, visitor).await,
            _ => {
                let mut shown = |row: RowRef<'_>| visitor(RowRef { version: self.shown(row.version), ..row });
                self.engine.scan(Scan { sieve: None, ..scan }, &mut shown).await
            }
        }
    }

    async fn commit(&self, mut batch: Batch) -> Result<Version> {
        let number = self.commits.fetch_add(1, Ordering::Relaxed);
        let of_table = is_of_a_table(&batch);
        let every = |count: u64| number.is_multiple_of(count);
        let mut expect = |from: fn(Expect) -> bool, to| {
            batch.items.iter_mut().filter(|item| from(item.expect)).for_each(|item| item.expect = to);
        };
        match self.mutant {
            Mutant::IgnoresVersions if of_table => {
                expect(|expect| matches!(expect, Expect::Version(_)), Expect::Present)
            }
            Mutant::IgnoresAbsence if of_table => expect(|expect| expect == Expect::Present, Expect::Any),
            Mutant::IgnoresPresence if of_table => expect(|expect| expect == Expect::Absent, Expect::Any),
            Mutant::AppliesBeforeFailure if of_table => return self.apply_before_failure(batch).await,
            Mutant::LosesCommits if of_table && every(50) => return self.lose(batch).await,
            Mutant::DropsSlowly => {
                if let Some(space) = batch.drop_space {
                    self.empty(space).await?;
                }
            }
            Mutant::TurnsVersions => {
                for item in &mut batch.items {
                    if let Expect::Version(version) = item.expect {
                        item.expect = Expect::Version(turned(version));
                    }
                }
                return match self.engine.commit(batch).await {
                    Err(Error::Conflict { index, found }) => Err(Error::Conflict { index, found: found.map(turned) }),
                    done => done.map(turned),
                };
            }
            _ => {}
        }
        self.engine.commit(batch).await
    }

    fn figures(&self) -> Vec<(&'static str, u64)> {
        self.engine.figures()
    }
}

/// A store that answers when it knows what it will do.
#[derive(Debug)]
struct Early {
    engine: Arc<dyn Store>,
    hand: Hand,
    /// Commits go one by one; whoever waits for the turn is a commit that was answered.
    turn: Arc<tokio::sync::Mutex<()>>,
}

#[async_trait]
impl Store for Early {
    async fn get(&self, space: Space, partition: &[u8], row: &[u8]) -> Result<Option<Row>> {
        self.engine.get(space, partition, row).await
    }

    async fn scan(&self, scan: Scan<'_>, visitor: &mut Visitor<'_>) -> Result<ScanEnd> {
        self.engine.scan(scan, visitor).await
    }

    async fn commit(&self, batch: Batch) -> Result<Version> {
        let guard = self.turn.clone().lock_owned().await;
        let version = self.hand.next();
        if !is_of_a_table(&batch) {
            return self.engine.commit(batch).await;
        }
        for (index, item) in batch.items.iter().enumerate() {
            let found = self.engine.get(batch.space, &batch.partition, &item.row).await?.map(|row| row.version);
            if !item.expect.holds(found) {
                return Err(Error::Conflict { index, found });
            }
        }
        let engine = self.engine.clone();
        tokio::spawn(async move {
            pause().await;
            // The checks were made, and nobody else is at it.
            let _ = engine.commit(batch).await;
            drop(guard);
        });
        Ok(version)
    }

    fn figures(&self) -> Vec<(&'static str, u64)> {
        self.engine.figures()
    }
}
