//! What the tests of this crate share: services on each engine, and short ways to write and read entities.

#![allow(dead_code, reason = "each test file uses a part")]

use partita_model::{
    IfMatch, PartitionKey, Position, Property, RowKey, ServiceError, StoredAccessPolicy, TableName, Ticks, Value,
};
use partita_odata::{Filter, PlanClass};
use partita_store::{Memory, Mirror};
use partita_store_rocksdb::{Durability, Options, RocksStore};
use partita_table::{Change, ChangeError, ChangeKind, EntityQuery, Table, TableService};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub(crate) const ACCOUNT: &str = "account";

/// Opens RocksDB in a folder. What these tests say holds whether or not the disk has the rows yet, and a slow disk
/// would make them slow.
pub(crate) fn rocks(folder: &Path) -> RocksStore {
    let options = Options { durability: Durability::None, cache_bytes: 8 << 20, ..Options::default() };
    RocksStore::open(folder, options).expect("the folder opens")
}

pub(crate) fn folder() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

/// Both engines side by side, any difference between which is a panic.
pub(crate) fn mirror(folder: &Path) -> Mirror<Memory, RocksStore> {
    Mirror::new(Memory::new(), rocks(folder))
}

pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime")
}

pub(crate) fn table_name(name: &str) -> TableName {
    TableName::parse(name).expect("a table name")
}

pub(crate) fn partition_key(text: &str) -> PartitionKey {
    PartitionKey::parse(text).expect("a key")
}

pub(crate) fn row_key(text: &str) -> RowKey {
    RowKey::parse(text).expect("a key")
}

pub(crate) fn position(partition_key: &str, row_key: &str) -> Position {
    Position::new(PartitionKey::to_ordered(partition_key), RowKey::to_ordered(row_key))
}

/// Later than any test takes.
pub(crate) fn no_deadline() -> Instant {
    Instant::now() + Duration::from_secs(3600)
}

pub(crate) fn change(partition: &str, row: &str, kind: ChangeKind) -> Change {
    Change { partition_key: partition_key(partition), row_key: row_key(row), kind }
}

pub(crate) fn insert(partition: &str, row: &str, properties: &[(&str, Value)]) -> Change {
    change(partition, row, ChangeKind::Insert(named(properties).into()))
}

pub(crate) fn replace(partition: &str, row: &str, properties: &[(&str, Value)], if_match: Option<IfMatch>) -> Change {
    change(partition, row, ChangeKind::Replace(named(properties).into(), if_match))
}

pub(crate) fn merge(partition: &str, row: &str, properties: &[(&str, Value)], if_match: Option<IfMatch>) -> Change {
    change(partition, row, ChangeKind::Merge(named(properties).into(), if_match))
}

pub(crate) fn delete(partition: &str, row: &str, if_match: IfMatch) -> Change {
    change(partition, row, ChangeKind::Delete(if_match))
}

pub(crate) fn named(properties: &[(&str, Value)]) -> Vec<Property> {
    properties.iter().map(|(name, value)| Property::from((*name, value.clone()))).collect()
}

pub(crate) async fn apply(service: &TableService, table: &Table, changes: &[Change]) -> Result<Ticks, ChangeError> {
    service.apply(table, changes, no_deadline()).await.map(|applied| applied.timestamp)
}

/// Applies one change, whose index in an error can only be 0.
pub(crate) async fn apply_one(service: &TableService, table: &Table, change: Change) -> Result<Ticks, ServiceError> {
    apply(service, table, &[change]).await.map_err(|ChangeError { index, error }| {
        assert_eq!(index, 0, "there is no other change");
        error
    })
}

/// An entity that was read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Found {
    pub(crate) partition_key: String,
    pub(crate) row_key: String,
    pub(crate) timestamp: Ticks,
    pub(crate) properties: Vec<Property>,
}

impl Found {
    fn read(view: &partita_model::EntityView<'_>) -> Found {
        Found {
            partition_key: view.partition_key.to_owned(),
            row_key: view.row_key.to_owned(),
            timestamp: view.timestamp,
            properties: view.record.to_properties().expect("a whole record"),
        }
    }

    pub(crate) fn value(&self, name: &str) -> Option<&Value> {
        self.properties.iter().find(|property| property.name == name).map(|property| &property.value)
    }

    pub(crate) fn int32(&self, name: &str) -> i32 {
        match self.value(name) {
            Some(Value::Int32(number)) => *number,
            other => panic!("{name} is {other:?}"),
        }
    }
}

pub(crate) async fn get(
    service: &TableService,
    table: &Table,
    partition: &str,
    row: &str,
) -> Result<Found, ServiceError> {
    let stored = service.get(table, partition_key(partition), row_key(row)).await?;
    Ok(Found::read(&stored.view().expect("a whole record")))
}

/// How a page is asked for, beside the filter.
#[derive(Clone, Debug)]
pub(crate) struct Paging {
    pub(crate) from: Option<Position>,
    pub(crate) low: Option<Position>,
    pub(crate) high: Option<Position>,
    pub(crate) rows_max: usize,
    /// With each row counted as [`ROW_BYTES`].
    pub(crate) bytes_max: usize,
    pub(crate) deadline: Instant,
}

/// What a row counts on a page.
pub(crate) const ROW_BYTES: usize = 10;

impl Default for Paging {
    fn default() -> Paging {
        Paging { from: None, low: None, high: None, rows_max: 1000, bytes_max: usize::MAX, deadline: no_deadline() }
    }
}

/// A page that was read.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    pub(crate) rows: Vec<Found>,
    pub(crate) next: Option<(String, String)>,
    pub(crate) class: PlanClass,
    pub(crate) azure_class: PlanClass,
    pub(crate) rows_read: u64,
}

pub(crate) async fn query(
    service: &TableService,
    table: &Table,
    filter: Option<&Filter>,
    paging: &Paging,
) -> Result<Page, ServiceError> {
    let query = EntityQuery {
        filter,
        from: paging.from.as_ref(),
        low: paging.low.as_ref(),
        high: paging.high.as_ref(),
        rows_max: paging.rows_max,
        bytes_max: paging.bytes_max,
        deadline: paging.deadline,
    };
    let mut rows = Vec::new();
    let mut sink = |view: &partita_model::EntityView<'_>| {
        rows.push(Found::read(view));
        Ok(rows.len() * ROW_BYTES)
    };
    let (next, report) = service.query(table, query, &mut sink).await?;
    assert_eq!(report.rows_returned as usize, rows.len(), "the report counts what was returned");
    Ok(Page { rows, next, class: report.class, azure_class: report.azure_class, rows_read: report.rows_read })
}

/// All entities of a table, read at one moment.
pub(crate) async fn everything(service: &TableService, table: &Table) -> Result<Vec<Found>, ServiceError> {
    let paging = Paging { rows_max: 1_000_000, ..Paging::default() };
    let page = query(service, table, None, &paging).await?;
    assert_eq!(page.next, None, "a page without limits is the last");
    Ok(page.rows)
}

pub(crate) fn policy(id: &str, permission: &str) -> StoredAccessPolicy {
    StoredAccessPolicy { id: id.to_owned(), start: None, expiry: None, permission: Some(permission.to_owned()) }
}

pub(crate) async fn create(service: &TableService, name: &str) -> Arc<Table> {
    service.create_table(ACCOUNT, table_name(name)).await.expect("a new table")
}
