//! Cuts a stretch of keys into two of about the same size, without reading what is in it.
//!
//! Nobody keeps a list of keys to take the middle of. But keys are bytes, and so are numbers: half way between the
//! numbers that the first and the last key begin with lies a place, and the first key behind it is where to cut. Where keys
//! are spread evenly that is the middle, and elsewhere the larger part is cut again.

use crate::failure::read_error;
use partita_store::Result;
use rocksdb::{DB, DBRawIterator, Range};

/// Each halves what the place can be, so more of them find little more.
const TRIES_MAX: usize = 16;

/// A place half way between two, or `None` if they are too close.
fn middle(low: &[u8], high: &[u8]) -> Option<Vec<u8>> {
    let same = low.iter().zip(high).take_while(|(low, high)| low == high).count();
    let number = |key: &[u8]| {
        let mut bytes = [0; 8];
        let part = &key[same..key.len().min(same + bytes.len())];
        bytes[..part.len()].copy_from_slice(part);
        u64::from_be_bytes(bytes)
    };
    let (low_number, high_number) = (number(low), number(high));
    let between = low_number + high_number.saturating_sub(low_number) / 2;
    (between > low_number).then(|| [&low[..same], &between.to_be_bytes()].concat())
}

/// About how many bytes of files lie between two keys. Rows that are in memory only are not counted.
pub(super) fn file_bytes(database: &DB, start: &[u8], end: &[u8]) -> u64 {
    database.get_approximate_sizes(&[Range::new(start, end)])[0]
}

/// The key of a row behind `start`, itself the key of a row, at which to cut what lies before `end`; `None` if there is
/// none. `rows` must reach at least from `start` to `end`.
pub(super) fn cut(rows: &mut DBRawIterator<'_>, start: &[u8], end: &[u8]) -> Result<Option<Vec<u8>>> {
    let mut high = end.to_vec();
    for _ in 0..TRIES_MAX {
        let Some(place) = middle(start, &high) else { break };
        rows.seek(&place);
        if let Some(key) = rows.key().filter(|key| *key < end) {
            return Ok(Some(key.to_vec()));
        }
        rows.status().map_err(read_error)?;
        // All rows lie before the place. The last of them is a better mark than a place where there is nothing.
        rows.seek_for_prev(&place);
        match rows.key() {
            Some(last) if last > start => high = last.to_vec(),
            _ => break,
        }
    }
    rows.status().map_err(read_error)?;
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_lies_between() {
        for (low, high) in
            [("a", "c"), ("a", "b"), ("aaaa", "aaab"), ("p\0\u{1}1", "p\0\u{1}9"), ("", "a"), ("a", "a\0\0\u{1}")]
        {
            let middle = middle(low.as_bytes(), high.as_bytes()).expect("there is room");
            assert!(low.as_bytes() < middle.as_slice() && middle.as_slice() < high.as_bytes(), "{low:?}, {high:?}");
        }
        assert_eq!(middle(b"a", b"a"), None);
        assert_eq!(middle(b"a", b"a\0"), None);
        assert_eq!(middle(b"b", b"a"), None);
    }

    #[test]
    fn a_cut_falls_on_a_row_between() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let database = DB::open_default(folder.path()).expect("a database");
        for row in 0..1000 {
            database.put(format!("partition-{:02}-{row:05}", row / 400), "value").expect("a row is written");
        }
        let mut rows = database.raw_iterator();
        let (mut low, end) = (b"partition-00-00000".to_vec(), b"q");
        let mut cuts = 0;
        while let Some(key) = cut(&mut rows, &low, end).expect("rows are read") {
            assert!(key > low && database.get(&key).expect("a row is read").is_some());
            low = key;
            cuts += 1;
        }
        assert_eq!(low, b"partition-02-00999", "only the last row cannot be cut");
        assert!(cuts < 100, "{cuts} cuts");
        assert_eq!(cut(&mut rows, b"partition-00-00001", b"partition-00-00002").expect("rows are read"), None);
    }
}
