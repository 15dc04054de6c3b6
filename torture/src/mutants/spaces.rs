//! A store that forgets to empty what is dropped.

use super::lock;
use async_trait::async_trait;
use partita_store::{Batch, Error, Result, Row, Scan, ScanEnd, Space, Store, Version, Visitor};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

/// Gives the rows of a dropped space to the next new one.
#[derive(Debug)]
pub(super) struct Reuse {
    engine: Arc<dyn Store>,
    spaces: Mutex<Spaces>,
}

#[derive(Debug, Default)]
struct Spaces {
    /// Where the rows of a space really are.
    real: BTreeMap<Space, Space>,
    dropped: BTreeSet<Space>,
    /// Real spaces that nobody has.
    free: Vec<Space>,
}

impl Reuse {
    pub(super) fn new(engine: Arc<dyn Store>) -> Reuse {
        Reuse { engine, spaces: Mutex::default() }
    }

    fn real(&self, space: Space) -> Result<Space> {
        let mut spaces = lock(&self.spaces);
        if spaces.dropped.contains(&space) {
            return Err(Error::SpaceDropped);
        }
        if let Some(real) = spaces.real.get(&space) {
            return Ok(*real);
        }
        let real = spaces.free.pop().unwrap_or(space);
        spaces.real.insert(space, real);
        Ok(real)
    }
}

#[async_trait]
impl Store for Reuse {
    async fn get(&self, space: Space, partition: &[u8], row: &[u8]) -> Result<Option<Row>> {
        self.engine.get(self.real(space)?, partition, row).await
    }

    async fn scan(&self, scan: Scan<'_>, visitor: &mut Visitor<'_>) -> Result<ScanEnd> {
        let space = self.real(scan.space)?;
        self.engine.scan(Scan { space, ..scan }, visitor).await
    }

    async fn commit(&self, batch: Batch) -> Result<Version> {
        let space = self.real(batch.space)?;
        let dropped = batch.drop_space;
        let version = self.engine.commit(Batch { space, drop_space: None, ..batch }).await?;
        if let Some(dropped) = dropped {
            let real = self.real(dropped)?;
            let mut spaces = lock(&self.spaces);
            spaces.dropped.insert(dropped);
            spaces.free.push(real);
        }
        Ok(version)
    }

    fn figures(&self) -> Vec<(&'static str, u64)> {
        self.engine.figures()
    }
}
