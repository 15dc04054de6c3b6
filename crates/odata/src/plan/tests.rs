//! Plans: the class of each filter, where to read, and the promise that no matching row is left out.

use super::*;
use crate::samples::{Row, filter_of_rows, key, key_comparison, positive_tree, rows};
use proptest::prelude::*;
use std::fmt::Write;

fn plan(text: &str) -> Plan {
    Plan::of(Filter::parse(text).unwrap_or_else(|error| panic!("{text}: {error}")).as_ref())
}

#[track_caller]
fn check(text: &str, class: PlanClass, azure_class: PlanClass) {
    let plan = plan(text);
    assert_eq!((plan.class(), plan.azure_class()), (class, azure_class), "{text}");
}

#[test]
fn classes() {
    use PlanClass::*;
    check("", TableScan, TableScan);
    check("Age gt 3", TableScan, TableScan);
    check("PartitionKey eq 'p' and RowKey eq 'r'", Point, Point);
    check("RowKey eq 'r' and 'p' eq PartitionKey and Age gt 3", Point, Point);
    check("PartitionKey eq 'p' and RowKey ge 'a' and RowKey lt 'b'", Range, Range);
    check("PartitionKey eq 'p' and RowKey gt 'a'", Range, Range);
    check("PartitionKey eq 'p'", PartitionScan, PartitionScan);
    check("PartitionKey eq 'p' and (Age gt 3 or Age lt 1)", PartitionScan, PartitionScan);
    check("PartitionKey ge 'p' and PartitionKey lt 'q'", PartitionRangeScan, PartitionRangeScan);
    check("PartitionKey gt 'p'", PartitionRangeScan, PartitionRangeScan);
    check("PartitionKey eq 'p' and (RowKey eq 'a' or RowKey eq 'b')", MultiPoint, PartitionScan);
    check("PartitionKey eq 'p' and (RowKey eq 'a' or RowKey gt 'b')", MultiRange, PartitionScan);
    check("(PartitionKey eq 'x' and RowKey eq '1') or (PartitionKey eq 'y' and RowKey eq '2')", MultiPoint, TableScan);
    check("PartitionKey eq 'x' or PartitionKey eq 'y'", MultiRange, TableScan);
    check("PartitionKey lt 'x' or PartitionKey gt 'y'", MultiRange, TableScan);
    check("RowKey eq 'r'", SkipScan, TableScan);
    check("RowKey eq 'r' and PartitionKey gt 'p'", SkipScan, PartitionRangeScan);
    check("RowKey eq 'r' or PartitionKey eq 'p'", SkipScan, TableScan);
    check("RowKey eq 'r' or Age gt 3", TableScan, TableScan);
    check("PartitionKey eq 'p' or Age gt 3", TableScan, TableScan);

    // Neither `not` nor `ne` narrows, nor does a name in another case.
    check("PartitionKey ne 'p'", TableScan, TableScan);
    check("not (PartitionKey gt 'p')", TableScan, TableScan);
    check("partitionkey eq 'p' and ROWKEY eq 'r'", TableScan, TableScan);
    check("PartitionKey eq 'p' and RowKey ne 'r'", PartitionScan, PartitionScan);

    // Alternatives that meet are one.
    check("PartitionKey eq 'p' and (RowKey eq 'a' or RowKey eq 'a')", Point, PartitionScan);
    check("PartitionKey eq 'p' and (RowKey ge 'a' or RowKey lt 'a')", PartitionScan, PartitionScan);
    check("PartitionKey ge 'p' or PartitionKey lt 'p'", TableScan, TableScan);
    check("PartitionKey ge 'p' and PartitionKey le 'p' and RowKey le 'r' and RowKey ge 'r'", Point, PartitionRangeScan);

    // No row at all.
    check("false", Empty, TableScan);
    check("PartitionKey eq 'a' and PartitionKey eq 'b'", Empty, PartitionScan);
    check("RowKey lt ''", Empty, TableScan);
    check("RowKey", Empty, TableScan);
    check("PartitionKey eq 5", Empty, TableScan);
    check("PartitionKey gt 5 or RowKey ge true", Empty, TableScan);
    check("PartitionKey lt 5 and RowKey ne 5", TableScan, TableScan);
    check("PartitionKey eq 'p' and RowKey le 5", PartitionScan, PartitionScan);
}

