//! Comparisons, one table for all pairs of types.

use super::{integer_with_double, ordinal};
use crate::Filter;
use crate::samples::{Row, key};
use partita_model::{CorruptRecord, EntityView, Guid, Record, Ticks, Value};
use proptest::prelude::*;
use std::cmp::Ordering;

const LESS: &str = "ne lt le";
const EQUAL: &str = "eq ge le";
const GREATER: &str = "ne gt ge";
const UNORDERED: &str = "ne";
const NONE: &str = "";

/// Which operators hold between a property and a literal, on either side of the operator.
#[track_caller]
fn check(value: Value, literal: &str, expect: &str) {
    let row = Row::new("p", "r", &[("P", value.clone()).into()]);
    check_row(&row, "P", literal, expect);
}

#[track_caller]
fn check_row(row: &Row, property: &str, literal: &str, expect: &str) {
    let flips = [("eq", "eq"), ("ne", "ne"), ("gt", "lt"), ("ge", "le"), ("lt", "gt"), ("le", "ge")];
    for (op, flipped) in flips {
        let expect = expect.split(' ').any(|wanted| wanted == op);
        for text in [format!("{property} {op} {literal}"), format!("{literal} {flipped} {property}")] {
            let filter = Filter::parse(&text).unwrap().unwrap();
            assert_eq!(row.matches(&filter), expect, "{text}");
            assert_eq!(row.matches(&Filter::Not(Box::new(filter))), !expect, "not {text}");
        }
    }
}

fn string(text: &str) -> Value {
    Value::String(text.to_owned())
}

#[test]
fn same_type() {
    check(string("b"), "'a'", GREATER);
    check(string("b"), "'b'", EQUAL);
    check(string("b"), "'bb'", LESS);
    check(string("B"), "'b'", LESS);
    check(string(""), "''", EQUAL);
    check(string("\u{1F600}"), "'\u{E001}'", LESS);
    check(string("a\u{FFFD}"), "'a\u{1F600}'", GREATER);
    check(Value::Boolean(false), "true", LESS);
    check(Value::Boolean(true), "true", EQUAL);
    check(Value::Int32(-1), "1", LESS);
    check(Value::Int64(1 << 40), "1099511627776L", EQUAL);
    check(Value::Double(4.0), "4.1", LESS);
    check(Value::Double(-0.0), "0.0", EQUAL);
    check(Value::Double(f64::INFINITY), "INF", EQUAL);
    check(Value::Double(f64::NEG_INFINITY), "INF", LESS);
    check(Value::Binary(vec![1, 2]), "X'0102'", EQUAL);
    check(Value::Binary(vec![1, 2]), "X'010200'", LESS);
    check(Value::Binary(vec![2]), "X'0102'", GREATER);
    check(Value::Binary(vec![]), "X''", EQUAL);
    let date = Ticks::parse_iso("1970-10-04").unwrap();
    check(Value::DateTime(date), "datetime'1970-10-04T00:00:00.000000Z'", EQUAL);
    check(Value::DateTime(date), "datetime'1970-10-04T00:00:00.0000001Z'", LESS);
    let guid = Guid::parse("c9da6455-213d-42c9-9a79-3e9149a57833").unwrap();
    check(Value::Guid(guid), "guid'C9DA6455-213D-42C9-9A79-3E9149A57833'", EQUAL);
    check(Value::Guid(guid), "guid'c9da6456-0000-0000-0000-000000000000'", LESS);
    check(Value::Guid(guid), "guid'c9da6454-ffff-ffff-ffff-ffffffffffff'", GREATER);
}

#[test]
fn numbers_of_different_types() {
    check(Value::Int32(64), "64L", EQUAL);
    check(Value::Int32(64), "64.0", EQUAL);
    check(Value::Int32(64), "64.5", LESS);
    check(Value::Int32(-64), "-64.5", GREATER);
    check(Value::Int64(64), "64", EQUAL);
    check(Value::Int64(65), "64.0", GREATER);
    check(Value::Double(64.0), "64", EQUAL);
    check(Value::Double(64.5), "64L", GREATER);
    check(Value::Double(-0.0), "0", EQUAL);
    // 2^53 + 1 is no double.
    check(Value::Int64(9_007_199_254_740_993), "9007199254740992.0", GREATER);
    check(Value::Double(9_007_199_254_740_992.0), "9007199254740993L", LESS);
    check(Value::Int64(i64::MAX), "9223372036854775808.0", LESS);
    check(Value::Int64(i64::MIN), "-9223372036854775808.0", EQUAL);
    check(Value::Int64(i64::MAX), "INF", LESS);
    check(Value::Int64(i64::MIN), "-INF", GREATER);
}

#[test]
fn not_a_number() {
    for literal in ["NaN", "1.0", "1", "1L", "INF"] {
        check(Value::Double(f64::NAN), literal, UNORDERED);
    }
    check(Value::Double(1.0), "NaN", UNORDERED);
    check(Value::Int32(1), "NaN", UNORDERED);
    check(Value::Int64(1), "NaN", UNORDERED);
    check(string("NaN"), "NaN", LESS);
}

