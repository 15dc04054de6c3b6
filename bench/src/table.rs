//! Requests of the Table service, signed as a client library signs them and with the headers it sends.
//!
//! Signing is done before the measurement. Of a request to a row, whose path is signed, only the signature is kept, 44
//! bytes a row, and put between parts that are the same for all rows. Requests to a table sign the same text every time.

mod reads;
mod target;
mod writes;

use crate::entity::{Spread, row_key};
use partita_auth::{AccountKey, SasBuilder, Scheme, TableRequest, sign, string_to_sign};
use partita_model::Ticks;
use std::fmt::Write;
use std::time::{Duration, SystemTime};

pub use target::Target;
pub(crate) use writes::TRANSACTION_ROWS;

/// The account everybody has on their own machine.
pub const ACCOUNT: &str = "devstoreaccount1";
/// Its key, which everybody knows.
const KEY: &str = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
/// The table of rows in many partitions.
pub const TABLE: &str = "Bench";
/// The table of rows in one partition.
pub const HOT_TABLE: &str = "BenchHot";
const JSON: &str = "application/json";
const SIGNATURE_BYTES: usize = 44;
/// The part of a request id that stays the same, and how many digits follow that change.
const ID_START: &str = "5bd3c0de-7e57-4bad-8bee-";
const ID_DIGITS: usize = 12;

/// How a request proves who sends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Auth {
    /// The account key signs every request.
    SharedKey,
    /// A token for the table stands in the query.
    Sas,
}

/// Writes requests to one server.
#[derive(Clone, Debug)]
pub struct Client {
    key: AccountKey,
    date: String,
    sas_expiry: Ticks,
    host: String,
}

impl Client {
    /// A client that signs for the next minutes.
    pub fn new(host: &str, now: SystemTime) -> Client {
        let key = AccountKey::parse(KEY).expect("the development key is base64");
        let date = Ticks::from_system_time(now).rfc1123();
        let sas_expiry = Ticks::from_system_time(now + Duration::from_secs(3600));
        Client { key, date, sas_expiry, host: host.to_owned() }
    }

    /// The headers of any request from the host on, with an id that ends in digits to be replaced.
    fn headers(&self) -> String {
        format!(
            "Host: {}\r\nx-ms-version: 2019-02-02\r\nDataServiceVersion: 3.0\r\n\
             Accept: application/json;odata=minimalmetadata\r\n\
             User-Agent: azsdk-rust-data-tables/{} (partita-bench; Linux; x86_64)\r\n\
             Accept-Encoding: identity\r\nConnection: keep-alive\r\nx-ms-date: {}\r\nDate: {}\r\n\
             x-ms-client-request-id: {ID_START}{:0ID_DIGITS$}\r\n",
            self.host,
            env!("CARGO_PKG_VERSION"),
            self.date,
            self.date,
            0
        )
    }

    fn signature(&self, method: &str, path: &str, content_type: &str) -> String {
        let request = TableRequest {
            account: ACCOUNT,
            method,
            path,
            comp: None,
            content_md5: "",
            content_type,
            date: &self.date,
        };
        sign(&self.key, &string_to_sign(Scheme::SharedKey, &request))
    }

    /// The head of a request to a whole table or to the service, up to but without the empty line.
    fn head(&self, method: &str, path: &str, content_type: &str) -> String {
        let path = format!("/{ACCOUNT}{path}");
        let signature = self.signature(method, &path, content_type);
        let mut head = format!("{method} {path} HTTP/1.1\r\n{}", self.headers());
        write!(head, "Authorization: SharedKey {ACCOUNT}:{signature}\r\n").expect("a String takes everything");
        if !content_type.is_empty() {
            write!(head, "Content-Type: {content_type}\r\n").expect("a String takes everything");
        }
        head
    }

