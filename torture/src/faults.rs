//! Runs in which something goes away under load: a node, or the database behind all of them.

use crate::check::Violation;
use crate::client::Common;
use crate::cluster::{Cluster, Program, Storage};
use crate::random::Random;
use crate::run::{Losses, Run, Totals};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// What happens while clients ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A node is stopped in good order.
    Stop,
    /// A node is killed.
    Kill,
    /// The database crashes and comes back.
    DatabaseCrash,
    /// The database dies and its standby takes its place.
    Failover,
}

/// What came of a run.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Figures of the run.
    pub totals: Totals,
    /// How often a node was killed.
    pub crashes: u64,
    /// How often a node was stopped in good order.
    pub stops: u64,
    /// How often the database crashed.
    pub database_crashes: u64,
    /// How often its standby took its place.
    pub failovers: u64,
    /// What was wrong, if anything.
    pub violation: Option<Violation>,
}

impl Outcome {
    fn faults(&self) -> u64 {
        self.crashes + self.stops + self.database_crashes + self.failovers
    }
}

/// How a run goes.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What follows from it: all that clients ask, and when servers end.
    pub seed: u64,
    /// Clients at a time.
    pub clients: u32,
    /// Servers at a time.
    pub nodes: usize,
    /// When it is over.
    pub until: Until,
    /// What may happen; rounds end quietly if it is nothing.
    pub faults: Vec<Fault>,
}

/// When a run is over.
#[derive(Clone, Copy, Debug)]
pub enum Until {
    /// After so many faults. Every round has one, and they take turns.
    Faults(u64),
    /// After so long. Half of the rounds have a fault, any of those that may happen.
    Elapsed(Duration),
}

/// Runs on a storage that is empty at first.
pub fn torture(program: &Program, storage: &mut Storage, plan: &Plan, progress: &mut dyn FnMut(&Outcome)) -> Outcome {
    let mut run = Run::new(plan.seed, plan.clients);
    let mut outcome = Outcome::default();
    let ended = rounds(program, storage, plan, &mut run, &mut outcome, progress);
    outcome.totals = run.totals;
    outcome.violation = ended.err();
    outcome
}

/// Rounds between two looks at the whole ledger, which takes longer the longer the run is.
const ROUNDS_PER_LEDGER: u64 = 40;

fn rounds(
    program: &Program,
    storage: &mut Storage,
    plan: &Plan,
    run: &mut Run,
    outcome: &mut Outcome,
    progress: &mut dyn FnMut(&Outcome),
) -> Result<(), Violation> {
    let start = Instant::now();
    let mut random = Random::new(plan.seed, 0);
    let mut cluster = Cluster::start(program, storage, plan.nodes)?;
    let addresses = cluster.addresses.clone();
    run.begin(&addresses)?;
    for round in 1.. {
        let is_over = |outcome: &Outcome| match plan.until {
            Until::Faults(faults) => outcome.faults() >= faults,
            Until::Elapsed(time) => start.elapsed() >= time,
        };
        let faults = plan.faults.len() as u64;
        let fault = match plan.until {
            _ if faults == 0 => None,
            Until::Faults(_) => Some(plan.faults[((round - 1) % faults) as usize]),
            Until::Elapsed(_) => random.below(2 * faults).checked_sub(faults).map(|index| plan.faults[index as usize]),
        };
        let (count, jitter) = round_length(plan.until, &mut random);
        let node = if plan.nodes == 1 { 0 } else { random.below(plan.nodes as u64) as usize };
        let work = |common: &Common| {
            common.wait(count, ROUND_TIME_MAX);
            sleep(jitter);
        };
        let mut losses = Losses::default();
        let mut started = Ok(());
        let calls = run.load(&addresses, |common| {
            work(common);
            match fault {
                None => return,
                Some(Fault::Stop) => {
                    cluster.stop(node);
                    outcome.stops += 1;
                }
                Some(Fault::Kill) => {
                    cluster.kill(node);
                    outcome.crashes += 1;
                }
                Some(Fault::DatabaseCrash) => {
                    cluster.restart_database();
                    outcome.database_crashes += 1;
                }
                Some(Fault::Failover) => {
                    cluster.kill_database();
                    // Every other time nobody comes to its place before nodes have lost patience.
                    if outcome.failovers.is_multiple_of(2) {
                        common.wait_for_refusals(1, OUTAGE_MAX);
                    }
                    cluster.promote_standby();
                    outcome.failovers += 1;
                }
            }
            match fault {
                Some(Fault::DatabaseCrash | Fault::Failover) => {
                    losses.database = true;
                    common.wait_for_answers(u64::from(plan.clients) * ANSWERS_PER_CLIENT, OUTAGE_MAX);
                }
                _ => losses.gone.push((node, common.now())),
            }
            if plan.nodes > 1 {
                // The others go on without it, and with it when it is back.
                work(common);
                started = cluster.start_missing();
                work(common);
            }
        });
        started?;
        // Now and then a node does not get as far as to serve, a few times in a row.
        while plan.nodes == 1 && fault == Some(Fault::Kill) && random.once_in(4) && !is_over(outcome) {
            cluster.start_and_kill(node, Duration::from_micros(random.below(40_000)));
            outcome.crashes += 1;
        }
        cluster.start_missing()?;
        let last = is_over(outcome);
        run.settle(&addresses, calls, &losses, last || round % ROUNDS_PER_LEDGER == 0)?;
        if fault == Some(Fault::Failover) && !last {
            cluster.mend_database();
        }
        outcome.totals = run.totals;
        progress(outcome);
        if last {
            break;
        }
    }
    cluster.end();
    Ok(())
}

/// Longest a round takes, however slow the machine.
const ROUND_TIME_MAX: Duration = Duration::from_millis(500);
/// So many answers to each client show that nodes have found the database again.
const ANSWERS_PER_CLIENT: u64 = 10;
/// Longest that they need to find a database that is back.
const OUTAGE_MAX: Duration = Duration::from_secs(60);

/// How many calls a round has, and how long behind the last of them it ends. Some rounds end while clients still connect, some
/// when files have grown.
fn round_length(until: Until, random: &mut Random) -> (u64, Duration) {
    let calls_max = match (until, random.below(4)) {
        (Until::Elapsed(_), _) => 4_000,
        (Until::Faults(_), 0) => 10,
        (Until::Faults(_), 1) => 800,
        (Until::Faults(_), _) => 200,
    };
    (random.below(calls_max), Duration::from_micros(random.below(2_000)))
}
