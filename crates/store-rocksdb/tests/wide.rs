//! Wide scans, which run on several threads, against the same scans row by row: over keys of all shapes, in files, in
//! memory and in both, from anywhere to anywhere, stopped and late at any place, with and without numbers of rows that earlier
//! scans have noted, and with rows that changed since.

mod support;

use partita_store::{Column, Position, RowRef, Scan, ScanEnd, Sieve, Step, Store};
use partita_store_rocksdb::{Durability, RocksStore};
use proptest::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use support::*;

/// How keys are made from numbers, so that cutting stretches of them is easy or hard.
#[derive(Clone, Copy, Debug)]
enum Shape {
    /// Few partitions, rows spread evenly.
    Even,
    /// One partition, rows one after the other.
    Counted,
    /// Each row in a partition of its own.
    Apart,
    /// A long common beginning, zeros and the highest bytes.
    Binary,
    /// Half of the rows between any two places lie at the end.
    Skewed,
}

fn key(shape: Shape, number: u32) -> Position {
    let mixed = number.wrapping_mul(2_654_435_761);
    match shape {
        Shape::Even => Position::new(format!("p{}", number % 7), format!("{mixed:08x}")),
        Shape::Counted => Position::new("p", format!("{number:010}")),
        Shape::Apart => Position::new(format!("{mixed:08x}"), ""),
        Shape::Binary => {
            let bytes: Vec<u8> =
                mixed.to_be_bytes().iter().map(|byte| [0, 1, 0xFE, 0xFF][usize::from(byte % 4)]).collect();
            Position::new([b"x".repeat(40), bytes].concat(), number.to_be_bytes())
        }
        Shape::Skewed => Position::new("a".repeat((mixed.leading_zeros() * 2) as usize), number.to_be_bytes()),
    }
}

/// Keeps a row if a byte of its value is a multiple of a number.
#[derive(Debug)]
struct EveryNth {
    nth: u64,
    /// Empty, or the one column there is.
    columns: Vec<Column>,
    passed_over: AtomicU64,
}

impl Sieve for EveryNth {
    fn keeps(&self, row: RowRef<'_>) -> bool {
        u64::from(row.value[0]).is_multiple_of(self.nth)
    }

    fn passed_over(&self, rows: u64) {
        self.passed_over.fetch_add(rows, Ordering::Relaxed);
    }

    fn columns(&self) -> &[Column] {
        &self.columns
    }

    fn number(&self, _: &Column, row: RowRef<'_>) -> Option<u64> {
        Some(row.value[0].into())
    }

    fn may_keep(&self, numbers: &[&[u64]]) -> bool {
        numbers[0].iter().any(|number| number.is_multiple_of(self.nth))
    }
}

#[derive(Clone, Debug)]
struct Plan {
    shape: Shape,
    rows: u32,
    /// Whether the first rows are in files.
    reopened: bool,
    scans: Vec<ScanPlan>,
}

#[derive(Clone, Debug)]
struct ScanPlan {
    start: Option<u32>,
    end: Option<u32>,
    nth: u64,
    has_column: bool,
    /// Of which rows every so many are written anew before.
    written: Option<u32>,
    /// Stop behind so many rows that are wanted, and go on from there as a query does.
    page: usize,
    microseconds: u64,
}

fn plan() -> impl Strategy<Value = Plan> {
    let shape = prop::sample::select(vec![Shape::Even, Shape::Counted, Shape::Apart, Shape::Binary, Shape::Skewed]);
    let place = || prop::option::weighted(0.4, 0..20_000_u32);
    let nth = prop::sample::select(vec![1_u64, 3, 40, 149, 251, 255]);
    let written = prop::option::of(prop::sample::select(vec![9, 100, 1000, 5000]));
    let scan = (place(), place(), nth, prop::bool::weighted(0.8), written, 1..4000_usize, 0..20_000_u64).prop_map(
        |(start, end, nth, has_column, written, page, microseconds)| ScanPlan {
            start,
            end,
            nth,
            has_column,
            written,
            page,
            microseconds,
        },
    );
    (shape, 3000..20_000_u32, any::<bool>(), prop::collection::vec(scan, 1..8))
        .prop_map(|(shape, rows, reopened, scans)| Plan { shape, rows, reopened, scans })
}

async fn write(store: &RocksStore, shape: Shape, numbers: impl Iterator<Item = u32>, round: u32) {
    let mut keys: Vec<(Position, u32)> = numbers.map(|number| (key(shape, number), number)).collect();
    keys.sort();
    for partition in keys.chunk_by(|(left, _), (right, _)| left.partition == right.partition) {
        for part in partition.chunks(1000) {
            let items = part.iter().map(|(position, number)| {
                if round > 0 && number % 3 == 0 {
                    return delete(&position.row);
                }
                let mut value = vec![(number.wrapping_add(round).wrapping_mul(40_503) >> 7) as u8; 300];
                value[1] = round as u8;
                put(&position.row, value)
            });
            let partition = &part[0].0.partition;
            store.commit(batch(SPACE, partition, items.collect())).await.expect("rows are written");
        }
    }
}

