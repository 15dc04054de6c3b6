//! The stored form of an entity's properties: writing it, and reading it in place.
//!
//! ```text
//! record   = format property*
//! format   = 01
//! property = length name tag value
//! length   = LEB128, of the name in bytes of UTF-8
//! tag      = one byte per type, below
//! value    = 1 Binary    length bytes        5 Guid     16 bytes
//!            2 Boolean   1 byte, 00 or 01    6 Int32    4 bytes, little endian
//!            3 DateTime  8 bytes, LE ticks   7 Int64    8 bytes, little endian
//!            4 Double    8 bytes, LE bits    8 String   length UTF-8
//! ```
//!
//! Keys and Timestamp are not in it: they are the row's key and version. Properties stand in the order in which the
//! client gave them. There is no directory of offsets: entities have few properties, and walking a dozen of them costs
//! less than a directory would cost to store and check. Tags and the format byte never change their meaning.

use crate::{EdmType, Guid, Property, Ticks, ValueRef};

const FORMAT: u8 = 1;

/// Stored properties, read in place.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    properties: &'a [u8],
}

/// Bytes that are no record: the file they came from is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CorruptRecord;

impl std::fmt::Display for CorruptRecord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a stored row is not in a format this version reads")
    }
}

impl std::error::Error for CorruptRecord {}

/// A value as it is stored: a text may be damaged.
#[derive(Clone, Copy, Debug)]
pub enum StoredValue<'a> {
    /// What should be UTF-8.
    Text(&'a [u8]),
    /// A value of another type than String.
    Other(ValueRef<'a>),
}

impl<'a> StoredValue<'a> {
    fn to_value_ref(self) -> Result<ValueRef<'a>, CorruptRecord> {
        match self {
            StoredValue::Text(bytes) => text(bytes).map(ValueRef::String),
            StoredValue::Other(value) => Ok(value),
        }
    }
}

impl<'a> From<ValueRef<'a>> for StoredValue<'a> {
    fn from(value: ValueRef<'a>) -> StoredValue<'a> {
        match value {
            ValueRef::String(text) => StoredValue::Text(text.as_bytes()),
            value => StoredValue::Other(value),
        }
    }
}

fn text(bytes: &[u8]) -> Result<&str, CorruptRecord> {
    std::str::from_utf8(bytes).map_err(|_| CorruptRecord)
}

/// A record in the making: what a client sent, already in the form in which it stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordBuf(Vec<u8>);

impl RecordBuf {
    /// A record without properties, with room for so many bytes of them.
    pub fn with_capacity(bytes: usize) -> RecordBuf {
        let mut out = Vec::with_capacity(1 + bytes);
        out.push(FORMAT);
        RecordBuf(out)
    }

    /// Adds a property at the end.
    pub fn push(&mut self, name: &str, value: ValueRef<'_>) {
        encode_property(&mut self.0, name, value);
    }

    /// Its bytes, which [`Record::open`] takes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// The same, to be read.
    pub fn as_record(&self) -> Record<'_> {
        Record { properties: &self.0[1..] }
    }
}

impl Default for RecordBuf {
    fn default() -> RecordBuf {
        RecordBuf::with_capacity(0)
    }
}

impl<P: AsRef<[Property]>> From<P> for RecordBuf {
    fn from(properties: P) -> RecordBuf {
        let properties = properties.as_ref();
        let bytes = |Property { name, value }: &Property| name.len() + value.as_ref().stored_bytes() + 8;
        let mut record = RecordBuf::with_capacity(properties.iter().map(bytes).sum());
        for Property { name, value } in properties {
            record.push(name, value.as_ref());
        }
        record
    }
}

/// Records in the making, one behind the other: those of all entities that a client sent together. They share one piece of
/// memory, and whoever holds one of them holds on to that.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Records(Vec<u8>);

impl Records {
    /// None yet, with room for so many bytes of them.
    pub fn with_capacity(bytes: usize) -> Records {
        Records(Vec::with_capacity(bytes))
    }

