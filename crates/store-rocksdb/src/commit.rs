//! A batch on its way to the committer, with everything done to it that the caller's thread can do: keys encoded, values
//! laid out, versions read.

use crate::failure::read_error;
use crate::format::{split_value, unstamped};
use crate::recent::{GroupNumber, HashedKey};
use crate::row_cache::RowCache;
use partita_store::{Action, Batch, Expect, Result, Space, Version, encode_key};
use rocksdb::{DB, ReadOptions};
use tokio::sync::oneshot;

/// A batch that waits to be committed.
#[derive(Debug)]
pub(crate) struct Commit {
    pub(crate) space: Space,
    pub(crate) drop_space: Option<Space>,
    pub(crate) rows: Vec<RowChange>,
    /// The last group that could be seen when the versions of `rows` were read.
    pub(crate) read_at: GroupNumber,
    pub(crate) answer: oneshot::Sender<Result<Version>>,
    bytes: usize,
}

/// One row of a commit.
#[derive(Debug)]
pub(crate) struct RowChange {
    pub(crate) key: HashedKey,
    pub(crate) expect: Expect,
    /// The version that was found, if one was expected.
    pub(crate) found: Option<Version>,
    pub(crate) change: Change,
}

/// What becomes of a row.
#[derive(Debug)]
pub(crate) enum Change {
    /// The value as it is stored, except for its version.
    Put(Vec<u8>),
    Delete,
    Nothing,
}

impl Commit {
    pub(crate) fn new(batch: Batch, cache: &RowCache) -> (Commit, oneshot::Receiver<Result<Version>>) {
        let (answer, answered) = oneshot::channel();
        let mut bytes = size_of::<Commit>();
        let rows = batch.items.into_iter().map(|item| {
            let key = encode_key(batch.space, &batch.partition, &item.row);
            let change = match item.action {
                Action::Put(value) => Change::Put(unstamped(&value)),
                Action::Delete => Change::Delete,
                Action::Nothing => Change::Nothing,
            };
            bytes += size_of::<RowChange>() + key.len() + change.bytes();
            let key = HashedKey { hash: cache.hash(&key), key };
            RowChange { key, expect: item.expect, found: None, change }
        });
        let rows = rows.collect();
        (Commit { space: batch.space, drop_space: batch.drop_space, rows, read_at: 0, answer, bytes }, answered)
    }

    /// About what it takes of memory and log.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Reads the versions of the rows of which something is expected. `last_group` has been loaded before, so that the
    /// reads see at least that.
    pub(crate) fn read_versions(
        &mut self,
        database: &DB,
        reads: &ReadOptions,
        cache: &RowCache,
        last_group: GroupNumber,
    ) -> Result<()> {
        self.read_at = last_group;
        for row in self.rows.iter_mut().filter(|row| row.expect != Expect::Any) {
            let HashedKey { hash, key } = &row.key;
            row.found = match cache.version(*hash, key) {
                Some(version) => Some(version),
                None => read_version(database, key, reads)?,
            };
        }
        Ok(())
    }
}

impl Change {
    fn bytes(&self) -> usize {
        if let Change::Put(stored) = self { stored.len() } else { 0 }
    }
}

pub(crate) fn read_version(database: &DB, key: &[u8], settings: &ReadOptions) -> Result<Option<Version>> {
    match database.get_pinned_opt(key, settings).map_err(read_error)? {
        Some(stored) => Ok(Some(split_value(&stored)?.0)),
        None => Ok(None),
    }
}
