//! A whole run: rounds, and in each of them every group of workloads with one contestant after the other.
//!
//! Contestants take turns within a round, and who begins changes from round to round, so that a slow hour of the
//! machine hits all of them.

use crate::contestants::{Content, Contestant, Programs, Restarts, Server, Stage, TakesPart, all};
use crate::entity::{Entities, SEED};
use crate::load::{self, Link, Plan};
use crate::machine::{self, CpuTime, Machine};
use crate::process::Folder;
use crate::results::{Cell, Figure, Results, Version};
use crate::used_memory::UsedMemory;
use crate::workloads::{BESIDE_ROWS, Group, Style, Workload, groups};
use crate::{Result, report};
use partita_model::Ticks;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// When others used more of the machine than this, a measurement is made again.
const OTHERS_MAX: f64 = 0.06;
/// So often at most, unless it has to be quick. The least disturbed one counts.
const ATTEMPTS_MAX: usize = 3;

/// What to run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whether the largest tables are left out.
    pub quick: bool,
    /// How often.
    pub rounds: usize,
    /// How long each measurement takes.
    pub time: Duration,
    /// On how many connections.
    pub connections: Vec<usize>,
    /// Threads of the load generator.
    pub threads: usize,
    /// Who takes part; everybody if empty.
    pub only: Vec<String>,
    /// Which workloads; all if empty.
    pub workloads: Vec<String>,
    /// Where servers keep their data meanwhile.
    pub data: PathBuf,
    /// Where the programs are.
    pub programs: Programs,
}

impl Options {
    fn wants(&self, workload: &Workload) -> bool {
        self.workloads.is_empty() || self.workloads.iter().any(|name| name == workload.name)
    }
}

/// Runs everything. What fails is told and left out.
pub fn run(options: &Options) -> Result<Results> {
    let mut results = Results {
        date: Ticks::from_system_time(SystemTime::now()).to_string()[..16].replace('T', " "),
        quick: options.quick,
        seconds: options.time.as_secs_f64(),
        rounds: options.rounds,
        load_threads: options.threads,
        machine: Machine::here(),
        ..Results::default()
    };
    let mut contestants = Vec::new();
    for contestant in all(&options.programs) {
        let name = contestant.name().to_owned();
        if !options.only.is_empty() && !options.only.contains(&name) {
            continue;
        }
        match contestant.version() {
            Ok(version) => {
                results.contestants.push(Version { contestant: name, version });
                contestants.push(contestant);
            }
            Err(error) => remark(&mut results, format!("{name} is MISSING and left out: {error}")),
        }
    }
    let entities = Arc::new(Entities::new(SEED));
    let memory = UsedMemory::new(&options.data.join("memory"))?;
    for round in 1..=options.rounds {
        for group in groups(options.quick) {
            for turn in 0..contestants.len() {
                let contestant = &*contestants[(turn + round - 1) % contestants.len()];
                let (group, results) = (&group, &mut results);
                let mut visit = Visit { options, memory: &memory, contestant, round, group, results };
                if let Err(error) = visit.run(&entities) {
                    visit.failed(&error.to_string());
                }
            }
        }
    }
    drop(memory);
    let _ = std::fs::remove_dir(&options.data);
    Ok(results)
}

fn remark(results: &mut Results, text: String) {
    eprintln!("bench: {text}");
    results.remarks.push(text);
}

/// A server that is filled. What is dropped first stands first.
struct Site {
    stage: Box<dyn Stage>,
    server: Server,
    folder: Folder,
}

/// One contestant in one group of one round.
struct Visit<'a> {
    options: &'a Options,
    memory: &'a UsedMemory,
    contestant: &'a dyn Contestant,
    round: usize,
    group: &'a Group,
    results: &'a mut Results,
}

