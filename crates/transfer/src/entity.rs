//! An entity on its way.

use partita_model::{PartitionKey, Property, Record, RowKey};
use std::cmp::Ordering;
use std::fmt;

/// Keys and properties. Not the Timestamp: whoever stores the entity next gives it a new one.
#[derive(Clone, Debug)]
pub struct Entity {
    /// The partition it belongs to.
    pub partition_key: String,
    /// Its name there.
    pub row_key: String,
    /// Its own properties, in order.
    pub properties: Vec<Property>,
}

impl Entity {
    /// Its keys.
    pub fn key(&self) -> Key {
        Key { partition_key: self.partition_key.clone(), row_key: self.row_key.clone() }
    }

    /// Which of two comes first in a table.
    pub fn order(&self, other: &Entity) -> Ordering {
        match self.partition_key == other.partition_key {
            true => RowKey::to_ordered(&self.row_key).cmp(&RowKey::to_ordered(&other.row_key)),
            false => PartitionKey::to_ordered(&self.partition_key).cmp(&PartitionKey::to_ordered(&other.partition_key)),
        }
    }

    /// What it says, as bytes: the same for the same keys, names, types and values, in whatever order a service gives its
    /// properties.
    pub fn content(&self) -> Vec<u8> {
        let mut properties: Vec<&Property> = self.properties.iter().collect();
        properties.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        let mut content = Vec::with_capacity(256);
        for key in [&self.partition_key, &self.row_key] {
            content.extend_from_slice(&(key.len() as u32).to_be_bytes());
            content.extend_from_slice(key.as_bytes());
        }
        content.extend_from_slice(&(properties.len() as u32).to_be_bytes());
        for property in properties {
            content.extend_from_slice(&Record::encode(std::slice::from_ref(property)));
        }
        content
    }

    /// The first property, by name, that two entities of the same keys do not have in common.
    pub(crate) fn first_difference<'e>(&'e self, other: &'e Entity) -> Option<&'e str> {
        let lacks = |entity: &Entity, property: &Property| {
            let encoded = Record::encode(std::slice::from_ref(property));
            !entity.properties.iter().any(|other| Record::encode(std::slice::from_ref(other)) == encoded)
        };
        let here = self.properties.iter().filter(|property| lacks(other, property));
        let there = other.properties.iter().filter(|property| lacks(self, property));
        here.chain(there).map(|property| property.name.as_str()).min()
    }
}

/// The keys of an entity, for people to find it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    partition_key: String,
    row_key: String,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (partition_key, row_key) = (self.partition_key.escape_debug(), self.row_key.escape_debug());
        write!(f, "PartitionKey '{partition_key}', RowKey '{row_key}'")
    }
}

/// Whether keys, names, order, types and values are the same. Unlike numbers, NaN is the same as NaN here, and 0.0 is not
/// the same as -0.0.
impl PartialEq for Entity {
    fn eq(&self, other: &Entity) -> bool {
        self.partition_key == other.partition_key
            && self.row_key == other.row_key
            && Record::encode(&self.properties) == Record::encode(&other.properties)
    }
}
