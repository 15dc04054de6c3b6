//! Reads as conversations with a Table service.

use super::{Client, RowRequests, id_at, put_id, table_of};
use crate::entity::{FIRST_NUMBER, PARTITION_ROWS, Rng, Spread, row_key};
use crate::wire::http::{self, Response};
use crate::wire::{Answer, Step, Wire};
use std::io::Write;
use std::sync::Arc;

/// Rows of one page, the most the service gives.
const PAGE_ROWS: usize = 1000;
/// Rows a filter finds.
const FILTER_HITS: usize = 10;
/// An answer is looked at closely when its length is new, and every so often.
const LOOK_EVERY: usize = 64;
/// How much the lengths of answers of equally many rows differ at most: less than a row.
const LENGTH_TOLERANCE: usize = 600;

/// The end of an operation that went well or did not.
pub(super) fn done_if(good: bool, rows: usize) -> Step {
    if good { Step::Done(rows as u32) } else { Step::Failed }
}

/// Reads single rows at random.
pub(super) struct Get {
    requests: Arc<RowRequests>,
    rng: Rng,
    row: usize,
    sent: usize,
    look: bool,
    wanted: Vec<u8>,
    scratch: Vec<u8>,
}

impl Get {
    pub(super) fn new(requests: Arc<RowRequests>, rng: Rng) -> Get {
        Get { requests, rng, row: 0, sent: 0, look: true, wanted: Vec::new(), scratch: Vec::new() }
    }

    /// Does not look which row it got, for a server that has only one answer.
    pub(super) fn any(self) -> Get {
        Get { look: false, ..self }
    }
}

impl Wire for Get {
    fn request(&mut self, out: &mut Vec<u8>) -> bool {
        self.row = self.rng.below(self.requests.rows());
        self.sent += 1;
        out.clear();
        self.requests.head(self.row, self.sent, out);
        out.extend_from_slice(b"\r\n");
        true
    }

    fn answer(&mut self, bytes: &[u8]) -> Option<Answer> {
        let response = http::read(bytes)?;
        let mut good = response.status == 200 && (900..2000).contains(&response.length);
        if good && self.look && self.sent % LOOK_EVERY == 1 {
            self.wanted.clear();
            self.wanted.extend_from_slice(b"\"RowKey\":\"");
            row_key(self.row, &mut self.wanted);
            good = response.count(&self.wanted, &mut self.scratch) == 1;
        }
        Some(Answer { consumed: response.consumed, step: done_if(good, 1) })
    }
}

/// Which rows a query asks for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Span {
    /// A range of 100 rows, all of a partition.
    Partition,
    /// A page of a table.
    Page,
    /// Ten rows out of all by a property that is no key.
    Filter,
}

/// Asks for many rows.
pub(super) struct Query {
    start: Vec<u8>,
    end: Vec<u8>,
    id_at: usize,
    span: Span,
    spread: Spread,
    rows: usize,
    rng: Rng,
    sent: usize,
    /// The query string of the operation under way.
    target: Vec<u8>,
    /// What asks for its next page; empty if a new operation begins.
    continuation: Vec<u8>,
    /// What it found so far.
    hits: usize,
    look: Look,
}

impl Query {
    /// Asks a table that has so many rows.
    pub(super) fn new(client: &Client, span: Span, spread: Spread, rows: usize, rng: Rng) -> Query {
        // Of the query nothing is signed, so it can be put behind the path later.
        let head = client.head("GET", &format!("/{}()", table_of(spread)), "");
        let (start, end) = head.split_once(" HTTP/1.1\r\n").expect("a head starts with a request line");
        let end = format!(" HTTP/1.1\r\n{end}\r\n");
        Query {
            start: start.into(),
            id_at: id_at(&end),
            end: end.into(),
            span,
            spread,
            rows,
            rng,
            sent: 0,
            target: Vec::new(),
            continuation: Vec::new(),
            hits: 0,
            look: Look::new(b"\"RowKey\":"),
        }
    }