    /// Begins a record behind all others, and says where.
    pub fn begin(&mut self) -> usize {
        self.0.push(FORMAT);
        self.0.len() - 1
    }

    /// Adds a property at the end of the last record.
    pub fn push(&mut self, name: &str, value: ValueRef<'_>) {
        encode_property(&mut self.0, name, value);
    }

    /// Takes back the record that was begun there, the last one.
    pub fn take_back(&mut self, start: usize) {
        self.0.truncate(start);
    }

    /// Where the last record ends, for now.
    pub fn end(&self) -> usize {
        self.0.len()
    }

    /// The bytes of all of them.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

impl<'a> Record<'a> {
    /// The stored form of `properties`.
    pub fn encode(properties: &[Property]) -> Vec<u8> {
        RecordBuf::from(properties).0
    }

    /// The record after a merge with `changes`: each replaces the property of its name or joins at the end.
    pub fn merged(self, changes: Record<'_>) -> Result<RecordBuf, CorruptRecord> {
        let mut merged = RecordBuf::with_capacity(self.size_bytes() + changes.size_bytes());
        for property in self.iter() {
            let (name, value) = property?;
            merged.push(name, changes.get(name)?.unwrap_or(value));
        }
        for change in changes.iter() {
            let (name, value) = change?;
            if self.get(name)?.is_none() {
                merged.push(name, value);
            }
        }
        Ok(merged)
    }

    /// The properties, each by itself.
    pub fn to_properties(self) -> Result<Vec<Property>, CorruptRecord> {
        let owned = |(name, value): (&str, ValueRef<'_>)| Property { name: name.to_owned(), value: value.to_value() };
        self.iter().map(|property| property.map(owned)).collect()
    }

    /// Takes `bytes` for a record. Only the format is checked here; a damaged property shows when it is read.
    pub fn open(bytes: &'a [u8]) -> Result<Record<'a>, CorruptRecord> {
        match bytes {
            [FORMAT, properties @ ..] => Ok(Record { properties }),
            _ => Err(CorruptRecord),
        }
    }

    /// How many bytes it has.
    pub fn size_bytes(self) -> usize {
        self.properties.len() + 1
    }

    /// The value of a property, if there is one of that name.
    pub fn get(self, wanted: &str) -> Result<Option<ValueRef<'a>>, CorruptRecord> {
        let mut cursor = Cursor(self.properties);
        while !cursor.0.is_empty() {
            let name = cursor.counted()?;
            let tag = cursor.byte()?;
            if name == wanted.as_bytes() {
                return cursor.value(tag)?.to_value_ref().map(Some);
            }
            cursor.skip(tag)?;
        }
        Ok(None)
    }

    /// The properties in order. After an error there is nothing more.
    pub fn iter(self) -> impl Iterator<Item = Result<(&'a str, ValueRef<'a>), CorruptRecord>> {
        let mut stored = self.stored();
        let mut is_whole = true;
        std::iter::from_fn(move || {
            if !is_whole {
                return None;
            }
            let property = stored.next()?.and_then(|(name, value)| Ok((text(name)?, value.to_value_ref()?)));
            is_whole = property.is_ok();
            Some(property)
        })
    }

    /// The names of the properties in order. After an error there is nothing more.
    pub(crate) fn names(self) -> impl Iterator<Item = Result<&'a [u8], CorruptRecord>> {
        self.each(|cursor| {
            let name = cursor.counted()?;
            let tag = cursor.byte()?;
            cursor.skip(tag).map(|()| name)
        })
    }

    /// The properties in order, for those who check texts themselves. After an error there is nothing more.
    pub fn stored(self) -> impl Iterator<Item = Result<(&'a [u8], StoredValue<'a>), CorruptRecord>> {
        self.each(Cursor::property)
    }

