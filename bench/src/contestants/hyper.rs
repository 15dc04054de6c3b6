//! The ceiling: hyper on the same runtime as Partita, which answers every request with the same kilobyte. It reads no
//! header and verifies nothing.
//!
//! Where there are more than 10,000 rows, it answers with a kilobyte of a file with so many, read from a random
//! place: the least that it costs if rows are in no processor's cache.
//!
//! What it is sent it writes to a file as it came, all that has come meanwhile at once, and answers when that is synced: the
//! least that a durable insert or transaction costs over HTTP. Nobody could find a row in that file.

use super::{Content, Contestant, Server, Stage, TakesPart, table_service};
use crate::Result;
use crate::client::connect;
use crate::entity::Rng;
use crate::process::Process;
use crate::table::{TRANSACTION_ROWS, Target};
use crate::wire::Wire;
use crate::workloads::Work;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, Response, StatusCode, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{LazyLock, Mutex, PoisonError, mpsc};
use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tokio::sync::oneshot;

/// The answer to a transaction: as many parts, as long, as a table service writes.
static BATCH_ANSWER: LazyLock<String> = LazyLock::new(|| {
    let line = "X-Content: 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\r\n";
    format!("HTTP/1.1 204 No Content\r\n{}\r\n", line.repeat(7)).repeat(TRANSACTION_ROWS)
});
/// So many rows or fewer are one fixed answer.
const FIXED_ROWS_MAX: usize = 10_000;
static ROW: [u8; 1024] = [b'x'; 1024];
/// The file for what was sent begins anew after so many bytes. It never grows, since that would make a sync take longer.
const LOG_BYTES: usize = 64 << 20;

pub(super) struct Hyper;

impl Contestant for Hyper {
    fn name(&self) -> &'static str {
        "hyper"
    }

    fn version(&self) -> Result<String> {
        let mut lines = include_str!("../../../Cargo.lock").lines().skip_while(|line| *line != "name = \"hyper\"");
        let version = lines.nth(1).and_then(|line| line.split('"').nth(1)).unwrap_or("of no version");
        Ok(format!("hyper {version}, a fixed answer of 1 KB, or any of a file; a synced file for inserts"))
    }

    fn takes_part(&self, work: Work, _: usize) -> TakesPart {
        match work {
            Work::POINT_READ | Work::INSERT | Work::TRANSACTION => TakesPart::Yes,
            _ => TakesPart::No,
        }
    }

    fn start(&self, folder: &Path, _: bool) -> Result<Server> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("hyper").arg(folder).stdout(Stdio::piped());
        let mut process = Process::start(&mut command)?;
        let address = process.wait_for_line("listens on ")?.parse()?;
        table_service::first_answer(process, address, false)
    }

    fn fill(&self, server: &Server, content: &Content) -> Result<Box<dyn Stage>> {
        if content.rows > FIXED_ROWS_MAX {
            let mut rows = BufWriter::new(File::create(rows_in(&content.folder))?);
            (0..content.rows).try_for_each(|_| rows.write_all(&ROW))?;
            rows.into_inner().map_err(|error| error.into_error())?.sync_all()?;
        }
        let target = Target::new(server.address, content.entities.clone(), content.rows);
        Ok(Box::new(Fixed { address: server.address, target }))
    }
}

struct Fixed {
    address: SocketAddr,
    target: Target,
}

impl Stage for Fixed {
    fn connect(&self, work: Work, connection: usize, connections: usize) -> Result<(TcpStream, Box<dyn Wire>)> {
        let wire = match work {
            Work::POINT_READ => self.target.any_get(),
            _ => self.target.wire(work, connection, connections),
        };
        Ok((connect(self.address)?, wire))
    }
}

/// Where the rows are that it reads, if any.
fn rows_in(folder: &Path) -> PathBuf {
    folder.join("rows")
}

