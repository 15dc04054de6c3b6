//! An entity on its way.

use partita_model::{Property, Record};

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

/// Whether keys, names, order, types and values are the same. Unlike numbers, NaN is the same as NaN here, and 0.0 is not
/// the same as -0.0.
impl PartialEq for Entity {
    fn eq(&self, other: &Entity) -> bool {
        self.partition_key == other.partition_key
            && self.row_key == other.row_key
            && Record::encode(&self.properties) == Record::encode(&other.properties)
    }
}
