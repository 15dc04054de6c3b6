//! Ids: of requests, and of the boundaries of batch replies.
//!
//! They must be unique, not secret, so a counter under a seeded mixer does: no lock, no system call.

use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};

/// A source of ids. Two sources give different ids.
#[derive(Debug)]
pub(crate) struct Ids {
    seed: u64,
    next: AtomicU64,
}

impl Ids {
    pub(crate) fn new() -> Ids {
        Ids { seed: RandomState::new().hash_one(std::process::id()), next: AtomicU64::new(0) }
    }

    /// The next id.
    pub(crate) fn next(&self) -> Id {
        let count = self.next.fetch_add(1, Ordering::Relaxed);
        let (a, b) = (mix(self.seed ^ (2 * count)), mix(self.seed.rotate_left(32) ^ (2 * count + 1)));
        let mut text = *b"00000000-0002-0000-0000-000000000000";
        for (bits, place) in [(a, 0..8), (a >> 32, 9..12), (a >> 44, 14..18), (b, 19..23), (b >> 16, 24..36)] {
            put_hex(&mut text[place], bits);
        }
        Id(text)
    }
}

/// An id in the form of a GUID. Its second group ends in 2, as the Table service's do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Id([u8; 36]);

impl Id {
    pub(crate) fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("digits and hyphens are text")
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Writes the low bits of a number over all of `place`, in hexadecimal digits.
fn put_hex(place: &mut [u8], mut bits: u64) {
    for digit in place {
        *digit = b"0123456789abcdef"[(bits & 15) as usize];
        bits >>= 4;
    }
}

/// The finaliser of SplitMix64: a bijection, so that different counts give different ids.
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use partita_model::Guid;
    use std::collections::HashSet;

    #[test]
    fn ids_are_guids_and_differ() {
        let (one, other) = (Ids::new(), Ids::new());
        let ids: HashSet<_> = (0..1000).flat_map(|_| [one.next(), other.next()]).collect();
        assert_eq!(ids.len(), 2000);
        assert!(ids.iter().map(Id::as_str).all(|id| Guid::parse(id).is_some() && &id[12..13] == "2"));
    }
}