#[test]
fn exact() {
    for (text, expect) in [
        ("", true),
        ("PartitionKey eq 'p' and RowKey ge 'a' and RowKey lt 'b'", true),
        ("PartitionKey eq 'p' or RowKey ne 5 and true", true),
        ("PartitionKey eq 'p' or RowKey and false", true),
        ("PartitionKey ne 'p'", false),
        ("not (PartitionKey eq 'p')", false),
        ("PartitionKey eq 'p' and Age gt 3", false),
        ("PartitionKey eq 'p' or Active", false),
    ] {
        assert_eq!(plan(text).is_exact(), expect, "{text}");
    }
}

#[test]
fn names_of_classes() {
    assert_eq!(plan("").class().name(), "table_scan");
    assert_eq!(plan("RowKey eq 'r'").class().name(), "skip_scan");
    assert_eq!(plan("RowKey eq 'r'").azure_class().name(), "table_scan");
    assert_eq!(plan("PartitionKey ge 'r'").class().name(), "partition_range_scan");
}

#[test]
fn start_and_end() {
    let check = |text: &str, start: Option<(&str, &str)>, end: Option<(&str, &str)>| {
        let position = |(partition, row): (&str, &str)| Position::new(partition, row);
        let plan = plan(text);
        assert_eq!((plan.start(), plan.end()), (start.map(position), end.map(position)), "{text}");
    };
    check("", Some(("", "")), None);
    check("false", None, Some(("", "")));
    check("PartitionKey eq 'p' and RowKey eq 'r'", Some(("p", "r")), Some(("p", "r\0")));
    check("PartitionKey eq 'p' and RowKey ge 'r'", Some(("p", "r")), Some(("p\0", "")));
    check("PartitionKey eq 'p' and RowKey lt 'r'", Some(("p", "")), Some(("p", "r")));
    check("PartitionKey gt 'p' and PartitionKey le 'q'", Some(("p\0", "")), Some(("q\0", "")));
    check("PartitionKey ge 'p' and RowKey gt 'r'", Some(("p", "r\0")), None);
    check("PartitionKey lt 'p' and RowKey lt 'r'", Some(("", "")), Some(("p", "")));
    check(
        "(PartitionKey eq 'y' and RowKey eq '2') or (PartitionKey eq 'x' and RowKey eq '9')",
        Some(("x", "9")),
        Some(("y", "2\0")),
    );
}

#[test]
fn seeks() {
    let check = |text: &str, (partition, row): (&str, &str), expect: Option<(&str, &str)>| {
        let expect = expect.map_or(Seek::End, |(partition, row)| Seek::To(Position::new(partition, row)));
        assert_eq!(plan(text).seek(partition.as_bytes(), row.as_bytes()), expect, "{text}");
    };
    let here = |text: &str, (partition, row): (&str, &str)| {
        assert_eq!(plan(text).seek(partition.as_bytes(), row.as_bytes()), Seek::Here, "{text}");
    };
    let points =
        "(PartitionKey eq 'x' and RowKey eq '1') or (PartitionKey eq 'y' and (RowKey eq '2' or RowKey eq '4'))";
    check(points, ("", ""), Some(("x", "1")));
    here(points, ("x", "1"));
    check(points, ("x", "11"), Some(("y", "2")));
    check(points, ("xx", ""), Some(("y", "2")));
    check(points, ("y", ""), Some(("y", "2")));
    here(points, ("y", "2"));
    check(points, ("y", "3"), Some(("y", "4")));
    check(points, ("y", "5"), None);
    check(points, ("z", ""), None);

    let skip = "PartitionKey ge 'b' and PartitionKey lt 'd' and RowKey ge '3' and RowKey le '5'";
    check(skip, ("a", "4"), Some(("b", "3")));
    check(skip, ("b", "2"), Some(("b", "3")));
    here(skip, ("b", "5"));
    check(skip, ("b", "51"), Some(("b\0", "")));
    check(skip, ("b\0", ""), Some(("b\0", "3")));
    check(skip, ("cz", "6"), Some(("cz\0", "")));
    check(skip, ("d", "4"), None);

    // One partition has its own rows among many that share theirs.
    let mixed = "RowKey eq '3' or PartitionKey eq 'p' and RowKey eq '5'";
    here(mixed, ("p", "3"));
    here(mixed, ("p", "5"));
    check(mixed, ("p", "4"), Some(("p", "5")));
    check(mixed, ("p", "6"), Some(("p\0", "3")));
    check(mixed, ("q", "4"), Some(("q\0", "")));
    check("PartitionKey le 'p' and RowKey eq '5'", ("p", "6"), None);
}

