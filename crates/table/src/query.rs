//! Queries of entities: a plan of keys, a filter on stored bytes, pages.

use crate::{Table, TableService, corrupt, service_error};
use partita_model::{CorruptRecord, EntityView, PartitionKey, Position, Record, RowKey, ServiceError, Ticks};
use partita_odata::{Filter, Outline, Plan, PlanClass, Seek};
use partita_store::{Column, RowRef, Scan, ScanEnd, Sieve, Step};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct EntityQuery<'a> {
    /// Which entities; `None` for all.
    pub filter: Option<&'a Filter>,
    /// Where an earlier page ended.
    pub from: Option<&'a Position>,
    /// The first place the caller may see, inclusive.
    pub low: Option<&'a Position>,
    /// The place up to which the caller may see, exclusive.
    pub high: Option<&'a Position>,
    /// Most rows to return.
    pub rows_max: usize,
    /// A page ends behind the row with which the sink has passed this size.
    pub bytes_max: usize,
    /// When the page ends however little it holds.
    pub deadline: Instant,
}

/// Where a page ended: the keys at which the next one starts, or `None` when all was read.
pub type QueryEnd = Option<(String, String)>;

/// What a query cost.
#[derive(Clone, Copy, Debug)]
pub struct QueryReport {
    /// How the rows were found.
    pub class: PlanClass,
    /// How Azure would have found them.
    pub azure_class: PlanClass,
    /// Rows looked at.
    pub rows_read: u64,
    /// Rows returned.
    pub rows_returned: u64,
}

/// Takes each entity of a page and returns how many bytes the page has by now.
pub type Sink<'a> = dyn FnMut(&EntityView<'_>) -> Result<usize, CorruptRecord> + Send + 'a;

impl TableService {
    /// Gives the entities of one page to `sink`, in key order.
    pub async fn query(
        &self,
        table: &Table,
        query: EntityQuery<'_>,
        sink: &mut Sink<'_>,
    ) -> Result<(QueryEnd, QueryReport), ServiceError> {
        let plan = Plan::of(query.filter);
        let class = plan.class();
        let sieve = query.filter.filter(|_| reads_in_one_go(&plan)).map(FilterSieve::new);
        let mut page = Page { query, plan, sink, bytes: 0, rows_read: 0, rows_returned: 0, next: None, failed: None };
        if let Some(scan) = page.scan(table) {
            let scan = Scan { sieve: sieve.as_ref().map(|sieve| sieve as &dyn Sieve), ..scan };
            let end = self.store.scan(scan, &mut |row| page.visit(row)).await.map_err(service_error)?;
            if let ScanEnd::Deadline(position) = end {
                page.next = Some(position);
            }
        }
        if let Some(error) = page.failed {
            return Err(corrupt(error));
        }
        let report = QueryReport {
            class,
            azure_class: page.plan.azure_class(),
            rows_read: page.rows_read + sieve.map_or(0, |sieve| sieve.passed_over.into_inner()),
            rows_returned: page.rows_returned,
        };
        let end = page.next.map(|position| keys(&position)).transpose().map_err(corrupt)?;
        Ok((end, report))
    }
}

/// Whether the plan is one stretch of rows that only the filter can tell apart, so that the engine may look for matches
/// by itself.
fn reads_in_one_go(plan: &Plan) -> bool {
    use PlanClass::*;
    !plan.is_exact() && matches!(plan.class(), Range | PartitionScan | PartitionRangeScan | TableScan)
}

/// The filter of a query for an engine to apply.
#[derive(Debug)]
struct FilterSieve<'q> {
    filter: &'q Filter,
    outline: Outline,
    looks_at_keys: bool,
    passed_over: AtomicU64,
}

impl FilterSieve<'_> {
    fn new(filter: &Filter) -> FilterSieve<'_> {
        let outline = Outline::of(filter);
        FilterSieve { filter, outline, looks_at_keys: looks_at_keys(filter), passed_over: AtomicU64::new(0) }
    }
}

fn looks_at_keys(filter: &Filter) -> bool {
    match filter {
        Filter::And(terms) | Filter::Or(terms) => {
            for term in terms {
                if looks_at_keys(term) {
                    return true;
                }
            }
            false
        }
        Filter::Not(term) => looks_at_keys(term),
        Filter::Compare { property: name, .. } | Filter::Property(name) => {
            matches!(name.as_str(), "PartitionKey" | "RowKey")
        }
        Filter::Boolean(_) => false,
    }
}

