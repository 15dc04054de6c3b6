//! What the heads of all requests together may take.
//!
//! A head may be long, since filters are, and stays in memory from its first byte until the request is answered. Each
//! connection has a little of that for nothing, which is enough for nearly all requests; what goes beyond it is taken from one
//! amount for all. A connection that gets none is closed: there is no request yet to answer.

use partita_model::limits::{ALL_HEADS_BYTES_MAX, HEAD_BYTES_FREE, HEADER_BYTES_MAX};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The memory for long heads.
#[derive(Debug)]
pub(crate) struct Heads {
    left: AtomicUsize,
}

impl Heads {
    pub(crate) fn new() -> Arc<Heads> {
        Arc::new(Heads { left: AtomicUsize::new(ALL_HEADS_BYTES_MAX) })
    }
}

/// The head that a connection is reading, or has read and not answered.
#[derive(Debug)]
pub(super) struct Head {
    heads: Arc<Heads>,
    read: usize,
    taken: usize,
    is_complete: Arc<AtomicBool>,
}

impl Head {
    pub(super) fn new(heads: Arc<Heads>) -> Head {
        Head { heads, read: 0, taken: 0, is_complete: Arc::default() }
    }

    /// For whoever is given the request: to be set then, as what is read from there on is its body.
    pub(super) fn is_complete(&self) -> Arc<AtomicBool> {
        self.is_complete.clone()
    }

    /// Notes bytes that were read.
    pub(super) fn read(&mut self, bytes: usize) -> io::Result<()> {
        if self.is_complete.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.read += bytes;
        let wanted = self.read.min(HEADER_BYTES_MAX).saturating_sub(HEAD_BYTES_FREE);
        let more = wanted.saturating_sub(self.taken);
        let take = |left: usize| left.checked_sub(more);
        if more > 0 && self.heads.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_err() {
            return Err(io::Error::other("too many long heads"));
        }
        self.taken += more;
        Ok(())
    }

    /// Notes that the request is being answered: what comes next is another.
    pub(super) fn answered(&mut self) {
        self.is_complete.store(false, Ordering::Relaxed);
        if self.taken > 0 {
            self.heads.left.fetch_add(std::mem::take(&mut self.taken), Ordering::Relaxed);
        }
        self.read = 0;
    }
}

impl Drop for Head {
    fn drop(&mut self) {
        self.answered();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: usize = HEADER_BYTES_MAX - HEAD_BYTES_FREE;

    fn left(heads: &Heads) -> usize {
        ALL_HEADS_BYTES_MAX - heads.left.load(Ordering::Relaxed)
    }

    #[test]
    fn short_heads_take_nothing() {
        let heads = Heads::new();
        let mut head = Head::new(heads.clone());
        head.read(HEAD_BYTES_FREE).expect("it is free");
        assert_eq!(left(&heads), 0);
        head.read(10).expect("there is room");
        assert_eq!(left(&heads), 10);
    }

    #[test]
    fn a_head_is_held_until_its_answer_and_a_body_is_none() {
        let heads = Heads::new();
        let mut head = Head::new(heads.clone());
        head.read(HEAD_BYTES_FREE + 100).expect("there is room");
        head.is_complete().store(true, Ordering::Relaxed);
        head.read(1 << 20).expect("it is a body");
        assert_eq!(left(&heads), 100);
        head.answered();
        assert_eq!(left(&heads), 0);
        head.read(HEAD_BYTES_FREE + 7).expect("there is room");
        assert_eq!(left(&heads), 7, "the next request");
        drop(head);
        assert_eq!(left(&heads), 0);
    }

    #[test]
    fn together_they_are_bounded() {
        let heads = Heads::new();
        let mut all: Vec<Head> = Vec::new();
        let refused = loop {
            let mut head = Head::new(heads.clone());
            // More than a head may have is not read.
            match head.read(2 * HEADER_BYTES_MAX) {
                Ok(()) => all.push(head),
                Err(_) => break head,
            }
        };
        assert_eq!(all.len(), ALL_HEADS_BYTES_MAX / LONG);
        drop(refused);
        all.pop();
        Head::new(heads).read(HEADER_BYTES_MAX).expect("somebody made room");
    }
}
