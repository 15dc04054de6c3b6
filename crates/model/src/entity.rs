//! Entities, and the limits they keep.

use crate::limits::{
    BINARY_BYTES_MAX, CUSTOM_PROPERTIES_MAX, ENTITY_BYTES_MAX, PROPERTY_NAME_UNITS_MAX, STRING_UNITS_MAX,
};
use crate::value::utf16_units;
use crate::{CorruptRecord, ETag, Record, ServiceError, StoredValue, Ticks, Value, ValueRef};

/// A named value of an entity.
#[derive(Clone, Debug, PartialEq)]
pub struct Property {
    /// Case-sensitive; unique within its entity.
    pub name: String,
    /// Never null: a null property is not stored.
    pub value: Value,
}

impl From<(&str, Value)> for Property {
    fn from((name, value): (&str, Value)) -> Property {
        Property { name: name.to_owned(), value }
    }
}

/// Checks what the service asks of an entity as a whole: how many properties, their names, the size of each value, the
/// size of all, which is by the published formula
///
/// ```text
/// 4 + 2 * (units of PartitionKey and RowKey) + sum over properties of (8 + 2 * units of the name + size of the value)
/// ```
///
/// where a unit is one of UTF-16. For a merge these hold for the result.
pub fn check_limits(partition_key: &str, row_key: &str, record: Record<'_>) -> Result<(), ServiceError> {
    let (mut count, mut has_long_name, mut invalid_name) = (0, false, None);
    // What was just written is whole: there are no errors to pass over.
    for name in record.names().flatten() {
        count += 1;
        has_long_name |= name.len() > PROPERTY_NAME_UNITS_MAX && utf16_units(name) > PROPERTY_NAME_UNITS_MAX;
        if invalid_name.is_none() && !is_property_name(name) {
            invalid_name = Some(name);
        }
    }
    let text = |name| String::from_utf8_lossy(name).into_owned();
    if count > CUSTOM_PROPERTIES_MAX {
        return Err(ServiceError::TooManyProperties);
    }
    if has_long_name {
        return Err(ServiceError::PropertyNameTooLong);
    }
    if let Some(name) = invalid_name {
        return Err(ServiceError::PropertyNameInvalid { name: text(name) });
    }
    // A text has at most as many units as bytes and any other value but bytes 16, so that nothing has to be counted where
    // the bytes are few.
    if 2 * (2 + partition_key.len() + row_key.len() + record.size_bytes() + 12 * count) < STRING_UNITS_MAX {
        return Ok(());
    }
    let mut size = 4 + 2 * (utf16_units(partition_key.as_bytes()) + utf16_units(row_key.as_bytes()));
    for (name, value) in record.stored().flatten() {
        let (bytes, too_large) = match value {
            StoredValue::Text(text) => {
                let units = utf16_units(text);
                (2 * units + 4, units > STRING_UNITS_MAX)
            }
            StoredValue::Other(value) => {
                let too_large = matches!(value, ValueRef::Binary(bytes) if bytes.len() > BINARY_BYTES_MAX);
                (value.size_bytes(), too_large)
            }
        };
        if too_large {
            return Err(ServiceError::PropertyValueTooLarge { name: text(name) });
        }
        size += 8 + 2 * utf16_units(name) + bytes;
    }
    if size > ENTITY_BYTES_MAX {
        return Err(ServiceError::EntityTooLarge);
    }
    Ok(())
}

/// C# identifier rules: a letter or `_` first, then letters, digits, combining marks and connectors.
fn is_property_name(name: &[u8]) -> bool {
    let is_plain = |byte: &u8| *byte == b'_' || byte.is_ascii_alphanumeric();
    if name.iter().all(is_plain) {
        return name.first().is_some_and(|byte| !byte.is_ascii_digit());
    }
    let Ok(name) = std::str::from_utf8(name) else { return false };
    let mut characters = name.chars();
    let starts = |c: char| c == '_' || c.is_alphabetic();
    let continues = |c: char| c == '_' || c.is_alphanumeric() || (!c.is_ascii() && is_mark_or_connector(c));
    characters.next().is_some_and(starts) && characters.all(continues)
}

/// Combining marks and connectors of the scripts in use. The standard library knows letters and digits, not these; a table
/// of all of Unicode would be a dependency for names that hardly anybody writes.
fn is_mark_or_connector(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36F}' | '\u{483}'..='\u{487}' | '\u{591}'..='\u{5C7}' | '\u{610}'..='\u{61A}'
        | '\u{64B}'..='\u{669}' | '\u{6D6}'..='\u{6ED}' | '\u{900}'..='\u{DFF}' | '\u{E31}'..='\u{E4E}'
        | '\u{1AB0}'..='\u{1AFF}' | '\u{1DC0}'..='\u{1DFF}' | '\u{200C}' | '\u{200D}' | '\u{203F}' | '\u{2040}'
        | '\u{2054}' | '\u{20D0}'..='\u{20FF}' | '\u{302A}'..='\u{302F}' | '\u{3099}' | '\u{309A}'
        | '\u{FE00}'..='\u{FE0F}' | '\u{FE20}'..='\u{FE2F}' | '\u{FE33}' | '\u{FE34}' | '\u{FE4D}'..='\u{FE4F}' | '\u{FF3F}')
}

