//! Scans with a sieve: engines may hide what it lets pass, and nothing else. The rows are so many that an engine that
//! reads wide scans on several threads does.

use super::*;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const PARTITIONS: u32 = 7;
const ROWS: u32 = 3000;

/// Keeps rows whose number is a multiple of another. Engines may know that number of each row.
#[derive(Debug)]
struct Multiples {
    of: u32,
    columns: Vec<Column>,
    passed_over: AtomicU64,
}

impl Multiples {
    fn of(of: u32) -> Multiples {
        Multiples { of, columns: vec!["row".into()], passed_over: AtomicU64::new(0) }
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

    fn columns(&self) -> &[Column] {
        &self.columns
    }

    fn number(&self, column: &Column, row: RowRef<'_>) -> Option<u64> {
        match &**column {
            "row" => Some(number(row.row).into()),
            _ => row.value.first().map(|byte| u64::from(*byte)),
        }
    }

    fn may_keep(&self, numbers: &[&[u64]]) -> bool {
        numbers[0].iter().any(|number| number.is_multiple_of(self.of.into()))
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

/// Keeps rows whose value begins with a byte. Engines may know that byte of each row.
#[derive(Debug)]
struct Beginning {
    with: u8,
    columns: Vec<Column>,
    passed_over: AtomicU64,
}

impl Beginning {
    fn with(with: u8) -> Beginning {
        Beginning { with, columns: vec!["first byte".into()], passed_over: AtomicU64::new(0) }
    }
}

impl Sieve for Beginning {
    fn keeps(&self, row: RowRef<'_>) -> bool {
        row.value.first() == Some(&self.with)
    }

    fn passed_over(&self, rows: u64) {
        self.passed_over.fetch_add(rows, Ordering::SeqCst);
    }

    fn columns(&self) -> &[Column] {
        &self.columns
    }

    fn number(&self, column: &Column, row: RowRef<'_>) -> Option<u64> {
        Multiples::of(1).number(column, row)
    }

    fn may_keep(&self, numbers: &[&[u64]]) -> bool {
        assert_eq!(numbers.len(), 1);
        assert!((1..=64).contains(&numbers[0].len()));
        numbers[0].contains(&self.with.into())
    }
}

/// The rows whose value begins with a byte, and how many rows there are.
async fn beginning(store: &dyn Store, with: u8) -> (Vec<u32>, u64) {
    let sieve = Beginning::with(with);
    let rows = scanned(store, sieved(&sieve)).await;
    let wanted = rows.iter().filter(|seen| seen.value.first() == Some(&with));
    (wanted.map(|seen| number(&seen.row)).collect(), sieve.passed_over.load(Ordering::SeqCst) + rows.len() as u64)
}

/// Even numbers, so that there is room between.
async fn fill_even(store: &dyn Store) -> u64 {
    let items: Vec<Item> = (0..PARTITIONS * ROWS).map(|row| put(&(2 * row).to_be_bytes(), b"a value")).collect();
    for part in items.chunks(1000) {
        write(store, b"p", part.to_vec()).await;
    }
    items.len() as u64
}

/// Whatever an engine remembers of rows, a scan finds them as they are: changed, new between others, new behind all, deleted,
/// changed back.
pub async fn numbers_of_rows_follow_the_rows(store: &dyn Store) {
    let mut rows = fill_even(store).await;
    let end = 2 * PARTITIONS * ROWS;
    for round in 0..3 {
        assert_eq!(beginning(store, b'z').await, (vec![], rows), "round {round}");
        assert_eq!(beginning(store, b'z').await, (vec![], rows), "again");
    }
    for place in [1000, 1002, 20_000, 20_001, end - 1, end, end + 7, 3] {
        let is_new = place % 2 == 1 || place >= end;
        rows += u64::from(is_new);
        write(store, b"p", vec![put(&place.to_be_bytes(), b"z")]).await;
        assert_eq!(beginning(store, b'z').await, (vec![place], rows));
        assert_eq!(beginning(store, b'z').await, (vec![place], rows), "again");
        write(store, b"p", vec![put(&place.to_be_bytes(), b"y")]).await;
        assert_eq!(beginning(store, b'z').await, (vec![], rows));
        assert_eq!(beginning(store, b'y').await, (vec![place], rows));
        rows -= 1;
        write(store, b"p", vec![delete(&place.to_be_bytes())]).await;
        assert_eq!(beginning(store, b'y').await, (vec![], rows));
    }
    // So many that whatever was remembered is of little use.
    for round in *b"uvwx" {
        let some: Vec<u32> = (0..end).step_by(40 - usize::from(round - b'u')).collect();
        for part in some.chunks(1000) {
            write(store, b"p", part.iter().map(|row| put(&row.to_be_bytes(), &[round])).collect()).await;
        }
        assert_eq!(beginning(store, round).await.0, some);
        assert_eq!(beginning(store, round).await.0, some, "again");
    }
}

/// While batches move a mark from row to row, every scan finds it once.
pub async fn a_row_that_moves_is_found_once(store: &dyn Store) {
    const MOVES: u32 = 400;
    let all = fill_even(store).await;
    let place = |step: u32| (step * 7919 % (2 * PARTITIONS * ROWS)).to_be_bytes();
    write(store, b"p", vec![put(&place(0), b"z")]).await;
    let done = AtomicBool::new(false);
    on_threads(4, async |thread| {
        if thread == 0 {
            for step in 1..=MOVES {
                write(store, b"p", vec![put(&place(step - 1), b"a value"), put(&place(step), b"z")]).await;
            }
            done.store(true, Ordering::SeqCst);
            return;
        }
        while !done.load(Ordering::SeqCst) {
            let (found, rows) = beginning(store, b'z').await;
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(rows >= all, "{rows} rows of {all}");
        }
    });
    assert_eq!(beginning(store, b'z').await.0, [u32::from_be_bytes(place(MOVES))]);
}

/// Another sieve that asks for other columns, or for none, finds what it wants as well.
pub async fn sieves_do_not_disturb_one_another(store: &dyn Store) {
    fill(store, SPACE, PARTITIONS, ROWS).await;
    write(store, &3_u32.to_be_bytes(), vec![put(&2000_u32.to_be_bytes(), b"z")]).await;
    for _ in 0..3 {
        assert_eq!(beginning(store, b'z').await, (vec![2000], u64::from(PARTITIONS * ROWS)));
        let multiples = Multiples::of(700);
        let rows = scanned(store, sieved(&multiples)).await;
        assert_eq!(wanted(&multiples, &rows), kept(&multiples, (0, 0)));
    }
}
