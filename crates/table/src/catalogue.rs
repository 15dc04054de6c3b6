//! The catalogue: which tables there are, their access policies, and what accounts have set for their service.
//!
//! It lives in one partition of its own space, so that every change of it is one commit. A copy of it is kept in memory
//! and is always the truth for readers: it changes behind the commit and under one lock, and no other process writes to
//! the store. A change that was begun is brought to its end in a task of its own, whatever becomes of the request, and
//! the copy is made anew from the store when the outcome of a commit is unknown. Dropping a table removes its row and
//! its space in the same commit, so that no crash can leave one without the other; the name is free at once because the
//! next table of that name gets another space.
//!
//! ```text
//! space 0, partition ""
//!   "n"                         -> Int64 Next: the space of the next table
//!   "p" account                 -> service properties
//!   "t" account 00 lower(name)  -> Name, Space and the access policies of a table
//! ```
//!
//! All values are records, see [`partita_model::Record`].

mod rows;

use crate::{TableService, service_error};
use partita_model::{CorruptRecord, Property, Record, ServiceError, ServiceProperties, StoredAccessPolicy, TableName};
use partita_odata::Filter;
use partita_store::{Action, Batch, Error as StoreError, Expect, Item, Position, RowRef, Scan, Space, Step, Store};
use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};
use tokio::sync::{Mutex, OwnedMutexGuard};

const CATALOGUE: Space = Space(0);
const NEXT: &[u8] = b"n";

/// A table, as it was when it was looked up.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// The account it belongs to.
    pub account: String,
    /// Its name, in the case in which it was created.
    pub name: TableName,
    /// Where its entities are.
    pub space: Space,
    /// What shared access signatures may refer to.
    pub access_policies: Vec<StoredAccessPolicy>,
}

/// Which tables are asked for.
#[derive(Clone, Copy, Debug)]
pub struct TableQuery<'a> {
    /// A filter on `TableName`.
    pub filter: Option<&'a Filter>,
    /// The lower-case name at which an earlier page ended.
    pub from: Option<&'a str>,
    /// Most tables to return.
    pub rows_max: usize,
}

/// One page of tables.
#[derive(Clone, Debug)]
pub struct TablePage {
    /// The tables, ordered by lower-case name.
    pub tables: Vec<Arc<Table>>,
    /// The table at which the next page starts.
    pub next: Option<Arc<Table>>,
}

#[derive(Debug)]
pub(crate) struct Catalogue {
    store: Arc<dyn Store>,
    known: RwLock<Known>,
    /// Held while the catalogue changes.
    changes: Arc<Mutex<Changes>>,
}

/// What is known to those who change the catalogue only.
#[derive(Debug)]
struct Changes {
    /// The number of the next space. One that was given to a commit is never given again, whatever became of it.
    next_space: u64,
    /// Whether a commit may have been made, or may still be made, that is not in the copy.
    in_doubt: bool,
}

/// What the catalogue holds, by account and lower-case name.
#[derive(Debug, Default)]
struct Known {
    tables: HashMap<String, BTreeMap<String, Arc<Table>>>,
    properties: HashMap<String, Arc<ServiceProperties>>,
}

impl Catalogue {
    pub(crate) async fn load(store: Arc<dyn Store>) -> Result<Catalogue, StoreError> {
        let (known, next_space) = read(&*store).await?;
        let changes = Changes { next_space, in_doubt: false };
        Ok(Catalogue { store, known: RwLock::new(known), changes: Arc::new(Mutex::new(changes)) })
    }

    fn table(&self, account: &str, name: &TableName) -> Option<Arc<Table>> {
        self.known().tables.get(account)?.get(&name.lower()).cloned()
    }

