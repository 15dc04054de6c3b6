//! Entities and tables as JSON, in the OData 3 dialect of the Table service.
//!
//! Reading keeps what JSON libraries usually lose and the service does not: whether a number was written `3` or `3.0`,
//! all its digits, and a member that comes twice. Writing goes from the stored bytes of an entity straight into the
//! response buffer; there is no tree in between.

mod decode;
mod double;
mod flat;
mod members;
mod select;
mod write;

#[cfg(test)]
mod decode_tests;
#[cfg(test)]
mod write_tests;

pub use decode::{EntityBody, KeyField, decode, decode_table_name, parse_value};
pub use select::SelectColumns;
pub use write::{Context, EntityPage, Metadata, TablesContext, write_entity, write_table, write_tables, write_typed};
