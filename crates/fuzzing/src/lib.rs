//! What fuzzing asks of everything that reads bytes from outside or from disk.
//!
//! A target is a plain function that takes any bytes and panics if a property does not hold. Not to crash is the least
//! of them: what is read is written and read again, and compared with a second, plainer way to the same answer.
//! `fuzz/` wraps each target for cargo-fuzz, which needs a nightly compiler; `tests/replay.rs` runs all of them on the
//! stored inputs with any compiler, so that whatever was found once is tested for ever.
//!
//! The readers of paths, queries and content types are private to the server, and the server links RocksDB. They know
//! nothing of either, so their files are compiled in here a second time.

mod batch;
mod catalogue;
mod entity_json;
mod filter;
mod http1;
mod key;
mod record;
mod request;
mod signature;
mod source;
mod token;
mod xml;

#[allow(dead_code, reason = "part of the server, of which only the reading of URLs is wanted")]
#[path = "../../server/src/address.rs"]
mod address;
#[allow(dead_code, reason = "as above")]
#[path = "../../server/src/listen/http1/chunks.rs"]
mod chunks;
#[allow(dead_code, reason = "as above")]
#[path = "../../server/src/head.rs"]
mod head;
#[allow(dead_code, reason = "as above")]
#[path = "../../server/src/header_name.rs"]
mod header_name;
#[allow(dead_code, reason = "as above")]
#[path = "../../server/src/headers.rs"]
mod headers;
#[allow(dead_code, reason = "as above")]
#[path = "../../server/src/negotiate.rs"]
mod negotiate;
#[allow(dead_code, reason = "as above")]
#[path = "../../server/src/operation.rs"]
mod operation;
#[allow(dead_code, reason = "as above")]
#[path = "../../server/src/listen/http1/parse.rs"]
mod parse;
#[allow(dead_code, reason = "as above")]
#[path = "../../server/src/query_string.rs"]
mod query_string;
#[allow(dead_code, reason = "as above")]
#[path = "../../server/src/resource.rs"]
mod resource;

pub use batch::batch;
pub use catalogue::catalogue;
pub use entity_json::entity_json;
pub use filter::{filter, filter_tree};
pub use http1::http1;
pub use key::key;
pub use record::record;
pub use request::request;
pub use signature::signature;
pub use token::token;
pub use xml::xml;

/// A target by its name, which is that of its folders in `fuzz/`.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The name.
    pub name: &'static str,
    /// Panics if a property does not hold for these bytes.
    pub run: fn(&[u8]),
}

macro_rules! targets {
    ($($name:ident),+) => {
        /// All targets.
        pub const TARGETS: &[Target] = &[$(Target { name: stringify!($name), run: $name }),+];
    };
}

targets!(batch, catalogue, entity_json, filter, filter_tree, http1, key, record, request, signature, token, xml);
