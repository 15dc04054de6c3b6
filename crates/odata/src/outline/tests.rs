//! Numbers never deny what the filter affirms, and deny most of what it does not.

use super::*;
use crate::samples::{Row, literal, op, tree};
use partita_model::{Guid, Property, Ticks, Value};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// Whether the outline lets a row pass.
fn may_match(filter: &Filter, rows: &[Row]) -> bool {
    let outline = Outline::of(filter);
    let numbers: Vec<Vec<u64>> = outline.columns().iter().map(|column| numbers(column, rows)).collect();
    outline.may_match(&numbers.iter().map(Vec::as_slice).collect::<Vec<_>>())
}

fn numbers(column: &str, rows: &[Row]) -> Vec<u64> {
    rows.iter().map(|row| Outline::number(column, &row.view()).expect("a record was encoded")).collect()
}

/// Values that often are equal, or beside one another, across types too.
fn value() -> impl Strategy<Value = Value> {
    let whole = select(vec![0, 1, -1, 1 << 53, (1 << 53) + 1, i64::MAX, i64::MAX - 1, i64::MIN]);
    prop_oneof![
        4 => literal(),
        1 => whole.clone().prop_map(Value::Int64),
        1 => whole.prop_map(|whole| Value::Double(whole as f64)),
        1 => (-1..2).prop_map(Value::Int32),
        1 => "(abcdefg|\u{E001}|\u{1F600}){0,3}[ab]{0,2}".prop_map(Value::String),
        1 => vec(select(vec![0, 1, 255]), 0..10).prop_map(Value::Binary),
        1 => (0..3_u8).prop_map(|last| Value::Guid(Guid([0, 0, 0, 0, 0, 0, 0, last, 0, 0, 0, 0, 0, 0, 0, last]))),
        1 => (0..9_u64).prop_map(|ticks| Value::DateTime(Ticks(Ticks::MAX.0 - ticks))),
    ]
}

fn filter() -> impl Strategy<Value = Filter> {
    let property = || select(vec!["A", "B", "Timestamp", "RowKey"]).prop_map(str::to_owned);
    tree(prop_oneof![
        12 => (property(), op(), value())
            .prop_map(|(property, op, literal)| Filter::Compare { property, op, literal }),
        1 => any::<bool>().prop_map(Filter::Boolean),
        1 => property().prop_map(Filter::Property),
    ])
}

fn rows() -> impl Strategy<Value = Vec<Row>> {
    let properties = (prop::option::of(value()), prop::option::of(value())).prop_map(|(a, b)| {
        let named = [("A", a), ("B", b)].into_iter();
        named.filter_map(|(name, value)| Some(Property::from((name, value?)))).collect::<Vec<_>>()
    });
    vec(properties.prop_map(|properties| Row::new("p", "r", &properties)), 1..=64)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn what_matches_may_match(filter in filter(), rows in rows()) {
        for row in rows.iter().filter(|row| row.matches(&filter)) {
            prop_assert!(may_match(&filter, std::slice::from_ref(row)), "{filter} alone");
        }
        if rows.iter().any(|row| row.matches(&filter)) {
            prop_assert!(may_match(&filter, &rows), "{filter} among others");
        }
    }
}

/// Asserts that the outline lets pass those of the rows that match and no other.
#[track_caller]
fn tells(filter: &str, values: &[Option<Value>]) {
    let parsed = Filter::parse(filter).unwrap().unwrap();
    for value in values {
        let property = value.clone().map(|value| Property::from(("P", value)));
        let row = Row::new("p", "r", property.as_slice());
        assert_eq!(may_match(&parsed, std::slice::from_ref(&row)), row.matches(&parsed), "{filter}: {value:?}");
    }
}

#[test]
fn what_does_not_match_is_told() {
    let text = |text: &str| Some(Value::String(text.to_owned()));
    let numbers = [None, Some(Value::Int32(5)), Some(Value::Int64(6)), Some(Value::Double(7.5)), text("5")];
    for filter in ["P eq 5", "P gt 6", "P ge 7.5", "P lt 5", "P ne 5", "P eq 5 or P eq 7.5", "P ge 5 and P lt 6.5", "P"]
    {
        // Numbers do not tell `gt` from `ge`, nor what is not equal.
        let values: Vec<_> = match filter {
            "P gt 6" => numbers.iter().filter(|value| **value != Some(Value::Int64(6))).cloned().collect(),
            "P lt 5" | "P ne 5" => numbers.iter().filter(|value| **value != Some(Value::Int32(5))).cloned().collect(),
            _ => numbers.to_vec(),
        };
        tells(filter, &values);
    }
    tells("P eq 'customer-0001'", &[text("customer-0001"), text("customer-0002"), text(""), None]);
    tells("P ge 'b' and P lt 'c'", &[text("a"), text("b"), text("bb"), text("d"), None, Some(Value::Boolean(true))]);
    tells("P eq true or P eq false", &[Some(Value::Boolean(true)), Some(Value::Int32(1)), None]);
    tells("P", &[Some(Value::Boolean(true)), Some(Value::Boolean(false)), None]);
    tells("false and P eq 1", &[Some(Value::Int32(1))]);
}

#[test]
fn columns_are_those_of_comparisons() {
    let columns = |filter: &str| -> Vec<String> {
        let outline = Outline::of(&Filter::parse(filter).unwrap().unwrap());
        outline.columns().iter().map(|column| column.to_string()).collect()
    };
    assert_eq!(columns("Age gt 5 and Name eq 'Ann' and Age lt 9"), ["<Age", "=Name"]);
    assert_eq!(columns("Name ge 'A' or Name eq 'Ann'"), ["<Name", "=Name"]);
    assert_eq!(columns("PartitionKey gt 'a' and Timestamp lt datetime'2020-01-01T00:00:00Z'"), ["<Timestamp"]);
    assert!(columns("PartitionKey gt 'a'").is_empty());
    assert!(columns("Age gt 5 or not (Name eq 'Ann')").is_empty(), "a part of which nothing is known spoils the whole");
    assert!(columns("not (Age gt 5)").is_empty());
}
