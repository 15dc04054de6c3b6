//! What is measured: the workloads, and the groups in which they share a server and its rows.

use crate::entity::Spread;
use crate::table::Auth;

/// What the connections do, all of them the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Reads single rows at random.
    Get(Auth),
    /// Inserts new rows, durably.
    Insert,
    /// Replaces rows at random, whether they are there or not.
    Upsert,
    /// Changes one property of rows at random.
    Merge,
    /// Replaces rows if their ETag is the last one seen.
    Update,
    /// Inserts 100 rows at once.
    Transaction,
    /// Asks for 100 rows of a partition.
    Range,
    /// Asks for 1,000 rows of a table.
    Page,
    /// Looks for ten rows by a property that is no key, to the end of the table.
    Filter,
    /// Four reads to one upsert.
    Mixed,
    /// Every other connection reads and is measured, the rest insert.
    ReadUnderWrites,
}

/// What is done, and with rows of which partitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// What is done.
    pub action: Action,
    /// To which rows.
    pub spread: Spread,
}

impl Work {
    /// Reads of single rows, in which everybody takes part.
    pub const POINT_READ: Work = Work::in_many(Action::Get(Auth::SharedKey));
    /// Inserts, in which everybody takes part.
    pub const INSERT: Work = Work::in_many(Action::Insert);
    /// Transactions, for which there is a ceiling.
    pub const TRANSACTION: Work = Work::in_many(Action::Transaction);

    /// With rows of many partitions.
    pub const fn in_many(action: Action) -> Work {
        Work { action, spread: Spread::Partitions }
    }

    /// With rows of one partition.
    pub const fn in_one(action: Action) -> Work {
        Work { action, spread: Spread::Hot }
    }

    /// Whether a connection is measured; else it is there to disturb.
    pub fn measures(self, connection: usize) -> bool {
        self.action != Action::ReadUnderWrites || connection.is_multiple_of(2)
    }
}

/// A work with a name.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    /// Its name on the command line and in the results.
    pub name: &'static str,
    /// Its name in tables and plots.
    pub title: &'static str,
    /// What is done.
    pub work: Work,
    /// How it is done and counted.
    pub style: Style,
}

/// How a workload is run and what of it is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// As fast as it goes; operations are counted.
    Operations,
    /// As fast as it goes; rows are counted.
    Rows,
    /// On one connection; rows are counted.
    Alone,
    /// At half the rate of `get`; only the latency counts.
    Paced,
}

/// Workloads that share a server.
#[derive(Clone, Debug)]
pub struct Group {
    /// How many rows are there before.
    pub rows: usize,
    /// In which tables.
    pub tables: &'static [Spread],
    /// What is measured, in this order.
    pub workloads: &'static [Workload],
    /// What the first of them is held against: measured by turns with it, on another server of the same kind with
    /// [`BESIDE_ROWS`] rows. What a minute ago was measured may have been measured on a faster machine.
    pub beside: Option<Workload>,
    /// Whether memory, disk and restarts are measured afterwards.
    pub is_weighed: bool,
}

impl Workload {
    /// The same with rows of many partitions, if this is with rows of one.
    pub fn in_many(&self) -> Option<Workload> {
        let work = Work::in_many(self.work.action);
        all().find(|other| self.work.spread == Spread::Hot && other.work == work && other.style == self.style)
    }
}

/// Rows of many partitions.
const fn many(name: &'static str, title: &'static str, action: Action, style: Style) -> Workload {
    Workload { name, title, work: Work::in_many(action), style }
}

/// Rows of one partition.
const fn one(name: &'static str, title: &'static str, action: Action, style: Style) -> Workload {
    Workload { name, title, work: Work::in_one(action), style }
}

const GET: Action = Action::Get(Auth::SharedKey);