    /// A request that creates a table.
    pub fn create_table(&self, table: &str) -> Vec<u8> {
        let body = format!("{{\"TableName\":\"{table}\"}}");
        let head = self.head("POST", "/Tables", JSON);
        format!("{head}Prefer: return-no-content\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
    }

    /// A request that lists tables.
    pub fn list_tables(&self) -> Vec<u8> {
        format!("{}\r\n", self.head("GET", "/Tables", "")).into_bytes()
    }

    /// A request for the first row of the table.
    pub fn get_first_row(&self) -> Vec<u8> {
        let (auth, spread) = (Auth::SharedKey, Spread::Partitions);
        let kind = RowRequestKind { method: "GET", has_body: false, auth, spread };
        let mut request = Vec::new();
        RowRequests::new(self, kind, 1).head(0, 0, &mut request);
        request.extend_from_slice(b"\r\n");
        request
    }

    /// A token for reading a table.
    fn sas(&self, table: &str) -> String {
        let builder = SasBuilder::table(table).permissions("r").expiry(self.sas_expiry);
        builder.query(ACCOUNT, &self.key).expect("a token of table, permission and expiry is well formed")
    }
}

/// The heads of requests to single rows of a table, signed for each of them.
#[derive(Debug)]
pub struct RowRequests {
    start: Vec<u8>,
    /// Between the key and the signature, or the end.
    middle: Vec<u8>,
    /// Where the changing digits of the request id begin in `middle`.
    id_at: usize,
    end: Vec<u8>,
    signatures: Vec<[u8; SIGNATURE_BYTES]>,
    spread: Spread,
    rows: usize,
}

/// Which requests to sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RowRequestKind {
    /// The verb.
    pub method: &'static str,
    /// Whether a JSON body follows.
    pub has_body: bool,
    /// How it is signed.
    pub auth: Auth,
    /// To which table.
    pub spread: Spread,
}

impl RowRequests {
    /// Signs requests to the first `rows` rows.
    pub fn new(client: &Client, kind: RowRequestKind, rows: usize) -> RowRequests {
        let RowRequestKind { method, has_body, auth, spread } = kind;
        let table = table_of(spread);
        let content_type = if has_body { JSON } else { "" };
        let mut end = String::from("\r\n");
        if has_body {
            write!(end, "Content-Type: {JSON}\r\n").expect("a String takes everything");
        }
        let headers = client.headers();
        let (middle, signatures) = match auth {
            Auth::Sas => {
                let middle = format!("')?{} HTTP/1.1\r\n{headers}", client.sas(table));
                (middle.trim_end().to_owned(), Vec::new())
            }
            Auth::SharedKey => {
                let middle = format!("') HTTP/1.1\r\n{headers}Authorization: SharedKey {ACCOUNT}:");
                let signature = |row| {
                    let path =
                        format!("/{ACCOUNT}/{table}(PartitionKey='{}')", String::from_utf8_lossy(&key(spread, row)));
                    let signature = client.signature(method, &path, content_type);
                    signature.into_bytes().try_into().expect("a signature has 44 letters")
                };
                (middle, (0..rows).map(signature).collect())
            }
        };
        RowRequests {
            start: format!("{method} /{ACCOUNT}/{table}(PartitionKey='").into_bytes(),
            id_at: id_at(&middle),
            middle: middle.into_bytes(),
            end: end.into_bytes(),
            signatures,
            spread,
            rows,
        }
    }

    /// In which partitions the rows are.
    pub fn spread(&self) -> Spread {
        self.spread
    }

    /// How many rows there are requests to.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Appends the head of a request to a row up to but without the empty line. `id` goes into the request id.
    pub fn head(&self, row: usize, id: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.start);
        self.spread.partition(row, out);
        out.extend_from_slice(b"',RowKey='");
        row_key(row, out);
        let middle = out.len();
        out.extend_from_slice(&self.middle);
        put_id(id, &mut out[middle + self.id_at..]);
        if let Some(signature) = self.signatures.get(row) {
            out.extend_from_slice(signature);
        }
        out.extend_from_slice(&self.end);
    }
}

/// Where the changing digits of the request id begin in a head.
fn id_at(head: &str) -> usize {
    head.find(ID_START).expect("there is a request id") + ID_START.len()
}

/// Overwrites the end of a request id.
fn put_id(mut id: usize, digits: &mut [u8]) {
    for digit in digits[..ID_DIGITS].iter_mut().rev() {
        *digit = b"0123456789abcdef"[id % 16];
        id /= 16;
    }
}

/// The table whose rows are spread like this.
pub fn table_of(spread: Spread) -> &'static str {
    match spread {
        Spread::Partitions => TABLE,
        Spread::Hot => HOT_TABLE,
    }
}

/// The keys of a loaded row as they stand in a path, without the last apostrophe.
fn key(spread: Spread, row: usize) -> Vec<u8> {
    let mut key = Vec::with_capacity(48);
    spread.partition(row, &mut key);
    key.extend_from_slice(b"',RowKey='");
    row_key(row, &mut key);
    key
}

#[cfg(test)]
mod tests;
