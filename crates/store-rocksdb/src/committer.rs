//! The one thread that writes.
//!
//! It takes all that has queued, makes one batch of it, writes and syncs that once, and answers everyone. While it syncs
//! the next group gathers, so that the number of commits in a sync grows with the number of writers, and a hot partition
//! is not bound to one commit per sync.

use crate::commit::Commit;
use crate::group::{Group, Prepared};
use crate::options::Durability;
use crate::recent::{GroupNumber, Recent};
use crate::runway::Runway;
use crate::settings;
use crate::store::Shared;
use partita_store::{Error, Space, Versions};
use rocksdb::WriteOptions;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;

pub(crate) struct Committer<'a> {
    shared: &'a Shared,
    settings: WriteOptions,
    syncs: bool,
    versions: Versions,
    recent: Recent,
    stored: Vec<u8>,
    last_group: GroupNumber,
    reclaim: Sender<Space>,
    runway: Option<Runway>,
}

impl<'a> Committer<'a> {
    pub(crate) fn new(
        shared: &'a Shared,
        durability: Durability,
        versions: Versions,
        reclaim: Sender<Space>,
        runway: Option<Runway>,
    ) -> Committer<'a> {
        Committer {
            shared,
            settings: settings::write(durability),
            syncs: durability == Durability::Sync,
            versions,
            recent: Recent::default(),
            stored: Vec::new(),
            last_group: 0,
            reclaim,
            runway,
        }
    }

    /// Commits what comes until the queue is closed and empty.
    pub(crate) fn run(mut self) {
        let _abandon = AbandonQueue(self.shared);
        while let Some(commits) = self.shared.queue.next_group() {
            self.commit(commits);
        }
    }

    fn commit(&mut self, commits: Vec<Commit>) {
        if self.shared.failure.is_set() {
            commits.into_iter().for_each(|commit| drop(commit.answer.send(self.shared.failure.check().map(|()| 0))));
            return;
        }
        let mut group = Group {
            database: &self.shared.database,
            spaces: &self.shared.spaces,
            counters: &self.shared.counters,
            recent: &mut self.recent,
            versions: &mut self.versions,
            stored: &mut self.stored,
            prepared: Prepared::with_capacity_bytes(commits.iter().map(Commit::bytes).sum()),
        };
        commits.into_iter().for_each(|commit| group.add(commit));
        let Prepared { writes, rows, keys, answers, dropped, to_reclaim, .. } = group.finish();

        if !dropped.is_empty() {
            self.shared.spaces.begin(&dropped);
        }
        let writing = (self.shared.rows.writing(&rows, &dropped), self.shared.columns.writing(keys, &dropped));
        let written = if writes.is_empty() { Ok(()) } else { self.write(writes) };
        drop(writing);
        if !dropped.is_empty() {
            self.shared.spaces.settle(written.is_ok());
        }

        self.last_group += 1;
        self.recent.end_group(self.last_group);
        self.shared.last_group.store(self.last_group, Ordering::Release);
        self.shared.counters.groups.add(1);

        if written.is_ok() {
            // Before the answers: whoever has one can see that its space is still to be reclaimed.
            for space in to_reclaim {
                self.shared.counters.reclaims_pending.add(1);
                // The other end is gone only when the store is closing.
                let _ = self.reclaim.send(space);
            }
        }
        match written {
            // Whoever no longer waits for the answer has no use for it.
            Ok(()) => answers.into_iter().for_each(|(answer, outcome)| drop(answer.send(outcome))),
            Err(why) => {
                for (answer, outcome) in answers {
                    let outcome = match outcome {
                        Ok(_) => Err(Error::OutcomeUnknown(why.clone())),
                        // Nothing of it was written, but what it met may not have been either.
                        Err(_) => Err(Error::Unavailable(why.clone())),
                    };
                    drop(answer.send(outcome));
                }
            }
        }
    }

    /// Returns when the writes are as durable as was asked for. Until then no reader sees any of them: RocksDB writes the
    /// log, syncs it if told to, fills its memory tables, and only then moves the sequence number up to which readers
    /// look (`DBImpl::WriteImpl`: `WriteGroupToWAL` comes before `SetLastSequence`). That holds for its default way of
    /// writing, which this crate uses, and not for unordered writes. One move covers the whole batch, and readers never see
    /// half of it.
    fn write(&mut self, writes: rocksdb::WriteBatch) -> Result<(), String> {
        let bytes = writes.size_in_bytes();
        match self.shared.database.write_opt(writes, &self.settings) {
            Ok(()) => {
                self.shared.counters.syncs.add(usize::from(self.syncs));
                self.shared.unsynced.store(!self.syncs, Ordering::Release);
                if let Some(runway) = &mut self.runway {
                    runway.take(bytes);
                }
                Ok(())
            }
            Err(error) => {
                let why = error.into_string();
                self.shared.failure.set(&why);
                Err(why)
            }
        }
    }
}

/// Lets go of those who wait when the thread ends, even by a panic, so that they do not wait for ever.
struct AbandonQueue<'a>(&'a Shared);

impl Drop for AbandonQueue<'_> {
    fn drop(&mut self) {
        self.0.queue.abandon();
    }
}