impl Visit<'_> {
    fn run(&mut self, entities: &Arc<Entities>) -> Result<()> {
        let rows = self.group.rows;
        let wanted = self.group.workloads.iter().filter(|workload| self.options.wants(workload));
        let takes_part = |workload: &&Workload| self.contestant.takes_part(workload.work, rows) == TakesPart::Yes;
        let workloads: Vec<&Workload> = wanted.filter(takes_part).collect();
        if workloads.is_empty() {
            return Ok(());
        }
        let mut site = self.open("", rows, entities)?;
        let mut beside = match self.group.beside.filter(|_| workloads[0].name == self.group.workloads[0].name) {
            Some(workload) => Some((workload, self.open("-beside", BESIDE_ROWS, entities)?)),
            None => None,
        };
        if self.group.is_weighed {
            machine::wait_until_quiet(|| site.server.family());
        }
        for workload in workloads {
            let alone = [1];
            let connections = if workload.style == Style::Alone { &alone } else { self.options.connections.as_slice() };
            for &connections in connections {
                self.measure_or_tell(workload, connections, &mut site)?;
                if let Some((workload, site)) = &mut beside {
                    self.measure_or_tell(workload, connections, site)?;
                }
            }
            if let Some((_, site)) = beside.take() {
                site.server.stop()?;
            }
        }
        match self.group.is_weighed {
            true => self.weigh(site),
            false => site.server.stop(),
        }
    }

    /// Starts a server and fills it, in the usual folder or one whose name ends in something else.
    fn open(&mut self, ending: &str, rows: usize, entities: &Arc<Entities>) -> Result<Site> {
        let mut path = self.contestant.folder(&self.options.data);
        path.as_mut_os_string().push(ending);
        let folder = Folder::new(path)?;
        self.memory.fill()?;
        let server = self.contestant.start(folder.path(), false)?;
        self.figure("start ms", server.ready_after.as_secs_f64() * 1e3);
        self.memory("idle", &server);
        if let Some(bytes) = self.contestant.binary_bytes() {
            self.figure("binary bytes", bytes as f64);
        }
        let (tables, path) = (self.group.tables.to_vec(), folder.path().to_owned());
        let content = Content { entities: entities.clone(), rows, tables, folder: path };
        let stage = self.contestant.fill(&server, &content)?;
        Ok(Site { stage, server, folder })
    }

    /// An error only if the server has ended.
    fn measure_or_tell(&mut self, workload: &Workload, connections: usize, site: &mut Site) -> Result<()> {
        if let Err(error) = self.measure(workload, connections, &*site.stage, &site.server) {
            let words = format!("{} on {connections} connections: {error}", workload.name);
            if !site.server.is_alive() {
                return Err(format!("{words}; it ended").into());
            }
            self.failed(&words);
        }
        Ok(())
    }

    fn measure(&mut self, workload: &Workload, connections: usize, stage: &dyn Stage, server: &Server) -> Result<()> {
        let mut best: Option<Cell> = None;
        let attempts = if self.options.quick { 1 } else { ATTEMPTS_MAX };
        for _ in 0..attempts {
            let Some(cell) = self.attempt(workload, connections, stage, server)? else { return Ok(()) };
            eprintln!("{}", report::progress(&cell, workload));
            let is_quiet = cell.others <= OTHERS_MAX;
            if best.as_ref().is_none_or(|best| cell.others < best.others) {
                best = Some(cell);
            }
            if is_quiet {
                break;
            }
        }
        self.results.cells.extend(best);
        Ok(())
    }

    /// Measures once; `None` if it is not known how.
    fn attempt(
        &self,
        workload: &Workload,
        connections: usize,
        stage: &dyn Stage,
        server: &Server,
    ) -> Result<Option<Cell>> {
        let rate = match workload.style {
            Style::Paced => match self.rate_of_get(connections) {
                Some(rate) => Some(rate / 2.0),
                None => return Ok(None),
            },
            _ => None,
        };
        self.memory.fill()?;
        let link = |connection: usize| {
            let (stream, wire) = stage.connect(workload.work, connection, connections)?;
            Ok(Link { stream, wire, is_measured: workload.work.measures(connection) })
        };
        let links = (0..connections).map(link).collect::<Result<Vec<_>>>()?;
        let time = self.options.time.min(self.contestant.time_max());
        let plan = Plan { warm_up: time / 5, time: Some(time), rate, threads: self.options.threads };
        let (mut before, mut after) = (CpuTime::default(), CpuTime::default());
        let observe = || (before, after) = (after, CpuTime::now(&server.family()));
        let outcome = load::drive(links, plan, observe)?;
        // Of few long operations the last is cut off by the end, so the time of the others tells more.
        let seconds = match workload.style {
            Style::Alone => outcome.latencies.mean() * outcome.operations as f64 / 1e9,
            _ => outcome.time.as_secs_f64(),
        };
        let microseconds = |percent| outcome.latencies.percentile(percent) as f64 / 1e3;
        Ok(Some(Cell {
            round: self.round,
            contestant: self.contestant.name().into(),
            workload: workload.name.into(),
            connections,
            operations: outcome.operations as f64 / seconds,
            rows: outcome.rows as f64 / seconds,
            p50: microseconds(50.0),
            p99: microseconds(99.0),
            p999: microseconds(99.9),
            max: outcome.latencies.max() as f64 / 1e3,
            server_cpu: after.server_since(&before) * 1e6 / outcome.operations.max(1) as f64,
            others: after.others_since(&before),
        }))
    }

    /// What this contestant reached at reading in this round.
    fn rate_of_get(&self, connections: usize) -> Option<f64> {
        let mut cells = self.results.cells_of(self.contestant.name(), "get");
        cells.find(|cell| cell.round == self.round && cell.connections == connections).map(|cell| cell.operations)
    }

    /// Memory, disk, and what it takes to start with all these rows.
    fn weigh(&mut self, Site { server, folder, .. }: Site) -> Result<()> {
        let size = if self.group.rows >= 1_000_000 { "1m" } else { "100k" };
        self.memory(size, &server);
        self.figure(&format!("disk {size} bytes"), machine::disk(folder.path()) as f64);
        let restart = |kind: &str, visit: &mut Self| {
            let server = visit.contestant.start(folder.path(), true)?;
            visit.figure(&format!("{kind} {size} ms"), server.ready_after.as_secs_f64() * 1e3);
            Ok::<_, crate::Error>(server)
        };
        let server = match self.contestant.restarts() {
            Restarts::AfterAnyEnd => {
                server.process.kill();
                restart("restart after kill", self)?
            }
            _ => server,
        };
        server.stop()?;
        if self.contestant.restarts() != Restarts::Never {
            restart("restart", self)?.stop()?;
        }
        Ok(())
    }

    fn failed(&mut self, why: &str) {
        remark(self.results, format!("{} FAILED in round {}: {why}", self.contestant.name(), self.round));
    }

    fn memory(&mut self, when: &str, server: &Server) {
        let memory = machine::memory(&server.family());
        self.figure(&format!("resident {when} bytes"), memory.resident as f64);
        self.figure(&format!("anonymous {when} bytes"), memory.anonymous as f64);
    }

    fn figure(&mut self, name: &str, value: f64) {
        let contestant = self.contestant.name().to_owned();
        self.results.figures.push(Figure { round: self.round, contestant, name: name.to_owned(), value });
    }
}
