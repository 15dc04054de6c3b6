//! What clients asked, when, and what they were told.
//!
//! A history is a list of calls. Times are nanoseconds since the run began, of one clock for all clients. Every write
//! carries a tag that no other write has, and stores it in the rows it writes, so that a row which is read says who wrote it:
//!
//! ```text
//! V   the tag of the last write
//! W   the tag of the last write that was no merge; absent if there was none
//! F   some text that follows from W, now and then a long one
//! ```

use partita_model::{ETag, Ticks};
use std::fmt;
use std::ops::RangeInclusive;

/// Nanoseconds since the run began.
pub type Time = u64;

/// Names a write; all rows of a transaction have the same. 0 is none.
pub type Tag = u32;

/// The ETag and Timestamp of an entity as the number they stand for.
pub type Version = u64;

/// The tables of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Table {
    /// Dropped and created again, over and over.
    Fleeting,
    /// Stays, and its few rows are fought over.
    Steady,
    /// Written by the hundred rows and dropped when it is large, which the engine does in another way.
    Bulk,
    /// Stays, and its many rows are inserted once and never changed.
    Ledger,
}

impl Table {
    /// All of them.
    pub const ALL: [Table; 4] = [Table::Fleeting, Table::Steady, Table::Bulk, Table::Ledger];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Table::Fleeting => "Fleeting",
            Table::Steady => "Steady",
            Table::Bulk => "Bulk",
            Table::Ledger => "Ledger",
        }
    }
}

/// Names an entity. The order is the order of the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The table.
    pub table: Table,
    /// Stands for the PartitionKey.
    pub partition: u32,
    /// Stands for the RowKey.
    pub row: u32,
}

impl Key {
    /// The key of a row.
    pub fn new(table: Table, partition: u32, row: u32) -> Key {
        Key { table, partition, row }
    }

    /// The keys of a partition.
    pub fn all_in(table: Table, partition: u32) -> RangeInclusive<Key> {
        Key::new(table, partition, 0)..=Key::new(table, partition, u32::MAX)
    }

    /// The keys of a table.
    pub fn all_of(table: Table) -> RangeInclusive<Key> {
        Key::new(table, 0, 0)..=Key::new(table, u32::MAX, u32::MAX)
    }

    /// The PartitionKey.
    pub fn partition_key(self) -> String {
        format!("p{:03}", self.partition)
    }

    /// The RowKey.
    pub fn row_key(self) -> String {
        format!("r{:08}", self.row)
    }

    /// The key of an entity of these names, unless they are none of ours.
    pub fn parse(table: Table, partition_key: &str, row_key: &str) -> Option<Key> {
        let key = Key {
            table,
            partition: partition_key.strip_prefix('p')?.parse().ok()?,
            row: row_key.strip_prefix('r')?.parse().ok()?,
        };
        (key.partition_key() == partition_key && key.row_key() == row_key).then_some(key)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}/{}", self.table.name(), self.partition_key(), self.row_key())
    }
}

/// What a change does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Adds an entity that must not be there.
    Insert,
    /// Writes the whole entity.
    Replace,
    /// Writes `V` and leaves the rest.
    Merge,
    /// Removes it.
    Delete,
}

/// What a change asks of the entity as it is before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Nothing, there is no `If-Match`.
    None,
    /// `If-Match: *`.
    Exists,
    /// `If-Match` with the ETag of this version.
    Is(Version),
}

/// A change to one entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The entity.
    pub key: Key,
    /// What is done to it.
    pub verb: Verb,
    /// What it must be for that.
    pub condition: Condition,
}

/// One page of a query in key order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// The table.
    pub table: Table,
    /// One partition of it, or all.
    pub partition: Option<u32>,
    /// `$top`.
    pub top: Option<u32>,
    /// The pages before this one, unless it is the first.
    pub before: Option<Before>,
}

/// What the pages before a page have shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Before {
    /// The last entity, if there was any.
    pub last: Option<Key>,
    /// When the page that showed it was asked for, or the first page if there was none.
    pub since: Time,
}

/// What a client asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Creates a table.
    Create(Table),
    /// Deletes a table.
    Drop(Table),
    /// One change, or a transaction of several in one partition.
    Write(Vec<Change>),
    /// Reads an entity.
    Get(Key),
    /// Reads a page.
    Page(Page),
}

impl Operation {
    /// The table it is about.
    pub fn table(&self) -> Table {
        match self {
            Operation::Create(table) | Operation::Drop(table) => *table,
            Operation::Write(changes) => changes[0].key.table,
            Operation::Get(key) => key.table,
            Operation::Page(page) => page.table,
        }
    }
}

