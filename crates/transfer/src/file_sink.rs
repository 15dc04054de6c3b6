//! A file as a sink.
//!
//! Rows gather as JSON Lines in `FILE.partial`; beside it, `FILE.partial.json` says how far it is whole and where the source
//! goes on. When all is there it becomes `FILE`: by a new name, or written anew as CSV, whose first line names columns
//! that are known only in the end.

use crate::csv_row::Columns;
use crate::{Error, Format, Page, Result, Sink, json_line};
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// How far an export is.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct State {
    /// What is exported, so that nobody goes on with something else.
    pub source: String,
    /// How many rows are in the file.
    pub rows: u64,
    /// How many bytes they take.
    pub bytes: u64,
    /// Where the source goes on.
    pub next: Option<String>,
}

/// A file that is being written.
#[derive(Debug)]
pub struct FileSink {
    path: PathBuf,
    partial: PathBuf,
    state_path: PathBuf,
    format: Format,
    state: State,
    is_complete: bool,
    file: File,
}

impl FileSink {
    /// Begins the file, or goes on with one that was begun if `resume` says so. A file that is there already stays.
    pub fn create(path: &Path, format: Format, source: &str, resume: bool) -> Result<FileSink> {
        let (partial, state_path) = (beside(path, ".partial"), beside(path, ".partial.json"));
        let exists = |path: &Path| path.try_exists().map_err(Error::file(path));
        if exists(path)? {
            return Err(Error::Option(format!("{} exists already.", path.display())));
        }
        let mut state = State { source: source.to_owned(), ..State::default() };
        let mut is_complete = false;
        if exists(&partial)? {
            if !resume {
                let partial = partial.display();
                return Err(Error::Option(format!(
                    "{partial} is left of an export that did not end: give --resume to go on, or remove it."
                )));
            }
            if exists(&state_path)? {
                let text = fs::read(&state_path).map_err(Error::file(&state_path))?;
                let found: State = serde_json::from_slice(&text)
                    .map_err(|error| Error::Option(format!("{} is damaged: {error}.", state_path.display())))?;
                if found.source != source {
                    return Err(Error::Option(format!(
                        "{} is left of another export, of {}: go on with that, or remove it.",
                        partial.display(),
                        found.source
                    )));
                }
                // Written behind a page, so that without a place to go on that page was the last.
                is_complete = found.next.is_none();
                state = found;
            }
        }
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(&partial);
        let mut file = file.map_err(Error::file(&partial))?;
        // Rows of a page that was not finished are read again.
        file.set_len(state.bytes).map_err(Error::file(&partial))?;
        file.seek(io::SeekFrom::End(0)).map_err(Error::file(&partial))?;
        Ok(FileSink { path: path.to_owned(), partial, state_path, format, state, is_complete, file })
    }

    /// How far it is.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Whether everything was read already, and only the last step is left.
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }
}

impl Sink for FileSink {
    async fn put(&mut self, page: Page) -> Result<()> {
        let mut lines = Vec::new();
        page.entities.iter().for_each(|entity| json_line::write(&mut lines, entity));
        self.file.write_all(&lines).map_err(Error::file(&self.partial))?;
        self.state.rows += page.entities.len() as u64;
        self.state.bytes += lines.len() as u64;
        self.state.next = page.next;
        replace(&self.state_path, &self.state)
    }

    async fn finish(&mut self) -> Result<()> {
        let failed = Error::file(&self.path);
        match self.format {
            Format::JsonLines => {
                self.file.sync_all().map_err(&failed)?;
                fs::rename(&self.partial, &self.path).map_err(&failed)?;
            }
            Format::Csv => {
                let written = beside(&self.path, ".partial.csv");
                let mut out = File::create(&written).map_err(&failed)?;
                write_csv(&self.partial, &mut out)?;
                out.sync_all().map_err(&failed)?;
                fs::rename(&written, &self.path).map_err(&failed)?;
                fs::remove_file(&self.partial).map_err(&failed)?;
            }
        }
        fs::remove_file(&self.state_path).or_else(absent).map_err(&failed)
    }
}

/// A stream as a sink: JSON Lines go out as they come, CSV when all is known.
#[derive(Debug)]
pub struct StreamSink<W> {
    out: W,
    /// The rows of a CSV, as JSON Lines.
    waiting: Option<(PathBuf, File)>,
}

impl<W: Write + Send> StreamSink<W> {
    /// Writes to a stream; `waiting` names a file for rows that have to wait for the first line of a CSV.
    pub fn new(out: W, format: Format, waiting: &Path) -> Result<StreamSink<W>> {
        let waiting = match format {
            Format::JsonLines => None,
            Format::Csv => {
                // It may be in a folder that all users share.
                let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(waiting);
                Some((waiting.to_owned(), file.map_err(Error::file(waiting))?))
            }
        };
        Ok(StreamSink { out, waiting })
    }
}

impl<W: Write + Send> Sink for StreamSink<W> {
    async fn put(&mut self, page: Page) -> Result<()> {
        let mut lines = Vec::new();
        page.entities.iter().for_each(|entity| json_line::write(&mut lines, entity));
        match &mut self.waiting {
            Some((path, file)) => file.write_all(&lines).map_err(Error::file(path)),
            None => self.out.write_all(&lines).map_err(Error::file(Path::new("-"))),
        }
    }

    async fn finish(&mut self) -> Result<()> {
        if let Some((path, _)) = &self.waiting {
            write_csv(path, &mut self.out)?;
        }
        self.out.flush().map_err(Error::file(Path::new("-")))
    }
}

impl<W> Drop for StreamSink<W> {
    fn drop(&mut self) {
        if let Some((path, _)) = &self.waiting {
            let _ = fs::remove_file(path);
        }
    }
}

/// Writes the rows of a file of JSON Lines as CSV.
fn write_csv(lines: &Path, out: &mut impl Write) -> Result<()> {
    let mut columns = Columns::default();
    for_each_line(lines, |entity| {
        columns.see(&entity);
        Ok(())
    })?;
    let failed = |error: csv::Error| Error::File { path: lines.to_owned(), why: error.into() };
    let mut out = csv::Writer::from_writer(BufWriter::new(out));
    out.write_record(columns.header()).map_err(failed)?;
    for_each_line(lines, |entity| out.write_record(columns.row(&entity)).map_err(failed))?;
    out.flush().map_err(Error::file(lines))
}

fn for_each_line(path: &Path, mut visit: impl FnMut(crate::Entity) -> Result<()>) -> Result<()> {
    let mut lines = BufReader::new(File::open(path).map_err(Error::file(path))?);
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        if lines.read_until(b'\n', &mut line).map_err(Error::file(path))? == 0 {
            break;
        }
        let row = |why| Error::Row { file: path.display().to_string(), line: number, why };
        visit(json_line::read(&line).map_err(row)?)?;
    }
    Ok(())
}

/// Puts a JSON file in the place of another, so that whoever reads it finds either.
pub(crate) fn replace(path: &Path, content: &impl Serialize) -> Result<()> {
    let new = beside(path, ".new");
    let text = serde_json::to_vec(content).map_err(|error| Error::file(path)(error.into()))?;
    fs::write(&new, text).and_then(|()| fs::rename(&new, path)).map_err(Error::file(path))
}

/// The path with something behind the name.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(suffix);
    path.with_file_name(name)
}

pub(crate) fn absent(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
}
