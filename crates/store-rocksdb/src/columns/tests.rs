//! Scans and writes in orders that threads would seldom meet in.

use super::*;
use partita_store::{decode_key, encode_key};

const SPACE: Space = Space(7);
const ROOM: usize = 1 << 20;

/// Wants the number 1 in any of some columns. The number of a row is 1 where its value is the name of the column.
#[derive(Debug)]
struct Named(Vec<Column>);

impl Named {
    fn new(columns: &[&str]) -> Named {
        Named(columns.iter().map(|column| Column::from(*column)).collect())
    }
}

impl Sieve for Named {
    fn keeps(&self, row: RowRef<'_>) -> bool {
        self.0.iter().any(|column| column.as_bytes() == row.value)
    }

    fn passed_over(&self, _: u64) {}

    fn columns(&self) -> &[Column] {
        &self.0
    }

    fn number(&self, column: &Column, row: RowRef<'_>) -> Option<u64> {
        (row.value != b"?").then(|| u64::from(column.as_bytes() == row.value))
    }

    fn may_keep(&self, numbers: &[&[u64]]) -> bool {
        numbers.iter().any(|numbers| numbers.contains(&1))
    }
}

fn key_in(space: Space, row: u32) -> Vec<u8> {
    encode_key(space, b"p", &row.to_be_bytes())
}

fn key(row: u32) -> Vec<u8> {
    key_in(SPACE, row)
}

fn keys(rows: &[u32]) -> Keys {
    let mut keys = Keys::default();
    rows.iter().for_each(|row| keys.push(&key(*row)));
    keys
}

fn begin<'a>(columns: &'a Columns, sieve: &Named) -> Reading<'a> {
    columns.begin(SPACE, &sieve.0, || ()).0
}

/// Notes even rows from one number up to another; `value` tells their values.
fn note(reading: &Reading<'_>, sieve: &Named, from: u32, to: u32, value: impl Fn(u32) -> &'static str) {
    let mut maker = reading.maker(sieve);
    for row in (from..to).filter(|row| row.is_multiple_of(2)) {
        let found = RowRef { partition: b"p", row: &row.to_be_bytes(), version: 1, value: value(row).as_bytes() };
        maker.add(&key_in(reading.space, row), found);
    }
    maker.finish(&key_in(reading.space, to));
}

/// The lines that a scan has to read, by the number of the first row in each, and where the sheets begin.
fn to_read(reading: &Reading<'_>, sieve: &Named) -> (Vec<u32>, Vec<u32>) {
    let number = |key: &[u8]| {
        let (_, _, row) = decode_key(key).expect("the key of a row");
        u32::from_be_bytes(*row.first_chunk().expect("a number"))
    };
    let sheets = reading.sheets(&sieve.0, &space_prefix(SPACE), &space_end(SPACE));
    let lines = sheets.iter().flat_map(|sheet| {
        let lines = sheet.lines_to_read(sieve);
        (0..sheet.lines()).filter(move |line| lines >> line & 1 == 1).map(|line| number(sheet.line_start(line)))
    });
    (lines.collect(), sheets.iter().map(|sheet| number(sheet.start())).collect())
}

#[test]
fn lines_of_which_nothing_is_wanted_are_told() {
    let (columns, sieve) = (Columns::new(ROOM), Named::new(&["a"]));
    let first = begin(&columns, &sieve);
    note(&first, &sieve, 0, 5000, |row| if row == 2222 { "a" } else { "b" });
    assert_eq!(to_read(&first, &sieve), (vec![2176], vec![0, 2048, 4096]));
    assert_eq!(columns.figures().rows, 2500);
    let inside = first.sheets(&sieve.0, &key(2049), &key(4096));
    assert_eq!(inside.len(), 1, "one that begins before, and not the one that begins at the end");
}

