//! A file as a source, and how far its import is.

use crate::csv_row::Header;
use crate::file_sink::{absent, beside, replace};
use crate::{Entity, Error, Format, Page, Result, Source, json_line};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const PAGE_ROWS: usize = 500;
/// Far longer than the line of any entity.
const LINE_BYTES_MAX: u64 = 32 << 20;
/// How often it is noted how far an import is.
const NOTE_INTERVAL: Duration = Duration::from_millis(200);

/// Rows of a file, or of the input stream.
pub struct FileSource {
    name: String,
    rows: Rows,
    /// How many rows are still passed over.
    skip: u64,
    read_bytes: u64,
    line: u64,
}

enum Rows {
    Lines(Box<dyn BufRead + Send>),
    Csv(Box<csv::Reader<Box<dyn Read + Send>>>, Header),
}

impl std::fmt::Debug for FileSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FileSource").field("name", &self.name).finish_non_exhaustive()
    }
}

impl FileSource {
    /// Reads a file, `-` for the input stream, behind its first `skip` rows.
    pub fn open(path: &Path, format: Format, skip: u64) -> Result<FileSource> {
        let (name, stream): (_, Box<dyn Read + Send>) = match path == Path::new("-") {
            true => ("the input".to_owned(), Box::new(io::stdin())),
            false => (path.display().to_string(), Box::new(File::open(path).map_err(Error::file(path))?)),
        };
        FileSource::read(name, stream, format, skip)
    }

    fn read(name: String, stream: Box<dyn Read + Send>, format: Format, skip: u64) -> Result<FileSource> {
        let rows = match format {
            Format::JsonLines => Rows::Lines(Box::new(BufReader::with_capacity(256 << 10, stream))),
            Format::Csv => {
                let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(stream);
                let header = reader.headers().map_err(|error| error.to_string()).and_then(Header::read);
                let header = header.map_err(|why| Error::Row { file: name.clone(), line: 1, why })?;
                Rows::Csv(Box::new(reader), header)
            }
        };
        Ok(FileSource { name, rows, skip, read_bytes: 0, line: 0 })
    }

    fn next_row(&mut self) -> Result<Option<Entity>> {
        let row_error = |line, why| Error::Row { file: self.name.clone(), line, why };
        match &mut self.rows {
            Rows::Lines(lines) => loop {
                let mut line = Vec::new();
                let path = Path::new(&self.name);
                let count = lines.take(LINE_BYTES_MAX).read_until(b'\n', &mut line).map_err(Error::file(path))?;
                self.line += 1;
                self.read_bytes += count as u64;
                match count as u64 {
                    0 => return Ok(None),
                    LINE_BYTES_MAX => return Err(row_error(self.line, "it is longer than any entity".into())),
                    _ if line.trim_ascii().is_empty() => {}
                    _ => return json_line::read(&line).map(Some).map_err(|why| row_error(self.line, why)),
                }
            },
            Rows::Csv(reader, header) => {
                let mut row = csv::StringRecord::new();
                let found = reader.read_record(&mut row);
                self.line = row.position().map_or(self.line, csv::Position::line);
                self.read_bytes = reader.position().byte();
                if !found.map_err(|error| row_error(self.line, error.to_string()))? {
                    return Ok(None);
                }
                header.entity(&row).map(Some).map_err(|why| row_error(self.line, why))
            }
        }
    }
}

impl Source for FileSource {
    async fn next_page(&mut self) -> Result<Option<Page>> {
        let mut entities = Vec::new();
        while entities.len() < PAGE_ROWS {
            match self.next_row()? {
                None => break,
                Some(_) if self.skip > 0 => self.skip -= 1,
                Some(entity) => entities.push(entity),
            }
        }
        let page = Page { entities, next: None, read_bytes: self.read_bytes };
        Ok((!page.entities.is_empty()).then_some(page))
    }
}

/// Notes beside a file, in `FILE.import.json`, how many of its rows are imported.
#[derive(Debug)]
pub struct Note {
    path: PathBuf,
    state: ImportState,
    noted: Option<Instant>,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
struct ImportState {
    target: String,
    file_bytes: u64,
    rows: u64,
}

impl Note {
    /// Begins an import of a file into `target`, or finds how far an earlier one came if `resume` says so.
    pub fn begin(file: &Path, target: &str, resume: bool) -> Result<Note> {
        let path = beside(file, ".import.json");
        let file_bytes = fs::metadata(file).map_err(Error::file(file))?.len();
        let mut state = ImportState { target: target.to_owned(), file_bytes, rows: 0 };
        let shown = path.display();
        match fs::read(&path) {
            Err(error) => absent(error).map_err(Error::file(&path))?,
            Ok(_) if !resume => {
                return Err(Error::Option(format!(
                    "{shown} is left of an import that did not end: give --resume to go on, or remove it."
                )));
            }
            Ok(text) => {
                let found: ImportState = serde_json::from_slice(&text)
                    .map_err(|error| Error::Option(format!("{shown} is damaged: {error}.")))?;
                if (&found.target, found.file_bytes) != (&state.target, file_bytes) {
                    return Err(Error::Option(format!("{shown} is left of another import, into {}.", found.target)));
                }
                state = found;
            }
        }
        Ok(Note { path, state, noted: None })
    }

    /// How many rows were imported.
    pub fn rows(&self) -> u64 {
        self.state.rows
    }

    /// Notes it, now and then.
    pub fn written(&mut self, rows: u64) -> Result<()> {
        self.state.rows = rows;
        if self.noted.is_none_or(|noted| noted.elapsed() >= NOTE_INTERVAL) {
            self.noted = Some(Instant::now());
            replace(&self.path, &self.state)?;
        }
        Ok(())
    }

    /// Removes the note beside a file: all is imported.
    pub fn remove(file: &Path) -> Result<()> {
        let path = beside(file, ".import.json");
        fs::remove_file(&path).or_else(absent).map_err(Error::file(&path))
    }
}
