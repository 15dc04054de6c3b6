//! Redis from its package: every write is synced before it is answered, and nothing else is written.

use super::{Content, Contestant, Server, Stage, TakesPart, version_line};
use crate::client::{connect, free_port, until_it_works};
use crate::entity::{Entities, NewRow, Rng};
use crate::process::Process;
use crate::wire::{Wire, resp};
use crate::workloads::Work;
use crate::{Error, Result};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Rows that are sent at once to fill it.
const PIPELINE: usize = 500;

pub(super) struct Redis;

impl Contestant for Redis {
    fn name(&self) -> &'static str {
        "redis"
    }

    fn version(&self) -> Result<String> {
        let line = version_line(Path::new("redis-server"), "--version")?;
        let version = line.split_whitespace().find_map(|word| word.strip_prefix("v=")).unwrap_or("of no version");
        Ok(format!("Redis {version}"))
    }

    fn takes_part(&self, work: Work, _: usize) -> TakesPart {
        match work {
            Work::POINT_READ | Work::INSERT => TakesPart::Yes,
            _ => TakesPart::No,
        }
    }

    fn start(&self, folder: &Path, _: bool) -> Result<Server> {
        let port = free_port()?;
        let mut command = Command::new("redis-server");
        command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--dir"]).arg(folder);
        command.args(["--save", "", "--appendonly", "yes", "--appendfsync", "always"]);
        command.args(["--auto-aof-rewrite-percentage", "0"]).stdout(Stdio::null()).stderr(Stdio::null());
        let mut process = Process::start(&mut command)?;
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        until_it_works(|| ask(address, b"PING\r\n", b"+PONG\r\n"), || process.is_alive())?;
        let ready_after = process.started.elapsed();
        Ok(Server { process, address, ready_after, nodes: Vec::new() })
    }

    fn fill(&self, server: &Server, content: &Content) -> Result<Box<dyn Stage>> {
        let sync =
            |when: &str| ask(server.address, format!("CONFIG SET appendfsync {when}\r\n").as_bytes(), b"+OK\r\n");
        sync("no")?;
        let mut stream = connect(server.address)?;
        let (mut out, mut key, mut value) = (Vec::new(), Vec::new(), Vec::new());
        for first in (0..content.rows).step_by(PIPELINE) {
            out.clear();
            let rows = first..(first + PIPELINE).min(content.rows);
            for row in rows.clone() {
                key.clear();
                value.clear();
                resp::key(row, &mut key);
                content.entities.properties(row, 0, &mut value);
                resp::set(&key, &value, &mut out);
            }
            stream.write_all(&out)?;
            let mut answers = vec![0; rows.len() * b"+OK\r\n".len()];
            stream.read_exact(&mut answers)?;
            if answers != b"+OK\r\n".repeat(rows.len()) {
                return Err(String::from_utf8_lossy(&answers[..100]).into());
            }
        }
        sync("always")?;
        let (address, entities, rows) = (server.address, content.entities.clone(), content.rows);
        Ok(Box::new(Filled { address, entities, rows, wires: AtomicUsize::new(0) }))
    }
}

struct Filled {
    address: SocketAddr,
    entities: Arc<Entities>,
    rows: usize,
    wires: AtomicUsize,
}

impl Stage for Filled {
    fn connect(&self, work: Work, _: usize, _: usize) -> Result<(TcpStream, Box<dyn Wire>)> {
        let number = self.wires.fetch_add(1, Relaxed);
        let wire: Box<dyn Wire> = match work {
            Work::INSERT => {
                let row = NewRow { writer: number, sequence: 0 };
                Box::new(resp::Set::new(self.entities.clone(), row))
            }
            _ => Box::new(resp::Get::new(self.rows, Rng::new(number as u64))),
        };
        Ok((connect(self.address)?, wire))
    }
}

fn ask(address: SocketAddr, request: &[u8], want: &[u8]) -> Result<()> {
    let mut stream = connect(address)?;
    stream.write_all(request)?;
    let mut answer = vec![0; want.len()];
    stream.read_exact(&mut answer)?;
    if answer == want { Ok(()) } else { Err(Error::from(String::from_utf8_lossy(&answer).into_owned())) }
}
