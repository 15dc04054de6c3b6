//! A small simulator of what a distributed store does with key designs: ranges that are split and merged, leaders that are
//! moved, nodes that refuse what is too much. It shows why the design of keys matters, and what reading pays for it.
//!
//! ```text
//! run ── half an hour of events ── key: where a design puts them, and where it looks for them
//!  └─ cluster ── split: where ranges end    balance: who leads them
//! report, plot, capacity, documents: what becomes of it in docs/scale.md and docs/scale/
//! ```
//!
//! Everything follows from a seed. Nothing is measured: figures of a real cluster are other ones, their order is not.

mod balance;
pub mod capacity;
pub mod cluster;
pub mod documents;
pub mod key;
pub mod plot;
pub mod random;
pub mod report;
pub mod run;
mod split;

#[cfg(test)]
mod tests;
