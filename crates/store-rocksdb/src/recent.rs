//! The rows that were written lately, and their versions.
//!
//! Reading rows on the one thread that writes would bound conditional writes to what one thread can read. Instead each
//! caller reads the versions that its commit expects before it queues, and notes the last group that it could see. The
//! committer then only has to know what was written since: rows that are not in here are as the caller found them.
//!
//! ```text
//!   groups   ..., 41, 42, 43, 44, 45 (in hand)        the caller read when 43 was the last group
//!                [--- kept here ---]                  a row of 44 or 45 is found here, any other is as it was read
//! ```
//!
//! Entries are kept in two generations, of which the older is thrown away when the younger is full. A caller that read
//! before the oldest group kept is too late, and the committer reads for it.

use crate::row_cache::{HashItself, KeyHash};
use partita_store::Version;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};

/// Numbers the groups in the order they are written, from 1 on.
pub(crate) type GroupNumber = u64;

/// A caller queues for a group or two; this covers several of the largest.
const ENTRIES_PER_GENERATION: usize = 16 * 1024;

type Generation = HashMap<HashedKey, Option<Version>, BuildHasherDefault<HashItself>>;

/// The key of a row together with its hash, which was made on the thread of the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HashedKey {
    pub(crate) hash: KeyHash,
    pub(crate) key: Vec<u8>,
}

impl Hash for HashedKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.hash.hash(state);
    }
}

#[derive(Debug, Default)]
pub(crate) struct Recent {
    young: Generation,
    old: Generation,
    /// Everything written by later groups than these is in `young`, or in `young` and `old`.
    before_young: GroupNumber,
    before_old: GroupNumber,
}

impl Recent {
    /// Notes the version that a row has now, or that it is gone.
    pub(crate) fn note(&mut self, key: HashedKey, version: Option<Version>) {
        self.young.insert(key, version);
    }

    /// What was noted of a row: `None` if nothing was.
    pub(crate) fn find(&self, key: &HashedKey) -> Option<Option<Version>> {
        self.young.get(key).or_else(|| self.old.get(key)).copied()
    }

    /// Whether every row written after a group is still here.
    pub(crate) fn reaches_back_to(&self, group: GroupNumber) -> bool {
        group >= self.before_old
    }

    /// Called when a group was written, with its number.
    pub(crate) fn end_group(&mut self, number: GroupNumber) {
        if self.young.len() >= ENTRIES_PER_GENERATION {
            self.old = std::mem::take(&mut self.young);
            self.before_old = std::mem::replace(&mut self.before_young, number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A key and its hash, which is good enough for a test.
    fn key(bytes: &[u8]) -> HashedKey {
        let hash = bytes.iter().fold(7_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01B3));
        HashedKey { hash: KeyHash::of_number(hash), key: bytes.to_vec() }
    }

    #[test]
    fn what_was_written_since_a_group_is_found() {
        let mut recent = Recent::default();
        let rows_per_group = 1000;
        let key = |group: u64, row: u64| key(&[group.to_be_bytes(), row.to_be_bytes()].concat());
        for group in 1..100 {
            for row in 0..rows_per_group {
                recent.note(key(group, row), Some(group));
            }
            assert!(recent.reaches_back_to(group - 1), "the group in hand is always kept");
            recent.end_group(group);
            let oldest = (0..=group).find(|&seen| recent.reaches_back_to(seen)).expect("the last group is kept");
            for since in oldest + 1..=group {
                assert!((0..rows_per_group).all(|row| recent.find(&key(since, row)) == Some(Some(since))));
            }
            assert!(group - oldest <= 34, "old groups are thrown away");
        }
        assert!(!recent.reaches_back_to(50));
    }

    #[test]
    fn the_latest_note_counts() {
        let mut recent = Recent::default();
        recent.note(key(b"r"), Some(1));
        recent.end_group(1);
        recent.note(key(b"r"), None);
        assert_eq!(recent.find(&key(b"r")), Some(None));
        assert_eq!(recent.find(&key(b"s")), None);
    }

    #[test]
    fn rows_of_one_hash_are_two_rows() {
        let mut recent = Recent::default();
        let same_hash = HashedKey { hash: key(b"r").hash, key: b"s".to_vec() };
        recent.note(key(b"r"), Some(1));
        assert_eq!(recent.find(&same_hash), None);
        recent.note(same_hash.clone(), Some(2));
        assert_eq!((recent.find(&key(b"r")), recent.find(&same_hash)), (Some(Some(1)), Some(Some(2))));
    }
}
