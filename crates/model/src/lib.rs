//! The nouns of the Table service: names, keys, typed values, entities, ETags, limits and errors.
//!
//! Everything here is plain data with its rules: no I/O, no clock, no JSON. A value of one of these types is valid;
//! whatever comes from outside is checked once, where it is turned into one of them.

mod access_policy;
mod entity;
mod error;
mod etag;
mod guid;
mod key;
pub mod limits;
mod position;
mod record;
mod service_properties;
mod table_name;
mod ticks;
mod value;

pub use access_policy::StoredAccessPolicy;
pub use entity::{EntityView, Property, check_limits};
pub use error::{Layer, ServiceError, Status};
pub use etag::{ETag, IfMatch};
pub use guid::Guid;
pub use key::{KeyError, PartitionKey, RefusedKey, RowKey};
pub use position::Position;
pub use record::{CorruptRecord, Record, RecordBuf, Records, StoredValue};
pub use service_properties::{CorsRule, Logging, Metrics, ServiceProperties};
pub use table_name::{TableName, TableNameError};
pub use ticks::{Ticks, TimeText};
pub use value::{EdmType, Value, ValueRef};
