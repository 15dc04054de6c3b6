//! Literals of a `$filter`: the text of numbers and typed literals, both ways.
//!
//! `'text'`, `12`, `12L`, `1.5`, `true`, `datetime'..'`, `guid'..'` and `X'..'` name the eight types of a property, so a
//! literal is a [`Value`]. There is no literal for null: the service refuses it.

use partita_model::{Guid, Ticks, Value};
use std::fmt;

/// Reads a number: digits with an optional sign, fraction, exponent and suffix. What follows a number without white
/// space belongs to it, so `12abc` arrives here and is refused.
pub(crate) fn parse_number(text: &str) -> Option<Value> {
    match text.as_bytes().last() {
        _ if text == "-INF" => Some(Value::Double(f64::NEG_INFINITY)),
        Some(b'L' | b'l') => integer(&text[..text.len() - 1]).map(Value::Int64),
        Some(b'D' | b'd') => double(&text[..text.len() - 1]).map(Value::Double),
        // The JavaScript client writes big integers without a suffix.
        _ if is_integer(text) => integer(text).map(|number| match i32::try_from(number) {
            Ok(number) => Value::Int32(number),
            Err(_) => Value::Int64(number),
        }),
        _ => double(text).map(Value::Double),
    }
}

fn is_integer(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn integer(text: &str) -> Option<i64> {
    is_integer(text).then(|| text.parse().ok())?
}

fn double(text: &str) -> Option<f64> {
    // The standard library also reads `inf`, `1.` and `.5`, which are no literals here.
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let well_formed = match mantissa.split_once('.') {
        Some((whole, fraction)) => digits(whole) && digits(fraction),
        None => digits(mantissa),
    } && exponent
        .is_none_or(|exponent| digits(exponent.strip_prefix(['+', '-']).unwrap_or(exponent)));
    if !well_formed {
        return None;
    }
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

/// The types that are written as a word and quoted content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Prefix {
    DateTime,
    Guid,
    Binary,
}

impl Prefix {
    pub(crate) fn parse(word: &str) -> Option<Prefix> {
        [("datetime", Prefix::DateTime), ("guid", Prefix::Guid), ("X", Prefix::Binary), ("binary", Prefix::Binary)]
            .into_iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(word))
            .map(|(_, prefix)| prefix)
    }

    /// Reads what stands between the quotes.
    pub(crate) fn value(self, content: &str) -> Option<Value> {
        match self {
            Prefix::DateTime => Ticks::parse_iso(content).map(Value::DateTime),
            Prefix::Guid => Guid::parse(content).map(Value::Guid),
            Prefix::Binary => hexadecimal(content).map(Value::Binary),
        }
    }
}

fn hexadecimal(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    text.as_bytes()
        .chunks(2)
        .map(|pair| match *pair {
            [high, low] => Some((digit(high)? * 16 + digit(low)?) as u8),
            _ => None,
        })
        .collect()
}

/// Whether two literals are written alike.
pub(crate) fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Double(a), Value::Double(b)) => a.to_bits() == b.to_bits(),
        _ => a == b,
    }
}

/// The text of a literal.
pub(crate) struct Literal<'a>(pub(crate) &'a Value);

impl fmt::Display for Literal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::Binary(bytes) => {
                f.write_str("X'")?;
                for byte in bytes {
                    write!(f, "{byte:02x}")?;
                }
                f.write_str("'")
            }
            Value::Boolean(value) => write!(f, "{value}"),
            Value::DateTime(ticks) => write!(f, "datetime'{ticks}'"),
            Value::Double(number) if number.is_nan() => f.write_str("NaN"),
            Value::Double(number) if number.is_infinite() => f.write_str(if *number > 0.0 { "INF" } else { "-INF" }),
            // The debug form always has a point or an exponent, and the fewest digits that read back as the same number.
            Value::Double(number) => write!(f, "{number:?}"),
            Value::Guid(guid) => write!(f, "guid'{guid}'"),
            Value::Int32(number) => write!(f, "{number}"),
            Value::Int64(number) => write!(f, "{number}L"),
            Value::String(text) => {
                f.write_str("'")?;
                for (at, part) in text.split('\'').enumerate() {
                    if at > 0 {
                        f.write_str("''")?;
                    }
                    f.write_str(part)?;
                }
                f.write_str("'")
            }
        }
    }
}
