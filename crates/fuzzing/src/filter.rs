//! `$filter`: reading, printing, planning and evaluating.
//!
//! Two targets. `filter` takes the text of a filter. `filter_tree` makes a filter of its bytes and writes it down in its
//! own way, so that the parser is compared with what was meant. Both then look at rows that are made of the filter's own
//! literals, so that bounds are met and not only passed by:
//!
//! - what is printed reads back as the same filter;
//! - every row is judged as by the plain evaluation in [`naive`], which shares no code with the real one;
//! - walking the rows by the plan selects exactly the rows that the plain evaluation selects.

mod naive;
mod rows;
mod tree;

use crate::source::Source;
use partita_model::limits::FILTER_COMPARISONS_MAX;
use partita_odata::{Filter, Outline, Plan, PlanClass, Seek};
use rows::Row;

/// Takes a text as it stands in `$filter`.
pub fn filter(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match Filter::parse(text) {
        Ok(Some(filter)) => check(&filter),
        Ok(None) => assert!(text.trim_ascii().is_empty()),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Takes choices from which a filter is made.
pub fn filter_tree(data: &[u8]) {
    let mut source = Source(data);
    let filter = tree::filter(&mut source, 0);
    if filter.comparisons() > FILTER_COMPARISONS_MAX {
        return;
    }
    let mut text = String::new();
    tree::write(&mut text, &filter, &mut source);
    assert_eq!(Filter::parse(&text), Ok(Some(filter.clone())), "{text}");
    check(&filter);
}

fn check(filter: &Filter) {
    assert!(filter.comparisons() <= FILTER_COMPARISONS_MAX);
    let text = filter.to_string();
    assert_eq!(Filter::parse(&text).as_ref(), Ok(&Some(filter.clone())), "{text}");

    let rows = rows::of(filter);
    let mut wanted = Vec::with_capacity(rows.len());
    for row in &rows {
        let expect = naive::holds(filter, &|name| row.property(name));
        assert_eq!(filter.matches(&row.view()), Ok(expect), "{text} for {row:?}");
        wanted.push(expect);
    }
    check_plan(filter, &rows, &wanted);
    check_outline(filter, &rows, &wanted);
    for name in ["abc", "Tables1", "zzz"] {
        assert_eq!(filter.matches_table(name), naive::holds_for_table(filter, name), "{text} for {name}");
    }
}

/// Demands that the numbers of rows never deny what the filter affirms, of a row alone or among others.
fn check_outline(filter: &Filter, rows: &[Row], wanted: &[bool]) {
    let outline = Outline::of(filter);
    let number = |column: &str, row: &Row| Outline::number(column, &row.view()).expect("a record was encoded");
    let numbers: Vec<Vec<u64>> =
        outline.columns().iter().map(|column| rows.iter().map(|row| number(column, row)).collect()).collect();
    let may_match = |first: usize, count: usize| {
        outline.may_match(&numbers.iter().map(|column| &column[first..first + count]).collect::<Vec<_>>())
    };
    for (at, wanted) in wanted.chunks(64).enumerate() {
        let first = 64 * at;
        assert!(may_match(first, wanted.len()) || !wanted.contains(&true), "{filter} among rows");
        for (place, _) in wanted.iter().enumerate().filter(|(_, wanted)| **wanted) {
            assert!(may_match(first + place, 1), "{filter} for {:?}", rows[first + place]);
        }
    }
}

/// Reads the rows as the documentation of plans says, and demands what was found without a plan.
fn check_plan(filter: &Filter, rows: &[Row], wanted: &[bool]) {
    let plan = Plan::of(Some(filter));
    let (start, end) = (plan.start(), plan.end());
    let mut found = vec![false; rows.len()];
    let mut at = match &start {
        Some(start) => rows.partition_point(|row| row.place < *start),
        None => rows.len(),
    };
    while let Some(row) = rows.get(at).filter(|row| end.as_ref().is_none_or(|end| row.place < *end)) {
        match plan.seek(&row.place.partition, &row.place.row) {
            Seek::Here => {
                found[at] = plan.is_exact() || wanted[at];
                at += 1;
            }
            Seek::To(place) => {
                assert!(place > row.place, "a plan goes back from {row:?} to {place:?}");
                at = rows.partition_point(|row| row.place < place);
            }
            Seek::End => break,
        }
    }
    for ((row, found), wanted) in rows.iter().zip(found).zip(wanted) {
        assert_eq!(found, *wanted, "the plan of {filter} for {row:?}");
    }
    if let Some(points) = plan.points() {
        let points: Vec<_> = points.collect();
        assert!(points.is_sorted(), "the points of {filter} are not in order");
        for row in rows {
            let is_point = points.binary_search(&(&row.place.partition, &row.place.row)).is_ok();
            assert_eq!(is_point, plan.seek(&row.place.partition, &row.place.row) == Seek::Here, "{filter} for {row:?}");
        }
    }
    assert_eq!(start.is_none(), plan.class() == PlanClass::Empty);
}
