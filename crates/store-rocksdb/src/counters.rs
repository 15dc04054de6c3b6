//! What the store counts for its figures.

use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) commits: Counter,
    pub(crate) conflicts: Counter,
    pub(crate) groups: Counter,
    pub(crate) syncs: Counter,
    /// Rows that the committer had to read itself because what the caller had read was too old.
    pub(crate) committer_reads: Counter,
    pub(crate) reclaims_pending: Counter,
}

/// A number that other threads look at now and then.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, count: usize) {
        self.0.fetch_add(count as u64, Ordering::Relaxed);
    }

    pub(crate) fn subtract(&self, count: usize) {
        self.0.fetch_sub(count as u64, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
