//! Scans: one iterator, rows shown to the visitor where RocksDB holds them.
//!
//! An iterator sees the rows as of the moment it was made for as long as it lives, so a scan needs no snapshot besides
//! it. One with a sieve takes a snapshot all the same: should it turn out to be wide, it goes on with several iterators, on
//! several threads, and they must see the same moment (see [`wide`]). What is known of rows from earlier scans it does not
//! read again (see [`skim`]).

mod skim;
mod split;
mod wide;

pub(crate) use wide::Helpers;

use crate::columns::{COLUMNS_MAX, Columns, Maker, Reading};
use crate::failure::read_error;
use crate::format::split_value;
use partita_store::{
    Error, Position, Result, RowRef, Scan, ScanEnd, Step, Visitor, decode_key, encode_position, space_end,
};
use rocksdb::{DB, DBRawIterator, ReadOptions};
use skim::{Skim, Skimmed, Stretch};
use std::time::Instant;
use wide::{Wide, WideEnd};

/// Reading the clock costs about as much as visiting a row.
const ROWS_BETWEEN_DEADLINE_CHECKS: usize = 32;

/// A scan that has visited so many rows and goes on is a wide one. Most end sooner, with a page that is full, and have no
/// use for threads: to start one takes as long as to visit a hundred rows.
const ROWS_BEFORE_WIDE: usize = 2000;

/// A scan that has visited so many rows and goes on may take long.
const ROWS_BEFORE_LONG: usize = 256;

/// How a part of a scan ended.
enum Leg {
    Ended(ScanEnd),
    /// Not yet: the next row was not visited, since enough were.
    Paused,
    /// The part was read to its end. The rest of the scan begins at this key.
    Reached(Vec<u8>),
}

/// Runs a scan. What is left of it when it turns out to take long goes through `long`, which the caller uses to make way for
/// others; for the many that end soon that would cost more than they do.
pub(crate) fn run(
    database: &DB,
    helpers: &Helpers,
    columns: &Columns,
    scan: &Scan<'_>,
    visitor: &mut Visitor<'_>,
    long: fn(&mut dyn FnMut() -> Result<ScanEnd>) -> Result<ScanEnd>,
) -> Result<ScanEnd> {
    let from = encode_position(scan.space, &scan.start);
    let end = match &scan.end {
        Some(end) => encode_position(scan.space, end),
        None => space_end(scan.space),
    };
    if from >= end {
        return Ok(ScanEnd::Exhausted);
    }
    let (reading, snapshot) = match scan.sieve.map(|sieve| sieve.columns()) {
        None => (None, None),
        Some(wanted) if wanted.is_empty() || wanted.len() > COLUMNS_MAX => (None, Some(database.snapshot())),
        Some(wanted) => {
            let (reading, snapshot) = columns.begin(scan.space, wanted, || database.snapshot());
            (Some(reading), Some(snapshot))
        }
    };
    let iterator = |from: &[u8]| {
        let mut settings = read_settings(end.clone());
        if let Some(snapshot) = &snapshot {
            settings.set_snapshot(snapshot);
        }
        let mut rows = database.raw_iterator_opt(settings);
        rows.seek(from);
        rows
    };
    let mut rows = iterator(&from);
    // Where something is known of rows, it may spare even the first of them.
    let rows_max = if reading.as_ref().is_some_and(Reading::has_sheets) { 0 } else { ROWS_BEFORE_LONG };
    if let Leg::Ended(end) = one_by_one(&mut rows, scan, &end, rows_max, None, visitor)? {
        return Ok(end);
    }
    let Some(mut at) = rows.key().map(<[u8]>::to_vec) else { return Ok(ScanEnd::Exhausted) };
    long(&mut || {
        let mut skim = Skim::new(scan, reading.as_ref(), &at, &end);
        loop {
            let stretch = match skim.next(std::mem::take(&mut at)) {
                Skimmed::Read(stretch) => stretch,
                Skimmed::Late(key) => {
                    // The place of a row, which the end of a sheet need not be: it may be where another scan ended.
                    rows.seek(&key);
                    rows.status().map_err(read_error)?;
                    return rows.key().map_or(Ok(ScanEnd::Exhausted), |key| Ok(ScanEnd::Deadline(position_of(key)?)));
                }
                Skimmed::End => return Ok(ScanEnd::Exhausted),
            };
            if rows.key() != Some(&stretch.start) {
                rows.seek(&stretch.start);
            }
            let notes = reading.as_ref().filter(|_| !stretch.is_known);
            let maker = notes.zip(scan.sieve).map(|(reading, sieve)| reading.maker(sieve));
            let rows_max = if scan.sieve.is_some() { ROWS_BEFORE_WIDE } else { usize::MAX };
            at = match one_by_one(&mut rows, scan, &stretch.end, rows_max, maker, visitor)? {
                Leg::Ended(end) => return Ok(end),
                Leg::Reached(key) => key,
                Leg::Paused => {
                    let (Some(sieve), Some(snapshot), Some(from)) = (scan.sieve, &snapshot, rows.key()) else {
                        unreachable!("only a scan with a sieve pauses, and before a row");
                    };
                    let rest = Stretch { start: from.to_vec(), ..stretch };
                    let end_of_stretch = rest.end.clone();
                    match Wide::new(database, snapshot, sieve, notes, scan, rest).run(helpers, visitor)? {
                        WideEnd::Ended(ScanEnd::Exhausted) => end_of_stretch,
                        WideEnd::Ended(end) => return Ok(end),
                        WideEnd::OneByOne(key) => {
                            rows = iterator(&key);
                            match one_by_one(&mut rows, scan, &end, 1, None, visitor)? {
                                Leg::Ended(end) => return Ok(end),
                                Leg::Reached(key) => key,
                                Leg::Paused => rows.key().unwrap_or(&end).to_vec(),
                            }
                        }
                    }
                }
            };
        }
    })
}

