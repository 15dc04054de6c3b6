//! Scans with a sieve: engines may hide what it lets pass, and nothing else. The rows are so many that an engine that
//! reads wide scans on several threads does.

use super::*;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const PARTITIONS: u32 = 7;
const ROWS: u32 = 3000;

/// Keeps rows whose number is a multiple of another.
#[derive(Debug)]
struct Multiples {
    of: u32,
    passed_over: AtomicU64,
}

impl Multiples {
    fn of(of: u32) -> Multiples {
        Multiples { of, passed_over: AtomicU64::new(0) }
    }

    fn wants(&self, row: &[u8]) -> bool {
        number(row).is_multiple_of(self.of)
    }

    fn passed_over(&self) -> u64 {
        self.passed_over.load(Ordering::SeqCst)
    }
}

impl Sieve for Multiples {
    fn keeps(&self, row: RowRef<'_>) -> bool {
        self.wants(row.row)
    }

    fn passed_over(&self, rows: u64) {
        self.passed_over.fetch_add(rows, Ordering::SeqCst);
    }
}

fn number(bytes: &[u8]) -> u32 {
    u32::from_be_bytes(bytes.try_into().expect("four bytes"))
}

fn key(seen: &Seen) -> (u32, u32) {
    (number(&seen.partition), number(&seen.row))
}

fn sieved(sieve: &dyn Sieve) -> Scan<'_> {
    Scan { sieve: Some(sieve), ..scan_all(SPACE) }
}

/// The keys that `sieve` keeps, in order, from a place on.
fn kept(sieve: &Multiples, from: (u32, u32)) -> Vec<(u32, u32)> {
    let all = (0..PARTITIONS).flat_map(|partition| (0..ROWS).map(move |row| (partition, row)));
    all.filter(|key| *key >= from && key.1.is_multiple_of(sieve.of)).collect()
}

/// Of the rows shown, those that the sieve keeps.
fn wanted(sieve: &Multiples, rows: &[Seen]) -> Vec<(u32, u32)> {
    rows.iter().filter(|seen| sieve.wants(&seen.row)).map(key).collect()
}

/// However few or many rows it keeps, and wherever the scan begins and ends, all of them are shown, in order.
pub async fn a_sieve_hides_no_row_that_it_keeps(store: &dyn Store) {
    fill(store, SPACE, PARTITIONS, ROWS).await;
    let all = u64::from(PARTITIONS * ROWS);
    for of in [1, 2, 700, ROWS, ROWS + 1] {
        let sieve = Multiples::of(of);
        let rows = scanned(store, sieved(&sieve)).await;
        assert_eq!(wanted(&sieve, &rows), kept(&sieve, (0, 0)), "multiples of {of}");
        assert_eq!(sieve.passed_over() + rows.len() as u64, all);
    }
    let sieve = Multiples::of(10);
    let start = Position::new(1_u32.to_be_bytes(), 5_u32.to_be_bytes());
    let end = Position::new(5_u32.to_be_bytes(), 2990_u32.to_be_bytes());
    let scan = Scan { sieve: Some(&sieve), ..scan_of(SPACE, start, Some(end)) };
    let rows = scanned(store, scan).await;
    let expected: Vec<_> = kept(&sieve, (1, 5)).into_iter().filter(|key| *key < (5, 2990)).collect();
    assert_eq!(wanted(&sieve, &rows), expected);
}

/// When a row is shown, all before it were shown or told of.
pub async fn a_sieve_is_told_of_every_row_not_shown(store: &dyn Store) {
    fill(store, SPACE, PARTITIONS, ROWS).await;
    let sieve = Multiples::of(100);
    let mut shown = 0;
    visit(store, sieved(&sieve), |seen| {
        let (partition, row) = key(seen);
        assert_eq!(sieve.passed_over() + shown, u64::from(partition * ROWS + row));
        shown += 1;
        if partition == PARTITIONS - 1 && row == 1000 { Step::Stop } else { Step::Next }
    })
    .await
    .expect("rows are read");
    let read = u64::from((PARTITIONS - 1) * ROWS + 1000) + 1;
    assert_eq!(sieve.passed_over() + shown, read, "nothing behind the last row is counted");
}

/// With it the scan is the same as without.
pub async fn a_sieve_that_keeps_everything_changes_nothing(store: &dyn Store) {
    fill(store, SPACE, PARTITIONS, ROWS).await;
    let sieve = Multiples::of(1);
    assert_eq!(scanned(store, sieved(&sieve)).await, scanned(store, scan_all(SPACE)).await);
    assert_eq!(sieve.passed_over(), 0);
}

