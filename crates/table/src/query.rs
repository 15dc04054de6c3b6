//! Queries of entities: a plan of keys, a filter on stored bytes, pages.

use crate::{Table, TableService, corrupt, service_error};
use partita_model::{CorruptRecord, EntityView, PartitionKey, Position, Record, RowKey, ServiceError, Ticks};
use partita_odata::{Filter, Plan, PlanClass, Seek};
use partita_store::{RowRef, Scan, ScanEnd, Step};
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
        let mut page = Page { query, plan, sink, bytes: 0, rows_read: 0, rows_returned: 0, next: None, failed: None };
        if let Some(scan) = page.scan(table) {
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
            rows_read: page.rows_read,
            rows_returned: page.rows_returned,
        };
        let end = page.next.map(|position| keys(&position)).transpose().map_err(corrupt)?;
        Ok((end, report))
    }
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
    fn scan(&self, table: &Table) -> Option<Scan> {
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
        Some(Scan { space: table.space, start, end, deadline: self.query.deadline, rows_hint })
    }

    fn visit(&mut self, row: RowRef<'_>) -> Step {
        match self.plan.seek(row.partition, row.row) {
            Seek::Here => {}
            Seek::To(position) => return Step::Seek(position),
            Seek::End => return Step::Stop,
        }
        // The page is full, and this row, which may or may not match, is where the next one starts: looking for the next
        // match instead could read the rest of the table for nothing.
        if self.rows_returned as usize >= self.query.rows_max || self.bytes >= self.query.bytes_max {
            self.next = Some(Position::new(row.partition, row.row));
            return Step::Stop;
        }
        self.rows_read += 1;
        match self.take(row) {
            Ok(()) => Step::Next,
            Err(error) => {
                self.failed = Some(error);
                Step::Stop
            }
        }
    }

    fn take(&mut self, row: RowRef<'_>) -> Result<(), CorruptRecord> {
        let view = EntityView {
            partition_key: &PartitionKey::from_ordered(row.partition).ok_or(CorruptRecord)?,
            row_key: &RowKey::from_ordered(row.row).ok_or(CorruptRecord)?,
            timestamp: Ticks(row.version),
            record: Record::open(row.value)?,
        };
        let wanted = match self.query.filter {
            Some(filter) if !self.plan.is_exact() => filter.matches(&view)?,
            _ => true,
        };
        if wanted {
            self.bytes = (self.sink)(&view)?;
            self.rows_returned += 1;
        }
        Ok(())
    }
}
