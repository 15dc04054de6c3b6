//! Servers on one database: what is done on one is known to the others, and a dropped table takes no writes.

use partita_auth::SasBuilder;
use partita_table::KNOWN_WITHIN;
use partita_testing::batch::{change_set, part, query};
use partita_testing::http::{Connection, Request, Response, entity};
use partita_testing::postgres::Postgres;
use partita_testing::process::Process;
use partita_testing::server::TestServer;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const TABLE: &str = "People";
/// What a busy machine may need beyond the time within which nodes know of everything.
const SLACK: Duration = Duration::from_secs(9);

fn two_nodes() -> Option<[TestServer; 2]> {
    let url = Postgres::shared()?.database();
    Some([TestServer::on_database(&url), TestServer::on_database(&url)])
}

fn drop_table(node: &TestServer) {
    node.send(Request::delete(format!("/Tables('{TABLE}')"))).expect(204);
}

fn insert(row_key: &str) -> Request {
    let body = format!(r#"{{"PartitionKey":"p","RowKey":"{row_key}"}}"#);
    Request::json("POST", format!("/{TABLE}"), body)
}

/// Asks until the answer is right, which it is within the time within which nodes know of everything.
#[track_caller]
fn until(ask: impl Fn() -> Response, is_right: impl Fn(&Response) -> bool) {
    let begun = Instant::now();
    loop {
        let asked = begun.elapsed();
        let response = ask();
        if is_right(&response) {
            return;
        }
        assert!(asked < KNOWN_WITHIN + SLACK, "still {response:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// No node says that there is no table when there is one, whatever is asked for.
#[test]
fn a_table_that_one_node_creates_is_there_on_the_other_at_once() {
    let requests: [(&str, Request); 7] = [
        ("insert", insert("r")),
        ("query", Request::get(format!("/{TABLE}()"))),
        ("change set", change_set(&[insert("r")])),
        ("query in a batch", query(&Request::get(format!("/{TABLE}()")))),
        ("table", Request::get(format!("/Tables('{TABLE}')"))),
        ("policies", Request::get(format!("/{TABLE}?comp=acl"))),
        ("drop", Request::delete(format!("/Tables('{TABLE}')"))),
    ];
    let Some([left, right]) = two_nodes() else { return };
    for (name, request) in requests {
        left.create(TABLE);
        let response = right.send(request);
        let status = if response.status == 202 { part(&response).status } else { response.status };
        assert!((200..300).contains(&status), "{name}: {response:?}");
        if name != "drop" {
            drop_table(&right);
        }
    }
    left.create(TABLE);
    let again = right.send(Request::json("POST", "/Tables", format!(r#"{{"TableName":"{TABLE}"}}"#)));
    assert_eq!(again.outcome(), (409, "TableAlreadyExists".to_owned()));
}

#[test]
fn a_table_that_one_node_drops_is_gone_on_the_other_at_once() {
    let Some([left, right]) = two_nodes() else { return };
    left.create(TABLE);
    right.insert(TABLE, "p", "old");
    drop_table(&left);
    let gone = |response: Response| assert_eq!(response.outcome(), (404, "TableNotFound".to_owned()));
    gone(right.send(insert("r")));
    gone(right.send(Request::get(entity(TABLE, "p", "old"))));
    gone(right.send(Request::get(format!("/{TABLE}()"))));
    gone(part(&right.send(change_set(&[insert("r")]))));

    // A table of the same name is another one, and the node that knew the old one finds it.
    right.create(TABLE);
    right.insert(TABLE, "p", "older");
    drop_table(&left);
    left.create(TABLE);
    right.insert(TABLE, "p", "new");
    assert_eq!(left.rows(TABLE), right.rows(TABLE));
    assert!(left.rows(TABLE).contains("new") && !left.rows(TABLE).contains("old"), "{}", left.rows(TABLE));
}

/// Nodes that create and drop at the same time do as if one came behind the other.
#[test]
fn tables_are_created_and_dropped_on_both_at_once() {
    let Some(nodes) = two_nodes() else { return };
    let addresses = [nodes[0].address, nodes[1].address];
    for _ in 0..10 {
        let both = |request: Request| {
            let statuses = std::thread::scope(|scope| {
                let ask = |address| {
                    let request = request.clone().signed();
                    move || Connection::open(address).send(&request).status
                };
                addresses.map(|address| scope.spawn(ask(address))).map(|thread| thread.join().expect("it is answered"))
            });
            (statuses[0].min(statuses[1]), statuses[0].max(statuses[1]))
        };
        assert_eq!(both(Request::json("POST", "/Tables", format!(r#"{{"TableName":"{TABLE}"}}"#))), (201, 409));
        assert_eq!(both(Request::delete(format!("/Tables('{TABLE}')"))), (204, 404));
    }
}

const POLICY: &str = "<SignedIdentifiers><SignedIdentifier><Id>one</Id><AccessPolicy><Expiry>2999-01-01T00:00:00Z</Expiry>\
                      <Permission>r</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>";

fn set_policies(policies: &str) -> Request {
    Request::new("PUT", format!("/{TABLE}?comp=acl")).body(policies)
}

/// A query that a policy must allow.
fn query_by_policy() -> Request {
    Request::get(format!("/{TABLE}()")).sas(&SasBuilder::table(TABLE).policy("one"))
}

/// Policies, lists of tables and service properties are known to all nodes within a bound.
#[test]
fn what_one_process_sets_the_others_obey_in_time() {
    let Some(postgres) = Postgres::shared() else { return };
    let store = format!("--store={}", postgres.database());
    let [left, others @ ..] = [(); 3].map(|()| Process::start(&[&store, "--silent"]));
    // The time until all of them are right.
    let all = |request: Request, is_right: &dyn Fn(&Response) -> bool| {
        let begun = Instant::now();
        others.iter().for_each(|node| until(|| node.connect().send(&request), is_right));
        begun.elapsed()
    };
    left.send(Request::json("POST", "/Tables", format!(r#"{{"TableName":"{TABLE}"}}"#))).expect(201);
    let tables = all(Request::get("/Tables").signed(), &|response| response.text().contains(TABLE));

    left.send(set_policies(POLICY)).expect(204);
    let granted = all(query_by_policy(), &|response| response.status == 200);
    left.send(set_policies("")).expect(204);
    let revoked = all(query_by_policy(), &|response| response.status == 403);

    let preflight = Request::new("OPTIONS", format!("/{TABLE}()"))
        .header("Origin", "http://example.com")
        .header("Access-Control-Request-Method", "GET");
    let set_rule = |rule: &str| {
        let properties = format!("<StorageServiceProperties><Cors>{rule}</Cors></StorageServiceProperties>");
        left.send(Request::new("PUT", "/?restype=service&comp=properties").body(properties)).expect(202);
    };
    assert!(others.iter().all(|node| node.connect().send(&preflight).status == 403));
    set_rule(
        "<CorsRule><AllowedOrigins>*</AllowedOrigins><AllowedMethods>GET</AllowedMethods>\
         <MaxAgeInSeconds>1</MaxAgeInSeconds><ExposedHeaders/><AllowedHeaders/></CorsRule>",
    );
    let allowed = all(preflight.clone(), &|response| response.status == 200);
    set_rule("");
    let forbidden = all(preflight, &|response| response.status == 403);
    println!("tables {tables:?}, policy {granted:?}, {revoked:?}, CORS {allowed:?}, {forbidden:?}");
}

/// A table that was dropped and created again is another one, and policies of the old one open nothing in it, not even for a
/// request that a node let pass before it knew.
#[test]
fn policies_of_a_dropped_table_do_not_open_its_successor() {
    let Some([left, right]) = two_nodes() else { return };
    let in_batch = query(&Request::get(format!("/{TABLE}()"))).sas(&SasBuilder::table(TABLE).policy("one"));
    for request in [query_by_policy(), in_batch] {
        left.create(TABLE);
        left.send(set_policies(POLICY)).expect(204);
        let status = |response: &Response| if response.status == 202 { part(response).status } else { response.status };
        until(|| right.send_as_is(&request), |response| status(response) == 200);
        drop_table(&left);
        left.create(TABLE);
        left.insert(TABLE, "p", "secret");
        let refused = right.send_as_is(&request);
        assert_eq!(status(&refused), 403, "{refused:?}");
        drop_table(&left);
    }
}

/// Tells the writers that it is over, however it ends.
struct Over<'a>(&'a AtomicUsize);

const OVER: usize = usize::MAX;

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(OVER, Ordering::SeqCst);
    }
}

/// While one node creates and drops a table over and over, others write through another. No row that was acknowledged
/// before a table was created is in it, and none is acknowledged while there is no table.
#[test]
fn a_dropped_table_takes_no_writes() {
    const NO_TABLE: usize = 0;
    const CREATED: usize = 1;
    const THERE: usize = 2;
    const DROPPED: usize = 3;
    let Some([left, right]) = two_nodes() else { return };
    // Four for each round, in this order.
    let phase = AtomicUsize::new(NO_TABLE);
    let acknowledged: Mutex<Vec<(String, usize)>> = Mutex::default();
    let address = right.address;
    std::thread::scope(|scope| {
        let _over = Over(&phase);
        for writer in 0..3 {
            let (phase, acknowledged) = (&phase, &acknowledged);
            scope.spawn(move || {
                let mut connection = Connection::open(address);
                for number in 0.. {
                    let begun = phase.load(Ordering::SeqCst);
                    if begun == OVER {
                        return;
                    }
                    let row_key = format!("{writer}-{number}");
                    let response = connection.send(&insert(&row_key).signed());
                    let ended = phase.load(Ordering::SeqCst);
                    let during = (begun == ended).then_some(begun % 4);
                    match response.status {
                        201 => {
                            assert_ne!(during, Some(NO_TABLE), "{row_key} was written");
                            acknowledged.lock().expect("nobody panicked").push((row_key, ended));
                        }
                        404 => assert_ne!(during, Some(THERE), "{response:?}"),
                        _ => panic!("{response:?}"),
                    }
                }
            });
        }
        for round in 0..15 {
            let enter = |part: usize| phase.store(4 * round + part, Ordering::SeqCst);
            enter(NO_TABLE);
            let before = acknowledged.lock().expect("nobody panicked").clone();
            enter(CREATED);
            left.create(TABLE);
            enter(THERE);
            let rows = format!("{} ", left.rows(TABLE));
            for (row_key, ended) in before.iter().filter(|(_, ended)| *ended <= 4 * round) {
                assert!(!rows.contains(&format!("p/{row_key} ")), "{row_key} of {ended} is in round {round}");
            }
            until(|| left.send(Request::get(format!("/{TABLE}()?$top=1"))), |page| page.text().contains("RowKey"));
            enter(DROPPED);
            drop_table(&left);
        }
    });
}
