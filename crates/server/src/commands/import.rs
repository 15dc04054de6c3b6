//! `partita import`: the rows of a file into a table.

use super::{FormatName, Service, block_on, parse_table};
use clap::{Args, ValueEnum};
use partita_transfer::client::{Client, Mode};
use partita_transfer::file_source::{FileSource, Note};
use partita_transfer::remote::RemoteWriter;
use partita_transfer::table_sink::{OnWritten, TableSink};
use partita_transfer::{Error, Progress, count, run};
use std::path::{Path, PathBuf};

/// Writes the rows of a file of JSON Lines or CSV into a table, in transactions.
#[derive(Debug, Args)]
pub struct Import {
    #[command(flatten)]
    service: Service,
    /// The table.
    #[arg(long, value_name = "NAME", value_parser = parse_table)]
    table: String,
    /// The file to read, `-` for the input stream.
    #[arg(long, value_name = "FILE")]
    from: PathBuf,
    /// How it is written [default: what the name of the file ends in, or jsonl].
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<FormatName>,
    /// What becomes of a row whose keys are in the table already.
    #[arg(long, value_enum, value_name = "MODE", default_value = "insert")]
    mode: ModeName,
    /// Create the table, unless it is there.
    #[arg(long)]
    create: bool,
    /// Go on where an import of the same file ended early.
    #[arg(long)]
    resume: bool,
    /// How many transactions are under way at a time.
    #[arg(long, value_name = "COUNT", default_value_t = 8)]
    connections: usize,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ModeName {
    /// It is an error.
    Insert,
    /// The new row takes its place.
    Replace,
    /// The properties of both are joined.
    Merge,
}

impl Import {
    /// Writes the rows and says so.
    pub fn run(self) -> Result<(), String> {
        let rows = block_on(self.import())?;
        eprintln!("partita: imported {}.", count(rows, "row"));
        Ok(())
    }

    async fn import(self) -> Result<u64, String> {
        let sentence = |error: Error| error.to_string();
        let connection = self.service.connection()?;
        let is_stream = self.from == Path::new("-");
        if is_stream && self.resume {
            return Err("--resume needs a file that --from names.".into());
        }
        let format = FormatName::or_of_file(self.format, &self.from);
        let note = match is_stream {
            true => None,
            false => {
                Some(Note::begin(&self.from, &format!("{connection}/{}", self.table), self.resume).map_err(sentence)?)
            }
        };
        let before = note.as_ref().map_or(0, Note::rows);
        let mut source = FileSource::open(&self.from, format, before).map_err(sentence)?;
        if self.create {
            let mut client = Client::new(connection.clone()).map_err(sentence)?;
            client.create_table(&self.table).await.map_err(sentence)?;
        }
        let mode = match self.mode {
            ModeName::Insert => Mode::Insert,
            ModeName::Replace => Mode::Replace,
            ModeName::Merge => Mode::Merge,
        };
        let writer = |_| RemoteWriter::new(&connection, &self.table, mode, self.resume);
        let writers = (0..self.connections.max(1)).map(writer).collect::<Result<_, _>>().map_err(sentence)?;
        let on_written: OnWritten = match note {
            None => Box::new(|_| Ok(())),
            Some(mut note) => Box::new(move |rows| note.written(rows)),
        };
        let mut sink = TableSink::new(writers, before, on_written);
        let total = std::fs::metadata(&self.from).ok().map(|metadata| metadata.len());
        let rows = run(&mut source, &mut sink, &mut Progress::new(before, total)).await.map_err(sentence)?;
        if !is_stream {
            Note::remove(&self.from).map_err(sentence)?;
        }
        Ok(before + rows)
    }
}
