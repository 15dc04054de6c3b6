//! Writes as conversations with a Table service.

use super::reads::{Get, Look, done_if};
use super::{ACCOUNT, Client, JSON, RowRequests, id_at, put_id, table_of};
use crate::entity::{Entities, NewRow, Rng, Spread, digits, row_key};
use crate::wire::http;
use crate::wire::{Answer, Wire};
use std::io::Write;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Changes of one transaction, the most the service takes.
pub(crate) const TRANSACTION_ROWS: usize = 100;
const BATCH: &str = "batch_0f6c1c7a-2f0e-4a3c-8c1b-5d9e7a64b3f2";
const CHANGE_SET: &str = "changeset_6f1f2c5e-59a1-4f3b-9d7e-0a5c1e2b7d44";

/// What stands before the keys of a row as JSON, and behind them.
const PARTITION_KEY: &[u8] = b"{\"PartitionKey\":\"";
const ROW_KEY: &[u8] = b"\",\"RowKey\":\"";
const KEYS_END: &[u8] = b"\",";

/// Appends a row as JSON.
fn entity(
    entities: &Entities,
    row: usize,
    revision: usize,
    out: &mut Vec<u8>,
    partition_key: impl FnOnce(&mut Vec<u8>),
    row_key: impl FnOnce(&mut Vec<u8>),
) {
    keys(out, partition_key, row_key);
    entities.properties(row, revision, out);
    out.push(b'}');
}

/// Appends the beginning of a row: its keys, and a comma.
fn keys(out: &mut Vec<u8>, partition_key: impl FnOnce(&mut Vec<u8>), row_key: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(PARTITION_KEY);
    partition_key(out);
    out.extend_from_slice(ROW_KEY);
    row_key(out);
    out.extend_from_slice(KEYS_END);
}

/// How long a body is. All bodies of a wire are equally long.
fn length_of(body: impl FnOnce(&mut Vec<u8>)) -> usize {
    let mut bytes = Vec::new();
    body(&mut bytes);
    bytes.len()
}

/// Inserts new rows.
pub(super) struct Insert {
    head: Vec<u8>,
    id_at: usize,
    entities: Arc<Entities>,
    spread: Spread,
    row: NewRow,
}

impl Insert {
    pub(super) fn new(client: &Client, entities: Arc<Entities>, spread: Spread, row: NewRow) -> Insert {
        let head = client.head("POST", &format!("/{}", table_of(spread)), JSON);
        let mut insert = Insert { head: Vec::new(), id_at: id_at(&head), entities, spread, row };
        let length = length_of(|body| insert.body(body));
        insert.head = format!("{head}Prefer: return-no-content\r\nContent-Length: {length}\r\n\r\n").into_bytes();
        insert
    }

    fn body(&self, out: &mut Vec<u8>) {
        let row = self.row;
        let partition_key = |key: &mut Vec<u8>| self.spread.new_partition(row, key);
        entity(&self.entities, row.sequence, row.writer, out, partition_key, |key| row.row_key(key));
    }
}

impl Wire for Insert {
    fn request(&mut self, out: &mut Vec<u8>) -> bool {
        out.clear();
        out.extend_from_slice(&self.head);
        put_id(self.row.sequence, &mut out[self.id_at..]);
        self.body(out);
        self.row.sequence += 1;
        true
    }

    fn answer(&mut self, bytes: &[u8]) -> Option<Answer> {
        let response = http::read(bytes)?;
        Some(Answer { consumed: response.consumed, step: done_if(response.status == 204, 1) })
    }
}

/// What becomes of a row.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// The whole row, whether it is there or not.
    Replace,
    /// One property of a row that is there.
    Merge,
    /// The whole row, if it is the one that was written last.
    IfMatch,
}

/// Changes rows that are there: any of its range at random, or each by turns if it follows ETags.
pub(super) struct Update {
    requests: Arc<RowRequests>,
    entities: Arc<Entities>,
    change: Change,
    rng: Rng,
    rows: Range<usize>,
    etags: Vec<Vec<u8>>,
    row: usize,
    sent: usize,
    /// The header of this name and the end of the head.
    length: Vec<u8>,
}

