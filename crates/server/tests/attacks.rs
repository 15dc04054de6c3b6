//! What hostile clients send: messages that two servers read in two ways, names that are not ours, floods, and values that
//! shall end up where they do harm. Limits of size and time are in `limits.rs`, who may do what is in `matrix`.

use partita_auth::{AccountKey, Scheme, sign};
use partita_testing::batch::{self, change_set};
use partita_testing::http::{Connection, PATIENCE, Request, Response, tcp};
use partita_testing::process::{Process, accounts_argument};
use partita_testing::server::TestServer;
use partita_testing::signing::{
    ACCOUNT, KEY, KEY_TWO, OTHER_ACCOUNT, OTHER_KEY, WRONG_KEY, account_sas, moment, table_sas, token,
};
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

const TABLE: &str = "People";

fn insert(row_key: &str) -> Request {
    Request::json("POST", "/People", format!(r#"{{"PartitionKey":"p","RowKey":"{row_key}","A":1}}"#))
}

/// Fails unless the server still does its work.
#[track_caller]
fn is_well(server: &TestServer) {
    server.connect().send(&Request::get("/Tables('People')").signed()).expect(200);
}

/// All that comes back until the connection ends.
fn everything(stream: &mut TcpStream) -> Vec<u8> {
    let mut answer = Vec::new();
    match stream.read_to_end(&mut answer) {
        Ok(_) => {}
        // Closed with something unread on the other side.
        Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
        Err(error) => panic!("still open after {}: {error}", String::from_utf8_lossy(&answer)),
    }
    answer
}

fn statuses(answer: &[u8]) -> Vec<u16> {
    let text = String::from_utf8_lossy(answer);
    let lines = text.split("HTTP/1.1 ").skip(1);
    lines.map(|line| line[..3].parse().unwrap_or_else(|_| panic!("{text}"))).collect()
}

/// Messages with a second request hidden in the first, in every way that has fooled a pair of servers. The hidden one is
/// good and signed; it must not be done. Behind it stands one that closes the connection, so that every case ends.
#[test]
fn smuggled_requests() {
    let server = TestServer::with_tables(&[TABLE]);
    let hidden = insert("hidden").signed().bytes();
    let last = Request::get("/Tables").header("Connection", "close").signed().bytes();
    // One that announces more than it has ends with the time it gave itself.
    let head = insert("outer").query("timeout=1").signed().head();
    let body = insert("outer").body;
    let (length, hidden_length) = (body.len(), hidden.len());
    let size = format!("{length:x}");
    let chunk = |size: &str| [format!("{size}\r\n").as_bytes(), &body, b"\r\n0\r\n\r\n"].concat();
    // What follows the head in each case, besides what is hidden: name, headers of framing, body before it.
    let chunked = "Transfer-Encoding: chunked\r\n";
    let none = b"0\r\n\r\n".to_vec();
    let cases: Vec<(&str, String, Vec<u8>)> = vec![
        ("length and chunks", format!("Content-Length: {}\r\n{chunked}", 5 + hidden_length), none.clone()),
        ("chunks and length", format!("{chunked}Content-Length: {}\r\n", 5 + hidden_length), none.clone()),
        (
            "two lengths",
            format!("Content-Length: {length}\r\nContent-Length: {}\r\n", length + hidden_length),
            body.clone(),
        ),
        (
            "the shorter length last",
            format!("Content-Length: {}\r\nContent-Length: {length}\r\n", length + hidden_length),
            body.clone(),
        ),
        ("a list of lengths", format!("Content-Length: {length}, {}\r\n", length + hidden_length), body.clone()),
        ("a signed length", format!("Content-Length: +{length}\r\n"), body.clone()),
        ("a hexadecimal length", format!("Content-Length: 0x{length:x}\r\n"), body.clone()),
        ("a length with a blank in it", format!("Content-Length: {length} 0\r\n"), body.clone()),
        ("an empty length", "Content-Length: \r\n".into(), body.clone()),
        ("a blank before the colon", "Transfer-Encoding : chunked\r\n".into(), chunk(&size)),
        ("a blank before the colon of a length", format!("Content-Length : {length}\r\n"), body.clone()),
        ("not chunked at the end", "Transfer-Encoding: chunked, identity\r\n".into(), chunk(&size)),
        ("identity", "Transfer-Encoding: identity\r\n".into(), chunk(&size)),
        ("nearly chunked", "Transfer-Encoding: xchunked\r\n".into(), chunk(&size)),
        ("chunked behind a tab", "Transfer-Encoding: \u{b}chunked\r\n".into(), chunk(&size)),
        ("quoted", "Transfer-Encoding: \"chunked\"\r\n".into(), chunk(&size)),
        ("a folded line", format!("X-Folded: a\r\n Content-Length: {length}\r\n"), body.clone()),
        ("a folded encoding", "Transfer-Encoding:\r\n chunked\r\n".into(), chunk(&size)),
        ("a line without a colon", "Transfer-Encoding\r\n".into(), chunk(&size)),
        ("a line that starts with a colon", ": chunked\r\n".into(), chunk(&size)),
        ("a carriage return in a value", format!("X-A: b\rContent-Length: {length}\r\n"), body.clone()),
        ("a NUL in a value", format!("X-A: b\0\r\nContent-Length: {length}\r\n"), body.clone()),
        ("a hexadecimal prefix of a chunk", chunked.into(), chunk(&format!("0x{size}"))),
        ("a signed chunk", chunked.into(), chunk(&format!("+{size}"))),
        ("a negative chunk", chunked.into(), chunk(&format!("-{size}"))),
        ("a chunk without a size", chunked.into(), chunk("")),
        ("a chunk beyond all numbers", chunked.into(), chunk("fffffffffffffffff")),
        ("a chunk of nearly everything", chunked.into(), chunk("ffffffffffffffff")),
        ("an underscore in a size", chunked.into(), chunk(&format!("0_{size}"))),
        ("an end of line in an extension", chunked.into(), chunk(&format!("{size};a=\n0\r\n\r\nb"))),
        ("a chunk longer than its size", chunked.into(), chunk(&format!("{:x}", length - 3))),
    ];
    for (name, framing, before) in cases {
        let mut stream = tcp(server.address);
        let bytes = [format!("{head}{framing}\r\n").as_bytes(), &before, &hidden, &last].concat();
        let _ = stream.write_all(&bytes);
        let answer = everything(&mut stream);
        let found = statuses(&answer);
        assert!(found.len() <= 1, "{name}: {}", String::from_utf8_lossy(&answer));
        assert!(found.iter().all(|status| (400..=500).contains(status)), "{name}: {found:?}");
        assert_eq!(server.rows(TABLE), "", "{name}");
    }
    is_well(&server);
}

/// A body is never read as a request, whatever is wrong with the request it belongs to.
#[test]
fn bodies_are_not_requests() {
    let server = TestServer::with_tables(&[TABLE]);
    let hidden = insert("hidden").signed().bytes();
    let last = Request::get("/Tables").header("Connection", "close").signed().bytes();
    let padded = [vec![b' '; 100_000], hidden.clone()].concat();
    for (name, outer, expected) in [
        ("no credentials", insert("x").body(hidden.clone()), 403),
        ("a large body without credentials", insert("x").body(padded), 403),
        ("a wrong key", insert("x").body(hidden.clone()).signed_with(Scheme::SharedKey, WRONG_KEY), 403),
        ("a body of a get", Request::get("/Tables").body(hidden.clone()).signed(), 200),
        ("a body of a delete", Request::delete("/People(PartitionKey='p')").body(hidden.clone()).signed(), 400),
        ("a bad body", insert("x").body(hidden.clone()).signed(), 400),
        ("an unknown verb", Request::new("BREW", "/Tables").body(hidden.clone()).signed(), 405),
        ("a broken escape", insert("x").query("a=%zz").body(hidden.clone()).signed(), 400),
        ("a bad version", insert("x").header("x-ms-version", "soon").body(hidden.clone()).signed(), 400),
        ("an unknown account", insert("x").at("nobody").body(hidden.clone()).signed(), 404),
        ("preflight", Request::new("OPTIONS", "/People").body(hidden.clone()), 400),
    ] {
        for bytes in [outer.bytes(), outer.chunked(1000)] {
            let mut stream = tcp(server.address);
            let _ = stream.write_all(&[bytes.as_slice(), &last].concat());
            let found = statuses(&everything(&mut stream));
            // The one behind is answered, or the connection ended before it.
            assert!(found == [expected, 200] || found == [expected], "{name}: {found:?}");
            assert_eq!(server.rows(TABLE), "", "{name}");
        }
    }
}

/// Nothing is ever unpacked: what is packed is no JSON.
#[test]
fn packed_bodies() {
    let server = TestServer::with_tables(&[TABLE]);
    // 10 MiB of blanks behind `{`, packed by gzip to a few bytes: an empty header and one stored block would do as well.
    let packed = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0xab, 0xae, 5, 0, 0x43, 0xbf, 0xa6, 0xa3, 2, 0, 0, 0];
    for encoding in ["gzip", "deflate", "br", "zstd", "compress, gzip"] {
        let request = insert("packed").header("Content-Encoding", encoding).body(packed).signed();
        assert_eq!(server.send(request).outcome(), (400, "InvalidInput".to_owned()), "{encoding}");
    }
    let accepting = server.send(Request::get("/People()").header("Accept-Encoding", "gzip, br"));
    assert_eq!(accepting.expect(200).header("content-encoding"), None);
    assert_eq!(server.rows(TABLE), "");
}

/// A head that comes letter by letter has an end, and so has a body.
#[test]
fn letter_by_letter() {
    let server = TestServer::with(|settings| settings.keep_alive_seconds = Some(1));
    server.create(TABLE);
    let head = Request::get("/Tables").header("X-Long", "x".repeat(10_000)).signed().bytes();
    let mut stream = tcp(server.address);
    // The wait for an answer paces the letters.
    stream.set_read_timeout(Some(Duration::from_millis(20))).expect("a socket takes a timeout");
    let started = Instant::now();
    let mut sent = 0;
    let closed = head.iter().any(|letter| {
        assert!(started.elapsed() < PATIENCE, "still open");
        sent += 1;
        let written = stream.write_all(&[*letter]);
        let read = stream.read(&mut [0; 1000]);
        written.is_err()
            || !read.is_err_and(|error| matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut))
    });
    assert!(closed && sent < head.len(), "{sent} of {} letters were read", head.len());
    // A body has the time of its request.
    let request = insert("slow").query("timeout=1").signed();
    let bytes = request.bytes();
    let mut connection = server.connect();
    connection.write(&bytes[..bytes.len() - 1]).expect("the server reads");
    let response = connection.read().expect("an answer");
    assert_eq!(response.outcome(), (500, "OperationTimedOut".to_owned()), "{response:?}");
    assert_eq!(server.connect().send(&Request::get("/People()").signed()).rows(), "");
}