#[test]
fn points() {
    let points = |text: &str| {
        let plan = plan(text);
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        plan.points().map(|points| points.map(|(a, b)| text(a) + "/" + &text(b)).collect::<Vec<_>>())
    };
    assert_eq!(points("PartitionKey eq 'p' and RowKey eq 'r'").unwrap(), ["p/r"]);
    assert_eq!(
        points("(RowKey eq '2' or RowKey eq '1') and (PartitionKey eq 'b' or PartitionKey eq 'a')").unwrap(),
        ["a/1", "a/2", "b/1", "b/2"]
    );
    assert_eq!(points("PartitionKey eq 'p'"), None);
    assert_eq!(points("RowKey eq 'p'"), None);
}

/// The rows that a reader visits, as their numbers.
fn walk(plan: &Plan, rows: &[Row]) -> Vec<usize> {
    let places: Vec<(Vec<u8>, Vec<u8>)> = rows.iter().map(Row::place).collect();
    let first_at = |position: &Position| {
        places.partition_point(|(partition, row)| (partition, row) < (&position.partition, &position.row))
    };
    let Some(start) = plan.start() else { return vec![] };
    let end = plan.end().map_or(places.len(), |end| first_at(&end));
    let mut visited = vec![];
    let mut at = first_at(&start);
    while at < end {
        let (partition, row) = &places[at];
        match plan.seek(partition, row) {
            Seek::Here => {
                visited.push(at);
                at += 1;
            }
            Seek::To(position) => {
                assert!((&position.partition, &position.row) > (partition, row), "the reader never goes back");
                at = first_at(&position);
            }
            Seek::End => break,
        }
    }
    visited
}

