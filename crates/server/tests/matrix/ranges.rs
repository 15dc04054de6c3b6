//! Ranges of keys: a signature for some rows shows no other row, no count of them and no token that leads to them, and
//! changes none of them.

use crate::operations::{Needs, OPERATIONS, Spot, TABLE, delete_row, put_row};
use partita_auth::SasBuilder;
use partita_store_rocksdb::{Options, RocksStore};
use partita_testing::batch::{self, change_set, part};
use partita_testing::http::{Request, Response, VERSION, encode, entity};
use partita_testing::server::TestServer;
use partita_testing::signing::{ACCOUNT, KEY, table_sas, token};
use partita_wire::token::{decode_key, encode_key};
use std::sync::Arc;
use tempfile::TempDir;

type End = Option<(&'static str, Option<&'static str>)>;

/// A range of rows, as a signature gives it.
#[derive(Clone, Copy, Debug)]
struct Range {
    start: End,
    end: End,
}

const fn range(start: End, end: End) -> Range {
    Range { start, end }
}

const RANGES: [Range; 14] = [
    range(Some(("b", Some("2"))), Some(("b", Some("2")))),
    range(Some(("b", Some("2"))), Some(("b", Some("3")))),
    // In the partitions between, rows count that come before `srk` or after `erk`.
    range(Some(("b", Some("2"))), Some(("d", Some("1")))),
    range(Some(("b", Some("3"))), Some(("c", Some("1")))),
    range(Some(("b", None)), Some(("c", None))),
    range(Some(("b", None)), Some(("b", None))),
    range(Some(("b", Some("2"))), Some(("b", None))),
    range(Some(("c", None)), None),
    range(Some(("c", Some("3"))), None),
    range(None, Some(("a", None))),
    range(None, Some(("b", Some("1")))),
    // Nothing is there, or nothing can be.
    range(Some(("x", None)), Some(("z", None))),
    range(Some(("c", None)), Some(("b", None))),
    range(Some(("b", Some("3"))), Some(("b", Some("2")))),
];

impl Range {
    /// The rule in two lines: pairs of keys compare as pairs.
    fn reaches(&self, partition: &str, row: &str) -> bool {
        self.start.is_none_or(|(first, from)| (partition, row) >= (first, from.unwrap_or("")))
            && self.end.is_none_or(|(last, to)| (partition, row) <= (last, to.unwrap_or("\u{10FFFF}")))
    }

    fn sas(&self, letters: &str) -> SasBuilder {
        let mut sas = table_sas(TABLE, letters);
        if let Some((partition, row)) = self.start {
            sas = sas.start_keys(partition, row);
        }
        if let Some((partition, row)) = self.end {
            sas = sas.end_keys(partition, row);
        }
        sas
    }

    fn token(&self, letters: &str) -> String {
        token(&self.sas(letters), ACCOUNT, KEY)
    }
}

const PARTITIONS: [&str; 6] = ["", "a", "b", "bb", "c", "d"];
const ROWS: [&str; 4] = ["", "1", "2", "3"];

/// The rows that are there, in their order, and the value of `A` in each.
fn grid() -> Vec<(&'static str, &'static str, usize)> {
    let pairs = PARTITIONS.iter().flat_map(|partition| ROWS.iter().map(move |row| (*partition, *row)));
    pairs.enumerate().map(|(number, (partition, row))| (partition, row, number)).collect()
}

fn fill(server: &TestServer) {
    server.create(TABLE);
    for (partition, row, number) in grid() {
        server.send(put_row(&Spot { n: number, ..Spot::row(0, partition, row) }, row)).expect(204);
    }
}

/// The same rows in both engines.
fn servers() -> [(TestServer, Option<TempDir>); 2] {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = RocksStore::open(folder.path(), Options::default()).expect("a store can be opened");
    let servers = [(TestServer::start(), None), (TestServer::on_store(Arc::new(store), |_| {}), Some(folder))];
    servers.iter().for_each(|(server, _)| fill(server));
    servers
}