/// An entity as a client saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The tag of the last write.
    pub v: Tag,
    /// The tag of the last write that was no merge, or 0.
    pub w: Tag,
    /// Its version.
    pub version: Version,
}

/// What a client is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It was done. The new version, if anything has one.
    Done(Option<Version>),
    /// It was not, because of the change with this index.
    Refused {
        /// The index, 0 if there is no choice.
        index: usize,
        /// The code of the error.
        code: String,
    },
    /// An entity.
    Row(Seen),
    /// Entities of a page, and whether there is a further page.
    Rows(Vec<(Key, Seen)>, bool),
    /// That it was not done, because the server could not just now.
    Busy,
    /// That the outcome is not known: it may have been done, or be done later.
    Unknown,
    /// Nothing; the connection ended. It may have been done, or be done later.
    Cut,
    /// Something that no server may say; in words.
    Odd(String),
}

impl Answer {
    /// Whether it does not say what came of the call.
    pub fn leaves_open(&self) -> bool {
        matches!(self, Answer::Unknown | Answer::Cut)
    }

    /// Whether it is one that only a server in trouble gives.
    pub fn tells_of_trouble(&self) -> bool {
        self.leaves_open() || *self == Answer::Busy
    }
}

/// One call of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Who asked.
    pub client: u32,
    /// What.
    pub operation: Operation,
    /// The tag of what was written, if anything.
    pub tag: Tag,
    /// Just before its connection was opened.
    pub connected: Time,
    /// Just before it was sent.
    pub invoked: Time,
    /// Just after the answer came. If the outcome is unknown: when it can no longer be done, since the process is gone.
    pub returned: Option<Time>,
    /// The answer.
    pub answer: Answer,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = match (self.verb, self.condition) {
            (Verb::Insert, _) => "insert",
            (Verb::Replace, Condition::None) => "insert-or-replace",
            (Verb::Merge, Condition::None) => "insert-or-merge",
            (Verb::Replace, _) => "replace",
            (Verb::Merge, _) => "merge",
            (Verb::Delete, _) => "delete",
        };
        write!(f, "{verb} {}", self.key)?;
        match self.condition {
            Condition::Is(version) => write!(f, " if {}", time_of(version)),
            Condition::None | Condition::Exists => Ok(()),
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Operation::Create(table) => write!(f, "create {}", table.name()),
            Operation::Drop(table) => write!(f, "drop {}", table.name()),
            Operation::Write(changes) => {
                for (index, change) in changes.iter().enumerate() {
                    write!(f, "{}{change}", if index == 0 { "" } else { ", " })?;
                }
                Ok(())
            }
            Operation::Get(key) => write!(f, "get {key}"),
            Operation::Page(page) => {
                write!(f, "query {}", page.table.name())?;
                if let Some(partition) = page.partition {
                    write!(f, " p{partition:03}")?;
                }
                if let Some(top) = page.top {
                    write!(f, " top {top}")?;
                }
                match page.before {
                    Some(Before { last: Some(last), .. }) => write!(f, " behind {}", last.row_key()),
                    Some(_) => write!(f, " further"),
                    None => Ok(()),
                }
            }
        }
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "V={} W={} at {}", self.v, self.w, time_of(self.version))
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Answer::Done(None) => write!(f, "done"),
            Answer::Done(Some(version)) => write!(f, "done at {}", time_of(*version)),
            Answer::Refused { index, code } => write!(f, "{index}: {code}"),
            Answer::Row(seen) => write!(f, "{seen}"),
            Answer::Rows(rows, more) => {
                for (key, seen) in rows {
                    write!(f, "{}/{} V={} W={}; ", key.partition_key(), key.row_key(), seen.v, seen.w)?;
                }
                write!(f, "{} rows{}", rows.len(), if *more { " and more" } else { "" })
            }
            Answer::Busy => write!(f, "busy"),
            Answer::Unknown => write!(f, "unknown"),
            Answer::Cut => write!(f, "cut"),
            Answer::Odd(what) => write!(f, "ODD: {what}"),
        }
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |time: Time| format!("{:.3}", time as f64 / 1e6);
        let returned = self.returned.map_or("?".to_owned(), ms);
        write!(f, "{:>10} .. {returned:<10} client {:<2} {}", ms(self.invoked), self.client, self.operation)?;
        if self.tag != 0 {
            write!(f, " as {}", self.tag)?;
        }
        write!(f, " -> {}", self.answer)
    }
}

/// The time of day of a version, which is short and tells versions apart.
fn time_of(version: Version) -> String {
    let etag = ETag(Ticks(version)).to_string().replace("%3A", ":");
    etag.split_once('T').map_or(etag.clone(), |(_, time)| time.trim_end_matches(['\'', '"']).to_owned())
}
