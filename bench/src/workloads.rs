//! What is measured: the workloads, and the groups in which they share a server and its rows.

use crate::entity::Spread;
use crate::table::Auth;

/// What the connections do, all of them the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Reads single rows at random.
    Get(Auth, Spread),
    /// Inserts new rows, durably.
    Insert(Spread),
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

impl Work {
    /// Whether a connection is measured; else it is there to disturb.
    pub fn measures(self, connection: usize) -> bool {
        self != Work::ReadUnderWrites || connection.is_multiple_of(2)
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
    /// Whether memory, disk and restarts are measured afterwards.
    pub is_weighed: bool,
}

const fn workload(name: &'static str, title: &'static str, work: Work, style: Style) -> Workload {
    Workload { name, title, work, style }
}

const POINT_READ: Work = Work::Get(Auth::SharedKey, Spread::Partitions);

const READS_AND_CHANGES: &[Workload] = &[
    workload("get", "point GET, SharedKey", POINT_READ, Style::Operations),
    workload("get-paced", "point GET at half the rate", POINT_READ, Style::Paced),
    workload("get-sas", "point GET, SAS", Work::Get(Auth::Sas, Spread::Partitions), Style::Operations),
    workload("get-hot", "point GET, one partition", Work::Get(Auth::SharedKey, Spread::Hot), Style::Operations),
    workload("range", "query of 100 rows", Work::Range, Style::Operations),
    workload("page", "page of 1,000 rows", Work::Page, Style::Operations),
    workload("filter", "rows filtered of 10,000", Work::Filter, Style::Alone),
    workload("mixed", "80 % GET, 20 % upsert", Work::Mixed, Style::Operations),
    workload("upsert", "upsert", Work::Upsert, Style::Operations),
    workload("merge", "merge of one property", Work::Merge, Style::Operations),
    workload("update", "update with ETag", Work::Update, Style::Operations),
    workload("get-under-writes", "point GET while others insert", Work::ReadUnderWrites, Style::Operations),
];

const INSERTS: &[Workload] = &[
    workload("insert", "insert", Work::Insert(Spread::Partitions), Style::Operations),
    workload("insert-hot", "insert, one partition", Work::Insert(Spread::Hot), Style::Operations),
    workload("transaction", "rows in transactions of 100", Work::Transaction, Style::Rows),
];

const OF_100K: &[Workload] = &[
    workload("get-100k", "point GET of 100,000", POINT_READ, Style::Operations),
    workload("filter-100k", "rows filtered of 100,000", Work::Filter, Style::Alone),
];

const OF_1M: &[Workload] = &[
    workload("get-1m", "point GET of 1,000,000", POINT_READ, Style::Operations),
    workload("filter-1m", "rows filtered of 1,000,000", Work::Filter, Style::Alone),
];

/// All groups; a quick run leaves out the million.
pub fn groups(quick: bool) -> Vec<Group> {
    let mut groups = vec![
        Group {
            rows: 10_000,
            tables: &[Spread::Partitions, Spread::Hot],
            workloads: READS_AND_CHANGES,
            is_weighed: false,
        },
        Group { rows: 0, tables: &[Spread::Partitions, Spread::Hot], workloads: INSERTS, is_weighed: false },
        Group { rows: 100_000, tables: &[Spread::Partitions], workloads: OF_100K, is_weighed: true },
    ];
    if !quick {
        groups.push(Group { rows: 1_000_000, tables: &[Spread::Partitions], workloads: OF_1M, is_weighed: true });
    }
    groups
}

/// All workloads.
pub fn all() -> impl Iterator<Item = Workload> {
    [READS_AND_CHANGES, INSERTS, OF_100K, OF_1M].into_iter().flatten().copied()
}
