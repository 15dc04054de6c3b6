//! Ordered, durable rows: the contract every engine keeps, and the smallest engine that keeps it.
//!
//! Rows live in a *space* (one per table, and one for the catalogue), grouped into *partitions*, ordered by
//! (space, partition, row), all compared as bytes. The partition is the unit of atomicity. An engine knows nothing of
//! entities: keys and values are bytes.

mod clock;
mod key;
mod memory;
mod mirror;
pub mod suite;

pub use clock::{Clock, Versions};
pub use key::{KeyParts, decode_key, encode_key, encode_key_to, encode_position, space_end, space_prefix};
pub use memory::Memory;
pub use mirror::Mirror;
pub use partita_model::Position;

use async_trait::async_trait;
use bytes::Bytes;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

/// Names a set of rows that can be dropped in one step. Never used again once it was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Space(pub u64);

/// The version of a row: 100 ns ticks since the year 1, strictly increasing per row, across deletion and re-creation too.
pub type Version = u64;

/// A row that was read by its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// When it was last written.
    pub version: Version,
    /// What was written.
    pub value: Bytes,
}

/// A row as a scan meets it, valid until the visitor returns.
#[derive(Clone, Copy, Debug)]
pub struct RowRef<'a> {
    /// Its partition.
    pub partition: &'a [u8],
    /// Its name there.
    pub row: &'a [u8],
    /// When it was last written.
    pub version: Version,
    /// What was written.
    pub value: &'a [u8],
}

/// A stretch of rows to read.
#[derive(Clone, Debug)]
pub struct Scan<'a> {
    /// The space.
    pub space: Space,
    /// The first place, inclusive.
    pub start: Position,
    /// The place to stop at, exclusive; `None` for the end of the space.
    pub end: Option<Position>,
    /// When to give up. At least one row is visited or passed over however late it is.
    pub deadline: Instant,
    /// How many rows the caller expects to visit; a hint for engines that fetch in pages.
    pub rows_hint: usize,
    /// Which rows the visitor has no use for; a hint for engines that can look for the others on several threads. The
    /// visitor may be shown any row all the same.
    pub sieve: Option<&'a dyn Sieve>,
}

/// Names a number that each row has. What it tells of a row is the business of those who make sieves; to one space they give
/// one meaning for each name, for ever.
pub type Column = Arc<str>;

/// Tells rows that a visitor could want from rows that it does not.
pub trait Sieve: fmt::Debug + Sync {
    /// Whether the visitor could want the row; one that it could not want need not be shown. Engines call this on any
    /// thread, on several at once, and for rows that the scan does not reach in the end.
    fn keeps(&self, row: RowRef<'_>) -> bool;

    /// Called on the thread of the visitor with the number of rows that were not shown, before it is shown the row
    /// behind them, or before the scan ends.
    fn passed_over(&self, rows: u64);

    /// The columns by whose numbers alone many rows can be told to be of no use, so that an engine that keeps the numbers
    /// of rows need not read them; none if rows have to be read.
    fn columns(&self) -> &[Column] {
        &[]
    }

    /// The number of a row in a column of this sieve or of another for the same space; `None` if the row cannot be read.
    fn number(&self, column: &Column, row: RowRef<'_>) -> Option<u64> {
        let _ = (column, row);
        None
    }

    /// Whether [`keeps`](Sieve::keeps) could hold for one of up to 64 rows: for each of the [`columns`](Sieve::columns) their
    /// numbers.
    fn may_keep(&self, numbers: &[&[u64]]) -> bool {
        let _ = numbers;
        true
    }
}

/// What a visitor wants next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// The next row, or the next that the sieve keeps.
    Next,
    /// The next row, whether the sieve keeps it or not.
    NextAny,
    /// The first row at or behind a place, which must lie behind the present row. Costs one seek, whatever lies between.
    Seek(Position),
    /// Nothing more.
    Stop,
}

/// Why a scan ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScanEnd {
    /// The stretch was read to its end.
    Exhausted,
    /// The visitor said [`Step::Stop`].
    Stopped,
    /// Time ran out; the scan goes on at this place.
    Deadline(Position),
}

/// Called with each row of a scan, in order. Engines call it on the thread that runs the scan; it must not block.
pub type Visitor<'a> = dyn FnMut(RowRef<'_>) -> Step + Send + 'a;

/// A change to one partition, applied as a whole or not at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The space.
    pub space: Space,
    /// The partition.
    pub partition: Vec<u8>,
    /// What is expected of which rows and what becomes of them; a row appears at most once.
    pub items: Vec<Item>,
    /// A space that vanishes together with the change: all its rows, at once, for every reader.
    pub drop_space: Option<Space>,
}

/// One row of a [`Batch`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// The row.
    pub row: Vec<u8>,
    /// What must hold for the batch to be applied.
    pub expect: Expect,
    /// What becomes of the row.
    pub action: Action,
}

