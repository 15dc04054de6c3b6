//! Who takes part: how each is started and filled, and how to talk to it.

mod azurite;
pub mod hyper;
mod partita;
mod postgres;
mod postgres_store;
mod redis;
mod table_service;

use crate::Result;
use crate::entity::{Entities, Spread};
use crate::machine;
use crate::process::Process;
use crate::wire::Wire;
use crate::workloads::Work;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// A server program.
pub trait Contestant {
    /// What it is called in tables and plots.
    fn name(&self) -> &'static str;

    /// Which version is installed; an error says what is missing.
    fn version(&self) -> Result<String>;

    /// Whether it takes part in this work with so many rows.
    fn takes_part(&self, work: Work, rows: usize) -> TakesPart;

    /// Starts it on a folder and waits for its first answer. If there are rows, that is one of them.
    fn start(&self, folder: &Path, has_rows: bool) -> Result<Server>;

    /// Fills it with rows.
    fn fill(&self, server: &Server, content: &Content) -> Result<Box<dyn Stage>>;

    /// The longest that one workload should take.
    fn time_max(&self) -> Duration {
        Duration::MAX
    }

    /// How big the program is, if it is one file.
    fn binary_bytes(&self) -> Option<u64> {
        None
    }

    /// Whether it is compared in starting with rows.
    fn restarts(&self) -> Restarts {
        Restarts::Never
    }

    /// Where it keeps its data, somewhere below `data` if it can.
    fn folder(&self, data: &Path) -> PathBuf {
        data.join(self.name())
    }
}

/// Whether somebody is compared in starting with rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restarts {
    /// It is not.
    Never,
    /// After it was stopped in good order.
    AfterStop,
    /// Also after it was killed.
    AfterAnyEnd,
}

/// Whether somebody takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakesPart {
    /// It does.
    Yes,
    /// It is not compared in this.
    No,
    /// It should and cannot.
    Cannot,
}

/// A server that has answered.
#[derive(Debug)]
pub struct Server {
    /// The process; it ends with this.
    pub process: Process,
    /// Where it listens.
    pub address: SocketAddr,
    /// The time from its start to its first answer.
    pub ready_after: Duration,
    /// Processes in front of it that take the requests in its place.
    pub nodes: Vec<Node>,
}

/// A process in front of a server.
#[derive(Debug)]
pub struct Node {
    /// The process; it ends with this.
    pub process: Process,
    /// Where it listens.
    pub address: SocketAddr,
}

impl Server {
    /// Where requests go.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        match &self.nodes[..] {
            [] => vec![self.address],
            nodes => nodes.iter().map(|node| node.address).collect(),
        }
    }

    /// The numbers of all its processes.
    pub fn family(&self) -> Vec<u32> {
        let processes = self.nodes.iter().map(|node| &node.process).chain([&self.process]);
        processes.flat_map(|process| machine::family(process.pid())).collect()
    }

    /// Whether all of it runs.
    pub fn is_alive(&mut self) -> bool {
        self.process.is_alive() && self.nodes.iter_mut().all(|node| node.process.is_alive())
    }

    /// Ends it in good order, those in front first.
    pub fn stop(self) -> Result<()> {
        self.nodes.into_iter().try_for_each(|node| node.process.stop())?;
        self.process.stop()
    }
}

/// What is filled in before the measurement.
#[derive(Clone, Debug)]
pub struct Content {
    /// Where rows come from.
    pub entities: Arc<Entities>,
    /// How many rows each table has.
    pub rows: usize,
    /// Which tables there are.
    pub tables: Vec<Spread>,
    /// Where the server was started.
    pub folder: PathBuf,
}

/// A server that is filled and ready to be measured.
pub trait Stage {
    /// Opens one of several connections that do this work.
    fn connect(&self, work: Work, connection: usize, connections: usize) -> Result<(TcpStream, Box<dyn Wire>)>;
}

/// Where the programs are.
#[derive(Clone, Debug)]
pub struct Programs {
    /// The binary of Partita.
    pub partita: PathBuf,
    /// The folder with the `node_modules` of Azurite.
    pub azurite: PathBuf,
    /// Whether Azurite is told not to print a line for each request, as it does by itself.
    pub azurite_is_silent: bool,
}

/// All of them, in the order in which they are shown.
pub fn all(programs: &Programs) -> Vec<Box<dyn Contestant>> {
    vec![
        Box::new(partita::Partita { binary: programs.partita.clone() }),
        Box::new(hyper::Hyper),
        Box::new(redis::Redis),
        Box::new(postgres::Postgres),
        Box::new(azurite::Azurite { folder: programs.azurite.clone(), is_silent: programs.azurite_is_silent }),
        Box::new(postgres_store::PostgresStore { binary: programs.partita.clone(), nodes: 1 }),
        Box::new(postgres_store::PostgresStore { binary: programs.partita.clone(), nodes: 2 }),
        Box::new(postgres_store::PostgresStore { binary: programs.partita.clone(), nodes: 3 }),
    ]
}

/// The names of all of them.
pub const NAMES: [&str; 8] = [PEERS[0], PEERS[1], PEERS[2], PEERS[3], PEERS[4], STORES[0], STORES[1], STORES[2]];

/// Those that Partita on its own engine is compared with, itself first.
pub const PEERS: [&str; 5] = ["partita", "hyper", "redis", "postgres", "azurite"];

/// Partita on PostgreSQL, with one, two and three nodes.
pub const STORES: [&str; 3] = ["store-1", "store-2", "store-3"];

/// The first line that a program says of its version.
fn version_line(program: &Path, argument: &str) -> Result<String> {
    let output = std::process::Command::new(program).arg(argument).output();
    let output = output.map_err(|error| format!("{} cannot be run: {error}", program.display()))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(text.lines().next().unwrap_or_default().trim().to_owned())
}
