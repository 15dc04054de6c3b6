//! What every engine must do, as tests.
//!
//! Each case is a function of a store without rows. An engine's test file is one line, [`store_suite!`](crate::store_suite), which makes a
//! test of each case; no case is copied into an engine crate. Cases assert what the contract in [`Store`] says and no
//! more, and none of them sleeps. What needs the engine to be closed, killed or opened again is tested beside the engine.

mod batches;
mod concurrency;
mod rows;
mod scans;
mod sieves;
mod spaces;
mod versions;

pub use batches::*;
pub use concurrency::*;
pub use rows::*;
pub use scans::*;
pub use sieves::*;
pub use spaces::*;
pub use versions::*;

use crate::{
    Action, Batch, Column, Error, Expect, Item, Position, Result, Row, RowRef, Scan, ScanEnd, Sieve, Space, Step,
    Store, Version,
};
use bytes::Bytes;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Makes a test of each case of the [suite](crate::suite), each on a store of its own.
///
/// The expression makes a store, or a pair of a store and whatever must live as long as it. The form with `clock` also
/// runs the cases that set the clock; its closure makes a store from a [`Clock`](crate::Clock). The crate needs `tokio`
/// with its macros.
///
/// ```no_run
/// use partita_store::{Memory, store_suite};
///
/// store_suite!(Memory::new(), clock: Memory::with_clock);
/// ```
#[macro_export]
macro_rules! store_suite {
    ($store:expr, clock: $with_clock:expr $(,)?) => {
        $crate::store_suite!($store);

        #[tokio::test(flavor = "multi_thread")]
        async fn versions_grow_whatever_the_clock_says() {
            let hand = $crate::suite::ClockHand::default();
            let fixture = ($with_clock)(hand.clock());
            $crate::suite::versions_grow_whatever_the_clock_says($crate::suite::Fixture::store(&fixture), &hand).await;
        }
    };
    ($store:expr $(,)?) => {
        $crate::store_suite! { @each $store;
            a_row_is_read_as_it_was_written
            a_row_is_replaced_and_deleted
            absent_rows_are_none
            keys_may_be_any_bytes
            large_values_are_kept

            expectations_hold_or_conflict
            the_first_item_that_fails_is_named
            one_of_many_rows_is_not_new
            a_batch_applies_as_a_whole_or_not_at_all
            a_batch_may_only_check
            a_batch_sees_rows_as_before_it
            an_empty_batch_changes_nothing

            rows_come_in_order_of_bytes
            a_scan_reads_from_start_to_end
            a_scan_of_nothing_is_exhausted
            a_scan_stops_when_told
            a_scan_seeks_ahead
            a_scan_seeks_behind_its_end
            a_late_scan_makes_progress_and_resumes
            a_scan_shows_what_was_committed

            a_sieve_hides_no_row_that_it_keeps
            a_sieve_is_told_of_every_row_not_shown
            a_sieve_that_keeps_everything_changes_nothing
            any_next_row_is_shown_in_spite_of_a_sieve
            a_scan_with_a_sieve_seeks_and_stops
            a_late_scan_with_a_sieve_resumes
            a_scan_with_a_sieve_sees_one_moment
            numbers_of_rows_follow_the_rows
            a_row_that_moves_is_found_once
            sieves_do_not_disturb_one_another

            a_dropped_space_is_gone_at_once
            a_large_space_is_dropped_at_once
            a_conflict_drops_nothing
            a_batch_may_drop_its_own_space
            dropping_twice_is_harmless
            spaces_are_apart
            the_last_space_can_be_dropped

            versions_grow_with_each_commit
            versions_are_not_less_than_the_clock
            a_row_created_again_is_newer

            increments_are_not_lost
            a_scan_never_sees_half_a_batch
            a_drop_is_seen_as_a_whole
            nobody_reads_a_row_older_than_one_seen
            many_writers_on_one_partition
            many_writers_on_many_partitions
            one_of_many_creators_wins
        }
    };
    (@each $store:expr; $($case:ident)*) => {
        $(
            #[tokio::test(flavor = "multi_thread")]
            async fn $case() {
                let fixture = $store;
                $crate::suite::$case($crate::suite::Fixture::store(&fixture)).await;
            }
        )*
    };
}

/// Something with a store in it: a store, or a pair of a store and what must live as long as it, such as its folder.
pub trait Fixture {
    /// The store.
    fn store(&self) -> &dyn Store;
}

impl<S: Store> Fixture for S {
    fn store(&self) -> &dyn Store {
        self
    }
}

