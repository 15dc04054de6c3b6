//! What the operator does from the command line beside serving. Each command ends in a sentence or in an error of one.

mod backup;
mod check;
mod copy;
mod export;
mod import;
mod migrate;
mod restore;

use clap::{Args, ValueEnum};
use partita_model::TableName;
use partita_transfer::Format;
use partita_transfer::connection::Connection;
use std::env;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use backup::Backup;
pub use check::Check;
pub(crate) use check::name_of;
pub use copy::Copy;
pub use export::Export;
pub use import::Import;
pub use migrate::Migrate;
pub use restore::Restore;

/// Where the data is.
#[derive(Debug, Args)]
pub struct Location {
    /// Folder of the data.
    #[arg(short, long, value_name = "FOLDER", env = "PARTITA_LOCATION", default_value = "partita-data")]
    location: PathBuf,
}

/// Which service.
#[derive(Debug, Args)]
pub struct Service {
    /// Account, key and endpoint, or a shared access signature, as Azure writes them
    /// [default: $PARTITA_CONNECTION_STRING, $AZURE_STORAGE_CONNECTION_STRING, or UseDevelopmentStorage=true].
    #[arg(long, value_name = "STRING")]
    connection_string: Option<String>,
}

impl Service {
    fn connection(&self) -> Result<Arc<Connection>, String> {
        let named = |name| env::var(name).ok().filter(|text| !text.trim().is_empty());
        let text = self.connection_string.clone();
        let text =
            text.or_else(|| named("PARTITA_CONNECTION_STRING")).or_else(|| named("AZURE_STORAGE_CONNECTION_STRING"));
        let connection = text.map_or_else(|| Ok(Connection::development()), |text| Connection::parse(&text));
        connection.map(Arc::new).map_err(|error| error.to_string())
    }
}

/// How entities stand in a file.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum FormatName {
    /// A JSON object a line.
    Jsonl,
    /// Comma-separated values, with a column for the type of each property.
    Csv,
}

impl FormatName {
    fn or_of_file(given: Option<FormatName>, path: &Path) -> Format {
        match given {
            Some(FormatName::Jsonl) => Format::JsonLines,
            Some(FormatName::Csv) => Format::Csv,
            None => Format::of_file(path),
        }
    }
}

/// Lets parts of the server that a command uses say why they failed.
fn log_errors() {
    let to_stderr = tracing_subscriber::fmt().with_writer(std::io::stderr).with_target(false).without_time();
    to_stderr.with_max_level(tracing::Level::ERROR).init();
}

/// Does something that waits for a service.
fn block_on<T>(work: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.map_err(|error| format!("Cannot start threads: {error}."))?.block_on(work)
}

fn parse_table(text: &str) -> Result<String, String> {
    let wrong = |_| "a table name has 3 to 63 letters and digits and begins with a letter".to_owned();
    TableName::parse(text).map(|name| name.as_str().to_owned()).map_err(wrong)
}

/// Whether the folder holds data at all. An error is a sentence.
fn expect_data(folder: &Path) -> Result<(), String> {
    if folder.join("CURRENT").is_file() {
        Ok(())
    } else {
        Err(format!("{} is not a data folder of Partita.", folder.display()))
    }
}

/// A size for people.
fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{:.1} KB", bytes as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}
