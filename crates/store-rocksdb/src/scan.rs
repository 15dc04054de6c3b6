//! Scans: one iterator, rows shown to the visitor where RocksDB holds them.
//!
//! An iterator sees the rows as of the moment it was made for as long as it lives, so a scan needs no snapshot besides
//! it.

use crate::failure::read_error;
use crate::format::split_value;
use partita_store::{
    Error, Position, Result, RowRef, Scan, ScanEnd, Step, Visitor, decode_key, encode_position, space_end,
};
use rocksdb::{DB, ReadOptions};
use std::time::Instant;

/// Reading the clock costs about as much as visiting a row.
const ROWS_BETWEEN_DEADLINE_CHECKS: usize = 32;

pub(crate) fn run(database: &DB, scan: &Scan, visitor: &mut Visitor<'_>) -> Result<ScanEnd> {
    let end = match &scan.end {
        Some(end) => encode_position(scan.space, end),
        None => space_end(scan.space),
    };
    let mut settings = ReadOptions::default();
    settings.set_iterate_upper_bound(end);
    // Files that this iterator was the last to need are deleted by a background thread and not by the reader.
    settings.set_background_purge_on_iterator_cleanup(true);

    let mut rows = database.raw_iterator_opt(settings);
    rows.seek(encode_position(scan.space, &scan.start));
    let mut rows_to_check = ROWS_BETWEEN_DEADLINE_CHECKS;
    while let Some((key, stored)) = rows.item() {
        let Some((_, partition, row)) = decode_key(key) else {
            return Err(Error::Corrupt(format!("the key {key:02x?} is not that of a row")));
        };
        let (version, value) = split_value(stored)?;
        if rows_to_check == 0 {
            if Instant::now() >= scan.deadline {
                return Ok(ScanEnd::Deadline(Position::new(partition, row)));
            }
            rows_to_check = ROWS_BETWEEN_DEADLINE_CHECKS;
        }
        rows_to_check -= 1;
        match visitor(RowRef { partition: &partition, row: &row, version, value }) {
            Step::Next => rows.next(),
            Step::Seek(target) => {
                debug_assert!(
                    (target.partition.as_slice(), target.row.as_slice()) > (&*partition, &*row),
                    "a scan seeks forwards only"
                );
                rows.seek(encode_position(scan.space, &target));
                // A seek may cost as much as many rows.
                rows_to_check = 0;
            }
            Step::Stop => return Ok(ScanEnd::Stopped),
        }
    }
    rows.status().map_err(read_error)?;
    Ok(ScanEnd::Exhausted)
}
