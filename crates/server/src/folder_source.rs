//! A table of a data folder as a source, without a server: for folders that no server would open.

use crate::commands::name_of;
use partita_model::{EntityView, PartitionKey, Record, RowKey, TableName, Ticks};
use partita_odata::Filter;
use partita_store::{Space, decode_key, space_end, space_prefix};
use partita_store_rocksdb::{Damage, Reader, StoredRow};
use partita_table::CatalogueRow;
use partita_transfer::{Entity, Error, Page, Result, Source};
use std::collections::HashSet;
use std::path::Path;

const PAGE_ROWS: usize = 1000;

/// What is read of a folder.
#[derive(Debug)]
pub(crate) struct FolderQuery {
    /// The account.
    pub(crate) account: String,
    /// Its table.
    pub(crate) table: String,
    /// The rows of this space in place of a table's, for when the catalogue is lost.
    pub(crate) space: Option<u64>,
    /// Which rows.
    pub(crate) filter: Option<String>,
    /// Which properties; all if there are none.
    pub(crate) select: Vec<String>,
    /// Whether to go on behind what cannot be read.
    pub(crate) skip_damaged: bool,
}

/// The rows of a table that match a filter.
#[derive(Debug)]
pub(crate) struct FolderSource {
    reader: Reader,
    filter: Option<Filter>,
    select: Vec<String>,
    /// The key to go on at; `None` at the end.
    next: Option<Vec<u8>>,
    end: Vec<u8>,
    skip_damaged: bool,
}

impl FolderSource {
    /// Opens the folder, which must not be in use, and finds the table. `from` is where an earlier page said to go on.
    pub(crate) fn open(folder: &Path, query: FolderQuery, from: Option<&str>) -> Result<FolderSource> {
        let skip_damaged = query.skip_damaged;
        let filter = query.filter.as_deref().map(Filter::parse).transpose();
        let filter = filter.map_err(|error| Error::Option(format!("The filter is not understood: {error}")))?.flatten();
        let reader = open_folder(folder, skip_damaged)?;
        let space = match query.space {
            Some(space) => Space(space),
            None => find_table(&reader, &query)?,
        };
        let next = match from {
            None => space_prefix(space).to_vec(),
            Some(digits) => {
                from_hex(digits).ok_or_else(|| Error::Option("Where to go on is not understood.".into()))?
            }
        };
        let (select, end) = (query.select, space_end(space));
        Ok(FolderSource { reader, filter, select, next: Some(next), end, skip_damaged })
    }

    /// The entity of a row, if it is asked for. An error is what is wrong with it.
    fn entity(&self, row: StoredRow<'_>) -> std::result::Result<Option<Entity>, String> {
        let (_, partition, name) = decode_key(row.key).ok_or("it is not the key of a row")?;
        let (version, value) = row.split().map_err(|error| error.to_string())?;
        let damaged = |error: partita_model::CorruptRecord| error.to_string();
        let record = Record::open(value).map_err(damaged)?;
        let partition_key = PartitionKey::from_ordered(&partition).ok_or("its PartitionKey is not text")?;
        let row_key = RowKey::from_ordered(&name).ok_or("its RowKey is not text")?;
        let timestamp = Ticks(version);
        let view = EntityView { partition_key: &partition_key, row_key: &row_key, timestamp, record };
        if let Some(filter) = &self.filter
            && !filter.matches(&view).map_err(damaged)?
        {
            return Ok(None);
        }
        let mut properties = record.to_properties().map_err(damaged)?;
        properties.retain(|property| self.select.is_empty() || self.select.contains(&property.name));
        Ok(Some(Entity { partition_key: partition_key.into(), row_key: row_key.into(), properties }))
    }
}

impl Source for FolderSource {
    async fn next_page(&mut self) -> Result<Option<Page>> {
        let Some(from) = self.next.take() else { return Ok(None) };
        let mut page = Page::default();
        let mut rows = self.reader.rows(from, Some(self.end.clone()));
        while let Some(row) = rows.next_row() {
            match row {
                Ok(row) => match self.entity(row) {
                    Ok(entity) => {
                        page.entities.extend(entity);
                        if page.entities.len() == PAGE_ROWS {
                            let next = [row.key, &[0]].concat();
                            page.next = Some(to_hex(&next));
                            self.next = Some(next);
                            break;
                        }
                    }
                    Err(why) => left_out(self.skip_damaged, &format!("{}: {why}: the row", name_of(row.key)))?,
                },
                Err(damage) => {
                    let (from, to) = damage.keys;
                    let to = to.as_deref().unwrap_or(&self.end);
                    let what = format!("{}: rows from {} to {}", damage.what, name_of(&from), name_of(to));
                    left_out(self.skip_damaged, &what)?;
                }
            }
        }
        Ok(Some(page))
    }
}

