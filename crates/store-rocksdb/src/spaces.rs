//! Which spaces were dropped.
//!
//! RocksDB makes the rows of a space vanish, but to it a dropped space is an empty one; this set makes the difference. A
//! reader looks after it has read. The committer names a space here before it writes the drop and confirms it once that
//! is durable; a reader that comes in between waits for the outcome, as it can neither report rows missing that are
//! there until the drop is durable, nor a drop that a crash could still take back.
//!
//! The set is not stored. Space ids are never used again, and after a restart nobody knows those of dropped spaces.

use partita_store::{Error, Result, Space};
use std::collections::HashSet;
use tokio::sync::watch;

#[derive(Debug)]
pub(crate) struct Spaces(watch::Sender<State>);

#[derive(Debug, Default)]
struct State {
    dropped: HashSet<Space>,
    dropping: Vec<Space>,
}

impl Spaces {
    pub(crate) fn new() -> Spaces {
        Spaces(watch::Sender::new(State::default()))
    }

    pub(crate) fn dropped_count(&self) -> usize {
        self.0.borrow().dropped.len()
    }

    pub(crate) fn is_dropped(&self, space: Space) -> bool {
        self.0.borrow().dropped.contains(&space)
    }

    /// Says whether the space is there, if that is settled.
    fn check_now(&self, space: Space) -> Option<Result<()>> {
        let state = self.0.borrow();
        if state.dropped.contains(&space) {
            Some(Err(Error::SpaceDropped))
        } else if state.dropping.contains(&space) {
            None
        } else {
            Some(Ok(()))
        }
    }

    /// Whether the space is there for certain. Called after a read.
    pub(crate) fn is_there(&self, space: Space) -> bool {
        matches!(self.check_now(space), Some(Ok(())))
    }

    /// Says whether the space is there, as soon as that is settled. Called after a read.
    pub(crate) async fn check(&self, space: Space) -> Result<()> {
        if let Some(settled) = self.check_now(space) {
            return settled;
        }
        let mut changes = self.0.subscribe();
        // The sender lives in `self`, so the channel cannot close meanwhile.
        let _ = changes.wait_for(|state| !state.dropping.contains(&space)).await;
        if self.is_dropped(space) { Err(Error::SpaceDropped) } else { Ok(()) }
    }

    /// Names the spaces that the next write drops.
    pub(crate) fn begin(&self, spaces: &[Space]) {
        self.0.send_modify(|state| state.dropping.extend_from_slice(spaces));
    }

    /// Tells whether the write was durable.
    pub(crate) fn settle(&self, durable: bool) {
        self.0.send_modify(|state| {
            let spaces = std::mem::take(&mut state.dropping);
            if durable {
                state.dropped.extend(spaces);
            }
        });
    }
}