fn matching(filter: &Filter, rows: &[Row]) -> Vec<usize> {
    (0..rows.len()).filter(|&at| rows[at].matches(filter)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn every_matching_row_is_visited(filter in filter_of_rows(), rows in rows()) {
        let plan = Plan::of(Some(&filter));
        let visited = walk(&plan, &rows);
        let matching = matching(&filter, &rows);
        prop_assert!(matching.iter().all(|row| visited.contains(row)), "{visited:?} {matching:?}");
        prop_assert!(!plan.is_exact() || visited == matching, "{visited:?} {matching:?}");
    }

    #[test]
    fn so_it_is_when_the_budget_runs_out(filter in filter_of_rows(), rows in rows(), steps in 0usize..30) {
        let plan = Plan::within(Some(&filter), Budget::of(steps));
        let visited = walk(&plan, &rows);
        let matching = matching(&filter, &rows);
        prop_assert!(matching.iter().all(|row| visited.contains(row)), "{visited:?} {matching:?}");
        prop_assert!(!plan.is_exact() || visited == matching, "{visited:?} {matching:?}");
    }

    #[test]
    fn filters_of_keys_alone_visit_nothing_else(
        filter in positive_tree(key_comparison(vec![Op::Eq, Op::Gt, Op::Ge, Op::Lt, Op::Le])),
        rows in rows(),
    ) {
        let plan = Plan::of(Some(&filter));
        prop_assert!(plan.is_exact());
        prop_assert_eq!(walk(&plan, &rows), matching(&filter, &rows));
    }

    #[test]
    fn conjunctions_of_keys_visit_nothing_else(
        terms in proptest::collection::vec(key_comparison(vec![Op::Eq, Op::Gt, Op::Ge, Op::Lt, Op::Le]), 1..6),
        rows in rows(),
    ) {
        let filter = Filter::And(terms);
        prop_assert_eq!(walk(&Plan::of(Some(&filter)), &rows), matching(&filter, &rows));
    }

    #[test]
    fn any_place_may_be_asked_for(filter in filter_of_rows(), partition in key(), row in key(), behind in any::<bool>()) {
        let plan = Plan::of(Some(&filter));
        let mut place = Position::new(PartitionKey::to_ordered(&partition), PartitionKey::to_ordered(&row));
        if behind {
            place = Position::after_partition(place.partition);
        }
        match plan.seek(&place.partition, &place.row) {
            Seek::Here => {
                prop_assert!(plan.start().is_some_and(|start| start <= place));
                prop_assert!(plan.end().is_none_or(|end| place < end));
            }
            Seek::To(next) => prop_assert!(next > place && plan.end().is_none_or(|end| next < end)),
            Seek::End => {}
        }
        match plan.seek(b"", b"") {
            Seek::Here => prop_assert_eq!(plan.start(), Some(Position::default())),
            Seek::To(next) => prop_assert_eq!(plan.start(), Some(next)),
            Seek::End => prop_assert_eq!(plan.start(), None),
        }
    }
}

/// As many alternatives as a filter may have, in an order that suits nobody.
#[test]
fn many_points() {
    let mut text = String::new();
    for n in 0..1000 {
        let n = n * 7919 % 1000;
        write!(text, "{}(PartitionKey eq 'p{n}' and RowKey eq 'r{n}')", if text.is_empty() { "" } else { " or " })
            .unwrap();
    }
    assert_eq!(plan(&text).points().expect("only points").count(), 1000);

    let rows: Vec<String> = (0..1999).map(|n| format!("RowKey eq 'r{}'", n * 7919 % 1999)).collect();
    let plan = plan(&format!("PartitionKey eq 'p' and ({})", rows.join(" or ")));
    assert_eq!(plan.points().expect("only points").count(), 1999);
    assert_eq!(plan.seek(b"p", b"r1000"), Seek::Here);
    assert_eq!(plan.seek(b"p", b"r10000"), Seek::To(Position::new("p", "r1001")));
}

/// A thousand partitions by a thousand rows are a million points, which share one list of rows.
#[test]
fn cross_product() {
    let any = |name: &str| (0..1000).map(|n| format!("{name} eq '{n}'")).collect::<Vec<_>>().join(" or ");
    let plan = plan(&format!("({}) and ({})", any("PartitionKey"), any("RowKey")));
    assert_eq!(plan.class(), PlanClass::MultiPoint);
    assert_eq!(plan.points().unwrap().count(), 1_000_000);
}

/// Each partition range overlaps all that follow it, so that exact sets would have half a million pieces. The plan may
/// be wider, but stays small and leaves nothing out.
#[test]
fn overlapping_ranges_cost_a_bounded_amount() {
    let terms: Vec<String> =
        (0..1000).map(|n| format!("(PartitionKey gt '{n:03}' and RowKey eq '{:03}')", n * 7919 % 1000)).collect();
    let filter = Filter::parse(&terms.join(" or ")).unwrap().unwrap();
    let plan = Plan::of(Some(&filter));
    assert!(!plan.is_exact());
    let pieces: usize = plan.keys.pieces().iter().map(|piece| piece.value.pieces().len()).sum();
    assert!(pieces < 1 << 17, "{pieces}");
    for n in (0..1000).step_by(37) {
        for m in (0..1000).step_by(41) {
            let row = Row::new(&format!("{n:03}"), &format!("{m:03}"), &[]);
            let (partition, row_key) = row.place();
            assert!(!row.matches(&filter) || plan.seek(&partition, &row_key) == Seek::Here, "{row:?}");
        }
    }
}

/// Alternating `and` and `or` sweeps the whole set again on each level.
#[test]
fn nesting_costs_a_bounded_amount() {
    let open: String = (0..500).map(|n| format!("PartitionKey gt '{n:03}' and (RowKey eq '{n:03}' or ")).collect();
    let text = format!("{open}PartitionKey eq 'x'{}", ")".repeat(500));
    let filter = Filter::parse(&text).unwrap().unwrap();
    let plan = Plan::of(Some(&filter));
    for n in 0..500 {
        let row = Row::new("5", &format!("{n:03}"), &[]);
        let (partition, row_key) = row.place();
        assert!(!row.matches(&filter) || plan.seek(&partition, &row_key) == Seek::Here, "{row:?}");
    }
}