impl Update {
    /// Changes rows of this range. `requests` have the method of the change.
    pub(super) fn new(
        requests: Arc<RowRequests>,
        entities: Arc<Entities>,
        change: Change,
        rng: Rng,
        rows: Range<usize>,
    ) -> Update {
        let etags = if change == Change::IfMatch { vec![Vec::new(); rows.len()] } else { Vec::new() };
        let mut update = Update { requests, entities, change, rng, rows, etags, row: 0, sent: 0, length: Vec::new() };
        let length = length_of(|body| update.body(0, body));
        update.length = format!("Content-Length: {length}\r\n\r\n").into_bytes();
        update
    }

    fn body(&self, row: usize, out: &mut Vec<u8>) {
        let partition_key = |key: &mut Vec<u8>| self.requests.spread().partition(row, key);
        match self.change {
            Change::Merge => {
                keys(out, partition_key, |key| row_key(row, key));
                write!(out, "\"Score\":0.{:08}}}", self.sent % 10_000_000 * 10 + 1).expect("a Vec takes everything");
            }
            _ => entity(&self.entities, row, self.sent, out, partition_key, |key| row_key(row, key)),
        }
    }
}

impl Wire for Update {
    fn request(&mut self, out: &mut Vec<u8>) -> bool {
        let follows = !self.etags.is_empty();
        self.row = if follows { self.sent % self.etags.len() } else { self.rng.below(self.rows.len()) };
        self.sent += 1;
        let row = self.rows.start + self.row;
        out.clear();
        self.requests.head(row, self.sent, out);
        match self.change {
            Change::Replace => {}
            Change::Merge => out.extend_from_slice(b"If-Match: *\r\n"),
            // The first time around no ETag is known yet.
            Change::IfMatch if self.etags[self.row].is_empty() => {}
            Change::IfMatch => {
                out.extend_from_slice(b"If-Match: ");
                out.extend_from_slice(&self.etags[self.row]);
                out.extend_from_slice(b"\r\n");
            }
        }
        out.extend_from_slice(&self.length);
        self.body(row, out);
        true
    }

    fn answer(&mut self, bytes: &[u8]) -> Option<Answer> {
        let response = http::read(bytes)?;
        let mut good = response.status == 204;
        if let Some(etag) = self.etags.get_mut(self.row) {
            let new = response.header(b"etag").unwrap_or_default();
            good &= !new.is_empty() && new != etag.as_slice();
            etag.clear();
            etag.extend_from_slice(new);
        }
        Some(Answer { consumed: response.consumed, step: done_if(good, 1) })
    }
}

/// Four reads to one write.
pub(super) struct Mixed {
    get: Get,
    change: Update,
    rng: Rng,
    writes: bool,
}

impl Mixed {
    pub(super) fn new(get: Get, change: Update, rng: Rng) -> Mixed {
        Mixed { get, change, rng, writes: false }
    }
}

impl Wire for Mixed {
    fn request(&mut self, out: &mut Vec<u8>) -> bool {
        self.writes = self.rng.below(5) == 0;
        if self.writes { self.change.request(out) } else { self.get.request(out) }
    }

    fn answer(&mut self, bytes: &[u8]) -> Option<Answer> {
        if self.writes { self.change.answer(bytes) } else { self.get.answer(bytes) }
    }
}

/// Where the rows of transactions come from.
pub(super) enum Source {
    /// Several connections load a table between them.
    Load { next: Arc<AtomicUsize>, spread: Spread, transactions: usize },
    /// New rows, all in one partition or in a new one for each transaction.
    New { row: NewRow, spread: Spread },
}

impl Source {
    fn next(&mut self) -> Option<usize> {
        match self {
            Source::Load { next, transactions, .. } => Some(next.fetch_add(1, Relaxed)).filter(|at| at < transactions),
            Source::New { row, .. } => {
                row.sequence += 1;
                Some(row.sequence)
            }
        }
    }

    /// Whether what is in the rows is looked at later.
    fn is_load(&self) -> bool {
        matches!(self, Source::Load { .. })
    }

    fn partition_key(&self, row: usize, key: &mut Vec<u8>) {
        match self {
            Source::New { row: new, spread: Spread::Partitions } => {
                key.push(b't');
                digits(new.writer, 6, key);
                digits(row / TRANSACTION_ROWS, 8, key);
            }
            Source::Load { spread, .. } | Source::New { spread, .. } => spread.partition(row, key),
        }
    }

