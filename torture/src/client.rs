//! A client: asks over HTTP and writes down what it asked and what it was told.

use crate::cluster::Addresses;
use crate::history::{
    Answer, Before, Call, Change, Condition, Key, Operation, Page, Seen, Table, Tag, Time, Verb, Version,
};
use crate::random::mix;
use crate::workload::Workload;
use partita_model::{ETag, IfMatch, Ticks};
use partita_testing::batch::{change_set, parts};
use partita_testing::http::{Connection, Request, Response, entity};
use serde_json::{Map, Value};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What all clients of a run share: one clock, and tags that no two writes have in common.
#[derive(Debug)]
pub struct Common {
    start: Instant,
    last_tag: AtomicU32,
    calls: AtomicU64,
    /// Those among them that were answered as they should be.
    answered: AtomicU64,
    /// Those among them that a server in trouble refused.
    refused: AtomicU64,
}

impl Common {
    /// At the beginning of a run.
    pub fn new() -> Common {
        Common {
            start: Instant::now(),
            last_tag: AtomicU32::new(0),
            calls: AtomicU64::new(0),
            answered: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        }
    }

    /// The time.
    pub fn now(&self) -> Time {
        u64::try_from(self.start.elapsed().as_nanos()).expect("a run takes less than centuries")
    }

    /// Waits until there were so many further calls, but not for ever.
    pub fn wait(&self, calls: u64, longest: Duration) {
        wait(&self.calls, calls, longest);
    }

    /// Waits until so many further calls were answered as they should be, but not for ever.
    pub fn wait_for_answers(&self, calls: u64, longest: Duration) {
        wait(&self.answered, calls, longest);
    }

    /// Waits until so many further calls were refused by servers in trouble, but not for ever.
    pub fn wait_for_refusals(&self, calls: u64, longest: Duration) {
        wait(&self.refused, calls, longest);
    }

    fn tag(&self) -> Tag {
        self.last_tag.fetch_add(1, Ordering::Relaxed) + 1
    }
}

fn wait(counter: &AtomicU64, count: u64, longest: Duration) {
    let (start, target) = (Instant::now(), counter.load(Ordering::Relaxed) + count);
    while counter.load(Ordering::Relaxed) < target && start.elapsed() < longest {
        std::thread::sleep(Duration::from_micros(200));
    }
}

impl Default for Common {
    fn default() -> Common {
        Common::new()
    }
}

/// One client and what it knows.
#[derive(Clone, Debug)]
pub struct Client {
    id: u32,
    workload: Workload,
}

impl Client {
    /// A client whose wishes follow from a seed.
    pub fn new(seed: u64, id: u32) -> Client {
        Client { id, workload: Workload::new(seed, id) }
    }

    /// Asks one thing after the other until told to stop. While its node is gone it waits.
    pub fn run(&mut self, common: &Common, addresses: &Addresses, stop: &AtomicBool) -> Vec<Call> {
        let mut calls = Vec::new();
        let node = addresses.node_of(self.id);
        while !stop.load(Ordering::Relaxed) {
            match addresses.of(node).map(|address| Session::open(common, self.id, address)) {
                Some(Ok(session)) => self.ask(session, stop, &mut calls),
                _ => std::thread::sleep(Duration::from_millis(1)),
            }
        }
        calls
    }

    /// Asks as long as a connection can be used.
    fn ask(&mut self, mut session: Session<'_>, stop: &AtomicBool, calls: &mut Vec<Call>) {
        while !stop.load(Ordering::Relaxed) && session.is_open {
            match self.workload.next() {
                Operation::Page(page) => session.pages(page, stop, calls),
                operation => calls.push(session.ask(operation)),
            }
            if let Some(call) = calls.last() {
                self.learn(call);
            }
        }
    }

    fn learn(&mut self, call: &Call) {
        match (&call.operation, &call.answer) {
            (_, Answer::Refused { code, .. }) if code == "TableNotFound" => {
                self.workload.missed(call.operation.table());
            }
            (Operation::Write(changes), Answer::Done(Some(version))) => {
                changes.iter().for_each(|change| self.workload.saw(change.key, *version));
            }
            (Operation::Get(key), Answer::Row(seen)) => self.workload.saw(*key, seen.version),
            (_, Answer::Rows(rows, _)) => rows.iter().for_each(|(key, seen)| self.workload.saw(*key, seen.version)),
            _ => {}
        }
    }
}

/// A connection on which one client asks and writes down.
pub struct Session<'c> {
    common: &'c Common,
    client: u32,
    connected: Time,
    connection: Connection,
    /// Whether it can be used further.
    pub is_open: bool,
}