/// Filters of every plan there is, those that point out of all ranges included, and what they mean.
type Filter = (&'static str, fn(&str, &str, usize) -> bool);
const FILTERS: [Filter; 16] = [
    ("", |_, _, _| true),
    ("PartitionKey ge ''", |_, _, _| true),
    ("A ge 0", |_, _, _| true),
    ("not (A lt 3)", |_, _, a| a >= 3),
    ("PartitionKey eq 'a'", |partition, _, _| partition == "a"),
    ("PartitionKey eq 'd' and A ge 0", |partition, _, _| partition == "d"),
    ("PartitionKey ge 'b' and PartitionKey lt 'd'", |partition, _, _| ("b".."d").contains(&partition)),
    ("PartitionKey eq 'b' and RowKey eq '2'", |partition, row, _| (partition, row) == ("b", "2")),
    ("PartitionKey eq 'b' and RowKey ge '2'", |partition, row, _| partition == "b" && row >= "2"),
    ("(PartitionKey eq 'a' and RowKey eq '1') or (PartitionKey eq 'd' and RowKey eq '3')", |partition, row, _| {
        [("a", "1"), ("d", "3")].contains(&(partition, row))
    }),
    ("PartitionKey eq 'a' or PartitionKey eq 'c'", |partition, _, _| ["a", "c"].contains(&partition)),
    ("RowKey ge '2'", |_, row, _| row >= "2"),
    ("RowKey eq '1'", |_, row, _| row == "1"),
    ("RowKey eq '' or RowKey eq '3'", |_, row, _| ["", "3"].contains(&row)),
    ("PartitionKey gt 'b' or RowKey lt '2'", |partition, row, _| partition > "b" || row < "2"),
    ("A eq 9 or PartitionKey eq 'zz'", |_, _, a| a == 9),
];

/// The rows of a page as text, with what the page says besides them checked: its token and its count of rows read lie in
/// the range.
#[track_caller]
fn page(range: &Range, response: &Response, readable: usize) -> Vec<String> {
    assert_eq!(response.status, 200, "{range:?}: {response:?}");
    let json = response.json();
    let rows = json["value"].as_array().unwrap_or_else(|| panic!("no collection in {response:?}"));
    if let Some(partition) = response.header("x-ms-continuation-NextPartitionKey") {
        let row = response.header("x-ms-continuation-NextRowKey").unwrap_or_default();
        let (partition, row) = (decode_key(partition).expect("a token"), decode_key(row).expect("a token"));
        assert!(range.reaches(&partition, &row), "a token for {partition}/{row} outside {range:?}");
    }
    if let Some((_, rest)) = response.header("x-partita-plan").and_then(|plan| plan.split_once("rows-read=")) {
        let read: usize = rest.split(';').next().and_then(|count| count.parse().ok()).expect("a number");
        assert!(read <= readable, "{read} rows were read of {readable} in {range:?}");
    }
    let key = |row: &serde_json::Value, name: &str| row[name].as_str().unwrap_or("-").to_owned();
    rows.iter().map(|row| format!("{}/{}", key(row, "PartitionKey"), key(row, "RowKey"))).collect()
}

/// All rows of a query, page by page.
fn pages(server: &TestServer, range: &Range, sas: &str, query: &str, readable: usize) -> Vec<String> {
    let ask = |query: String| {
        server.send_as_is(&Request::get("/People()").query(&query).query(sas).header("x-partita-plan", "?"))
    };
    let (mut rows, mut next) = (Vec::new(), query.to_owned());
    loop {
        let response = ask(next);
        rows.extend(page(range, &response, readable));
        let Some(from) = response.continuation() else { return rows };
        next = format!("{query}&{from}");
    }
}

fn named(rows: impl IntoIterator<Item = (&'static str, &'static str, usize)>) -> Vec<String> {
    rows.into_iter().map(|(partition, row, _)| format!("{partition}/{row}")).collect()
}

#[test]
fn queries() {
    for (server, _folder) in &servers() {
        for range in &RANGES {
            let sas = range.token("r");
            let within: Vec<_> =
                grid().into_iter().filter(|(partition, row, _)| range.reaches(partition, row)).collect();
            for (text, means) in FILTERS {
                let expected = named(within.iter().copied().filter(|(partition, row, a)| means(partition, row, *a)));
                let filter = if text.is_empty() { "x=y".to_owned() } else { format!("$filter={}", encode(text)) };
                for more in ["", "&$top=1", "&$top=2", "&$top=7", "&$select=PartitionKey,RowKey"] {
                    let rows = pages(server, range, &sas, &format!("{filter}{more}"), within.len());
                    assert_eq!(rows, expected, "{text} {more} in {range:?}");
                }
                let inner = Request::get(format!("/People()?{filter}&$top=3"));
                let response = server.send_as_is(&batch::query(&inner).query(&sas));
                assert_eq!(page(range, &part(&response), within.len()), expected[..expected.len().min(3)], "{text}");
            }
            // What could count rows does not.
            for query in ["$inlinecount=allpages", "$count=true", "$skip=1", "$orderby=A", "$expand=A", "$apply=x"] {
                let response = server.send_as_is(&Request::get("/People()").query(query).query(&sas));
                assert_eq!(response.outcome(), (501, "NotImplemented".to_owned()), "{query}");
            }
        }
    }
}

/// A token is what a client says it is: wherever it points, it does not lead out of the range.
#[test]
fn forged_tokens() {
    let edges = [("", ""), ("", "\u{FFFF}"), ("a", "\u{FFFF}"), ("b\u{1}", ""), ("zzz", "9"), ("\u{10FFFF}", "")];
    let places: Vec<(&str, &str)> =
        grid().into_iter().map(|(partition, row, _)| (partition, row)).chain(edges).collect();
    for (server, _folder) in &servers() {
        for range in &RANGES {
            let sas = range.token("r");
            let within: Vec<_> =
                grid().into_iter().filter(|(partition, row, _)| range.reaches(partition, row)).collect();
            for (partition, row) in &places {
                let from = format!("NextPartitionKey={}&NextRowKey={}", encode_key(partition), encode_key(row));
                let rest = |row: &str| {
                    let rest = within.iter().copied().filter(|(p, r, _)| (*p, *r) >= (*partition, row));
                    named(rest)
                };
                for filter in ["", "&$filter=A%20ge%200", "&$filter=RowKey%20ge%20''"] {
                    let query = format!("{from}{filter}");
                    let response = server.send_as_is(&Request::get("/People()").query(&query).query(&sas));
                    assert_eq!(page(range, &response, within.len()), rest(row), "from {partition}/{row} in {range:?}");
                }
                let inner = Request::get(format!("/People()?{from}&$top=2"));
                let response = part(&server.send_as_is(&batch::query(&inner).query(&sas)));
                let expected = rest(row);
                assert_eq!(page(range, &response, within.len()), expected[..expected.len().min(2)]);
                // Half a token is the start of a partition.
                let half = format!("NextPartitionKey={}", encode_key(partition));
                let response = server.send_as_is(&Request::get("/People()").query(&half).query(&sas));
                assert_eq!(page(range, &response, within.len()), rest(""), "from {partition} in {range:?}");
            }
        }
    }
}

/// Every operation on one entity, at rows that are there and rows that are not.
#[test]
fn entities() {
    let free =
        [("", "0"), ("0", "2"), ("b", "0"), ("b", "25"), ("b", "4"), ("ba", "1"), ("c", "15"), ("e", "1"), ("B", "2")];
    let mut rows: Vec<(&str, &str, bool)> =
        grid().into_iter().map(|(partition, row, _)| (partition, row, true)).collect();
    rows.extend(free.map(|(partition, row)| (partition, row, false)));
    let operations: Vec<_> = OPERATIONS
        .iter()
        .filter(|operation| matches!(operation.needs, Needs::Entity(..)) && !operation.name.starts_with("query"))
        .collect();
    let server = TestServer::start();
    fill(&server);
    let state = || server.send(Request::get("/People()")).expect(200).text();
    let mut cells = 0;
    for range in &RANGES {
        let sas = range.token("raud");
        for (partition, row, there) in &rows {
            let before = state();
            let inside = range.reaches(partition, row);
            for operation in &operations {
                for is_part in [false, true] {
                    cells += 1;
                    let at = Spot::row(cells, partition, row);
                    let request = if is_part { operation.as_part(&at) } else { (operation.request)(&at) };
                    let response = server.send_as_is(&request.query(&sas));
                    let answer = if is_part { part(&response) } else { response };
                    let what = format!("{} of {partition}/{row} in {range:?}: {answer:?}", operation.name);
                    if !inside {
                        assert_eq!(answer.outcome(), (403, "AuthorizationFailure".to_owned()), "{what}");
                        // It is found late, by the service behind the front end.
                        assert!(is_part || answer.header("x-ms-version") == Some(VERSION), "{what}");
                        continue;
                    }
                    let is_upsert = matches!(operation.needs, Needs::Entity(_, ["au"]));
                    let expected = match (operation.needs, there) {
                        (Needs::Entity(_, ["a"]), true) => 409,
                        (Needs::Entity(_, ["a"]), false) => operation.success,
                        (_, false) if !is_upsert => 404,
                        _ => operation.success,
                    };
                    assert_eq!(answer.status, expected, "{what}");
                    let is_read = matches!(operation.needs, Needs::Entity(_, ["r"]));
                    if expected < 300 && !is_read {
                        let restore = if *there { put_row(&at, row) } else { delete_row(&at, row) };
                        assert!(matches!(server.send(restore).status, 204 | 404));
                    }
                }
            }
            if !inside {
                assert_eq!(state(), before, "something was changed at {partition}/{row}, outside {range:?}");
            }
        }
    }
    assert!(cells > 9_000, "only {cells} cells");
}

/// One operation outside refuses a change set as a whole, wherever it stands.
#[test]
fn change_sets() {
    let server = TestServer::start();
    fill(&server);
    let state = || server.send(Request::get("/People()")).expect(200).text();
    let put = |partition: &str, row: &str| Request::json("PUT", entity(TABLE, partition, row), r#"{"A":-1}"#);
    let mut tried = 0;
    for range in &RANGES {
        let sas = range.token("raud");
        for partition in PARTITIONS {
            let (inside, outside): (Vec<&str>, Vec<&str>) =
                ROWS.into_iter().partition(|row| range.reaches(partition, row));
            let (Some(&inside), false) = (inside.first(), outside.is_empty()) else { continue };
            let before = state();
            for outside in outside {
                for (rows, index) in [([inside, "~", outside], None), ([outside, inside, "~"], Some(0))] {
                    let response = server.send_as_is(&change_set(&rows.map(|row| put(partition, row))).query(&sas));
                    let answer = part(&response);
                    assert_eq!(answer.outcome(), (403, "AuthorizationFailure".to_owned()), "{rows:?} {range:?}");
                    if let Some(index) = index {
                        assert!(answer.message().starts_with(&format!("{index}:")), "{answer:?}");
                    }
                    tried += 1;
                }
            }
            assert_eq!(state(), before, "something was changed in {partition} by {range:?}");
        }
    }
    assert!(tried > 10, "only {tried} change sets");
}

/// A scan that is spread over threads keeps to the range too.
#[test]
fn wide_scans() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = RocksStore::open(folder.path(), Options::default()).expect("a store can be opened");
    let server = TestServer::on_store(Arc::new(store), |_| {});
    server.create(TABLE);
    for partition in ["a", "b", "c"] {
        for first in (0..4_000).step_by(100) {
            let insert = |number: usize| {
                let body = format!(r#"{{"PartitionKey":"{partition}","RowKey":"{number:05}","A":{}}}"#, number % 10);
                Request::json("POST", "/People", body).header("Prefer", "return-no-content")
            };
            server.send(change_set(&(first..first + 100).map(insert).collect::<Vec<_>>())).expect(202);
        }
    }
    for range in [
        range(Some(("b", Some("00010"))), Some(("b", Some("03990")))),
        range(Some(("a", Some("03990"))), Some(("c", Some("00010")))),
        range(Some(("b", None)), None),
        range(None, Some(("b", Some("00000")))),
    ] {
        let sas = range.token("r");
        let all = ["a", "b", "c"].into_iter().flat_map(|partition| (0..4_000).map(move |number| (partition, number)));
        let within: Vec<(&str, usize)> =
            all.filter(|(partition, number)| range.reaches(partition, &format!("{number:05}"))).collect();
        for (filter, a) in [("A eq 7", 7), ("A eq 11", 11)] {
            let expected: Vec<String> = within
                .iter()
                .filter(|(_, number)| number % 10 == a)
                .map(|(partition, number)| format!("{partition}/{number:05}"))
                .collect();
            for top in ["", "&$top=100"] {
                let query = format!("$filter={}{top}", encode(filter));
                assert_eq!(pages(&server, &range, &sas, &query, within.len()), expected, "{filter} {range:?}");
            }
        }
    }
}
