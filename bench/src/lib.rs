//! The benchmark of Partita: starts it and others on loopback, one at a time, loads them all in the same way, and
//! compares.
//!
//! ```text
//! run ── for each round, group of workloads and contestant: start, fill, measure, stop
//!  ├─ contestants   how each is started and filled, and which wires talk to it
//!  ├─ load          the loops: sockets, clock, histogram
//!  │   └─ wire      bytes out, bytes in: HTTP, RESP, PostgreSQL
//!  ├─ table         signed requests, and the workloads as conversations
//!  └─ results ── report, goals, plots
//! ```
//!
//! The machine is shared by server and load, and often by others. So figures are ratios within one round, the median of
//! several rounds, and the spread is always told.

pub mod client;
pub mod contestants;
pub mod entity;
pub mod goals;
pub mod histogram;
pub mod load;
pub mod machine;
pub mod plots;
pub mod process;
pub mod report;
pub mod results;
pub mod run;
pub mod table;
pub mod used_memory;
pub mod wire;
pub mod workloads;

/// What went wrong, in words for the user.
pub type Error = Box<dyn std::error::Error + Send + Sync>;
/// A result whose error is a text for the user.
pub type Result<T> = std::result::Result<T, Error>;
