//! Rows as flat keys, for engines that keep one ordered map of bytes.
//!
//! ```text
//!   01 | space, u64 big endian | esc(partition) | 00 01 | esc(row)
//! ```
//!
//! `esc` writes `00 FF` for each `00` of a key. `00 01` therefore appears only behind the partition, and it sorts before
//! anything that can stand there in a longer partition (`00 FF` or a byte from `01` on), so that comparing keys as bytes
//! compares (space, partition, row). Nothing stands behind the row, hence nothing has to end it. Every byte string is
//! allowed in both places, the empty one included.
//!
//! For instance, row `r` of partition `a\0b` in space 7:
//!
//! ```text
//!   01  00 00 00 00 00 00 00 07  61 00 FF 62  00 01  72
//! ```
//!
//! The first byte is a tag that sets rows apart from whatever else an engine keeps in the same map. It is part of the
//! format on disk: a tag keeps its meaning for ever.

use crate::Space;
use memchr::memchr;
use partita_model::Position;
use std::borrow::Cow;

const ROW_TAG: u8 = 0x01;
const SPACE_PREFIX_BYTES: usize = 1 + size_of::<u64>();
const END_OF_PARTITION: [u8; 2] = [0x00, 0x01];
const ESCAPED_ZERO: [u8; 2] = [0x00, 0xFF];

/// The key of a row.
pub fn encode_key(space: Space, partition: &[u8], row: &[u8]) -> Vec<u8> {
    let mut key = Vec::with_capacity(SPACE_PREFIX_BYTES + partition.len() + END_OF_PARTITION.len() + row.len());
    encode_key_to(space, partition, row, &mut key);
    key
}

/// Writes the key of a row behind what `key` holds.
pub fn encode_key_to(space: Space, partition: &[u8], row: &[u8], key: &mut Vec<u8>) {
    key.extend_from_slice(&space_prefix(space));
    escape(partition, key);
    key.extend_from_slice(&END_OF_PARTITION);
    escape(row, key);
}

/// The place of a position among the keys: not behind the key of any row that lies at or behind the position.
pub fn encode_position(space: Space, position: &Position) -> Vec<u8> {
    encode_key(space, &position.partition, &position.row)
}

/// Space, partition and row, the last two borrowed from a key where nothing in them was escaped.
pub type KeyParts<'a> = (Space, Cow<'a, [u8]>, Cow<'a, [u8]>);

/// The row that a key names, or `None` if it is not the key of a row.
pub fn decode_key(key: &[u8]) -> Option<KeyParts<'_>> {
    let (prefix, rest) = key.split_first_chunk::<SPACE_PREFIX_BYTES>()?;
    let (&ROW_TAG, space) = prefix.split_first()? else { return None };
    let space = Space(u64::from_be_bytes(space.try_into().ok()?));
    // Nearly every key: one zero, which ends the partition.
    let zero = memchr(0, rest)?;
    let (partition, behind) = rest.split_at(zero);
    if let [0x00, 0x01, row @ ..] = behind
        && memchr(0, row).is_none()
    {
        return Some((space, Cow::Borrowed(partition), Cow::Borrowed(row)));
    }
    let (partition, rest) = unescape(rest)?;
    let row_bytes = rest?;
    let (row, None) = unescape(row_bytes)? else { return None };
    Some((space, partition, row))
}

/// What the keys of all rows of a space begin with, and the place before the first of them.
pub fn space_prefix(space: Space) -> [u8; SPACE_PREFIX_BYTES] {
    let mut prefix = [ROW_TAG; SPACE_PREFIX_BYTES];
    prefix[1..].copy_from_slice(&space.0.to_be_bytes());
    prefix
}

/// The place behind the last row of a space.
pub fn space_end(space: Space) -> Vec<u8> {
    match space.0.checked_add(1) {
        Some(next) => space_prefix(Space(next)).to_vec(),
        None => vec![ROW_TAG + 1],
    }
}

fn escape(bytes: &[u8], out: &mut Vec<u8>) {
    let mut parts = bytes.split(|&byte| byte == 0);
    out.extend_from_slice(parts.next().unwrap_or_default());
    for part in parts {
        out.extend_from_slice(&ESCAPED_ZERO);
        out.extend_from_slice(part);
    }
}

/// Bytes without their escapes and, if an end of partition came, what stands behind it.
type Unescaped<'a> = (Cow<'a, [u8]>, Option<&'a [u8]>);