/// What a batch expects of a row as it is before the batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// Nothing.
    Any,
    /// There is no such row.
    Absent,
    /// There is one.
    Present,
    /// There is one, and this is its version.
    Version(Version),
}

impl Expect {
    /// Whether it holds for a row of the version `found`, or for no row.
    pub fn holds(self, found: Option<Version>) -> bool {
        match self {
            Expect::Any => true,
            Expect::Absent => found.is_none(),
            Expect::Present => found.is_some(),
            Expect::Version(version) => found == Some(version),
        }
    }
}

/// What a batch does to a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Writes the value, in place of any that is there.
    Put(Bytes),
    /// Removes the row, if it is there.
    Delete,
    /// Leaves it as it is.
    Nothing,
}

impl Action {
    /// What it writes, if it writes.
    pub fn written(&self) -> Option<Bytes> {
        match self {
            Action::Put(value) => Some(value.clone()),
            Action::Delete | Action::Nothing => None,
        }
    }
}

/// Why an engine could not do what it was asked, cut by what the caller does next.
#[derive(Debug)]
pub enum Error {
    /// An expectation did not hold; nothing was changed. Names the first item that failed and what was there instead.
    Conflict {
        /// The index of the item.
        index: usize,
        /// The version of the row, if there is one.
        found: Option<Version>,
    },
    /// The space was dropped; nothing was changed or read.
    SpaceDropped,
    /// The change may or may not have been applied, now or later: the connection or the disk failed half way.
    OutcomeUnknown(String),
    /// Nothing was changed or read; trying again may help.
    Unavailable(String),
    /// Nothing was changed, and no change is taken any more, because an earlier one could not be made durable. Reads go on.
    /// Only opening the store anew can help.
    WritesRefused(String),
    /// The keys are longer than the engine can order; nothing was changed, and trying again will not help.
    KeyTooLong,
    /// What is stored cannot be read; trying again will not help.
    Corrupt(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Conflict { index, found } => write!(f, "item {index} is not as expected, found version {found:?}"),
            Error::SpaceDropped => f.write_str("the space was dropped"),
            Error::OutcomeUnknown(why) => write!(f, "outcome unknown: {why}"),
            Error::Unavailable(why) => write!(f, "unavailable: {why}"),
            Error::WritesRefused(why) => write!(f, "no more writes are taken: {why}"),
            Error::KeyTooLong => f.write_str("the keys are too long for the engine"),
            Error::Corrupt(why) => write!(f, "corrupt: {why}"),
        }
    }
}

impl std::error::Error for Error {}

/// The result of an engine.
pub type Result<T> = std::result::Result<T, Error>;

/// Ordered rows that stay.
#[async_trait]
pub trait Store: fmt::Debug + Send + Sync + 'static {
    /// Reads one row, or `None` if there is none. Sees every commit that was acknowledged before the call, and nothing
    /// that a crash could still take back.
    async fn get(&self, space: Space, partition: &[u8], row: &[u8]) -> Result<Option<Row>>;

    /// What [`get`](Store::get) would answer, if that is known without waiting for anything, else `None`. Engines that
    /// have rows in memory spare callers a future on the heap for each of them.
    fn get_now(&self, space: Space, partition: &[u8], row: &[u8]) -> Option<Result<Option<Row>>> {
        let _ = (space, partition, row);
        None
    }

    /// Visits rows in ascending order as of one moment, which lies between call and return.
    async fn scan(&self, scan: Scan<'_>, visitor: &mut Visitor<'_>) -> Result<ScanEnd>;

    /// Applies every item, or none if an expectation does not hold. Returns when the change is durable, with the version
    /// that its rows now have. The version is greater than any that a row of the batch ever had, and not less than the
    /// clock at the time of the commit.
    async fn commit(&self, batch: Batch) -> Result<Version>;

    /// Why no changes are taken any more, or nothing if they are.
    fn writes_refused(&self) -> Option<String> {
        None
    }

    /// Whether reads and changes can be expected to work now; if not, why, in words that hold no secret. Answers within about two
    /// seconds, whatever has gone silent.
    async fn ready(&self) -> std::result::Result<(), String> {
        match self.writes_refused() {
            None => Ok(()),
            Some(why) => Err(format!("takes no writes: {why}")),
        }
    }

    /// Whether other processes write to the same rows, so that whoever keeps a copy of some has to look at them again.
    fn is_shared(&self) -> bool {
        false
    }

    /// Figures of the engine for people who watch it: names in `snake_case` with the unit last. One that ends in `_total`
    /// only grows.
    fn figures(&self) -> Vec<(&'static str, u64)>;
}

impl dyn Store {
    /// Reads one row, at once where that can be.
    pub async fn read(&self, space: Space, partition: &[u8], row: &[u8]) -> Result<Option<Row>> {
        match self.get_now(space, partition, row) {
            Some(found) => found,
            None => self.get(space, partition, row).await,
        }
    }
}
