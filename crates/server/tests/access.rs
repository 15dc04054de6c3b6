//! Who may do what. Everything is denied unless the table of [`OPERATIONS`] allows it.

use partita_auth::{AccountKey, SasBuilder, Scheme, sign};
use partita_testing::batch::{self, change_set, part, parts};
use partita_testing::http::{Request, Response, VERSION, encode, entity};
use partita_testing::server::TestServer;
use partita_testing::signing::{
    ACCOUNT, KEY, KEY_TWO, OTHER_ACCOUNT, OTHER_KEY, WRONG_KEY, account_sas, moment, table_sas, token,
};

const TABLE: &str = "People";
const SECONDARY: &str = "devstoreaccount1-secondary";

/// An operation, what it needs, and what it answers when it is allowed.
struct Operation {
    name: &'static str,
    /// Resource types of an account signature, any of which will do; empty if no account signature will.
    resource_types: &'static str,
    /// Sets of permissions, all letters of any of which will do.
    permissions: &'static [&'static str],
    /// Whether a signature of the table will do, with the same permissions.
    table: bool,
    success: u16,
    /// `n` is another number in every request, for what must not exist yet.
    request: fn(n: usize) -> Request,
}

#[rustfmt::skip]
const OPERATIONS: &[Operation] = &[
    operation("get service properties",   "s",  &["r"],      false, 200, |_| Request::get("/?restype=service&comp=properties")),
    operation("set service properties",   "s",  &["w"],      false, 202, |_| Request::new("PUT", "/?restype=service&comp=properties").body("<StorageServiceProperties />")),
    operation("get service statistics",   "s",  &["r"],      false, 200, |_| Request::get("/?restype=service&comp=stats").at(SECONDARY)),
    operation("query tables",             "c",  &["l"],      false, 200, |_| Request::get("/Tables")),
    operation("get table",                "c",  &["l"],      false, 200, |_| Request::get("/Tables('People')")),
    operation("create table",             "c",  &["c", "w"], false, 201, |n| Request::json("POST", "/Tables", format!(r#"{{"TableName":"New{n}"}}"#))),
    operation("delete table",             "c",  &["d"],      false, 204, |_| Request::delete("/Tables('Doomed')")),
    operation("get policies",             "",   &[],         false, 200, |_| Request::get("/People?comp=acl")),
    operation("set policies",             "",   &[],         false, 204, |_| Request::new("PUT", "/People?comp=acl").body(policy("raud"))),
    operation("query entities",           "co", &["r"],      true,  200, |_| Request::get("/People()")),
    operation("query of the secondary",   "co", &["r"],      true,  200, |_| Request::get("/People()").at(SECONDARY)),
    operation("get entity",               "co", &["r"],      true,  200, |_| Request::get(entity(TABLE, "p", "there"))),
    operation("insert",                   "o",  &["a"],      true,  201, insert),
    operation("replace",                  "o",  &["u"],      true,  204, |_| if_match(change("PUT"))),
    operation("merge",                    "o",  &["u"],      true,  204, |_| if_match(change("PATCH"))),
    operation("merge by its old verb",    "o",  &["u"],      true,  204, |_| if_match(change("MERGE"))),
    operation("tunnelled merge",          "o",  &["u"],      true,  204, |_| if_match(change("POST")).header("X-HTTP-Method", "MERGE")),
    operation("insert or replace",        "o",  &["au"],     true,  204, |_| change("PUT")),
    operation("insert or merge",          "o",  &["au"],     true,  204, |_| change("PATCH")),
    operation("tunnelled upsert",         "o",  &["au"],     true,  204, |_| change("POST").header("X-HTTP-Method", "PUT")),
    operation("delete",                   "o",  &["d"],      true,  204, |_| delete()),
    operation("tunnelled delete",         "o",  &["d"],      true,  204, |_| Request { method: "POST".into(), ..delete() }.header("X-HTTP-Method", "DELETE")),
    operation("part: insert",             "o",  &["a"],      true,  201, |n| change_set(&[insert(n)])),
    operation("part: replace",            "o",  &["u"],      true,  204, |_| change_set(&[if_match(change("PUT"))])),
    operation("part: merge",              "o",  &["u"],      true,  204, |_| change_set(&[if_match(change("MERGE"))])),
    operation("part: insert or replace",  "o",  &["au"],     true,  204, |_| change_set(&[change("PUT")])),
    operation("part: insert or merge",    "o",  &["au"],     true,  204, |_| change_set(&[change("PATCH")])),
    operation("part: tunnelled upsert",   "o",  &["au"],     true,  204, |_| change_set(&[change("POST").header("X-HTTP-Method", "MERGE")])),
    operation("part: delete",             "o",  &["d"],      true,  204, |_| change_set(&[delete()])),
    operation("part: get entity",         "co", &["r"],      true,  200, |_| batch::query(&Request::get(entity(TABLE, "p", "there")))),
    operation("part: query entities",     "co", &["r"],      true,  200, |_| batch::query(&Request::get("/People()"))),
];

const fn operation(
    name: &'static str,
    resource_types: &'static str,
    permissions: &'static [&'static str],
    table: bool,
    success: u16,
    request: fn(usize) -> Request,
) -> Operation {
    Operation { name, resource_types, permissions, table, success, request }
}

fn insert(n: usize) -> Request {
    Request::json("POST", "/People", format!(r#"{{"PartitionKey":"p","RowKey":"n{n}"}}"#))
}

fn change(method: &str) -> Request {
    Request::json(method, entity(TABLE, "p", "there"), r#"{"A":2}"#)
}

fn delete() -> Request {
    if_match(Request::delete(entity(TABLE, "p", "doomed")))
}

fn if_match(request: Request) -> Request {
    request.header("If-Match", "*")
}

fn policy(permissions: &str) -> String {
    let expiry = moment(3600).seven_digits();
    format!(
        "<SignedIdentifiers><SignedIdentifier><Id>one</Id><AccessPolicy><Expiry>{expiry}</Expiry>\
         <Permission>{permissions}</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>"
    )
}

impl Operation {
    fn is_part(&self) -> bool {
        self.name.starts_with("part: ")
    }

    fn suffices(&self, permissions: &str) -> bool {
        self.permissions.iter().any(|set| set.chars().all(|letter| permissions.contains(letter)))
    }
}

/// A server, and what was done to it.
struct Matrix {
    server: TestServer,
    count: usize,
}

impl Matrix {
    fn new() -> Matrix {
        let matrix = Matrix { server: TestServer::with_tables(&[TABLE]), count: 0 };
        matrix.server.insert(TABLE, "p", "there");
        matrix.restore();
        matrix
    }

    /// Puts back what allowed operations removed.
    fn restore(&self) {
        let doomed = |method: &str, target: &str| Request::json(method, target, r#"{"TableName":"Doomed"}"#);
        let status = self.server.send(doomed("POST", "/Tables")).status;
        assert!(matches!(status, 201 | 409));
        self.server.send(Request::json("PUT", entity(TABLE, "p", "doomed"), "{}")).expect(204);
    }

    fn state(&self) -> String {
        let everything = |target: &str| self.server.send(Request::get(target)).expect(200).text();
        let mut state = ["/Tables", "/People()", "/People?comp=acl"].map(everything).concat();
        state.push_str(&everything("/?restype=service&comp=properties"));
        state
    }

    /// Tries every operation with these credentials. `expected` says the code of the refusal, or `None` where it is
    /// allowed; any code will do where that is empty.
    fn try_all(
        &mut self,
        who: &str,
        sign: impl Fn(Request) -> Request,
        expected: impl Fn(&Operation) -> Option<&'static str>,
    ) {
        let mut before = self.state();
        for operation in OPERATIONS {
            self.count += 1;
            let response = self.server.send_as_is(&sign((operation.request)(self.count)));
            let what = format!("{} with {who}: {response:?}", operation.name);
            let answer = if operation.is_part() && response.status == 202 { part(&response) } else { response };
            match expected(operation) {
                None => {
                    assert_eq!(answer.status, operation.success, "{what}");
                    self.restore();
                    before = self.state();
                }
                Some(code) => {
                    assert!(matches!(answer.status, 401 | 403), "{what}");
                    assert!(code.is_empty() || answer.code() == code, "expected {code}: {what}");
                    assert_eq!(self.state(), before, "something was changed: {what}");
                }
            }
        }
    }
}

/// Every set of the letters, the empty one left out.
fn subsets(letters: &str) -> Vec<String> {
    (1..1_usize << letters.len())
        .map(|mask| letters.char_indices().filter(|(bit, _)| mask >> bit & 1 == 1).map(|(_, letter)| letter).collect())
        .collect()
}

#[test]
fn keys() {
    let mut matrix = Matrix::new();
    for scheme in [Scheme::SharedKey, Scheme::SharedKeyLite] {
        for key in [KEY, KEY_TWO] {
            matrix.try_all(&format!("{scheme:?}"), |request| request.signed_with(scheme, key), |_| None);
        }
        for key in [WRONG_KEY, OTHER_KEY] {
            let sign = |request: Request| request.signed_with(scheme, key);
            matrix.try_all(&format!("{scheme:?} of a wrong key"), sign, |_| Some("AuthenticationFailed"));
        }
        let late = |request: Request| request.signed_at(scheme, KEY, &moment(-16 * 60).rfc1123());
        matrix.try_all("an old date", late, |_| Some("AuthenticationFailed"));
        let early = |request: Request| request.signed_at(scheme, KEY, &moment(16 * 60).rfc1123());
        matrix.try_all("a date to come", early, |_| Some("AuthenticationFailed"));
    }
}

#[test]
fn no_credentials() {
    let mut matrix = Matrix::new();
    matrix.try_all("nothing", |request| request, |_| Some("AuthenticationFailed"));
    let challenged = |request: Request| request.header("x-ms-version", "2020-12-06");
    matrix.try_all("nothing", challenged, |_| Some("NoAuthenticationInformation"));
    let bearer = |request: Request| request.header("Authorization", "Bearer token");
    matrix.try_all("a bearer token", bearer, |_| Some("AuthenticationFailed"));
}

/// A signature of one request does not fit another.
#[test]
fn a_signature_of_another_request() {
    let server = TestServer::with_tables(&[TABLE, "Other"]);
    let signed = Request::get("/People()").signed_with(Scheme::SharedKey, KEY);
    server.send_as_is(&signed).expect(200);
    for (what, changed) in [
        ("verb", Request { method: "DELETE".into(), ..signed.clone() }),
        ("path", Request { target: "/Other()".into(), ..signed.clone() }),
        ("comp", Request { target: "/People?comp=acl".into(), ..signed.clone() }),
        ("content type", signed.clone().header("Content-Type", "application/json")),
        ("date", signed.clone().header("x-ms-date", moment(60).rfc1123())),
        ("account", signed.clone().at(OTHER_ACCOUNT)),
    ] {
        assert_eq!(server.send_as_is(&changed).outcome(), (403, "AuthenticationFailed".to_owned()), "{what}");
    }
}

#[test]
fn account_signatures() {
    let mut matrix = Matrix::new();
    let all = "rwdlacup";
    let mut permissions: Vec<String> = all.chars().map(String::from).collect();
    permissions.extend(all.chars().map(|letter| all.replace(letter, "")));
    permissions.extend(["au", "cw", "rd"].map(String::from));
    permissions.push(all.to_owned());
    for permissions in &permissions {
        for resource_types in subsets("sco") {
            let sas = account_sas(&resource_types, permissions);
            matrix.try_all(
                &format!("an account signature of {resource_types} and {permissions}"),
                |request| request.sas(&sas),
                |operation| match operation.resource_types {
                    "" => Some("AuthorizationFailure"),
                    types if !types.chars().any(|letter| resource_types.contains(letter)) => {
                        Some(if operation.is_part() { "" } else { "AuthorizationResourceTypeMismatch" })
                    }
                    _ if !operation.suffices(permissions) => Some("AuthorizationPermissionMismatch"),
                    _ => None,
                },
            );
        }
    }
    let everything = || SasBuilder::account("bqf", "sco").permissions(all).expiry(moment(3600));
    let other_service = |request: Request| request.sas(&everything());
    matrix.try_all("a signature of other services", other_service, |_| Some("AuthorizationServiceMismatch"));
}

/// What a table's signature with these permissions is told.
fn of_table(permissions: &str) -> impl Fn(&Operation) -> Option<&'static str> + '_ {
    move |operation| match operation.table {
        false => Some("AuthorizationFailure"),
        true if !operation.suffices(permissions) => Some("AuthorizationPermissionMismatch"),
        true => None,
    }
}

#[test]
fn table_signatures() {
    let mut matrix = Matrix::new();
    for permissions in subsets("raud") {
        let sas = table_sas(TABLE, &permissions);
        let who = format!("a table signature of {permissions}");
        matrix.try_all(&who, |request| request.sas(&sas), of_table(&permissions));
        let by_key_two = |request: Request| request.sas_of(&sas, ACCOUNT, KEY_TWO);
        matrix.try_all(&who, by_key_two, of_table(&permissions));
    }
    for key in [WRONG_KEY, OTHER_KEY] {
        let sign = |request: Request| request.sas_of(&table_sas(TABLE, "raud"), ACCOUNT, key);
        matrix.try_all("a table signature of a wrong key", sign, |_| Some("AuthenticationFailed"));
    }
    // The table is part of what is signed, so another one is a failure to authenticate; in a batch it is found late.
    let other_table = |request: Request| request.sas(&table_sas("Persons", "raud"));
    matrix.try_all("a signature of another table", other_table, |operation| {
        let on_entities = operation.table && !operation.is_part();
        Some(if on_entities { "AuthenticationFailed" } else { "" })
    });
}

#[test]
fn policy_signatures() {
    let mut matrix = Matrix::new();
    let sas = SasBuilder::table(TABLE).policy("one");
    let sign = |request: Request| request.sas(&sas);
    matrix.try_all("an unknown policy", sign, |_| Some("AuthenticationFailed"));
    for permissions in subsets("raud") {
        let set = || Request::new("PUT", "/People?comp=acl").body(policy(&permissions));
        matrix.server.send(set()).expect(204);
        matrix.try_all(&format!("a policy of {permissions}"), sign, of_table(&permissions));
    }
    matrix.server.send(Request::new("PUT", "/People?comp=acl")).expect(204);
    matrix.try_all("a revoked policy", sign, |_| Some("AuthenticationFailed"));
}

fn read(server: &TestServer, sas: &SasBuilder) -> (u16, String) {
    server.send(Request::get("/People()").sas(sas)).outcome()
}

#[test]
fn times_addresses_protocols_and_names() {
    let server = TestServer::with_tables(&[TABLE]);
    let sas = || table_sas(TABLE, "r");
    let denied = "AuthenticationFailed";
    for (what, sas, code) in [
        ("now", sas(), ""),
        ("started", sas().start(moment(-60)), ""),
        ("not started", sas().start(moment(60)), denied),
        ("expired", sas().expiry(moment(-1)), denied),
        ("this machine", sas().addresses("127.0.0.1"), ""),
        ("a range with this machine", sas().addresses("127.0.0.0-127.0.0.9"), ""),
        ("another machine", sas().addresses("192.0.2.1"), "AuthorizationSourceIPMismatch"),
        ("a range without this machine", sas().addresses("127.0.0.2-127.0.0.9"), "AuthorizationSourceIPMismatch"),
        ("https only", sas().https_only(), "AuthorizationProtocolMismatch"),
        ("lower case", table_sas("people", "r"), ""),
        ("upper case", table_sas("PEOPLE", "r"), ""),
        ("another name", table_sas("Peoples", "r"), denied),
        ("the oldest version", sas().version("2012-02-12"), ""),
        ("a version to come", sas().version("2030-01-01"), ""),
    ] {
        let expected = (if code.is_empty() { 200 } else { 403 }, code.to_owned());
        assert_eq!(read(&server, &sas), expected, "{what}");
    }
    for table in ["people", "PEOPLE"] {
        server.send(Request::get(format!("/{table}()")).sas(&sas())).expect(200);
    }
}

/// Whatever is changed in a token after it was signed, it opens nothing.
#[test]
fn spoilt_tokens() {
    let server = TestServer::with_tables(&[TABLE]);
    let sas = table_sas(TABLE, "r").start(moment(-60)).start_keys("b", Some("1")).end_keys("c", Some("2"));
    let good = token(&sas.addresses("127.0.0.1"), ACCOUNT, KEY);
    server.send(Request::get("/People()").query(&good)).expect(200);
    let fields: Vec<&str> = good.split('&').collect();
    for field in &fields {
        let (name, value) = field.split_once('=').expect("a field has a value");
        let without = fields.iter().filter(|other| *other != field).copied().collect::<Vec<_>>().join("&");
        let mut attempts = vec![
            good.replace(field, &format!("{name}=")),
            good.replace(field, &format!("{name}={value}0")),
            format!("{good}&{field}"),
            format!("{name}=0&{good}"),
        ];
        // Without `sig` it is a request without credentials.
        attempts.push(without);
        for attempt in attempts {
            let response = server.send_as_is(&Request::get("/People()").query(&attempt));
            assert!(matches!(response.status, 400 | 401 | 403), "{attempt}: {response:?}");
        }
    }
}

/// The rows a1 .. d3, and ranges of keys with the rows they reach.
const GRID: [&str; 12] = ["a1", "a2", "a3", "b1", "b2", "b3", "c1", "c2", "c3", "d1", "d2", "d3"];
type End = Option<(&'static str, Option<&'static str>)>;
const RANGES: [(End, End, &str); 8] = [
    (Some(("b", Some("2"))), Some(("b", Some("3"))), "b2 b3"),
    (Some(("b", Some("2"))), Some(("d", Some("1"))), "b2 b3 c1 c2 c3 d1"),
    (Some(("b", None)), Some(("c", None)), "b1 b2 b3 c1 c2 c3"),
    (Some(("c", None)), None, "c1 c2 c3 d1 d2 d3"),
    (Some(("c", Some("3"))), None, "c3 d1 d2 d3"),
    (None, Some(("a", None)), "a1 a2 a3"),
    (None, Some(("b", Some("1"))), "a1 a2 a3 b1"),
    (Some(("x", None)), Some(("z", None)), ""),
];

fn ranged(permissions: &str, (start, end): (End, End)) -> SasBuilder {
    let mut sas = table_sas(TABLE, permissions);
    if let Some((partition_key, row_key)) = start {
        sas = sas.start_keys(partition_key, row_key);
    }
    if let Some((partition_key, row_key)) = end {
        sas = sas.end_keys(partition_key, row_key);
    }
    sas
}

fn grid() -> TestServer {
    let server = TestServer::with_tables(&[TABLE]);
    GRID.iter().for_each(|row| server.insert(TABLE, &row[..1], &row[1..]));
    server
}

fn with_slash(rows: &[&str]) -> String {
    rows.iter().map(|row| format!("{}/{}", &row[..1], &row[1..])).collect::<Vec<_>>().join(" ")
}

#[test]
fn ranges_of_keys_when_reading() {
    let server = grid();
    // Where a token of the key's pages leads: to each row, and beyond the last.
    let positions: Vec<String> = (1..GRID.len())
        .map(|top| {
            let page = server.send(Request::get(format!("/People()?$top={top}"))).expect(200);
            page.continuation().expect("there are more rows")
        })
        .collect();
    for (start, end, reached) in RANGES {
        let sas = ranged("r", (start, end));
        let reached: Vec<&str> = reached.split_whitespace().collect();
        let get = |query: &str| server.send(Request::get("/People()").query(query).sas(&sas)).expect(200);
        for filter in ["", "PartitionKey ge ''", "RowKey ge '1' or PartitionKey eq 'a'", "not (A eq 2)"] {
            assert_eq!(get(&format!("$filter={}", encode(filter))).rows(), with_slash(&reached), "{start:?} {end:?}");
        }
        // Page by page of one row, and every token stays in the range.
        let (mut found, mut query) = (Vec::new(), "$top=1".to_owned());
        loop {
            let page = get(&query);
            found.extend(page.rows().split_whitespace().map(|row| row.replace('/', "")));
            let Some(next) = page.continuation() else { break };
            query = format!("$top=1&{next}");
        }
        assert_eq!(found, reached, "{start:?} {end:?}");
        // Tokens made elsewhere do not lead out of it.
        for (position, first) in positions.iter().zip(1..) {
            let rest: Vec<&str> = GRID[first..].iter().filter(|row| reached.contains(row)).copied().collect();
            assert_eq!(get(position).rows(), with_slash(&rest), "{start:?} {end:?} from {}", GRID[first]);
        }
        for row in GRID {
            let point = Request::get(entity(TABLE, &row[..1], &row[1..]));
            let expected = if reached.contains(&row) { (200, "") } else { (403, "AuthorizationFailure") };
            let response = server.send(point.clone().sas(&sas));
            assert_eq!(response.outcome(), (expected.0, expected.1.to_owned()), "{row} of {start:?} {end:?}");
            if response.status == 403 {
                assert_eq!(response.header("x-ms-version"), Some(VERSION), "a late error carries the version");
            }
            let in_batch = part(&server.send(batch::query(&point).sas(&sas)));
            assert_eq!(in_batch.outcome(), (expected.0, expected.1.to_owned()), "{row} of {start:?} {end:?}");
        }
        let in_batch = part(&server.send(batch::query(&Request::get("/People()")).sas(&sas)));
        assert_eq!(in_batch.rows(), with_slash(&reached), "{start:?} {end:?}");
    }
}

#[test]
fn ranges_of_keys_when_writing() {
    let server = grid();
    for (start, end, reached) in RANGES {
        let sas = ranged("raud", (start, end));
        for row in GRID.into_iter().chain(["00", "b0", "b4", "e1", "B2"]) {
            let (partition_key, row_key) = (&row[..1], &row[1..]);
            let body = |more: &str| format!(r#"{{"PartitionKey":"{partition_key}","RowKey":"{row_key}"{more}}}"#);
            let at = |method: &str| Request::json(method, entity(TABLE, partition_key, row_key), body(r#","A":1"#));
            let writes = [
                if_match(at("PUT")),
                if_match(at("PATCH")),
                at("PUT"),
                at("MERGE"),
                if_match(Request::delete(entity(TABLE, partition_key, row_key))),
                Request::json("POST", "/People", body(r#","A":1"#)),
            ];
            // The whole sequence leaves a row as it was, so it can be done in any range; the rows beside the grid exist
            // only until the end of it.
            let allowed = reached.split_whitespace().any(|other| other == row) || between(row, start, end);
            let before = server.rows(TABLE);
            for write in &writes {
                for request in [write.clone(), change_set(std::slice::from_ref(write))] {
                    let is_batch = request.target == "/$batch";
                    let response = server.send(request.sas(&sas));
                    let answer = if is_batch { part(&response) } else { response };
                    if allowed {
                        assert_ne!(answer.status, 403, "{row} of {start:?} {end:?}: {answer:?}");
                    } else {
                        let expected = (403, "AuthorizationFailure".to_owned());
                        assert_eq!(answer.outcome(), expected, "{row} of {start:?} {end:?}");
                        assert_eq!(server.rows(TABLE), before);
                    }
                }
            }
            if !GRID.contains(&row) && allowed {
                let delete = if_match(Request::delete(entity(TABLE, partition_key, row_key)));
                server.send(delete).expect(204);
            }
        }
    }
    assert_eq!(server.rows(TABLE), with_slash(&GRID));
}

/// The rule of ranges in one line: pairs of keys compare as pairs.
fn between(row: &str, start: End, end: End) -> bool {
    let (partition_key, row_key) = (&row[..1], &row[1..]);
    let from = start.is_none_or(|(first, from)| (partition_key, row_key) >= (first, from.unwrap_or("")));
    let to = end.is_none_or(|(last, to)| (partition_key, row_key) <= (last, to.unwrap_or("\u{10ffff}")));
    from && to
}

/// One operation out of range refuses them all, wherever it stands.
#[test]
fn a_batch_that_leaves_the_range() {
    let server = grid();
    let sas = table_sas(TABLE, "raud").start_keys("b", Some("2")).end_keys("b", Some("7"));
    let put = |row_key: &str| Request::json("PUT", entity(TABLE, "b", row_key), "{}");
    for rows in [["1", "4", "5"], ["4", "1", "5"], ["4", "5", "8"]] {
        let response = server.send(change_set(&rows.map(put)).sas(&sas));
        assert_eq!(part(&response).outcome(), (403, "AuthorizationFailure".to_owned()), "{rows:?}");
    }
    assert_eq!(server.rows(TABLE), with_slash(&GRID));
    let response = server.send(change_set(&["4", "5", "7"].map(put)).sas(&sas));
    assert_eq!(parts(&response).iter().map(|part| part.status).collect::<Vec<_>>(), [204, 204, 204]);
}

/// Keys in the body of a change do not carry it out of the range: the URL names the entity.
#[test]
fn keys_in_the_body_of_a_change() {
    let server = grid();
    let sas = table_sas(TABLE, "raud").start_keys("b", None).end_keys("b", None);
    for method in ["PUT", "PATCH"] {
        let body = r#"{"PartitionKey":"z","RowKey":"9"}"#;
        server.send(Request::json(method, entity(TABLE, "b", "1"), body).sas(&sas));
    }
    assert_eq!(server.rows(TABLE), with_slash(&GRID));
}

/// With a batch of mixed operations a signature needs the permissions of all.
#[test]
fn a_batch_needs_all_permissions() {
    let server = TestServer::with_tables(&[TABLE, "Other"]);
    server.insert(TABLE, "p", "there");
    let operations = [insert(1), if_match(change("PUT")), if_match(Request::delete(entity(TABLE, "p", "none")))];
    for permissions in subsets("raud") {
        let response = server.send(change_set(&operations).sas(&table_sas(TABLE, &permissions)));
        let complete = "aud".chars().all(|letter| permissions.contains(letter));
        let expected = if complete { (404, "ResourceNotFound") } else { (403, "AuthorizationPermissionMismatch") };
        assert_eq!(part(&response).outcome(), (expected.0, expected.1.to_owned()), "{permissions}");
        assert_eq!(server.rows(TABLE), "p/there");
    }
    // A part cannot bring rights of its own, nor change to another table.
    let elsewhere = Request::json("POST", "/Other", r#"{"PartitionKey":"p","RowKey":"n"}"#);
    for operation in [elsewhere.clone(), elsewhere.signed(), insert(2).sas(&table_sas(TABLE, "raud"))] {
        let weak = if operation.target.starts_with("/Other") { "raud" } else { "r" };
        let response = server.send(change_set(&[operation]).sas(&table_sas(TABLE, weak)));
        assert_eq!(part(&response).status, 403, "{response:?}");
    }
    assert_eq!((server.rows(TABLE), server.rows("Other")), ("p/there".to_owned(), String::new()));
}

/// A table that is created again under its name does not take over who might use the one before.
#[test]
fn a_table_that_is_created_again() {
    let server = TestServer::with_tables(&[TABLE]);
    server.send(Request::new("PUT", "/People?comp=acl").body(policy("r"))).expect(204);
    let sas = SasBuilder::table(TABLE).policy("one");
    assert_eq!(read(&server, &sas).0, 200);
    server.send(Request::delete("/Tables('People')")).expect(204);
    assert_eq!(read(&server, &sas), (403, "AuthenticationFailed".to_owned()));
    server.create(TABLE);
    assert_eq!(read(&server, &sas), (403, "AuthenticationFailed".to_owned()));
    let policies = server.send(Request::get("/People?comp=acl")).expect(200);
    assert!(policies.text().ends_with("<SignedIdentifiers />"), "{policies:?}");
}

/// A policy takes effect, changes and ends with the request that sets it.
#[test]
fn a_policy_changes_at_once() {
    let server = TestServer::with_tables(&[TABLE]);
    let sas = SasBuilder::table(TABLE).policy("one");
    let set = |body: String| server.send(Request::new("PUT", "/People?comp=acl").body(body)).expect(204);
    for _ in 0..3 {
        set(policy("r"));
        assert_eq!(read(&server, &sas).0, 200);
        set(policy("a"));
        assert_eq!(read(&server, &sas), (403, "AuthorizationPermissionMismatch".to_owned()));
        set(String::new());
        assert_eq!(read(&server, &sas), (403, "AuthenticationFailed".to_owned()));
    }
    // What the policy says, the token may not say as well.
    set(policy("r"));
    assert_eq!(read(&server, &sas.clone().permissions("r")), (403, "AuthenticationFailed".to_owned()));
    assert_eq!(read(&server, &sas.clone().expiry(moment(60))), (403, "AuthenticationFailed".to_owned()));
}

/// The secondary endpoint serves what is there and takes nothing.
#[test]
fn the_secondary_is_for_reading() {
    let server = TestServer::with_tables(&[TABLE, "Doomed"]);
    server.insert(TABLE, "p", "there");
    server.insert(TABLE, "p", "doomed");
    for (n, operation) in OPERATIONS.iter().enumerate() {
        let request = (operation.request)(n).at(SECONDARY);
        if operation.is_part() && operation.permissions == ["r"] {
            // Whether the secondary takes a query in a batch is not known of the service.
            continue;
        }
        let writes = request.method != "GET";
        let response: Response = server.send(request);
        if writes {
            assert_eq!(response.outcome(), (403, "InsufficientAccountPermissions".to_owned()), "{}", operation.name);
        } else {
            assert_eq!(response.status, 200, "{}: {response:?}", operation.name);
        }
    }
    assert_eq!(server.rows(TABLE), "p/doomed p/there");
}

/// Nothing of one account is seen or reached through another.
#[test]
fn accounts_are_apart() {
    let server = TestServer::with_tables(&[TABLE]);
    server.insert(TABLE, "p", "there");
    let properties = "<StorageServiceProperties><Cors><CorsRule><AllowedOrigins>*</AllowedOrigins>\
        <AllowedMethods>GET</AllowedMethods><MaxAgeInSeconds>1</MaxAgeInSeconds><ExposedHeaders/><AllowedHeaders/>\
        </CorsRule></Cors></StorageServiceProperties>";
    server.send(Request::new("PUT", "/?restype=service&comp=properties").body(properties)).expect(202);

    let other = |request: Request| server.send(request.at(OTHER_ACCOUNT));
    assert_eq!(other(Request::get("/Tables")).expect(200).text(), r#"{"value":[]}"#);
    assert_eq!(other(Request::get("/People()")).outcome(), (404, "TableNotFound".to_owned()));
    assert_eq!(other(Request::delete("/Tables('People')")).outcome(), (404, "ResourceNotFound".to_owned()));
    assert!(!other(Request::get("/?restype=service&comp=properties")).expect(200).text().contains("CorsRule>"));

    // The same name in both is two tables.
    other(Request::json("POST", "/Tables", r#"{"TableName":"People"}"#)).expect(201);
    assert_eq!(other(Request::get("/People()")).expect(200).rows(), "");
    assert_eq!(server.rows(TABLE), "p/there");

    // Credentials of one are none for the other, whatever the URL of a part says.
    for request in [
        Request::get("/People()").at(OTHER_ACCOUNT).sas_of(&table_sas(TABLE, "r"), ACCOUNT, KEY),
        Request::get("/People()").at(OTHER_ACCOUNT).sas_of(&account_sas("sco", "r"), ACCOUNT, KEY),
        Request::get("/People()").at(OTHER_ACCOUNT).signed_with(Scheme::SharedKeyLite, KEY),
        Request::get("/People()").sas_of(&table_sas(TABLE, "r"), OTHER_ACCOUNT, OTHER_KEY),
    ] {
        assert_eq!(server.send_as_is(&request).outcome(), (403, "AuthenticationFailed".to_owned()), "{request:?}");
    }
    let borrowed = Request::get("/People()").signed().at(OTHER_ACCOUNT);
    assert_eq!(server.send_as_is(&borrowed).outcome(), (403, "AuthenticationFailed".to_owned()));
    let foreign = change_set(&[insert(1)]).at(OTHER_ACCOUNT);
    server.send(foreign);
    assert_eq!(server.rows(TABLE), "p/there");
}

/// The account of host style is the one whose key is asked for.
#[test]
fn host_style() {
    let server = TestServer::with_tables(&[TABLE]);
    let date = moment(0).rfc1123();
    let send = |host: &str, key: &str| {
        // The path has no account in front, but what is signed does.
        let account = host.split('.').next().unwrap_or_default().trim_end_matches("-secondary");
        let key = AccountKey::parse(key).expect("a key of the tests");
        let signature = format!("SharedKeyLite {account}:{}", sign(&key, &format!("{date}\n/{account}/Tables")));
        let head = format!(
            "GET /Tables HTTP/1.1\r\nHost: {host}\r\nAccept: application/json;odata=nometadata\r\nx-ms-date: {date}\r\n\
             Authorization: {signature}\r\n\r\n"
        );
        server.connect().exchange(head.as_bytes())
    };
    let mine = send(&format!("{ACCOUNT}.table.localhost"), KEY).expect(200);
    assert_eq!(mine.text(), r#"{"value":[{"TableName":"People"}]}"#);
    let mine = send(&format!("{SECONDARY}.table.localhost"), KEY).expect(200);
    assert_eq!(mine.text(), r#"{"value":[{"TableName":"People"}]}"#);
    assert_eq!(send(&format!("{OTHER_ACCOUNT}.table.localhost"), OTHER_KEY).expect(200).text(), r#"{"value":[]}"#);
    send(&format!("{OTHER_ACCOUNT}.table.localhost"), KEY).expect(403);
}

/// A host that is an IP address is path style, even where an account is called like its first number.
#[test]
fn an_address_is_no_account() {
    let server = TestServer::with(|settings| {
        settings.accounts.insert("127".into(), vec![OTHER_KEY.into()]);
    });
    server.create(TABLE);
    let listed = server.send(Request::get("/Tables")).expect(200);
    assert_eq!(listed.text(), r#"{"value":[{"TableName":"People"}]}"#);
}
