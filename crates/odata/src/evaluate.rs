//! Whether an entity matches a filter, read in place and without allocation: this runs once for every row visited.
//!
//! The order of two values follows the service:
//!
//! - a missing property compares with nothing, so every operator is false, `ne` too, and `not` simply turns that round;
//! - numbers of the three types compare by value, and no Int64 is rounded for it;
//! - values of other types that differ are no error: the property counts as less than the literal, whatever the types.
//!
//! Azure compares an Int32 property with an Int64 or Double literal by the last rule; comparing by value returns what
//! the client meant and is the only difference.

use crate::filter::{Filter, Op};
use partita_model::{CorruptRecord, EntityView, Value, ValueRef};
use std::cmp::Ordering;
use std::convert::Infallible;

impl Filter {
    /// Whether the entity is wanted.
    pub fn matches(&self, entity: &EntityView<'_>) -> Result<bool, CorruptRecord> {
        self.evaluate(&|name, op, literal| {
            Ok(entity.property(name)?.is_some_and(|value| compare(value, op, literal.as_ref())))
        })
    }

    /// Whether a table of that name is wanted by a query of `Tables`. The only property there is `TableName`, and like
    /// the name itself it is compared without regard to case.
    pub fn matches_table(&self, table_name: &str) -> bool {
        let result = self.evaluate::<Infallible>(&|name, op, literal| {
            Ok(name == "TableName"
                && match literal {
                    Value::String(text) => op.holds(Some(caseless(table_name, text))),
                    other => compare(ValueRef::String(table_name), op, other.as_ref()),
                })
        });
        match result {
            Ok(matches) => matches,
        }
    }

    fn evaluate<E>(&self, comparison: &impl Fn(&str, Op, &Value) -> Result<bool, E>) -> Result<bool, E> {
        match self {
            Filter::And(terms) => {
                for term in terms {
                    if !term.evaluate(comparison)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Filter::Or(terms) => {
                for term in terms {
                    if term.evaluate(comparison)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Filter::Not(term) => Ok(!term.evaluate(comparison)?),
            Filter::Compare { property, op, literal } => comparison(property, *op, literal),
            Filter::Boolean(value) => Ok(*value),
            Filter::Property(name) => comparison(name, Op::Eq, &Value::Boolean(true)),
        }
    }
}

/// Whether `value op literal` holds.
pub(crate) fn compare(value: ValueRef<'_>, op: Op, literal: ValueRef<'_>) -> bool {
    match (value, op, literal) {
        // Most comparisons are these, and whether two texts are equal is known sooner than their order.
        (ValueRef::String(value), Op::Eq, ValueRef::String(literal)) => value == literal,
        (ValueRef::String(value), Op::Ne, ValueRef::String(literal)) => value != literal,
        _ => op.holds(order(value, literal)),
    }
}

/// The order of a value and a literal; `None` if one is NaN.
fn order(value: ValueRef<'_>, literal: ValueRef<'_>) -> Option<Ordering> {
    use ValueRef::*;
    match (value, literal) {
        (Binary(value), Binary(literal)) => Some(value.cmp(literal)),
        (Boolean(value), Boolean(literal)) => Some(value.cmp(&literal)),
        (DateTime(value), DateTime(literal)) => Some(value.cmp(&literal)),
        (Guid(value), Guid(literal)) => Some(value.cmp(&literal)),
        (String(value), String(literal)) => Some(ordinal(value, literal)),
        (Double(value), Double(literal)) => value.partial_cmp(&literal),
        (Double(value), literal) if let Some(literal) = integer(literal) => {
            integer_with_double(literal, value).map(Ordering::reverse)
        }
        (value, Double(literal)) if let Some(value) = integer(value) => integer_with_double(value, literal),
        (value, literal) => match (integer(value), integer(literal)) {
            (Some(value), Some(literal)) => Some(value.cmp(&literal)),
            _ => Some(Ordering::Less),
        },
    }
}

fn integer(value: ValueRef<'_>) -> Option<i64> {
    match value {
        ValueRef::Int32(number) => Some(number.into()),
        ValueRef::Int64(number) => Some(number),
        _ => None,
    }
}

/// Beyond 2^53 a conversion of the integer would round it, so the double is cut to an integer instead.
fn integer_with_double(integer: i64, double: f64) -> Option<Ordering> {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if double.is_nan() {
        None
    } else if double >= LIMIT {
        Some(Ordering::Less)
    } else if double < -LIMIT {
        Some(Ordering::Greater)
    } else {
        let whole = double.trunc();
        Some(integer.cmp(&(whole as i64)).then(whole.partial_cmp(&double)?))
    }
}

/// A byte of UTF-8 as it counts for the order by UTF-16 unit. See `partita_model::PartitionKey` for why the first byte that
/// differs decides once the lead bytes of three and four bytes have changed places.
pub(crate) fn ordered(byte: u8) -> u8 {
    match byte {
        0xEE..=0xEF => byte + 5,
        0xF0..=0xF4 => byte - 2,
        _ => byte,
    }
}

/// The order of texts by UTF-16 unit.
fn ordinal(a: &str, b: &str) -> Ordering {
    match a.bytes().zip(b.bytes()).find(|(a, b)| a != b) {
        Some((a, b)) => ordered(a).cmp(&ordered(b)),
        None => a.len().cmp(&b.len()),
    }
}

/// The order of texts by byte, with ASCII letters in lower case: table names have no others.
fn caseless(a: &str, b: &str) -> Ordering {
    a.bytes().map(|byte| byte.to_ascii_lowercase()).cmp(b.bytes().map(|byte| byte.to_ascii_lowercase()))
}

#[cfg(test)]
mod tests;
