//! The whole protocol does what a small model of it says, step by step.
//!
//! Random steps are taken over HTTP on two servers, one on each engine, and on a map in memory that states the rules of the service in
//! the plainest way. Every answer must agree: status, code and index of the error, entities with the types of their properties,
//! ETags, pages. A failure is shrunk to the shortest list of steps that shows it. What lies below HTTP has such a test of its own
//! (`crates/table/tests/model.rs`), with policies and with tables that were dropped while they were in use.

mod rules;

use partita_store_rocksdb::{Durability, Options, RocksStore};
use partita_testing::batch::{change_set, parts};
use partita_testing::http::{Request, Response, encode, entity};
use partita_testing::server::TestServer;
use partita_torture::mutants::{Mutant, open};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{FileFailurePersistence, TestRunner};
use rules::*;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Values that come back as they were given.
fn values() -> Vec<Typed> {
    vec![
        (json!(1), None),
        (json!(2), None),
        (json!(-1.5), None),
        (json!(true), None),
        (json!(""), None),
        (json!("it's \"text\" \u{1F600}"), None),
        (json!("1"), Some("Edm.Int64")),
        (json!("2020-02-29T12:00:00.1234567Z"), Some("Edm.DateTime")),
        (json!("c9da6455-213d-42c9-9a79-3e9149a57833"), Some("Edm.Guid")),
        (json!("AQID"), Some("Edm.Binary")),
        (json!("NaN"), Some("Edm.Double")),
    ]
}

/// Values that do not fit their type.
fn wrong_values() -> Vec<Typed> {
    vec![
        (json!({}), None),
        (json!([1]), None),
        (json!("x"), Some("Edm.Int64")),
        (json!("x"), Some("Edm.Guid")),
        (json!("AQI"), Some("Edm.Binary")),
        (json!(2), Some("Edm.Boolean")),
        (json!(1), Some("Edm.Nothing")),
    ]
}

