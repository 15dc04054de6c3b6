//! The catalogue: which tables there are, their access policies, and what accounts have set for their service.
//!
//! It lives in one partition of its own space, so that every change of it is one commit. A copy of it is kept in memory,
//! which changes behind the commit and under one lock. A change that was begun is brought to its end in a task of its
//! own, whatever becomes of the request, and the copy is made anew from the store when the outcome of a commit is
//! unknown. Dropping a table removes its row and its space in the same commit, so that no crash can leave one without the
//! other; the name is free at once because the next table of that name gets another space.
//!
//! Every change also writes the row with the number of the next space, and expects it to be as it was when the copy was
//! made; its version is therefore the version of the catalogue. Where no other process writes to the store, the copy is
//! always the truth. Where others do, a change that was overtaken reads the catalogue again and begins anew, and the
//! version is looked at twice a second ([`LOOKS`]), before each change, and before a table is said not to exist.
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
use partita_store::{
    Action, Batch, Error as StoreError, Expect, Item, Position, RowRef, Scan, ScanEnd, Space, Step, Store, Version,
};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock, Weak};
use std::time::{Duration, Instant};
use tokio::sync::{Mutex, OwnedMutexGuard};

const CATALOGUE: Space = Space(0);
const NEXT: &[u8] = b"n";
/// What others have changed in the catalogue is known within this time, as long as the store answers.
pub const KNOWN_WITHIN: Duration = Duration::from_secs(1);
/// How often the version of a catalogue that others may change is looked at. The rest of the time is for the look itself.
const LOOKS: Duration = Duration::from_millis(KNOWN_WITHIN.as_millis() as u64 / 2);
/// How often a change is begun anew because others were faster.
const TRIES: usize = 20;

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
    /// The version of the copy: that of the row [`NEXT`], or 0 if there was none.
    version: AtomicU64,
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
    tables: BTreeMap<String, BTreeMap<String, Arc<Table>>>,
    properties: HashMap<String, Arc<ServiceProperties>>,
}

impl Catalogue {
    pub(crate) async fn load(store: Arc<dyn Store>) -> Result<Arc<Catalogue>, StoreError> {
        let (known, next_space, version) = read(&*store).await?;
        let changes = Arc::new(Mutex::new(Changes { next_space, in_doubt: false }));
        let catalogue = Catalogue { store, known: RwLock::new(known), version: AtomicU64::new(version), changes };
        let catalogue = Arc::new(catalogue);
        if catalogue.store.is_shared() {
            tokio::spawn(follow(Arc::downgrade(&catalogue)));
        }
        Ok(catalogue)
    }

    /// The version of the copy.
    fn version(&self) -> Version {
        self.version.load(Ordering::Acquire)
    }

    /// Makes the copy anew if others have changed the catalogue.
    async fn look(&self) -> Result<(), StoreError> {
        if self.stored_version().await? != self.version() {
            self.look_before_changes(&mut *self.changes.lock().await).await?;
        }
        Ok(())
    }

    async fn look_before_changes(&self, changes: &mut Changes) -> Result<(), StoreError> {
        if self.stored_version().await? != self.version() {
            self.read_again(changes).await?;
        }
        Ok(())
    }

