//! The rows a table signature reaches (`spk`, `srk`, `epk`, `erk`).
//!
//! Both ends are pairs of keys and are compared as pairs: a row is in the range if it does not come before the start
//! and not after the end, whatever its RowKey is in the partitions between. This is not a range of PartitionKeys and
//! another of RowKeys.
//!
//! ```text
//! spk=a srk=5            epk=c erk=2
//! (a,4) [(a,5) (a,9) (b,0) (b,9) (c,2)] (c,3)
//! ```
//!
//! The ends are kept as positions in the order of rows, because that is what a scan of the store is cut with.

use partita_model::{PartitionKey, Position, RowKey};

/// One end of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyBound<'a> {
    /// The partition.
    pub partition_key: &'a str,
    /// The row in it. Without it the whole partition is inside.
    pub row_key: Option<&'a str>,
}

/// A range of rows, both ends inclusive and each optional.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyRange {
    start: Option<Position>,
    end: Option<Position>,
}

impl KeyRange {
    /// The rows from `start` through `end`.
    pub fn new(start: Option<KeyBound<'_>>, end: Option<KeyBound<'_>>) -> KeyRange {
        let start = start.map(|bound| {
            let row = RowKey::to_ordered(bound.row_key.unwrap_or_default());
            Position::new(PartitionKey::to_ordered(bound.partition_key), row)
        });
        let end = end.map(|bound| {
            let partition = PartitionKey::to_ordered(bound.partition_key);
            match bound.row_key {
                Some(row_key) => Position::after_row(partition, RowKey::to_ordered(row_key)),
                None => Position::after_partition(partition),
            }
        });
        KeyRange { start, end }
    }

    /// Where the first row of the range may be; `None` if it starts with the table.
    pub fn start(&self) -> Option<Position> {
        self.start.clone()
    }

    /// Just behind the last row of the range; `None` if it ends with the table.
    pub fn end(&self) -> Option<Position> {
        self.end.clone()
    }

    /// Whether every row is in the range.
    pub fn is_unbounded(&self) -> bool {
        self.start.is_none() && self.end.is_none()
    }

