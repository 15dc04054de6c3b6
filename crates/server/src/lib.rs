//! The server: HTTP in front, the Table service behind. Only this crate listens, routes and answers.
//!
//! ```text
//! listen --> exchange --> operation --> authorize --> handlers --> partita_table
//! ```

mod accounts;
mod address;
mod admin;
mod answer;
mod authorize;
mod backup;
mod body;
mod bounds;
pub mod commands;
pub mod config;
mod control;
mod exchange;
mod folder_source;
mod handlers;
mod head;
mod header_lines;
mod header_name;
mod headers;
mod host;
mod listen;
mod metrics;
mod negotiate;
mod operation;
mod query_string;
mod reply;
mod request;
mod request_id;
mod resource;
mod store_account;
mod workers;

use accounts::Accounts;
use answer::Answer;
use body::{Body, BodyMemory};
use bounds::{Memory as ResponseMemory, Places};
use config::{Config, DurabilityName};
use control::Control;
use exchange::Peer;
use head::Head;
use listen::{Handler, Listener};
use metrics::Metrics;
use partita_store::{Memory, Store};
use partita_store_postgres::PostgresStore;
use partita_store_rocksdb::{Durability, Options, RocksStore};
use partita_table::TableService;
use request_id::Ids;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tracing::warn;
use workers::Workers;

/// Most connections of the admin port at a time.
const ADMIN_CONNECTIONS_MAX: usize = 500;

/// What all requests share.
#[derive(Debug)]
pub(crate) struct State {
    config: Arc<Config>,
    accounts: Arc<Accounts>,
    service: Arc<TableService>,
    metrics: Metrics,
    ids: Ids,
    /// The memory left for the bodies of requests.
    bodies: BodyMemory,
    /// The memory left for responses.
    responses: Arc<ResponseMemory>,
    /// As many requests under way as there may be connections.
    places: Places,
}

/// A server that listens.
#[derive(Debug)]
pub struct Server {
    /// Where the Table service listens.
    pub table: SocketAddr,
    /// Where the admin port listens, if it does.
    pub admin: Option<SocketAddr>,
    stop: watch::Sender<bool>,
    reload: mpsc::Sender<()>,
    tasks: Vec<JoinHandle<()>>,
    follower: JoinHandle<()>,
}

impl Server {
    /// Opens the store and listens. An error is a sentence for the user.
    pub async fn start(config: Config) -> Result<Server, String> {
        Server::listen(config, None).await
    }

    /// Listens in front of a store that is open already. An error is a sentence for the user.
    pub async fn start_on(config: Config, store: Arc<dyn Store>) -> Result<Server, String> {
        Server::listen(config, Some(store)).await
    }