#[derive(Clone, Debug)]
enum Step {
    Create(&'static str),
    Drop(&'static str),
    Tables { top: usize },
    Write { table: &'static str, changes: Vec<Change>, in_batch: bool },
    Get { table: &'static str, partition: &'static str, row: &'static str, columns: Option<Vec<&'static str>> },
    Query { table: &'static str, which: Which, columns: Option<Vec<&'static str>>, top: usize },
}

const TABLES: [&str; 4] = ["Left", "LEFT", "Right", "Nowhere"];
const PARTITIONS: [&str; 3] = ["", "p", "o'p"];
const ROWS: [&str; 5] = ["", "a", "%41 b+", "\u{1F600}", "\u{E001}"];
const BAD_KEYS: [&str; 4] = ["x/y", "x\\y", "x#y", LONG];
const COLUMNS: [&str; 4] = ["A", "B", "Missing", "RowKey"];

fn key(good: &'static [&'static str]) -> impl Strategy<Value = &'static str> {
    prop_oneof![40 => select(good), 1 => select(&BAD_KEYS[..])]
}

fn body() -> impl Strategy<Value = Body> {
    let properties = || btree_map(select(&["A", "B", "C"][..]), select(values()), 0..3);
    prop_oneof![
        30 => properties().prop_map(Body::Good),
        4 => properties().prop_map(Body::WithNull),
        3 => select(vec!['x', 'y']).prop_map(Body::Many),
        2 => select(wrong_values()).prop_map(Body::WrongType),
        1 => select(vec![Body::TooMany, Body::Twice, Body::NotJson, Body::BadName, Body::LongName, Body::LongText]),
    ]
}

fn change() -> impl Strategy<Value = Change> {
    use Condition::*;
    let verb =
        prop_oneof![4 => Just(Verb::Insert), 4 => Just(Verb::Replace), 4 => Just(Verb::Merge), 2 => Just(Verb::Delete)];
    let condition =
        prop_oneof![5 => Just(Any), 5 => Just(Current), 3 => Just(Stale), 1 => Just(Foreign), 1 => Just(Malformed)];
    (key(&PARTITIONS), key(&ROWS), verb, option::weighted(0.7, condition), body()).prop_map(
        |(partition, row, verb, condition, body)| {
            let condition = if verb == Verb::Insert { None } else { condition };
            Change { partition, row, verb, condition, body }
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    let table = || prop_oneof![6 => Just("Left"), 1 => select(&TABLES[..])];
    let which = prop_oneof![
        Just(Which::All),
        select(&PARTITIONS[..]).prop_map(Which::Partition),
        (select(&PARTITIONS[..]), select(&ROWS[..])).prop_map(|(partition, row)| Which::Point(partition, row)),
        select(&ROWS[..]).prop_map(Which::RowsFrom),
        (0..3_i64).prop_map(Which::AIs),
        (0..3_i64).prop_map(Which::AAtLeast),
        Just(Which::BIsTrue),
    ];
    let columns = || option::weighted(0.3, vec(select(&COLUMNS[..]), 1..3));
    // Mostly in one partition.
    let transaction =
        (select(&PARTITIONS[..]), vec(change(), 1..5), 0..10_u32).prop_map(|(partition, mut changes, odd)| {
            if odd > 0 {
                changes.iter_mut().for_each(|change| change.partition = partition);
            }
            changes
        });
    prop_oneof![
        3 => select(&["Left", "LEFT", "Right", "ab", "1abc", "a-bc", "tables", ""][..]).prop_map(Step::Create),
        1 => select(&["Left", "RIGHT", "Nowhere", "ab"][..]).prop_map(Step::Drop),
        1 => (1..4_usize).prop_map(|top| Step::Tables { top }),
        14 => (table(), change(), prop::bool::weighted(0.1))
            .prop_map(|(table, change, in_batch)| Step::Write { table, changes: vec![change], in_batch }),
        8 => (table(), transaction).prop_map(|(table, changes)| Step::Write { table, changes, in_batch: true }),
        4 => (table(), key(&PARTITIONS), key(&ROWS), columns())
            .prop_map(|(table, partition, row, columns)| Step::Get { table, partition, row, columns }),
        5 => (table(), which, columns(), 1..6_usize)
            .prop_map(|(table, which, columns, top)| Step::Query { table, which, columns, top }),
    ]
}

/// The members of an entity in a response, without those that speak of the reply.
fn members(entity: &Value) -> Map<String, Value> {
    let mut members = entity.as_object().cloned().unwrap_or_default();
    members.retain(|name, _| !name.starts_with("odata."));
    members
}

/// What a response shows of an entity.
fn expected(entity: &Entity, columns: Option<&[&'static str]>) -> Map<String, Value> {
    let timestamp = entity.etag.trim_start_matches("W/\"datetime'").trim_end_matches("'\"").replace("%3A", ":");
    let mut all: Vec<(String, Typed)> = vec![
        ("PartitionKey".to_owned(), (json!(entity.partition), None)),
        ("RowKey".to_owned(), (json!(entity.row), None)),
        ("Timestamp".to_owned(), (json!(timestamp), None)),
    ];
    all.extend(entity.properties.clone());
    if let Some(columns) = columns {
        all.retain(|(name, _)| columns.contains(&name.as_str()));
        let missing: Vec<&str> =
            columns.iter().copied().filter(|column| !all.iter().any(|(name, _)| name == column)).collect();
        all.extend(missing.into_iter().map(|column| (column.to_owned(), (Value::Null, None))));
    }
    let mut members = Map::new();
    for (name, (value, edm)) in all {
        if let Some(edm) = edm {
            members.insert(format!("{name}@odata.type"), json!(edm));
        }
        members.insert(name, value);
    }
    members
}

/// The model and a server, walking side by side.
struct Walk<'a> {
    server: &'a TestServer,
    model: Model,
}

impl Walk<'_> {
    fn send(&self, request: Request) -> Response {
        self.server.send(request.header("Accept", "application/json;odata=minimalmetadata"))
    }

    fn take(&mut self, step: &Step) -> Result<(), TestCaseError> {
        match step {
            Step::Create(name) => self.create(name),
            Step::Drop(name) => self.drop(name),
            Step::Tables { top } => self.tables(*top),
            Step::Write { table, changes, in_batch } => self.write(table, changes, *in_batch),
            Step::Get { table, partition, row, columns } => self.get(table, partition, row, columns.as_deref()),
            Step::Query { table, which, columns, top } => self.query(table, *which, columns.as_deref(), *top),
        }
    }

    fn create(&mut self, name: &str) -> Result<(), TestCaseError> {
        let response = self.send(Request::json("POST", "/Tables", format!(r#"{{"TableName":"{name}"}}"#)));
        let expected = match name {
            "" => (400, "PropertiesNeedValue"),
            "ab" => (400, "OutOfRangeInput"),
            "1abc" | "a-bc" => (400, "InvalidResourceName"),
            "tables" => (400, "InvalidInput"),
            _ if self.model.tables.contains_key(&name.to_lowercase()) => (409, "TableAlreadyExists"),
            _ => (201, ""),
        };
        prop_assert_eq!(response.outcome(), (expected.0, expected.1.to_owned()), "create {}", name);
        if expected.0 == 201 {
            prop_assert_eq!(&response.json()["TableName"], name);
            self.model.tables.insert(name.to_lowercase(), (name.to_owned(), BTreeMap::new()));
        }
        Ok(())
    }

    fn drop(&mut self, name: &str) -> Result<(), TestCaseError> {
        let response = self.send(Request::delete(format!("/Tables('{name}')")));
        let expected = match self.model.tables.remove(&name.to_lowercase()) {
            Some(_) => (204, ""),
            None if name == "ab" => (400, "OutOfRangeInput"),
            None => (404, "ResourceNotFound"),
        };
        prop_assert_eq!(response.outcome(), (expected.0, expected.1.to_owned()), "drop {}", name);
        Ok(())
    }

    fn tables(&self, top: usize) -> Result<(), TestCaseError> {
        let mut found = Vec::new();
        let mut next = String::new();
        loop {
            let response = self.send(Request::get(format!("/Tables?$top={top}{next}")));
            prop_assert_eq!(response.status, 200);
            let page = response.json()["value"].as_array().cloned().unwrap_or_default();
            prop_assert!(page.len() <= top);
            found.extend(page.iter().map(|table| table["TableName"].as_str().unwrap_or_default().to_owned()));
            match response.header("x-ms-continuation-NextTableName") {
                Some(token) => next = format!("&NextTableName={}", encode(token)),
                None => break,
            }
        }
        let expected: Vec<String> = self.model.tables.values().map(|(name, _)| name.clone()).collect();
        prop_assert_eq!(found, expected);
        Ok(())
    }

    fn request(&self, table: &str, change: &Change) -> Request {
        let path = entity(table, change.partition, change.row);
        let request = match change.verb {
            Verb::Insert => {
                let keys = format!(r#""PartitionKey":{},"RowKey":{}"#, json!(change.partition), json!(change.row));
                Request::json("POST", format!("/{table}"), change.body.text(&keys))
            }
            Verb::Replace => Request::json("PUT", path, change.body.text("")),
            Verb::Merge => Request::json("MERGE", path, change.body.text("")),
            Verb::Delete => Request::delete(path),
        };
        let request = request.header("Accept", "application/json;odata=minimalmetadata");
        match self.model.if_match(table, change) {
            Some(if_match) => request.header("If-Match", if_match),
            None => request,
        }
    }

    fn write(&mut self, table: &str, changes: &[Change], in_batch: bool) -> Result<(), TestCaseError> {
        let requests: Vec<Request> = changes.iter().map(|change| self.request(table, change)).collect();
        let responses = match in_batch {
            true => parts(&self.send(change_set(&requests))),
            false => vec![self.send(requests[0].clone())],
        };
        let after = match self.model.apply(table, changes) {
            Ok(after) => after,
            Err((index, status, code)) => {
                prop_assert_eq!(responses.len(), 1, "{:?}", responses);
                prop_assert_eq!(responses[0].outcome(), (status, code.to_owned()), "{:?}", changes);
                if changes.len() > 1 {
                    let message = responses[0].message();
                    prop_assert!(message.starts_with(&format!("{index}:")), "not {index}: {message}");
                }
                return Ok(());
            }
        };
        prop_assert_eq!(responses.len(), changes.len(), "{:?}", responses);
        for ((change, properties), response) in changes.iter().zip(after).zip(&responses) {
            let key = key_of(change.partition, change.row);
            let status = if change.verb == Verb::Insert { 201 } else { 204 };
            prop_assert_eq!(response.status, status, "{:?}", response);
            let (_, entities) = self.model.tables.get_mut(&table.to_lowercase()).expect("it was there");
            let Some(properties) = properties else {
                prop_assert_eq!(response.header("etag"), None);
                entities.remove(&key);
                continue;
            };
            let etag = response.header("etag").unwrap_or_default().to_owned();
            let history = self.model.history.entry(key.clone()).or_default();
            prop_assert!(etag.starts_with("W/") && !history.contains(&etag), "{etag} is not new");
            history.push(etag.clone());
            let (partition, row) = (change.partition.to_owned(), change.row.to_owned());
            let entity = Entity { partition, row, etag, properties };
            if change.verb == Verb::Insert {
                prop_assert_eq!(members(&response.json()), expected(&entity, None));
            }
            entities.insert(key, entity);
        }
        Ok(())
    }

    fn get(
        &self,
        table: &str,
        partition: &str,
        row: &str,
        columns: Option<&[&'static str]>,
    ) -> Result<(), TestCaseError> {
        let mut request = Request::get(entity(table, partition, row));
        if let Some(columns) = columns {
            request = request.query(&format!("$select={}", columns.join(",")));
        }
        let response = self.send(request);
        let fault = |key: &str| match key {
            LONG => Some((404, "ResourceNotFound")),
            "x/y" | "x\\y" => Some((400, "InvalidInput")),
            "x#y" => Some((400, "OutOfRangeInput")),
            _ => None,
        };
        let found = self.model.entities(table).and_then(|entities| {
            fault(partition).or(fault(row)).map_or(Ok(()), Err)?;
            entities.get(&key_of(partition, row)).ok_or((404, "ResourceNotFound"))
        });
        match found {
            Err((status, code)) => prop_assert_eq!(response.outcome(), (status, code.to_owned())),
            Ok(found) => {
                prop_assert_eq!(response.status, 200, "{:?}", response);
                prop_assert_eq!(response.header("etag"), Some(found.etag.as_str()));
                prop_assert_eq!(&response.json()["odata.etag"], &json!(found.etag));
                prop_assert_eq!(members(&response.json()), expected(found, columns));
            }
        }
        Ok(())
    }

    fn query(
        &self,
        table: &str,
        which: Which,
        columns: Option<&[&'static str]>,
        top: usize,
    ) -> Result<(), TestCaseError> {
        let mut request = Request::get(format!("/{table}()")).query(&format!("$top={top}"));
        if let Some(filter) = which.text() {
            request = request.query(&format!("$filter={}", encode(&filter)));
        }
        if let Some(columns) = columns {
            request = request.query(&format!("$select={}", columns.join(",")));
        }
        let entities = match self.model.entities(table) {
            Ok(entities) => entities,
            Err((status, code)) => {
                prop_assert_eq!(self.send(request).outcome(), (status, code.to_owned()));
                return Ok(());
            }
        };
        let mut found = Vec::new();
        let mut next: Option<String> = None;
        loop {
            let page = self.send(next.as_ref().map_or(request.clone(), |next| request.clone().query(next)));
            prop_assert_eq!(page.status, 200, "{:?}", page);
            let rows = page.json()["value"].as_array().cloned().unwrap_or_default();
            prop_assert!(rows.len() <= top);
            found.extend(rows.iter().map(|row| (row["odata.etag"].clone(), members(row))));
            next = page.continuation();
            if next.is_none() {
                break;
            }
        }
        let wanted = entities.values().filter(|entity| which.holds(entity));
        let wanted: Vec<_> = wanted.map(|entity| (json!(entity.etag), expected(entity, columns))).collect();
        prop_assert_eq!(found, wanted, "{:?}", which);
        Ok(())
    }
}

/// Takes random steps on servers until an answer differs from what the model says.
fn compare(servers: &[(&str, TestServer)], config: ProptestConfig) -> Result<(), String> {
    let outcome = TestRunner::new(config).run(&vec(step(), 1..50), |steps| {
        for (engine, server) in servers {
            let mut walk = Walk { server, model: Model::default() };
            for table in ["Left", "Right"] {
                server.send(Request::delete(format!("/Tables('{table}')")));
            }
            walk.create("Left")?;
            for step in &steps {
                walk.take(step).map_err(|error| TestCaseError::fail(format!("on {engine}: {error}")))?;
            }
            walk.tables(1)?;
            for table in ["Left", "Right"] {
                walk.query(table, Which::All, None, 1000)?;
            }
        }
        Ok(())
    });
    outcome.map_err(|failure| failure.to_string())
}

#[test]
fn the_server_does_what_the_model_says() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let options = Options { durability: Durability::None, ..Options::default() };
    let rocks = RocksStore::open(folder.path(), options).expect("an empty folder opens");
    let servers = [("memory", TestServer::start()), ("RocksDB", TestServer::on_store(Arc::new(rocks), |_| {}))];
    let persistence = FileFailurePersistence::WithSource("regressions");
    let config = ProptestConfig {
        cases: 200,
        source_file: Some(file!()),
        failure_persistence: Some(Box::new(persistence)),
        ..ProptestConfig::default()
    };
    if let Err(failure) = compare(&servers, config) {
        panic!("{failure}");
    }
}

/// The comparison can fail.
#[test]
fn a_server_that_is_wrong_is_noticed() {
    use Mutant::*;
    for mutant in
        [IgnoresVersions, IgnoresAbsence, IgnoresPresence, AppliesBeforeFailure, LosesCommits, ReadsStale, SkipsRows]
    {
        let store = open(Some(mutant), None).expect("a store in memory opens");
        let servers = [("a mutant", TestServer::on_store(store, |_| {}))];
        let config =
            ProptestConfig { cases: 500, max_shrink_iters: 0, failure_persistence: None, ..ProptestConfig::default() };
        assert!(compare(&servers, config).is_err(), "{mutant:?} is not noticed");
    }
}