    fn known(&self) -> std::sync::RwLockReadGuard<'_, Known> {
        self.known.read().expect("nothing panics while it changes the catalogue")
    }

    /// Waits until it is our turn to change the catalogue.
    async fn begin(&self) -> Result<OwnedMutexGuard<Changes>, ServiceError> {
        let mut changes = Arc::clone(&self.changes).lock_owned().await;
        if changes.in_doubt {
            self.read_again(&mut changes).await.map_err(service_error)?;
            changes.in_doubt = false;
        }
        Ok(changes)
    }

    /// Commits a change, then lets readers see it. Once begun it goes on even if nobody waits for it: a request that is
    /// dropped half way must not leave a commit behind of which the copy knows nothing.
    async fn change(
        self: &Arc<Self>,
        mut changes: OwnedMutexGuard<Changes>,
        items: Vec<Item>,
        drop_space: Option<Space>,
        update: impl FnOnce(&mut Known) + Send + 'static,
    ) -> Result<(), ServiceError> {
        let catalogue = Arc::clone(self);
        let batch = Batch { space: CATALOGUE, partition: Vec::new(), items, drop_space };
        let change = tokio::spawn(async move {
            let error = match catalogue.store.commit(batch).await {
                Ok(_) => {
                    update(&mut catalogue.known.write().expect("nothing panics while it changes the catalogue"));
                    return Ok(());
                }
                Err(error) => error,
            };
            if matches!(error, StoreError::OutcomeUnknown(_) | StoreError::Conflict { .. }) {
                // Read now for the sake of readers, and once more before the next change, since the commit may be made
                // late.
                changes.in_doubt = true;
                if let Err(error) = catalogue.read_again(&mut changes).await {
                    tracing::error!(%error, "the catalogue could not be read again");
                }
            }
            match error {
                StoreError::Conflict { .. } => {
                    tracing::error!(%error, "the catalogue was changed behind our back");
                    Err(ServiceError::ServerBusy)
                }
                error => Err(service_error(error)),
            }
        });
        change.await.unwrap_or_else(|error| {
            tracing::error!(%error, "a change of the catalogue ended half way");
            Err(ServiceError::InternalError)
        })
    }

    /// Makes the copy anew.
    async fn read_again(&self, changes: &mut Changes) -> Result<(), StoreError> {
        let (known, next_space) = read(&*self.store).await?;
        changes.next_space = changes.next_space.max(next_space);
        *self.known.write().expect("nothing panics while it changes the catalogue") = known;
        Ok(())
    }
}

/// What the store holds, and the number of the next space.
async fn read(store: &dyn Store) -> Result<(Known, u64), StoreError> {
    let mut known = Known::default();
    let mut next_space = CATALOGUE.0 + 1;
    let mut failed = None;
    let deadline = Instant::now() + Duration::from_secs(3600);
    let start = Position::default();
    let scan = Scan { space: CATALOGUE, start, end: None, deadline, rows_hint: usize::MAX, sieve: None };
    let mut visit = |row: RowRef<'_>| match load_row(row, &mut known, &mut next_space) {
        Ok(()) => Step::Next,
        Err(error) => {
            failed = Some(error);
            Step::Stop
        }
    };
    store.scan(scan, &mut visit).await?;
    match failed {
        Some(error) => Err(StoreError::Corrupt(format!("the catalogue: {error}"))),
        None => Ok((known, next_space)),
    }
}

fn load_row(row: RowRef<'_>, known: &mut Known, next_space: &mut u64) -> Result<(), CorruptRecord> {
    let read = CatalogueRow::read(row.row, row.value)?;
    if read.row() != row.row {
        return Err(CorruptRecord);
    }
    match read {
        CatalogueRow::NextSpace(next) => *next_space = next.max(*next_space),
        CatalogueRow::ServiceProperties { account, properties } => {
            known.properties.insert(account, Arc::new(properties));
        }
        CatalogueRow::Table(table) => {
            // Should the row with the next number be lost or damaged, the space of a table is still not given again.
            *next_space = (table.space.0 + 1).max(*next_space);
            let tables = known.tables.entry(table.account.clone()).or_default();
            tables.insert(table.name.lower(), Arc::new(table));
        }
    }
    Ok(())
}

/// A row of the catalogue, for those who read a store without the service.
#[derive(Clone, Debug, PartialEq)]
pub enum CatalogueRow {
    /// The space of the next table.
    NextSpace(u64),
    /// What an account has set for its service.
    ServiceProperties {
        /// The account.
        account: String,
        /// What it has set.
        properties: ServiceProperties,
    },
    /// A table.
    Table(Table),
}

impl CatalogueRow {
    /// Where the catalogue is.
    pub const SPACE: Space = CATALOGUE;

    /// Reads a row of the catalogue.
    pub fn read(row: &[u8], value: &[u8]) -> Result<CatalogueRow, CorruptRecord> {
        let record = Record::open(value)?;
        match row {
            NEXT => Ok(CatalogueRow::NextSpace(rows::decode_next(record)?)),
            [b'p', account @ ..] => Ok(CatalogueRow::ServiceProperties {
                account: String::from_utf8_lossy(account).into_owned(),
                properties: rows::decode_properties(record)?,
            }),
            [b't', key @ ..] => {
                let account = key.split(|&byte| byte == 0).next().unwrap_or_default();
                rows::decode_table(String::from_utf8_lossy(account).into_owned(), record).map(CatalogueRow::Table)
            }
            _ => Err(CorruptRecord),
        }
    }

    /// Where the row belongs in the catalogue.
    pub fn row(&self) -> Vec<u8> {
        match self {
            CatalogueRow::NextSpace(_) => NEXT.to_vec(),
            CatalogueRow::ServiceProperties { account, .. } => [b"p", account.as_bytes()].concat(),
            CatalogueRow::Table(table) => table_row(&table.account, &table.name.lower()),
        }
    }
}

