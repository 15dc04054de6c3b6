//! Whole logs, and what they lack; see [`log_check`](crate::log_check) for their format.
//!
//! A log ends anywhere: the process may have been killed while it wrote. What is then cut short was never acknowledged,
//! and opening drops it. Damage is told from that by what follows it.

use crate::log_check::{BLOCK_BYTES, HEADER_BYTES, fragment};
use std::path::Path;
use std::{fs, io};

/// What a log turned out to be.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Log {
    /// Every fragment is as it was written.
    Whole,
    /// Its end was cut off, this many bytes behind the last whole fragment.
    Unfinished(usize),
    /// A fragment at this offset is not as it was written.
    Damaged(usize),
}

/// Reads all of a log.
pub(crate) fn verify(path: &Path) -> io::Result<Log> {
    Ok(verify_bytes(&fs::read(path)?))
}

fn verify_bytes(bytes: &[u8]) -> Log {
    // Zeros at the end are room for what was to come.
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let mut at = 0;
    while at < end {
        let in_block = BLOCK_BYTES - at % BLOCK_BYTES;
        if in_block < HEADER_BYTES {
            // Too little for a header is left empty.
            at += in_block;
            continue;
        }
        match fragment(&bytes[at..bytes.len().min(at + in_block)]) {
            Some(fragment) => at += HEADER_BYTES + fragment.bytes.len(),
            // Only the last block can have been cut short, by a write that did not end; nothing can follow that.
            None if end - at <= in_block && is_cut(&bytes[at..end]) && !holds_fragment(&bytes[at + 1..end]) => {
                return Log::Unfinished(end - at);
            }
            None => return Log::Damaged(at),
        }
    }
    Log::Whole
}

/// Whether the fragment that begins here goes on behind the end.
fn is_cut(bytes: &[u8]) -> bool {
    match bytes.first_chunk::<HEADER_BYTES>() {
        None => true,
        Some(header) => bytes.len() - HEADER_BYTES < usize::from(u16::from_le_bytes([header[4], header[5]])),
    }
}

/// Whether a whole fragment begins anywhere here. Empty ones would be found by chance.
fn holds_fragment(bytes: &[u8]) -> bool {
    (0..bytes.len()).any(|at| fragment(&bytes[at..]).is_some_and(|fragment| !fragment.bytes.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::checksum;

    fn log(records: &[&[u8]]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for record in records {
            let crc = checksum::masked(crc32c::crc32c_append(crc32c::crc32c(&[1]), record));
            bytes.extend(crc.to_le_bytes());
            bytes.extend((record.len() as u16).to_le_bytes());
            bytes.push(1);
            bytes.extend(*record);
        }
        bytes
    }

    #[test]
    fn whole_cut_and_damaged() {
        let good = log(&[&[7; 100], b"second", &[9; 300]]);
        assert_eq!(verify_bytes(&good), Log::Whole);
        assert_eq!(verify_bytes(&[]), Log::Whole);
        let last = 107 + 13;
        for cut in last + 1..good.len() {
            assert_eq!(verify_bytes(&good[..cut]), Log::Unfinished(cut - last), "cut at {cut}");
        }
        for at in 0..good.len() {
            let mut bytes = good.clone();
            bytes[at] ^= 0x10;
            let begins = [0, 107, last].into_iter().rfind(|&begin| begin <= at).unwrap();
            // A length of the last record that grew looks like a record that was cut off.
            let expect = if [last + 4, last + 5].contains(&at) {
                Log::Unfinished(good.len() - last)
            } else {
                Log::Damaged(begins)
            };
            assert_eq!(verify_bytes(&bytes), expect, "byte {at}");
        }
        let zeros = [0; 5000];
        assert_eq!(verify_bytes(&zeros), Log::Whole);
        assert_eq!(verify_bytes(&[&good[..], &zeros].concat()), Log::Whole);
        let ends_in_zeros = log(&[&[7; 100], &[0; 100]]);
        assert_eq!(verify_bytes(&[&ends_in_zeros[..], &zeros].concat()), Log::Whole);
        assert_eq!(verify_bytes(&[&good[..last + 50], &zeros].concat()), Log::Unfinished(50));
        let mut damaged = good.clone();
        damaged[110] ^= 0x10;
        assert_eq!(verify_bytes(&[&damaged[..], &zeros].concat()), Log::Damaged(107));
    }
}
