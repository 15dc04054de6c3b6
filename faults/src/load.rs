//! Clients that write, and know at any moment of the trace what they had been promised.
//!
//! A client has tables that nobody else writes to, and one request under way at a time. So whatever happens, the rows of its
//! tables must be what its first so many changes make, no more and no less: at least those that were acknowledged, at most those
//! that were sent. A transaction of which a half is there fits no number.

use crate::random::Random;
use partita_testing::batch::{change_set, parts};
use partita_testing::http::{Connection, Request, entity};
use partita_testing::process::Process;
use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};

/// How many rows a transaction writes.
const TRANSACTION_ROWS: u64 = 5;

/// Enough that a table is dropped as a range rather than row by row.
const LARGE_TABLE_BATCHES: u64 = 11;
const BATCH_ROWS: u64 = 100;

/// Tables, their rows and the number that each was written with.
pub type State = BTreeMap<String, BTreeMap<String, u64>>;

/// A change of one client.
#[derive(Clone, Debug)]
enum Change {
    Create(String),
    Drop(String),
    /// Rows of one partition that are written, or deleted, together.
    Rows(String, Vec<(String, Option<u64>)>),
}

impl Change {
    fn apply(&self, state: &mut State) {
        match self {
            Change::Create(table) => drop(state.insert(table.clone(), BTreeMap::new())),
            Change::Drop(table) => drop(state.remove(table)),
            Change::Rows(table, rows) => {
                let table = state.entry(table.clone()).or_default();
                for (row, number) in rows {
                    match number {
                        Some(number) => drop(table.insert(row.clone(), *number)),
                        None => drop(table.remove(row)),
                    }
                }
            }
        }
    }
}

/// A moment, by the length of the trace and among all marks of all clients.
#[derive(Clone, Copy, Debug)]
struct Mark {
    trace: u64,
    order: u64,
}

#[derive(Clone, Debug)]
struct Event {
    change: Change,
    sent: Mark,
    acknowledged: Option<Mark>,
}

/// What must have survived a cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// Everything that was acknowledged.
    Acknowledged,
    /// Everything that was acknowledged when the trace was this long.
    AcknowledgedBefore(u64),
    /// Nothing. As always, what is there is what the first changes made.
    Order,
}

#[derive(Clone, Debug)]
struct Client {
    number: usize,
    /// What is there for good.
    base: State,
    events: Vec<Event>,
    /// What `base` and `events` come to.
    now: State,
    next: u64,
    random: Random,
    value_bytes: u64,
}

/// All clients.
#[derive(Clone, Debug)]
pub struct Load {
    clients: Vec<Client>,
    marks: Marks,
}

#[derive(Clone, Debug)]
struct Marks {
    trace: PathBuf,
    order: Arc<AtomicU64>,
}

impl Marks {
    fn mark(&self) -> Mark {
        let order = self.order.fetch_add(1, Ordering::SeqCst);
        Mark { trace: fs::metadata(&self.trace).map_or(0, |trace| trace.len()), order }
    }
}

impl Load {
    /// So many clients, one of which makes and drops tables, with values of up to so many bytes.
    pub fn new(clients: usize, value_bytes: u64, seed: u64) -> Load {
        let client = |number| Client {
            number,
            base: State::new(),
            events: Vec::new(),
            now: State::new(),
            next: 0,
            random: Random::new(seed ^ (number as u64) << 32),
            value_bytes,
        };
        let marks = Marks { trace: PathBuf::new(), order: Arc::default() };
        Load { clients: (0..clients).map(client).collect(), marks }
    }

    /// Runs all clients against a server with this trace, and ends the server with `end` after so many acknowledgements.
    pub fn run<T>(
        &mut self,
        process: Process,
        trace: &Path,
        acknowledgements: usize,
        end: impl FnOnce(Process) -> T,
    ) -> T {
        self.marks.trace = trace.to_path_buf();
        let (acknowledged, heard) = channel();
        let clients: Vec<_> = self
            .clients
            .drain(..)
            .map(|mut client| {
                let (marks, acknowledged, address) = (self.marks.clone(), acknowledged.clone(), process.address);
                std::thread::spawn(move || {
                    client.run(address, &marks, &acknowledged);
                    client
                })
            })
            .collect();
        drop(acknowledged);
        heard.iter().take(acknowledgements).for_each(drop);
        let ended = end(process);
        self.clients = clients.into_iter().map(|client| client.join().expect("a client does not fail")).collect();
        ended
    }