type Row = (Position, u64, Vec<u8>);

fn owned(row: RowRef<'_>) -> Row {
    (Position::new(row.partition, row.row), row.version, row.value.to_vec())
}

/// All rows, as a scan without a sieve shows them.
async fn all_rows(store: &RocksStore) -> Vec<Row> {
    let mut rows = Vec::new();
    each_row(store, SPACE, |row| rows.push(owned(row))).await;
    rows
}

async fn check(store: &RocksStore, all: &[Row], plan: &ScanPlan, shape: Shape) {
    let start = plan.start.map_or(Position::default(), |number| key(shape, number));
    let end = plan.end.map(|number| key(shape, number));
    let inside: Vec<&Row> =
        all.iter().filter(|row| row.0 >= start && end.as_ref().is_none_or(|end| row.0 < *end)).collect();
    let columns = if plan.has_column { vec!["first byte".into()] } else { vec![] };
    let sieve = EveryNth { nth: plan.nth, columns, passed_over: AtomicU64::new(0) };
    let expected: Vec<&Row> =
        inside.iter().filter(|row| u64::from(row.2[0]).is_multiple_of(plan.nth)).copied().collect();

    let (mut found, mut shown, mut from) = (Vec::new(), 0, start);
    loop {
        let (mut in_page, mut next) = (0, None);
        let deadline = Instant::now() + Duration::from_micros(plan.microseconds);
        let scan = Scan {
            space: SPACE,
            start: from.clone(),
            end: end.clone(),
            deadline,
            rows_hint: plan.page,
            sieve: Some(&sieve),
        };
        let mut visitor = |row: RowRef<'_>| {
            if in_page == plan.page {
                next = Some(Position::new(row.partition, row.row));
                return Step::Stop;
            }
            shown += 1;
            if !sieve.keeps(row) {
                return Step::Next;
            }
            in_page += 1;
            found.push(owned(row));
            if in_page == plan.page { Step::NextAny } else { Step::Next }
        };
        let ended = store.scan(scan, &mut visitor).await.expect("rows are read");
        let place = match (ended, next) {
            (ScanEnd::Exhausted, _) => break,
            (ScanEnd::Stopped, next) => next.expect("only a full page stops"),
            (ScanEnd::Deadline(place), _) => place,
        };
        assert!(place > from, "no progress at {place:?}");
        let read = inside.partition_point(|row| row.0 < place) as u64;
        assert_eq!(shown + sieve.passed_over.load(Ordering::Relaxed), read, "rows counted up to {place:?}");
        from = place;
    }
    assert_eq!(shown + sieve.passed_over.load(Ordering::Relaxed), inside.len() as u64);
    assert_eq!(found.len(), expected.len());
    assert!(found.iter().eq(expected), "other rows than one by one");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, max_shrink_iters: 20, ..ProptestConfig::default() })]

    #[test]
    fn a_wide_scan_shows_what_one_by_one_shows(plan in plan()) {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("threads start");
        runtime.block_on(async {
            let folder = tempfile::tempdir().expect("a temporary folder");
            let mut store = open_with(folder.path(), Durability::None);
            write(&store, plan.shape, 0..plan.rows, 0).await;
            if plan.reopened {
                drop(store);
                store = open_with(folder.path(), Durability::None);
                // Some rows anew and some deleted, in memory, over those in files.
                write(&store, plan.shape, (0..plan.rows).step_by(5), 1).await;
            }
            let mut all = all_rows(&store).await;
            for (round, scan) in (2..).zip(&plan.scans) {
                if let Some(step) = scan.written {
                    // Some of them are behind all others.
                    write(&store, plan.shape, (round..plan.rows + 2000).step_by(step as usize), round).await;
                    all = all_rows(&store).await;
                }
                check(&store, &all, scan, plan.shape).await;
            }
        });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_read_once_is_passed_over() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = open_with(folder.path(), Durability::None);
    for part in (0..20_000_u32).collect::<Vec<_>>().chunks(1000) {
        let item = |number: &u32| put(&key(Shape::Counted, *number).row, vec![1 + u8::from(*number == 7777); 300]);
        store.commit(batch(SPACE, b"p", part.iter().map(item).collect())).await.expect("rows are written");
    }
    let all = all_rows(&store).await;
    let plan = ScanPlan {
        start: None,
        end: None,
        nth: 2,
        has_column: true,
        written: None,
        page: 4000,
        microseconds: 60_000_000,
    };
    for scan in 0..3 {
        let before = figure(&store, "column_rows_passed_over_total");
        check(&store, &all, &plan, Shape::Counted).await;
        let passed_over = figure(&store, "column_rows_passed_over_total") - before;
        assert_eq!(passed_over > 10_000, scan > 0, "{passed_over} rows in scan {scan}");
    }
    assert!(figure(&store, "column_rows") >= 19_000);
}
