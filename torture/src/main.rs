//! `torture`: the command line.

use clap::{Args, Parser, Subcommand};
use partita_torture::faults::{Outcome, Plan, Program, Until, torture};
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
        /// Also stop, kill and start the server.
        #[arg(long)]
        restarts: bool,
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
    /// Clients at a time.
    #[arg(long, default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..=500))]
    clients: u32,
    /// Further arguments of Partita, behind `--`.
    #[arg(last = true, value_name = "ARGUMENTS", conflicts_with = "mutant")]
    arguments: Vec<String>,
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Crash { crashes, common } => run(&common, Until::Crashes(crashes), true),
        Command::History { seconds, restarts, common } => {
            run(&common, Until::Elapsed(Duration::from_secs(seconds)), restarts)
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
fn run(common: &Common, until: Until, restarts: bool) -> Result<bool, String> {
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
    let plan = Plan { seed, clients: common.clients, until, restarts };
    println!("Seed {seed}, {} clients, {}.", plan.clients, program.binary.display());
    let start = Instant::now();
    let mut told = start;
    let outcome = torture(&program, folder.path(), &plan, &mut |outcome| {
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
    println!("\nVIOLATION: {violation}\n\nThe data is in {}.", folder.keep().display());
    println!(
        "The same requests and kills again, though not at the same moments: {}",
        replay(common, until, restarts, seed)
    );
    Ok(false)
}

fn summary(outcome: &Outcome) -> String {
    let Outcome { totals, crashes, stops, .. } = outcome;
    format!(
        "{crashes} crashes, {stops} stops, {} calls, {} acknowledged writes ({} of them transactions), {} of unknown outcome",
        totals.calls, totals.acknowledged, totals.transactions, totals.unknown
    )
}

fn replay(common: &Common, until: Until, restarts: bool, seed: u64) -> String {
    let what = match until {
        Until::Crashes(crashes) => format!("crash --crashes {crashes}"),
        Until::Elapsed(time) => {
            format!("history --seconds {}{}", time.as_secs(), if restarts { " --restarts" } else { "" })
        }
    };
    let server = match (&common.mutant, &common.partita) {
        (Some(mutant), _) => format!(" --mutant {mutant}"),
        (None, Some(binary)) => format!(" --partita {}", binary.display()),
        (None, None) => String::new(),
    };
    let arguments = match common.arguments.is_empty() {
        true => String::new(),
        false => format!(" -- {}", common.arguments.join(" ")),
    };
    format!("torture {what} --seed {seed} --clients {}{server}{arguments}", common.clients)
}
