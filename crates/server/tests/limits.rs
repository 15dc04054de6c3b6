//! Limits: what is too large, too much, too slow or no HTTP at all is refused, and never disturbs anybody else.

use partita_testing::batch::{batch, change_set, parts};
use partita_testing::http::{Connection, Request, Response, encode, entity, tcp};
use partita_testing::server::TestServer;
use partita_testing::signing::table_sas;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::time::Duration;

const TABLE: &str = "People";
const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;

fn server() -> TestServer {
    TestServer::with_tables(&[TABLE])
}

fn insert(row_key: &str) -> Request {
    Request::json("POST", "/People", format!(r#"{{"PartitionKey":"p","RowKey":"{row_key}","A":1}}"#))
}

/// An insert whose body is padded with white space.
fn padded(row_key: &str, bytes: usize) -> Request {
    let mut request = insert(row_key);
    request.body.resize(bytes, b' ');
    request
}

/// Fails unless the server still does its work.
#[track_caller]
fn is_well(server: &TestServer) {
    server.connect().send(&Request::get("/Tables('People')").signed()).expect(200);
}

#[test]
fn bodies() {
    let server = server();
    for (row_key, bytes, outcome) in
        [("max", BODY_BYTES_MAX, (201, "")), ("over", BODY_BYTES_MAX + 1, (413, "RequestBodyTooLarge"))]
    {
        let request = padded(row_key, bytes).signed();
        let outcome = (outcome.0, outcome.1.to_owned());
        assert_eq!(server.connect().send(&request).outcome(), outcome, "{bytes} bytes");
        let request = padded(&format!("chunked-{row_key}"), bytes).signed();
        assert_eq!(server.connect().exchange(&request.chunked(10_000)).outcome(), outcome, "{bytes} bytes in chunks");
    }
    assert_eq!(server.rows(TABLE), "p/chunked-max p/max");
    // Far more than is ever read: the answer comes, or the connection ends, and nothing is stored.
    let mut connection = server.connect();
    let head = format!("{}Content-Length: 99999999999\r\n\r\n", insert("huge").signed().head());
    connection.write(head.as_bytes()).expect("the server reads");
    let chunk = vec![b' '; 1 << 20];
    let mut written = 0;
    while connection.write(&chunk).is_ok() {
        written += chunk.len();
        assert!(written < 1 << 30, "the server reads without end");
    }
    assert_eq!(server.rows(TABLE), "p/chunked-max p/max");
    is_well(&server);
}

#[test]
fn chunks_of_a_byte() {
    let server = server();
    server.connect().exchange(&insert("r").signed().chunked(1)).expect(201);
    let mut connection = server.connect();
    let request = insert("bad").signed();
    let bytes = format!("{}Transfer-Encoding: chunked\r\n\r\nxyz\r\n", request.head());
    connection.write(bytes.as_bytes()).expect("the server reads");
    refused_or_closed(&mut connection);
    assert_eq!(server.rows(TABLE), "p/r");
}

/// A response of a bad request, or none at all.
#[track_caller]
fn refused_or_closed(connection: &mut Connection) {
    if let Ok(response) = connection.read() {
        assert!((400..500).contains(&response.status), "{response:?}");
    }
}

#[test]
fn targets() {
    let server = server();
    let long = |bytes: usize| Request::get("/Tables").query(&format!("x={}", "y".repeat(bytes))).signed();
    server.connect().send(&long(32 * 1024)).expect(200);
    for bytes in [65 * 1024, 100 * 1024] {
        let mut connection = server.connect();
        connection.write(&long(bytes).bytes()).expect("the server reads");
        let response = connection.read().expect("an answer");
        assert!(matches!(response.status, 400 | 414 | 431), "{bytes}: {response:?}");
    }
    // A filter as long as Azure takes.
    let clauses: Vec<String> = (0..1400).map(|number| format!("RowKey eq 'row{number:05}'")).collect();
    let filter = clauses.join(" or ").replace(' ', "+");
    assert!(filter.len() > 32_000, "{}", filter.len());
    server.connect().send(&Request::get(format!("/People()?$filter={filter}")).signed()).expect(200);
    is_well(&server);
}

#[test]
fn headers() {
    let server = server();
    let with = |count: usize, bytes: usize| {
        let mut request = Request::get("/Tables").signed();
        (0..count).for_each(|number| request.headers.push((format!("x-{number}"), "v".repeat(bytes))));
        request
    };
    server.connect().send(&with(90, 1)).expect(200);
    server.connect().send(&with(10, 8 * 1024)).expect(200);
    for (count, bytes) in [(101, 1), (1000, 1), (1, 200 * 1024), (80, 2 * 1024)] {
        let mut connection = server.connect();
        // The server may close before it has read everything.
        let _ = connection.write(&with(count, bytes).bytes());
        refused_or_closed(&mut connection);
    }
    let named = |bytes: usize| Request::get("/Tables").header("x-ms-client-request-id", "i".repeat(bytes));
    server.send(named(1024)).expect(200);
    assert_eq!(server.send(named(1025)).outcome(), (400, "InvalidHeaderValue".to_owned()));
    is_well(&server);
}

#[test]
fn a_body_that_stops_half_way() {
    let server = server();
    let request = insert("half").signed();
    let bytes = request.bytes();
    let chunked = request.chunked(10);
    for sent in [&bytes[..bytes.len() - 1], &bytes[..bytes.len() - request.body.len()], &chunked[..chunked.len() - 7]] {
        let mut stream = tcp(server.address);
        stream.write_all(sent).expect("the server reads");
        stream.shutdown(Shutdown::Write).expect("a connection can be half closed");
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 400"), "{}", String::from_utf8_lossy(&answer));
    }
    assert_eq!(server.rows(TABLE), "");
}

#[test]
fn slow_clients_hold_up_nobody() {
    let server = server();
    let bytes = insert("slow").signed().bytes();
    let mut slow = Vec::new();
    for number in 0..100 {
        let mut stream = tcp(server.address);
        let sent = if number % 2 == 0 { 20 } else { bytes.len() - 3 };
        stream.write_all(&bytes[..sent]).expect("the server reads");
        slow.push(stream);
    }
    for number in 0..20 {
        server.connect().send(&insert(&format!("r{number}")).signed()).expect(201);
    }
    // One that does go on is served.
    slow[1].write_all(&bytes[bytes.len() - 3..]).expect("the server reads");
    Connection::over(slow.remove(1)).read().expect("an answer").expect(201);
}

#[test]
fn idle_connections() {
    // Both ends are in this process.
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let open_files = limits.lines().find_map(|line| line.strip_prefix("Max open files")?.split_whitespace().next());
    let count = open_files.and_then(|limit| limit.parse().ok()).map_or(1000, |limit: usize| 1000.min(limit / 2 - 100));
    let server = server();
    let mut idle: Vec<Connection> = (0..count).map(|_| server.connect()).collect();
    for connection in idle.iter_mut().step_by(2) {
        connection.send(&Request::get("/Tables").signed()).expect(200);
    }
    is_well(&server);
    for connection in &mut idle {
        connection.send(&Request::get("/Tables").signed()).expect(200);
    }
}

/// A connection on which nothing happens is not kept for ever, whatever it stopped at.
#[test]
fn silent_connections_are_closed() {
    let server = TestServer::with(|settings| settings.keep_alive_seconds = Some(1));
    let served = Request::get("/Tables").signed().bytes();
    let address = server.address;
    let closes = |bytes: &[u8]| {
        let mut stream = tcp(address);
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a socket takes a timeout");
        stream.write_all(bytes).expect("the server reads");
        stream.read_to_end(&mut Vec::new()).is_ok()
    };
    let stops = [
        ("half a head", &b"GET /devstoreaccount1/Tables HTTP/1.1\r\nHost"[..]),
        ("after a request", &served),
        ("one letter", b"P"),
        ("nothing", b""),
    ];
    let kept: Vec<&str> = std::thread::scope(|scope| {
        let waiting = stops.map(|(what, bytes)| (what, scope.spawn(move || closes(bytes))));
        let kept = waiting.into_iter().filter_map(|(what, waiting)| {
            let closed = waiting.join().expect("it does not fail");
            (!closed).then_some(what)
        });
        kept.collect()
    });
    assert!(kept.is_empty(), "still open after half a minute: {kept:?}");
}

#[test]
fn no_more_connections_than_allowed() {
    let server = TestServer::with(|settings| settings.max_connections = Some(2));
    let list = Request::get("/Tables").signed();
    let mut first = server.connect();
    let mut second = server.connect();
    first.send(&list).expect(200);
    second.send(&list).expect(200);
    let mut third = server.connect();
    third.write(&list.bytes()).expect("the system takes it");
    second.send(&list).expect(200);
    drop(first);
    third.read().expect("its turn comes").expect(200);
}

#[test]
fn batches_that_do_not_end() {
    let server = server();
    let whole = change_set(&[insert("a"), insert("b")]);
    let length = whole.body.len();
    let closing = "--changeset_c--\r\n--batch_b--\r\n".len();
    // Wherever it is cut before its last line nothing of it is done.
    for cut in (0..length - "--\r\n".len()).step_by(13).chain([length - closing, length - 12]) {
        let response = server.send(batch(&whole.body[..cut]));
        assert_eq!(response.status / 100, 4, "cut at {cut}: {response:?}");
        assert_eq!(server.rows(TABLE), "", "cut at {cut}");
    }
    let boundary = "x".repeat(300);
    let content_type = format!("multipart/mixed; boundary={boundary}");
    server.send(batch(format!("--{boundary}--")).header("Content-Type", content_type)).expect(400);
    let flood = "--batch_b\r\n\r\n".repeat(BODY_BYTES_MAX / 13);
    assert_eq!(server.send(batch(flood)).status / 100, 4);
    is_well(&server);
}

#[test]
fn deep_and_wide_json() {
    let server = server();
    for body in [
        r#"{"A":"#.repeat(100_000),
        format!(r#"{{"PartitionKey":"p","RowKey":"r","A":{}1{}}}"#, "[".repeat(100_000), "]".repeat(100_000)),
        format!(r#"{{"PartitionKey":"p","RowKey":"r","odata.x":{}1{}}}"#, "[".repeat(100_000), "]".repeat(100_000)),
        "[".repeat(BODY_BYTES_MAX),
        "\"".to_owned() + &"\\u0000".repeat(100_000),
        format!("{{{}}}", r#""A":1,"#.repeat(100_000)),
    ] {
        let response = server.send(Request::json("POST", "/People", body.clone()));
        assert_eq!(response.status, 400, "{}: {response:?}", &body[..20]);
        let response = server.send(Request::json("POST", "/Tables", body));
        assert_eq!(response.status, 400, "{response:?}");
    }
    is_well(&server);
}

#[test]
fn filters() {
    let server = server();
    server.insert(TABLE, "p", "r");
    let query = |filter: &str| server.connect().send(&Request::get(format!("/People()?$filter={filter}")).signed());
    let terms = |count: usize| vec!["A+eq+2"; count].join("+or+") + "+or+A+eq+1";
    assert_eq!(query(&terms(1999)).expect(200).rows(), "p/r");
    assert_eq!(query(&terms(3000)).outcome(), (400, "InvalidInput".to_owned()));
    let nested = |depth: usize| format!("{}A+eq+1{}", "(".repeat(depth), ")".repeat(depth));
    assert_eq!(query(&nested(400)).expect(200).rows(), "p/r");
    assert_eq!(query(&nested(20_000)).outcome(), (400, "InvalidInput".to_owned()));
    let not = |depth: usize| format!("{}A+eq+1", "not+".repeat(depth));
    assert_eq!(query(&not(400)).expect(200).rows(), "p/r");
    assert_eq!(query(&not(10_000)).outcome(), (400, "InvalidInput".to_owned()));
    is_well(&server);
}

#[test]
fn what_is_no_http() {
    let server = server();
    let mut state = 0x2545_F491_4F6C_DD1D_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    let good = insert("mutated").signed().bytes();
    for round in 0..200 {
        let mut bytes: Vec<u8> = match round % 4 {
            0 => (0..200).map(|_| next()).collect(),
            1 => [b"GET ".to_vec(), (0..50).map(|_| next()).collect(), b" HTTP/1.1\r\n\r\n".to_vec()].concat(),
            2 => [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(), (0..100).map(|_| next()).collect()].concat(),
            _ => good.clone(),
        };
        if round % 4 == 3 {
            for _ in 0..3 {
                let at = (usize::from(next()) << 8 | usize::from(next())) % bytes.len();
                bytes[at] = next();
            }
        }
        let mut stream = tcp(server.address);
        let _ = stream.write_all(&bytes);
        let _ = stream.shutdown(Shutdown::Write);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let is_crash = answer.windows(12).any(|window| window == b"HTTP/1.1 500");
        assert!(!is_crash, "round {round}: {}", String::from_utf8_lossy(&answer));
    }
    is_well(&server);
}

#[test]
fn ends_of_lines_in_values() {
    let server = server();
    // A line end in an escape is a character of the path, never a line of the response.
    let response = server.send(Request::get("/People%0D%0Ax-evil:%201()"));
    assert!(response.header("x-evil").is_none() && response.status == 400, "{response:?}");
    let response = server.send(Request::get("/Tables").header("x-ms-client-request-id", "a\tb"));
    assert!(matches!(response.status, 200 | 400), "{response:?}");
    assert_eq!(server.rows(TABLE), "");
}

#[test]
fn pipelined_requests() {
    let server = server();
    let requests = [insert("a"), Request::get(entity(TABLE, "p", "a")), insert("a"), Request::get("/Nowhere()")];
    let bytes: Vec<u8> = requests.into_iter().flat_map(|request| request.signed().bytes()).collect();
    let mut connection = server.connect();
    connection.write(&bytes).expect("the server reads");
    let statuses: Vec<u16> = (0..4).map(|_| connection.read().expect("an answer").status).collect();
    assert_eq!(statuses, [201, 200, 409, 404]);
    // Refused requests with bodies leave the connection in step.
    let refused = insert("b").signed_with(partita_auth::Scheme::SharedKey, partita_testing::signing::WRONG_KEY).bytes();
    let bytes = [refused, Request::get("/Tables").signed().bytes()].concat();
    connection.write(&bytes).expect("the server reads");
    connection.read().expect("an answer").expect(403);
    connection.read().expect("an answer").expect(200);
}

#[test]
fn expect_continue() {
    let server = server();
    let mut connection = server.connect();
    for (row_key, status) in [("a", 201), ("a", 409), ("b", 201)] {
        let request = insert(row_key).header("Expect", "100-continue").signed();
        let bytes = request.bytes();
        let (head, body) = bytes.split_at(bytes.len() - request.body.len());
        let go_on = connection.exchange(head);
        assert_eq!((go_on.status, go_on.reason.as_str()), (100, "Continue"));
        connection.exchange(body).expect(status);
    }
}

/// Whoever waits to be asked for a body is not asked for one that is refused already.
#[test]
fn expect_refused() {
    let server = server();
    let wrong = partita_testing::signing::WRONG_KEY;
    let request = insert("a").header("Expect", "100-continue").signed_with(partita_auth::Scheme::SharedKey, wrong);
    let bytes = request.bytes();
    let mut connection = server.connect();
    let answer = connection.exchange(&bytes[..bytes.len() - request.body.len()]).expect(403);
    assert_eq!(answer.header("connection"), Some("close"));
    // Who has sent it all the same can go on.
    let mut connection = server.connect();
    connection.exchange(&bytes).expect(403);
    connection.send(&Request::get("/Tables").signed()).expect(200);
}

#[test]
fn the_version_before() {
    let server = server();
    let mut request = Request::get("/Tables").signed();
    let old = |request: &Request| String::from_utf8(request.bytes()).expect("text").replacen("HTTP/1.1", "HTTP/1.0", 1);
    let mut connection = server.connect();
    assert_eq!(connection.exchange(old(&request).as_bytes()).expect(200).header("connection"), Some("close"));
    connection.read().expect_err("it is closed");
    request.headers.push(("Connection".into(), "Keep-Alive".into()));
    let mut connection = server.connect();
    for _ in 0..2 {
        assert_eq!(connection.exchange(old(&request).as_bytes()).expect(200).header("connection"), Some("keep-alive"));
    }
}

/// The answer to HEAD has the length of a body and no body, so that the next answer is found.
#[test]
fn heads_without_bodies() {
    let server = server();
    let head = Request::new("HEAD", "/Tables").signed().bytes();
    let get = Request::get("/Tables").header("Connection", "close").signed().bytes();
    let mut stream = tcp(server.address);
    stream.write_all(&[head, get].concat()).expect("the server reads");
    let mut answers = String::new();
    stream.read_to_string(&mut answers).expect("the server closes");
    let (first, second) = answers.split_once("\r\n\r\n").expect("a head");
    assert!(first.starts_with("HTTP/1.1 405 ") && !first.contains("Content-Length: 0"), "{first}");
    assert!(second.starts_with("HTTP/1.1 200 OK\r\n"), "{second}");
}

#[test]
fn absolute_targets() {
    let server = server();
    let signed = Request::get("/Tables").signed();
    let absolute = signed.head().replacen("GET /", &format!("GET http://{}/", server.address), 1) + "\r\n";
    let response = server.connect().exchange(absolute.as_bytes()).expect(200);
    assert_eq!(response.text(), r#"{"value":[{"TableName":"People"}]}"#);
    // The host of the target counts, not the one of the header.
    let created = Request::json("POST", "/Tables", r#"{"TableName":"Absolute"}"#).signed();
    let bytes = String::from_utf8(created.bytes()).expect("a request of text");
    let bytes = bytes.replacen("POST /", "POST http://example.test:1234/", 1);
    let response = server.connect().exchange(bytes.as_bytes()).expect(201);
    let location = response.header("location").unwrap_or_default();
    assert_eq!(location, "http://example.test:1234/devstoreaccount1/Tables('Absolute')");
}

/// All rows, page by page, and how many were on each page.
fn pages(server: &TestServer, target: &str) -> (Vec<String>, Vec<usize>, Vec<Response>) {
    let (mut rows, mut counts, mut responses) = (Vec::new(), Vec::new(), Vec::new());
    let mut request = Request::get(target);
    loop {
        let page = server.send(request).expect(200);
        let on_page: Vec<String> = page.rows().split_whitespace().map(str::to_owned).collect();
        counts.push(on_page.len());
        rows.extend(on_page);
        let next = page.continuation();
        responses.push(page);
        match next {
            Some(next) => request = Request::get(target).query(&next),
            None => return (rows, counts, responses),
        }
    }
}

#[test]
fn a_page_has_a_thousand_rows() {
    let server = server();
    let keys: Vec<String> = (0..2001).map(|row| format!("{row:05}")).collect();
    for batch in keys.chunks(100) {
        let operations: Vec<_> = batch.iter().map(|row| insert(row).header("Prefer", "return-no-content")).collect();
        assert_eq!(parts(&server.send(change_set(&operations))).len(), batch.len());
    }
    let expected: Vec<String> = keys.iter().map(|key| format!("p/{key}")).collect();
    let (rows, counts, _) = pages(&server, "/People()");
    assert_eq!((rows, counts), (expected.clone(), vec![1000, 1000, 1]));
    let (rows, counts, _) = pages(&server, "/People()?$top=667");
    assert_eq!((rows, counts), (expected.clone(), vec![667, 667, 667]));
    // A page of a filter is a page of what it lets through.
    let filter = encode("RowKey ge '00500' and A eq 1");
    let (rows, counts, _) = pages(&server, &format!("/People()?$filter={filter}"));
    assert_eq!((rows, counts), (expected[500..].to_vec(), vec![1000, 501]));
    let sas = table_sas(TABLE, "r").start_keys("p", Some("01990"));
    assert_eq!(server.send(Request::get("/People()").sas(&sas)).expect(200).rows().split(' ').count(), 11);
}

#[test]
fn a_page_has_four_megabytes() {
    let server = server();
    let text = "é".repeat(30_000);
    let row = |number: usize| {
        let body = format!(r#"{{"PartitionKey":"p","RowKey":"{number:03}","T":"{text}"}}"#);
        Request::json("POST", "/People", body).header("Prefer", "return-no-content")
    };
    for batch in (0..150).collect::<Vec<_>>().chunks(50) {
        let operations: Vec<_> = batch.iter().map(|&number| row(number)).collect();
        assert_eq!(parts(&server.send(change_set(&operations))).len(), 50);
    }
    let (rows, counts, responses) = pages(&server, "/People()");
    assert_eq!(rows, (0..150).map(|number| format!("p/{number:03}")).collect::<Vec<_>>());
    assert!(counts.len() > 1, "{counts:?}");
    for response in &responses {
        assert!(response.body.len() < BODY_BYTES_MAX + 2 * text.len(), "{} bytes", response.body.len());
    }
}