    /// Whether the row with these keys is in the range.
    pub fn contains(&self, partition_key: &str, row_key: &str) -> bool {
        let (partition, row) = (PartitionKey::to_ordered(partition_key), RowKey::to_ordered(row_key));
        let place = (partition.as_ref(), row.as_ref());
        self.start.as_ref().is_none_or(|start| place >= (start.partition.as_slice(), start.row.as_slice()))
            && self.end.as_ref().is_none_or(|end| place < (end.partition.as_slice(), end.row.as_slice()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Bound<'a> = Option<(&'a str, Option<&'a str>)>;

    fn range(start: Bound<'_>, end: Bound<'_>) -> KeyRange {
        let bound = |(partition_key, row_key)| KeyBound { partition_key, row_key };
        KeyRange::new(start.map(bound), end.map(bound))
    }

    #[test]
    fn borders() {
        let bmp_end = "\u{FFFD}";
        let beyond = "\u{1F600}";
        for (start, end, inside, outside) in [
            (None, None, &[("", ""), ("a", ""), ("", "a"), (beyond, bmp_end)][..], &[][..]),
            (
                Some(("a", Some("5"))),
                Some(("c", Some("2"))),
                &[("a", "5"), ("a", "50"), ("a", "9"), ("b", ""), ("b", "9"), ("c", ""), ("c", "2"), ("a0", "0")],
                &[("a", "4"), ("a", ""), ("", "9"), ("A", "9"), ("c", "20"), ("c", "3"), ("c0", ""), ("d", "0")],
            ),
            (Some(("a", None)), None, &[("a", ""), ("a", "x"), ("b", "")], &[("", "z"), ("Z", "z")]),
            (None, Some(("a", None)), &[("", ""), ("a", ""), ("a", bmp_end), ("a", beyond)], &[("a0", ""), ("b", "")]),
            (None, Some(("a", Some(""))), &[("", "z"), ("a", "")], &[("a", "0")]),
            (None, Some(("", None)), &[("", ""), ("", "z")], &[("a", ""), (" ", "")]),
            (None, Some(("", Some(""))), &[("", "")], &[("", "a"), ("a", "")]),
            (Some(("", Some("1"))), None, &[("", "1"), ("a", "")], &[("", ""), ("", "0")]),
            // The order is that of UTF-16 code units: a pair of surrogates comes before U+E000 and what follows.
            (Some((beyond, None)), Some((bmp_end, None)), &[(beyond, ""), ("\u{E000}", ""), (bmp_end, "z")], &[]),
            (Some((bmp_end, None)), None, &[(bmp_end, "")], &[(beyond, ""), ("\u{10FFFF}", ""), ("\u{D7FF}", "")]),
            (None, Some(("a", Some(beyond))), &[("a", "\u{D7FF}"), ("a", beyond)], &[("a", bmp_end)]),
            (Some(("b", None)), Some(("a", None)), &[], &[("a", "a"), ("b", "b"), ("aa", "")]),
        ] {
            let range = range(start, end);
            for (partition, row) in inside {
                assert!(range.contains(partition, row), "({partition:?}, {row:?}) in {start:?} to {end:?}");
            }
            for (partition, row) in outside {
                assert!(!range.contains(partition, row), "({partition:?}, {row:?}) not in {start:?} to {end:?}");
            }
        }
    }

    #[test]
    fn positions() {
        let whole = range(Some(("a", None)), Some(("b", None)));
        assert_eq!(whole.start(), Some(Position::new("a", "")));
        assert_eq!(whole.end(), Some(Position::after_partition("b")));
        let rows = range(Some(("a", Some("1"))), Some(("b", Some("9"))));
        assert_eq!(rows.start(), Some(Position::new("a", "1")));
        assert_eq!(rows.end(), Some(Position::after_row("b", "9")));
        assert_eq!((KeyRange::default().start(), KeyRange::default().end()), (None, None));
        assert!(KeyRange::default().is_unbounded() && !rows.is_unbounded());
    }

    fn key() -> impl Strategy<Value = String> {
        // Few characters from both sides of each border, so that equal keys and prefixes are common. A key has no
        // control characters.
        let characters = vec![' ', 'a', 'b', '\u{E9}', '\u{D7FF}', '\u{E000}', '\u{FFFD}', '\u{10000}', '\u{10FFFF}'];
        proptest::collection::vec(proptest::sample::select(characters), 0..3).prop_map(|key| key.into_iter().collect())
    }

    fn bound() -> impl Strategy<Value = Option<(String, Option<String>)>> {
        proptest::option::of((key(), proptest::option::of(key())))
    }

    proptest! {
        #[test]
        fn the_positions_say_the_same(start in bound(), end in bound(), partition in key(), row in key()) {
            fn borrowed(bound: &Option<(String, Option<String>)>) -> Bound<'_> {
                bound.as_ref().map(|(partition, row)| (partition.as_str(), row.as_deref()))
            }
            let range = range(borrowed(&start), borrowed(&end));
            let place = Position::new(PartitionKey::to_ordered(&partition), RowKey::to_ordered(&row));
            let between = range.start().is_none_or(|start| place >= start) && range.end().is_none_or(|end| place < end);
            prop_assert_eq!(range.contains(&partition, &row), between);

            // The rule as it is documented, in UTF-16 code units.
            let units = |text: &str| text.encode_utf16().collect::<Vec<_>>();
            let (partition, row) = (units(&partition), units(&row));
            let after_start = start.is_none_or(|(start, start_row)| {
                partition > units(&start)
                    || partition == units(&start) && start_row.is_none_or(|start_row| row >= units(&start_row))
            });
            let before_end = end.is_none_or(|(end, end_row)| {
                partition < units(&end) || partition == units(&end) && end_row.is_none_or(|end_row| row <= units(&end_row))
            });
            prop_assert_eq!(between, after_start && before_end);
        }
    }
}