/// Serves until it is killed, on threads that are laid out as Partita's: rows of the file if there is one when a client
/// connects, otherwise a fixed one.
pub fn serve(folder: &Path) -> Result<()> {
    let count = std::thread::available_parallelism().map_or(1, usize::from) + 1;
    let let_others_finish = || partita_scheduling::let_others_finish().unwrap_or_default();
    let worker =
        |_| Builder::new_multi_thread().worker_threads(1).on_thread_start(let_others_finish).enable_all().build();
    let workers = (0..count).map(worker).collect::<std::io::Result<Vec<_>>>()?;
    let log = start_log(folder.join("log"));
    Builder::new_current_thread().enable_all().build()?.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("listens on {}", listener.local_addr()?);
        for (number, worker) in workers.iter().cycle().enumerate() {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            let stream = stream.into_std()?;
            let source = Source::open(&rows_in(folder), number as u64)?;
            let log = log.clone();
            worker.spawn(async move {
                let Ok(stream) = tokio::net::TcpStream::from_std(stream) else { return };
                let answers = service_fn(|request| answer(request, &source, &log));
                // How a connection ends is for its client to say.
                let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), answers).await;
            });
        }
        Ok(())
    })
}

async fn answer(request: Request<Incoming>, source: &Source, log: &Log) -> Result<Response<Full<Bytes>>> {
    if request.method() == Method::POST {
        let is_batch = request.uri().path().ends_with("$batch");
        let body = request.into_body().collect().await?.to_bytes();
        let (synced, is_synced) = oneshot::channel();
        log.send((body, synced))?;
        is_synced.await?;
        if is_batch {
            let mut response = Response::new(Full::new(Bytes::from_static(BATCH_ANSWER.as_bytes())));
            *response.status_mut() = StatusCode::ACCEPTED;
            return Ok(response);
        }
        let mut response = Response::new(Full::default());
        *response.status_mut() = StatusCode::NO_CONTENT;
        return Ok(response);
    }
    let mut response = Response::new(Full::new(source.row()?));
    let json = HeaderValue::from_static("application/json;odata=minimalmetadata");
    response.headers_mut().insert(CONTENT_TYPE, json);
    Ok(response)
}

/// Takes what was sent, and whom to tell that it is synced.
type Log = mpsc::Sender<(Bytes, oneshot::Sender<()>)>;

/// Starts the thread that writes, which Partita has as well.
fn start_log(path: PathBuf) -> Log {
    let (log, sent) = mpsc::channel();
    std::thread::spawn(move || keep_log(&path, &sent).expect("the log can be written"));
    log
}

fn keep_log(path: &Path, sent: &mpsc::Receiver<(Bytes, oneshot::Sender<()>)>) -> io::Result<()> {
    let Ok(mut next) = sent.recv() else { return Ok(()) };
    let mut file = File::create(path)?;
    file.write_all(&vec![0; LOG_BYTES])?;
    file.sync_all()?;
    let (mut at, mut bytes, mut waiting) = (0, Vec::new(), Vec::new());
    loop {
        for (body, synced) in std::iter::once(next).chain(sent.try_iter()) {
            bytes.extend_from_slice(&body);
            waiting.push(synced);
        }
        if at + bytes.len() > LOG_BYTES {
            at = 0;
        }
        file.write_all_at(&bytes, at as u64)?;
        file.sync_data()?;
        at += bytes.len();
        bytes.clear();
        // Whoever is gone need not be told.
        waiting.drain(..).for_each(|synced: oneshot::Sender<()>| synced.send(()).unwrap_or_default());
        match sent.recv() {
            Ok(more) => next = more,
            Err(_) => return Ok(()),
        }
    }
}

/// Where answers of a connection come from.
enum Source {
    Fixed,
    File { file: File, rows: usize, places: Mutex<Rng> },
}

impl Source {
    fn open(rows: &Path, seed: u64) -> io::Result<Source> {
        let file = match File::open(rows) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Source::Fixed),
            file => file?,
        };
        let rows = file.metadata()?.len() as usize / ROW.len();
        Ok(Source::File { file, rows, places: Mutex::new(Rng::new(seed)) })
    }

    fn row(&self) -> io::Result<Bytes> {
        let Source::File { file, rows, places } = self else { return Ok(Bytes::from_static(&ROW)) };
        let place = places.lock().unwrap_or_else(PoisonError::into_inner).below(*rows);
        let mut row = vec![0; ROW.len()];
        file.read_exact_at(&mut row, (place * ROW.len()) as u64)?;
        Ok(row.into())
    }
}
