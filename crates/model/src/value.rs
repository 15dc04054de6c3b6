//! The eight EDM types and their values.

use crate::{Guid, Ticks};

/// A type of the Entity Data Model that a property may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EdmType {
    /// Bytes, at most 64 KiB.
    Binary,
    /// True or false.
    Boolean,
    /// A moment at 100 ns precision, from 1601 to 9999.
    DateTime,
    /// IEEE 754 binary64, the special values included.
    Double,
    /// A 128-bit identifier.
    Guid,
    /// A 32-bit integer.
    Int32,
    /// A 64-bit integer.
    Int64,
    /// Text, at most 64 KiB as UTF-16.
    String,
}

impl EdmType {
    /// All types, in the order of their names.
    pub const ALL: [EdmType; 8] = [
        EdmType::Binary,
        EdmType::Boolean,
        EdmType::DateTime,
        EdmType::Double,
        EdmType::Guid,
        EdmType::Int32,
        EdmType::Int64,
        EdmType::String,
    ];

    /// The name on the wire, `Edm.String` and so on.
    pub fn name(self) -> &'static str {
        match self {
            EdmType::Binary => "Edm.Binary",
            EdmType::Boolean => "Edm.Boolean",
            EdmType::DateTime => "Edm.DateTime",
            EdmType::Double => "Edm.Double",
            EdmType::Guid => "Edm.Guid",
            EdmType::Int32 => "Edm.Int32",
            EdmType::Int64 => "Edm.Int64",
            EdmType::String => "Edm.String",
        }
    }

    /// The type of that name on the wire.
    pub fn parse(name: &str) -> Option<EdmType> {
        EdmType::ALL.into_iter().find(|edm| edm.name() == name)
    }
}

/// A value that owns its bytes: what a client sent.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "each variant is the EDM type of its name")]
pub enum Value {
    Binary(Vec<u8>),
    Boolean(bool),
    DateTime(Ticks),
    Double(f64),
    Guid(Guid),
    Int32(i32),
    Int64(i64),
    String(String),
}

impl Value {
    /// The same value, borrowed.
    pub fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Value::Binary(bytes) => ValueRef::Binary(bytes),
            Value::Boolean(value) => ValueRef::Boolean(*value),
            Value::DateTime(value) => ValueRef::DateTime(*value),
            Value::Double(value) => ValueRef::Double(*value),
            Value::Guid(value) => ValueRef::Guid(*value),
            Value::Int32(value) => ValueRef::Int32(*value),
            Value::Int64(value) => ValueRef::Int64(*value),
            Value::String(text) => ValueRef::String(text),
        }
    }
}

/// A value read in place: what is stored.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs, reason = "each variant is the EDM type of its name")]
pub enum ValueRef<'a> {
    Binary(&'a [u8]),
    Boolean(bool),
    DateTime(Ticks),
    Double(f64),
    Guid(Guid),
    Int32(i32),
    Int64(i64),
    String(&'a str),
}

impl ValueRef<'_> {
    /// The type of the value.
    pub fn edm_type(&self) -> EdmType {
        match self {
            ValueRef::Binary(_) => EdmType::Binary,
            ValueRef::Boolean(_) => EdmType::Boolean,
            ValueRef::DateTime(_) => EdmType::DateTime,
            ValueRef::Double(_) => EdmType::Double,
            ValueRef::Guid(_) => EdmType::Guid,
            ValueRef::Int32(_) => EdmType::Int32,
            ValueRef::Int64(_) => EdmType::Int64,
            ValueRef::String(_) => EdmType::String,
        }
    }

    /// The bytes the value counts in the size of its entity, by the published formula.
    pub fn size_bytes(&self) -> usize {
        match self {
            ValueRef::Binary(bytes) => bytes.len() + 4,
            ValueRef::Boolean(_) => 1,
            ValueRef::Int32(_) => 4,
            ValueRef::DateTime(_) | ValueRef::Double(_) | ValueRef::Int64(_) => 8,
            ValueRef::Guid(_) => 16,
            ValueRef::String(text) => 2 * utf16_units(text.as_bytes()) + 4,
        }
    }

    /// About how many bytes the value takes where it is stored.
    pub(crate) fn stored_bytes(&self) -> usize {
        match self {
            ValueRef::Binary(bytes) => bytes.len(),
            ValueRef::String(text) => text.len(),
            _ => 16,
        }
    }

    /// The same value, owned.
    pub fn to_value(self) -> Value {
        match self {
            ValueRef::Binary(bytes) => Value::Binary(bytes.to_vec()),
            ValueRef::Boolean(value) => Value::Boolean(value),
            ValueRef::DateTime(value) => Value::DateTime(value),
            ValueRef::Double(value) => Value::Double(value),
            ValueRef::Guid(value) => Value::Guid(value),
            ValueRef::Int32(value) => Value::Int32(value),
            ValueRef::Int64(value) => Value::Int64(value),
            ValueRef::String(text) => Value::String(text.to_owned()),
        }
    }
}

/// How long a text, of which these are the bytes, is as the service counts: in UTF-16 code units.
pub(crate) fn utf16_units(text: &[u8]) -> usize {
    // Every byte that starts a character is one unit, and a character of four bytes is two.
    text.iter().map(|&byte| usize::from(byte & 0xC0 != 0x80) + usize::from(byte >= 0xF0)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_round_trip() {
        for edm in EdmType::ALL {
            assert_eq!(EdmType::parse(edm.name()), Some(edm));
        }
        assert_eq!(EdmType::parse("Edm.Null"), None);
    }

    proptest! {
        #[test]
        fn units_are_counted_as_utf16(text in any::<String>()) {
            prop_assert_eq!(utf16_units(text.as_bytes()), text.encode_utf16().count());
        }
    }
}