#[test]
fn rows_that_are_written_mark_their_line() {
    let (columns, sieve) = (Columns::new(ROOM), Named::new(&["a"]));
    note(&begin(&columns, &sieve), &sieve, 0, 2048, |_| "b");
    // In the first line and the last one, between two rows, and where there is no sheet.
    drop(columns.writing(keys(&[0, 777, 2047, 2048, 9000]), &[]));
    assert_eq!(to_read(&begin(&columns, &sieve), &sieve), (vec![0, 768, 1984], vec![0]));
}

#[test]
fn rows_that_are_written_during_a_scan_mark_its_sheets() {
    let (columns, sieve) = (Columns::new(ROOM), Named::new(&["a"]));
    drop(columns.writing(keys(&[100]), &[]));
    let scan = begin(&columns, &sieve);
    drop(columns.writing(keys(&[200]), &[]));
    let later = begin(&columns, &sieve);
    drop(columns.writing(keys(&[300]), &[]));
    note(&scan, &sieve, 0, 2048, |_| "b");
    assert_eq!(to_read(&later, &sieve), (vec![192, 256], vec![0]));
    note(&later, &sieve, 2048, 4096, |_| "b");
    assert_eq!(to_read(&later, &sieve), (vec![192, 256], vec![0, 2048]));
    // Those of the second scan tell of what was written since the second.
    note(&later, &sieve, 0, 2048, |_| "b");
    assert_eq!(to_read(&later, &sieve), (vec![256], vec![0, 2048]));
}

#[test]
fn rows_that_are_being_written_when_a_scan_begins_mark_its_sheets() {
    let (columns, sieve) = (Columns::new(ROOM), Named::new(&["a"]));
    let writing = columns.writing(keys(&[100]), &[]);
    let scan = begin(&columns, &sieve);
    drop(writing);
    note(&scan, &sieve, 0, 2048, |_| "b");
    assert_eq!(to_read(&scan, &sieve), (vec![64], vec![0]));
    // Afterwards they are rows like others.
    let later = begin(&columns, &sieve);
    note(&later, &sieve, 0, 2048, |_| "b");
    assert_eq!(to_read(&later, &sieve), (vec![], vec![0]));
}

#[test]
fn a_scan_does_not_rely_on_one_that_began_later() {
    let (columns, sieve) = (Columns::new(ROOM), Named::new(&["a"]));
    let early = begin(&columns, &sieve);
    drop(columns.writing(keys(&[100]), &[]));
    let late = begin(&columns, &sieve);
    note(&late, &sieve, 0, 2048, |_| "b");
    assert_eq!(to_read(&early, &sieve).1, []);
    assert_eq!(to_read(&late, &sieve).1, [0]);
}

#[test]
fn a_sheet_full_of_marks_is_made_anew() {
    let (columns, sieve) = (Columns::new(ROOM), Named::new(&["a"]));
    note(&begin(&columns, &sieve), &sieve, 0, 2048, |_| "b");
    for row in (0..9 * 64).step_by(64) {
        assert_eq!(to_read(&begin(&columns, &sieve), &sieve).1, [0]);
        drop(columns.writing(keys(&[row]), &[]));
    }
    let scan = begin(&columns, &sieve);
    assert_eq!(to_read(&scan, &sieve).1, []);
    note(&scan, &sieve, 0, 2048, |_| "b");
    assert_eq!(to_read(&scan, &sieve), (vec![], vec![0]));
}

#[test]
fn where_too_much_is_written_nothing_is_handed_in() {
    let (columns, sieve) = (Columns::new(ROOM), Named::new(&["a"]));
    let scan = begin(&columns, &sieve);
    let many: Vec<u32> = (10_000..).take(NOTED_MAX + 1).collect();
    drop(columns.writing(keys(&many), &[]));
    note(&scan, &sieve, 0, 2048, |_| "b");
    let later = begin(&columns, &sieve);
    assert_eq!(to_read(&later, &sieve).1, []);
    note(&later, &sieve, 0, 2048, |_| "b");
    assert_eq!(to_read(&later, &sieve).1, [0]);
    drop((scan, later));
    assert!(columns.lock().noted.is_empty(), "nothing is noted for nobody");
}