fn read_settings(end: Vec<u8>) -> ReadOptions {
    let mut settings = ReadOptions::default();
    settings.set_iterate_upper_bound(end);
    // Files that this iterator was the last to need are deleted by a background thread and not by the reader.
    settings.set_background_purge_on_iterator_cleanup(true);
    settings
}

/// Shows rows on this thread up to a key, or until the visitor has seen so many. The maker takes them too.
fn one_by_one(
    rows: &mut DBRawIterator<'_>,
    scan: &Scan<'_>,
    end: &[u8],
    rows_max: usize,
    mut maker: Option<Maker<'_>>,
    visitor: &mut Visitor<'_>,
) -> Result<Leg> {
    let mut rows_to_check = ROWS_BETWEEN_DEADLINE_CHECKS;
    let mut rows_left = rows_max;
    // Whether the next row is shown whatever there is to say against it: elsewhere a sieve might pass it over.
    let mut shows_any = false;
    let mut is_behind_end = false;
    while let Some((key, stored)) = rows.item() {
        if !shows_any && (key >= end || rows_left == 0) {
            let place = if is_behind_end { key } else { key.min(end) };
            if let Some(maker) = &mut maker {
                maker.finish(place);
            }
            return Ok(if key >= end { Leg::Reached(place.to_vec()) } else { Leg::Paused });
        }
        if key >= end
            && let Some(mut maker) = maker.take()
        {
            maker.finish(end);
        }
        is_behind_end |= key >= end;
        rows_left = rows_left.saturating_sub(1);
        if rows_to_check == 0 {
            if Instant::now() >= scan.deadline {
                return Ok(Leg::Ended(ScanEnd::Deadline(position_of(key)?)));
            }
            rows_to_check = ROWS_BETWEEN_DEADLINE_CHECKS;
        }
        rows_to_check -= 1;
        let step = with_row(key, stored, |row| {
            if let Some(maker) = &mut maker {
                maker.add(key, row);
            }
            visitor(row)
        })?;
        shows_any = matches!(step, Step::NextAny | Step::Seek(_));
        match step {
            Step::Next | Step::NextAny => rows.next(),
            Step::Seek(target) => {
                let target = encode_position(scan.space, &target);
                debug_assert!(target.as_slice() > key, "a scan seeks forwards only");
                rows.seek(target);
                // Rows were left out.
                maker = None;
                // A seek may cost as much as many rows.
                rows_to_check = 0;
            }
            Step::Stop => return Ok(Leg::Ended(ScanEnd::Stopped)),
        }
    }
    rows.status().map_err(read_error)?;
    if let Some(maker) = &mut maker {
        maker.finish(end);
    }
    Ok(Leg::Ended(ScanEnd::Exhausted))
}

/// Reads a row from what RocksDB holds.
fn with_row<T>(key: &[u8], stored: &[u8], read: impl FnOnce(RowRef<'_>) -> T) -> Result<T> {
    let (_, partition, row) = decode_key(key).ok_or_else(|| no_row(key))?;
    let (version, value) = split_value(stored)?;
    Ok(read(RowRef { partition: &partition, row: &row, version, value }))
}

fn position_of(key: &[u8]) -> Result<Position> {
    let (_, partition, row) = decode_key(key).ok_or_else(|| no_row(key))?;
    Ok(Position::new(partition, row))
}

fn no_row(key: &[u8]) -> Error {
    Error::Corrupt(format!("the key {key:02x?} is not that of a row"))
}