impl<S: Store, T> Fixture for (S, T) {
    fn store(&self) -> &dyn Store {
        &self.0
    }
}

const SPACE: Space = Space(7);
const OTHER_SPACE: Space = Space(8);

/// A row as the cases compare it.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    partition: Vec<u8>,
    row: Vec<u8>,
    version: Version,
    value: Vec<u8>,
}

fn item(row: &[u8], expect: Expect, action: Action) -> Item {
    Item { row: row.to_vec(), expect, action }
}

fn put(row: &[u8], value: &[u8]) -> Item {
    item(row, Expect::Any, Action::Put(Bytes::copy_from_slice(value)))
}

fn delete(row: &[u8]) -> Item {
    item(row, Expect::Any, Action::Delete)
}

fn batch(space: Space, partition: &[u8], items: Vec<Item>) -> Batch {
    Batch { space, partition: partition.to_vec(), items, drop_space: None }
}

async fn write(store: &dyn Store, partition: &[u8], items: Vec<Item>) -> Version {
    store.commit(batch(SPACE, partition, items)).await.expect("a commit without expectations succeeds")
}

/// Reads a row, in both ways there are by turns.
async fn read(store: &dyn Store, partition: &[u8], row: &[u8]) -> Option<Row> {
    static TURN: AtomicBool = AtomicBool::new(false);
    let found = match TURN.fetch_xor(true, Ordering::Relaxed) {
        true => store.get(SPACE, partition, row).await,
        false => store.read(SPACE, partition, row).await,
    };
    found.expect("a row is read")
}

/// Writes rows in batches of the size the service uses at most, `rows` to each of `partitions`.
async fn fill(store: &dyn Store, space: Space, partitions: u32, rows: u32) {
    for partition in 0..partitions {
        let items: Vec<Item> = (0..rows).map(|row| put(&row.to_be_bytes(), b"a value")).collect();
        for part in items.chunks(1000) {
            store.commit(batch(space, &partition.to_be_bytes(), part.to_vec())).await.expect("rows are written");
        }
    }
}

/// Longer than any case takes.
fn far() -> Instant {
    Instant::now() + Duration::from_secs(3600)
}

fn scan_of(space: Space, start: Position, end: Option<Position>) -> Scan<'static> {
    Scan { space, start, end, deadline: far(), rows_hint: 1000, sieve: None }
}

fn scan_all(space: Space) -> Scan<'static> {
    scan_of(space, Position::default(), None)
}

/// Runs a scan with a visitor that says what comes behind each row, and returns the rows it was given.
async fn visit(
    store: &dyn Store,
    scan: Scan<'_>,
    mut next: impl FnMut(&Seen) -> Step + Send,
) -> Result<(Vec<Seen>, ScanEnd)> {
    let mut rows = Vec::new();
    let end = store
        .scan(scan, &mut |row| {
            let seen = Seen {
                partition: row.partition.to_vec(),
                row: row.row.to_vec(),
                version: row.version,
                value: row.value.to_vec(),
            };
            let step = next(&seen);
            rows.push(seen);
            step
        })
        .await?;
    Ok((rows, end))
}

/// The rows of a scan that must run to its end.
async fn scanned(store: &dyn Store, scan: Scan<'_>) -> Vec<Seen> {
    let (rows, end) = visit(store, scan, |_| Step::Next).await.expect("rows are read");
    assert_eq!(end, ScanEnd::Exhausted);
    rows
}

async fn scanned_keys(store: &dyn Store, scan: Scan<'_>) -> Vec<(Vec<u8>, Vec<u8>)> {
    scanned(store, scan).await.into_iter().map(|seen| (seen.partition, seen.row)).collect()
}

#[track_caller]
fn assert_dropped<T: std::fmt::Debug>(result: Result<T>) {
    assert!(matches!(result, Err(Error::SpaceDropped)), "expected a dropped space, found {result:?}");
}

#[track_caller]
fn assert_conflict(result: Result<Version>, index: usize, found: Option<Version>) {
    match result {
        Err(Error::Conflict { index: at, found: version }) => assert_eq!((at, version), (index, found)),
        other => panic!("expected a conflict at item {index}, found {other:?}"),
    }
}

/// Runs a function on several threads at once, each with its number, and waits for all of them.
fn on_threads(threads: usize, run: impl AsyncFn(usize) + Sync) {
    let runtime = tokio::runtime::Handle::current();
    tokio::task::block_in_place(|| {
        std::thread::scope(|scope| {
            for thread in 0..threads {
                let (runtime, run) = (&runtime, &run);
                scope.spawn(move || runtime.block_on(run(thread)));
            }
        });
    });
}