    fn row_key(&self, row: usize, key: &mut Vec<u8>) {
        match self {
            Source::Load { .. } => row_key(row, key),
            Source::New { row: new, .. } => NewRow { sequence: row, ..*new }.row_key(key),
        }
    }
}

/// Inserts rows in transactions.
pub(super) struct Transactions {
    head: Vec<u8>,
    id_at: usize,
    /// The body up to its first part, what stands before each entity, and what follows the last.
    start: Vec<u8>,
    part: Vec<u8>,
    end: Vec<u8>,
    entities: Arc<Entities>,
    source: Source,
    look: Look,
    key: Vec<u8>,
}

impl Transactions {
    pub(super) fn new(client: &Client, entities: Arc<Entities>, spread: Spread, source: Source) -> Transactions {
        let row = |out: &mut Vec<u8>| {
            entity(&entities, 0, 0, out, |key| source.partition_key(0, key), |key| source.row_key(0, key));
        };
        let part = format!(
            "--{CHANGE_SET}\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n\
             POST http://{}/{ACCOUNT}/{} HTTP/1.1\r\nx-ms-version: 2019-02-02\r\nDataServiceVersion: 3.0\r\n\
             Accept: application/json;odata=minimalmetadata\r\nContent-Type: {JSON}\r\n\
             Prefer: return-no-content\r\nContent-Length: {}\r\n\r\n",
            client.host,
            table_of(spread),
            length_of(row)
        );
        let head = client.head("POST", "/$batch", &format!("multipart/mixed; boundary={BATCH}"));
        let mut transactions = Transactions {
            id_at: id_at(&head),
            head: Vec::new(),
            part: part.into_bytes(),
            start: format!("--{BATCH}\r\nContent-Type: multipart/mixed; boundary={CHANGE_SET}\r\n\r\n").into_bytes(),
            end: format!("--{CHANGE_SET}--\r\n\r\n--{BATCH}--\r\n").into_bytes(),
            entities,
            source,
            look: Look::new(b"HTTP/1.1 204"),
            key: Vec::new(),
        };
        let length = length_of(|body| transactions.body(0, body));
        transactions.head = format!("{head}Content-Length: {length}\r\n\r\n").into_bytes();
        transactions
    }

    fn body(&self, transaction: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.start);
        for row in rows_of(transaction) {
            out.extend_from_slice(&self.part);
            let partition_key = |key: &mut Vec<u8>| self.source.partition_key(row, key);
            entity(&self.entities, row, 0, out, partition_key, |key| self.source.row_key(row, key));
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(&self.end);
    }

    /// Makes the body of a transaction that of a later one: other keys and numbers, and else the same contents, which spares
    /// the machine to copy them once more.
    fn overwrite(&mut self, transaction: usize, body: &mut [u8]) {
        let rows = &mut body[self.start.len()..];
        let stride = (rows.len() - self.end.len()) / TRANSACTION_ROWS;
        for (row, part) in rows_of(transaction).zip(rows.chunks_exact_mut(stride)) {
            let mut rest = &mut part[self.part.len() + PARTITION_KEY.len()..];
            for (write, behind) in [(Source::partition_key as fn(&_, _, &mut _), ROW_KEY), (Source::row_key, KEYS_END)]
            {
                self.key.clear();
                write(&self.source, row, &mut self.key);
                rest[..self.key.len()].copy_from_slice(&self.key);
                rest = &mut rest[self.key.len() + behind.len()..];
            }
            self.entities.put_number(row, rest);
        }
    }
}

fn rows_of(transaction: usize) -> Range<usize> {
    transaction * TRANSACTION_ROWS..(transaction + 1) * TRANSACTION_ROWS
}

impl Wire for Transactions {
    fn request(&mut self, out: &mut Vec<u8>) -> bool {
        let Some(transaction) = self.source.next() else { return false };
        if out.is_empty() || self.source.is_load() {
            out.clear();
            out.extend_from_slice(&self.head);
            self.body(transaction, out);
        } else {
            self.overwrite(transaction, &mut out[self.head.len()..]);
        }
        put_id(transaction, &mut out[self.id_at..]);
        true
    }

    fn answer(&mut self, bytes: &[u8]) -> Option<Answer> {
        let response = http::read(bytes)?;
        let good = response.status == 202 && self.look.count(&response) == TRANSACTION_ROWS;
        Some(Answer { consumed: response.consumed, step: done_if(good, TRANSACTION_ROWS) })
    }
}
