//! A folder that is read and not changed, as a store that takes no writes: what stands above a store can read a backup, or
//! a folder that is to stay as it is.

use crate::Reader;
use crate::reader::{Damage, StoredRow};
use async_trait::async_trait;
use bytes::Bytes;
use partita_store::{
    Batch, Error, Result, Row, RowRef, Scan, ScanEnd, Space, Step, Store, Version, Visitor, decode_key, encode_key,
    encode_position, space_end,
};
use std::time::Instant;

const ROWS_BETWEEN_DEADLINE_CHECKS: u64 = 256;

#[async_trait]
impl Store for Reader {
    async fn get(&self, space: Space, partition: &[u8], row: &[u8]) -> Result<Option<Row>> {
        let key = encode_key(space, partition, row);
        let end = [&key[..], &[0]].concat();
        let mut rows = self.rows(key, Some(end));
        let Some(found) = rows.next_row() else { return Ok(None) };
        let (version, value) = readable(found)?.split()?;
        Ok(Some(Row { version, value: Bytes::copy_from_slice(value) }))
    }

    async fn scan(&self, scan: Scan<'_>, visitor: &mut Visitor<'_>) -> Result<ScanEnd> {
        let end = scan.end.map_or_else(|| space_end(scan.space), |end| encode_position(scan.space, &end));
        let mut rows = self.rows(encode_position(scan.space, &scan.start), Some(end.clone()));
        let mut visited = 0;
        loop {
            let Some(row) = rows.next_row() else { return Ok(ScanEnd::Exhausted) };
            let row = readable(row)?;
            let (_, partition, name) = decode_key(row.key).ok_or_else(|| corrupt("a key that is none of a row"))?;
            if visited > 0 && visited % ROWS_BETWEEN_DEADLINE_CHECKS == 0 && Instant::now() >= scan.deadline {
                return Ok(ScanEnd::Deadline(partita_store::Position::new(partition, name)));
            }
            visited += 1;
            let (version, value) = row.split()?;
            match visitor(RowRef { partition: &partition, row: &name, version, value }) {
                Step::Next | Step::NextAny => {}
                Step::Stop => return Ok(ScanEnd::Stopped),
                Step::Seek(target) => {
                    let target = encode_position(scan.space, &target);
                    if target >= end {
                        return Ok(ScanEnd::Exhausted);
                    }
                    rows = self.rows(target, Some(end.clone()));
                }
            }
        }
    }

    async fn commit(&self, _: Batch) -> Result<Version> {
        Err(Error::WritesRefused("the folder is only read".into()))
    }

    fn writes_refused(&self) -> Option<String> {
        Some("the folder is only read".into())
    }

    fn figures(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
}

fn readable(row: std::result::Result<StoredRow<'_>, Damage>) -> Result<StoredRow<'_>> {
    row.map_err(|damage| Error::Corrupt(damage.what))
}

fn corrupt(what: &str) -> Error {
    Error::Corrupt(what.to_owned())
}