/// A stored entity, read in place: what filters look at and responses are written from.
#[derive(Clone, Copy, Debug)]
pub struct EntityView<'a> {
    /// The partition the entity belongs to.
    pub partition_key: &'a str,
    /// Its name there.
    pub row_key: &'a str,
    /// When it was last written.
    pub timestamp: Ticks,
    /// Its own properties.
    pub record: Record<'a>,
}

impl<'a> EntityView<'a> {
    /// The tag of this version.
    pub fn etag(&self) -> ETag {
        ETag(self.timestamp)
    }

    /// The value of a property, system properties included.
    pub fn property(&self, name: &str) -> Result<Option<ValueRef<'a>>, CorruptRecord> {
        Ok(match name {
            "PartitionKey" => Some(ValueRef::String(self.partition_key)),
            "RowKey" => Some(ValueRef::String(self.row_key)),
            "Timestamp" => Some(ValueRef::DateTime(self.timestamp)),
            _ => return self.record.get(name),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RecordBuf;

    fn check_properties(partition_key: &str, row_key: &str, properties: &[Property]) -> Result<(), ServiceError> {
        check_limits(partition_key, row_key, RecordBuf::from(properties).as_record())
    }

    fn check(properties: &[(&str, Value)]) -> Result<(), &'static str> {
        let properties: Vec<_> =
            properties.iter().map(|(name, value)| Property::from((*name, value.clone()))).collect();
        check_properties("UK", "0001", &properties).map_err(|error| error.code())
    }

    #[test]
    fn names() {
        for name in ["a", "_", "A1", "_ClientEncryptionMetadata1", "\u{554A}\u{9F44}", "e\u{301}", &"a".repeat(255)] {
            assert_eq!(check(&[(name, Value::Int32(1))]), Ok(()), "{name}");
        }
        for name in ["", "1a", "a-b", "a b", "a.b", "a/b", "a'b", "\u{301}"] {
            assert_eq!(check(&[(name, Value::Int32(1))]), Err("PropertyNameInvalid"), "{name}");
        }
        assert_eq!(check(&[(&"a".repeat(256), Value::Int32(1))]), Err("PropertyNameTooLong"));
    }

    #[test]
    fn values() {
        assert_eq!(check(&[("a", Value::String("x".repeat(32768)))]), Ok(()));
        assert_eq!(check(&[("a", Value::String("\u{20AC}".repeat(32768)))]), Ok(()));
        assert_eq!(check(&[("a", Value::String("x".repeat(32769)))]), Err("PropertyValueTooLarge"));
        assert_eq!(check(&[("a", Value::Binary(vec![0; 65536]))]), Ok(()));
        assert_eq!(check(&[("a", Value::Binary(vec![0; 65537]))]), Err("PropertyValueTooLarge"));
    }

    #[test]
    fn number_of_properties() {
        let many =
            |count| (0..count).map(|n| Property::from((format!("p{n}").as_str(), Value::Int32(1)))).collect::<Vec<_>>();
        assert_eq!(check_properties("", "", &many(252)), Ok(()));
        assert_eq!(check_properties("", "", &many(253)), Err(ServiceError::TooManyProperties));
    }

    #[test]
    fn size_by_the_published_formula() {
        // 4 + 2 * 6 for the keys, 15 * (8 + 4 + 65540) for full binaries named with two characters, the rest by one string.
        let mut properties: Vec<Property> = (10..25)
            .map(|n| {
                Property::from((
                    format!("p{n}")[1..].replace('1', "a").replace('2', "b").as_str(),
                    Value::Binary(vec![0; 65536]),
                ))
            })
            .collect();
        let used = 4 + 12 + 15 * (8 + 4 + 65540);
        let left = ENTITY_BYTES_MAX - used - (8 + 2 + 4);
        properties
            .iter_mut()
            .enumerate()
            .for_each(|(n, property)| property.name = format!("p{}", (b'a' + n as u8) as char));
        properties.push(("s", Value::Binary(vec![0; left])).into());
        assert_eq!(check_properties("UK", "0001", &properties), Ok(()));
        properties.pop();
        properties.push(("s", Value::Binary(vec![0; left + 1])).into());
        assert_eq!(check_properties("UK", "0001", &properties), Err(ServiceError::EntityTooLarge));
    }
}
