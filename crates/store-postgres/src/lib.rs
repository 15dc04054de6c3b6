//! The engine for more than one machine: rows in a database that speaks PostgreSQL's wire protocol.
//!
//! ```text
//! options   the URL: where the database is and how many connections are kept
//! pool      connections that are alive, each with its statements prepared
//! readiness whether the database answers, for whoever sends requests here
//! schema    the tables, made by whoever comes first, and brought to a later format when that is asked for
//! sql       every statement, once, with the plan it must get
//! commit    one round trip for the common cases, retries, what became of a commit
//! together  point reads and inserts of several requests in one statement
//! scan      pages by key in one snapshot
//! sweep     rows of dropped spaces and old tombstones, reclaimed in the background
//! tls       encrypted connections
//! failure   errors of the database, cut by what we do next
//! ```
//!
//! Any number of nodes share one database and none of them owns anything: what must be exact is decided by the database,
//! in one snapshot, see `docs/design/postgres.md`. Nothing that was read is kept.

mod commit;
mod failure;
mod options;
mod pool;
mod readiness;
mod scan;
mod schema;
pub mod sql;
mod store;
mod sweep;
mod tls;
mod together;

pub use options::Options;
pub use schema::{Migration, migrate, migration_sql};
pub use store::PostgresStore;
pub use sweep::Grace;
