//! Random filters, rows and texts for the property tests.
//!
//! Keys and literals come from so few characters that comparisons often hold and bounds often meet. Two of them,
//! U+E001 and U+1F600, stand in the other order in UTF-8 than in UTF-16.

use crate::{Filter, Op};
use partita_model::{EntityView, Guid, PartitionKey, Property, Record, Ticks, Value};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

pub(crate) fn key() -> impl Strategy<Value = String> {
    vec(select(vec!['a', 'b', '\u{E001}', '\u{1F600}']), 0..3).prop_map(String::from_iter)
}

pub(crate) fn op() -> impl Strategy<Value = Op> {
    select(&Op::ALL[..])
}

/// Any literal there is.
pub(crate) fn literal() -> impl Strategy<Value = Value> {
    prop_oneof![
        vec(any::<u8>(), 0..4).prop_map(Value::Binary),
        any::<bool>().prop_map(Value::Boolean),
        (0..=Ticks::MAX.0).prop_map(|ticks| Value::DateTime(Ticks(ticks))),
        any::<f64>().prop_map(|number| Value::Double(if number.is_nan() { f64::NAN } else { number })),
        select(vec![0.0, -0.0, 1e300, -1e-7, 1e16, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, 5e-324])
            .prop_map(Value::Double),
        any::<[u8; 16]>().prop_map(|bytes| Value::Guid(Guid(bytes))),
        any::<i32>().prop_map(Value::Int32),
        any::<i64>().prop_map(Value::Int64),
        any::<String>().prop_map(Value::String),
        "['a ]{0,4}".prop_map(Value::String),
    ]
}

/// Any property name, those that are also operators included.
pub(crate) fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        "[A-Za-z_][A-Za-z0-9_]{0,6}",
        "\\p{L}[\\p{L}\\p{Nd}]{0,3}",
        select(vec!["eq", "and", "or", "add", "guid", "X", "datetime", "PartitionKey", "e\u{301}"])
            .prop_map(str::to_owned),
    ]
    .prop_filter("a literal or `not`", |name| {
        !matches!(name.as_str(), "not" | "true" | "false" | "null" | "NaN" | "INF")
    })
}

/// Trees of `leaf`, in the shape in which the parser makes them.
pub(crate) fn tree(leaf: impl Strategy<Value = Filter> + 'static) -> impl Strategy<Value = Filter> {
    leaf.prop_recursive(5, 40, 4, |inner| {
        prop_oneof![
            6 => junction(inner.clone()),
            1 => inner.prop_map(|term| Filter::Not(Box::new(term))),
        ]
    })
}

/// The same without `not`.
pub(crate) fn positive_tree(leaf: impl Strategy<Value = Filter> + 'static) -> impl Strategy<Value = Filter> {
    leaf.prop_recursive(5, 40, 4, junction)
}

fn junction(inner: BoxedStrategy<Filter>) -> impl Strategy<Value = Filter> {
    (any::<bool>(), vec(inner, 2..5)).prop_map(|(and, terms)| {
        let mut flat = Vec::new();
        for term in terms {
            match term {
                Filter::And(terms) if and => flat.extend(terms),
                Filter::Or(terms) if !and => flat.extend(terms),
                other => flat.push(other),
            }
        }
        if and { Filter::And(flat) } else { Filter::Or(flat) }
    })
}

/// Any filter there is.
pub(crate) fn filter() -> impl Strategy<Value = Filter> {
    tree(prop_oneof![
        8 => (name(), op(), literal()).prop_map(|(property, op, literal)| Filter::Compare { property, op, literal }),
        1 => any::<bool>().prop_map(Filter::Boolean),
        1 => name().prop_map(Filter::Property),
    ])
}

/// A comparison of a key with a key, rarely with something else.
pub(crate) fn key_comparison(ops: Vec<Op>) -> impl Strategy<Value = Filter> {
    let literal = prop_oneof![9 => key().prop_map(Value::String), 1 => Just(Value::Int32(5))];
    (select(vec!["PartitionKey", "RowKey"]), select(ops), literal).prop_map(|(property, op, literal)| Filter::Compare {
        property: property.to_owned(),
        op,
        literal,
    })
}

/// A filter that often has to do with the rows of [`rows`].
pub(crate) fn filter_of_rows() -> impl Strategy<Value = Filter> {
    let other = (select(vec!["Age", "Name", "Timestamp", "rowkey"]), op(), literal())
        .prop_map(|(property, op, literal)| Filter::Compare { property: property.to_owned(), op, literal });
    tree(prop_oneof![
        12 => key_comparison(Op::ALL.to_vec()),
        2 => other,
        1 => any::<bool>().prop_map(Filter::Boolean),
        1 => select(vec!["Age", "RowKey", "Active"]).prop_map(|name| Filter::Property(name.to_owned())),
    ])
}

/// A row that owns what its view borrows.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) partition_key: String,
    pub(crate) row_key: String,
    record: Vec<u8>,
}

impl Row {
    pub(crate) fn new(partition_key: &str, row_key: &str, properties: &[Property]) -> Row {
        let record = Record::encode(properties);
        Row { partition_key: partition_key.to_owned(), row_key: row_key.to_owned(), record }
    }

    pub(crate) fn view(&self) -> EntityView<'_> {
        let record = Record::open(&self.record).expect("a record was encoded");
        EntityView { partition_key: &self.partition_key, row_key: &self.row_key, timestamp: Ticks(7), record }
    }

    pub(crate) fn matches(&self, filter: &Filter) -> bool {
        filter.matches(&self.view()).expect("a record was encoded")
    }

    pub(crate) fn place(&self) -> (Vec<u8>, Vec<u8>) {
        let ordered = |key| PartitionKey::to_ordered(key).into_owned();
        (ordered(&self.partition_key), ordered(&self.row_key))
    }
}

/// Rows in the service's order, no two of the same key.
pub(crate) fn rows() -> impl Strategy<Value = Vec<Row>> {
    let properties = prop_oneof![
        Just(vec![]),
        literal().prop_map(|value| vec![Property::from(("Age", value))]),
        any::<bool>().prop_map(|value| vec![Property::from(("Active", Value::Boolean(value)))]),
    ];
    vec((key(), key(), properties), 0..40).prop_map(|rows| {
        let mut rows: Vec<Row> =
            rows.iter().map(|(partition, row, properties)| Row::new(partition, row, properties)).collect();
        rows.sort_by_key(Row::place);
        rows.dedup_by_key(|row| row.place());
        rows
    })
}
