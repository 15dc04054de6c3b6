//! What a client asks next.
//!
//! Few rows and many clients, so that calls meet; a mix in which most things succeed and everything fails now and then.

use crate::history::{Change, Condition, Key, Operation, Page, Table, Verb, Version};
use crate::random::Random;
use partita_model::limits::BATCH_OPERATIONS_MAX;
use std::collections::{BTreeSet, HashMap};

/// Partitions of a table that is fought over.
pub(crate) const PARTITIONS: u64 = 2;
/// Rows of such a partition.
pub(crate) const ROWS: u64 = 24;
/// Most rows of a transaction there.
const TRANSACTION_ROWS_MAX: u64 = 20;
/// Partitions of the table that is written in bulk, each of which has as many rows as a transaction may have. More than 1,000
/// rows together are dropped by the range.
const BULK_PARTITIONS: u64 = 12;

/// One client's intentions: random, but it remembers ETags that it saw, and that a table was missing.
#[derive(Clone, Debug)]
pub(crate) struct Workload {
    client: u32,
    random: Random,
    /// The version of each row that was seen last, and one that was seen before.
    seen: HashMap<Key, (Version, Version)>,
    missing: Option<Table>,
    /// Rows that it has inserted into the ledger.
    ledger_rows: u32,
}

impl Workload {
    pub(crate) fn new(seed: u64, client: u32) -> Workload {
        let random = Random::new(seed, u64::from(client) + 1);
        Workload { client, random, seen: HashMap::new(), missing: None, ledger_rows: 0 }
    }

    /// Remembers the version of a row.
    pub(crate) fn saw(&mut self, key: Key, version: Version) {
        let seen = self.seen.entry(key).or_insert((version, version));
        if seen.0 != version {
            *seen = (version, seen.0);
        }
    }

    /// Remembers that a table was not there.
    pub(crate) fn missed(&mut self, table: Table) {
        self.missing = Some(table);
    }

    pub(crate) fn next(&mut self) -> Operation {
        if let Some(table) = self.missing.take()
            && !self.random.once_in(4)
        {
            return Operation::Create(table);
        }
        if self.random.once_in(10) {
            return self.ledger();
        }
        if self.random.once_in(25) {
            return self.bulk();
        }
        let table = if self.random.below(5) < 2 { Table::Fleeting } else { Table::Steady };
        if table == Table::Fleeting && self.random.once_in(80) {
            return if self.random.once_in(4) { Operation::Create(table) } else { Operation::Drop(table) };
        }
        match self.random.below(100) {
            0..25 => Operation::Get(self.key(table)),
            25..70 => Operation::Write(vec![self.change(table)]),
            70..84 => self.transaction(table),
            84..93 => Operation::Page(Page { table, partition: Some(self.partition()), top: None, before: None }),
            _ => {
                let partition = if self.random.once_in(2) { Some(self.partition()) } else { None };
                let top = Some(1 + self.random.below(12) as u32);
                Operation::Page(Page { table, partition, top, before: None })
            }
        }
    }

    /// Inserts a row that will stay, or reads one.
    fn ledger(&mut self) -> Operation {
        if self.ledger_rows > 0 && self.random.once_in(3) {
            let row = self.random.below(u64::from(self.ledger_rows)) as u32;
            return Operation::Get(Key::new(Table::Ledger, self.client, row));
        }
        let count = if self.random.once_in(4) { 2 + self.random.below(4) as u32 } else { 1 };
        let insert = |row| Change {
            key: Key::new(Table::Ledger, self.client, row),
            verb: Verb::Insert,
            condition: Condition::None,
        };
        let changes = (self.ledger_rows..self.ledger_rows + count).map(insert).collect();
        self.ledger_rows += count;
        Operation::Write(changes)
    }

    /// Writes a whole partition, reads one, or drops all.
    fn bulk(&mut self) -> Operation {
        let (table, partition) = (Table::Bulk, self.random.below(BULK_PARTITIONS) as u32);
        match self.random.below(40) {
            0 => Operation::Drop(table),
            1..6 => Operation::Page(Page { table, partition: Some(partition), top: None, before: None }),
            _ => {
                let keys = (0..BATCH_OPERATIONS_MAX as u32).map(|row| Key::new(table, partition, row));
                Operation::Write(
                    keys.map(|key| Change { key, verb: Verb::Replace, condition: Condition::None }).collect(),
                )
            }
        }
    }

    fn partition(&mut self) -> u32 {
        self.random.below(PARTITIONS) as u32
    }

    /// Half of the time one of four rows that everybody wants.
    fn row(&mut self) -> u32 {
        let rows = if self.random.once_in(2) { 4 } else { ROWS };
        self.random.below(rows) as u32
    }

    fn key(&mut self, table: Table) -> Key {
        Key::new(table, self.partition(), self.row())
    }

    fn change(&mut self, table: Table) -> Change {
        let key = self.key(table);
        self.change_of(key)
    }

    fn change_of(&mut self, key: Key) -> Change {
        let verb = match self.random.below(20) {
            0..6 => Verb::Insert,
            6..11 => Verb::Replace,
            11..15 => Verb::Merge,
            _ => Verb::Delete,
        };
        let condition = match (verb, self.random.below(10), self.seen.get(&key)) {
            (Verb::Insert, ..) => Condition::None,
            (_, 0..4, Some((newest, _))) => Condition::Is(*newest),
            (_, 4, Some((_, earlier))) => Condition::Is(*earlier),
            (Verb::Delete, ..) | (_, 5..7, _) => Condition::Exists,
            _ => Condition::None,
        };
        Change { key, verb, condition }
    }

    fn transaction(&mut self, table: Table) -> Operation {
        let partition = self.partition();
        let mut rows = BTreeSet::new();
        for _ in 0..2 + self.random.below(TRANSACTION_ROWS_MAX - 1) {
            rows.insert(self.random.below(ROWS) as u32);
        }
        let keys = rows.into_iter().map(|row| Key::new(table, partition, row));
        let whole = |verb| move |key| Change { key, verb, condition: Condition::None };
        let mut changes: Vec<Change> = match self.random.below(10) {
            0..5 => keys.map(whole(Verb::Replace)).collect(),
            5 => keys.map(whole(Verb::Merge)).collect(),
            6 => keys.map(whole(Verb::Insert)).collect(),
            7 => keys.map(|key| Change { key, verb: Verb::Delete, condition: Condition::Exists }).collect(),
            _ => keys.collect::<Vec<_>>().into_iter().map(|key| self.change_of(key)).collect(),
        };
        if self.random.once_in(3) {
            // The last one often fails, when all others could have been made.
            let last = changes.len() - 1;
            changes[last] = self.change_of(changes[last].key);
        }
        if self.random.once_in(20) {
            changes.push(changes[0]);
        }
        Operation::Write(changes)
    }
}
