//! The ceiling: hyper on the same runtime as Partita, which answers every request with the same kilobyte. It reads no
//! header, verifies nothing and stores nothing.

use super::{Content, Contestant, Server, Stage, TakesPart, table_service};
use crate::Result;
use crate::client::connect;
use crate::entity::Spread;
use crate::process::Process;
use crate::table::{Auth, Target};
use crate::wire::Wire;
use crate::workloads::Work;
use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Response, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use tokio::net::TcpListener;
use tokio::runtime::Builder;

pub(super) struct Hyper;

impl Contestant for Hyper {
    fn name(&self) -> &'static str {
        "hyper"
    }

    fn version(&self) -> Result<String> {
        let mut lines = include_str!("../../../Cargo.lock").lines().skip_while(|line| *line != "name = \"hyper\"");
        let version = lines.nth(1).and_then(|line| line.split('"').nth(1)).unwrap_or("of no version");
        Ok(format!("hyper {version}, a fixed answer of 1 KB"))
    }

    fn takes_part(&self, work: Work, rows: usize) -> TakesPart {
        match work {
            Work::Get(Auth::SharedKey, Spread::Partitions) if rows <= 10_000 => TakesPart::Yes,
            _ => TakesPart::No,
        }
    }

    fn start(&self, _: &Path, _: bool) -> Result<Server> {
        let mut command = Command::new(std::env::current_exe()?);
        let mut process = Process::start(command.arg("hyper").stdout(Stdio::piped()))?;
        let address = process.wait_for_line("listens on ")?.parse()?;
        table_service::first_answer(process, address, false)
    }

    fn fill(&self, server: &Server, content: &Content) -> Result<Box<dyn Stage>> {
        let target = Target::new(server.address, content.entities.clone(), content.rows);
        Ok(Box::new(Fixed { address: server.address, target }))
    }
}

struct Fixed {
    address: SocketAddr,
    target: Target,
}

impl Stage for Fixed {
    fn connect(&self, _: Work, _: usize, _: usize) -> Result<(TcpStream, Box<dyn Wire>)> {
        Ok((connect(self.address)?, self.target.any_get()))
    }
}

/// Serves until it is killed, on threads that are laid out as Partita's.
pub fn serve() -> Result<()> {
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    let worker = |_| Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let workers = (0..count).map(worker).collect::<std::io::Result<Vec<_>>>()?;
    Builder::new_current_thread().enable_all().build()?.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("listens on {}", listener.local_addr()?);
        for worker in workers.iter().cycle() {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            let stream = stream.into_std()?;
            worker.spawn(async move {
                let Ok(stream) = tokio::net::TcpStream::from_std(stream) else { return };
                let answers = service_fn(|_| async {
                    let mut response = Response::new(Full::new(Bytes::from_static(&[b'x'; 1024])));
                    let json = HeaderValue::from_static("application/json;odata=minimalmetadata");
                    response.headers_mut().insert(CONTENT_TYPE, json);
                    Ok::<_, Infallible>(response)
                });
                // How a connection ends is for its client to say.
                let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), answers).await;
            });
        }
        Ok(())
    })
}
