//! Everything that travels in a body of the Table service, both ways: entity JSON, `$batch` multipart, continuation
//! tokens, the XML of access policies and service properties, and error bodies.
//!
//! Plain values go in and come out. There is no HTTP type, no I/O and no clock here, so that a server, a client and a
//! test use the same functions. Whatever arrives is refused with a [`partita_model::ServiceError`] or understood; no
//! input panics, and none takes more memory than a small multiple of its own size.

pub mod batch;
pub mod cors;
pub mod entity_json;
pub mod error_body;
mod json_text;
pub mod token;
pub mod url;
pub mod xml;
