//! The processes of a run, and what they keep their rows in.
//!
//! One server on a folder is a cluster of one. Several are on a database, which they share, and which can go away too.

use crate::check::Violation;
use partita_testing::http::PATIENCE;
use partita_testing::postgres::Postgres;
use partita_testing::process::{Process, command_of};
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A program that serves tables.
#[derive(Clone, Debug)]
pub struct Program {
    /// The binary.
    pub binary: PathBuf,
    /// Its arguments but for the storage, which is given behind them.
    pub arguments: Vec<OsString>,
}

impl Program {
    /// Partita itself, on free ports.
    pub fn partita(binary: impl Into<PathBuf>) -> Program {
        let arguments = ["--table-port", "0", "--admin-port", "0"].map(OsString::from).to_vec();
        Program { binary: binary.into(), arguments }
    }

    /// `torture serve`, which is the server on the real engine, or on a mutant of it.
    pub fn mutant(torture: impl Into<PathBuf>, mutant: Option<&str>) -> Program {
        let mut arguments = vec![OsString::from("serve")];
        arguments.extend(mutant.map(|name| format!("--mutant={name}").into()));
        Program { binary: torture.into(), arguments }
    }
}

/// What nodes keep their rows in.
#[derive(Debug)]
pub enum Storage {
    /// A folder, which is one server's alone.
    Folder(PathBuf),
    /// A database, which any number of nodes share.
    Database(Database),
}

/// A database of the run's own.
#[derive(Debug)]
pub struct Database {
    primary: Postgres,
    standby: Option<Postgres>,
    name: String,
    /// Leads to whichever server takes writes.
    url: String,
}

impl Database {
    /// On a server alone; `None` where PostgreSQL is not installed.
    pub fn start() -> Option<Database> {
        let primary = Postgres::start()?;
        let url = primary.database();
        let name = url.rsplit('/').next().expect("a URL ends with a name").to_owned();
        Some(Database { primary, standby: None, name, url })
    }

    /// On two servers: what one acknowledges the other has, and it can take its place.
    pub fn start_with_standby() -> Option<Database> {
        let mut database = Database::start()?;
        let standby = database.primary.standby();
        database.url = database.primary.url_with(&standby, &database.name);
        database.standby = Some(standby);
        Some(database)
    }

    /// As seen by one node.
    fn url(&self, node: usize) -> String {
        format!("{}?application_name={}", self.url, name(node))
    }

    /// Waits until nothing is done any more for a node that is gone. A statement goes on after whoever sent it was killed, and
    /// the server reads what was sent before it notices.
    fn wait_for_end_of(&self, node: usize) {
        let (begun, url, name) = (Instant::now(), self.primary.url(&self.name), name(node));
        let left = format!("SELECT count(*) FROM pg_stat_activity WHERE application_name = '{name}'");
        while Postgres::sql(&url, &left) != "0" {
            assert!(begun.elapsed() < PATIENCE, "connections of {name} do not end");
            sleep(Duration::from_millis(5));
        }
    }

    fn restart(&self) {
        self.primary.stop("immediate");
        self.primary.start_again();
    }

    /// Puts the standby in the place of the primary.
    fn promote(&mut self) {
        let standby = self.standby.as_mut().expect("failover needs a standby");
        standby.promote();
        std::mem::swap(&mut self.primary, standby);
    }

    /// Makes a standby of a primary that was killed.
    fn mend(&mut self) {
        if let Some(standby) = &self.standby {
            standby.follow(&self.primary);
        }
    }
}

fn name(node: usize) -> String {
    format!("node-{node}")
}

/// Where the nodes are. One that is gone has no address.
#[derive(Debug)]
pub struct Addresses(Vec<Mutex<Option<SocketAddr>>>);

impl Addresses {
    /// Of nodes that run.
    pub fn new(addresses: impl IntoIterator<Item = SocketAddr>) -> Addresses {
        Addresses(addresses.into_iter().map(|address| Mutex::new(Some(address))).collect())
    }

