//! A store that answers from memory and brings commits to the disk when it has time.
//!
//! As long as the process lives nobody can tell: what was answered is seen by all, in order, with its version. What the
//! process had not yet written when it was killed is gone.

use super::Hand;
use async_trait::async_trait;
use partita_store::{
    Action, Batch, Expect, Item, Memory, Position, Result, Row, Scan, ScanEnd, Space, Step, Store, Version, Visitor,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

/// How long the disk is behind.
const DELAY: Duration = Duration::from_millis(1);

#[derive(Debug)]
pub(super) struct WriteBehind {
    memory: Memory,
    /// Tells the memory which version to give.
    hand: Hand,
    /// Commits on their way to the disk; held while a commit is made, so that their order is the same.
    behind: Mutex<Sender<(Version, Batch)>>,
}

/// Spaces that are looked at when the store is opened: more than a short run creates.
const SPACES_MAX: u64 = 1_000;

impl WriteBehind {
    /// Reads the disk into memory. `disk_hand` says which version the disk gives next.
    pub(super) fn open(disk: Arc<dyn Store>, disk_hand: Hand) -> std::result::Result<WriteBehind, String> {
        let hand = Hand::default();
        let memory = Memory::with_clock(hand.clock());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        // Opened on a thread of its own, since the caller may be inside a runtime.
        let loaded = std::thread::scope(|scope| scope.spawn(|| runtime.block_on(load(&*disk, &memory, &hand))).join());
        loaded.expect("loading does not panic").map_err(|error| error.to_string())?;
        let (behind, commits) = channel::<(Version, Batch)>();
        std::thread::spawn(move || {
            for (version, mut batch) in commits {
                std::thread::sleep(DELAY);
                disk_hand.set(version);
                // Memory has checked.
                batch.items.iter_mut().for_each(|item| item.expect = Expect::Any);
                runtime.block_on(disk.commit(batch)).expect("the disk takes what memory took");
            }
        });
        Ok(WriteBehind { memory, hand, behind: Mutex::new(behind) })
    }
}

/// Copies rows with their versions, oldest first.
async fn load(disk: &dyn Store, memory: &Memory, hand: &Hand) -> Result<()> {
    let mut rows: BTreeMap<(Version, Space, Vec<u8>), Vec<Item>> = BTreeMap::new();
    for space in (0..SPACES_MAX).map(Space) {
        let deadline = Instant::now() + Duration::from_secs(3600);
        let scan = Scan { space, start: Position::default(), end: None, deadline, rows_hint: 1000, sieve: None };
        disk.scan(scan, &mut |row| {
            let action = Action::Put(row.value.to_vec().into());
            let item = Item { row: row.row.to_vec(), expect: Expect::Any, action };
            rows.entry((row.version, space, row.partition.to_vec())).or_default().push(item);
            Step::Next
        })
        .await?;
    }
    for ((version, space, partition), items) in rows {
        hand.set(version);
        memory.commit(Batch { space, partition, items, drop_space: None }).await?;
    }
    Ok(())
}

#[async_trait]
impl Store for WriteBehind {
    async fn get(&self, space: Space, partition: &[u8], row: &[u8]) -> Result<Option<Row>> {
        self.memory.get(space, partition, row).await
    }

    async fn scan(&self, scan: Scan<'_>, visitor: &mut Visitor<'_>) -> Result<ScanEnd> {
        self.memory.scan(scan, visitor).await
    }

    async fn commit(&self, batch: Batch) -> Result<Version> {
        let behind = self.behind.lock().await;
        self.hand.next();
        let version = self.memory.commit(batch.clone()).await?;
        behind.send((version, batch)).expect("the disk is there as long as the store");
        Ok(version)
    }

    fn figures(&self) -> Vec<(&'static str, u64)> {
        self.memory.figures()
    }
}