impl Sieve for FilterSieve<'_> {
    fn keeps(&self, row: RowRef<'_>) -> bool {
        let row = if self.looks_at_keys { row } else { without_keys(row) };
        // A damaged row is shown to the visitor, which says so.
        with_view(row, |view| self.filter.matches(view)).unwrap_or(true)
    }

    fn passed_over(&self, rows: u64) {
        self.passed_over.fetch_add(rows, Ordering::Relaxed);
    }

    fn columns(&self) -> &[Column] {
        self.outline.columns()
    }

    fn number(&self, column: &Column, row: RowRef<'_>) -> Option<u64> {
        // No column is made of keys.
        with_view(without_keys(row), |view| Outline::number(column, view)).ok()
    }

    fn may_keep(&self, numbers: &[&[u64]]) -> bool {
        self.outline.may_match(numbers)
    }
}

/// To check that keys are text takes as long as many a filter.
fn without_keys(row: RowRef<'_>) -> RowRef<'_> {
    RowRef { partition: b"", row: b"", ..row }
}

/// Reads a row as an entity.
fn with_view<T>(
    row: RowRef<'_>,
    read: impl FnOnce(&EntityView<'_>) -> Result<T, CorruptRecord>,
) -> Result<T, CorruptRecord> {
    read(&EntityView {
        partition_key: &PartitionKey::from_ordered(row.partition).ok_or(CorruptRecord)?,
        row_key: &RowKey::from_ordered(row.row).ok_or(CorruptRecord)?,
        timestamp: Ticks(row.version),
        record: Record::open(row.value)?,
    })
}

/// The text of a place. Places are keys, or keys with a NUL behind them, so they are always text.
fn keys(position: &Position) -> Result<(String, String), CorruptRecord> {
    let partition_key = PartitionKey::from_ordered(&position.partition).ok_or(CorruptRecord)?;
    let row_key = RowKey::from_ordered(&position.row).ok_or(CorruptRecord)?;
    Ok((partition_key.into_owned(), row_key.into_owned()))
}

/// A page being read.
struct Page<'q, 's> {
    query: EntityQuery<'q>,
    plan: Plan,
    sink: &'s mut Sink<'s>,
    bytes: usize,
    rows_read: u64,
    rows_returned: u64,
    next: Option<Position>,
    failed: Option<CorruptRecord>,
}

impl Page<'_, '_> {
    /// The stretch to read: what plan, token and caller's range have in common; `None` if that is nothing.
    fn scan(&self, table: &Table) -> Option<Scan<'static>> {
        let start =
            [self.query.from, self.query.low].into_iter().flatten().cloned().fold(self.plan.start()?, Position::max);
        let end = match (self.plan.end(), self.query.high.cloned()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        if end.as_ref().is_some_and(|end| *end <= start) {
            return None;
        }
        let rows_hint = self.query.rows_max.saturating_add(1);
        Some(Scan { space: table.space, start, end, deadline: self.query.deadline, rows_hint, sieve: None })
    }

    fn visit(&mut self, row: RowRef<'_>) -> Step {
        match self.plan.seek(row.partition, row.row) {
            Seek::Here => {}
            Seek::To(position) => return Step::Seek(position),
            Seek::End => return Step::Stop,
        }
        // This row, which may or may not match, is where the next page starts: looking for the next match instead could
        // read the rest of the table for nothing.
        if self.is_full() {
            self.next = Some(Position::new(row.partition, row.row));
            return Step::Stop;
        }
        self.rows_read += 1;
        match self.take(row) {
            Ok(()) if self.is_full() => Step::NextAny,
            Ok(()) => Step::Next,
            Err(error) => {
                self.failed = Some(error);
                Step::Stop
            }
        }
    }

    fn is_full(&self) -> bool {
        self.rows_returned as usize >= self.query.rows_max || self.bytes >= self.query.bytes_max
    }

    fn take(&mut self, row: RowRef<'_>) -> Result<(), CorruptRecord> {
        with_view(row, |view| {
            let wanted = match self.query.filter {
                Some(filter) if !self.plan.is_exact() => filter.matches(view)?,
                _ => true,
            };
            if wanted {
                self.bytes = (self.sink)(view)?;
                self.rows_returned += 1;
            }
            Ok(())
        })
    }
}
