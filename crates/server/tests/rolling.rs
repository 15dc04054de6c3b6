//! All nodes are restarted one after the other under load, and no client notices: those who meet a node that ends ask the next one,
//! as SDKs behind a load balancer do.

use partita_testing::http::{Connection, PATIENCE, Request, Response, entity};
use partita_testing::postgres::Postgres;
use partita_testing::process::Process;
use std::io;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const TABLE: &str = "Rolling";
const NODES: usize = 3;
const CLIENTS: usize = 6;
/// Tries of a request, and the pause behind the first of them, which doubles. The SDKs of Azure try four times and wait longer.
const TRIES: usize = 4;
const PAUSE: Duration = Duration::from_millis(100);
/// Rows that are written between two restarts.
const ROWS: usize = 60;

/// What clients know.
struct Service {
    nodes: Vec<Mutex<SocketAddr>>,
    written: AtomicUsize,
    retries: AtomicUsize,
    is_over: AtomicBool,
}

/// Tells clients that it is over, however it ends.
struct Over<'s>(&'s Service);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::SeqCst);
    }
}

struct Client<'s> {
    service: &'s Service,
    node: usize,
    connection: Option<Connection>,
}

impl Client<'_> {
    /// Sends a request until it is answered by a server that is not in trouble.
    fn send(&mut self, request: &Request) -> Response {
        let mut pause = PAUSE;
        let mut failures = Vec::new();
        for _ in 0..TRIES {
            let failure = match self.try_send(request) {
                Ok(response) if response.status < 500 => return response,
                Ok(response) => format!("{response:?}"),
                Err(error) => error.to_string(),
            };
            failures.push(failure);
            self.service.retries.fetch_add(1, Ordering::SeqCst);
            self.connection = None;
            self.node = (self.node + 1) % NODES;
            std::thread::sleep(pause);
            pause *= 2;
        }
        panic!("{} {} failed: {failures:#?}", request.method, request.target);
    }

    fn try_send(&mut self, request: &Request) -> io::Result<Response> {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            None => {
                let address = *self.service.nodes[self.node].lock().expect("nobody panicked");
                self.connection.insert(Connection::try_open(address)?)
            }
        };
        connection.write(&request.clone().signed().bytes())?;
        let response = connection.read()?;
        if response.header("connection") == Some("close") {
            self.connection = None;
        }
        Ok(response)
    }

    /// Inserts rows and reads them again. A row that is there already was written by a try that was not answered; a node that
    /// ends in good order answers all that it has begun.
    fn run(&mut self, client: usize) -> usize {
        for row in 0.. {
            if self.service.is_over.load(Ordering::SeqCst) {
                return row;
            }
            let (partition_key, row_key) = (client.to_string(), row.to_string());
            let body = format!(r#"{{"PartitionKey":"{partition_key}","RowKey":"{row_key}"}}"#);
            self.send(&Request::json("POST", format!("/{TABLE}"), body)).expect(201);
            self.send(&Request::get(entity(TABLE, &partition_key, &row_key))).expect(200);
            self.service.written.fetch_add(1, Ordering::SeqCst);
        }
        unreachable!("there is always another row")
    }
}

#[test]
fn all_nodes_are_restarted_and_nobody_notices() {
    let Some(postgres) = Postgres::shared() else { return };
    let store = format!("--store={}", postgres.database());
    let start = || Process::start(&[&store, "--silent"]);
    let mut nodes: Vec<Process> = (0..NODES).map(|_| start()).collect();
    nodes[0].send(Request::json("POST", "/Tables", format!(r#"{{"TableName":"{TABLE}"}}"#))).expect(201);
    let service = Service {
        nodes: nodes.iter().map(|node| Mutex::new(node.address)).collect(),
        written: AtomicUsize::new(0),
        retries: AtomicUsize::new(0),
        is_over: AtomicBool::new(false),
    };
    let rows: Vec<usize> = std::thread::scope(|scope| {
        let service = &service;
        let client = |number| move || Client { service, node: number % NODES, connection: None }.run(number);
        let clients: Vec<_> = (0..CLIENTS).map(|number| scope.spawn(client(number))).collect();
        let over = Over(service);
        let wait_for_rows = || {
            let (begun, target) = (Instant::now(), service.written.load(Ordering::SeqCst) + ROWS);
            while service.written.load(Ordering::SeqCst) < target && !clients.iter().any(|client| client.is_finished())
            {
                assert!(begun.elapsed() < PATIENCE, "nothing is written any more");
                std::thread::sleep(Duration::from_millis(1));
            }
        };
        wait_for_rows();
        for (node, address) in nodes.iter_mut().zip(&service.nodes) {
            let old = std::mem::replace(node, start());
            // The new one takes the place of the old one first, so that there are always as many.
            *address.lock().expect("nobody panicked") = node.address;
            old.stop();
            wait_for_rows();
        }
        drop(over);
        clients.into_iter().map(|client| client.join().expect("no request failed")).collect()
    });
    println!("{} rows, {} retries", rows.iter().sum::<usize>(), service.retries.load(Ordering::SeqCst));
    let mut reader = Client { service: &service, node: 0, connection: None };
    for (client, rows) in rows.iter().enumerate() {
        for row in 0..*rows {
            reader.send(&Request::get(entity(TABLE, &client.to_string(), &row.to_string()))).expect(200);
        }
    }
}
