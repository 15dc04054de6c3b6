//! What tests of the server share: servers to talk to, exact bytes to say to them, and signatures.
//!
//! ```text
//! server    a server in this process, in memory, stopped when it goes out of scope
//! process   the real binary as a process of its own
//! http      requests and connections: what is sent is what was written, what came is what is read
//! signing   accounts, keys and shared access signatures
//! batch     multipart bodies and what came of their parts
//! postgres  a database server of the tests' own
//! proxy     a way to a server that can be slow, be held up, or be cut
//! ```

#![allow(missing_docs, reason = "names of requests, responses and accounts say what they are")]

pub mod batch;
pub mod http;
pub mod postgres;
pub mod process;
pub mod proxy;
pub mod server;
pub mod signing;
