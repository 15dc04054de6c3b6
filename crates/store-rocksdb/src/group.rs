//! A group of commits becomes one batch of writes.
//!
//! Commits are taken in order, and each sees the rows as the ones before it leave them, though none of that is written
//! yet. Those that do not hold drop out; the others are written together. Nobody is answered before the write, since a
//! conflict may be with a row that is only in the group.

use crate::columns::Keys;
use crate::commit::{Change, Commit, RowChange, read_version};
use crate::counters::Counters;
use crate::failure::read_error;
use crate::format::{LAST_VERSION_KEY, stamp};
use crate::recent::{HashedKey, Recent};
use crate::row_cache::KeyHash;
use crate::spaces::Spaces;
use partita_store::{Error, Expect, Result, Space, Version, Versions, space_end, space_prefix};
use rocksdb::{DB, ReadOptions, WriteBatch};
use tokio::sync::oneshot;

/// A space of more rows, or of larger ones, is dropped by a range deletion. Reads have to look at each range deletion for
/// as long as it has not been compacted away, which for small tables would cost more than their few rows. To delete rows
/// one by one they have to be found first, and meanwhile nobody else commits.
const ROWS_DROPPED_ONE_BY_ONE_MAX: usize = 1000;
const BYTES_DROPPED_ONE_BY_ONE_MAX: usize = 4 << 20;

pub(crate) struct Group<'a> {
    pub(crate) database: &'a DB,
    pub(crate) spaces: &'a Spaces,
    pub(crate) counters: &'a Counters,
    pub(crate) recent: &'a mut Recent,
    pub(crate) versions: &'a mut Versions,
    /// Where values are put together.
    pub(crate) stored: &'a mut Vec<u8>,
    pub(crate) prepared: Prepared,
}

/// What is to be written, and what to tell whom once it is.
#[derive(Default)]
pub(crate) struct Prepared {
    pub(crate) writes: WriteBatch,
    /// The rows among the writes.
    pub(crate) rows: Vec<KeyHash>,
    pub(crate) keys: Keys,
    pub(crate) answers: Vec<(oneshot::Sender<Result<Version>>, Result<Version>)>,
    /// The spaces that the writes drop.
    pub(crate) dropped: Vec<Space>,
    /// Those of them that are worth compacting.
    pub(crate) to_reclaim: Vec<Space>,
    written: Vec<Space>,
}

impl Prepared {
    /// Nothing yet, with room for a group of so many bytes.
    pub(crate) fn with_capacity_bytes(bytes: usize) -> Prepared {
        Prepared { writes: WriteBatch::with_capacity_bytes(bytes), ..Prepared::default() }
    }

    fn wrote(&mut self, row: &HashedKey) {
        self.rows.push(row.hash);
        self.keys.push(&row.key);
    }
}

