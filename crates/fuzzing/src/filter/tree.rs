//! Filters made of choices, and written down in all the ways in which they can be written.

use super::naive::{compares, order};
use crate::source::Source;
use partita_model::{Guid, Ticks, Value};
use partita_odata::{Filter, Op};

const DEPTH_MAX: usize = 12;
const NAMES: [&str; 10] =
    ["PartitionKey", "RowKey", "Age", "Name", "Timestamp", "eq", "and", "datetime", "_x1", "\u{E9}t\u{E9}"];
/// Two of them, U+E001 and U+1F600, stand in the other order in UTF-8 than in UTF-16.
const CHARACTERS: [char; 8] = ['a', 'b', '\'', ' ', '\u{E001}', '\u{1F600}', '\u{7F}', '('];

/// A filter in the form in which the parser makes them: no `and` in an `and`, no `or` in an `or`.
pub(super) fn filter(source: &mut Source<'_>, depth: usize) -> Filter {
    if depth >= DEPTH_MAX {
        return comparison(source);
    }
    match source.below(8) {
        0..=2 => comparison(source),
        3 => Filter::Property(source.pick(&NAMES).to_owned()),
        4 => Filter::Boolean(source.rarely(2)),
        5 => Filter::Not(Box::new(filter(source, depth + 1))),
        kind => {
            let is_and = kind == 6;
            let mut terms = Vec::new();
            for _ in 0..2 + source.below(3) {
                match filter(source, depth + 1) {
                    Filter::And(inner) if is_and => terms.extend(inner),
                    Filter::Or(inner) if !is_and => terms.extend(inner),
                    other => terms.push(other),
                }
            }
            if is_and { Filter::And(terms) } else { Filter::Or(terms) }
        }
    }
}

fn comparison(source: &mut Source<'_>) -> Filter {
    let property = source.pick(&NAMES).to_owned();
    let op = source.pick(&Op::ALL);
    let literal = if property.ends_with("Key") && !source.rarely(8) { text(source) } else { literal(source) };
    Filter::Compare { property, op, literal }
}

fn text(source: &mut Source<'_>) -> Value {
    Value::String((0..source.below(4)).map(|_| source.pick(&CHARACTERS)).collect())
}

fn literal(source: &mut Source<'_>) -> Value {
    match source.below(9) {
        0 => text(source),
        1 => Value::Int32(i8::from_le_bytes(source.array()).into()),
        2 => Value::Int32(i32::from_le_bytes(source.array())),
        3 => Value::Int64(i64::from_le_bytes(source.array())),
        4 => match f64::from_bits(u64::from_le_bytes(source.array())) {
            number if number.is_nan() => Value::Double(f64::NAN),
            number => Value::Double(number),
        },
        5 => Value::Boolean(source.rarely(2)),
        6 => Value::DateTime(Ticks(u64::from_le_bytes(source.array()) % (Ticks::MAX.0 + 1))),
        7 => Value::Guid(Guid(source.array())),
        _ => Value::Binary(source.counted().to_vec()),
    }
}

/// How tightly words hold what stands beside them.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Binding {
    Or,
    And,
    Not,
}

pub(super) fn write(out: &mut String, filter: &Filter, source: &mut Source<'_>) {
    write_in(out, filter, Binding::Or, source);
}

fn write_in(out: &mut String, filter: &Filter, around: Binding, source: &mut Source<'_>) {
    let binding = match filter {
        Filter::Or(_) => Binding::Or,
        Filter::And(_) => Binding::And,
        _ => Binding::Not,
    };
    let parentheses = binding < around || source.rarely(8);
    if parentheses {
        space(out, source);
        out.push('(');
        space(out, source);
    }
    match filter {
        Filter::And(terms) => write_terms(out, terms, "and", Binding::And, source),
        Filter::Or(terms) => write_terms(out, terms, "or", Binding::Or, source),
        Filter::Not(term) => {
            out.push_str("not");
            gap(out, source);
            write_in(out, term, Binding::Not, source);
        }
        Filter::Compare { property, op, literal } => {
            let literal = literal_text(literal, source);
            let (left, op, right) = match source.rarely(3) {
                true => (literal.as_str(), op.flipped(), property.as_str()),
                false => (property.as_str(), *op, literal.as_str()),
            };
            write_words(out, [left, op.name(), right], source);
        }
        Filter::Boolean(value) => write_boolean(out, *value, source),
        Filter::Property(name) => out.push_str(name),
    }
    if parentheses {
        space(out, source);
        out.push(')');
        space(out, source);
    }
}

fn write_terms(out: &mut String, terms: &[Filter], word: &str, binding: Binding, source: &mut Source<'_>) {
    let Some((first, rest)) = terms.split_first() else { return };
    write_in(out, first, binding, source);
    if rest.is_empty() {
        return;
    }
    gap(out, source);
    out.push_str(word);
    gap(out, source);
    // `a and (b and c)` is the same list.
    let parentheses = rest.len() > 1 && source.rarely(4);
    out.push_str(if parentheses { "(" } else { "" });
    write_terms(out, rest, word, binding, source);
    out.push_str(if parentheses { ")" } else { "" });
}

/// `true`, `false`, or a comparison of two literals that comes to the same.
fn write_boolean(out: &mut String, value: bool, source: &mut Source<'_>) {
    let (left, op, right) = (literal(source), source.pick(&Op::ALL), literal(source));
    if compares(op, order(left.as_ref(), right.as_ref())) == value {
        let (left, right) = (literal_text(&left, source), literal_text(&right, source));
        write_words(out, [&left, op.name(), &right], source);
    } else {
        out.push_str(if value { "true" } else { "false" });
    }
}

fn write_words(out: &mut String, words: [&str; 3], source: &mut Source<'_>) {
    for (at, word) in words.into_iter().enumerate() {
        if at > 0 {
            gap(out, source);
        }
        out.push_str(word);
    }
}

fn gap(out: &mut String, source: &mut Source<'_>) {
    out.push_str(source.pick(&[" ", " ", "\t", "\n", "  ", "\r\n"]));
}

fn space(out: &mut String, source: &mut Source<'_>) {
    out.push_str(source.pick(&["", "", " ", "\t "]));
}

fn literal_text(literal: &Value, source: &mut Source<'_>) -> String {
    let upper = source.rarely(2);
    let cased = |text: String| if upper { text.to_ascii_uppercase() } else { text };
    match literal {
        Value::Binary(bytes) => {
            let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("{}'{}'", source.pick(&["X", "x", "binary"]), cased(digits))
        }
        Value::Boolean(value) => value.to_string(),
        Value::DateTime(ticks) => {
            let moment = if upper { ticks.seven_digits() } else { ticks.to_string() };
            format!("{}'{moment}'", source.pick(&["datetime", "DateTime"]))
        }
        Value::Double(number) if number.is_nan() => "NaN".to_owned(),
        Value::Double(number) if number.is_infinite() => if *number > 0.0 { "INF" } else { "-INF" }.to_owned(),
        Value::Double(number) => match source.below(3) {
            0 => format!("{number:?}"),
            1 => cased(format!("{number:e}")),
            _ => cased(format!("{number}d")),
        },
        Value::Guid(guid) => format!("guid'{}'", cased(guid.to_string())),
        Value::Int32(number) => number.to_string(),
        Value::Int64(number) => format!("{number}{}", if upper { 'L' } else { 'l' }),
        Value::String(text) => format!("'{}'", text.replace('\'', "''")),
    }
}
