//! Who takes part: how each is started and filled, and how to talk to it.

mod azurite;
pub mod hyper;
mod partita;
mod postgres;
mod redis;
mod table_service;

use crate::Result;
use crate::entity::{Entities, Spread};
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
}

/// All of them, in the order in which they are shown.
pub fn all(programs: &Programs) -> Vec<Box<dyn Contestant>> {
    vec![
        Box::new(partita::Partita { binary: programs.partita.clone() }),
        Box::new(hyper::Hyper),
        Box::new(redis::Redis),
        Box::new(postgres::Postgres),
        Box::new(azurite::Azurite { folder: programs.azurite.clone() }),
    ]
}

/// The names of all of them.
pub const NAMES: [&str; 5] = ["partita", "hyper", "redis", "postgres", "azurite"];

/// The first line that a program says of its version.
fn version_line(program: &Path, argument: &str) -> Result<String> {
    let output = std::process::Command::new(program).arg(argument).output();
    let output = output.map_err(|error| format!("{} cannot be run: {error}", program.display()))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(text.lines().next().unwrap_or_default().trim().to_owned())
}