#[test]
fn incompatible_types() {
    let values = [
        (Value::Binary(vec![1]), "X'01'"),
        (Value::Boolean(true), "true"),
        (Value::DateTime(Ticks::MAX), "datetime'2000-01-01'"),
        (Value::Guid(Guid([0xFF; 16])), "guid'00000000-0000-0000-0000-000000000000'"),
        (Value::Int32(1), "1"),
        (string("1"), "'1'"),
    ];
    for (at, (value, _)) in values.iter().enumerate() {
        for (other, (_, literal)) in values.iter().enumerate() {
            if at != other {
                check(value.clone(), literal, LESS);
            }
        }
    }
    check(Value::Double(f64::NAN), "'NaN'", LESS);
    check(Value::Int32(1), "''", LESS);
    check(Value::Boolean(true), "1", LESS);
}

#[test]
fn missing_property() {
    let row = Row::new("p", "r", &[("P", Value::Int32(1)).into()]);
    for literal in ["1", "'x'", "NaN", "true", "X''"] {
        check_row(&row, "Q", literal, NONE);
        check_row(&row, "p", literal, NONE);
    }
    let not_active = Filter::parse("not Active").unwrap().unwrap();
    assert!(row.matches(&not_active));
}

#[test]
fn system_properties() {
    let row = Row::new("5", "\u{1F600}", &[]);
    check_row(&row, "PartitionKey", "'5'", EQUAL);
    check_row(&row, "PartitionKey", "5", LESS);
    check_row(&row, "RowKey", "'\u{E001}'", LESS);
    check_row(&row, "Timestamp", "datetime'0001-01-01T00:00:00.0000007Z'", EQUAL);
    check_row(&row, "Timestamp", "datetime'0001-01-01T00:00:00.0000006Z'", GREATER);
    check_row(&row, "partitionkey", "'5'", NONE);
    check_row(&row, "TableName", "'5'", NONE);
}

#[test]
fn conditions() {
    let row = Row::new(
        "p",
        "r",
        &[
            ("Active", Value::Boolean(true)).into(),
            ("Age", Value::Int32(39)).into(),
            ("Closed", Value::Boolean(false)).into(),
        ],
    );
    for (text, expect) in [
        ("true", true),
        ("false", false),
        ("Active", true),
        ("not Active", false),
        ("Closed", false),
        ("not Closed", true),
        ("Age", false),
        ("RowKey", false),
        ("Nothing", false),
        ("not Nothing", true),
        ("Active and Age gt 3", true),
        ("Active and Age gt 39", false),
        ("Active eq true or Age gt 39", true),
        ("Closed or Age gt 39", false),
        ("Age eq 39 or Age eq 1 and Age eq 2", true),
        ("(Age eq 39 or Age eq 1) and Age eq 2", false),
        ("not (Age eq 1) and not (Nothing ne 1)", true),
    ] {
        let filter = Filter::parse(text).unwrap().unwrap();
        assert_eq!(row.matches(&filter), expect, "{text}");
    }
}

#[test]
fn tables() {
    for (text, expect) in [
        ("TableName eq 'MyTable'", true),
        ("TableName eq 'mytable'", true),
        ("'MYTABLE' eq TableName", true),
        ("TableName ne 'mytable'", false),
        ("TableName eq 'a' or TableName eq 'mytable'", true),
        ("TableName ge 'MY' and TableName lt 'my{'", true),
        ("TableName ge 'n'", false),
        ("TableName lt '\u{E001}'", true),
        ("not (TableName ge 'n')", true),
        ("TableName eq 5", false),
        ("TableName lt 5", true),
        ("TableName", false),
        ("PartitionKey ne 'x'", false),
        ("true", true),
        ("false", false),
    ] {
        let filter = Filter::parse(text).unwrap().unwrap();
        assert_eq!(filter.matches_table("MyTable"), expect, "{text}");
    }
}

/// Damage is reported when it is met, and only then: keys are not in the record.
#[test]
fn damaged_record() {
    let record = Record::open(b"\x01\x05ab").unwrap();
    let entity = EntityView { partition_key: "p", row_key: "r", timestamp: Ticks(0), record };
    let matches = |text: &str| Filter::parse(text).unwrap().unwrap().matches(&entity);
    assert_eq!(matches("a eq 1"), Err(CorruptRecord));
    assert_eq!(matches("not a"), Err(CorruptRecord));
    assert_eq!(matches("RowKey eq 'r'"), Ok(true));
    assert_eq!(matches("RowKey eq 'x' and a eq 1"), Ok(false));
}

proptest! {
    #[test]
    fn strings_are_ordered_by_utf16_unit(
        a in prop_oneof![key(), any::<String>()],
        b in prop_oneof![key(), any::<String>()],
        common in key(),
    ) {
        let (a, b) = (format!("{common}{a}"), format!("{common}{b}"));
        prop_assert_eq!(ordinal(&a, &b), a.encode_utf16().cmp(b.encode_utf16()));
    }

    #[test]
    fn integers_are_not_rounded(integer in any::<i64>(), near in -3i64..=3, halves in -1i32..=1) {
        let double = integer.saturating_add(near) as f64 + f64::from(halves) / 2.0;
        // Every double of this size is a whole number of halves, so twice it is exact.
        let expect = (i128::from(integer) * 2).cmp(&((double * 2.0) as i128));
        prop_assert_eq!(integer_with_double(integer, double), Some(expect));
        let small = (integer % 1000, double % 1000.0);
        let expect: Ordering = (small.0 as f64).partial_cmp(&small.1).unwrap();
        prop_assert_eq!(integer_with_double(small.0, small.1), Some(expect));
    }
}