fn at_host(server: &TestServer, request: &Request, hosts: &[&str]) -> Response {
    let head = request.head();
    let (line, rest) = head.split_once("\r\n").expect("a head has lines");
    let (_, rest) = rest.split_once("\r\n").expect("the host comes first");
    let hosts: String = hosts.iter().map(|host| format!("Host: {host}\r\n")).collect();
    let length =
        if request.body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", request.body.len()) };
    let bytes = [format!("{line}\r\n{hosts}{rest}{length}\r\n").as_bytes(), &request.body].concat();
    server.connect().exchange(&bytes)
}

/// A page of elsewhere whose name was made to point at this machine gets nothing: not without a signature, and not with
/// one of the key that everybody knows.
#[test]
fn names_of_strangers() {
    let server = TestServer::with_tables(&[TABLE]);
    let list = Request::get("/Tables").signed();
    let denied = (403, "AuthenticationFailed".to_owned());
    for host in ["evil.example", "evil.example:10002", "127.0.0.1.evil.example", "devstoreaccount1.evil.example"] {
        assert_eq!(at_host(&server, &list, &[host]).outcome(), denied, "{host}");
        let token = Request::get("/Tables").sas(&account_sas("sco", "rwdlacu"));
        assert_eq!(at_host(&server, &token, &[host]).outcome(), denied, "{host}");
        assert_eq!(at_host(&server, &Request::get("/Tables"), &[host]).outcome(), denied, "{host}");
        // With a key of one's own any name will do: no page knows it.
        let own = Request::get("/Tables").at(OTHER_ACCOUNT).signed();
        let is_host_style = host.starts_with(ACCOUNT);
        assert!(is_host_style || at_host(&server, &own, &[host]).status == 200, "{host}");
        // An absolute target counts before the header.
        let absolute = list.head().replacen("GET /", &format!("GET http://{host}/"), 1) + "\r\n";
        assert_eq!(server.connect().exchange(absolute.as_bytes()).outcome(), denied, "{host}");
    }
    for host in ["127.0.0.1:1", "localhost", "[::1]:10002", "partita", "devstoreaccount1.internal"] {
        let response = at_host(&server, &list, &[host]);
        // The last one is host style, which is signed otherwise.
        assert!(response.status == 200 || host.starts_with(ACCOUNT), "{host}: {response:?}");
        assert!(!response.text().contains("Everybody knows"), "{host}: {response:?}");
    }
    // What a page can send without being asked beforehand: its browser says whose page it is.
    let blind = Request::new("POST", "/Tables").body(r#"{"TableName":"Blind"}"#).sas(&account_sas("c", "c"));
    for origin in ["http://evil.example", "https://127.0.0.1.evil.example", "null", ""] {
        let response = server.send_as_is(&blind.clone().header("Origin", origin));
        assert_eq!(response.outcome(), denied, "{origin}");
    }
    assert_eq!(server.send(Request::get("/Tables")).text(), r#"{"value":[{"TableName":"People"}]}"#);
    server.send_as_is(&blind.header("Origin", "http://localhost:3000")).expect(201);

    // Whoever says that everybody may use the key means it.
    let open = TestServer::with(|settings| settings.allow_development_key = Some(true));
    at_host(&open, &list, &["evil.example"]).expect(200);
}

/// What is no host, or more than one, is refused before it is used for anything.
#[test]
fn hosts_that_are_none() {
    let server = TestServer::with_tables(&[TABLE]);
    let list = Request::get("/Tables").header("Accept", "application/json;odata=fullmetadata").signed();
    for hosts in [
        &["127.0.0.1", "127.0.0.1"][..],
        &["127.0.0.1", "evil.example"],
        &["evil.example", "127.0.0.1"],
        &["a b"],
        &["a\"b"],
        &["<script>"],
        &["user@127.0.0.1"],
        &["127.0.0.1/path"],
        &["a\\b"],
        &["a?b"],
        &["a#b"],
        &["a,b"],
    ] {
        assert_eq!(at_host(&server, &list, hosts).outcome(), (400, "InvalidUri".to_owned()), "{hosts:?}");
    }
    is_well(&server);
}

#[test]
fn the_admin_port_by_other_names() {
    let process = Process::start(&["--in-memory"]);
    let ask = |host: &str, path: &str| {
        let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        Connection::open(process.admin).exchange(request.as_bytes())
    };
    for path in ["/livez", "/readyz", "/metrics"] {
        for host in ["127.0.0.1", "localhost:10012", "[::1]:1", "partita"] {
            ask(host, path).expect(200);
        }
        for host in ["evil.example", "evil.example:10012", "localhost.evil.example"] {
            let response = ask(host, path).expect(421);
            assert!(response.text().contains("localhost") && !response.text().contains("partita_"), "{response:?}");
        }
    }
    ask("127.0.0.1", "http://evil.example/metrics").expect(421);
    // On every address of the machine its names are not known.
    let open = Process::start(&["--in-memory", "--admin-host", "0.0.0.0"]);
    let request = b"GET /livez HTTP/1.1\r\nHost: partita.example.com\r\n\r\n";
    Connection::open(([127, 0, 0, 1], open.admin.port()).into()).exchange(request).expect(200);
}

fn rule(origins: &str) -> String {
    format!(
        "<CorsRule><AllowedOrigins>{origins}</AllowedOrigins><AllowedMethods>GET</AllowedMethods><MaxAgeInSeconds>1\
         </MaxAgeInSeconds><ExposedHeaders>x-ms-*</ExposedHeaders><AllowedHeaders>x-ms-*</AllowedHeaders></CorsRule>"
    )
}

/// Pages of another origin read what a rule says, with credentials only where it names them, and never more.
#[test]
fn pages_of_other_origins() {
    let server = TestServer::with_tables(&[TABLE]);
    let set = |rules: &str| {
        let body = format!("<StorageServiceProperties><Cors>{rules}</Cors></StorageServiceProperties>");
        server.send(Request::new("PUT", "/?restype=service&comp=properties").body(body)).expect(202);
    };
    let get = |origin: &str| server.send(Request::get("/People()").at(ACCOUNT).header("Origin", origin));
    let preflight = |origin: &str, headers: &str| {
        let asked = Request::new("OPTIONS", "/People()").header("Origin", origin);
        let asked = asked.header("Access-Control-Request-Method", "GET");
        server.send_as_is(&asked.header("Access-Control-Request-Headers", headers))
    };
    let cors = |response: &Response| {
        let named = |name: &str| response.header(name).unwrap_or("-").to_owned();
        (named("Access-Control-Allow-Origin"), named("Access-Control-Allow-Credentials"))
    };
    let is = |origin: &str, credentials: &str| (origin.to_owned(), credentials.to_owned());
    set(&rule("http://page.localhost"));
    assert_eq!(cors(&get("http://page.localhost").expect(200)), is("http://page.localhost", "true"));
    assert_eq!(cors(&preflight("http://page.localhost", "x-ms-date").expect(200)), is("http://page.localhost", "true"));
    for origin in
        ["http://other.localhost", "http://page.localhost:81", "https://page.localhost", "http://xpage.localhost"]
    {
        let response = get(origin).expect(200);
        assert_eq!(cors(&response), is("-", "-"), "{origin}");
        assert_eq!(cors(&preflight(origin, "x-ms-date").expect(403)), is("-", "-"), "{origin}");
    }
    preflight("http://page.localhost", "authorization").expect(403);
    assert_eq!(get("http://page.localhost").header("vary"), Some("Origin"));
    // Everybody's origin goes with nobody's credentials.
    set(&rule("*"));
    for origin in ["http://page.localhost", "http://evil.example", "null"] {
        assert_eq!(cors(&get(origin).expect(200)), is("*", "-"), "{origin}");
        assert_eq!(cors(&preflight(origin, "x-ms-date").expect(200)), is("*", "-"), "{origin}");
    }
    // Neither needs a signature to be asked for, and neither gives rows without one.
    let response = server.send_as_is(&Request::get("/People()").header("Origin", "http://evil.example"));
    assert_eq!(response.outcome(), (403, "AuthenticationFailed".to_owned()));
}

/// What a client sends stays within its line of the log, in words that a terminal does not obey.
#[test]
fn lines_of_logs() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let debug = folder.path().join("debug.log");
    let debug_text = debug.to_str().expect("a path that is text");
    let evil = "%0D%0A2026-01-01T00:00:00Z%20ERROR%20forged%1B[2J%1B]0;owned%07%C2%9B31m%E2%80%AE";
    let raw = "\u{9b}31m\u{202e}forged";
    for format in ["text", "json"] {
        let process =
            Process::start(&["--in-memory", "--log-level=debug", "--log-format", format, "--debug", debug_text]);
        let long = "x".repeat(30_000);
        let requests = [
            Request::get(format!("/{evil}()")),
            Request::get(format!("/People(PartitionKey='{evil}',RowKey='{evil}')")),
            Request::get("/Tables").at(evil),
            Request::get("/Tables").at(&long),
            Request::get(format!("/{long}")),
            Request::get("/Tables").header("User-Agent", format!("a\tb{raw}")),
            Request::get("/Tables").header("User-Agent", &*long),
            Request::get("/Tables").header("x-ms-client-request-id", format!("a\t{raw}")),
            Request::get("/Tables").header("x-ms-version", format!("a\t{raw}")),
            Request::new(&"M".repeat(1000), "/Tables"),
            Request::json("POST", "/Tables", format!(r#"{{"TableName":"a\r\nb{raw}"}}"#)),
        ];
        for request in &requests {
            process.connect().send(&request.clone().signed());
        }
        process.signal("TERM");
        let said = process.wait().1;
        let logged = fs::read_to_string(&debug).expect("there is a debug log");
        fs::remove_file(&debug).expect("it can be removed");
        for (what, text) in [("the log", &said), ("the debug log", &logged)] {
            let control = text.chars().find(|c| c.is_control() && *c != '\n' || ['\u{202e}', '\u{9b}'].contains(c));
            assert_eq!(control, None, "in {what} of {format}: {text}");
            assert!(!text.lines().any(|line| line.contains("forged") && !line.contains("request_id")), "{text}");
            let longest = text.lines().map(str::len).max().unwrap_or_default();
            assert!(longest < 2000, "a line of {longest} in {what} of {format}");
            assert_eq!(text.matches("path").count(), requests.len(), "{what} of {format}: {text}");
        }
    }
}

/// Neither keys nor signatures, neither those that were sent nor those that would have been right, are found in anything
/// the server says: answers, logs of every level and form, metrics.
#[test]
fn secrets_stay_secret() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let accounts = accounts_argument();
    let mut secrets: Vec<String> = [KEY, KEY_TWO, OTHER_KEY, WRONG_KEY].map(str::to_owned).to_vec();
    let plain = |text: &str| text.replace("%2B", "+").replace("%2F", "/").replace("%3D", "=");
    let mut requests = Vec::new();
    for scheme in [Scheme::SharedKey, Scheme::SharedKeyLite] {
        for key in [KEY, KEY_TWO, WRONG_KEY, OTHER_KEY] {
            for request in [
                Request::get("/Tables"),
                Request::json("POST", "/Tables", r#"{"TableName":"People"}"#),
                insert("a"),
                insert("b").body("{"),
                Request::get("/People?comp=acl"),
                Request::get("/Nowhere()"),
                Request::get("/Tables").at("nobody"),
                Request::get("/Tables").query("timeout=x"),
                change_set(&[insert("c"), insert("c")]),
            ] {
                requests.push(request.clone().signed_with(scheme, key));
                requests.push(request.signed_at(scheme, key, &moment(-3600).rfc1123()));
            }
        }
    }
    for key in [KEY, KEY_TWO, WRONG_KEY] {
        for sas in [
            table_sas(TABLE, "raud"),
            table_sas(TABLE, "r").expiry(moment(-1)),
            table_sas("Other", "r"),
            account_sas("sco", "rwdlacu"),
            account_sas("s", "r"),
            table_sas(TABLE, "r").policy("none"),
        ] {
            let query = token(&sas, ACCOUNT, key);
            for request in [
                Request::get("/People()"),
                insert("d"),
                Request::get("/People()?comp=list"),
                Request::new("OPTIONS", "/People()"),
                Request::new("BREW", "/People()"),
                Request::get("/ab()"),
                Request::get(format!("/People%3F{query}")),
                change_set(&[insert("e").query(&query)]),
                batch::query(&Request::get("/People()").query(&query)),
            ] {
                requests.push(request.clone().query(&query));
                // Tokens get spoilt on their way; what is told of them must not hold the rest.
                requests.push(request.query(&query.replace("sv=2019", "sv=201")));
            }
            requests.push(Request::get("/People()").query(&query.replace("&sig=", "&sig=%zz")));
        }
    }
    requests.push(Request::get("/Tables").header("Authorization", "Bearer c2VjcmV0LXRva2Vu"));
    requests.push(Request::get("/Tables").header("Authorization", "SharedKey c2VjcmV0LXRva2Vu"));
    requests.push(Request::get("/Tables").header("Authorization", "Basic c2VjcmV0LXRva2Vu"));
    secrets.push("c2VjcmV0LXRva2Vu".into());
    for request in &requests {
        if let Some((_, signature)) = request.get_header("Authorization").and_then(|value| value.split_once(':')) {
            secrets.push(signature.to_owned());
        }
        if let Some((_, signature)) = request.target.split_once("sig=") {
            let signature = signature.split('&').next().unwrap_or_default();
            let signature = signature.strip_prefix("%zz").unwrap_or(signature);
            secrets.extend([signature.to_owned(), plain(signature)]);
        }
        // What the right key would have made of the string that a refusal may show.
        if let Some(date) = request.get_header("x-ms-date") {
            let lite = format!("{date}\n/{}{}", request.account, request.path());
            let right = AccountKey::parse(KEY).expect("a key of the tests");
            secrets.push(sign(&right, &lite));
        }
    }
    secrets.sort();
    secrets.dedup();
    for (level, format) in
        [("error", "text"), ("info", "text"), ("debug", "json"), ("trace", "text"), ("trace", "json")]
    {
        let debug = folder.path().join(format!("{level}-{format}.log"));
        let debug_text = debug.to_str().expect("a path that is text");
        let process = Process::start(&[
            "--in-memory",
            &accounts,
            "--log-level",
            level,
            "--log-format",
            format,
            "--debug",
            debug_text,
        ]);
        let mut said = Vec::new();
        let mut connection = process.connect();
        for request in &requests {
            let response = connection.send(request);
            said.push(format!("{response:?}"));
            if response.header("connection") == Some("close") {
                connection = process.connect();
            }
        }
        for junk in ["GET /x?sig=c2VjcmV0LXRva2Vu HTTP/9\r\n\r\n", "Authorization: c2VjcmV0LXRva2Vu\r\n\r\n"] {
            process.connect().write(junk.as_bytes()).expect("the server reads");
        }
        said.push(process.ask_admin("/metrics").expect(200).text());
        said.push(process.ask_admin("/nothing?sig=c2VjcmV0LXRva2Vu").expect(404).text());
        process.signal("TERM");
        let lines = process.wait().1;
        said.extend(lines.lines().filter(|line| !line.starts_with("Connection string: ")).map(str::to_owned));
        said.push(fs::read_to_string(&debug).expect("there is a debug log"));
        let said = said.join("\n");
        assert!(said.contains("AuthenticationErrorDetail") && said.contains("partita_requests_total"));
        for secret in &secrets {
            let at = said.find(secret.as_str());
            assert_eq!(at, None, "{secret} in {}", &said[at.unwrap_or_default().saturating_sub(300)..][..300]);
        }
    }
}

/// Frames of HTTP/2, made by hand.
mod frames {
    pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    pub(crate) const DATA: u8 = 0;
    pub(crate) const HEADERS: u8 = 1;
    pub(crate) const RESET: u8 = 3;
    pub(crate) const SETTINGS: u8 = 4;
    pub(crate) const PING: u8 = 6;
    pub(crate) const GO_AWAY: u8 = 7;
    pub(crate) const CONTINUATION: u8 = 9;
    pub(crate) const END_STREAM: u8 = 1;
    pub(crate) const END_HEADERS: u8 = 4;

    pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
        let length = (payload.len() as u32).to_be_bytes();
        [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
    }

    /// A header field, neither indexed nor packed.
    pub(crate) fn field(name: &str, value: &str) -> Vec<u8> {
        let text = |text: &str| {
            let mut bytes = Vec::new();
            let mut rest = text.len();
            if rest < 127 {
                bytes.push(rest as u8);
            } else {
                bytes.push(127);
                rest -= 127;
                while rest >= 128 {
                    bytes.push((rest % 128 + 128) as u8);
                    rest /= 128;
                }
                bytes.push(rest as u8);
            }
            bytes.extend(text.as_bytes());
            bytes
        };
        [vec![0], text(name), text(value)].concat()
    }

    pub(crate) fn get(path: &str) -> Vec<u8> {
        [field(":method", "GET"), field(":scheme", "http"), field(":authority", "127.0.0.1"), field(":path", path)]
            .concat()
    }
}

/// Opens HTTP/2, sends these bytes, and reads until the server ends the connection: the error it gave.
fn until_it_goes_away(process: &Process, floods: impl Iterator<Item = Vec<u8>>) -> Option<u32> {
    use frames::{GO_AWAY, PREFACE, SETTINGS, frame};
    let mut stream = tcp(process.address);
    stream.write_all(&[PREFACE, &frame(SETTINGS, 0, 0, &[])].concat()).expect("the server reads");
    let mut reader = stream.try_clone().expect("a socket has two ends");
    let reading = std::thread::spawn(move || {
        let mut head = [0; 9];
        let mut error = None;
        while reader.read_exact(&mut head).is_ok() {
            let length = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
            let mut payload = vec![0; length];
            if reader.read_exact(&mut payload).is_err() {
                break;
            }
            if head[3] == GO_AWAY {
                error = payload[4..8].try_into().ok().map(u32::from_be_bytes);
            }
        }
        error
    });
    for flood in floods {
        if stream.write_all(&flood).is_err() {
            break;
        }
    }
    let _ = stream.shutdown(std::net::Shutdown::Write);
    reading.join().expect("it does not fail")
}

/// Floods of frames that cost the client little end with the connection and not with the server.
#[test]
fn floods_of_frames() {
    use frames::{CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADERS, PING, RESET, SETTINGS, field, frame, get};
    const ENHANCE_YOUR_CALM: u32 = 11;
    let process = Process::start(&["--in-memory"]);
    process.send(Request::json("POST", "/Tables", r#"{"TableName":"People"}"#)).expect(201);
    let streams = || (0..200_000_u32).map(|number| number * 2 + 1);
    let block = get("/devstoreaccount1/People()");

    let open_and_reset = streams().map(|stream| {
        [frame(HEADERS, END_HEADERS | END_STREAM, stream, &block), frame(RESET, 0, stream, &8_u32.to_be_bytes())]
            .concat()
    });
    assert_eq!(until_it_goes_away(&process, open_and_reset), Some(ENHANCE_YOUR_CALM), "rapid reset");

    // Headers without end: in one list, and in many frames.
    let start = [block.clone(), field("x-long", &"x".repeat(8_000))].concat();
    let endless = std::iter::once(frame(HEADERS, 0, 1, &start)).chain(
        (0..100_000).map(|number| frame(CONTINUATION, 0, 1, &field(&format!("x-{number}"), &"x".repeat(8_000)))),
    );
    let ended = until_it_goes_away(&process, endless);
    assert!(ended.is_some(), "headers without end: {ended:?}");
    let empty =
        std::iter::once(frame(HEADERS, 0, 1, &block)).chain((0..500_000).map(|_| frame(CONTINUATION, 0, 1, &[])));
    let ended = until_it_goes_away(&process, empty);
    assert!(ended.is_some(), "empty continuations: {ended:?}");

    // Small frames without end on one connection may go on, but take no memory.
    let body =
        std::iter::once(frame(HEADERS, END_HEADERS, 1, &block)).chain((0..200_000).map(|_| frame(DATA, 0, 1, &[])));
    let _ = until_it_goes_away(&process, body);
    let _ = until_it_goes_away(&process, (0..200_000).map(|_| frame(PING, 0, 0, &[0; 8])));
    let _ = until_it_goes_away(&process, (0..200_000).map(|_| frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 255, 255])));
    // More streams at a time than were granted.
    let _ =
        until_it_goes_away(&process, streams().take(5_000).map(|stream| frame(HEADERS, END_HEADERS, stream, &block)));

    process.send(Request::get("/Tables")).expect(200);
    if let Some(peak) = process.memory_peak() {
        assert!(peak < 150 << 20, "{} MiB", peak >> 20);
    }
    let said = process.stop();
    assert!(!said.contains("panicked"), "{said}");
}
