//! Keys: their text, their ordered bytes, the keys of the store, and positions between rows.
//!
//! Encoding keeps order, decoding gives back what was encoded, and what can be decoded at all was encoded.

use crate::source::Source;
use partita_auth::{KeyBound, KeyRange};
use partita_model::{PartitionKey, Position, RowKey};
use partita_store::{Space, decode_key, encode_key, encode_position, space_end, space_prefix};

/// Takes a key of the store; then two spaces, two partitions and two rows.
pub fn key(data: &[u8]) {
    if let Some((space, partition, row)) = decode_key(data) {
        assert_eq!(encode_key(space, &partition, &row), data);
    }
    if let Some(text) = PartitionKey::from_ordered(data) {
        assert_eq!(PartitionKey::to_ordered(&text), data);
    }
    let mut source = Source(data);
    let mut space = || Space(u64::from_be_bytes(source.array()));
    let spaces = [space(), space()];
    let mut pair = || (source.counted(), source.counted());
    let pairs = [pair(), pair()];
    check_store_keys(spaces, pairs);
    check_texts(pairs.map(|(a, b)| (String::from_utf8_lossy(a).into_owned(), String::from_utf8_lossy(b).into_owned())));
}

fn check_store_keys(spaces: [Space; 2], pairs: [(&[u8], &[u8]); 2]) {
    let rows = [(spaces[0], pairs[0].0, pairs[0].1), (spaces[1], pairs[1].0, pairs[1].1)];
    let keys = rows.map(|(space, partition, row)| encode_key(space, partition, row));
    for ((space, partition, row), key) in rows.iter().zip(&keys) {
        let (found_space, found_partition, found_row) = decode_key(key).expect("a key was encoded");
        assert_eq!((found_space, &*found_partition, &*found_row), (*space, *partition, *row));
        assert!(space_prefix(*space).as_slice() <= key.as_slice() && *key < space_end(*space));
    }
    assert_eq!(keys[0].cmp(&keys[1]), rows[0].cmp(&rows[1]));

    // Positions lie where they say, in one space.
    let [(partition, row), other] = pairs;
    let other_key = encode_key(spaces[0], other.0, other.1);
    let at = encode_position(spaces[0], &Position::new(partition, row));
    let behind_row = encode_position(spaces[0], &Position::after_row(partition, row));
    let behind_partition = encode_position(spaces[0], &Position::after_partition(partition));
    assert_eq!(other_key < at, other < (partition, row));
    assert_eq!(other_key < behind_row, other <= (partition, row));
    assert_eq!(other_key < behind_partition, other.0 <= partition);
}

fn check_texts(pairs: [(String, String); 2]) {
    let units = |text: &str| text.encode_utf16().collect::<Vec<_>>();
    for (a, b) in [(&pairs[0].0, &pairs[1].0), (&pairs[0].1, &pairs[1].1)] {
        let (a_bytes, b_bytes) = (RowKey::to_ordered(a), RowKey::to_ordered(b));
        assert_eq!(a_bytes.cmp(&b_bytes), units(a).cmp(&units(b)));
        assert_eq!(RowKey::from_ordered(&a_bytes).as_deref(), Some(a.as_str()));
        let is_key = units(a).len() <= 1024
            && !a.chars().any(|c| matches!(c, '/' | '\\' | '#' | '?' | '\0'..='\u{1F}' | '\u{7F}'..='\u{9F}'));
        assert_eq!(PartitionKey::parse(a).is_ok(), is_key, "{a:?}");
    }
    check_range(&pairs[0], &pairs[1]);
}

/// The range of a signature that starts with one pair, and one that ends with it, hold the other as the order says.
fn check_range(bound: &(String, String), pair: &(String, String)) {
    let units =
        |(a, b): &(String, String)| (a.encode_utf16().collect::<Vec<_>>(), b.encode_utf16().collect::<Vec<_>>());
    let (bound_units, pair_units) = (units(bound), units(pair));
    for row_key in [None, Some(bound.1.as_str())] {
        let end = Some(KeyBound { partition_key: &bound.0, row_key });
        let (from, to) = (KeyRange::new(end, None), KeyRange::new(None, end));
        let order = match row_key {
            None => pair_units.0.cmp(&bound_units.0),
            Some(_) => pair_units.cmp(&bound_units),
        };
        assert_eq!(from.contains(&pair.0, &pair.1), order.is_ge());
        // A NUL is in no key. With one in it, a key could lie between a bound and the place just behind it.
        if !pair.0.contains('\0') && !pair.1.contains('\0') {
            assert_eq!(to.contains(&pair.0, &pair.1), order.is_le());
        }
    }
}
