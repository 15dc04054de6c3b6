//! An account of a store as one end of a copy, without a server and HTTP between.

use partita_model::{
    EntityView, IfMatch, PartitionKey, Position, RecordBuf, RowKey, ServiceError, ServiceProperties,
    StoredAccessPolicy, TableName,
};
use partita_table::{Change, ChangeError, ChangeKind, EntityQuery, Table, TableQuery, TableService};
use partita_transfer::client::Mode;
use partita_transfer::copy::Account;
use partita_transfer::table_sink::Writer;
use partita_transfer::{Entity, Error, Page, Result, Source};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

const PAGE_ROWS: usize = 1000;
const PAGE_BYTES: usize = 4 << 20;
/// How long a page or a transaction may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// An account of a store.
#[derive(Clone, Debug)]
pub(crate) struct StoreAccount {
    pub(crate) service: Arc<TableService>,
    pub(crate) account: String,
    /// What the store is called.
    pub(crate) place: String,
}

impl fmt::Display for StoreAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "account {} in {}", self.account, self.place)
    }
}

impl StoreAccount {
    fn table(&self, table: &str) -> Result<Arc<Table>> {
        self.service.table(&self.account, &name(table)?).map_err(|error| refused(&error, None))
    }
}

fn name(table: &str) -> Result<TableName> {
    TableName::parse(table).map_err(|_| Error::Option(format!("'{table}' is not the name of a table.")))
}

fn refused(error: &ServiceError, entity: Option<&Entity>) -> Error {
    let (status, code, message) = (error.status(), error.code().to_owned(), error.to_string());
    Error::Refused { status, code, message, entity: entity.map(Entity::key) }
}

impl Account for StoreAccount {
    type Rows = StoreRows;
    type Writer = StoreWriter;

    async fn tables(&self) -> Result<Vec<String>> {
        let all = TableQuery { filter: None, from: None, rows_max: usize::MAX };
        let page = self.service.query_tables(&self.account, all);
        Ok(page.tables.iter().map(|table| table.name.to_string()).collect())
    }

    async fn create_table(&self, table: &str) -> Result<()> {
        match self.service.create_table(&self.account, name(table)?).await {
            Ok(_) | Err(ServiceError::TableAlreadyExists) => Ok(()),
            Err(error) => Err(refused(&error, None)),
        }
    }

    fn rows(&self, table: &str) -> Result<StoreRows> {
        let start = Position::default();
        Ok(StoreRows { service: self.service.clone(), table: self.table(table)?, next: Some(start) })
    }

    fn writer(&self, table: &str, mode: Mode) -> Result<StoreWriter> {
        Ok(StoreWriter { service: self.service.clone(), table: self.table(table)?, mode })
    }

    async fn access_policies(&self, table: &str) -> Result<Option<Vec<StoredAccessPolicy>>> {
        Ok(Some(self.table(table)?.access_policies.clone()))
    }

    async fn set_access_policies(&self, table: &str, policies: &[StoredAccessPolicy]) -> Result<bool> {
        let set = self.service.set_access_policies(&self.account, &name(table)?, policies.to_vec()).await;
        set.map(|()| true).map_err(|error| refused(&error, None))
    }

    async fn service_properties(&self) -> Result<ServiceProperties> {
        Ok((*self.service.service_properties(&self.account)).clone())
    }

    async fn set_service_properties(&self, properties: &ServiceProperties) -> Result<()> {
        let set = self.service.update_service_properties(&self.account, |target| properties.clone_into(target)).await;
        set.map_err(|error| refused(&error, None))
    }
}

/// The rows of a table.
#[derive(Debug)]
pub(crate) struct StoreRows {
    service: Arc<TableService>,
    table: Arc<Table>,
    /// Where to go on; `None` at the end.
    next: Option<Position>,
}

impl Source for StoreRows {
    async fn next_page(&mut self) -> Result<Option<Page>> {
        let Some(from) = self.next.take() else { return Ok(None) };
        let mut page = Page::default();
        let mut bytes = 0;
        let mut take = |row: &EntityView<'_>| {
            bytes += row.record.size_bytes();
            page.entities.push(Entity {
                partition_key: row.partition_key.to_owned(),
                row_key: row.row_key.to_owned(),
                properties: row.record.to_properties()?,
            });
            Ok(bytes)
        };
        let query = EntityQuery {
            filter: None,
            from: Some(&from),
            low: None,
            high: None,
            rows_max: PAGE_ROWS,
            bytes_max: PAGE_BYTES,
            deadline: Instant::now() + PATIENCE,
        };
        let (next, _) =
            self.service.query(&self.table, query, &mut take).await.map_err(|error| refused(&error, None))?;
        self.next = next.map(|(partition_key, row_key)| {
            Position::new(PartitionKey::to_ordered(&partition_key), RowKey::to_ordered(&row_key))
        });
        Ok(Some(page))
    }
}

/// Writes to a table.
#[derive(Debug)]
pub(crate) struct StoreWriter {
    service: Arc<TableService>,
    table: Arc<Table>,
    mode: Mode,
}

impl Writer for StoreWriter {
    async fn write(&mut self, entities: &[Entity]) -> Result<()> {
        let changes = entities.iter().map(|entity| self.change(entity)).collect::<Result<Vec<_>>>()?;
        let applied = self.service.apply(&self.table, &changes, Instant::now() + PATIENCE).await;
        applied.map(drop).map_err(|ChangeError { index, error }| refused(&error, entities.get(index)))
    }
}

impl StoreWriter {
    fn change(&self, entity: &Entity) -> Result<Change> {
        let invalid = |_| Error::Option(format!("{} cannot be stored: a key is not valid.", entity.key()));
        let record = || RecordBuf::from(&entity.properties).into();
        Ok(Change {
            partition_key: PartitionKey::parse(&entity.partition_key).map_err(invalid)?,
            row_key: RowKey::parse(&entity.row_key).map_err(invalid)?,
            kind: match self.mode {
                Mode::Insert => ChangeKind::Insert(record()),
                Mode::Replace => ChangeKind::Replace(record(), None),
                Mode::Merge => ChangeKind::Merge(record(), None),
                Mode::Delete => ChangeKind::Delete(IfMatch::Any),
            },
        })
    }
}