/// Opens a folder that no server has open, and tells what is wrong with it as a whole.
pub(crate) fn open_folder(folder: &Path, skip_damaged: bool) -> Result<Reader> {
    let damaged = |error: partita_store_rocksdb::OpenError| Error::Damaged(error.to_string());
    let reader = if skip_damaged { Reader::salvage(folder) } else { Reader::open(folder) }.map_err(damaged)?;
    for log in reader.verify_logs().map_err(damaged)? {
        match log.is_harmless {
            true => eprintln!("partita: {}: {}.", log.file, log.what),
            false => left_out(skip_damaged, &format!("{}: {}: what was written behind it", log.file, log.what))?,
        }
    }
    if !reader.has_manifest() {
        eprintln!(
            "partita: The list of files cannot be read: all files were, and rows may be missing or not the latest."
        );
    }
    for (from, to, file) in reader.lost() {
        let (from, to) = (name_of(from), name_of(to));
        eprintln!("partita: {file} cannot be read: rows from {from} to {to} may be missing or not the latest.");
    }
    Ok(reader)
}

/// Says what is left out, or stops for it.
fn left_out(skip_damaged: bool, what: &str) -> Result<()> {
    if skip_damaged {
        eprintln!("partita: {what} left out.");
        Ok(())
    } else {
        Err(Error::Damaged(format!("{what} cannot be read; --skip-damaged leaves that out.")))
    }
}

fn find_table(reader: &Reader, query: &FolderQuery) -> Result<Space> {
    let mut known = HashSet::from([CatalogueRow::SPACE]);
    let mut rows = reader.rows(space_prefix(CatalogueRow::SPACE).to_vec(), Some(space_end(CatalogueRow::SPACE)));
    while let Some(row) = rows.next_row() {
        let found = match row {
            Err(damage) => Err(damage.what),
            Ok(row) => match (decode_key(row.key), row.split()) {
                (Some((_, _, name)), Ok((_, value))) => {
                    CatalogueRow::read(&name, value).map_err(|error| format!("{}: {error}", name_of(row.key)))
                }
                _ => Err(format!("{} is damaged", name_of(row.key))),
            },
        };
        match found {
            Err(why) => left_out(query.skip_damaged, &format!("{why}: a part of the catalogue"))?,
            Ok(CatalogueRow::Table(found)) if found.account == query.account && is_name(&found.name, &query.table) => {
                return Ok(found.space);
            }
            Ok(CatalogueRow::Table(other)) => drop(known.insert(other.space)),
            Ok(_) => {}
        }
    }
    let mut sentence = format!("There is no table {} of account {} in the folder.", query.table, query.account);
    let strays: Vec<_> = spaces(reader).into_iter().filter(|space| !known.contains(space)).collect();
    if !strays.is_empty() {
        let strays: Vec<_> = strays.iter().map(|space| space.0.to_string()).collect();
        sentence =
            format!("{sentence} Rows that have lost their table are in space {}: see --space.", strays.join(", "));
    }
    Err(Error::Option(sentence))
}

/// The spaces that have rows which can be read.
fn spaces(reader: &Reader) -> Vec<Space> {
    let mut spaces = Vec::new();
    let mut from = space_prefix(CatalogueRow::SPACE).to_vec();
    while let Some(row) = reader.rows(from, None).next_row() {
        from = match row.map(|row| decode_key(row.key).map(|(space, _, _)| space)) {
            Ok(Some(space)) => {
                spaces.push(space);
                space_end(space)
            }
            Err(Damage { keys: (_, Some(to)), .. }) => to,
            _ => break,
        };
    }
    spaces
}

fn is_name(name: &TableName, text: &str) -> bool {
    name.as_str().eq_ignore_ascii_case(text)
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes().chunks(2);
    digits.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}
