//! PostgreSQL from its package: a table with the same keys and values, read and written by prepared statements, each
//! insert committed and synced by itself.

use super::{Content, Contestant, Server, Stage, TakesPart, version_line};
use crate::client::{connect, free_port, until_it_works};
use crate::entity::{Entities, NewRow, Rng, Spread, row_key};
use crate::process::Process;
use crate::wire::{Wire, postgres};
use crate::workloads::Work;
use crate::{Error, Result};
use rustix::process::{Signal, getuid};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The user inside the database, whoever runs it.
pub(super) const USER: &str = "postgres";
/// Where packages of Debian have their programs, which are not on the path, in a folder for each version.
const DEBIAN: &str = "/usr/lib/postgresql";

pub(super) struct Postgres;

impl Contestant for Postgres {
    fn name(&self) -> &'static str {
        "postgres"
    }

    fn version(&self) -> Result<String> {
        let line = version_line(&program("postgres"), "--version")?;
        let version = line.split_whitespace().nth(2).unwrap_or("of no version");
        Ok(format!("PostgreSQL {version}"))
    }

    fn takes_part(&self, work: Work, _: usize) -> TakesPart {
        match work {
            Work::POINT_READ | Work::INSERT => TakesPart::Yes,
            _ => TakesPart::No,
        }
    }

    fn start(&self, folder: &Path, _: bool) -> Result<Server> {
        let owner = Owner::of(folder)?;
        let folder = folder.join("postgres");
        let mut init = Command::new(program("initdb"));
        init.args(["--username", USER, "--auth", "trust", "--encoding", "UTF8", "--locale", "C", "--pgdata"]);
        let output = owner.runs(init.arg(&folder)).output()?;
        if !output.status.success() {
            return Err(format!("initdb: {}", String::from_utf8_lossy(&output.stderr)).into());
        }
        let port = free_port()?;
        let mut command = Command::new(program("postgres"));
        command.arg("-D").arg(&folder).args(["-p", &port.to_string(), "-h", "127.0.0.1", "-k", ""]);
        for setting in ["fsync=on", "synchronous_commit=on", "shared_buffers=256MB", "max_connections=200"] {
            command.args(["-c", setting]);
        }
        owner.runs(&mut command).stdout(Stdio::null()).stderr(Stdio::null());
        // Interrupted it stops without waiting for clients; at a quit it and its children just end.
        let mut process = Process::start_with_signals(&mut command, Signal::INT, Signal::QUIT)?;
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        until_it_works(|| open(address), || process.is_alive())?;
        let ready_after = process.started.elapsed();
        Ok(Server { process, address, ready_after, nodes: Vec::new() })
    }

    fn fill(&self, server: &Server, content: &Content) -> Result<Box<dyn Stage>> {
        let mut stream = open(server.address)?;
        run(&mut stream, "CREATE TABLE rows (pk text, rk text, value text, PRIMARY KEY (pk, rk))")?;
        if content.rows > 0 {
            copy(&mut stream, content)?;
            run(&mut stream, "VACUUM ANALYZE rows")?;
        }
        let (address, entities, rows) = (server.address, content.entities.clone(), content.rows);
        Ok(Box::new(Filled { address, entities, rows, wires: AtomicUsize::new(0) }))
    }

    fn folder(&self, data: &Path) -> PathBuf {
        folder(data, self.name())
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
        let (sql, wire): (_, Box<dyn Wire>) = match work {
            Work::INSERT => {
                let row = NewRow { writer: number, sequence: 0 };
                (postgres::Insert::SQL, Box::new(postgres::Insert::new(self.entities.clone(), row)))
            }
            _ => (postgres::Select::SQL, Box::new(postgres::Select::new(self.rows, Rng::new(number as u64)))),
        };
        let mut stream = open(self.address)?;
        let mut request = Vec::new();
        postgres::prepare(sql, &mut request);
        exchange(&mut stream, &request, b'Z')?;
        Ok((stream, wire))
    }
}

