//! Ends a list of files (`MANIFEST`) where a power cut has torn it.
//!
//! RocksDB appends to the list, syncs it, and only then relies on what it has appended. A power cut in between may leave some
//! sectors of that and not others, and where the length of the file survived and a sector did not, there are zeros. RocksDB
//! forgives a list that ends early, but not a record with a hole: it would refuse the folder.
//!
//! A record that is broken and has such a hole was never synced, nor was anything behind it, and nothing relies on it. One that
//! is broken in another way is damage, which is left for RocksDB to find. The list has the form of a
//! [log](crate::log_check).

use crate::log_check::{BLOCK_BYTES, HEADER_BYTES, fragment};
use std::fs::{self, OpenOptions};
use std::io;
use std::path::Path;

/// The least that a disk writes as a whole.
const SECTOR_BYTES: usize = 512;

/// Where the last whole record of a list ends, if the next was torn. One that cannot be read is for RocksDB to complain of.
pub(crate) fn torn(list: &Path) -> Option<usize> {
    torn_at(&fs::read(list).ok()?)
}

/// Cuts a list off behind its last whole record if the next was torn.
pub(crate) fn end_where_torn(list: &Path) -> io::Result<()> {
    let Some(end) = torn(list) else { return Ok(()) };
    let list = OpenOptions::new().write(true).open(list)?;
    list.set_len(end as u64)?;
    list.sync_all()
}

/// Where the record begins that was torn.
fn torn_at(list: &[u8]) -> Option<usize> {
    let (mut record, mut at) = (0, 0);
    while at < list.len() {
        let in_block = BLOCK_BYTES - at % BLOCK_BYTES;
        if in_block < HEADER_BYTES {
            at += in_block;
            continue;
        }
        let block = &list[at..list.len().min(at + in_block)];
        let Some(fragment) = fragment(block) else {
            return has_hole(block, at).then_some(record);
        };
        at += HEADER_BYTES + fragment.bytes.len();
        if fragment.ends_record() {
            record = at;
        }
    }
    None
}

/// Whether a sector holds nothing but zeros of the fragment that begins with `block`, at this place of the file.
fn has_hole(block: &[u8], at: usize) -> bool {
    let length = block.get(4..6).map_or(0, |length| usize::from(u16::from_le_bytes([length[0], length[1]])));
    let fragment = &block[..block.len().min(HEADER_BYTES + length)];
    let (first, others) = fragment.split_at(fragment.len().min(SECTOR_BYTES - at % SECTOR_BYTES));
    let is_hole = |sector: &[u8]| sector.iter().all(|byte| *byte == 0);
    is_hole(first) || others.chunks(SECTOR_BYTES).any(is_hole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::checksum;

    /// Records that cross a sector here and there.
    fn list() -> (Vec<u8>, Vec<usize>) {
        let (mut bytes, mut starts) = (Vec::new(), Vec::new());
        for record in 0..40_u8 {
            let content = vec![record + 1; 10 + 90 * usize::from(record % 7)];
            let crc = checksum::masked(crc32c::crc32c_append(crc32c::crc32c(&[1]), &content));
            starts.push(bytes.len());
            bytes.extend(crc.to_le_bytes());
            bytes.extend((content.len() as u16).to_le_bytes());
            bytes.push(1);
            bytes.extend(content);
        }
        (bytes, starts)
    }

    #[test]
    fn a_lost_sector_tears_the_first_record_in_it() {
        let (whole, starts) = list();
        assert_eq!(torn_at(&whole), None);
        assert_eq!(torn_at(&[]), None);
        for sector in 0..whole.len().div_ceil(SECTOR_BYTES) {
            let mut torn = whole.clone();
            let end = whole.len().min((sector + 1) * SECTOR_BYTES);
            torn[sector * SECTOR_BYTES..end].fill(0);
            let first = starts.iter().rfind(|start| **start <= sector * SECTOR_BYTES).copied();
            assert_eq!(torn_at(&torn), first, "sector {sector}");
        }
    }

    #[test]
    fn other_damage_is_none_of_ours() {
        let (whole, _) = list();
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x10;
            assert_eq!(torn_at(&damaged), None, "byte {at}");
        }
        for length in (0..whole.len()).step_by(17) {
            assert_eq!(torn_at(&whole[..length]), None, "RocksDB forgives a list that ends at {length}");
        }
    }
}