/// Those with one partition follow those with many that they are compared with.
const READS_AND_CHANGES: &[Workload] = &[
    many("get", "point GET, SharedKey", GET, Style::Operations),
    many("get-paced", "point GET at half the rate", GET, Style::Paced),
    one("get-hot", "point GET, one partition", GET, Style::Operations),
    many("get-sas", "point GET, SAS", Action::Get(Auth::Sas), Style::Operations),
    many("range", "query of 100 rows", Action::Range, Style::Operations),
    one("range-hot", "query of 100, one partition", Action::Range, Style::Operations),
    many("page", "page of 1,000 rows", Action::Page, Style::Operations),
    one("page-hot", "page of 1,000, one partition", Action::Page, Style::Operations),
    many("filter", "rows filtered of 10,000", Action::Filter, Style::Alone),
    one("filter-hot", "rows filtered, one partition", Action::Filter, Style::Alone),
    many("mixed", "80 % GET, 20 % upsert", Action::Mixed, Style::Operations),
    one("mixed-hot", "80 % GET, one partition", Action::Mixed, Style::Operations),
    many("upsert", "upsert", Action::Upsert, Style::Operations),
    one("upsert-hot", "upsert, one partition", Action::Upsert, Style::Operations),
    many("merge", "merge of one property", Action::Merge, Style::Operations),
    one("merge-hot", "merge, one partition", Action::Merge, Style::Operations),
    many("update", "update with ETag", Action::Update, Style::Operations),
    one("update-hot", "update with ETag, one partition", Action::Update, Style::Operations),
    many("get-under-writes", "point GET while others insert", Action::ReadUnderWrites, Style::Operations),
    one("get-under-writes-hot", "the same, one partition", Action::ReadUnderWrites, Style::Operations),
];

const INSERTS: &[Workload] = &[
    many("insert", "insert", Action::Insert, Style::Operations),
    one("insert-hot", "insert, one partition", Action::Insert, Style::Operations),
    many("transaction", "rows in transactions of 100", Action::Transaction, Style::Rows),
    one("transaction-hot", "the same, one partition", Action::Transaction, Style::Rows),
];

const OF_100K: &[Workload] = &[
    many("get-100k", "point GET of 100,000", GET, Style::Operations),
    many("filter-100k", "rows filtered of 100,000", Action::Filter, Style::Alone),
];

/// How many rows the server has that a large one is held against.
pub const BESIDE_ROWS: usize = 10_000;

const BESIDE_1M: Workload = many("get-beside-1m", "point GET of 10,000, by turns", GET, Style::Operations);

const OF_1M: &[Workload] = &[
    many("get-1m", "point GET of 1,000,000", GET, Style::Operations),
    many("filter-1m", "rows filtered of 1,000,000", Action::Filter, Style::Alone),
];

/// All groups; a quick run leaves out the million.
pub fn groups(quick: bool) -> Vec<Group> {
    let mut groups = vec![
        Group {
            rows: 10_000,
            tables: &[Spread::Partitions, Spread::Hot],
            workloads: READS_AND_CHANGES,
            beside: None,
            is_weighed: false,
        },
        Group {
            rows: 0,
            tables: &[Spread::Partitions, Spread::Hot],
            workloads: INSERTS,
            beside: None,
            is_weighed: false,
        },
        Group { rows: 100_000, tables: &[Spread::Partitions], workloads: OF_100K, beside: None, is_weighed: true },
    ];
    if !quick {
        groups.push(Group {
            rows: 1_000_000,
            tables: &[Spread::Partitions],
            workloads: OF_1M,
            beside: Some(BESIDE_1M),
            is_weighed: true,
        });
    }
    groups
}

/// All workloads.
pub fn all() -> impl Iterator<Item = Workload> {
    [READS_AND_CHANGES, INSERTS, OF_100K, OF_1M, &[BESIDE_1M]].into_iter().flatten().copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn everything_is_done_in_one_partition_too() {
        let ones: Vec<Workload> = all().filter(|workload| workload.work.spread == Spread::Hot).collect();
        assert!(ones.iter().all(|one| one.in_many().is_some_and(|many| one.name == format!("{}-hot", many.name))));
        let actions: HashSet<_> = ones.iter().map(|one| format!("{:?}", one.work.action)).collect();
        let others = all().map(|workload| format!("{:?}", workload.work.action)).filter(|name| *name != "Get(Sas)");
        assert_eq!(actions, others.collect());
    }
}