    async fn stored_version(&self) -> Result<Version, StoreError> {
        Ok(self.store.read(CATALOGUE, b"", NEXT).await?.map_or(0, |row| row.version))
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
        } else if self.store.is_shared() {
            self.look_before_changes(&mut changes).await.map_err(service_error)?;
        }
        Ok(changes)
    }

    /// Commits a change, then lets readers see it, and says whether it was made: if others were faster, it was not, and
    /// the copy is now what they made it. Once begun it goes on even if nobody waits for it: a request that is
    /// dropped half way must not leave a commit behind of which the copy knows nothing.
    async fn change(
        self: &Arc<Self>,
        mut changes: OwnedMutexGuard<Changes>,
        mut items: Vec<Item>,
        drop_space: Option<Space>,
        update: impl FnOnce(&mut Known) + Send + 'static,
    ) -> Result<bool, ServiceError> {
        let catalogue = Arc::clone(self);
        let expect = match self.version() {
            0 => Expect::Absent,
            version => Expect::Version(version),
        };
        items.push(put(NEXT.to_vec(), expect, &rows::encode_next(changes.next_space)));
        let batch = Batch { space: CATALOGUE, partition: Vec::new(), items, drop_space };
        let change = tokio::spawn(async move {
            let error = match catalogue.store.commit(batch).await {
                Ok(version) => {
                    update(&mut catalogue.known.write().expect("nothing panics while it changes the catalogue"));
                    catalogue.version.store(version, Ordering::Release);
                    return Ok(true);
                }
                Err(error) => error,
            };
            if matches!(error, StoreError::OutcomeUnknown(_) | StoreError::Conflict { .. }) {
                // Read now for the sake of readers, and once more before the next change if the commit may be made late.
                changes.in_doubt = matches!(error, StoreError::OutcomeUnknown(_));
                if let Err(error) = catalogue.read_again(&mut changes).await {
                    changes.in_doubt = true;
                    tracing::error!(%error, "the catalogue could not be read again");
                }
            }
            match error {
                StoreError::Conflict { .. } => Ok(false),
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
        let (known, next_space, version) = read(&*self.store).await?;
        changes.next_space = changes.next_space.max(next_space);
        *self.known.write().expect("nothing panics while it changes the catalogue") = known;
        self.version.store(version, Ordering::Release);
        Ok(())
    }
}

/// Looks at the catalogue now and then, as long as somebody has it.
async fn follow(catalogue: Weak<Catalogue>) {
    let mut looks = tokio::time::interval(LOOKS);
    looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        looks.tick().await;
        let Some(catalogue) = catalogue.upgrade() else { return };
        if let Err(error) = catalogue.look().await {
            tracing::warn!(%error, "the catalogue could not be looked at");
        }
    }
}

/// What the store holds, the number of the next space, and the version of the catalogue.
async fn read(store: &dyn Store) -> Result<(Known, u64, Version), StoreError> {
    let mut known = Known::default();
    let mut next_space = CATALOGUE.0 + 1;
    let mut version = 0;
    let mut failed = None;
    let deadline = Instant::now() + Duration::from_secs(3600);
    let start = Position::default();
    let scan = Scan { space: CATALOGUE, start, end: None, deadline, rows_hint: usize::MAX, sieve: None };
    let mut visit = |row: RowRef<'_>| {
        if row.row == NEXT {
            version = row.version;
        }
        match load_row(row, &mut known, &mut next_space) {
            Ok(()) => Step::Next,
            Err(error) => {
                failed = Some(error);
                Step::Stop
            }
        }
    };
    let end = store.scan(scan, &mut visit).await?;
    match failed {
        Some(error) => Err(StoreError::Corrupt(format!("the catalogue: {error}"))),
        None if matches!(end, ScanEnd::Deadline(_)) => {
            Err(StoreError::Unavailable("the catalogue takes too long".into()))
        }
        None => Ok((known, next_space, version)),
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
    /// The table of that name, in any case, as far as this process knows.
    pub fn table(&self, account: &str, name: &TableName) -> Result<Arc<Table>, ServiceError> {
        self.catalogue.table(account, name).ok_or(ServiceError::TableNotFound)
    }

    /// The version of what this process knows of tables.
    pub fn catalogue_version(&self) -> Version {
        self.catalogue.version()
    }

    /// Whether other processes have changed the catalogue since it had this version. If so, it is known now, and whoever did
    /// not find a table may look again.
    pub async fn catalogue_has_changed(&self, since: Version) -> bool {
        if !self.store.is_shared() {
            return false;
        }
        if let Err(error) = self.catalogue.look().await {
            tracing::warn!(%error, "the catalogue could not be looked at");
        }
        self.catalogue.version() != since
    }

    /// Creates a table.
    pub async fn create_table(&self, account: &str, name: TableName) -> Result<Arc<Table>, ServiceError> {
        for _ in 0..TRIES {
            let mut changes = self.catalogue.begin().await?;
            if self.catalogue.table(account, &name).is_some() {
                return Err(ServiceError::TableAlreadyExists);
            }
            let lower = name.lower();
            let space = Space(changes.next_space);
            changes.next_space += 1;
            let (account, name) = (account.to_owned(), name.clone());
            let table = Arc::new(Table { account, name, space, access_policies: Vec::new() });
            let item = put(table_row(&table.account, &lower), Expect::Absent, &rows::encode_table(&table));
            let created = table.clone();
            let update = move |known: &mut Known| {
                known.tables.entry(created.account.clone()).or_default().insert(lower, created);
            };
            if self.catalogue.change(changes, vec![item], None, update).await? {
                return Ok(table);
            }
        }
        Err(ServiceError::ServerBusy)
    }

    /// Deletes a table and all its entities, in one step. The name may be used again at once.
    pub async fn delete_table(&self, account: &str, name: &TableName) -> Result<(), ServiceError> {
        for _ in 0..TRIES {
            let changes = self.catalogue.begin().await?;
            let table = self.catalogue.table(account, name).ok_or(ServiceError::ResourceNotFound)?;
            let (lower, space) = (name.lower(), table.space);
            let item = Item { row: table_row(account, &lower), expect: Expect::Present, action: Action::Delete };
            let update = move |known: &mut Known| {
                known.tables.get_mut(&table.account).and_then(|tables| tables.remove(&lower));
            };
            if self.catalogue.change(changes, vec![item], Some(space), update).await? {
                return Ok(());
            }
        }
        Err(ServiceError::ServerBusy)
    }

    /// The accounts that have tables, or have set anything for their service.
    pub fn accounts(&self) -> BTreeSet<String> {
        let known = self.catalogue.known();
        known.tables.keys().chain(known.properties.keys()).cloned().collect()
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
        for _ in 0..TRIES {
            let changes = self.catalogue.begin().await?;
            let table = self.table(account, name)?;
            let table = Arc::new(Table { access_policies: policies.clone(), ..(*table).clone() });
            let lower = name.lower();
            let item = put(table_row(account, &lower), Expect::Present, &rows::encode_table(&table));
            let update = move |known: &mut Known| {
                known.tables.entry(table.account.clone()).or_default().insert(lower, table);
            };
            if self.catalogue.change(changes, vec![item], None, update).await? {
                return Ok(());
            }
        }
        Err(ServiceError::ServerBusy)
    }

    /// What an account has set for its service.
    pub fn service_properties(&self, account: &str) -> Arc<ServiceProperties> {
        self.catalogue.known().properties.get(account).cloned().unwrap_or_default()
    }

    /// Changes what an account has set for its service. The change is made anew if others were faster.
    pub async fn update_service_properties(
        &self,
        account: &str,
        update: impl Fn(&mut ServiceProperties),
    ) -> Result<(), ServiceError> {
        for _ in 0..TRIES {
            let changes = self.catalogue.begin().await?;
            let mut properties = (*self.service_properties(account)).clone();
            update(&mut properties);
            let row = [b"p", account.as_bytes()].concat();
            let item = put(row, Expect::Any, &rows::encode_properties(&properties));
            let account = account.to_owned();
            let update = move |known: &mut Known| {
                known.properties.insert(account, Arc::new(properties));
            };
            if self.catalogue.change(changes, vec![item], None, update).await? {
                return Ok(());
            }
        }
        Err(ServiceError::ServerBusy)
    }
}
