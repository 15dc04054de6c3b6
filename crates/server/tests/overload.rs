//! More than the server can take: it says so, keeps its memory, and goes on serving the others.
//!
//! Nothing here looks at speed, only at progress and at the most memory the real binary ever had. Its limits are those of
//! `docs/reliability.md`.

use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use partita_store::{Batch, Error, Memory, Result as StoreResult, Row, Scan, ScanEnd, Space, Store, Version, Visitor};
use partita_testing::batch::change_set;
use partita_testing::http::{Connection, PATIENCE, Request, tcp};
use partita_testing::process::{Process, command};
use partita_testing::server::TestServer;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;
use tempfile::TempDir;

const MIB: usize = 1 << 20;

fn insert(row_key: &str) -> Request {
    Request::json("POST", "/People", format!(r#"{{"PartitionKey":"p","RowKey":"{row_key}","A":1}}"#))
        .header("Prefer", "return-no-content")
}

/// The real binary on a folder, with little memory for its caches, and rows in partition `large`: several pages of 4 MiB.
struct Loaded {
    process: Process,
    _folder: TempDir,
}

impl Loaded {
    fn start(arguments: &[&str]) -> Loaded {
        // What the server may open, it has from us.
        raise_file_limit();
        let folder = tempfile::tempdir().expect("a temporary folder");
        let process = Process::on(folder.path(), &[&["--cache-mib=16", "--durability=none"], arguments].concat());
        process.send(Request::json("POST", "/Tables", r#"{"TableName":"People"}"#)).expect(201);
        Loaded { process, _folder: folder }
    }

    fn fill(&self, rows: usize) {
        let mut connection = self.process.connect();
        let text = "x".repeat(30_000);
        for first in (0..rows).step_by(100) {
            let row = |number: usize| {
                let body = format!(r#"{{"PartitionKey":"large","RowKey":"{number:06}","T":"{text}"}}"#);
                Request::json("POST", "/People", body).header("Prefer", "return-no-content")
            };
            let rows: Vec<_> = (first..first + 100).map(row).collect();
            connection.send(&change_set(&rows).signed()).expect(202);
        }
    }

    /// Others read, write and query, as often as this.
    #[track_caller]
    fn others_go_on(&self, turns: usize) {
        let mut connection = self.process.connect();
        for turn in 0..turns {
            let row = format!("others{turn:05}");
            let written = connection.send(&insert(&row).signed());
            assert!(matches!(written.status, 204 | 409), "{written:?}");
            let target = format!("/People(PartitionKey='p',RowKey='{row}')");
            connection.send(&Request::get(target).signed()).expect(200);
            let query = Request::get("/People()?$filter=PartitionKey%20eq%20'p'&$top=10").signed();
            connection.send(&query).expect(200);
        }
    }

    /// Fails if it ever had more memory than this.
    #[track_caller]
    fn had_at_most(self, limit: usize) {
        match self.process.memory_peak() {
            Some(peak) => {
                eprintln!("at most {} MiB of {}", peak / MIB, limit / MIB);
                assert!(peak <= limit, "{} MiB, more than {}", peak / MIB, limit / MIB);
            }
            None => eprintln!("SKIPPED the check of memory: this system does not tell it."),
        }
        let said = self.process.stop();
        assert!(!said.contains("panicked"), "{said}");
    }
}

/// Lets this process and those it starts open as many files as the system allows: how many that is.
fn raise_file_limit() -> usize {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    getrlimit(Resource::Nofile).current.map_or(usize::MAX, |files| usize::try_from(files).unwrap_or(usize::MAX))
}

/// Waits until the admin port tells that so many connections are open.
#[track_caller]
fn wait_for_connections(process: &Process, is_enough: impl Fn(usize) -> bool) {
    let started = Instant::now();
    loop {
        let metrics = process.ask_admin("/metrics").expect(200).text();
        let open = metrics.lines().find_map(|line| line.strip_prefix("partita_connections "));
        let open = open.and_then(|count| count.parse().ok()).expect("connections are counted");
        if is_enough(open) {
            return;
        }
        assert!(started.elapsed() < PATIENCE, "still {open} connections");
    }
}

/// Clients that ask for pages of 4 MiB, one after the other, and read none of them.
#[test]
fn clients_that_do_not_read() {
    const CLIENTS: usize = 150;
    let loaded = Loaded::start(&["--keep-alive-seconds=5"]);
    loaded.fill(400);
    let ask = Request::get("/People()?$filter=PartitionKey%20eq%20'large'").signed().bytes();
    let page = loaded.process.connect().exchange(&ask).expect(200);
    assert!(page.body.len() > 4 * MIB - MIB / 10, "{} bytes", page.body.len());
    let deaf: Vec<TcpStream> = (0..CLIENTS)
        .map(|_| {
            let mut stream = tcp(loaded.process.address);
            // The system takes a few megabytes off the server's hands; what follows it has to keep.
            stream.write_all(&ask.repeat(4)).expect("the server reads");
            stream
        })
        .collect();
    loaded.others_go_on(200);
    // Large pages may have become small ones, but every row can be read.
    let mut connection = loaded.process.connect();
    let (mut rows, mut next) = (0, String::new());
    loop {
        let target = format!("/People()?$filter=PartitionKey%20eq%20'large'&$select=RowKey{next}");
        let page = connection.send(&Request::get(target).signed()).expect(200);
        rows += page.rows().split(' ').count();
        let Some(token) = page.continuation() else { break };
        next = format!("&{token}");
    }
    assert_eq!(rows, 400);
    // Who reads nothing for long enough is shown the door. One connection is the question, one is the reader above.
    wait_for_connections(&loaded.process, |open| open <= 2);
    drop(deaf);
    loaded.had_at_most(500 * MIB);
}

/// Clients that send most of a large body and never the end.
#[test]
fn clients_that_do_not_finish() {
    const CLIENTS: usize = 400;
    let loaded = Loaded::start(&[]);
    let mut request = insert("large");
    request.body.resize(2 * MIB, b' ');
    let bytes = request.signed().bytes();
    let (sent, last) = bytes.split_at(bytes.len() - MIB);
    let address = loaded.process.address;
    // Those that find no memory are not read on: they wait in threads of their own.
    let waiting: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let sent = sent.to_vec();
            std::thread::spawn(move || {
                let mut stream = tcp(address);
                let _ = stream.write_all(&sent);
                stream
            })
        })
        .collect();
    wait_for_connections(&loaded.process, |open| open > CLIENTS / 2);
    loaded.others_go_on(200);
    let mut unfinished: Vec<TcpStream> =
        waiting.into_iter().map(|waiting| waiting.join().expect("it does not fail")).collect();
    // Some hold their memory and may still finish; the others were told when to come back.
    let (mut done, mut busy) = (0, 0);
    for mut stream in unfinished.drain(..) {
        let _ = stream.write_all(last);
        let Ok(response) = Connection::over(stream).read() else { continue };
        match response.status {
            204 | 409 | 500 => done += 1,
            503 => {
                assert_eq!((response.code(), response.header("retry-after")), ("ServerBusy".to_owned(), Some("1")));
                busy += 1;
            }
            _ => panic!("{response:?}"),
        }
    }
    assert!(done > 0 && busy > 0, "{done} were read, {busy} told to come back");
    loaded.others_go_on(10);
    // A body that grows is copied, so for a moment there are two of it.
    loaded.had_at_most(600 * MIB);
}

/// Clients that send a large head and stop in the middle of it. Those for which there is no memory are cut off, and make room
/// for one another.
#[test]
fn clients_that_do_not_finish_their_heads() {
    const CLIENTS: usize = 3_000;
    let loaded = Loaded::start(&[]);
    let head = Request::get("/Tables").header("X-Long", "x".repeat(100_000)).head();
    let start = |_| {
        let mut stream = tcp(loaded.process.address);
        // Whoever is cut off may notice it while still writing.
        let _ = stream.write_all(head.as_bytes());
        stream
    };
    let slow: Vec<TcpStream> = (0..CLIENTS).map(start).collect();
    loaded.others_go_on(100);
    let is_open = |stream: &TcpStream| {
        stream.set_nonblocking(true).expect("a socket");
        matches!((&*stream).read(&mut [0]), Err(error) if error.kind() == ErrorKind::WouldBlock)
    };
    let open = slow.iter().filter(|stream| is_open(stream)).count();
    assert!((300..1_000).contains(&open), "{open} clients are still connected");
    drop(slow);
    loaded.had_at_most(250 * MIB);
}

#[test]
fn ten_thousand_idle_connections() {
    const CLIENTS: usize = 10_000;
    let files = raise_file_limit();
    if files < CLIENTS + 1_000 {
        eprintln!("SKIPPED ten thousand idle connections: only {files} files may be open here.");
        return;
    }
    let loaded = Loaded::start(&[]);
    let list = Request::get("/Tables").signed().bytes();
    let mut idle: Vec<Connection> = (0..CLIENTS)
        .map(|_| {
            // Who says nothing at all is not idle but late.
            let mut connection = loaded.process.connect();
            connection.exchange(&list).expect(200);
            connection
        })
        .collect();
    wait_for_connections(&loaded.process, |open| open > CLIENTS);
    loaded.others_go_on(200);
    for connection in idle.iter_mut().step_by(97) {
        connection.exchange(&list).expect(200);
    }
    loaded.had_at_most(500 * MIB);
}

/// Queries that read everything and find nothing, one after the other, while others read points.
#[test]
fn queries_that_read_everything() {
    const READERS: usize = 8;
    let loaded = Loaded::start(&[]);
    loaded.fill(2_000);
    let address = loaded.process.address;
    let (stop, scans) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..READERS {
            scope.spawn(|| {
                let mut connection = Connection::open(address);
                while !stop.load(Ordering::Relaxed) {
                    let query = Request::get("/People()?$filter=T%20eq%20'nothing'").signed();
                    connection.send(&query).expect(200);
                    scans.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        // At least as long as each of them has read everything once more.
        let mut turns = 0;
        while scans.load(Ordering::Relaxed) < 2 * READERS || turns < 10 {
            loaded.others_go_on(20);
            turns += 1;
        }
        stop.store(true, Ordering::Relaxed);
    });
    loaded.had_at_most(400 * MIB);
}

/// A memory engine whose commits wait while it is told to, or are refused.
#[derive(Debug)]
struct Stuck {
    inner: Memory,
    waits: tokio::sync::watch::Receiver<bool>,
    refuses: AtomicBool,
}

#[async_trait::async_trait]
impl Store for Stuck {
    async fn get(&self, space: Space, partition: &[u8], row: &[u8]) -> StoreResult<Option<Row>> {
        self.inner.get(space, partition, row).await
    }

    fn get_now(&self, space: Space, partition: &[u8], row: &[u8]) -> Option<StoreResult<Option<Row>>> {
        self.inner.get_now(space, partition, row)
    }

    async fn scan(&self, scan: Scan<'_>, visitor: &mut Visitor<'_>) -> StoreResult<ScanEnd> {
        self.inner.scan(scan, visitor).await
    }

    async fn commit(&self, batch: Batch) -> StoreResult<Version> {
        if self.refuses.load(Ordering::Relaxed) {
            return Err(Error::Unavailable("too many commits wait to be written".into()));
        }
        let mut waits = self.waits.clone();
        let _ = waits.wait_for(|waits| !waits).await;
        self.inner.commit(batch).await
    }

    fn figures(&self) -> Vec<(&'static str, u64)> {
        self.inner.figures()
    }
}

/// An engine that takes no more is a busy server, and one that takes some again is none.
#[test]
fn an_engine_that_is_full() {
    let (_go, waits) = tokio::sync::watch::channel(false);
    let store = Arc::new(Stuck { inner: Memory::new(), waits, refuses: AtomicBool::new(false) });
    let server = TestServer::on_store(store.clone(), |_| {});
    server.create("People");
    store.refuses.store(true, Ordering::Relaxed);
    for request in [insert("r"), Request::json("POST", "/Tables", r#"{"TableName":"New"}"#)] {
        let response = server.send(request);
        assert_eq!(response.outcome(), (503, "ServerBusy".to_owned()));
        assert_eq!(response.header("retry-after"), Some("1"));
    }
    let response = partita_testing::batch::part(&server.send(change_set(&[insert("r"), insert("s")])));
    assert_eq!(response.outcome(), (503, "ServerBusy".to_owned()));
    assert_eq!(server.rows("People"), "");
    store.refuses.store(false, Ordering::Relaxed);
    server.send(insert("r")).expect(204);
}

/// A connection of HTTP/2 may have many requests under way, but all of them together have no more places than there may be
/// connections: the next is told so at once.
#[test]
fn more_requests_than_places() {
    const PLACES: usize = 10;
    let (go, waits) = tokio::sync::watch::channel(false);
    let store = Arc::new(Stuck { inner: Memory::new(), waits, refuses: AtomicBool::new(false) });
    let server = TestServer::on_store(store, |settings| settings.max_connections = Some(PLACES));
    server.create("People");
    go.send(true).expect("the store listens");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let statuses = runtime.block_on(async {
        let (busy, told) = tokio::sync::watch::channel(0);
        let requests = (0..50).map(|number| insert(&format!("r{number}")));
        let answers = over_http2(server.address, requests, busy);
        let release = async {
            let mut told = told;
            let enough = told.wait_for(|busy| *busy >= 50 - PLACES);
            tokio::time::timeout(PATIENCE, enough).await.expect("they are told at once").expect("some are told");
            go.send(false).expect("the store listens");
        };
        tokio::join!(answers, release).0
    });
    let count = |wanted: u16| statuses.iter().filter(|status| **status == wanted).count();
    assert_eq!((count(204), count(503)), (PLACES, 50 - PLACES), "{statuses:?}");
    assert_eq!(server.rows("People").split(' ').count(), PLACES);
}

/// Sends all requests at once over one connection; counts those that are told to come back.
async fn over_http2(
    address: SocketAddr,
    requests: impl Iterator<Item = Request>,
    busy: tokio::sync::watch::Sender<usize>,
) -> Vec<u16> {
    let stream = tokio::net::TcpStream::connect(address).await.expect("the server listens");
    let handshake = hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
    let (sender, connection) = handshake.await.expect("HTTP/2");
    tokio::spawn(connection);
    let busy = Arc::new(busy);
    let mut asked = Vec::new();
    for request in requests {
        let request = request.signed();
        let uri = format!("http://{address}/{}{}", request.account, request.target);
        let mut builder = http::Request::builder().method(request.method.as_str()).uri(uri);
        for (name, value) in &request.headers {
            builder = builder.header(name, value);
        }
        let body = Full::new(bytes::Bytes::from(request.body.clone()));
        let request = builder.body(body).expect("a request");
        let (mut sender, busy) = (sender.clone(), busy.clone());
        asked.push(tokio::spawn(async move {
            let response = sender.send_request(request).await.expect("a response");
            let status = response.status().as_u16();
            if status == 503 {
                assert_eq!(response.headers()["retry-after"], "1");
                busy.send_modify(|busy| *busy += 1);
            }
            let _ = response.into_body().collect().await.expect("a body");
            status
        }));
    }
    let mut statuses = Vec::new();
    for answer in asked {
        statuses.push(answer.await.expect("it does not fail"));
    }
    statuses
}

/// With less files than connections it goes on with those it has.
#[test]
fn out_of_files() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let binary = command();
    let mut limited = std::process::Command::new("sh");
    let script = "ulimit -n 100 && exec \"$0\" \"$@\"";
    limited.args(["-c", script]).arg(binary.get_program());
    limited.args(["--table-port=0", "--admin-port=0", "--in-memory", "--location"]).arg(folder.path());
    for (name, value) in binary.get_envs() {
        match value {
            Some(value) => limited.env(name, value),
            None => limited.env_remove(name),
        };
    }
    limited
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let process = Process::spawn(limited).unwrap_or_else(|(status, said)| panic!("{status}\n{said}"));
    let list = Request::get("/Tables").signed().bytes();
    let mut first = process.connect();
    first.exchange(&list).expect(200);
    let many: Vec<TcpStream> = (0..200).map(|_| tcp(process.address)).collect();
    // Those who are in are served, and the others when there is room again.
    for _ in 0..20 {
        first.exchange(&list).expect(200);
    }
    drop(many);
    let mut late = process.connect();
    late.exchange(&list).expect(200);
    drop((first, late));
    process.stop();
}
