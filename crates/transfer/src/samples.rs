//! Entities for tests.

use crate::Entity;
use partita_model::{Guid, Property, Ticks, Value};
use proptest::prelude::*;

/// Of every type, the odd values among them.
pub(crate) fn one_of_each() -> Entity {
    let guid = Guid::parse("c9da6455-213d-42c9-9a79-3e9149a57833").unwrap();
    let date = Ticks::parse_iso("2021-12-09T00:25:32.7684043Z").unwrap();
    let properties = [
        ("Binary", Value::Binary(vec![0, 255])),
        ("Boolean", Value::Boolean(true)),
        ("DateTime", Value::DateTime(date)),
        ("Double", Value::Double(5.0)),
        ("Negative", Value::Double(-0.0)),
        ("Nan", Value::Double(f64::NAN)),
        ("Infinity", Value::Double(f64::NEG_INFINITY)),
        ("Guid", Value::Guid(guid)),
        ("Int32", Value::Int32(-1)),
        ("Int64", Value::Int64(i64::MIN)),
        ("Empty", Value::String(String::new())),
        ("Text", Value::String("a,\"b\"\r\nc".into())),
    ];
    Entity {
        partition_key: "a\"b".into(),
        row_key: String::new(),
        properties: properties.into_iter().map(Property::from).collect(),
    }
}

/// Texts that formats stumble over, and any others.
fn text() -> impl Strategy<Value = String> {
    let odd = [
        "",
        " ",
        "\"",
        ",",
        "\r",
        "\n",
        "\r\n",
        "\"\"",
        "null",
        "@type",
        "\u{FEFF}x",
        "\u{0}",
        "\u{1F600}",
        "-1",
        "\t",
    ];
    prop_oneof![prop::sample::select(odd.to_vec()).prop_map(str::to_owned), any::<String>()]
}

fn value() -> impl Strategy<Value = Value> {
    let doubles =
        [0.0, -0.0, 5.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, f64::MIN_POSITIVE, 5e-324, 0.1];
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..40).prop_map(Value::Binary),
        any::<bool>().prop_map(Value::Boolean),
        (Ticks::MIN_DATE_TIME.0..=Ticks::MAX.0).prop_map(|ticks| Value::DateTime(Ticks(ticks))),
        prop::sample::select(doubles.to_vec()).prop_map(Value::Double),
        proptest::num::f64::NORMAL.prop_map(Value::Double),
        any::<[u8; 16]>().prop_map(|bytes| Value::Guid(Guid(bytes))),
        any::<i32>().prop_map(Value::Int32),
        any::<i64>().prop_map(Value::Int64),
        text().prop_map(Value::String),
    ]
}

/// Any entity. Names are few, so that rows share columns and differ in types and order.
pub(crate) fn entity() -> impl Strategy<Value = Entity> {
    let names = prop::sample::subsequence(vec!["A", "B", "C", "D", "_e1", "\u{C9}t\u{E9}"], 0..6).prop_shuffle();
    let properties = names.prop_flat_map(|names| {
        let count = names.len();
        (Just(names), proptest::collection::vec(value(), count))
    });
    (text(), text(), properties).prop_map(|(partition_key, row_key, (names, values))| Entity {
        partition_key,
        row_key,
        properties: names.into_iter().zip(values).map(Property::from).collect(),
    })
}