    /// How many nodes there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The node that a client asks.
    pub fn node_of(&self, client: u32) -> usize {
        client as usize % self.count()
    }

    /// Where a node is.
    pub fn of(&self, node: usize) -> Option<SocketAddr> {
        *self.0[node].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, node: usize, address: Option<SocketAddr>) {
        *self.0[node].lock().unwrap_or_else(PoisonError::into_inner) = address;
    }
}

/// Processes that serve the same tables.
pub struct Cluster<'r> {
    program: &'r Program,
    storage: &'r mut Storage,
    processes: Vec<Option<Process>>,
    /// Where they are.
    pub addresses: Arc<Addresses>,
}

impl<'r> Cluster<'r> {
    /// Starts so many nodes.
    pub fn start(program: &'r Program, storage: &'r mut Storage, count: usize) -> Result<Cluster<'r>, Violation> {
        assert!(count == 1 || matches!(storage, Storage::Database(_)), "a folder is one server's alone");
        let addresses = Arc::new(Addresses((0..count).map(|_| Mutex::default()).collect()));
        let processes = (0..count).map(|_| None).collect();
        let mut cluster = Cluster { program, storage, processes, addresses };
        cluster.start_missing()?;
        Ok(cluster)
    }

    fn command(&self, node: usize) -> Command {
        let mut command = command_of(&self.program.binary);
        command.args(&self.program.arguments);
        match &*self.storage {
            Storage::Folder(folder) => command.arg("--location").arg(folder),
            Storage::Database(database) => command.arg("--store").arg(database.url(node)),
        };
        command
    }

    /// Starts the nodes that do not run, and waits until they are ready.
    pub fn start_missing(&mut self) -> Result<(), Violation> {
        for node in 0..self.processes.len() {
            if self.processes[node].is_none() {
                let process = Process::spawn(self.command(node)).map_err(|(status, said)| {
                    let what = format!("the server does not start any more ({status}), it says\n{said}");
                    Violation { what, calls: Vec::new() }
                })?;
                self.addresses.set(node, Some(process.address));
                self.processes[node] = Some(process);
            }
        }
        Ok(())
    }

    /// Starts a node that does not run and kills it after so long, whatever it is doing then.
    pub fn start_and_kill(&self, node: usize, after: Duration) {
        let mut child = self.command(node).spawn().expect("a program that ran can be run again");
        sleep(after);
        child.kill().expect("a child can be killed");
        child.wait().expect("a child ends when it is killed");
        self.wait_for_end_of(node);
    }

    /// Stops a node in good order; all it was asked is done or will not be.
    pub fn stop(&mut self, node: usize) {
        self.take(node).stop();
        self.wait_for_end_of(node);
    }

    /// Kills a node; what it was asked and is not done by the time this returns will not be.
    pub fn kill(&mut self, node: usize) {
        self.take(node).kill();
        self.wait_for_end_of(node);
    }

    fn take(&mut self, node: usize) -> Process {
        self.addresses.set(node, None);
        self.processes[node].take().expect("a node that runs")
    }

    fn wait_for_end_of(&self, node: usize) {
        if let Storage::Database(database) = &*self.storage {
            database.wait_for_end_of(node);
        }
    }

    /// Stops all nodes in good order.
    pub fn end(mut self) {
        (0..self.processes.len()).for_each(|node| self.stop(node));
    }

    /// Lets the database crash and come back.
    pub fn restart_database(&mut self) {
        self.database().restart();
    }

    /// Kills the database with all its processes.
    pub fn kill_database(&mut self) {
        self.database().primary.kill();
    }

    /// Puts the standby in the place of a database that was killed.
    pub fn promote_standby(&mut self) {
        self.database().promote();
    }

    /// Makes what was killed a standby, so that the next failover can come.
    pub fn mend_database(&mut self) {
        self.database().mend();
    }

    fn database(&mut self) -> &mut Database {
        match self.storage {
            Storage::Database(database) => database,
            Storage::Folder(_) => panic!("there is no database"),
        }
    }
}
