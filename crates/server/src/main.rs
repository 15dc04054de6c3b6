//! `partita`: the command line.

use clap::Parser;
use partita_server::Server;
use partita_server::config::{Cli, Command, Config, DEVELOPMENT_KEY, LogFormat, Settings};
use std::fmt::Arguments;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use tokio::signal::unix::{SignalKind, signal};
use tracing::info;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, filter::LevelFilter, fmt};

// glibc's allocator keeps nearly twice the memory under the same load of reads.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    let done = match Cli::parse().command() {
        Command::Serve(settings) => serve(*settings),
        Command::Backup(backup) => backup.run(),
        Command::Restore(restore) => restore.run(),
        Command::Check(check) => check.run(),
        Command::Export(export) => export.run(),
        Command::Import(import) => import.run(),
        Command::Copy(copy) => copy.run(),
        Command::Migrate(migrate) => migrate.run(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("partita: {why}");
            ExitCode::FAILURE
        }
    }
}

fn serve(settings: Settings) -> Result<(), String> {
    let config = settings.complete()?;
    log_to(&config)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| format!("Cannot start threads: {error}."))?.block_on(run(config))
}

async fn run(config: Config) -> Result<(), String> {
    for note in &config.notes {
        eprintln!("partita: {note}");
    }
    let no_signals = |error| format!("Cannot listen for signals: {error}.");
    let mut terminate = signal(SignalKind::terminate()).map_err(no_signals)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(no_signals)?;
    let mut hangup = signal(SignalKind::hangup()).map_err(no_signals)?;
    let server = Server::start(config.clone()).await?;
    announce(&config, &server);
    loop {
        tokio::select! {
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
            _ = hangup.recv() => server.reload().await,
        }
    }
    info!("stopping");
    server.stop().await;
    say(format_args!("Azurite Table service successfully closed"));
    Ok(())
}

/// Prints a line. If nobody reads it any more, that is no reason to stop.
fn say(line: Arguments<'_>) {
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// Says where we are, first in the words that scripts written for Azurite wait for.
fn announce(config: &Config, server: &Server) {
    let scheme = if config.tls.is_some() { "https" } else { "http" };
    let url = format!("{scheme}://{}", server.table);
    say(format_args!("Azurite Table service is starting at {url}"));
    say(format_args!("Azurite Table service is successfully listening at {url}"));
    say(format_args!("Azurite Table service successfully listens on {url}"));
    let place = match (&config.store, &config.location) {
        (Some(store), _) => format!("in {store}"),
        (None, Some(location)) => format!("in {}", location.display()),
        (None, None) => "in memory".to_owned(),
    };
    say(format_args!("\nPartita {} is ready, data {place}.", env!("CARGO_PKG_VERSION")));
    for (account, keys) in &config.accounts {
        let well_known = keys.iter().any(|key| key == DEVELOPMENT_KEY);
        let key = if well_known { DEVELOPMENT_KEY } else { "<key>" };
        say(format_args!(
            "Connection string: DefaultEndpointsProtocol={scheme};AccountName={account};AccountKey={key};TableEndpoint={url}/{account};"
        ));
    }
    if let Some(admin) = server.admin {
        say(format_args!("Metrics: http://{admin}/metrics"));
    }
}

/// Sets up logging to the error stream and, if asked for, of every request to a file.
fn log_to(config: &Config) -> Result<(), String> {
    let is_terminal = std::io::stderr().is_terminal();
    let to_stderr = fmt::layer().with_writer(std::io::stderr).with_ansi(is_terminal).with_target(false);
    let to_stderr = match config.log_format {
        LogFormat::Text => to_stderr.boxed(),
        LogFormat::Json => to_stderr.json().boxed(),
    };
    let to_file = match &config.debug_log {
        None => None,
        Some(path) => {
            let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
            let file = file.map_err(|error| format!("Cannot write to {}: {error}.", path.display()))?;
            Some(fmt::layer().with_writer(file).with_ansi(false).with_target(false).with_filter(LevelFilter::DEBUG))
        }
    };
    let level = LevelFilter::from_level(config.log_level);
    tracing_subscriber::registry().with(to_stderr.with_filter(level)).with(to_file).init();
    Ok(())
}
