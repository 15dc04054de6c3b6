//! Requests, taken apart again and verified as a server would.

use super::*;
use crate::entity::Entities;
use crate::wire::Wire;
use crate::workloads::{Action, Work};
use partita_auth::{AccountKeys, Authorization, Credential, Sas, verify_shared_key};
use serde_json::Value;
use std::collections::HashSet;
use std::sync::Arc;

/// A request as a server reads it.
struct Request {
    method: String,
    path: String,
    query: Vec<(String, String)>,
    headers: Vec<(String, String)>,
    body: String,
}

impl Request {
    fn read(bytes: &[u8]) -> Request {
        let text = std::str::from_utf8(bytes).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let mut lines = head.split("\r\n");
        let words: Vec<_> = lines.next().unwrap().split(' ').collect();
        let [method, target, "HTTP/1.1"] = words[..] else { panic!("{words:?}") };
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let pair = |(name, value): (&str, &str)| (name.to_owned(), decode(value));
        let query = query.split('&').filter_map(|pair| pair.split_once('=')).map(pair).collect();
        let headers = lines.map(|line| line.split_once(": ").unwrap());
        let headers = headers.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned())).collect();
        Request { method: method.to_owned(), path: path.to_owned(), query, headers, body: body.to_owned() }
    }

    fn header(&self, name: &str) -> &str {
        let mut found = self.headers.iter().filter(|(other, _)| other == name);
        let value = found.next().map_or("", |(_, value)| value);
        assert!(found.next().is_none(), "{name} twice");
        value
    }

    /// Fails unless the signature and the length of the body are right.
    fn check(&self) {
        let keys = AccountKeys::parse(&[KEY]).unwrap();
        let credential = Credential::from_request(Some(self.header("authorization")), &self.query).unwrap();
        let Credential::Header(Authorization::SharedKey { scheme, account, signature }) = credential else {
            panic!("{credential:?}")
        };
        let request = TableRequest {
            account,
            method: &self.method,
            path: &self.path,
            comp: None,
            content_md5: "",
            content_type: self.header("content-type"),
            date: self.header("x-ms-date"),
        };
        assert!(verify_shared_key(&keys, scheme, &request, signature), "{request:?}");
        let length = if self.body.is_empty() { String::new() } else { self.body.len().to_string() };
        assert_eq!(self.header("content-length"), length);
    }
}

/// Takes the escapes of a query back.
fn decode(text: &str) -> String {
    let mut pieces = text.split('%');
    let first = pieces.next().unwrap().to_owned();
    pieces.fold(first, |text, piece| {
        let (code, rest) = piece.split_at(2);
        text + &char::from(u8::from_str_radix(code, 16).unwrap()).to_string() + rest
    })
}

fn target() -> Target {
    Target::new("127.0.0.1:1".parse().unwrap(), Arc::new(Entities::new(1)), 1000)
}

fn request(wire: &mut dyn Wire) -> Request {
    let mut bytes = Vec::new();
    assert!(wire.request(&mut bytes));
    Request::read(&bytes)
}

#[test]
fn every_request_is_signed_for_what_it_asks() {
    let actions = [
        Action::Get(Auth::SharedKey),
        Action::Insert,
        Action::Upsert,
        Action::Merge,
        Action::Update,
        Action::Transaction,
        Action::Range,
        Action::Page,
        Action::Filter,
        Action::Mixed,
        Action::ReadUnderWrites,
    ];
    let works = actions.into_iter().flat_map(|action| [Work::in_many(action), Work::in_one(action)]);
    let target = target();
    for work in works {
        let mut wire = target.wire(work, 0, 4);
        for _ in 0..20 {
            request(&mut *wire).check();
        }
    }
}

#[test]
fn a_token_stands_in_the_query() {
    let target = target();
    let request = request(&mut *target.wire(Work::in_many(Action::Get(Auth::Sas)), 0, 1));
    assert_eq!(request.header("authorization"), "");
    let sas = Sas::from_query(&request.query).unwrap().unwrap();
    assert!(sas.verify(ACCOUNT, &AccountKeys::parse(&[KEY]).unwrap()));
    assert!(sas.table_matches(TABLE));
    sas.grant(None).unwrap();
}

#[test]
fn request_ids_differ() {
    let target = target();
    let mut wire = target.wire(Work::POINT_READ, 0, 1);
    let mut id = || request(&mut *wire).header("x-ms-client-request-id").to_owned();
    assert_ne!(id(), id());
}

#[test]
fn transactions_into_one_partition_do_not_meet() {
    let target = target();
    let mut keys = HashSet::new();
    for connection in 0..2 {
        let mut wire = target.wire(Work::in_one(Action::Transaction), connection, 2);
        let mut bytes = Vec::new();
        // The second is written over the first.
        for _ in 0..2 {
            assert!(wire.request(&mut bytes));
            let Request { body, .. } = Request::read(&bytes);
            let rows = body.lines().filter(|line| line.starts_with('{'));
            for (at, row) in rows.enumerate() {
                let row: Value = serde_json::from_str(row).unwrap();
                assert_eq!((&row["PartitionKey"], row.as_object().unwrap().len()), (&"hot000000".into(), 15));
                assert_eq!(row["Number"].as_u64().unwrap() % 100, at as u64);
                keys.insert(row["RowKey"].as_str().unwrap().to_owned());
            }
        }
    }
    assert_eq!(keys.len(), 400);
}
