//! The rules of the Table service over a [`partita_store::Store`]: tables, entities, transactions, queries.
//!
//! Knows partitions and transactions, and nothing of HTTP: no headers, no JSON, no signatures. Every error it returns is
//! a [`ServiceError`] that the front end only has to render.

mod catalogue;
mod query;
mod transaction;

pub use catalogue::{CatalogueRow, KNOWN_WITHIN, Table, TablePage, TableQuery};
pub use query::{EntityQuery, QueryEnd, QueryReport, Sink};
pub use transaction::{Applied, Change, ChangeError, ChangeKind, Encoded, SharedRecords};

use catalogue::Catalogue;
use partita_model::{CorruptRecord, EntityView, PartitionKey, Record, RowKey, ServiceError, Ticks};
use partita_store::{Error as StoreError, Row, Store};
use std::sync::Arc;
use tracing::error;

/// The Table service of all accounts on one store.
#[derive(Debug)]
pub struct TableService {
    store: Arc<dyn Store>,
    catalogue: Arc<Catalogue>,
}

/// An entity as it was read, with the bytes it is read from.
#[derive(Clone, Debug)]
pub struct StoredEntity {
    partition_key: PartitionKey,
    row_key: RowKey,
    row: Row,
}

impl StoredEntity {
    /// The entity, to be read in place.
    pub fn view(&self) -> Result<EntityView<'_>, CorruptRecord> {
        Ok(EntityView {
            partition_key: self.partition_key.as_str(),
            row_key: self.row_key.as_str(),
            timestamp: Ticks(self.row.version),
            record: Record::open(&self.row.value)?,
        })
    }
}

impl TableService {
    /// Opens the service on a store, which may be empty.
    pub async fn open(store: Arc<dyn Store>) -> Result<TableService, StoreError> {
        let catalogue = Catalogue::load(store.clone()).await?;
        Ok(TableService { store, catalogue })
    }

    /// The engine below.
    pub fn store(&self) -> &dyn Store {
        &*self.store
    }

    /// Reads one entity.
    pub async fn get(
        &self,
        table: &Table,
        partition_key: PartitionKey,
        row_key: RowKey,
    ) -> Result<StoredEntity, ServiceError> {
        let row = self
            .store
            .read(table.space, &PartitionKey::to_ordered(partition_key.as_str()), &RowKey::to_ordered(row_key.as_str()))
            .await
            .map_err(service_error)?
            .ok_or(ServiceError::ResourceNotFound)?;
        Ok(StoredEntity { partition_key, row_key, row })
    }
}

/// What a client is told when the engine fails. A conflict never comes here: whoever commits explains it.
fn service_error(error: StoreError) -> ServiceError {
    match error {
        StoreError::SpaceDropped => ServiceError::TableNotFound,
        StoreError::Unavailable(why) => {
            error!(%why, "the store is unavailable");
            ServiceError::ServerBusy
        }
        StoreError::WritesRefused(why) => {
            error!(%why, "the store takes no writes any more; it has to be restarted");
            ServiceError::WritesRefused
        }
        StoreError::OutcomeUnknown(why) => {
            error!(%why, "the outcome of a commit is unknown");
            ServiceError::OperationTimedOut
        }
        StoreError::KeyTooLong => ServiceError::KeyValueTooLarge { key: "PartitionKey+RowKey".into() },
        StoreError::Corrupt(why) => {
            error!(%why, "the store is damaged");
            ServiceError::InternalError
        }
        StoreError::Conflict { .. } => unreachable!("a conflict is explained where the batch was planned"),
    }
}

fn corrupt(error: CorruptRecord) -> ServiceError {
    error!(%error, "the store is damaged");
    ServiceError::InternalError
}