#[test]
fn a_dropped_space_is_forgotten() {
    let (columns, sieve) = (Columns::new(ROOM), Named::new(&["a"]));
    let scan = begin(&columns, &sieve);
    note(&scan, &sieve, 0, 2048, |_| "b");
    drop(columns.writing(Keys::default(), &[SPACE]));
    note(&scan, &sieve, 2048, 4096, |_| "b");
    drop(scan);
    assert_eq!(columns.figures(), ColumnFigures::default());
    assert!(columns.lock().spaces.is_empty());
}

#[test]
fn other_spaces_make_room_and_the_same_does_not() {
    let (columns, sieve) = (Columns::new(40_000), Named::new(&["a"]));
    let sheets_of = |space: Space| {
        let reading = columns.begin(space, &sieve.0, || ()).0;
        reading.sheets(&sieve.0, &space_prefix(space), &space_end(space)).len()
    };
    let fill = |space: Space| {
        let reading = columns.begin(space, &sieve.0, || ()).0;
        note(&reading, &sieve, 0, 20_000, |_| "b");
    };
    fill(Space(1));
    let room = sheets_of(Space(1));
    assert!((2..9).contains(&room), "{room} sheets");
    fill(Space(1));
    assert_eq!(sheets_of(Space(1)), room);
    fill(Space(2));
    assert_eq!((sheets_of(Space(1)), sheets_of(Space(2))), (0, room));
    assert!(columns.figures().bytes <= 40_000);
}

#[test]
fn columns_are_added_and_the_oldest_go() {
    let columns = Columns::new(ROOM);
    let a = Named::new(&["a"]);
    note(&begin(&columns, &a), &a, 0, 2048, |row| if row < 64 { "b" } else { "a" });
    let b = Named::new(&["b"]);
    let scan = begin(&columns, &b);
    assert_eq!(to_read(&scan, &b).1, [], "nobody has asked for it");
    note(&scan, &b, 0, 2048, |row| if row < 64 { "b" } else { "a" });
    assert_eq!(to_read(&scan, &b), (vec![0], vec![0]));
    assert_eq!(to_read(&scan, &a).0.len(), 31, "the other is still there");
    let both = Named::new(&["b", "a"]);
    assert_eq!(to_read(&begin(&columns, &both), &both).0.len(), 32);

    for other in ["c", "d", "e", "f", "g", "h", "i"] {
        begin(&columns, &Named::new(&[other]));
    }
    let scan = begin(&columns, &b);
    note(&scan, &b, 0, 2048, |_| "a");
    assert_eq!(to_read(&scan, &b).1, [0]);
    assert_eq!(to_read(&scan, &a).1, [], "the one that was not asked for longest");
}

#[test]
fn rows_that_cannot_be_read_are_left_to_scans() {
    let (columns, sieve) = (Columns::new(ROOM), Named::new(&["a"]));
    let scan = begin(&columns, &sieve);
    note(&scan, &sieve, 0, 6000, |row| if row == 3000 { "?" } else { "b" });
    assert_eq!(to_read(&scan, &sieve), (vec![], vec![0, 4096]));
}

#[test]
fn a_sheet_takes_the_place_of_those_it_overlaps() {
    let (columns, sieve) = (Columns::new(ROOM), Named::new(&["a"]));
    let scan = begin(&columns, &sieve);
    note(&scan, &sieve, 0, 6144, |_| "b");
    assert_eq!(to_read(&scan, &sieve).1, [0, 2048, 4096]);
    note(&scan, &sieve, 1000, 2100, |_| "b");
    assert_eq!(to_read(&scan, &sieve).1, [1000, 4096]);
    drop(columns.writing(Keys::default(), &[SPACE]));
    assert_eq!(columns.figures().bytes, 0, "every byte was counted off");
}
