//! Which error wins when several apply: one row per case, the winner last.
//!
//! The order is that of the service: syntax, parameters, version, authentication, what a signature allows, size and type
//! of the body, name of the table, its existence, keys of the URL and filter, body, condition, the batch as a whole, keys,
//! range of the signature, properties, and at last the state of the entity. A failed check at any step leaves the data as
//! it was, which is looked at after every row.

use partita_auth::Scheme;
use partita_testing::batch::{change_set, part};
use partita_testing::http::{Request, Response, entity};
use partita_testing::server::TestServer;
use partita_testing::signing::{WRONG_KEY, account_sas, moment, table_sas};

const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;
const STALE: &str = "W/\"datetime'2020-01-01T00%3A00%3A00Z'\"";
const SYNTAX_ERROR: &str = "{";
const NO_KEYS: &str = "{}";
const TWICE: &str = r#"{"A":1,"A":2}"#;

/// A server with the entity p/r in table `There`, and p/full, which has as many properties as there may be.
fn server() -> TestServer {
    let server = TestServer::with_tables(&["There", "Other"]);
    server.insert("There", "p", "r");
    server.send(insert("There", "p", "full", &properties(252))).expect(201);
    server
}

fn state(server: &TestServer) -> String {
    let everything = |request| server.send(request).expect(200).text();
    let tables = everything(Request::get("/Tables"));
    format!("{tables}{}{}", everything(Request::get("/There()")), everything(Request::get("/Other()")))
}

