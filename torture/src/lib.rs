//! Tortures Partita and checks from outside that it keeps its promises.
//!
//! ```text
//! faults ── what goes away while clients ask, and when
//!  └─ cluster     the processes, and the folder or the database they are on
//! run ── rounds of load on one server or several, and what must be there behind each
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
pub mod cluster;
pub mod faults;
pub mod history;
mod linearize;
pub mod mutants;
pub mod random;
pub mod run;
pub mod serve;
mod steps;
mod workload;
