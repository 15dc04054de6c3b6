//! A store that applies a transaction in two halves.
//!
//! Both are shown with the version of the second, lest that give them away: commits go one by one, so that the second version
//! is known to be the next.

use super::{Hand, lock, pause};
use async_trait::async_trait;
use partita_store::{Batch, Error, Expect, Result, Row, RowRef, Scan, ScanEnd, Space, Store, Version, Visitor};
use std::collections::HashSet;
use std::sync::{Arc, Mutex};

#[derive(Debug)]
pub(super) struct Halves {
    engine: Arc<dyn Store>,
    hand: Hand,
    turn: tokio::sync::Mutex<()>,
    /// The versions of first halves. That of the second is one more.
    firsts: Mutex<HashSet<Version>>,
}

impl Halves {
    /// `hand` says which version the engine gives next.
    pub(super) fn new(engine: Arc<dyn Store>, hand: Hand) -> Halves {
        Halves { engine, hand, turn: tokio::sync::Mutex::default(), firsts: Mutex::default() }
    }

    fn shown(&self, version: Version) -> Version {
        version + u64::from(lock(&self.firsts).contains(&version))
    }

    /// Asks for the version that the engine has in place of the one that is shown.
    async fn translate(&self, batch: &mut Batch) -> Result<()> {
        for item in &mut batch.items {
            if let Expect::Version(asked) = item.expect {
                let found = self.engine.get(batch.space, &batch.partition, &item.row).await?.map(|row| row.version);
                let meant = found.filter(|found| self.shown(*found) == asked);
                item.expect = Expect::Version(meant.unwrap_or(asked));
            }
        }
        Ok(())
    }

    fn translated<T>(&self, result: Result<T>, items_before: usize) -> Result<T> {
        result.map_err(|error| match error {
            Error::Conflict { index, found } => {
                Error::Conflict { index: items_before + index, found: found.map(|found| self.shown(found)) }
            }
            error => error,
        })
    }
}

#[async_trait]
impl Store for Halves {
    async fn get(&self, space: Space, partition: &[u8], row: &[u8]) -> Result<Option<Row>> {
        let found = self.engine.get(space, partition, row).await?;
        Ok(found.map(|row| Row { version: self.shown(row.version), ..row }))
    }

    async fn scan(&self, scan: Scan<'_>, visitor: &mut Visitor<'_>) -> Result<ScanEnd> {
        let mut shown = |row: RowRef<'_>| visitor(RowRef { version: self.shown(row.version), ..row });
        self.engine.scan(Scan { sieve: None, ..scan }, &mut shown).await
    }

    async fn commit(&self, mut batch: Batch) -> Result<Version> {
        let _turn = self.turn.lock().await;
        let first = self.hand.next();
        self.translate(&mut batch).await?;
        let half = batch.items.len() / 2;
        if half == 0 || batch.space == Space(0) {
            return self.translated(self.engine.commit(batch).await, 0);
        }
        let second = Batch { items: batch.items.split_off(half), ..batch.clone() };
        lock(&self.firsts).insert(first);
        self.translated(self.engine.commit(batch).await, 0)?;
        pause().await;
        self.hand.set(first + 1);
        self.translated(self.engine.commit(second).await, half)
    }

    fn figures(&self) -> Vec<(&'static str, u64)> {
        self.engine.figures()
    }
}
