//! The ends of a copy: what a user calls them, and what is behind that.

use crate::commands::expect_data;
use crate::folder_source::open_folder;
use crate::store_account::StoreAccount;
use partita_store::Store as Engine;
use partita_store_postgres::{Options as DatabaseOptions, PostgresStore};
use partita_store_rocksdb::{Durability, Options, RocksStore};
use partita_table::TableService;
use partita_transfer::connection::Connection;
use partita_transfer::remote::Remote;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// A copy that is cut short is made again, so that nobody waits for the disk before its end.
const SYNC_INTERVAL: Duration = Duration::from_secs(1);

/// Where tables are.
pub(super) enum Place {
    Service(Arc<Connection>),
    Folder(PathBuf),
    Database(Box<DatabaseOptions>),
}

impl Place {
    /// Reads what a user wrote. An error is a sentence without secrets.
    pub(super) fn parse(text: &str) -> Result<Place, String> {
        let text = text.trim();
        let is_url = |schemes: [&str; 2]| schemes.iter().any(|scheme| text.starts_with(scheme));
        if is_url(["postgres://", "postgresql://"]) {
            return DatabaseOptions::parse(text).map(|options| Place::Database(Box::new(options)));
        }
        // A folder with such a name is written with its path.
        if is_url(["https://", "http://"]) || text.contains('=') && !text.starts_with(['/', '.']) {
            let connection = Connection::parse(text).map_err(|error| error.to_string())?;
            return Ok(Place::Service(Arc::new(connection)));
        }
        if text.is_empty() || text.contains("://") {
            return Err("A place is a connection string, a data folder, or postgres://user@host/database.".into());
        }
        Ok(Place::Folder(text.into()))
    }

    fn name(&self) -> String {
        match self {
            Place::Service(connection) => connection.to_string(),
            Place::Folder(folder) => folder.canonicalize().unwrap_or_else(|_| folder.clone()).display().to_string(),
            Place::Database(options) => options.to_string(),
        }
    }

    /// Refuses to copy something onto itself. An error is a sentence.
    pub(super) fn check_differs(&self, other: &Place, is_renamed: bool) -> Result<(), String> {
        let name = self.name();
        match (self, other.name() == name) {
            (Place::Folder(_), true) => Err(format!(
                "Both ends are {name}. To copy a table within a folder, start a server on it and copy there with --as."
            )),
            (_, true) if !is_renamed => Err(format!("Both ends are {name}; --table and --as copy a table within it.")),
            _ => Ok(()),
        }
    }

    /// Opens it, to be changed or not. An error is a sentence.
    pub(super) async fn open(self, is_changed: bool) -> Result<Opened, String> {
        let name = self.name();
        let mut on_disk = None;
        let engine: Arc<dyn Engine> = match self {
            Place::Service(connection) => return Ok(Opened::Service(Remote(connection))),
            Place::Database(options) => Arc::new(PostgresStore::open(*options).await?),
            Place::Folder(folder) if !is_changed => {
                expect_data(&folder)?;
                Arc::new(open_folder(&folder, false).map_err(|error| error.to_string())?)
            }
            Place::Folder(folder) => {
                let options = Options { durability: Durability::Interval(SYNC_INTERVAL), ..Options::default() };
                let store = Arc::new(RocksStore::open(folder, options).map_err(|error| error.to_string())?);
                on_disk = Some(store.clone());
                store
            }
        };
        let service = TableService::open(engine).await;
        let service = service.map_err(|error| format!("The data in {name} cannot be read: {error}."))?;
        Ok(Opened::Store(Store { service: Arc::new(service), name, on_disk }))
    }
}

/// A place that can be used.
pub(super) enum Opened {
    Service(Remote),
    Store(Store),
}

/// A folder or a database, with the tables of all accounts.
pub(super) struct Store {
    pub(super) service: Arc<TableService>,
    pub(super) name: String,
    on_disk: Option<Arc<RocksStore>>,
}

impl Store {
    pub(super) fn account(&self, account: &str) -> StoreAccount {
        StoreAccount { service: self.service.clone(), account: account.to_owned(), place: self.name.clone() }
    }
}

impl Opened {
    /// Sees to it that everything is on the disk.
    pub(super) fn close(self) {
        if let Opened::Store(Store { on_disk: Some(store), .. }) = self {
            store.close();
        }
    }
}