/// A visitor that has enough asks for the row at which the rest begins, wanted or not.
pub async fn any_next_row_is_shown_in_spite_of_a_sieve(store: &dyn Store) {
    fill(store, SPACE, PARTITIONS, ROWS).await;
    let sieve = Multiples::of(300);
    let mut last_wanted = None;
    let (rows, end) = visit(store, sieved(&sieve), |seen| match last_wanted {
        Some(_) => Step::Stop,
        None if key(seen) == (4, 600) => {
            last_wanted = Some(key(seen));
            Step::NextAny
        }
        None => Step::Next,
    })
    .await
    .expect("rows are read");
    assert_eq!(end, ScanEnd::Stopped);
    assert_eq!(rows.last().map(key), Some((4, 601)));

    // It is for the next row only.
    let mut any = 0;
    let (rows, end) = visit(store, sieved(&sieve), |_| {
        any += 1;
        if any == 50 { Step::NextAny } else { Step::Next }
    })
    .await
    .expect("rows are read");
    assert_eq!(end, ScanEnd::Exhausted);
    assert_eq!(wanted(&sieve, &rows), kept(&sieve, (0, 0)));

    let (rows, end) = visit(store, sieved(&Multiples::of(2999)), |_| Step::NextAny).await.expect("rows are read");
    assert_eq!(end, ScanEnd::Exhausted);
    assert_eq!(rows.last().map(key), Some((PARTITIONS - 1, ROWS - 1)));
}

/// The visitor may seek and stop as in any scan.
pub async fn a_scan_with_a_sieve_seeks_and_stops(store: &dyn Store) {
    fill(store, SPACE, PARTITIONS, ROWS).await;
    let sieve = Multiples::of(500);
    let (rows, end) = visit(store, sieved(&sieve), |seen| match key(seen) {
        (2, 1000) => Step::Seek(Position::new(5_u32.to_be_bytes(), 250_u32.to_be_bytes())),
        (6, 2000) => Step::Stop,
        _ => Step::Next,
    })
    .await
    .expect("rows are read");
    let expected =
        kept(&sieve, (0, 0)).into_iter().filter(|key| *key <= (2, 1000) || (*key > (5, 250) && *key <= (6, 2000)));
    assert_eq!(wanted(&sieve, &rows), expected.collect::<Vec<_>>());
    assert_eq!(end, ScanEnd::Stopped);
}

/// Time that runs out anywhere loses no row and repeats none, whether rows are shown or not.
pub async fn a_late_scan_with_a_sieve_resumes(store: &dyn Store) {
    fill(store, SPACE, PARTITIONS, ROWS).await;
    for of in [3, 1000, ROWS + 1] {
        let sieve = Multiples::of(of);
        let mut found = Vec::new();
        let mut start = Position::default();
        let mut shown = 0;
        for round in 0.. {
            // From no time at all to enough for everything.
            let deadline = Instant::now() + Duration::from_micros(round % 30 * 100);
            let scan = Scan { deadline, sieve: Some(&sieve), ..scan_of(SPACE, start.clone(), None) };
            let (rows, end) = visit(store, scan, |_| Step::Next).await.expect("rows are read");
            found.extend(wanted(&sieve, &rows));
            shown += rows.len() as u64;
            match end {
                ScanEnd::Exhausted => break,
                ScanEnd::Deadline(position) => {
                    assert!(position > start, "a late scan makes progress");
                    let read = number(&position.partition) * ROWS + number(&position.row);
                    assert_eq!(sieve.passed_over() + shown, u64::from(read), "up to {position:?}");
                    start = position;
                }
                ScanEnd::Stopped => panic!("nobody said stop"),
            }
        }
        assert_eq!(found, kept(&sieve, (0, 0)));
    }
}

/// While batches rewrite rows that lie far apart, every scan finds them all of one batch.
pub async fn a_scan_with_a_sieve_sees_one_moment(store: &dyn Store) {
    const BATCHES: u32 = 30;
    let batch_of = |round: u32| -> Vec<Item> {
        (0..PARTITIONS * ROWS).step_by(1000).map(|row| put(&row.to_be_bytes(), &round.to_be_bytes())).collect()
    };
    let partition = 0_u32.to_be_bytes();
    let items: Vec<Item> = (0..PARTITIONS * ROWS).map(|row| put(&row.to_be_bytes(), b"a value")).collect();
    for part in items.chunks(1000) {
        write(store, &partition, part.to_vec()).await;
    }
    write(store, &partition, batch_of(0)).await;
    let done = AtomicBool::new(false);
    on_threads(3, async |thread| {
        if thread == 0 {
            for round in 1..=BATCHES {
                write(store, &partition, batch_of(round)).await;
            }
            done.store(true, Ordering::SeqCst);
            return;
        }
        while !done.load(Ordering::SeqCst) {
            let sieve = Multiples::of(1000);
            let rows = scanned(store, sieved(&sieve)).await;
            let rows: Vec<&Seen> = rows.iter().filter(|seen| sieve.wants(&seen.row)).collect();
            assert_eq!(rows.len() as u32, PARTITIONS * ROWS / 1000);
            assert!(rows.iter().all(|row| row.version == rows[0].version), "half of a batch: {rows:?}");
        }
    });
}