    /// How many changes were acknowledged since the load was settled last.
    pub fn acknowledged(&self) -> usize {
        let events = self.clients.iter().flat_map(|client| &client.events);
        events.filter(|event| event.acknowledged.is_some()).count()
    }

    /// Compares what is found after a cut with what was promised. Returns how many changes of each client are there.
    pub fn check(&self, cut: u64, promise: Promise, found: &State) -> Result<Vec<usize>, String> {
        let mut fitting = Vec::new();
        for client in &self.clients {
            fitting.push(client.check(cut, promise, found)?);
        }
        self.check_order(&fitting)?;
        let owned = |table: &String| self.clients.iter().any(|client| client.owns(table));
        match found.keys().find(|table| !owned(table)) {
            Some(table) => Err(format!("table {table} is nobody's")),
            None => Ok(fitting.iter().map(|counts| *counts.end()).collect()),
        }
    }

    /// Changes are lost from the end: none that was acknowledged before another was sent is lost without that.
    /// Where several numbers of changes come to the same rows, as when a table is made and dropped, each is given the benefit
    /// of the doubt.
    fn check_order(&self, fitting: &[RangeInclusive<usize>]) -> Result<(), String> {
        let events = || self.clients.iter().zip(fitting);
        let lost = events().filter_map(|(client, counts)| {
            let acknowledged = client.events[*counts.end()..].iter().find_map(|event| event.acknowledged);
            Some((client.number, acknowledged?.order))
        });
        let first_lost = lost.min_by_key(|(_, order)| *order);
        let last_kept = events()
            .filter_map(|(client, counts)| Some((client.number, client.events[..*counts.start()].last()?.sent.order)))
            .max_by_key(|(_, order)| *order);
        match (first_lost, last_kept) {
            (Some((loser, acknowledged)), Some((keeper, sent))) if acknowledged < sent => {
                Err(format!("a change of client {loser} is lost, and a later one of client {keeper} is there"))
            }
            _ => Ok(()),
        }
    }

    /// Goes on from a disk on which so many changes of each client are left.
    pub fn settle(&mut self, kept: &[usize]) {
        for (client, kept) in self.clients.iter_mut().zip(kept) {
            client.base = client.state(*kept);
            client.now = client.base.clone();
            client.events.clear();
        }
    }

    /// After the process ended but not the machine: whatever was under way is now there or not, and whoever has seen that may
    /// rely on it.
    pub fn settle_seen(&mut self, kept: &[usize], trace: &Path) {
        self.marks.trace = trace.to_path_buf();
        let mark = self.marks.mark();
        for (client, kept) in self.clients.iter_mut().zip(kept) {
            client.events.truncate(*kept);
            client.now = client.state(*kept);
            for event in &mut client.events {
                event.acknowledged.get_or_insert(mark);
            }
        }
    }
}

impl Client {
    fn run(&mut self, address: SocketAddr, marks: &Marks, acknowledged: &Sender<()>) {
        let mut connection = Connection::open(address);
        loop {
            let change = self.next_change();
            change.apply(&mut self.now);
            let sent = marks.mark();
            self.events.push(Event { change: change.clone(), sent, acknowledged: None });
            if !self.send(&mut connection, &change) {
                return;
            }
            let event = self.events.last_mut().expect("it was just pushed");
            event.acknowledged = Some(marks.mark());
            // The test may have stopped listening; the writing goes on until the server is gone.
            let _ = acknowledged.send(());
        }
    }

    /// The first client makes and drops tables; the others change rows of their own.
    fn next_change(&mut self) -> Change {
        self.next += 1;
        if self.number == 0 { self.next_table() } else { self.next_rows() }
    }

