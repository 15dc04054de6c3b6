//! What all requests together may take: memory for responses, and places.
//!
//! A page of a query is bounded, and so is the number of connections, but their product is far more memory than a machine
//! has. So everything that waits for a client to read it has a share of one amount. Nobody waits for a share: a query
//! that gets no larger one ends its page early, and the client comes back for the rest; whatever else gets none is told
//! that the server is busy, before it has done anything.
//!
//! Large shares leave the last part of the amount alone. Clients that ask for much and do not read it can take away the
//! large pages of others, but not their small answers.

use partita_model::limits::{ALL_RESPONSES_BYTES_MAX, SMALL_RESPONSE_BYTES_MAX, SMALL_RESPONSES_BYTES};
use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering};

/// The memory for responses.
#[derive(Debug)]
pub(crate) struct Memory {
    /// Below zero if it was taken by force.
    left: AtomicIsize,
}

impl Memory {
    pub(crate) fn new() -> Arc<Memory> {
        Arc::new(Memory { left: AtomicIsize::new(ALL_RESPONSES_BYTES_MAX as isize) })
    }
}

/// A part of the memory, given back when it goes out of scope.
#[derive(Debug)]
pub(crate) struct Share {
    memory: Arc<Memory>,
    bytes: usize,
}

impl Share {
    /// A share of so many bytes, if there are.
    pub(crate) fn of(memory: &Arc<Memory>, bytes: usize) -> Option<Share> {
        let mut share = Share { memory: memory.clone(), bytes: 0 };
        share.grow(bytes).then_some(share)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Makes it this large, if it is not already and if there is memory left.
    pub(crate) fn grow(&mut self, bytes: usize) -> bool {
        if bytes <= self.bytes {
            return true;
        }
        let more = (bytes - self.bytes) as isize;
        let spared = if bytes > SMALL_RESPONSE_BYTES_MAX { SMALL_RESPONSES_BYTES as isize } else { 0 };
        let take = |left: isize| (left - more >= spared).then_some(left - more);
        let taken = self.memory.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok();
        if taken {
            self.bytes = bytes;
        }
        taken
    }

    /// Makes it this large whatever is left: the answer to what was done must be sent.
    pub(crate) fn grow_by_force(&mut self, bytes: usize) {
        let more = bytes.saturating_sub(self.bytes);
        self.memory.left.fetch_sub(more as isize, Ordering::Relaxed);
        self.bytes += more;
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.memory.left.fetch_add(self.bytes as isize, Ordering::Relaxed);
    }
}

/// A body that holds its share until its last byte was sent.
pub(crate) struct Held {
    pub(crate) body: Vec<u8>,
    pub(crate) _share: Share,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.body
    }
}

/// Places for requests under way. One connection of HTTP/1.1 has one request at a time, one of HTTP/2 has many.
#[derive(Debug)]
pub(crate) struct Places {
    free: AtomicUsize,
}

/// A place that is taken, free again when this goes out of scope.
#[derive(Debug)]
pub(crate) struct Place<'p>(&'p Places);

impl Places {
    pub(crate) fn new(count: usize) -> Places {
        Places { free: AtomicUsize::new(count) }
    }

    pub(crate) fn take(&self) -> Option<Place<'_>> {
        let take = |free: usize| free.checked_sub(1);
        self.free.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).ok().map(|_| Place(self))
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.free.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(memory: &Memory) -> isize {
        memory.left.load(Ordering::Relaxed)
    }

    #[test]
    fn large_shares_leave_room_for_small_ones() {
        let memory = Memory::new();
        let large = ALL_RESPONSES_BYTES_MAX - SMALL_RESPONSES_BYTES;
        let mut most = Share::of(&memory, large).expect("there is all of it");
        assert!(!most.grow(large + 1) && most.bytes() == large);
        assert!(Share::of(&memory, SMALL_RESPONSE_BYTES_MAX + 1).is_none());
        let small: Vec<_> = std::iter::from_fn(|| Share::of(&memory, SMALL_RESPONSE_BYTES_MAX)).collect();
        assert_eq!(small.len(), SMALL_RESPONSES_BYTES / SMALL_RESPONSE_BYTES_MAX);
        assert!(Share::of(&memory, 1).is_none());
        drop(small);
        drop(most);
        assert_eq!(left(&memory), ALL_RESPONSES_BYTES_MAX as isize);
    }

    #[test]
    fn what_was_taken_by_force_is_given_back() {
        let memory = Memory::new();
        let mut share = Share::of(&memory, 10).expect("there is enough");
        share.grow_by_force(ALL_RESPONSES_BYTES_MAX * 2);
        share.grow_by_force(1);
        assert!(left(&memory) < 0 && Share::of(&memory, 1).is_none());
        drop(share);
        assert_eq!(left(&memory), ALL_RESPONSES_BYTES_MAX as isize);
    }

    #[test]
    fn places() {
        let places = Places::new(1);
        let place = places.take();
        assert!(place.is_some() && places.take().is_none());
        drop(place);
        assert!(places.take().is_some());
    }
}
