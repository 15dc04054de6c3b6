//! Killed in the middle of writes, again and again on the same folder: what was acknowledged is there, and of every
//! transaction there is all or nothing.
//!
//! Clients write as fast as they can and report what they were about to write and what was acknowledged. After a number of
//! acknowledgements, drawn from a seed, the process is killed; what the clients know is compared with what the next one
//! finds. A write that was not acknowledged may be there or not, but not in part.

use partita_testing::batch::{change_set, parts};
use partita_testing::http::{Connection, Request, entity};
use partita_testing::process::Process;
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::{SystemTime, UNIX_EPOCH};

const ROUNDS: usize = 40;
const CLIENTS: usize = 4;
const TRANSACTION_ROWS: usize = 5;

/// What one client knows of its own partitions, which nobody else writes to.
#[derive(Clone, Default)]
struct Ledger {
    /// Inserted rows, and whether the insert was acknowledged.
    inserts: BTreeMap<String, bool>,
    /// The value of the row that is updated: the last one acknowledged, and the last one sent.
    counter: (u64, u64),
    /// Numbers of transactions: the rows of each are replaced together. The last one acknowledged, and the last one sent.
    group: (u64, u64),
    /// Transactions that insert rows, and whether they were acknowledged.
    transactions: BTreeMap<u64, bool>,
    next: u64,
}

