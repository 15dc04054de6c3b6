//! The embedded engine: rows in RocksDB, one folder for one process.
//!
//! # Reads and writes
//!
//! ```text
//!   commit --> queue --> committer: check expectations, one WriteBatch, one sync --> answers
//!   commit -->   |            (each takes all that queued during the sync before it)
//!   commit -->   |
//!
//!   get, scan ---------------> RocksDB, on the thread of the caller (gets of a moment in one go)
//! ```
//!
//! One thread writes. It checks what each commit expects against the engine and the commits before it in the same
//! group, so that the commits of a group, though written and synced at once, are applied as if one by one. Readers go
//! to RocksDB directly: it shows a batch to readers as a whole, and only when its log was written and synced. A thread beside
//! keeps the log longer than it is, by zeros, which makes syncs cheaper (`runway`).
//!
//! # Bytes on disk
//!
//! One column family, keys compared as bytes, integers big endian. The first byte of a key says what it is:
//!
//! ```text
//!   00 "format"                             u32                    of these bytes, 1 today
//!   00 "version"                            u64                    the greatest version given to any row
//!   01 space u64 esc(partition) 00 01 esc(row)   version u64 | value    a row
//! ```
//!
//! How a row's key is made is told in `partita-store`, which has the code for it. What a value says is the business of
//! the callers. The format changes when one of these lines does; a store refuses a folder of a later format in a
//! sentence.
//!
//! Beside the files of RocksDB there is one, `CONDITION`, that says how its logs were written and in what state it was closed.
//!
//! `version` is written with every group. Versions therefore go on growing across restarts, whatever has happened to the
//! clock and to the rows: a deleted row leaves nothing behind that could remember its own.
//!
//! The rows of a dropped space are deleted by the batch that drops it, one by one if they are few and by one range
//! deletion if they are many, which costs the same for any number of rows. RocksDB gives the disk space back when it
//! compacts the range, which a thread makes it do in the background.

mod columns;
mod commit;
mod committer;
mod condition;
mod counters;
mod failure;
mod files;
mod format;
mod group;
mod in_one_go;
mod list_check;
mod log_check;
mod open;
mod options;
mod places;
mod queue;
mod read_only;
mod reader;
mod recent;
mod reclaim;
mod row_cache;
mod runway;
mod scan;
mod settings;
mod spaces;
mod store;
mod survey;

pub use open::OpenError;
pub use options::{Durability, Options};
pub use reader::{Damage, FileProblem, Lost, Reader, Rows, StoredRow};
pub use store::RocksStore;