fn table_row(account: &str, lower: &str) -> Vec<u8> {
    [b"t", account.as_bytes(), b"\0", lower.as_bytes()].concat()
}

fn put(row: Vec<u8>, expect: Expect, properties: &[Property]) -> Item {
    Item { row, expect, action: Action::Put(Record::encode(properties).into()) }
}

impl TableService {
    /// The table of that name, in any case.
    pub fn table(&self, account: &str, name: &TableName) -> Result<Arc<Table>, ServiceError> {
        self.catalogue.table(account, name).ok_or(ServiceError::TableNotFound)
    }

    /// Creates a table.
    pub async fn create_table(&self, account: &str, name: TableName) -> Result<Arc<Table>, ServiceError> {
        let mut changes = self.catalogue.begin().await?;
        if self.catalogue.table(account, &name).is_some() {
            return Err(ServiceError::TableAlreadyExists);
        }
        let lower = name.lower();
        let space = Space(changes.next_space);
        changes.next_space += 1;
        let table = Arc::new(Table { account: account.to_owned(), name, space, access_policies: Vec::new() });
        let items = vec![
            put(NEXT.to_vec(), Expect::Any, &rows::encode_next(changes.next_space)),
            put(table_row(account, &lower), Expect::Absent, &rows::encode_table(&table)),
        ];
        let created = table.clone();
        self.catalogue
            .change(changes, items, None, move |known| {
                known.tables.entry(created.account.clone()).or_default().insert(lower, created);
            })
            .await?;
        Ok(table)
    }

    /// Deletes a table and all its entities, in one step. The name may be used again at once.
    pub async fn delete_table(&self, account: &str, name: &TableName) -> Result<(), ServiceError> {
        let changes = self.catalogue.begin().await?;
        let table = self.catalogue.table(account, name).ok_or(ServiceError::ResourceNotFound)?;
        let lower = name.lower();
        let item = Item { row: table_row(account, &lower), expect: Expect::Present, action: Action::Delete };
        self.catalogue
            .change(changes, vec![item], Some(table.space), move |known| {
                known.tables.get_mut(&table.account).and_then(|tables| tables.remove(&lower));
            })
            .await
    }

    /// The tables of an account, in the order of their lower-case names.
    pub fn query_tables(&self, account: &str, query: TableQuery<'_>) -> TablePage {
        let known = self.catalogue.known();
        let from = query.from.map_or(Bound::Unbounded, |from| Bound::Included(from.to_owned()));
        let mut page = TablePage { tables: Vec::new(), next: None };
        let Some(tables) = known.tables.get(account) else { return page };
        for table in tables.range((from, Bound::Unbounded)).map(|(_, table)| table) {
            if query.filter.is_none_or(|filter| filter.matches_table(table.name.as_str())) {
                if page.tables.len() == query.rows_max {
                    page.next = Some(table.clone());
                    break;
                }
                page.tables.push(table.clone());
            }
        }
        page
    }

    /// Replaces the access policies of a table. Signatures that refer to one that is gone cease to hold at once.
    pub async fn set_access_policies(
        &self,
        account: &str,
        name: &TableName,
        policies: Vec<StoredAccessPolicy>,
    ) -> Result<(), ServiceError> {
        let changes = self.catalogue.begin().await?;
        let table = self.table(account, name)?;
        let table = Arc::new(Table { access_policies: policies, ..(*table).clone() });
        let lower = name.lower();
        let item = put(table_row(account, &lower), Expect::Present, &rows::encode_table(&table));
        self.catalogue
            .change(changes, vec![item], None, move |known| {
                known.tables.entry(table.account.clone()).or_default().insert(lower, table);
            })
            .await
    }

    /// What an account has set for its service.
    pub fn service_properties(&self, account: &str) -> Arc<ServiceProperties> {
        self.catalogue.known().properties.get(account).cloned().unwrap_or_default()
    }

    /// Changes what an account has set for its service.
    pub async fn update_service_properties(
        &self,
        account: &str,
        update: impl FnOnce(&mut ServiceProperties),
    ) -> Result<(), ServiceError> {
        let changes = self.catalogue.begin().await?;
        let mut properties = (*self.service_properties(account)).clone();
        update(&mut properties);
        let row = [b"p", account.as_bytes()].concat();
        let item = put(row, Expect::Any, &rows::encode_properties(&properties));
        let account = account.to_owned();
        self.catalogue
            .change(changes, vec![item], None, move |known| {
                known.properties.insert(account, Arc::new(properties));
            })
            .await
    }
}
