//! A server with rows in it, and the wires that talk to it.

use super::reads::{Get, Query, Span};
use super::writes::{Change, Insert, Mixed, Source, TRANSACTION_ROWS, Transactions, Update};
use super::{Auth, Client, RowRequestKind, RowRequests};
use crate::entity::{Entities, NewRow, Rng, Spread};
use crate::wire::Wire;
use crate::workloads::{Action, Work};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

/// Rows a connection changes by turns when it follows their ETags.
const OWN_ROWS: usize = 8;

/// A server, as the wires need to know it.
pub struct Target {
    client: Client,
    entities: Arc<Entities>,
    rows: usize,
    /// How many wires there were. Each draws other rows and writes other keys.
    wires: AtomicUsize,
    /// Requests that are signed already.
    signed: Mutex<HashMap<RowRequestKind, Arc<RowRequests>>>,
}

impl Target {
    /// A server that holds the first `rows` rows in each of its tables.
    pub fn new(address: SocketAddr, entities: Arc<Entities>, rows: usize) -> Target {
        let client = Client::new(&address.to_string(), SystemTime::now());
        Target { client, entities, rows, wires: AtomicUsize::new(0), signed: Mutex::default() }
    }

    /// What writes requests for it.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Connections that load all rows of a table between them.
    pub fn loaders(&self, spread: Spread, connections: usize) -> Vec<Box<dyn Wire>> {
        let next = Arc::new(AtomicUsize::new(0));
        let source = || Source::Load { next: next.clone(), spread, transactions: self.rows / TRANSACTION_ROWS };
        (0..connections).map(|_| Box::new(self.transactions(spread, source())) as Box<dyn Wire>).collect()
    }

    /// One of several connections that do this work.
    pub fn wire(&self, work: Work, connection: usize, connections: usize) -> Box<dyn Wire> {
        let rng = self.new_rng();
        let spread = work.spread;
        let query = |span, rng| Box::new(Query::new(&self.client, span, spread, self.rows, rng));
        let change = |change, rng| Box::new(self.update(change, spread, rng, 0..self.rows));
        match work.action {
            Action::Get(auth) => Box::new(self.get(auth, spread, rng)),
            Action::Insert => Box::new(self.insert(spread)),
            Action::Upsert => change(Change::Replace, rng),
            Action::Merge => change(Change::Merge, rng),
            Action::Update => {
                let share = self.rows / connections;
                assert!(share >= OWN_ROWS, "there are rows enough for all connections");
                let first = connection * share;
                Box::new(self.update(Change::IfMatch, spread, rng, first..first + OWN_ROWS))
            }
            Action::Transaction => Box::new(self.transactions(spread, Source::New { row: self.new_writer(), spread })),
            Action::Range => query(Span::Partition, rng),
            Action::Page => query(Span::Page, rng),
            Action::Filter => query(Span::Filter, rng),
            Action::Mixed => {
                let get = self.get(Auth::SharedKey, spread, self.new_rng());
                let update = self.update(Change::Replace, spread, self.new_rng(), 0..self.rows);
                Box::new(Mixed::new(get, update, rng))
            }
            Action::ReadUnderWrites if work.measures(connection) => Box::new(self.get(Auth::SharedKey, spread, rng)),
            Action::ReadUnderWrites => Box::new(self.insert(spread)),
        }
    }

    /// A wire that gets rows and takes whatever it gets, for a server that has only one answer.
    pub fn any_get(&self) -> Box<dyn Wire> {
        Box::new(self.get(Auth::SharedKey, Spread::Partitions, self.new_rng()).any())
    }

    fn new_rng(&self) -> Rng {
        Rng::new(self.wires.fetch_add(1, Relaxed) as u64)
    }

    fn new_writer(&self) -> NewRow {
        NewRow { writer: self.wires.fetch_add(1, Relaxed), sequence: 0 }
    }

    fn signed(&self, kind: RowRequestKind) -> Arc<RowRequests> {
        let mut signed = self.signed.lock().expect("nobody panics here");
        signed.entry(kind).or_insert_with(|| Arc::new(RowRequests::new(&self.client, kind, self.rows))).clone()
    }

    fn get(&self, auth: Auth, spread: Spread, rng: Rng) -> Get {
        Get::new(self.signed(RowRequestKind { method: "GET", has_body: false, auth, spread }), rng)
    }

    fn insert(&self, spread: Spread) -> Insert {
        Insert::new(&self.client, self.entities.clone(), spread, self.new_writer())
    }

    fn update(&self, change: Change, spread: Spread, rng: Rng, rows: Range<usize>) -> Update {
        let method = if change == Change::Merge { "PATCH" } else { "PUT" };
        let requests = self.signed(RowRequestKind { method, has_body: true, auth: Auth::SharedKey, spread });
        Update::new(requests, self.entities.clone(), change, rng, rows)
    }

    fn transactions(&self, spread: Spread, source: Source) -> Transactions {
        Transactions::new(&self.client, self.entities.clone(), spread, source)
    }
}