    /// Listens first: a port that is taken is said before a folder is made.
    async fn listen(config: Config, store: Option<Arc<dyn Store>>) -> Result<Server, String> {
        let accounts = Arc::new(Accounts::new(&config.accounts)?);
        let tls = config.tls.as_ref().map(|(cert, key)| listen::tls(cert, key)).transpose()?;
        let https = tls.is_some();
        let (socket, table) = bind(config.table, "the Table service").await?;
        let (admin_address, admin_required) = config.admin;
        let admin = match bind(admin_address, "the admin port").await {
            Ok(admin) => Some(admin),
            Err(why) if admin_required => return Err(why),
            Err(why) => {
                warn!("{why} Going on without an admin port.");
                None
            }
        };
        let (store, on_disk) = match store {
            Some(store) => (store, None),
            None => open(&config).await?,
        };
        let service = TableService::open(store).await.map_err(|error| format!("The data cannot be read: {error}."))?;
        let service = Arc::new(service);
        let config = Arc::new(config);
        let metrics = Metrics::new(service.clone());
        let state = Arc::new(State {
            config: config.clone(),
            accounts: accounts.clone(),
            service,
            metrics,
            ids: Ids::new(),
            bodies: BodyMemory::new(),
            responses: ResponseMemory::new(),
            places: Places::new(config.max_connections),
        });

        let workers = Arc::new(Workers::start().map_err(|error| format!("Cannot start threads: {error}."))?);
        let (stop, stopped) = watch::channel(false);
        let (reload, asks) = mpsc::channel(1);
        let follower = tokio::spawn(accounts::follow_file(accounts, config.clone(), asks));
        let listener = |socket, tls, max_connections| Listener {
            socket,
            tls,
            max_connections,
            keep_alive: config.keep_alive,
            connections: state.metrics.connections.clone(),
            workers: workers.clone(),
        };
        let mut tasks = Vec::new();
        if let (Some(store), Some(folder)) = (on_disk, &config.location) {
            match Control::bind(folder) {
                Ok(control) => tasks.push(tokio::spawn(control.serve(store, stopped.clone()))),
                Err(error) => warn!(%error, "no control socket in {}: no backups while running", folder.display()),
            }
        }
        let handler = TableHandler { state: state.clone(), https };
        tasks.push(tokio::spawn(listen::serve(
            listener(socket, tls, config.max_connections),
            stopped.clone(),
            handler,
        )));
        let admin = admin.map(|(socket, address)| {
            let handler = AdminHandler { state: state.clone(), listens: address.ip() };
            let listener = listener(socket, None, ADMIN_CONNECTIONS_MAX);
            tasks.push(tokio::spawn(listen::serve(listener, stopped.clone(), handler)));
            address
        });
        Ok(Server { table, admin, stop, reload, tasks, follower })
    }

    /// Reads the accounts again.
    pub async fn reload(&self) {
        let _ = self.reload.send(()).await;
    }

    /// Stops listening, lets requests under way finish, and closes the store.
    pub async fn stop(self) {
        let _ = self.stop.send(true);
        for task in self.tasks {
            let _ = task.await;
        }
        self.follower.abort();
        let _ = self.follower.await;
    }
}

/// Answers on the port of the Table service.
struct TableHandler {
    state: Arc<State>,
    https: bool,
}

impl Handler for TableHandler {
    async fn answer<'a>(&'a self, head: &'a Head<'a>, body: &'a mut Body<'_>, address: IpAddr) -> Answer {
        exchange::respond(&self.state, head, body, Peer { address, https: self.https }).await
    }
}

/// Answers on the admin port.
struct AdminHandler {
    state: Arc<State>,
    listens: IpAddr,
}

impl Handler for AdminHandler {
    async fn answer<'a>(&'a self, head: &'a Head<'a>, _: &'a mut Body<'_>, _: IpAddr) -> Answer {
        admin::respond(&self.state, head, self.listens).await
    }
}

async fn bind(address: SocketAddr, what: &str) -> Result<(TcpListener, SocketAddr), String> {
    let failed = |error: std::io::Error| format!("Cannot listen on {address} for {what}: {error}.");
    let socket = TcpListener::bind(address).await.map_err(failed)?;
    let address = socket.local_addr().map_err(failed)?;
    Ok((socket, address))
}

/// The store, and once more what it is if it is in a folder.
type OpenStore = (Arc<dyn Store>, Option<Arc<RocksStore>>);

async fn open(config: &Config) -> Result<OpenStore, String> {
    if let Some(options) = &config.store {
        return Ok((Arc::new(PostgresStore::open(options.clone()).await?), None));
    }
    Ok(match &config.location {
        None => (Arc::new(Memory::new()), None),
        Some(location) => {
            let durability = match config.durability {
                DurabilityName::Sync => Durability::Sync,
                DurabilityName::Interval => Durability::Interval(config.sync_interval),
                DurabilityName::None => Durability::None,
            };
            let options = Options {
                durability,
                cache_bytes: config.cache_bytes,
                write_buffer_bytes: config.write_buffer_bytes,
                accept_damage: config.accept_damage,
                ..Options::default()
            };
            let store = Arc::new(RocksStore::open(location, options).map_err(|error| error.to_string())?);
            (store.clone(), Some(store))
        }
    })
}
