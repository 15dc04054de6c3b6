//! Scans: one iterator, rows shown to the visitor where RocksDB holds them.
//!
//! An iterator sees the rows as of the moment it was made for as long as it lives, so a scan needs no snapshot besides
//! it. One with a sieve takes a snapshot all the same: should it turn out to be wide, it goes on with several iterators, on
//! several threads, and they must see the same moment (see [`wide`]).

mod split;
mod wide;

pub(crate) use wide::Helpers;

use crate::failure::read_error;
use crate::format::split_value;
use partita_store::{
    Error, Position, Result, RowRef, Scan, ScanEnd, Step, Visitor, decode_key, encode_position, space_end,
};
use rocksdb::{DB, DBRawIterator, ReadOptions};
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
    /// Not yet: the next row was not visited.
    Paused,
}

/// Runs a scan. What is left of it when it turns out to take long goes through `long`, which the caller uses to make way for
/// others; for the many that end soon that would cost more than they do.
pub(crate) fn run(
    database: &DB,
    helpers: &Helpers,
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
    let snapshot = scan.sieve.map(|_| database.snapshot());
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
    if let Leg::Ended(end) = one_by_one(&mut rows, scan, ROWS_BEFORE_LONG, visitor)? {
        return Ok(end);
    }
    long(&mut || {
        loop {
            let rows_max = if scan.sieve.is_some() { ROWS_BEFORE_WIDE } else { usize::MAX };
            if let Leg::Ended(end) = one_by_one(&mut rows, scan, rows_max, visitor)? {
                return Ok(end);
            }
            let (Some(sieve), Some(snapshot), Some(from)) = (scan.sieve, &snapshot, rows.key()) else { continue };
            match Wide::new(database, snapshot, sieve, scan, from.to_vec(), end.clone()).run(helpers, visitor)? {
                WideEnd::Ended(end) => return Ok(end),
                WideEnd::OneByOne(key) => rows = iterator(&key),
            }
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

/// Shows rows on this thread until the visitor has seen so many.
fn one_by_one(
    rows: &mut DBRawIterator<'_>,
    scan: &Scan<'_>,
    rows_max: usize,
    visitor: &mut Visitor<'_>,
) -> Result<Leg> {
    let mut rows_to_check = ROWS_BETWEEN_DEADLINE_CHECKS;
    let mut rows_left = rows_max;
    while let Some((key, stored)) = rows.item() {
        if rows_left == 0 {
            return Ok(Leg::Paused);
        }
        rows_left -= 1;
        if rows_to_check == 0 {
            if Instant::now() >= scan.deadline {
                return Ok(Leg::Ended(ScanEnd::Deadline(position_of(key)?)));
            }
            rows_to_check = ROWS_BETWEEN_DEADLINE_CHECKS;
        }
        rows_to_check -= 1;
        match with_row(key, stored, &mut *visitor)? {
            Step::Next => rows.next(),
            Step::NextAny => {
                // The next row is shown here, since elsewhere a sieve might pass it over. So it is behind a seek.
                rows_left = rows_left.max(1);
                rows.next();
            }
            Step::Seek(target) => {
                rows_left = rows_left.max(1);
                let target = encode_position(scan.space, &target);
                debug_assert!(target.as_slice() > key, "a scan seeks forwards only");
                rows.seek(target);
                // A seek may cost as much as many rows.
                rows_to_check = 0;
            }
            Step::Stop => return Ok(Leg::Ended(ScanEnd::Stopped)),
        }
    }
    rows.status().map_err(read_error)?;
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
