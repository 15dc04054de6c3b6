//! A server whose database is slow, silent, cut off, read-only or full: it answers in bounded time that it is busy or that it does not know,
//! nothing else, and goes on by itself. What the engine makes of each is tested in `store-postgres`.

use partita_testing::http::{Connection, PATIENCE, Request, Response, ask_admin, entity};
use partita_testing::postgres::Postgres;
use partita_testing::proxy::{Mode, Proxy};
use partita_testing::server::TestServer;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const TABLE: &str = "People";

fn insert(row_key: &str) -> Request {
    let body = format!(r#"{{"PartitionKey":"p","RowKey":"{row_key}"}}"#);
    Request::json("POST", format!("/{TABLE}"), body)
}

fn get(row_key: &str) -> Request {
    Request::get(entity(TABLE, "p", row_key))
}

/// Asks until the answer is a success.
#[track_caller]
fn until_it_works(server: &TestServer, request: &Request) -> Response {
    let begun = Instant::now();
    loop {
        let response = server.send(request.clone());
        if response.status < 300 {
            return response;
        }
        assert!(is_trouble(&response), "{response:?}");
        assert!(begun.elapsed() < PATIENCE, "still {response:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Whether it is what a server says that cannot do what it should: that nothing was done, or that nobody knows.
fn is_trouble(response: &Response) -> bool {
    let outcome = response.outcome();
    matches!((outcome.0, outcome.1.as_str()), (503, "ServerBusy") | (500, "OperationTimedOut"))
}

/// Asks whether it is ready until the answer is this one, and never waits for one much longer than two seconds.
#[track_caller]
fn until_ready_is(admin: SocketAddr, status: u16) -> Response {
    let begun = Instant::now();
    loop {
        let asked = Instant::now();
        let response = ask_admin(admin, "/readyz");
        assert!(asked.elapsed() < Duration::from_secs(10), "{:?} for {response:?}", asked.elapsed());
        if response.status == status {
            return response;
        }
        assert!(begun.elapsed() < PATIENCE, "still {response:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A server with a table behind a proxy.
fn server_behind_proxy(parameters: &str) -> Option<(TestServer, Proxy)> {
    let url = Postgres::shared()?.database();
    let (_, place) = url.split_once('@').expect("a URL with a user");
    let (host, database) = place.split_once('/').expect("a URL with a database");
    let proxy = Proxy::to(host.parse().expect("an address"));
    let server = TestServer::on_database(&format!("postgres://postgres@{}/{database}{parameters}", proxy.address));
    server.create(TABLE);
    Some((server, proxy))
}

#[test]
fn a_slow_database_is_waited_for() {
    let Some((server, proxy)) = server_behind_proxy("") else { return };
    proxy.set(Mode::Delay(Duration::from_millis(100)));
    server.send(insert("r")).expect(201);
    server.send(get("r")).expect(200);
    assert_eq!(server.rows(TABLE), "p/r");
}

/// Whoever waits for a database that says nothing is answered when the time of the request is over, and not before its
/// outcome is unknown.
#[test]
fn a_silent_database_is_not_waited_for_longer_than_asked() {
    let Some((server, proxy)) = server_behind_proxy("") else { return };
    server.send(insert("before")).expect(201);
    proxy.set(Mode::Hold);
    let admin = server.admin;
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(move || {
                let unready = until_ready_is(admin, 503);
                assert_eq!(unready.text(), "the database does not answer\n");
            });
        }
    });
    ask_admin(server.admin, "/livez").expect(200);
    let timed_out = (500, "OperationTimedOut".to_owned());
    for request in [insert("during"), get("before")] {
        let asked = Instant::now();
        assert_eq!(server.send(request.query("timeout=1")).outcome(), timed_out);
        // The engine by itself takes longer to give a database up.
        assert!(asked.elapsed() < Duration::from_secs(20), "{:?}", asked.elapsed());
    }
    proxy.set(Mode::Pass);
    until_ready_is(server.admin, 200);
    until_it_works(&server, &get("before"));
    until_it_works(&server, &insert("behind"));
}

/// Whoever spreads requests over nodes learns which of them has lost its database, and when it is back; nobody has to send a
/// request for that.
#[test]
fn a_node_without_its_database_is_not_ready() {
    let Some(postgres) = Postgres::start() else { return };
    let url = postgres.database().replace("postgres@", "postgres:s3cret@");
    let server = TestServer::on_database(&url);
    ask_admin(server.admin, "/readyz").expect(200);
    for mode in ["fast", "immediate"] {
        postgres.stop(mode);
        let why = until_ready_is(server.admin, 503).text();
        assert!(why.starts_with("no connection to the database: "), "{why}");
        assert!(!why.contains("s3cret"), "{why}");
        ask_admin(server.admin, "/livez").expect(200);
        postgres.start_again();
        until_ready_is(server.admin, 200);
    }
    server.create(TABLE);
}

/// Whoever has the only connection is stuck, and all others are told so long before their time is over.
#[test]
fn when_all_connections_are_stuck_others_are_told() {
    let Some((server, proxy)) = server_behind_proxy("?connections=1") else { return };
    until_it_works(&server, &insert("before"));
    proxy.set(Mode::Hold);
    let address = server.address;
    let ask = |request: Request| move || Connection::open(address).send(&request.query("timeout=12").signed());
    let answers = std::thread::scope(|scope| {
        let both = [scope.spawn(ask(insert("during"))), scope.spawn(ask(get("before")))];
        both.map(|thread| thread.join().expect("it is answered"))
    });
    assert!(answers.iter().all(is_trouble), "{answers:?}");
    assert!(answers.iter().any(|answer| answer.status == 503), "{answers:?}");
    proxy.set(Mode::Pass);
    until_it_works(&server, &get("before"));
    until_it_works(&server, &insert("behind"));
}

/// Connections are cut over and over in the middle of work. What was acknowledged is there, what was refused is not, and
/// for the rest the client was told that nobody knows.
#[test]
fn connections_that_are_cut_lose_nothing() {
    const CUTS: usize = 15;
    let Some((server, proxy)) = server_behind_proxy("") else { return };
    let (acknowledged, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let answers: Mutex<BTreeMap<String, u16>> = Mutex::default();
    let address = server.address;
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let (acknowledged, is_over, answers) = (&acknowledged, &is_over, &answers);
            scope.spawn(move || {
                let mut connection = Connection::open(address);
                for number in 0.. {
                    if is_over.load(Ordering::SeqCst) {
                        return;
                    }
                    let row_key = format!("{writer}-{number}");
                    let response = connection.send(&insert(&row_key).signed());
                    assert!(response.status == 201 || is_trouble(&response), "{response:?}");
                    acknowledged.fetch_add(usize::from(response.status == 201), Ordering::SeqCst);
                    answers.lock().expect("nobody panicked").insert(row_key, response.status);
                }
            });
        }
        for _ in 0..CUTS {
            let (begun, target) = (Instant::now(), acknowledged.load(Ordering::SeqCst) + 20);
            while acknowledged.load(Ordering::SeqCst) < target && begun.elapsed() < PATIENCE {
                std::thread::sleep(Duration::from_millis(1));
            }
            proxy.cut();
        }
        is_over.store(true, Ordering::SeqCst);
    });
    let answers = answers.into_inner().expect("nobody panicked");
    let with = |status| answers.values().filter(|answer| **answer == status).count();
    println!("{} acknowledged, {} unknown, {} refused", with(201), with(500), with(503));
    assert!(with(201) >= CUTS * 20, "nothing is written any more");
    for (row_key, status) in &answers {
        let found = server.send(get(row_key)).status;
        match status {
            201 => assert_eq!(found, 200, "{row_key} was acknowledged"),
            503 => assert_eq!(found, 404, "{row_key} was refused"),
            _ => assert!(found == 200 || found == 404, "{row_key}: {found}"),
        }
    }
}

#[test]
fn a_read_only_database_is_said_to_be_busy() {
    let Some(postgres) = Postgres::shared() else { return };
    let url = postgres.database();
    let server = TestServer::on_database(&url);
    server.create(TABLE);
    let name = url.rsplit('/').next().expect("a URL has a database");
    let set_read_only = |value: &str| {
        Postgres::sql(
            &postgres.url("postgres"),
            &format!("ALTER DATABASE {name} SET default_transaction_read_only = {value}"),
        );
        let others = format!("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = '{name}'");
        Postgres::sql(&postgres.url("postgres"), &others);
    };
    set_read_only("on");
    // A connection may be ended with a statement on it.
    let mut answers = (0..10).map(|_| server.send(insert("r")));
    let is_busy = |answer: Response| {
        assert!(is_trouble(&answer), "{answer:?}");
        answer.status == 503
    };
    assert!(answers.any(is_busy), "nobody was told that it is busy");
    let unready = until_ready_is(server.admin, 503).text();
    assert!(unready.contains("does not allow writes"), "{unready}");
    set_read_only("off");
    until_ready_is(server.admin, 200);
    until_it_works(&server, &insert("s"));
    assert_eq!(server.rows(TABLE), "p/s");
}

#[test]
fn a_full_disk_loses_nothing() {
    let Some((_postgres, url)) = Postgres::on_small_disk(16) else { return };
    let server = TestServer::on_database(&url);
    server.create(TABLE);
    let value = "x".repeat(30_000);
    let large = |row_key: &str| {
        let body = format!(r#"{{"PartitionKey":"p","RowKey":"{row_key}","A":"{value}"}}"#);
        Request::json("POST", format!("/{TABLE}"), body)
    };
    server.send(large("before")).expect(201);
    Postgres::sql(&url, "CREATE TABLE ballast (x text) WITH (autovacuum_enabled = off)");
    // What does not fit is given back, so less and less is tried.
    for rows in [10_000, 100, 1] {
        let fill = format!("INSERT INTO ballast SELECT repeat('x', 1900) FROM generate_series(1, {rows})");
        let error =
            (0..1000).find_map(|_| Postgres::try_sql(&url, &fill).err()).expect("there is no room for all this");
        assert!(error.contains("No space left"), "{error}");
    }
    // A few rows may find room in pages that are there.
    let mut acknowledged = vec!["before".to_owned()];
    let refused = (0..1000).find_map(|number| {
        let row_key = format!("r{number}");
        let response = server.send(large(&row_key));
        match response.status {
            201 => acknowledged.push(row_key),
            _ => return Some(response),
        }
        None
    });
    let refused = refused.expect("the disk is full");
    assert_eq!(refused.outcome(), (503, "ServerBusy".to_owned()));
    for row_key in &acknowledged {
        server.send(get(row_key)).expect(200);
    }
    Postgres::sql(&url, "DROP TABLE ballast");
    until_it_works(&server, &large("behind"));
    for row_key in &acknowledged {
        server.send(get(row_key)).expect(200);
    }
}
