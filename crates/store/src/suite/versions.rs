//! Versions: never twice, never back, never behind the clock.

use super::*;
use crate::Clock;
use partita_model::Ticks;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

/// A clock that shows what it was set to.
#[derive(Clone, Debug, Default)]
pub struct ClockHand(Arc<AtomicU64>);

impl ClockHand {
    /// Sets the clock.
    pub fn set(&self, now: Ticks) {
        self.0.store(now.0, Ordering::SeqCst);
    }

    /// The clock, for a store to be made with.
    pub fn clock(&self) -> Clock {
        let hand = self.clone();
        Clock::new(move || Ticks(hand.0.load(Ordering::SeqCst)))
    }
}

/// Each commit has a greater version than the one before, whatever rows they write.
pub async fn versions_grow_with_each_commit(store: &dyn Store) {
    let mut last = 0;
    for round in 0..50_u8 {
        let version = write(store, &[round % 3], vec![put(&[round % 7], b"value"), put(b"other", b"")]).await;
        assert!(version > last, "{version} follows {last}");
        assert_eq!(read(store, &[round % 3], &[round % 7]).await.expect("the row was written").version, version);
        last = version;
    }
}

/// A version is a time as well: not earlier than the commit began.
pub async fn versions_are_not_less_than_the_clock(store: &dyn Store) {
    for _ in 0..5 {
        let before = Ticks::from_system_time(SystemTime::now());
        let version = write(store, b"p", vec![put(b"r", b"value")]).await;
        assert!(version >= before.0);
    }
}

/// Deleting a row does not let its versions begin anew.
pub async fn a_row_created_again_is_newer(store: &dyn Store) {
    let mut last = 0;
    for _ in 0..10 {
        let created = item(b"r", Expect::Absent, Action::Put(Bytes::from_static(b"value")));
        let version = write(store, b"p", vec![created]).await;
        assert!(version > last, "{version} follows {last}");
        let deleted = write(store, b"p", vec![item(b"r", Expect::Version(version), Action::Delete)]).await;
        assert!(deleted > version);
        last = deleted;
    }
}

/// A clock that stands still, jumps back or jumps ahead moves no version back.
pub async fn versions_grow_whatever_the_clock_says(store: &dyn Store, hand: &ClockHand) {
    const HOUR: u64 = 36_000_000_000;
    let noon = Ticks::from_system_time(SystemTime::now()).0;
    let mut last = 0;
    for now in [noon, noon, noon - HOUR, noon + 1, 0, noon + HOUR, noon, noon + HOUR, noon + 2 * HOUR] {
        hand.set(Ticks(now));
        for _ in 0..3 {
            let version = write(store, b"p", vec![put(b"r", b"value")]).await;
            assert!(version > last && version >= now, "{version} at {now} follows {last}");
            last = version;
        }
        let deleted = write(store, b"p", vec![delete(b"r")]).await;
        assert!(deleted > last);
        last = deleted;
    }
}