/// Who runs the server: PostgreSQL refuses to be run by root.
struct Owner(Option<(u32, u32)>);

impl Owner {
    /// Finds somebody unprivileged if we are root, and gives the folder to them.
    fn of(folder: &Path) -> Result<Owner> {
        if !getuid().is_root() {
            return Ok(Owner(None));
        }
        let users = std::fs::read_to_string("/etc/passwd")?;
        let user = |name: &str| {
            let mut fields = users.lines().find(|line| line.starts_with(&format!("{name}:")))?.split(':').skip(2);
            Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
        };
        let (uid, gid) = user("postgres").or_else(|| user("nobody")).ok_or("there is no unprivileged user")?;
        chown(folder, Some(uid), Some(gid))?;
        Ok(Owner(Some((uid, gid))))
    }

    fn runs<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.current_dir("/");
        match self.0 {
            Some((uid, gid)) => command.uid(uid).gid(gid),
            None => command,
        }
    }
}

/// A folder that the unprivileged user gets to, which one of root may not be.
pub(super) fn folder(data: &Path, name: &str) -> PathBuf {
    if is_reachable(data) {
        return data.join(name);
    }
    Path::new("/var/tmp").join(format!("partita-bench-{}", std::process::id()))
}

/// Whether an unprivileged user gets to a folder.
fn is_reachable(folder: &Path) -> bool {
    let passable = |folder: &Path| folder.metadata().is_ok_and(|metadata| metadata.permissions().mode() & 1 != 0);
    !getuid().is_root() || folder.ancestors().all(passable)
}

fn program(name: &str) -> PathBuf {
    let versions = std::fs::read_dir(DEBIAN).into_iter().flatten().flatten();
    let versions = versions.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let program = |version| Path::new(DEBIAN).join(format!("{version}/bin/{name}"));
    versions.max().map(program).filter(|path| path.exists()).unwrap_or_else(|| name.into())
}

/// A connection that is ready for queries.
pub(super) fn open(address: SocketAddr) -> Result<TcpStream> {
    let mut stream = connect(address)?;
    exchange(&mut stream, &postgres::startup(USER), b'Z')?;
    Ok(stream)
}

pub(super) fn run(stream: &mut TcpStream, sql: &str) -> Result<()> {
    exchange(stream, &query(sql), b'Z')
}

fn query(sql: &str) -> Vec<u8> {
    let mut request = Vec::new();
    postgres::message(b'Q', &mut request, |out| {
        out.extend_from_slice(sql.as_bytes());
        out.push(0);
    });
    request
}

/// Sends something and reads up to a message of this kind.
fn exchange(stream: &mut TcpStream, request: &[u8], until: u8) -> Result<()> {
    stream.write_all(request)?;
    let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        let read = stream.read(&mut buffer)?;
        bytes.extend_from_slice(&buffer[..read]);
        match postgres::reply(&bytes, until) {
            Some(reply) if !reply.is_error => return Ok(()),
            None if read > 0 => {}
            _ => return Err(Error::from(String::from_utf8_lossy(&bytes).into_owned())),
        }
    }
}

fn copy(stream: &mut TcpStream, content: &Content) -> Result<()> {
    exchange(stream, &query("COPY rows FROM STDIN"), b'G')?;
    let mut out = Vec::new();
    for row in 0..content.rows {
        postgres::message(b'd', &mut out, |out| {
            Spread::Partitions.partition(row, out);
            out.push(b'\t');
            row_key(row, out);
            out.push(b'\t');
            content.entities.properties(row, 0, out);
            out.push(b'\n');
        });
        if out.len() > 1 << 20 {
            stream.write_all(&out)?;
            out.clear();
        }
    }
    postgres::message(b'c', &mut out, |_| {});
    exchange(stream, &out, b'Z')
}
