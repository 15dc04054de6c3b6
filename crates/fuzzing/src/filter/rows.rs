//! Rows made of the literals of a filter, and of their neighbours.

use partita_model::{EntityView, Guid, PartitionKey, Position, Property, Record, RowKey, Ticks, Value, ValueRef};
use partita_odata::Filter;
use std::collections::BTreeMap;

/// Most literals of each key that rows are made of. Each gives three keys, and the rows are all pairs.
const LITERALS_PER_KEY_MAX: usize = 3;
/// Most properties of a row.
const PROPERTIES_MAX: usize = 6;
/// Most literals of each property that values are made of.
const LITERALS_PER_PROPERTY_MAX: usize = 6;
/// Keys that are there whatever the filter says. In UTF-8 the last two stand in the other order than in UTF-16.
const KEYS: [&str; 5] = ["", "k", "z", "\u{1F600}", "\u{E001}"];
const TIMESTAMP: Ticks = Ticks(638_000_000_000_000_000);

/// A row that owns what its view borrows.
pub(super) struct Row {
    pub(super) place: Position,
    partition_key: String,
    row_key: String,
    properties: Vec<Property>,
    record: Vec<u8>,
}

impl std::fmt::Debug for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "({:?}, {:?}) {:?}", self.partition_key, self.row_key, self.properties)
    }
}

impl Row {
    pub(super) fn view(&self) -> EntityView<'_> {
        let record = Record::open(&self.record).expect("a record was encoded");
        EntityView { partition_key: &self.partition_key, row_key: &self.row_key, timestamp: TIMESTAMP, record }
    }

    /// A property as it was given, not as it was stored.
    pub(super) fn property(&self, name: &str) -> Option<ValueRef<'_>> {
        match name {
            "PartitionKey" => Some(ValueRef::String(&self.partition_key)),
            "RowKey" => Some(ValueRef::String(&self.row_key)),
            "Timestamp" => Some(ValueRef::DateTime(TIMESTAMP)),
            _ => self.properties.iter().find(|property| property.name == name).map(|property| property.value.as_ref()),
        }
    }
}

/// Rows in order, no two of the same keys.
pub(super) fn of(filter: &Filter) -> Vec<Row> {
    let mut literals = Literals::default();
    literals.collect(filter);
    let (partition_keys, row_keys) = (keys(literals.of("PartitionKey")), keys(literals.of("RowKey")));
    let values = literals.values();
    let mut rows = Vec::with_capacity(partition_keys.len() * row_keys.len());
    for partition_key in &partition_keys {
        for row_key in &row_keys {
            let properties = properties(&values, rows.len());
            rows.push(Row {
                place: Position::new(PartitionKey::to_ordered(partition_key), RowKey::to_ordered(row_key)),
                partition_key: partition_key.clone(),
                row_key: row_key.clone(),
                record: Record::encode(&properties),
                properties,
            });
        }
    }
    rows.sort_by(|a, b| a.place.cmp(&b.place));
    rows
}

/// The properties of the row of that number: by and by each value of each, and none.
fn properties(values: &[(&str, Vec<Value>)], row: usize) -> Vec<Property> {
    let choose = |(at, (name, values)): (usize, &(&str, Vec<Value>))| {
        let value = values.get((row * (2 * at + 1) + at) % (values.len() + 1))?;
        Some(Property::from((*name, value.clone())))
    };
    values.iter().enumerate().filter_map(choose).collect()
}

/// What each property is compared with.
#[derive(Default)]
struct Literals<'f>(BTreeMap<&'f str, Vec<&'f Value>>);

impl<'f> Literals<'f> {
    fn collect(&mut self, filter: &'f Filter) {
        match filter {
            Filter::And(terms) | Filter::Or(terms) => {
                for term in terms {
                    self.collect(term);
                }
            }
            Filter::Not(term) => self.collect(term),
            Filter::Compare { property, literal, .. } => self.0.entry(property).or_default().push(literal),
            Filter::Property(name) => self.0.entry(name).or_default().push(&Value::Boolean(true)),
            Filter::Boolean(_) => {}
        }
    }

    fn of(&self, name: &str) -> &[&'f Value] {
        self.0.get(name).map_or(&[], Vec::as_slice)
    }

    /// For each property its literals, and values near them.
    fn values(&self) -> Vec<(&'f str, Vec<Value>)> {
        let names = self.0.iter().filter(|(name, _)| !matches!(**name, "PartitionKey" | "RowKey" | "Timestamp"));
        let around = |literal: &Value| [literal.clone(), near(literal, -1), near(literal, 1), other_type(literal)];
        let values = |literals: &[&Value]| spread(literals, LITERALS_PER_PROPERTY_MAX).flat_map(around).collect();
        names.take(PROPERTIES_MAX).map(|(name, literals)| (*name, values(literals))).collect()
    }
}

/// At most `count` of the items, from all over the list.
fn spread<'a, T: Copy>(items: &'a [T], count: usize) -> impl Iterator<Item = T> + use<'a, T> {
    items.iter().copied().step_by(items.len().div_ceil(count).max(1))
}

/// The keys that are compared with, what comes shortly before and behind them, and a few others.
fn keys(literals: &[&Value]) -> Vec<String> {
    let texts: Vec<&String> = literals
        .iter()
        .filter_map(|literal| match literal {
            Value::String(text) => Some(text),
            _ => None,
        })
        .collect();
    let mut keys: Vec<String> = KEYS.map(str::to_owned).into();
    for text in spread(&texts, LITERALS_PER_KEY_MAX) {
        let mut shorter = text.clone();
        shorter.pop();
        keys.extend([text.clone(), shorter, format!("{text}!")]);
    }
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// The same value, or the next before or behind it.
fn near(value: &Value, step: i8) -> Value {
    match value {
        Value::Binary(bytes) if step < 0 => Value::Binary(bytes[..bytes.len().saturating_sub(1)].to_vec()),
        Value::Binary(bytes) => Value::Binary([bytes.as_slice(), &[0]].concat()),
        Value::Boolean(value) => Value::Boolean(!value),
        Value::DateTime(ticks) => Value::DateTime(Ticks(ticks.0.saturating_add_signed(step.into()).min(Ticks::MAX.0))),
        Value::Double(number) => Value::Double(if step < 0 { number.next_down() } else { number.next_up() }),
        Value::Guid(guid) => {
            Value::Guid(Guid(u128::from_be_bytes(guid.0).saturating_add_signed(step.into()).to_be_bytes()))
        }
        Value::Int32(number) => Value::Int32(number.saturating_add(step.into())),
        Value::Int64(number) => Value::Int64(number.saturating_add(step.into())),
        Value::String(text) if step < 0 => Value::String(text.chars().skip(1).collect()),
        Value::String(text) => Value::String(format!("{text}\u{1F600}")),
    }
}

/// About the same number as another type, where rounding shows; else a value of a type that compares with nothing.
fn other_type(value: &Value) -> Value {
    match value {
        Value::Double(number) => Value::Int64((*number as i64).saturating_add(1)),
        Value::Int32(number) => Value::Int64((*number).into()),
        Value::Int64(number) => Value::Double(*number as f64),
        Value::Boolean(_) => Value::String("true".to_owned()),
        _ => Value::Boolean(true),
    }
}
