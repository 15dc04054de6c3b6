//! The query options of the Table service: `$filter` and `$top`.
//!
//! A filter is read once into a [`Filter`], and from it follows a [`Plan`]: which keys can match at all. Whoever reads
//! rows asks the plan where to go and the filter whether a row is wanted:
//!
//! ```
//! use partita_model::{EntityView, Record, Ticks};
//! use partita_odata::{Filter, Plan, PlanClass, Seek};
//!
//! let filter = Filter::parse("PartitionKey eq 'uk' and RowKey ge '5' and Age gt 30")?.expect("not blank");
//! let plan = Plan::of(Some(&filter));
//! assert_eq!(plan.class(), PlanClass::Range);
//! assert_eq!(plan.seek(b"uk", b"7"), Seek::Here);
//!
//! let bytes = Record::encode(&[("Age", partita_model::Value::Int32(39)).into()]);
//! let record = Record::open(&bytes)?;
//! let entity = EntityView { partition_key: "uk", row_key: "7", timestamp: Ticks(0), record };
//! assert!(filter.matches(&entity)?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Nothing here reads rows, knows of pages or continuation tokens, or sees a URL: percent-encoding is undone before.

mod evaluate;
mod filter;
mod key_set;
mod lexer;
mod literal;
mod outline;
mod parser;
mod plan;
mod top;

#[cfg(test)]
mod samples;

pub use filter::{Filter, Op};
pub use outline::Outline;
pub use plan::{Plan, PlanClass, Seek};
pub use top::parse_top;
