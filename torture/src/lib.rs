//! Tortures Partita and checks from outside that it keeps its promises.
//!
//! ```text
//! run ── rounds of load on one folder; kills, stops and starts the server in between
//!  ├─ client      asks over HTTP and writes down what was asked, when, and what was answered
//!  │   └─ workload   what to ask next, from a seed
//!  ├─ history     calls: who, what, when, answer
//!  └─ check       could a correct server have answered so
//!      ├─ steps       calls as guards and effects
//!      └─ linearize   the search for an order
//! mutants ── stores that break one promise each, to show that the check can fail
//! ```
//!
//! The check knows nothing of the server and trusts nothing it says: whatever clients saw must fit together.

pub mod check;
pub mod client;
pub mod faults;
pub mod history;
mod linearize;
pub mod mutants;
pub mod random;
pub mod run;
pub mod serve;
mod steps;
mod workload;
