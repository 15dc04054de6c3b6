//! A server in this process.

use crate::http::{Connection, Request, Response};
use crate::signing;
use partita_server::Server;
use partita_server::config::Settings;
use partita_store::{Memory, Store};
use std::cell::RefCell;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;

/// A server in memory on a free port, with a connection to it; stopped when it goes out of scope.
pub struct TestServer {
    pub address: SocketAddr,
    pub admin: SocketAddr,
    connection: RefCell<Option<Connection>>,
    server: Option<Server>,
    runtime: Option<Runtime>,
}

impl TestServer {
    pub fn start() -> TestServer {
        TestServer::with(|_| {})
    }

    pub fn with(change: impl FnOnce(&mut Settings)) -> TestServer {
        TestServer::on_store(Arc::new(Memory::new()), change)
    }

    /// A server on a store of the test's own.
    pub fn on_store(store: Arc<dyn Store>, change: impl FnOnce(&mut Settings)) -> TestServer {
        TestServer::start_with(Some(store), |settings| {
            settings.in_memory = Some(true);
            change(settings);
        })
    }

    /// A server on a database that other servers may use too.
    pub fn on_database(url: &str) -> TestServer {
        TestServer::start_with(None, |settings| settings.store = Some(url.into()))
    }

    fn start_with(store: Option<Arc<dyn Store>>, change: impl FnOnce(&mut Settings)) -> TestServer {
        let mut settings = Settings::default();
        settings.table_port = Some(0);
        settings.admin_port = Some(0);
        settings.accounts = signing::accounts();
        change(&mut settings);
        let config = settings.complete().expect("a configuration that is complete");
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("threads can be started");
        let server = runtime.block_on(async {
            match store {
                Some(store) => Server::start_on(config, store).await,
                None => Server::start(config).await,
            }
        });
        let server = server.expect("the server starts");
        let address = server.table;
        let admin = server.admin.expect("it was given a port");
        TestServer { address, admin, connection: RefCell::new(None), server: Some(server), runtime: Some(runtime) }
    }

    /// A server that has these tables.
    pub fn with_tables(tables: &[&str]) -> TestServer {
        let server = TestServer::start();
        tables.iter().for_each(|table| server.create(table));
        server
    }

    pub fn connect(&self) -> Connection {
        Connection::open(self.address)
    }

    /// Sends a request, signed with the account key unless it is signed already.
    #[track_caller]
    pub fn send(&self, request: Request) -> Response {
        self.send_as_is(&request.signed())
    }

    /// Sends a request with the credentials it has.
    #[track_caller]
    pub fn send_as_is(&self, request: &Request) -> Response {
        let bytes = request.bytes();
        let mut connection = self.connection.borrow_mut().take().unwrap_or_else(|| self.connect());
        let response = connection.exchange(&bytes);
        if response.header("connection") != Some("close") {
            *self.connection.borrow_mut() = Some(connection);
        }
        response
    }

    #[track_caller]
    pub fn create(&self, table: &str) {
        self.send(Request::json("POST", "/Tables", format!(r#"{{"TableName":"{table}"}}"#))).expect(201);
    }

    #[track_caller]
    pub fn insert(&self, table: &str, partition_key: &str, row_key: &str) {
        let body = format!(r#"{{"PartitionKey":"{partition_key}","RowKey":"{row_key}","A":1}}"#);
        self.send(Request::json("POST", format!("/{table}"), body)).expect(201);
    }

    /// All rows of a table that fits on a page.
    #[track_caller]
    pub fn rows(&self, table: &str) -> String {
        self.send(Request::get(format!("/{table}()"))).expect(200).rows()
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        *self.connection.borrow_mut() = None;
        if let (Some(server), Some(runtime)) = (self.server.take(), self.runtime.take()) {
            // A test that failed may leave requests under way; they are not waited for long.
            let _ = runtime.block_on(async { tokio::time::timeout(Duration::from_secs(5), server.stop()).await });
            runtime.shutdown_background();
        }
    }
}