    fn next_table(&mut self) -> Change {
        let Some((table, rows)) = self.now.first_key_value() else { return Change::Create(self.table(self.next)) };
        let table = table.clone();
        let batches = if self.next.is_multiple_of(2) { LARGE_TABLE_BATCHES } else { 1 };
        let full = rows.len() as u64 >= batches * BATCH_ROWS;
        if full || self.random.below(20) == 0 {
            return Change::Drop(table);
        }
        let first = rows.len() as u64;
        let rows = (first..first + BATCH_ROWS).map(|row| (format!("r{row:05}"), Some(self.next)));
        Change::Rows(table, rows.collect())
    }

    fn next_rows(&mut self) -> Change {
        let number = self.next;
        let table = self.table(0);
        let Some(there) = self.now.get(&table) else { return Change::Create(table) };
        let rows = match self.random.below(6) {
            0 | 1 => vec![(format!("i{number:06}"), Some(number))],
            2 => vec![("counter".to_owned(), Some(number))],
            3 => (0..TRANSACTION_ROWS).map(|row| (format!("g{row}"), Some(number))).collect(),
            4 => (0..TRANSACTION_ROWS).map(|row| (format!("t{number:06}-{row}"), Some(number))).collect(),
            _ => match there.keys().find(|row| row.starts_with(['i', 't'])) {
                Some(row) => vec![(row.clone(), None)],
                None => vec![("counter".to_owned(), Some(number))],
            },
        };
        Change::Rows(table, rows)
    }

    fn table(&self, number: u64) -> String {
        format!("C{}x{number}", self.number)
    }

    fn owns(&self, table: &str) -> bool {
        table.starts_with(&format!("C{}x", self.number))
    }

    /// What the first so many changes made.
    fn state(&self, count: usize) -> State {
        let mut state = self.base.clone();
        self.events[..count].iter().for_each(|event| event.change.apply(&mut state));
        state
    }

