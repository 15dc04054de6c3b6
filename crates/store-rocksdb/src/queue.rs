//! Where commits wait for the committer.
//!
//! Bounded in count and bytes: when writes arrive faster than the disk takes them, those that find the queue full are
//! told so at once, rather than all of them waiting longer and longer in ever more memory.

use crate::commit::Commit;
use partita_store::Error;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

const QUEUE_COMMITS_MAX: usize = 32 * 1024;
const QUEUE_BYTES_MAX: usize = 256 << 20;

/// Groups are cut so that one sync does not keep everybody waiting for megabytes of others.
const GROUP_COMMITS_MAX: usize = 4 * 1024;
const GROUP_BYTES_MAX: usize = 8 << 20;

#[derive(Debug, Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
    arrived: Condvar,
}

#[derive(Debug, Default)]
struct State {
    commits: VecDeque<Commit>,
    bytes: usize,
    closed: bool,
}

impl Queue {
    /// Queues a commit, or says why not.
    pub(crate) fn push(&self, commit: Commit) -> Result<(), Error> {
        let mut state = self.lock();
        if state.closed {
            return Err(Error::Unavailable("the store is closed".to_owned()));
        }
        if state.commits.len() >= QUEUE_COMMITS_MAX || state.bytes + commit.bytes() > QUEUE_BYTES_MAX {
            return Err(Error::Unavailable("too many commits wait to be written".to_owned()));
        }
        state.bytes += commit.bytes();
        state.commits.push_back(commit);
        let first = state.commits.len() == 1;
        drop(state);
        // The committer takes whatever is there, so it needs to be told of the first one only.
        if first {
            self.arrived.notify_one();
        }
        Ok(())
    }

    /// The next commits in the order they came; waits until there is one. `None` once the queue is closed and empty.
    pub(crate) fn next_group(&self) -> Option<Vec<Commit>> {
        let mut state = self.lock();
        while state.commits.is_empty() {
            if state.closed {
                return None;
            }
            state = self.arrived.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let mut bytes = 0;
        let fits = |commit: &&Commit| {
            bytes += commit.bytes();
            bytes <= GROUP_BYTES_MAX
        };
        // One commit always fits, however large.
        let count = state.commits.iter().take(GROUP_COMMITS_MAX).take_while(fits).count().max(1);
        let group: Vec<Commit> = state.commits.drain(..count).collect();
        state.bytes -= group.iter().map(Commit::bytes).sum::<usize>();
        Some(group)
    }

    /// Takes no more commits. Those that wait are still handed out.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.arrived.notify_all();
    }

    /// Takes no more commits and forgets those that wait.
    pub(crate) fn abandon(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.commits.clear();
        state.bytes = 0;
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().commits.len()
    }

    // Nothing that could panic happens half way through a change of the state.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row_cache::RowCache;
    use partita_store::{Action, Batch, Expect, Item, Space};

    fn commit(value_bytes: usize) -> Commit {
        let action = Action::Put(vec![0; value_bytes].into());
        let items = vec![Item { row: b"r".to_vec(), expect: Expect::Any, action }];
        let batch = Batch { space: Space(1), partition: b"p".to_vec(), items, drop_space: None };
        Commit::new(batch, &RowCache::new(0, 0)).0
    }

    #[test]
    fn a_full_queue_says_so_and_recovers() {
        let queue = Queue::default();
        for _ in 0..QUEUE_COMMITS_MAX {
            queue.push(commit(1)).expect("there is room");
        }
        assert!(matches!(queue.push(commit(1)), Err(Error::Unavailable(_))));
        assert_eq!(queue.next_group().map(|group| group.len()), Some(GROUP_COMMITS_MAX));
        queue.push(commit(1)).expect("there is room again");
    }

    #[test]
    fn bytes_are_bounded_too() {
        let queue = Queue::default();
        let large = GROUP_BYTES_MAX + 1;
        for _ in 0..QUEUE_BYTES_MAX / (large + 1000) {
            queue.push(commit(large)).expect("there is room");
        }
        assert!(matches!(queue.push(commit(large)), Err(Error::Unavailable(_))));
        assert_eq!(queue.next_group().map(|group| group.len()), Some(1), "a commit larger than a group is one");
        queue.push(commit(large)).expect("there is room again");
    }

    #[test]
    fn a_closed_queue_hands_out_what_it_has() {
        let queue = Queue::default();
        queue.push(commit(1)).expect("there is room");
        queue.close();
        assert!(matches!(queue.push(commit(1)), Err(Error::Unavailable(_))));
        assert_eq!(queue.next_group().map(|group| group.len()), Some(1));
        assert!(queue.next_group().is_none());
    }
}