impl<'c> Session<'c> {
    /// Connects.
    pub fn open(common: &'c Common, client: u32, address: SocketAddr) -> std::io::Result<Session<'c>> {
        let connected = common.now();
        Ok(Session { common, client, connected, connection: Connection::try_open(address)?, is_open: true })
    }

    /// Asks for one thing.
    pub fn ask(&mut self, operation: Operation) -> Call {
        let tag = if matches!(operation, Operation::Write(_)) { self.common.tag() } else { 0 };
        let request = request(&operation, tag);
        self.exchange(operation, tag, request).0
    }

    /// Asks for a page and all behind it.
    pub fn pages(&mut self, page: Page, stop: &AtomicBool, calls: &mut Vec<Call>) {
        let mut page = page;
        let mut token: Option<String> = None;
        loop {
            let mut request = request(&Operation::Page(page), 0);
            if let Some(token) = &token {
                request = request.query(token);
            }
            let (call, next) = self.exchange(Operation::Page(page), 0, request);
            let last = match &call.answer {
                Answer::Rows(rows, true) => rows.last().map(|(key, _)| *key),
                _ => {
                    calls.push(call);
                    return;
                }
            };
            page.before = Some(match (last, page.before) {
                (None, Some(before)) => before,
                (last, _) => Before { last, since: call.invoked },
            });
            calls.push(call);
            token = next;
            if stop.load(Ordering::Relaxed) {
                return;
            }
        }
    }

    /// Sends a request; also returns what asks for the next page.
    fn exchange(&mut self, operation: Operation, tag: Tag, request: Request) -> (Call, Option<String>) {
        let bytes = request.signed().bytes();
        let invoked = self.common.now();
        let response = self.connection.write(&bytes).and_then(|()| self.connection.read());
        let now = self.common.now();
        self.common.calls.fetch_add(1, Ordering::Relaxed);
        let (answer, returned, next) = match &response {
            Ok(response) => {
                let answer = answer(&operation, response);
                let returned = (!answer.leaves_open()).then_some(now);
                (answer, returned, response.continuation())
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                (Answer::Unknown, None, None)
            }
            Err(_) => (Answer::Cut, None, None),
        };
        self.common.answered.fetch_add(u64::from(!answer.tells_of_trouble()), Ordering::Relaxed);
        self.common.refused.fetch_add(u64::from(answer == Answer::Busy), Ordering::Relaxed);
        let closes = |response: &Response| response.header("connection").is_some_and(|value| value == "close");
        self.is_open = response.is_ok_and(|response| !closes(&response));
        (Call { client: self.client, operation, tag, connected: self.connected, invoked, returned, answer }, next)
    }
}

fn request(operation: &Operation, tag: Tag) -> Request {
    match operation {
        Operation::Create(table) => Request::json("POST", "/Tables", format!(r#"{{"TableName":"{}"}}"#, table.name())),
        Operation::Drop(table) => Request::delete(format!("/Tables('{}')", table.name())),
        Operation::Get(key) => Request::get(path(*key)),
        Operation::Page(page) => {
            let mut request = Request::get(format!("/{}()", page.table.name()));
            if let Some(partition) = page.partition {
                let partition_key = Key::new(page.table, partition, 0).partition_key();
                request = request.query(&format!("$filter=PartitionKey%20eq%20'{partition_key}'"));
            }
            match page.top {
                Some(top) => request.query(&format!("$top={top}")),
                None => request,
            }
        }
        Operation::Write(changes) => match changes.as_slice() {
            [change] => change_request(change, tag),
            changes => {
                let parts: Vec<Request> = changes.iter().map(|change| change_request(change, tag)).collect();
                change_set(&parts)
            }
        },
    }
}

fn path(key: Key) -> String {
    entity(key.table.name(), &key.partition_key(), &key.row_key())
}

fn change_request(change: &Change, tag: Tag) -> Request {
    let Change { key, verb, condition } = *change;
    let whole = format!(r#""V":{tag},"W":{tag},"F":"{}""#, filling(key.table, tag));
    let request = match verb {
        Verb::Insert => {
            let keys = format!(r#""PartitionKey":"{}","RowKey":"{}""#, key.partition_key(), key.row_key());
            let request = Request::json("POST", format!("/{}", key.table.name()), format!("{{{keys},{whole}}}"));
            request.header("Prefer", "return-no-content")
        }
        Verb::Replace => Request::json("PUT", path(key), format!("{{{whole}}}")),
        Verb::Merge => Request::json("MERGE", path(key), format!(r#"{{"V":{tag}}}"#)),
        Verb::Delete => Request::delete(path(key)),
    };
    match condition {
        Condition::None => request,
        Condition::Exists => request.header("If-Match", "*"),
        Condition::Is(version) => request.header("If-Match", ETag(Ticks(version)).to_string()),
    }
}

/// The text that goes with a tag: short as a rule, at times so long that write buffers fill.
fn filling(table: Table, tag: Tag) -> String {
    let number = mix(u64::from(tag));
    let length = if table != Table::Bulk && number.is_multiple_of(50) { 20_000 } else { number % 200 } as usize;
    let word = format!("{tag} ");
    word.chars().cycle().take(length).collect()
}

fn answer(operation: &Operation, response: &Response) -> Answer {
    if let Some(trouble) = trouble(response) {
        return trouble;
    }
    let understood = match operation {
        Operation::Create(_) | Operation::Drop(_) => match response.status {
            201 | 204 => Some(Answer::Done(None)),
            _ => refusal(response),
        },
        Operation::Get(key) => match response.status {
            200 => seen(key.table, &response.json()).map(|(_, seen)| seen).and_then(|seen| {
                let etag = version_of(response.header("etag")?)?;
                (etag == seen.version).then_some(Answer::Row(seen))
            }),
            _ => refusal(response),
        },
        Operation::Page(page) => match response.status {
            200 => rows(page.table, response).map(|rows| Answer::Rows(rows, response.continuation().is_some())),
            _ => refusal(response),
        },
        Operation::Write(changes) if changes.len() == 1 => done(std::slice::from_ref(response), changes),
        Operation::Write(changes) => match response.status {
            202 => done(&parts(response), changes),
            _ => refusal(response),
        },
    };
    understood.unwrap_or_else(|| Answer::Odd(format!("{response:?}")))
}

/// What a server says that cannot do what it should just now.
fn trouble(response: &Response) -> Option<Answer> {
    match (response.status, response.code().as_str()) {
        (503, _) => Some(Answer::Busy),
        (500, "OperationTimedOut") => Some(Answer::Unknown),
        _ => None,
    }
}

/// The answer to changes: each was made, all at the same version, or one was refused and nothing is said of the others.
fn done(responses: &[Response], changes: &[Change]) -> Option<Answer> {
    if let [response] = responses
        && response.status >= 300
    {
        return trouble(response).or_else(|| refusal(response));
    }
    if responses.len() != changes.len() {
        return None;
    }
    let mut common: Option<Version> = None;
    for (response, change) in responses.iter().zip(changes) {
        if response.status != 204 {
            return None;
        }
        let version = response.header("etag").map(version_of);
        match (version, change.verb) {
            (None, Verb::Delete) => {}
            (Some(Some(version)), Verb::Insert | Verb::Replace | Verb::Merge) => {
                if *common.get_or_insert(version) != version {
                    return None;
                }
            }
            _ => return None,
        }
    }
    Some(Answer::Done(common))
}

/// An error of the service. In a transaction the message begins with the index of the change.
fn refusal(response: &Response) -> Option<Answer> {
    if !(400..500).contains(&response.status) {
        return None;
    }
    let code = response.code();
    let message = response.message();
    let index = message.split_once(':').and_then(|(index, _)| index.parse().ok()).unwrap_or_default();
    (!code.is_empty()).then_some(Answer::Refused { index, code })
}

fn version_of(etag: &str) -> Option<Version> {
    match IfMatch::parse(etag)? {
        IfMatch::Tag(etag) => Some(etag.0.0),
        IfMatch::Any | IfMatch::Foreign => None,
    }
}

fn rows(table: Table, response: &Response) -> Option<Vec<(Key, Seen)>> {
    response.json()["value"].as_array()?.iter().map(|row| seen(table, row)).collect()
}

/// An entity, unless it is one that nobody can have written.
fn seen(table: Table, entity: &Value) -> Option<(Key, Seen)> {
    let entity: &Map<String, Value> = entity.as_object()?;
    let text = |name: &str| entity.get(name).and_then(Value::as_str);
    let tag = |name: &str| entity.get(name)?.as_u64()?.try_into().ok();
    let key = Key::parse(table, text("PartitionKey")?, text("RowKey")?)?;
    let version = Ticks::parse_iso(text("Timestamp")?)?.0;
    let v: Tag = tag("V")?;
    let w: Tag = tag("W").unwrap_or_default();
    let (properties, filled) = match w {
        0 => (4, entity.get("W").is_none() && entity.get("F").is_none()),
        w => (6, text("F")? == filling(table, w)),
    };
    (filled && entity.len() == properties).then_some((key, Seen { v, w, version }))
}