    /// Sends a change; `false` if it was not acknowledged.
    fn send(&self, connection: &mut Connection, change: &Change) -> bool {
        let (request, statuses) = match change {
            Change::Create(table) => {
                let request = Request::json("POST", "/Tables", format!(r#"{{"TableName":"{table}"}}"#));
                (request.header("Prefer", "return-no-content"), vec![204])
            }
            Change::Drop(table) => (Request::delete(format!("/Tables('{table}')")), vec![204]),
            Change::Rows(table, rows) => {
                let rows: Vec<_> = rows.iter().map(|(row, number)| self.row(table, row, *number)).collect();
                let statuses = vec![204; rows.len()];
                match &rows[..] {
                    [row] => (row.clone(), statuses),
                    rows => (change_set(rows), statuses),
                }
            }
        };
        let is_batch = request.target == "/$batch";
        let Ok(response) = connection.write(&request.signed().bytes()).and_then(|()| connection.read()) else {
            return false;
        };
        let found: Vec<u16> =
            if is_batch { parts(&response).iter().map(|part| part.status).collect() } else { vec![response.status] };
        if found.iter().any(|status| *status >= 500) {
            return false;
        }
        assert_eq!(found, statuses, "{change:?} was answered {response:?}");
        true
    }

    fn row(&self, table: &str, row: &str, number: Option<u64>) -> Request {
        let target = entity(table, "p", row);
        match number {
            Some(number) => {
                let body = format!(r#"{{"V":{number},"Data":"{}"}}"#, data(row, number, self.value_bytes));
                Request::json("PUT", target, body)
            }
            None => Request::delete(target).header("If-Match", "*"),
        }
    }

    /// The least and the greatest number of changes that come to what is found.
    fn check(&self, cut: u64, promise: Promise, found: &State) -> Result<RangeInclusive<usize>, String> {
        let until = match promise {
            Promise::Acknowledged => Some(cut),
            Promise::AcknowledgedBefore(trace) => Some(cut.min(trace)),
            Promise::Order => None,
        };
        let promised = |event: &Event| {
            until.is_some_and(|until| event.acknowledged.is_some_and(|acknowledged| acknowledged.trace <= until))
        };
        let least = self.events.iter().rposition(promised).map_or(0, |last| last + 1);
        let most = self.events.iter().take_while(|event| event.sent.trace < cut).count();
        let found: State = found
            .iter()
            .filter(|(table, _)| self.owns(table))
            .map(|(table, rows)| (table.clone(), rows.clone()))
            .collect();
        let mut state = self.base.clone();
        let mut fitting: Vec<usize> = if state == found { vec![0] } else { Vec::new() };
        for (index, event) in self.events[..most].iter().enumerate() {
            event.change.apply(&mut state);
            if state == found {
                fitting.push(index + 1);
            }
        }
        let number = self.number;
        let promised = fitting.iter().find(|count| **count >= least);
        match (promised, fitting.last()) {
            (Some(promised), Some(greatest)) => Ok(*promised..=*greatest),
            (None, Some(&count)) => Err(format!(
                "client {number} was promised {least} changes, and {count} are there; the first that is lost is {:?}",
                self.events[count]
            )),
            (_, None) => Err(format!(
                "client {number} was promised {least} changes and sent {most}, and what is there is none of their states: \
                 {}",
                difference(&self.state(least), &found)
            )),
        }
    }
}

/// The first thing that differs, in words.
fn difference(expected: &State, found: &State) -> String {
    for table in expected.keys().chain(found.keys()) {
        let (Some(left), Some(right)) = (expected.get(table), found.get(table)) else {
            return format!("table {table} is expected: {}", expected.contains_key(table));
        };
        for row in left.keys().chain(right.keys()) {
            if left.get(row) != right.get(row) {
                return format!("row {row} of {table} is expected as {:?} and is {:?}", left.get(row), right.get(row));
            }
        }
    }
    "nothing differs".to_owned()
}

/// Text that belongs to one version of one row, of a length of its own.
fn data(row: &str, number: u64, bytes_max: u64) -> String {
    let seed = row.bytes().fold(number, |seed, byte| seed.wrapping_mul(31).wrapping_add(u64::from(byte)));
    let mut random = Random::new(seed);
    // Batches of many rows have small ones.
    let bytes_max = if row.starts_with('r') { 20 } else { bytes_max };
    let length = random.below(bytes_max + 1) as usize;
    let mut data = String::with_capacity(length + 16);
    while data.len() < length {
        data.push_str(&format!("{:016x}", random.next_number()));
    }
    data.truncate(length);
    data
}

/// All tables and rows of a server. Rows must hold what their numbers say.
pub fn read_all(process: &Process, value_bytes: u64) -> Result<State, String> {
    let mut connection = process.connect();
    let mut state = State::new();
    each(&mut connection, "/Tables", |table| {
        state.insert(table["TableName"].as_str().unwrap_or_default().to_owned(), BTreeMap::new());
        Ok(())
    })?;
    for (table, rows) in &mut state {
        each(&mut connection, &format!("/{table}()"), |row| {
            let (Some(key), Some(number)) = (row["RowKey"].as_str(), row["V"].as_u64()) else {
                return Err(format!("an odd row in {table}: {row}"));
            };
            if row["Data"].as_str() != Some(&data(key, number, value_bytes)) {
                return Err(format!("row {key} of {table} is not as it was written with {number}"));
            }
            match rows.insert(key.to_owned(), number) {
                Some(_) => Err(format!("row {key} of {table} is there twice")),
                None => Ok(()),
            }
        })?;
    }
    Ok(state)
}

fn each(
    connection: &mut Connection,
    target: &str,
    mut show: impl FnMut(&serde_json::Value) -> Result<(), String>,
) -> Result<(), String> {
    let mut next = String::new();
    loop {
        let page = connection.send(&Request::get(format!("{target}{next}")).signed());
        if page.status != 200 {
            return Err(format!("{target}{next} was answered {page:?}"));
        }
        for row in page.json()["value"].as_array().into_iter().flatten() {
            show(row)?;
        }
        let table = page.header("x-ms-continuation-NextTableName").map(|table| format!("NextTableName={table}"));
        match page.continuation().or(table) {
            Some(token) => next = format!("?{token}"),
            None => return Ok(()),
        }
    }
}