    /// Chooses what to ask next.
    fn draw(&mut self) {
        self.hits = 0;
        self.target.clear();
        let spread = self.spread;
        let partition = |row: usize, out: &mut Vec<u8>| {
            out.push(b'\'');
            spread.partition(row, out);
            out.push(b'\'');
        };
        let quoted_row = |row: usize, out: &mut Vec<u8>| {
            out.push(b'\'');
            row_key(row, out);
            out.push(b'\'');
        };
        let out = &mut self.target;
        match self.span {
            Span::Partition => {
                let first = self.rng.below(self.rows / PARTITION_ROWS) * PARTITION_ROWS;
                out.extend_from_slice(b"?$filter=PartitionKey%20eq%20");
                partition(first, out);
                out.extend_from_slice(b"%20and%20RowKey%20ge%20");
                quoted_row(first, out);
                out.extend_from_slice(b"%20and%20RowKey%20lt%20");
                quoted_row(first + PARTITION_ROWS, out);
            }
            Span::Page => {
                let partitions = (self.rows - PAGE_ROWS) / PARTITION_ROWS;
                let first = self.rng.below(partitions + 1) * PARTITION_ROWS;
                let keys: &[u8] = match spread {
                    Spread::Partitions => b"?$filter=PartitionKey%20ge%20",
                    Spread::Hot => b"?$filter=PartitionKey%20eq%20",
                };
                out.extend_from_slice(keys);
                partition(first, out);
                if spread == Spread::Hot {
                    out.extend_from_slice(b"%20and%20RowKey%20ge%20");
                    quoted_row(first, out);
                }
                write!(out, "&$top={PAGE_ROWS}").expect("a Vec takes everything");
            }
            Span::Filter => {
                let first = FIRST_NUMBER as usize + self.rng.below(self.rows - FILTER_HITS);
                let end = first + FILTER_HITS;
                write!(out, "?$filter=Number%20ge%20{first}%20and%20Number%20lt%20{end}")
                    .expect("a Vec takes everything");
            }
        }
    }
}

impl Wire for Query {
    fn request(&mut self, out: &mut Vec<u8>) -> bool {
        if self.continuation.is_empty() {
            self.draw();
        }
        self.sent += 1;
        out.clear();
        out.extend_from_slice(&self.start);
        out.extend_from_slice(&self.target);
        out.extend_from_slice(&self.continuation);
        let end = out.len();
        out.extend_from_slice(&self.end);
        put_id(self.sent, &mut out[end + self.id_at..]);
        true
    }

    fn answer(&mut self, bytes: &[u8]) -> Option<Answer> {
        let response = http::read(bytes)?;
        let consumed = response.consumed;
        let found = self.look.count(&response);
        self.hits += found;
        self.continuation.clear();
        let step = match self.span {
            _ if response.status != 200 => Step::Failed,
            Span::Partition => done_if(found == PARTITION_ROWS, found),
            Span::Page => done_if(found == PAGE_ROWS, found),
            Span::Filter => match response.header(b"x-ms-continuation-nextpartitionkey") {
                Some(partition) => {
                    escaped(b"&NextPartitionKey=", partition, &mut self.continuation);
                    if let Some(row) = response.header(b"x-ms-continuation-nextrowkey") {
                        escaped(b"&NextRowKey=", row, &mut self.continuation);
                    }
                    Step::More
                }
                None => done_if(self.hits == FILTER_HITS, self.rows),
            },
        };
        Some(Answer { consumed, step })
    }
}

/// Appends a pair of a query string.
fn escaped(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(name);
    for &byte in value {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(byte);
        } else {
            write!(out, "%{byte:02X}").expect("a Vec takes everything");
        }
    }
}

/// Counts the rows of answers. To look through a long one takes longer than to receive it, so those that are as long
/// as one that was looked at are mostly taken to have as many.
pub(super) struct Look {
    text: &'static [u8],
    length: usize,
    found: usize,
    seen: usize,
    scratch: Vec<u8>,
}

impl Look {
    pub(super) fn new(text: &'static [u8]) -> Look {
        Look { text, length: 0, found: 0, seen: 0, scratch: Vec::new() }
    }

    pub(super) fn count(&mut self, response: &Response<'_>) -> usize {
        self.seen += 1;
        let alike = response.length > 10 * LENGTH_TOLERANCE && response.length.abs_diff(self.length) < LENGTH_TOLERANCE;
        if !alike || self.seen.is_multiple_of(LOOK_EVERY) {
            self.length = response.length;
            self.found = response.count(self.text, &mut self.scratch);
        }
        self.found
    }
}
