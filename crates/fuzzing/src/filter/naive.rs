//! Filters evaluated in the plainest way, without the shortcuts of the real evaluation.

use partita_model::{Value, ValueRef};
use partita_odata::{Filter, Op};
use std::cmp::Ordering;

/// Whether a filter holds for something with these properties.
pub(super) fn holds<'r>(filter: &Filter, property: &impl Fn(&str) -> Option<ValueRef<'r>>) -> bool {
    // Loops, since a filter may be a thousand levels deep.
    match filter {
        Filter::And(terms) => {
            let mut all = true;
            for term in terms {
                all &= holds(term, property);
            }
            all
        }
        Filter::Or(terms) => {
            let mut any = false;
            for term in terms {
                any |= holds(term, property);
            }
            any
        }
        Filter::Not(term) => !holds(term, property),
        Filter::Compare { property: name, op, literal } => {
            property(name).is_some_and(|value| compares(*op, order(value, literal.as_ref())))
        }
        Filter::Boolean(value) => *value,
        Filter::Property(name) => property(name) == Some(ValueRef::Boolean(true)),
    }
}

/// Whether a filter holds for a table. Names of tables and texts they are compared with are the same in any case.
pub(super) fn holds_for_table(filter: &Filter, name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    holds(&lowered(filter), &|property| (property == "TableName").then_some(ValueRef::String(&lower)))
}

fn lowered(filter: &Filter) -> Filter {
    let each = |terms: &[Filter]| {
        let mut out = Vec::with_capacity(terms.len());
        for term in terms {
            out.push(lowered(term));
        }
        out
    };
    match filter {
        Filter::And(terms) => Filter::And(each(terms)),
        Filter::Or(terms) => Filter::Or(each(terms)),
        Filter::Not(term) => Filter::Not(Box::new(lowered(term))),
        Filter::Compare { property, op, literal: Value::String(text) } => {
            let literal = Value::String(text.to_ascii_lowercase());
            Filter::Compare { property: property.clone(), op: *op, literal }
        }
        other => other.clone(),
    }
}

pub(super) fn compares(op: Op, order: Option<Ordering>) -> bool {
    let (less, equal, greater) = match op {
        Op::Eq => (false, true, false),
        Op::Ne => (true, false, true),
        Op::Gt => (false, false, true),
        Op::Ge => (false, true, true),
        Op::Lt => (true, false, false),
        Op::Le => (true, true, false),
    };
    match order {
        Some(Ordering::Less) => less,
        Some(Ordering::Equal) => equal,
        Some(Ordering::Greater) => greater,
        None => op == Op::Ne,
    }
}

/// The order of a value and a literal; `None` if one of them is NaN and both are numbers.
pub(super) fn order(value: ValueRef<'_>, literal: ValueRef<'_>) -> Option<Ordering> {
    use ValueRef::*;
    match (value, literal) {
        (Int32(_) | Int64(_) | Double(_), Int32(_) | Int64(_) | Double(_)) => numbers(value, literal),
        (Binary(value), Binary(literal)) => Some(value.cmp(literal)),
        (Boolean(value), Boolean(literal)) => Some(value.cmp(&literal)),
        (DateTime(value), DateTime(literal)) => Some(value.0.cmp(&literal.0)),
        (Guid(value), Guid(literal)) => Some(value.to_string().cmp(&literal.to_string())),
        (String(value), String(literal)) => Some(value.encode_utf16().cmp(literal.encode_utf16())),
        _ => Some(Ordering::Less),
    }
}

fn numbers(value: ValueRef<'_>, literal: ValueRef<'_>) -> Option<Ordering> {
    if let (ValueRef::Double(value), ValueRef::Double(literal)) = (value, literal) {
        return value.partial_cmp(&literal);
    }
    Some(parts(value)?.cmp(&parts(literal)?))
}

/// The whole part of a number, rounded down, and whether it is above that; `None` for NaN.
fn parts(number: ValueRef<'_>) -> Option<(i128, bool)> {
    match number {
        ValueRef::Int32(number) => Some((number.into(), false)),
        ValueRef::Int64(number) => Some((number.into(), false)),
        // What is beyond all integers of 128 bits becomes the last of them, which is beyond all of 64.
        ValueRef::Double(number) if !number.is_nan() => Some((number.floor() as i128, number > number.floor())),
        _ => None,
    }
}