impl Group<'_> {
    /// Takes a commit in, or finds that it does not hold.
    pub(crate) fn add(&mut self, commit: Commit) {
        let Commit { space, drop_space, rows, read_at, answer, .. } = commit;
        let outcome = self.check(space, read_at, &rows).and_then(|()| self.apply(space, drop_space, rows));
        match outcome {
            Ok(_) => self.counters.commits.add(1),
            Err(Error::Conflict { .. }) => self.counters.conflicts.add(1),
            Err(_) => {}
        }
        self.prepared.answers.push((answer, outcome));
    }

    /// The writes and answers, with the last version among the writes.
    pub(crate) fn finish(mut self) -> Prepared {
        if !self.prepared.writes.is_empty() {
            self.prepared.writes.put(LAST_VERSION_KEY, self.versions.last().to_be_bytes());
        }
        self.prepared
    }

    fn check(&self, space: Space, read_at: u64, rows: &[RowChange]) -> Result<()> {
        if self.is_dropped(space) {
            return Err(Error::SpaceDropped);
        }
        let read_is_good = self.recent.reaches_back_to(read_at);
        for (index, row) in rows.iter().enumerate().filter(|(_, row)| row.expect != Expect::Any) {
            let found = match self.recent.find(&row.key) {
                Some(version) => version,
                None if read_is_good => row.found,
                None => {
                    self.counters.committer_reads.add(1);
                    read_version(self.database, &row.key.key, &ReadOptions::default())?
                }
            };
            if !row.expect.holds(found) {
                return Err(Error::Conflict { index, found });
            }
        }
        Ok(())
    }

    fn apply(&mut self, space: Space, drop_space: Option<Space>, rows: Vec<RowChange>) -> Result<Version> {
        // First, because it reads and can fail; nothing has been changed by then.
        let few_rows = match drop_space {
            Some(dropped) if !self.is_dropped(dropped) => self.few_rows(dropped, space)?,
            _ => None,
        };
        let version = self.versions.next_version();
        self.prepared.written.push(space);
        for row in rows {
            match row.change {
                Change::Put(value) => {
                    stamp(version, &value, self.stored);
                    self.prepared.writes.put(&row.key.key, &self.stored);
                    self.prepared.wrote(&row.key);
                    self.recent.note(row.key, Some(version));
                }
                Change::Delete => {
                    self.prepared.writes.delete(&row.key.key);
                    self.prepared.wrote(&row.key);
                    self.recent.note(row.key, None);
                }
                Change::Nothing => {}
            }
        }
        if let Some(dropped) = drop_space
            && !self.is_dropped(dropped)
        {
            self.drop_rows(dropped, few_rows);
        }
        Ok(version)
    }

    fn drop_rows(&mut self, space: Space, few_rows: Option<Vec<Vec<u8>>>) {
        match few_rows {
            Some(keys) => keys.iter().for_each(|key| self.prepared.writes.delete(key)),
            None => {
                self.prepared.writes.delete_range(space_prefix(space).as_slice(), space_end(space).as_slice());
                self.prepared.to_reclaim.push(space);
            }
        }
        self.prepared.dropped.push(space);
    }

    /// The keys of all rows of a space, or `None` if they are many, or if there may be more of them in this group, of
    /// which `writer` is the space of the commit in hand.
    fn few_rows(&self, space: Space, writer: Space) -> Result<Option<Vec<Vec<u8>>>> {
        if writer == space || self.prepared.written.contains(&space) {
            return Ok(None);
        }
        let mut settings = ReadOptions::default();
        settings.set_iterate_upper_bound(space_end(space));
        settings.fill_cache(false);
        let mut rows = self.database.raw_iterator_opt(settings);
        let mut keys = Vec::new();
        let mut bytes = 0;
        rows.seek(space_prefix(space));
        while let Some((key, stored)) = rows.item() {
            bytes += key.len() + stored.len();
            if keys.len() == ROWS_DROPPED_ONE_BY_ONE_MAX || bytes > BYTES_DROPPED_ONE_BY_ONE_MAX {
                return Ok(None);
            }
            keys.push(key.to_vec());
            rows.next();
        }
        rows.status().map_err(read_error)?;
        Ok(Some(keys))
    }

    fn is_dropped(&self, space: Space) -> bool {
        self.prepared.dropped.contains(&space) || self.spaces.is_dropped(space)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row_cache::RowCache;
    use partita_store::{Action, Batch, Clock, Item};
    use std::sync::LazyLock;

    /// Hashes keys the same for all commits, and keeps no rows.
    static CACHE: LazyLock<RowCache> = LazyLock::new(|| RowCache::new(0, 0));

    fn put(expect: Expect) -> Batch {
        let items = vec![Item { row: b"r".to_vec(), expect, action: Action::Put(b"value".as_slice().into()) }];
        Batch { space: Space(1), partition: b"p".to_vec(), items, drop_space: None }
    }

    /// Commits in one group, each with what its caller had read when group `read_at` was the last, and writes it.
    fn commit(
        database: &DB,
        recent: &mut Recent,
        read_at: u64,
        batches: Vec<(Batch, Option<Version>)>,
    ) -> Vec<Result<Version>> {
        let (spaces, counters) = (Spaces::new(), Counters::default());
        let mut versions = Versions::after(1000, Clock::new(|| partita_model::Ticks(0)));
        let prepared = Prepared::with_capacity_bytes(0);
        let mut group = Group {
            database,
            spaces: &spaces,
            counters: &counters,
            recent,
            versions: &mut versions,
            stored: &mut Vec::new(),
            prepared,
        };
        for (batch, found) in batches {
            let (mut commit, _) = Commit::new(batch, &CACHE);
            commit.read_at = read_at;
            commit.rows[0].found = found;
            group.add(commit);
        }
        let prepared = group.finish();
        database.write(prepared.writes).expect("the group is written");
        prepared.answers.into_iter().map(|(_, outcome)| outcome).collect()
    }

    fn database() -> (DB, tempfile::TempDir) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        (DB::open_default(folder.path()).expect("a database"), folder)
    }

    #[test]
    fn commits_of_a_group_see_one_another() {
        let (database, _folder) = database();
        let batches = vec![
            (put(Expect::Absent), None),
            (put(Expect::Absent), None),
            (put(Expect::Version(1001)), None),
            (put(Expect::Version(1001)), None),
        ];
        let outcomes = commit(&database, &mut Recent::default(), 0, batches);
        assert!(matches!(
            outcomes[..],
            [
                Ok(1001),
                Err(Error::Conflict { index: 0, found: Some(1001) }),
                Ok(1002),
                Err(Error::Conflict { index: 0, found: Some(1002) }),
            ]
        ));
    }

    #[test]
    fn a_row_written_since_the_caller_read_is_found() {
        let (database, _folder) = database();
        let mut recent = Recent::default();
        commit(&database, &mut recent, 0, vec![(put(Expect::Any), None)]);
        recent.end_group(1);
        let outcomes = commit(&database, &mut recent, 0, vec![(put(Expect::Absent), None)]);
        assert!(matches!(outcomes[..], [Err(Error::Conflict { index: 0, found: Some(1001) })]));
    }

    #[test]
    fn a_caller_that_read_too_early_has_its_rows_read_again() {
        let (database, _folder) = database();
        let mut recent = Recent::default();
        commit(&database, &mut recent, 0, vec![(put(Expect::Any), None)]);
        // Two generations full of other rows push the row out.
        for group in 1..=2_u64 {
            for row in 0..20_000_u64 {
                let key = [group, row].map(u64::to_be_bytes).concat();
                recent.note(HashedKey { hash: KeyHash::of_number(row), key }, Some(1));
            }
            recent.end_group(group);
        }
        let early = |recent: &mut Recent| commit(&database, recent, 0, vec![(put(Expect::Absent), None)]);
        assert!(matches!(early(&mut recent)[..], [Err(Error::Conflict { index: 0, found: Some(1001) })]));
        let outcomes = commit(&database, &mut recent, 2, vec![(put(Expect::Version(1001)), Some(1001))]);
        assert!(matches!(outcomes[..], [Ok(_)]), "what was read in time is good");
    }
}