    /// What `read` makes of each property. After an error there is nothing more.
    fn each<T>(
        self,
        mut read: impl FnMut(&mut Cursor<'a>) -> Result<T, CorruptRecord>,
    ) -> impl Iterator<Item = Result<T, CorruptRecord>> {
        let mut cursor = Cursor(self.properties);
        std::iter::from_fn(move || {
            if cursor.0.is_empty() {
                return None;
            }
            let property = read(&mut cursor);
            if property.is_err() {
                cursor.0 = &[];
            }
            Some(property)
        })
    }
}

fn encode_property(out: &mut Vec<u8>, name: &str, value: ValueRef<'_>) {
    encode_counted(out, name.as_bytes());
    out.push(tag_of(value.edm_type()));
    match value {
        ValueRef::Binary(bytes) => encode_counted(out, bytes),
        ValueRef::Boolean(value) => out.push(u8::from(value)),
        ValueRef::DateTime(value) => out.extend(value.0.to_le_bytes()),
        ValueRef::Double(value) => out.extend(value.to_bits().to_le_bytes()),
        ValueRef::Guid(value) => out.extend(value.0),
        ValueRef::Int32(value) => out.extend(value.to_le_bytes()),
        ValueRef::Int64(value) => out.extend(value.to_le_bytes()),
        ValueRef::String(text) => encode_counted(out, text.as_bytes()),
    }
}

fn encode_counted(out: &mut Vec<u8>, bytes: &[u8]) {
    let mut length = bytes.len();
    while length >= 0x80 {
        out.push(length as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
    out.extend(bytes);
}

fn tag_of(edm: EdmType) -> u8 {
    match edm {
        EdmType::Binary => 1,
        EdmType::Boolean => 2,
        EdmType::DateTime => 3,
        EdmType::Double => 4,
        EdmType::Guid => 5,
        EdmType::Int32 => 6,
        EdmType::Int64 => 7,
        EdmType::String => 8,
    }
}

/// The bytes not read yet.
#[derive(Clone, Copy)]
struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], CorruptRecord> {
        let (head, rest) = self.0.split_at_checked(count).ok_or(CorruptRecord)?;
        self.0 = rest;
        Ok(head)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], CorruptRecord> {
        let (head, rest) = self.0.split_first_chunk().ok_or(CorruptRecord)?;
        self.0 = rest;
        Ok(*head)
    }

    fn byte(&mut self) -> Result<u8, CorruptRecord> {
        let (byte, rest) = self.0.split_first().ok_or(CorruptRecord)?;
        self.0 = rest;
        Ok(*byte)
    }

    fn counted(&mut self) -> Result<&'a [u8], CorruptRecord> {
        // Nearly all lengths take one byte.
        let byte = self.byte()?;
        if byte < 0x80 {
            return self.take(byte.into());
        }
        let mut length = usize::from(byte & 0x7F);
        for shift in [7, 14, 21] {
            let byte = self.byte()?;
            length |= usize::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return self.take(length);
            }
        }
        Err(CorruptRecord)
    }

    fn property(&mut self) -> Result<(&'a [u8], StoredValue<'a>), CorruptRecord> {
        let name = self.counted()?;
        let tag = self.byte()?;
        Ok((name, self.value(tag)?))
    }