/// Properties to follow the keys of a body.
fn properties(count: usize) -> String {
    (0..count).map(|number| format!(r#","P{number}":{number}"#)).collect()
}

fn property(name: &str, value: &str) -> String {
    format!(r#","{name}":"{value}""#)
}

fn insert(table: &str, partition_key: &str, row_key: &str, properties: &str) -> Request {
    let body = format!(r#"{{"PartitionKey":"{partition_key}","RowKey":"{row_key}"{properties}}}"#);
    Request::json("POST", format!("/{table}"), body)
}

/// A request with a body of this text on the entity p/r of a table.
fn change(method: &str, table: &str, body: &str) -> Request {
    Request::json(method, entity(table, "p", "r"), body)
}

fn wrong_key(request: Request) -> Request {
    request.signed_with(Scheme::SharedKey, WRONG_KEY)
}

fn too_large(request: Request) -> Request {
    request.body(vec![b' '; BODY_BYTES_MAX + 1])
}

type Row = (&'static str, Request, u16, &'static str);

fn check(rows: Vec<Row>) {
    let server = server();
    let before = state(&server);
    for (name, request, status, code) in rows {
        let response = server.send(request);
        assert_eq!(response.outcome(), (status, code.to_owned()), "{name}: {response:?}");
        assert_eq!(state(&server), before, "{name}: something was changed");
    }
}

#[test]
#[rustfmt::skip]
fn before_the_table_is_looked_at() {
    let get = |target: &str| Request::get(target);
    let version = |request: Request| request.header("x-ms-version", "foo");
    let long_ago = || account_sas("sco", "rl").expiry(moment(-60));
    check(vec![
        ("verb over authentication", wrong_key(Request::new("COPY", "/There()")), 405, "UnsupportedHttpVerb"),
        ("verb over version", version(Request::new("COPY", "/There()")), 405, "UnsupportedHttpVerb"),
        ("parameter over version", version(get("/There?comp=list")), 400, "InvalidQueryParameterValue"),
        ("parameter over authentication", wrong_key(get("/There?restype=service&comp=properties")), 400, "InvalidQueryParameterValue"),
        ("parameter over name", get("/ab?restype=service&comp=properties"), 400, "InvalidQueryParameterValue"),
        ("version over authentication", wrong_key(version(get("/Tables"))), 400, "InvalidHeaderValue"),
        ("version over name", version(get("/ab()")), 400, "InvalidHeaderValue"),
        ("authentication over name", wrong_key(get("/ab()")), 403, "AuthenticationFailed"),
        ("authentication over missing table", wrong_key(get("/Nowhere()")), 403, "AuthenticationFailed"),
        ("authentication over conflict", wrong_key(insert("There", "p", "r", "")), 403, "AuthenticationFailed"),
        ("authentication over syntax", wrong_key(change("PUT", "There", SYNTAX_ERROR)), 403, "AuthenticationFailed"),
        ("authentication over size", wrong_key(too_large(change("PUT", "There", ""))), 403, "AuthenticationFailed"),
        ("authentication over media type", wrong_key(get("/There()").header("Accept", "text/html")), 403, "AuthenticationFailed"),
        ("authentication over secondary", wrong_key(insert("There", "p", "n", "").at("devstoreaccount1-secondary")), 403, "AuthenticationFailed"),
        ("authentication over batch", wrong_key(change_set(&[])), 403, "AuthenticationFailed"),
        ("expiry over protocol", get("/Tables").sas(&long_ago().https_only()), 403, "AuthenticationFailed"),
        ("expiry over permission", insert("There", "p", "n", "").sas(&long_ago()), 403, "AuthenticationFailed"),
        ("protocol over address", get("/Tables").sas(&account_sas("sco", "l").https_only().addresses("192.0.2.1")), 403, "AuthorizationProtocolMismatch"),
        ("protocol over what it may never do", get("/Tables").sas(&table_sas("There", "r").https_only()), 403, "AuthorizationProtocolMismatch"),
        ("address over service", get("/Tables").sas(&other_service("l").addresses("192.0.2.1")), 403, "AuthorizationSourceIPMismatch"),
        ("service over resource type", get("/Tables").sas(&other_service("l")), 403, "AuthorizationServiceMismatch"),
        ("resource type over permission", get("/Tables").sas(&account_sas("o", "r")), 403, "AuthorizationResourceTypeMismatch"),
        ("permission over size", too_large(insert("There", "p", "n", "")).sas(&account_sas("o", "r")), 403, "AuthorizationPermissionMismatch"),
        ("permission over media type", get("/There()").header("Accept", "text/html").sas(&account_sas("o", "a")), 403, "AuthorizationPermissionMismatch"),
        ("permission over name", get("/ab()").sas(&account_sas("o", "a")), 403, "AuthorizationPermissionMismatch"),
        ("permission over missing table", get("/Nowhere()").sas(&account_sas("o", "a")), 403, "AuthorizationPermissionMismatch"),
        ("permission over key range", insert("There", "a", "b", "").sas(&table_sas("There", "r").start_keys("m", None)), 403, "AuthorizationPermissionMismatch"),
        ("what it may never do over name", get("/ab?comp=acl").sas(&account_sas("sco", "rwdlacu")), 403, "AuthorizationFailure"),
    ]);
}

/// A signature for blobs, and for nothing but the service itself.
fn other_service(permissions: &str) -> partita_auth::SasBuilder {
    partita_auth::SasBuilder::account("b", "s").permissions(permissions).expiry(moment(3600))
}

#[test]
#[rustfmt::skip]
fn before_the_entity_is_looked_at() {
    let tag = |tag: &str, request: Request| request.header("If-Match", tag);
    let plain_text = |request: Request| request.header("Content-Type", "text/plain");
    let bad_filter = "?$filter=aaa%20bbb%20ccc";
    check(vec![
        ("size over name", too_large(insert("ab", "p", "r", "")), 413, "RequestBodyTooLarge"),
        ("size over missing table", too_large(insert("Nowhere", "p", "r", "")), 413, "RequestBodyTooLarge"),
        ("media type over name", plain_text(insert("ab", "p", "r", "")), 415, "MediaTypeNotSupported"),
        ("media type over missing table", plain_text(change("PUT", "Nowhere", "")), 415, "MediaTypeNotSupported"),
        ("media type over syntax", plain_text(change("PUT", "There", SYNTAX_ERROR)), 415, "MediaTypeNotSupported"),
        ("name over number of keys", Request::get("/ab(PartitionKey='p')"), 400, "OutOfRangeInput"),
        ("name over filter", Request::get(format!("/bad_name(){bad_filter}")), 400, "InvalidResourceName"),
        ("name over syntax", change("PUT", "ab", SYNTAX_ERROR), 400, "OutOfRangeInput"),
        ("name over missing tag", Request::delete(entity("bad_name", "p", "r")), 400, "InvalidResourceName"),
        ("name over missing keys", Request::json("POST", "/ab", NO_KEYS), 400, "OutOfRangeInput"),
        ("name over existence of /Tables('ab')", Request::delete("/Tables('ab')"), 400, "OutOfRangeInput"),
        ("name over policies", Request::new("PUT", "/ab?comp=acl").body("<"), 400, "OutOfRangeInput"),
        ("missing table over number of keys", Request::get("/Nowhere(PartitionKey='p')"), 404, "TableNotFound"),
        ("missing table over a trailing segment", Request::get("/Nowhere/Tables('x')"), 404, "TableNotFound"),
        ("missing table over filter", Request::get(format!("/Nowhere(){bad_filter}")), 404, "TableNotFound"),
        ("missing table over missing keys", Request::json("POST", "/Nowhere", NO_KEYS), 404, "TableNotFound"),
        ("missing table over syntax", Request::json("POST", "/Nowhere", SYNTAX_ERROR), 404, "TableNotFound"),
        ("missing table over tag", tag("abc", change("PUT", "Nowhere", "{}")), 404, "TableNotFound"),
        ("missing table over missing tag", Request::delete(entity("Nowhere", "p", "r")), 404, "TableNotFound"),
        ("missing table over missing entity", tag("*", change("PUT", "Nowhere", "{}")), 404, "TableNotFound"),
        ("missing table over key characters", Request::get(entity("Nowhere", "a#", "r")), 404, "TableNotFound"),
        ("missing table over key range", insert("Nowhere", "a", "r", "").sas(&table_sas("Nowhere", "a").start_keys("m", None)), 404, "TableNotFound"),
        ("number of keys over missing tag", Request::delete("/There(PartitionKey='p')"), 400, "InvalidInput"),
        ("number of keys over body", Request::json("PUT", "/There(PartitionKey='p')", TWICE), 400, "InvalidInput"),
        ("body over tag", tag("abc", change("PUT", "There", TWICE)), 400, "DuplicatePropertiesSpecified"),
        ("body over missing entity", tag("*", Request::json("PUT", entity("There", "p", "none"), TWICE)), 400, "DuplicatePropertiesSpecified"),
        ("body over key characters", Request::json("PUT", entity("There", "a#", "r"), TWICE), 400, "DuplicatePropertiesSpecified"),
        ("body over missing keys", Request::json("POST", "/There", TWICE), 400, "DuplicatePropertiesSpecified"),
        ("missing tag over key characters", Request::delete(entity("There", "a#", "r")), 400, "MissingRequiredHeader"),
        ("missing tag over missing entity", Request::delete(entity("There", "p", "none")), 400, "MissingRequiredHeader"),
        ("tag over missing entity", tag("abc", Request::delete(entity("There", "p", "none"))), 400, "InvalidInput"),
        ("tag over properties", tag("abc", Request::json("PUT", entity("There", "p", "r"), format!("{{\"Z\":1{}}}", properties(253)))), 400, "InvalidInput"),
    ]);
}

#[test]
#[rustfmt::skip]
fn when_the_entity_is_looked_at() {
    let range = || table_sas("There", "raud").start_keys("q", None);
    let tag = |tag: &str, request: Request| request.header("If-Match", tag);
    let large = "x".repeat(32 * 1024 + 1);
    let many_large: String = (0..17).map(|number| property(&format!("L{number}"), &large[1..])).collect();
    let long_name = property(&"-".repeat(256), "");
    let too_many = format!("{{\"Z\":1{}}}", properties(253));
    check(vec![
        ("missing keys over key range", Request::json("POST", "/There", NO_KEYS).sas(&range()), 400, "PropertiesNeedValue"),
        ("key characters over key range", insert("There", "a#", "r", "").sas(&range()), 400, "OutOfRangeInput"),
        ("key range over properties", insert("There", "a", "r", &properties(253)).sas(&range()), 403, "AuthorizationFailure"),
        ("key range over conflict", insert("There", "p", "r", "").sas(&range()), 403, "AuthorizationFailure"),
        ("key range over missing entity", Request::get(entity("There", "a", "none")).sas(&range()), 403, "AuthorizationFailure"),
        ("key range over missing entity of a delete", tag("*", Request::delete(entity("There", "a", "none"))).sas(&range()), 403, "AuthorizationFailure"),
        ("key range over stale tag", tag(STALE, change("PUT", "There", "{}")).sas(&range()), 403, "AuthorizationFailure"),
        ("missing keys over properties", Request::json("POST", "/There", &*too_many), 400, "PropertiesNeedValue"),
        ("key characters over conflict", insert("There", "p/", "r", ""), 400, "OutOfRangeInput"),
        ("number of properties over their names", insert("There", "p", "n", &format!("{}{long_name}", properties(252))), 400, "TooManyProperties"),
        ("length of a name over its characters", insert("There", "p", "n", &long_name), 400, "PropertyNameTooLong"),
        ("name over value", insert("There", "p", "n", &property("a-b", &large)), 400, "PropertyNameInvalid"),
        ("value over entity", insert("There", "p", "n", &format!("{many_large}{}", property("A", &large))), 400, "PropertyValueTooLarge"),
        ("entity over conflict", insert("There", "p", "r", &many_large), 400, "EntityTooLarge"),
        ("properties over conflict", insert("There", "p", "r", &properties(253)), 400, "TooManyProperties"),
        ("properties over missing entity", tag("*", Request::json("PUT", entity("There", "p", "none"), &*too_many)), 400, "TooManyProperties"),
        ("properties over stale tag", tag(STALE, change("PUT", "There", &too_many)), 400, "TooManyProperties"),
        ("missing entity over stale tag", tag(STALE, Request::json("PUT", entity("There", "p", "none"), "{}")), 404, "ResourceNotFound"),
        ("missing entity over stale tag of a delete", tag(STALE, Request::delete(entity("There", "p", "none"))), 404, "ResourceNotFound"),
        ("stale tag over the merged entity", tag(STALE, Request::json("PATCH", entity("There", "p", "full"), r#"{"One":1}"#)), 412, "UpdateConditionNotSatisfied"),
        ("a merged entity has limits too", tag("*", Request::json("PATCH", entity("There", "p", "full"), r#"{"One":1}"#)), 400, "TooManyProperties"),
    ]);
}

/// The message of an error in a batch up to its index, the colon included; empty if it has none.
fn index(error: &Response) -> String {
    let message = error.message();
    let digits = message.chars().take_while(char::is_ascii_digit).count();
    if digits > 0 && message[digits..].starts_with(':') { message[..=digits].to_owned() } else { String::new() }
}

type BatchRow = (&'static str, Vec<Request>, &'static str, u16, &'static str);

fn check_batches(rows: Vec<BatchRow>, wrap: impl Fn(Request) -> Request) {
    let server = server();
    let before = state(&server);
    for (name, operations, expected_index, status, code) in rows {
        let response = server.send(wrap(change_set(&operations)));
        let error = part(&response);
        let (found_status, found_code) = error.outcome();
        assert_eq!((&*index(&error), found_status, &*found_code), (expected_index, status, code), "{name}: {error:?}");
        assert_eq!(state(&server), before, "{name}: something was changed");
    }
}

/// That many inserts of new rows.
fn inserts(count: usize) -> Vec<Request> {
    (0..count).map(|number| insert("There", "p", &format!("n{number}"), "")).collect()
}

#[test]
#[rustfmt::skip]
fn in_a_change_set() {
    let there = |partition_key: &str, row_key: &str| insert("There", partition_key, row_key, "");
    let conflict = || there("p", "r");
    let new = || there("p", "n");
    let missing = || Request::delete(entity("There", "p", "none")).header("If-Match", "*");
    let stale = || change("PUT", "There", "{}").header("If-Match", STALE);
    let elsewhere = |table: &str| insert(table, "p", "n", "");
    let bad_json = || Request::json("POST", "/There", SYNTAX_ERROR);
    let bad_key = || there("p", "a#");
    let old_date = || insert("There", "p", "d", r#","D@odata.type":"Edm.DateTime","D":"1600-01-01T00:00:00Z""#);
    let large = || insert("There", "p", "l", &property("A", &"x".repeat(32 * 1024 + 1)));
    let with = |mut operations: Vec<Request>, first: Request| { operations[0] = first; operations };
    check_batches(vec![
        // One operation: what the store finds has no index, what is found before it has.
        ("one conflict", vec![conflict()], "", 409, "EntityAlreadyExists"),
        ("one missing entity", vec![missing()], "", 404, "ResourceNotFound"),
        ("one stale tag", vec![stale()], "", 412, "UpdateConditionNotSatisfied"),
        ("one large value", vec![large()], "", 400, "PropertyValueTooLarge"),
        ("one missing table", vec![elsewhere("Nowhere")], "0:", 404, "TableNotFound"),
        ("one bad name", vec![elsewhere("bad_name")], "0:", 400, "InvalidResourceName"),
        ("one short name", vec![elsewhere("ab")], "0:", 400, "OutOfRangeInput"),
        ("one without keys", vec![Request::json("POST", "/There", NO_KEYS)], "0:", 400, "PropertiesNeedValue"),
        ("one bad key", vec![bad_key()], "0:", 400, "OutOfRangeInput"),
        ("one slash in a key", vec![Request::json("PUT", entity("There", "a/b", "r"), "{}")], "0:", 400, "InvalidInput"),
        ("one old date", vec![old_date()], "0:", 400, "OutOfRangeInput"),
        ("one bad body", vec![bad_json()], "0:", 400, "InvalidInput"),
        // Several: always an index.
        ("conflict first", vec![conflict(), new()], "0:", 409, "EntityAlreadyExists"),
        ("conflict last", vec![new(), conflict()], "1:", 409, "EntityAlreadyExists"),
        ("missing entity last", vec![new(), missing()], "1:", 404, "ResourceNotFound"),
        ("stale tag last", vec![new(), stale()], "1:", 412, "UpdateConditionNotSatisfied"),
        ("large value last", vec![new(), large()], "1:", 400, "PropertyValueTooLarge"),
        ("missing table twice", vec![elsewhere("Nowhere"), elsewhere("Nowhere")], "0:", 404, "TableNotFound"),
        ("the first of two", vec![new(), missing(), conflict()], "1:", 404, "ResourceNotFound"),
        // What wins.
        ("missing table over conflict", vec![conflict(), elsewhere("Nowhere")], "1:", 404, "TableNotFound"),
        ("name over conflict", vec![conflict(), elsewhere("ab")], "1:", 400, "OutOfRangeInput"),
        ("body over conflict", vec![conflict(), bad_json()], "1:", 400, "InvalidInput"),
        ("body over duplicate row", vec![new(), new(), bad_json()], "2:", 400, "InvalidInput"),
        ("missing tag over duplicate row", vec![new(), new(), Request::delete(entity("There", "p", "r"))], "2:", 400, "MissingRequiredHeader"),
        ("missing table over duplicate row", vec![new(), new(), elsewhere("Nowhere")], "2:", 404, "TableNotFound"),
        ("duplicate row over conflict", vec![conflict(), new(), new()], "2:", 400, "InvalidDuplicateRow"),
        ("duplicate row over missing entity", vec![missing(), new(), change("PUT", "There", "{}"), new()], "3:", 400, "InvalidDuplicateRow"),
        ("duplicate row of different operations", vec![stale(), Request::delete(entity("There", "p", "r")).header("If-Match", "*")], "1:", 400, "InvalidDuplicateRow"),
        ("duplicate row over key characters", vec![bad_key(), bad_key()], "1:", 400, "InvalidDuplicateRow"),
        ("two partitions over conflict", vec![conflict(), there("q", "a")], "1:", 400, "CommandsInBatchActOnDifferentPartitions"),
        ("two partitions over missing entity", vec![missing(), new(), there("q", "a")], "2:", 400, "CommandsInBatchActOnDifferentPartitions"),
        ("two tables over conflict", vec![conflict(), elsewhere("Other")], "1:", 400, "InvalidInput"),
        ("keys over conflict", vec![conflict(), bad_key()], "1:", 400, "OutOfRangeInput"),
        ("101 operations", inserts(101), "99:", 400, "InvalidInput"),
        ("101 operations over conflict", with(inserts(101), conflict()), "99:", 400, "InvalidInput"),
        ("101 operations over two partitions", with(inserts(101), there("q", "a")), "99:", 400, "InvalidInput"),
        ("101 operations over duplicate row", with(inserts(101), there("p", "n1")), "99:", 400, "InvalidInput"),
        ("missing table over 101 operations", with(inserts(101), elsewhere("Nowhere")), "0:", 404, "TableNotFound"),
        ("body over 101 operations", with(inserts(101), bad_json()), "0:", 400, "InvalidInput"),
    ], |batch| batch);
}

#[test]
#[rustfmt::skip]
fn in_a_change_set_with_a_signature() {
    let inside = || insert("There", "q", "r", "");
    let outside = || insert("There", "q", "a", "");
    let delete = || Request::delete(entity("There", "q", "z")).header("If-Match", "*");
    check_batches(vec![
        ("permission over missing entity", vec![inside(), delete()], "1:", 403, "AuthorizationPermissionMismatch"),
        ("permission over duplicate row", vec![inside(), inside(), delete()], "2:", 403, "AuthorizationPermissionMismatch"),
        ("another table over its absence", vec![inside(), insert("Nowhere", "q", "b", "")], "1:", 403, "AuthorizationFailure"),
        ("key range", vec![inside(), outside()], "1:", 403, "AuthorizationFailure"),
        ("key range of the only operation", vec![outside()], "0:", 403, "AuthorizationFailure"),
        ("duplicate row over key range", vec![outside(), outside()], "1:", 400, "InvalidDuplicateRow"),
        ("key characters over key range", vec![outside(), insert("There", "q", "r#", "")], "0:", 403, "AuthorizationFailure"),
    ], |batch| batch.sas(&table_sas("There", "au").start_keys("q", Some("m"))));
}

/// The limit itself is no error.
#[test]
fn a_hundred_operations() {
    let server = server();
    let response = server.send(change_set(&inserts(100)));
    let statuses: Vec<_> = partita_testing::batch::parts(&response).iter().map(|part| part.status).collect();
    assert_eq!(statuses, vec![201; 100]);
}

/// A batch that is refused as a whole gets a plain reply.
#[test]
fn a_batch_that_is_too_large() {
    let server = server();
    let response = server.send(too_large(change_set(&[])));
    assert_eq!(response.outcome(), (413, "RequestBodyTooLarge".to_owned()), "{response:?}");
}