#[test]
fn nothing_acknowledged_is_lost_and_nothing_is_half_done() {
    let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(|| {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |elapsed| u64::from(elapsed.subsec_nanos()))
    });
    println!("SEED={seed}");
    let mut random = Random(seed);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut ledgers = vec![Ledger::default(); CLIENTS];
    let mut process = Process::on(folder.path(), &[]);
    process.send(Request::json("POST", "/Tables", r#"{"TableName":"Ledger"}"#)).expect(201);
    for round in 0..ROUNDS {
        let (acknowledged, acknowledgements) = channel();
        let clients: Vec<_> = ledgers
            .drain(..)
            .enumerate()
            .map(|(client, ledger)| write(process.address, client, ledger, acknowledged.clone()))
            .collect();
        drop(acknowledged);
        // Few in some rounds, so that start and recovery are hit as well.
        let count = if round % 4 == 0 { 1 } else { 20 + random.below(300) };
        let heard = acknowledgements.iter().take(count).count();
        assert_eq!(heard, count, "the clients stopped before the process was killed");
        process.kill();
        ledgers = clients.into_iter().map(|client| client.join().expect("a client does not fail")).collect();
        process = Process::on(folder.path(), &[]);
        for (client, ledger) in ledgers.iter_mut().enumerate() {
            ledger.settle(client, &rows(&process, client), &format!("round {round}, SEED={seed}"));
        }
    }
    let inserts: usize = ledgers.iter().map(|ledger| ledger.inserts.len()).sum();
    let transactions: usize = ledgers.iter().map(|ledger| ledger.transactions.len()).sum();
    println!("{inserts} inserts and {transactions} transactions survived");
    assert!(inserts > 0 && transactions > 0);
    process.stop();
}

/// Writes until the connection breaks.
fn write(address: SocketAddr, client: usize, mut ledger: Ledger, acknowledged: Sender<()>) -> JoinHandle<Ledger> {
    let mut connection = Connection::open(address);
    std::thread::spawn(move || {
        // The test may have stopped listening; the writing goes on until the server is gone.
        while ledger.step(client, &mut connection) {
            let _ = acknowledged.send(());
        }
        ledger
    })
}

/// Sends a request; `false` if the server is gone.
#[must_use]
fn send(connection: &mut Connection, request: Request, statuses: &[u16]) -> bool {
    let is_batch = request.target == "/$batch";
    let Ok(response) = connection.write(&request.signed().bytes()).and_then(|()| connection.read()) else {
        return false;
    };
    let found =
        if is_batch { parts(&response).iter().map(|part| part.status).collect() } else { vec![response.status] };
    assert_eq!(found, statuses, "{response:?}");
    true
}

fn insert(partition_key: &str, row_key: &str, value: u64) -> Request {
    let body = format!(r#"{{"PartitionKey":"{partition_key}","RowKey":"{row_key}","V":{value}}}"#);
    Request::json("POST", "/Ledger", body).header("Prefer", "return-no-content")
}

fn replace(partition_key: &str, row_key: &str, value: u64) -> Request {
    Request::json("PUT", entity("Ledger", partition_key, row_key), format!(r#"{{"V":{value}}}"#))
}

impl Ledger {
    /// One write; `false` if it was not acknowledged.
    fn step(&mut self, client: usize, connection: &mut Connection) -> bool {
        let partition = format!("c{client}");
        self.next += 1;
        let number = self.next;
        match number % 4 {
            0 => {
                let row = format!("i{number:06}");
                self.inserts.insert(row.clone(), false);
                let done = send(connection, insert(&partition, &row, number), &[204]);
                self.inserts.insert(row, done);
                done
            }
            1 => {
                self.counter.1 = number;
                let done = send(connection, replace(&partition, "counter", number), &[204]);
                if done {
                    self.counter.0 = number;
                }
                done
            }
            2 => {
                self.group.1 = number;
                let rows: Vec<_> =
                    (0..TRANSACTION_ROWS).map(|row| replace(&partition, &format!("g{row}"), number)).collect();
                let done = send(connection, change_set(&rows), &[204; TRANSACTION_ROWS]);
                if done {
                    self.group.0 = number;
                }
                done
            }
            _ => {
                self.transactions.insert(number, false);
                let rows: Vec<_> = (0..TRANSACTION_ROWS)
                    .map(|row| insert(&partition, &format!("t{number:06}-{row}"), number))
                    .collect();
                let done = send(connection, change_set(&rows), &[204; TRANSACTION_ROWS]);
                self.transactions.insert(number, done);
                done
            }
        }
    }

    /// Compares with what is there, and takes over what turned out to be done.
    fn settle(&mut self, client: usize, found: &BTreeMap<String, u64>, when: &str) {
        let mut known = 0;
        for (row, acknowledged) in &mut self.inserts {
            let there = found.contains_key(row);
            assert!(there || !*acknowledged, "{when}: acknowledged insert {row} of client {client} is lost");
            known += usize::from(there);
            *acknowledged = there;
        }
        for (number, acknowledged) in &mut self.transactions {
            let rows = (0..TRANSACTION_ROWS).filter(|row| found.contains_key(&format!("t{number:06}-{row}"))).count();
            assert!(rows == 0 || rows == TRANSACTION_ROWS, "{when}: {rows} rows of transaction {number} are there");
            assert!(rows > 0 || !*acknowledged, "{when}: acknowledged transaction {number} is lost");
            known += rows;
            *acknowledged = rows > 0;
        }
        let counter = found.get("counter").copied().unwrap_or_default();
        assert!(
            counter == self.counter.0 || counter == self.counter.1,
            "{when}: the counter of client {client} is {counter}, acknowledged and sent were {:?}",
            self.counter
        );
        known += usize::from(counter > 0);
        self.counter = (counter, counter);
        let group: Vec<u64> =
            (0..TRANSACTION_ROWS).map(|row| found.get(&format!("g{row}")).copied().unwrap_or_default()).collect();
        assert!(group.iter().all(|value| *value == group[0]), "{when}: half of a transaction: {group:?}");
        assert!(
            group[0] == self.group.0 || group[0] == self.group.1,
            "{when}: the group of client {client} is {}, acknowledged and sent were {:?}",
            group[0],
            self.group
        );
        known += if group[0] > 0 { TRANSACTION_ROWS } else { 0 };
        self.group = (group[0], group[0]);
        assert_eq!(found.len(), known, "{when}: there are rows that client {client} never wrote");
        // What is not there will never come back.
        self.inserts.retain(|_, there| *there);
        self.transactions.retain(|_, there| *there);
    }
}

/// All rows of a client, from as many pages as it takes.
fn rows(process: &Process, client: usize) -> BTreeMap<String, u64> {
    let mut rows = BTreeMap::new();
    let mut connection = process.connect();
    let mut query = String::new();
    loop {
        let target = format!("/Ledger()?$filter=PartitionKey%20eq%20'c{client}'{query}");
        let page = connection.send(&Request::get(target).signed()).expect(200);
        for row in page.json()["value"].as_array().into_iter().flatten() {
            let (key, value) = (row["RowKey"].as_str(), row["V"].as_u64());
            let (Some(key), Some(value)) = (key, value) else { panic!("an odd row: {row}") };
            assert!(rows.insert(key.to_owned(), value).is_none(), "{key} is there twice");
            assert!(matches!(row["Timestamp"], Value::String(_)), "{row}");
        }
        match page.continuation() {
            Some(next) => query = format!("&{next}"),
            None => return rows,
        }
    }
}

/// A small generator, so that a seed says everything.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }
}