fn unescape(bytes: &[u8]) -> Option<Unescaped<'_>> {
    let mut owned = Vec::new();
    let mut rest = bytes;
    loop {
        let (plain, end) = match memchr(0, rest) {
            None => (rest, None),
            Some(at) => match *rest[at..].first_chunk()? {
                END_OF_PARTITION => (&rest[..at], Some(&rest[at + 2..])),
                ESCAPED_ZERO => {
                    owned.extend_from_slice(&rest[..=at]);
                    rest = &rest[at + 2..];
                    continue;
                }
                _ => return None,
            },
        };
        // An escape leaves at least its zero behind, so nothing owned means nothing escaped.
        if owned.is_empty() {
            return Some((Cow::Borrowed(plain), end));
        }
        owned.extend_from_slice(plain);
        return Some((Cow::Owned(owned), end));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Short, and of few bytes, so that keys often share what they begin with.
    fn part() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            prop::collection::vec(prop::sample::select(vec![0, 1, 2, b'a', 0xFE, 0xFF]), 0..6),
            prop::collection::vec(any::<u8>(), 0..20),
        ]
    }

    fn space() -> impl Strategy<Value = Space> {
        prop_oneof![0..3_u64, Just(255), Just(256), Just(u64::MAX - 1), Just(u64::MAX), any::<u64>()].prop_map(Space)
    }

    proptest! {
        #[test]
        fn keys_round_trip(space in space(), partition in part(), row in part()) {
            let key = encode_key(space, &partition, &row);
            let (found_space, found_partition, found_row) = decode_key(&key).expect("a key of a row");
            prop_assert_eq!(found_space, space);
            prop_assert_eq!(matches!(found_partition, Cow::Borrowed(_)), !partition.contains(&0));
            prop_assert_eq!(matches!(found_row, Cow::Borrowed(_)), !row.contains(&0));
            prop_assert_eq!(found_partition.as_ref(), &partition[..]);
            prop_assert_eq!(found_row.as_ref(), &row[..]);
        }

        #[test]
        fn keys_sort_as_their_parts(left in (space(), part(), part()), right in (space(), part(), part())) {
            let key = |(space, partition, row): &(Space, Vec<u8>, Vec<u8>)| encode_key(*space, partition, row);
            prop_assert_eq!(key(&left).cmp(&key(&right)), left.cmp(&right));
        }

        #[test]
        fn keys_of_a_partition_sort_as_their_rows(space in space(), partition in part(), left in part(), right in part()) {
            let key = |row| encode_key(space, &partition, row);
            prop_assert_eq!(key(&left).cmp(&key(&right)), left.cmp(&right));
        }

        #[test]
        fn a_space_holds_its_own_keys_only(space in space(), other in space(), partition in part(), row in part()) {
            let key = encode_key(other, &partition, &row);
            let inside = space_prefix(space).as_slice() <= key.as_slice() && key < space_end(space);
            prop_assert_eq!(inside, space == other);
        }

        #[test]
        fn positions_lie_between_rows(partition in part(), row in part(), other in (part(), part())) {
            let space = Space(1);
            let other_key = encode_key(space, &other.0, &other.1);
            let behind_row = encode_position(space, &Position::after_row(partition.clone(), row.clone()));
            prop_assert_eq!(other_key < behind_row, other <= (partition.clone(), row));
            let behind_partition = encode_position(space, &Position::after_partition(partition.clone()));
            prop_assert_eq!(other_key < behind_partition, other.0 <= partition);
        }

        #[test]
        fn decoding_takes_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Some((space, partition, row)) = decode_key(&bytes) {
                prop_assert_eq!(encode_key(space, &partition, &row), bytes);
            }
        }
    }

    #[test]
    fn bytes_are_as_documented() {
        let key = encode_key(Space(7), b"a\0b", b"r");
        assert_eq!(key, b"\x01\0\0\0\0\0\0\0\x07a\0\xFFb\0\x01r");
        assert_eq!(encode_key(Space(7), b"", b""), b"\x01\0\0\0\0\0\0\0\x07\0\x01");
    }

    #[test]
    fn what_is_no_key_is_not_decoded() {
        for bytes in [
            &b""[..],
            b"\x01\0\0\0\0\0\0\0",                   // too short for a space
            b"\x01\0\0\0\0\0\0\0\x07",               // no end of partition
            b"\x01\0\0\0\0\0\0\0\x07p",              // the same
            b"\x01\0\0\0\0\0\0\0\x07p\0",            // cut inside it
            b"\x01\0\0\0\0\0\0\0\x07p\0\x02r",       // neither an escape nor an end
            b"\x01\0\0\0\0\0\0\0\x07p\0\x01r\0",     // cut inside an escape
            b"\x01\0\0\0\0\0\0\0\x07p\0\x01r\0\x01", // two ends
            b"\0\0\0\0\0\0\0\0\x07p\0\x01r",         // another tag
        ] {
            assert_eq!(decode_key(bytes), None, "{bytes:02x?}");
        }
    }
}
