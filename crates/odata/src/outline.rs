//! What a filter says of numbers instead of entities, so that an engine can tell many rows at once to be of no use.
//!
//! A *column* gives each entity a number that stands for one of its properties:
//!
//! ```text
//!   0                       there is no such property
//!   class << 60 | order     `<Name`: values of a class in order, as far as 60 bits tell them apart
//!   class << 60 | hash      `=Name`: texts and bytes that are equal have the same number
//! ```
//!
//! Each comparison of a property with a literal then becomes a stretch of numbers within which, or outside which, the number of
//! an entity lies if it matches. It may lie there though it does not match, since numbers tell less than values do; the
//! entity itself has the last word. What numbers cannot tell at all may match.

use crate::filter::{Filter, Op};
use partita_model::{CorruptRecord, EntityView, ValueRef};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// Of a filter, what the numbers of its columns tell.
#[derive(Debug)]
pub struct Outline {
    columns: Vec<Arc<str>>,
    test: Test,
}

#[derive(Debug)]
enum Test {
    /// Nothing is known: may match.
    Any,
    And(Vec<Test>),
    Or(Vec<Test>),
    /// The number is in the stretch, both ends included, or if it is not `inside`, there is a number and it lies elsewhere.
    Stretch {
        column: usize,
        low: u64,
        high: u64,
        inside: bool,
    },
}

const CLASS_BITS: u32 = 4;
const ABSENT: u64 = 0;

/// How a column makes numbers of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Order,
    Hash,
}

impl Kind {
    fn mark(self) -> char {
        match self {
            Kind::Order => '<',
            Kind::Hash => '=',
        }
    }
}

impl Outline {
    /// The outline of a filter.
    pub fn of(filter: &Filter) -> Outline {
        let mut columns = Vec::new();
        let test = Test::of(filter, &mut columns);
        if matches!(test, Test::Any) {
            columns.clear();
        }
        Outline { columns, test }
    }

    /// The columns that it looks at; none if numbers tell nothing.
    pub fn columns(&self) -> &[Arc<str>] {
        &self.columns
    }

    /// The number of an entity in a column of any outline.
    pub fn number(column: &str, entity: &EntityView<'_>) -> Result<u64, CorruptRecord> {
        let (kind, property) = match column.strip_prefix(Kind::Hash.mark()) {
            Some(property) => (Kind::Hash, property),
            None => (Kind::Order, &column[1..]),
        };
        Ok(entity.property(property)?.map_or(ABSENT, |value| number(kind, value)))
    }

    /// Whether one of up to 64 entities could match of which these are the numbers: for each column, those of all.
    pub fn may_match(&self, numbers: &[&[u64]]) -> bool {
        self.test.candidates(numbers) != 0
    }
}

impl Test {
    fn of(filter: &Filter, columns: &mut Vec<Arc<str>>) -> Test {
        match filter {
            Filter::And(terms) => {
                let mut tests = Vec::new();
                for term in terms {
                    let test = Test::of(term, columns);
                    if !matches!(test, Test::Any) {
                        tests.push(test);
                    }
                }
                if tests.is_empty() { Test::Any } else { Test::And(tests) }
            }
            Filter::Or(terms) => {
                let mut tests = Vec::new();
                for term in terms {
                    match Test::of(term, columns) {
                        Test::Any => return Test::Any,
                        test => tests.push(test),
                    }
                }
                Test::Or(tests)
            }
            Filter::Compare { property, op, literal } => Test::compare(property, *op, literal.as_ref(), columns),
            Filter::Property(property) => Test::compare(property, Op::Eq, ValueRef::Boolean(true), columns),
            Filter::Boolean(false) => Test::Or(Vec::new()),
            Filter::Boolean(true) | Filter::Not(_) => Test::Any,
        }
    }

