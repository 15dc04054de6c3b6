//! Which copy of the marks a partition asks.

use super::*;

/// Each copy is asked by its share of these partitions, give or take a half.
#[track_caller]
fn spreads(copy_of: impl Fn(u64) -> i64) {
    const EACH: i64 = 100;
    let mut counts = [0; COPIES as usize];
    for number in 0..COPIES * EACH {
        counts[copy_of(number as u64) as usize] += 1;
    }
    assert!(counts.iter().all(|count| (EACH / 2..EACH * 3 / 2).contains(count)), "{counts:?}");
}

#[test]
fn partitions_spread_over_all_copies() {
    let table = space(Space(7));
    spreads(|number| copy(table, format!("partition{number}").as_bytes()));
    spreads(|number| copy(table, format!("2026-11-{:02}T{:02}:00", number % 30, number / 30).as_bytes()));
    spreads(|number| copy(table, &number.to_be_bytes()));
    spreads(|number| copy(table, &number.to_le_bytes()));
}

/// A scan of a whole table begins at the empty partition.
#[test]
fn tables_spread_over_all_copies() {
    spreads(|number| copy(space(Space(number)), b""));
}

/// Nodes of all versions ask the same copy for a partition.
#[test]
fn the_copy_of_a_partition_never_changes() {
    let asked = [(0, ""), (1, ""), (7, "p"), (7, "q"), (u64::MAX, "a longer partition key")]
        .map(|(number, partition)| copy(space(Space(number)), partition.as_bytes()));
    assert_eq!(asked, [49, 62, 33, 20, 9]);
}

/// The number of copies is written out where a statement cannot be put together.
#[test]
fn a_drop_marks_as_many_copies_as_there_are() {
    assert!(BATCH.contains(&format!("generate_series(0, {})", COPIES - 1)));
}

/// YugabyteDB spreads a key by hash unless it is told otherwise, and to read a range of it is then to read all of it.
#[test]
fn keys_and_indexes_say_their_order_on_yugabyte() {
    for step in Engine::Yugabyte.steps() {
        let keys = step.split("PRIMARY KEY (").skip(1);
        let indexes = step.split("CREATE INDEX").skip(1).filter_map(|index| Some(index.split_once('(')?.1));
        let columns: Vec<&str> = keys.chain(indexes).filter_map(|key| key.split(')').next()).collect();
        assert!(!columns.is_empty());
        for column in columns.iter().flat_map(|columns| columns.split(", ")) {
            assert!(column.ends_with(" ASC") || column == "copy HASH", "{column}");
        }
    }
}
