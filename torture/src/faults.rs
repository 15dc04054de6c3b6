//! Runs with processes that are killed, stopped and started again on the same folder.

use crate::check::Violation;
use crate::client::Common;
use crate::random::Random;
use crate::run::{Run, Totals};
use partita_testing::process::{Process, command_of};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A program that serves tables.
#[derive(Clone, Debug)]
pub struct Program {
    /// The binary.
    pub binary: PathBuf,
    /// Its arguments but for the folder, which is given behind them with `--location`.
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

    fn command(&self, folder: &Path) -> Command {
        let mut command = command_of(&self.binary);
        command.args(&self.arguments).arg("--location").arg(folder);
        command
    }

    /// Starts on a folder and waits until it is ready.
    fn start(&self, folder: &Path) -> Result<Process, Violation> {
        Process::spawn(self.command(folder)).map_err(|(status, said)| {
            let what = format!("the server does not start any more ({status}), it says\n{said}");
            Violation { what, calls: Vec::new() }
        })
    }

    /// Starts on a folder and kills it after so long, whatever it is doing then.
    fn start_and_kill(&self, folder: &Path, after: Duration) {
        let mut child = self.command(folder).spawn().expect("a program that ran can be run again");
        sleep(after);
        child.kill().expect("a child can be killed");
        child.wait().expect("a child ends when it is killed");
    }
}

/// What ended early, and what had been done until then.
#[derive(Debug)]
pub struct Outcome {
    /// Figures of the run.
    pub totals: Totals,
    /// How often it was killed.
    pub crashes: u64,
    /// How often it was stopped in good order.
    pub stops: u64,
    /// What was wrong, if anything.
    pub violation: Option<Violation>,
}

/// How a run goes.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What follows from it: all that clients ask, and when the server ends.
    pub seed: u64,
    /// Clients at a time.
    pub clients: u32,
    /// When it is over.
    pub until: Until,
    /// Whether the server is stopped and killed; without, rounds end quietly.
    pub restarts: bool,
}

/// When a run is over.
#[derive(Clone, Copy, Debug)]
pub enum Until {
    /// After so many kills. Every round ends with one.
    Crashes(u64),
    /// After so long. Most rounds end quietly.
    Elapsed(Duration),
}

/// Runs on a folder that is empty at first.
pub fn torture(program: &Program, folder: &Path, plan: &Plan, progress: &mut dyn FnMut(&Outcome)) -> Outcome {
    let mut run = Run::new(plan.seed, plan.clients);
    let mut outcome = Outcome { totals: Totals::default(), crashes: 0, stops: 0, violation: None };
    let ended = rounds(program, folder, plan, &mut run, &mut outcome, progress);
    outcome.totals = run.totals;
    outcome.violation = ended.err();
    outcome
}

/// Rounds between two looks at the whole ledger, which takes longer the longer the run is.
const ROUNDS_PER_LEDGER: u64 = 40;

fn rounds(
    program: &Program,
    folder: &Path,
    plan: &Plan,
    run: &mut Run,
    outcome: &mut Outcome,
    progress: &mut dyn FnMut(&Outcome),
) -> Result<(), Violation> {
    let start = Instant::now();
    let mut random = Random::new(plan.seed, 0);
    let mut server = program.start(folder)?;
    run.begin(server.address)?;
    for round in 1.. {
        let is_over = |outcome: &Outcome| match plan.until {
            Until::Crashes(crashes) => outcome.crashes >= crashes,
            Until::Elapsed(time) => start.elapsed() >= time,
        };
        let ending = match plan.until {
            Until::Crashes(_) => Ending::Kill,
            Until::Elapsed(_) if !plan.restarts => Ending::Quiet,
            Until::Elapsed(_) => [Ending::Quiet, Ending::Quiet, Ending::Stop, Ending::Kill][random.below(4) as usize],
        };
        let (count, jitter) = round_length(plan.until, &mut random);
        let work = |common: &Common| {
            common.wait(count, ROUND_TIME_MAX);
            sleep(jitter);
        };
        let address = server.address;
        let calls;
        let gone;
        (server, calls, gone) = match ending {
            Ending::Quiet => {
                let calls = run.load(address, work);
                (server, calls, None)
            }
            Ending::Stop => {
                let calls = run.load(address, |common| {
                    work(common);
                    server.stop();
                });
                let gone = run.now();
                outcome.stops += 1;
                (program.start(folder)?, calls, Some(gone))
            }
            Ending::Kill => {
                let calls = run.load(address, |common| {
                    work(common);
                    server.kill();
                });
                let gone = run.now();
                outcome.crashes += 1;
                // Now and then it does not get as far as to serve, a few times in a row.
                while random.once_in(4) && !is_over(outcome) {
                    program.start_and_kill(folder, Duration::from_micros(random.below(40_000)));
                    outcome.crashes += 1;
                }
                (program.start(folder)?, calls, Some(gone))
            }
        };
        let last = is_over(outcome);
        run.settle(server.address, calls, gone, last || round % ROUNDS_PER_LEDGER == 0)?;
        outcome.totals = run.totals;
        progress(outcome);
        if last {
            break;
        }
    }
    server.stop();
    Ok(())
}

#[derive(Clone, Copy)]
enum Ending {
    Quiet,
    Stop,
    Kill,
}

/// Longest a round takes, however slow the machine.
const ROUND_TIME_MAX: Duration = Duration::from_millis(500);

/// How many calls a round has, and how long behind the last of them it ends. Some rounds end while clients still connect, some
/// when files have grown.
fn round_length(until: Until, random: &mut Random) -> (u64, Duration) {
    let calls_max = match (until, random.below(4)) {
        (Until::Elapsed(_), _) => 4_000,
        (Until::Crashes(_), 0) => 10,
        (Until::Crashes(_), 1) => 800,
        (Until::Crashes(_), _) => 200,
    };
    (random.below(calls_max), Duration::from_micros(random.below(2_000)))
}