    fn value(&mut self, tag: u8) -> Result<StoredValue<'a>, CorruptRecord> {
        Ok(StoredValue::Other(match tag {
            1 => ValueRef::Binary(self.counted()?),
            2 => ValueRef::Boolean(self.byte()? != 0),
            3 => ValueRef::DateTime(Ticks(u64::from_le_bytes(self.array()?))),
            4 => ValueRef::Double(f64::from_bits(u64::from_le_bytes(self.array()?))),
            5 => ValueRef::Guid(Guid(self.array()?)),
            6 => ValueRef::Int32(i32::from_le_bytes(self.array()?)),
            7 => ValueRef::Int64(i64::from_le_bytes(self.array()?)),
            8 => return self.counted().map(StoredValue::Text),
            _ => return Err(CorruptRecord),
        }))
    }

    fn skip(&mut self, tag: u8) -> Result<(), CorruptRecord> {
        match tag {
            1 | 8 => self.counted(),
            2 => self.take(1),
            3 | 4 | 7 => self.take(8),
            5 => self.take(16),
            6 => self.take(4),
            _ => return Err(CorruptRecord),
        }
        .map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Value;
    use proptest::prelude::*;

    fn value() -> impl Strategy<Value = Value> {
        prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..300).prop_map(Value::Binary),
            any::<bool>().prop_map(Value::Boolean),
            (0..=Ticks::MAX.0).prop_map(|ticks| Value::DateTime(Ticks(ticks))),
            proptest::num::f64::NORMAL.prop_map(Value::Double),
            any::<[u8; 16]>().prop_map(|bytes| Value::Guid(Guid(bytes))),
            any::<i32>().prop_map(Value::Int32),
            any::<i64>().prop_map(Value::Int64),
            any::<String>().prop_map(Value::String),
        ]
    }

    fn properties() -> impl Strategy<Value = Vec<Property>> {
        let named = proptest::collection::btree_map("[A-Za-z_]{1,200}", value(), 0..12);
        named.prop_map(|named| named.into_iter().map(|(name, value)| Property { name, value }).collect())
    }

    proptest! {
        #[test]
        fn round_trips(properties in properties()) {
            let bytes = Record::encode(&properties);
            let record = Record::open(&bytes).unwrap();
            prop_assert_eq!(&record.to_properties().unwrap(), &properties);
            for property in &properties {
                prop_assert_eq!(record.get(&property.name).unwrap(), Some(property.value.as_ref()));
            }
            prop_assert_eq!(record.get("absent!").unwrap(), None);
        }

        #[test]
        fn a_merge_replaces_and_adds(old in properties(), new in properties(), shared in proptest::collection::vec(value(), 0..4)) {
            // Some names on both sides; any others are equal by chance at most.
            let shared = || shared.iter().enumerate().map(|(n, value)| Property { name: format!("{n}"), value: value.clone() });
            let old: Vec<_> = old.into_iter().chain(shared().map(|property| Property { value: Value::Int32(0), ..property })).collect();
            let new: Vec<_> = shared().chain(new).collect();
            let mut expect = old.clone();
            for change in &new {
                match expect.iter_mut().find(|property| property.name == change.name) {
                    Some(property) => property.value = change.value.clone(),
                    None => expect.push(change.clone()),
                }
            }
            let (old, new) = (RecordBuf::from(old), RecordBuf::from(new));
            prop_assert_eq!(old.as_record().merged(new.as_record()).unwrap(), RecordBuf::from(expect));
        }

        #[test]
        fn damaged_bytes_are_reported_and_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(record) = Record::open(&bytes) {
                let _ = record.iter().count();
                let _ = record.get("x");
            }
        }

        #[test]
        fn a_cut_record_is_never_whole(properties in properties(), cut in 1usize..20) {
            let bytes = Record::encode(&properties);
            prop_assume!(cut < bytes.len());
            let record = Record::open(&bytes[..bytes.len() - cut]).unwrap();
            prop_assert!(record.to_properties().map_or(true, |read| read.len() < properties.len()));
        }
    }

    #[test]
    fn nothing_follows_a_damaged_text() {
        let record = Record::open(b"\x01\x01a\x08\x01\xFF\x01b\x02\x01").unwrap();
        assert_eq!(record.iter().collect::<Vec<_>>(), [Err(CorruptRecord)]);
    }

    #[test]
    fn the_bytes_are_stable() {
        let bytes = Record::encode(&[("Age", Value::Int32(39)).into(), ("Name", Value::String("Ann".into())).into()]);
        assert_eq!(bytes, b"\x01\x03Age\x06\x27\0\0\0\x04Name\x08\x03Ann");
    }
}
