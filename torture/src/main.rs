//! `torture`: the command line.

use clap::{Args, Parser, Subcommand};
use partita_torture::cluster::{Database, Program, Storage};
use partita_torture::faults::{Fault, Outcome, Plan, Until, torture};
use partita_torture::mutants::Mutant;
use partita_torture::serve::serve;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Tortures Partita and checks that it keeps its promises.
#[derive(Parser)]
#[command(name = "torture")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Kills the server over and over in the middle of work, and checks after each start.
    Crash {
        /// How often it is killed.
        #[arg(long, default_value_t = 200)]
        crashes: u64,
        #[command(flatten)]
        common: Common,
    },
    /// Records what clients see and checks it.
    History {
        /// How long.
        #[arg(long, default_value_t = 20)]
        seconds: u64,
        /// Also stop, kill and start servers, and let the database crash that several are on.
        #[arg(long)]
        restarts: bool,
        /// Also kill the database and put a standby in its place.
        #[arg(long, requires = "nodes")]
        failovers: bool,
        #[command(flatten)]
        common: Common,
    },
    /// Serves tables until it is told to end, as Partita does, on a store that breaks a promise.
    Serve {
        /// Which promise [default: none].
        #[arg(long, value_name = "NAME", value_parser = mutant_names())]
        mutant: Option<String>,
        /// Folder of the data [default: none, in memory].
        #[arg(long, value_name = "FOLDER")]
        location: Option<PathBuf>,
    },
}

fn mutant_names() -> Vec<&'static str> {
    Mutant::ALL.iter().map(|(_, name)| *name).collect()
}

#[derive(Args)]
struct Common {
    /// The binary of Partita [default: beside this one].
    #[arg(long, value_name = "FILE", conflicts_with = "mutant")]
    partita: Option<PathBuf>,
    /// Torture a server that breaks a promise instead.
    #[arg(long, value_name = "NAME", value_parser = mutant_names())]
    mutant: Option<String>,
    /// What clients ask and when the kill comes follows from it [default: another each time].
    #[arg(long)]
    seed: Option<u64>,
    /// Servers at a time, on one PostgreSQL [default: one, on a folder].
    #[arg(long, value_parser = clap::value_parser!(u8).range(1..=50), conflicts_with = "mutant")]
    nodes: Option<u8>,
    /// Clients at a time.
    #[arg(long, default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..=500))]
    clients: u32,
    /// Further arguments of Partita, behind `--`.
    #[arg(last = true, value_name = "ARGUMENTS", conflicts_with = "mutant")]
    arguments: Vec<String>,
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Crash { crashes, common } => run(&common, Until::Faults(crashes), &[Fault::Kill]),
        Command::History { seconds, restarts, failovers, common } => {
            let mut faults = Vec::new();
            if restarts {
                faults.extend([Fault::Stop, Fault::Kill]);
                faults.extend(common.nodes.map(|_| Fault::DatabaseCrash));
            }
            faults.extend(failovers.then_some(Fault::Failover));
            run(&common, Until::Elapsed(Duration::from_secs(seconds)), &faults)
        }
        Command::Serve { mutant, location } => {
            serve(mutant.as_deref().and_then(Mutant::parse), location.as_deref()).map(|()| true)
        }
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("torture: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Whether nothing was wrong.
fn run(common: &Common, until: Until, faults: &[Fault]) -> Result<bool, String> {
    let this = std::env::current_exe().map_err(|error| format!("cannot find myself: {error}"))?;
    let mut program = match (&common.mutant, &common.partita) {
        (Some(mutant), _) => Program::mutant(&this, Some(mutant)),
        (None, Some(binary)) => Program::partita(binary),
        (None, None) => Program::partita(this.with_file_name("partita")),
    };
    program.arguments.extend(common.arguments.iter().map(Into::into));
    if !program.binary.is_file() {
        return Err(format!("there is no {}; build it, or name another with --partita", program.binary.display()));
    }
    let seed = common.seed.unwrap_or_else(|| {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |elapsed| u64::from(elapsed.subsec_nanos()))
    });
    let folder = tempfile::tempdir().map_err(|error| format!("cannot make a folder: {error}"))?;
    let mut storage = match common.nodes {
        None => Storage::Folder(folder.path().to_owned()),
        Some(_) => {
            let database = match faults.contains(&Fault::Failover) {
                true => Database::start_with_standby(),
                false => Database::start(),
            };
            Storage::Database(database.ok_or("PostgreSQL is not installed")?)
        }
    };
    let nodes = common.nodes.map_or(1, usize::from);
    let plan = Plan { seed, clients: common.clients, nodes, until, faults: faults.to_vec() };
    println!("Seed {seed}, {} clients, {nodes} nodes, {}.", plan.clients, program.binary.display());
    let start = Instant::now();
    let mut told = start;
    let outcome = torture(&program, &mut storage, &plan, &mut |outcome| {
        if told.elapsed() > Duration::from_secs(10) {
            told = Instant::now();
            println!("{}", summary(outcome));
        }
    });
    println!(
        "{}, {} violations, {:.1} s.",
        summary(&outcome),
        u8::from(outcome.violation.is_some()),
        start.elapsed().as_secs_f64()
    );
    let Some(violation) = outcome.violation else { return Ok(true) };
    println!("\nVIOLATION: {violation}\n");
    if let Storage::Folder(_) = storage {
        println!("The data is in {}.", folder.keep().display());
    }
    println!(
        "The same requests and kills again, though not at the same moments: {}",
        replay(common, until, faults, seed)
    );
    Ok(false)
}

fn summary(outcome: &Outcome) -> String {
    let Outcome { totals, crashes, stops, database_crashes, failovers, .. } = outcome;
    let mut text = format!("{crashes} crashes, {stops} stops, ");
    if database_crashes + failovers > 0 {
        text += &format!("{database_crashes} crashes of the database, {failovers} failovers, ");
        text += &format!("at most {:.1} s without an answer, ", totals.outage.as_secs_f64());
    }
    text += &format!("{} calls, {} acknowledged writes ", totals.calls, totals.acknowledged);
    text += &format!("({} of them transactions), {} of unknown outcome, ", totals.transactions, totals.unknown);
    text + &format!("{} not done", totals.busy)
}

fn replay(common: &Common, until: Until, faults: &[Fault], seed: u64) -> String {
    let what = match until {
        Until::Faults(crashes) => format!("crash --crashes {crashes}"),
        Until::Elapsed(time) => {
            let restarts = if faults.contains(&Fault::Kill) { " --restarts" } else { "" };
            let failovers = if faults.contains(&Fault::Failover) { " --failovers" } else { "" };
            format!("history --seconds {}{restarts}{failovers}", time.as_secs())
        }
    };
    let server = match (&common.mutant, &common.partita) {
        (Some(mutant), _) => format!(" --mutant {mutant}"),
        (None, Some(binary)) => format!(" --partita {}", binary.display()),
        (None, None) => String::new(),
    };
    let nodes = common.nodes.map(|nodes| format!(" --nodes {nodes}")).unwrap_or_default();
    let arguments = match common.arguments.is_empty() {
        true => String::new(),
        false => format!(" -- {}", common.arguments.join(" ")),
    };
    format!("torture {what} --seed {seed} --clients {}{nodes}{server}{arguments}", common.clients)
}
