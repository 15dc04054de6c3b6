//! Moving entities: out of a table into a file, out of a file into a table, from one table to another, losslessly and so
//! that it can go on after an interruption.
//!
//! ```text
//!   Source                                      Sink
//!   query::TableQuery    a table over HTTP      table_sink::TableSink   a table, in transactions
//!   file_source::FileSource   JSON Lines, CSV   file_sink::FileSink     JSON Lines, CSV
//! ```
//!
//! [`run`] moves everything from one to the other, page by page; [`copy`] what one table lacks of another. The client speaks the Table protocol and knows nothing
//! of Partita, so that Azure and Azurite are sources and sinks as well.

pub mod batcher;
pub mod client;
pub mod connection;
pub mod copy;
pub mod csv_row;
mod entity;
mod error;
pub mod file_sink;
pub mod file_source;
pub mod json_line;
mod merge;
mod progress;
pub mod query;
pub mod remote;
pub mod table_sink;

#[cfg(test)]
mod samples;

pub use entity::{Entity, Key};
pub use error::Error;
pub use progress::Progress;

use std::future::Future;
use std::path::Path;

/// The result of a transfer.
pub type Result<T> = std::result::Result<T, Error>;

/// Some entities of a source, in its order.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// The entities.
    pub entities: Vec<Entity>,
    /// Where the source goes on behind them; `None` if it cannot say, or ends here.
    pub next: Option<String>,
    /// How much of the source was read up to here, in bytes; 0 if nobody knows.
    pub read_bytes: u64,
}

/// Where entities come from.
pub trait Source: Send {
    /// The next page, or `None` at the end. A page may be empty.
    fn next_page(&mut self) -> impl Future<Output = Result<Option<Page>>> + Send;
}

/// Where entities go to.
pub trait Sink: Send {
    /// Takes a page. What it holds may not be safe before [`finish`](Sink::finish).
    fn put(&mut self, page: Page) -> impl Future<Output = Result<()>> + Send;

    /// Sees to it that everything is where it belongs.
    fn finish(&mut self) -> impl Future<Output = Result<()>> + Send;
}

/// Moves everything, and says how many entities that were.
pub async fn run(source: &mut impl Source, sink: &mut impl Sink, progress: &mut Progress) -> Result<u64> {
    let mut rows = 0;
    while let Some(page) = source.next_page().await? {
        rows += page.entities.len() as u64;
        let read_bytes = page.read_bytes;
        sink.put(page).await?;
        progress.tell(rows, read_bytes);
    }
    sink.finish().await?;
    progress.end();
    Ok(rows)
}

/// A number of things for people: `1 row`, `2 rows`.
pub fn count(number: u64, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

/// How entities stand in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A JSON object a line.
    JsonLines,
    /// Comma-separated values, with a column for the type of each property.
    Csv,
}

impl Format {
    /// The format that the name of a file tells; JSON Lines if it tells none.
    pub fn of_file(path: &Path) -> Format {
        match path.extension() {
            Some(extension) if extension.eq_ignore_ascii_case("csv") => Format::Csv,
            _ => Format::JsonLines,
        }
    }
}
