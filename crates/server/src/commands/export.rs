//! `partita export`: a table, or the rows of a query, into a file.

use super::{FormatName, Service, block_on, expect_data, parse_table};
use crate::folder_source::{FolderQuery, FolderSource};
use clap::Args;
use partita_auth::DEVELOPMENT_ACCOUNT;
use partita_transfer::client::Client;
use partita_transfer::file_sink::{FileSink, StreamSink};
use partita_transfer::query::TableQuery;
use partita_transfer::{Error, Format, Progress, Sink, Source, count, run};
use std::io::stdout;
use std::path::{Path, PathBuf};

/// Writes a table, or the rows of a query, to a file of JSON Lines or CSV, with types and without loss.
#[derive(Debug, Args)]
pub struct Export {
    #[command(flatten)]
    service: Service,
    /// The table.
    #[arg(long, value_name = "NAME", value_parser = parse_table, required_unless_present = "space")]
    table: Option<String>,
    /// Which rows, as in $filter of a query.
    #[arg(long, value_name = "FILTER")]
    filter: Option<String>,
    /// Which properties, with commas between; the keys always are among them.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    select: Vec<String>,
    /// The file to write, `-` for the output stream.
    #[arg(long, value_name = "FILE")]
    to: PathBuf,
    /// How to write it [default: what the name of the file ends in, or jsonl].
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<FormatName>,
    /// Go on where an export to the same file ended early.
    #[arg(long)]
    resume: bool,
    /// Read this data folder, which no server has open, instead of asking a service.
    #[arg(short, long, value_name = "FOLDER", conflicts_with = "connection_string")]
    location: Option<PathBuf>,
    /// The account whose table is read from the folder.
    #[arg(long, value_name = "NAME", default_value = DEVELOPMENT_ACCOUNT, requires = "location")]
    account: String,
    /// Read the rows of this space of the folder, when the catalogue that says which table it is was lost.
    #[arg(long, value_name = "NUMBER", requires = "location", conflicts_with = "table")]
    space: Option<u64>,
    /// Leave out what cannot be read of a damaged folder, and say what that was.
    #[arg(long, requires = "location")]
    skip_damaged: bool,
}

impl Export {
    /// Writes the file and says so.
    pub fn run(self) -> Result<(), String> {
        let format = FormatName::or_of_file(self.format, &self.to);
        let is_stream = self.to == Path::new("-");
        if is_stream && self.resume {
            return Err("--resume needs a file that --to names.".into());
        }
        let name = self.to.display().to_string();
        let rows = if is_stream {
            let waiting = std::env::temp_dir().join(format!("partita-export-{}", std::process::id()));
            let sink = StreamSink::new(stdout(), format, &waiting).map_err(|error| error.to_string())?;
            self.fill(sink, 0, None)?
        } else {
            let sink = self.file(format).map_err(|error| error.to_string())?;
            let (before, next) = (sink.state().rows, sink.state().next.clone());
            before + if sink.is_complete() { finish(sink)? } else { self.fill(sink, before, next.as_deref())? }
        };
        eprintln!("partita: wrote {} to {}.", count(rows, "row"), if is_stream { "the output" } else { &name });
        Ok(())
    }

    fn file(&self, format: Format) -> Result<FileSink, Error> {
        let place = match &self.location {
            Some(folder) => format!("{} {}", folder.display(), self.account),
            None => self.service.connection().map_err(Error::Option)?.to_string(),
        };
        let table = self.table.clone().unwrap_or_else(|| self.space.unwrap_or_default().to_string());
        let (filter, select) = (self.filter.as_deref().unwrap_or_default(), self.select.join(","));
        FileSink::create(&self.to, format, &format!("{place} {table} {filter} {select}"), self.resume)
    }

    fn fill(self, mut sink: impl Sink, before: u64, from: Option<&str>) -> Result<u64, String> {
        let Export { service, table, filter, select, location, account, space, skip_damaged, .. } = self;
        let table = table.unwrap_or_default();
        match location {
            Some(folder) => {
                if !skip_damaged {
                    expect_data(&folder)?;
                }
                let query = FolderQuery { account, table, space, filter, select, skip_damaged };
                let source = FolderSource::open(&folder, query, from);
                let mut source = source.map_err(|error| error.to_string())?;
                block_on(fill(&mut source, &mut sink, before))
            }
            None => {
                let connection = service.connection()?;
                let client = Client::new(connection).map_err(|error| error.to_string())?;
                let source = TableQuery::new(client, table, filter, select, from);
                let mut source = source.map_err(|error| error.to_string())?;
                block_on(fill(&mut source, &mut sink, before))
            }
        }
    }
}

async fn fill(source: &mut impl Source, sink: &mut impl Sink, before: u64) -> Result<u64, String> {
    run(source, sink, &mut Progress::new(before, None)).await.map_err(|error| error.to_string())
}

/// The last step of an export that had read everything.
fn finish(mut sink: FileSink) -> Result<u64, String> {
    block_on(async { sink.finish().await.map(|()| 0).map_err(|error| error.to_string()) })
}
