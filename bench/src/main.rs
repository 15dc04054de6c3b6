//! `bench`: the command line.

use clap::{Args, Parser, Subcommand};
use partita_bench::contestants::{NAMES, PEERS, Programs, hyper};
use partita_bench::results::Results;
use partita_bench::run::{Options, run};
use partita_bench::{Result, plots, process, report, workloads};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

// The same as Partita has, so that hyper is a ceiling for it.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Measures Partita beside others, all on loopback and under the same load.
#[derive(Parser)]
#[command(name = "bench")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measures, prints tables, writes results.json and plots.
    Run(Box<RunArguments>),
    /// Draws the plots of results again.
    Plot {
        /// A results.json.
        results: PathBuf,
        /// Where the plots go.
        folder: PathBuf,
    },
    /// Prints the tables of results again.
    Report {
        /// A results.json.
        results: PathBuf,
    },
    /// Serves with bare hyper, until it is killed: a fixed answer, or kilobytes of a file.
    Hyper {
        /// Where its files are.
        folder: PathBuf,
    },
}

#[derive(Args)]
struct RunArguments {
    /// The binary of Partita.
    #[arg(long, value_name = "FILE")]
    partita: PathBuf,
    /// The folder with the node_modules of Azurite.
    #[arg(long, value_name = "FOLDER")]
    azurite: PathBuf,
    /// Keep Azurite from printing a line for each request, which it does unless it is told not to.
    #[arg(long)]
    azurite_silent: bool,
    /// Where servers keep their data meanwhile; not in memory, or durability costs nothing.
    #[arg(long, value_name = "FOLDER")]
    data: PathBuf,
    /// Where results.json and the plots go.
    #[arg(long, value_name = "FOLDER")]
    out: PathBuf,
    /// A short run: fewer connections, rounds and rows.
    #[arg(long)]
    quick: bool,
    /// Who takes part [default: all].
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = NAMES)]
    only: Vec<String>,
    /// What is measured [default: all].
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = workload_names())]
    workloads: Vec<String>,
    /// Numbers of connections [default: 1,16,64, or 16 if quick].
    #[arg(long, value_name = "COUNTS", value_delimiter = ',')]
    connections: Vec<usize>,
    /// How often everything is measured [default: 3, or 1 if quick].
    #[arg(long)]
    rounds: Option<usize>,
    /// How long each measurement takes [default: 2, or 1 if quick].
    #[arg(long)]
    seconds: Option<f64>,
    /// Threads of the load generator.
    #[arg(long, default_value_t = 1)]
    threads: usize,
}

fn workload_names() -> Vec<&'static str> {
    workloads::all().map(|workload| workload.name).collect()
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Run(arguments) => measure(*arguments),
        Command::Plot { results, folder } => load(&results).and_then(|results| plots::write(&results, &folder)),
        Command::Report { results } => load(&results).map(|results| print!("{}", report::all_of(&results))),
        Command::Hyper { folder } => hyper::serve(&folder),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(arguments: RunArguments) -> Result<()> {
    let RunArguments { quick, out, .. } = arguments;
    let or = |given: Vec<usize>, other: &[usize]| if given.is_empty() { other.to_vec() } else { given };
    let seconds = arguments.seconds.unwrap_or(if quick { 1.0 } else { 2.0 });
    let options = Options {
        quick,
        rounds: arguments.rounds.unwrap_or(if quick { 1 } else { 3 }).max(1),
        time: Duration::from_secs_f64(seconds.max(0.01)),
        connections: or(arguments.connections, if quick { &[16] } else { &[1, 16, 64] }),
        threads: arguments.threads,
        only: arguments.only,
        workloads: arguments.workloads,
        data: std::path::absolute(arguments.data)?,
        programs: Programs {
            partita: arguments.partita,
            azurite: std::path::absolute(arguments.azurite)?,
            azurite_is_silent: arguments.azurite_silent,
        },
    };
    process::clean_up_when_interrupted()?;
    std::fs::create_dir_all(&out)?;
    let start = Instant::now();
    let results = run(&options)?;
    std::fs::write(out.join("results.json"), serde_json::to_string_pretty(&results)?)?;
    plots::write(&results, &out)?;
    println!("{}", report::all_of(&results));
    println!("It took {} s; results and plots are in {}.", start.elapsed().as_secs(), out.display());
    // What others cannot do is a result.
    let is_of_others = |remark: &str| PEERS[1..].iter().any(|name| remark.starts_with(name));
    if results.remarks.iter().any(|remark| remark.contains("FAILED") && !is_of_others(remark)) {
        return Err("some measurements of Partita failed, see above".into());
    }
    Ok(())
}

fn load(path: &Path) -> Result<Results> {
    Ok(serde_json::from_str(&std::fs::read_to_string(path)?)?)
}