    fn compare(property: &str, op: Op, literal: ValueRef<'_>, columns: &mut Vec<Arc<str>>) -> Test {
        // Of keys the plan has made what can be made.
        if matches!(property, "PartitionKey" | "RowKey") {
            return Test::Any;
        }
        let kind = match (op, literal) {
            (Op::Eq, ValueRef::String(_) | ValueRef::Binary(_)) => Kind::Hash,
            _ => Kind::Order,
        };
        let number = number(kind, literal);
        let class = number >> (u64::BITS - CLASS_BITS) << (u64::BITS - CLASS_BITS);
        let class_end = class | u64::MAX >> CLASS_BITS;
        let (low, high, inside) = match op {
            Op::Eq => (number, number, true),
            Op::Gt | Op::Ge => (number, class_end, true),
            // Values of another type are less than any literal.
            Op::Lt | Op::Le if number < class_end => (number + 1, class_end, false),
            Op::Lt | Op::Le | Op::Ne => (ABSENT, ABSENT, false),
        };
        Test::Stretch { column: place(columns, kind, property), low, high, inside }
    }

    /// A bit for each entity that could match.
    fn candidates(&self, numbers: &[&[u64]]) -> u64 {
        match self {
            Test::Any => u64::MAX,
            Test::And(tests) => {
                let mut all = u64::MAX;
                for test in tests {
                    all &= test.candidates(numbers);
                    if all == 0 {
                        break;
                    }
                }
                all
            }
            Test::Or(tests) => {
                let mut any = 0;
                for test in tests {
                    any |= test.candidates(numbers);
                }
                any
            }
            Test::Stretch { column, low, high, inside } => {
                let length = high - low;
                let mut bits = 0;
                for (at, number) in numbers[*column].iter().enumerate() {
                    let is_within = number.wrapping_sub(*low) <= length;
                    bits |= u64::from(is_within == *inside && *number != ABSENT) << at;
                }
                bits
            }
        }
    }
}

fn place(columns: &mut Vec<Arc<str>>, kind: Kind, property: &str) -> usize {
    let mark = kind.mark();
    match columns.iter().position(|column| column.strip_prefix(mark) == Some(property)) {
        Some(place) => place,
        None => {
            columns.push(format!("{mark}{property}").into());
            columns.len() - 1
        }
    }
}

/// The number of a value. Of two values of one class the lesser one never has the greater number.
fn number(kind: Kind, value: ValueRef<'_>) -> u64 {
    let (class, order) = match value {
        // An integer that no double holds is rounded, and so it stays in order with those beside it.
        ValueRef::Int32(number) => (1, order_of_double(number.into())),
        ValueRef::Int64(number) => (1, order_of_double(number as f64)),
        ValueRef::Double(number) => (1, order_of_double(number)),
        // Ticks have 62 bits.
        ValueRef::DateTime(ticks) => (2, ticks.0 << 2),
        ValueRef::Boolean(value) => (3, u64::from(value) << CLASS_BITS),
        ValueRef::Guid(guid) => (4, order_of_bytes(guid.0.into_iter())),
        ValueRef::Binary(bytes) if kind == Kind::Hash => (5, hash(bytes)),
        ValueRef::Binary(bytes) => (5, order_of_bytes(bytes.iter().copied())),
        ValueRef::String(text) if kind == Kind::Hash => (6, hash(text.as_bytes())),
        ValueRef::String(text) => (6, order_of_bytes(text.bytes().map(crate::evaluate::ordered))),
    };
    class << (u64::BITS - CLASS_BITS) | order >> CLASS_BITS
}

fn order_of_double(number: f64) -> u64 {
    // Zero has two signs and is one number.
    let bits = (number + 0.0).to_bits();
    if bits >> 63 == 0 { bits | 1 << 63 } else { !bits }
}

fn order_of_bytes(bytes: impl Iterator<Item = u8>) -> u64 {
    let mut first = [0; 8];
    for (place, byte) in first.iter_mut().zip(bytes) {
        *place = byte;
    }
    u64::from_be_bytes(first)
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests;
