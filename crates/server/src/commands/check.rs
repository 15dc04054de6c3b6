//! `partita check`: is everything in a folder as it was written, and does it fit together?

use super::{Location, expect_data, size};
use crate::backup::{self, Backup};
use clap::Args;
use partita_model::{CorruptRecord, PartitionKey, Record, RowKey, Ticks, ValueRef};
use partita_store::{Space, Version, decode_key};
use partita_store_rocksdb::{Reader, StoredRow};
use partita_table::{CatalogueRow, Table};
use partita_transfer::count;
use std::collections::{BTreeMap, HashSet};
use std::fmt::Display;
use std::path::Path;

/// Verifies a data folder, or a backup, without changing it: checksums, formats, and the catalogue against the rows.
#[derive(Debug, Args)]
pub struct Check {
    #[command(flatten)]
    data: Location,
}

/// What was found, told as it is found.
#[derive(Default)]
struct Findings {
    problems: u64,
    tables: Vec<Table>,
    next_space: Option<u64>,
    spaces: BTreeMap<Space, Content>,
}

/// What a space holds.
#[derive(Default)]
struct Content {
    rows: u64,
    bytes: u64,
}

impl Check {
    /// Prints what is there and what is wrong with it; an error if anything is.
    pub fn run(&self) -> Result<(), String> {
        let folder = &self.data.location;
        expect_data(folder)?;
        let mut found = Findings::default();
        found.check_list(folder);
        let reader = Reader::open(folder).map_err(|error| error.to_string())?;
        let logs = reader.verify_logs().map_err(|error| error.to_string())?;
        for problem in reader.verify_tables().into_iter().chain(logs) {
            let line = format!("{}: {}", problem.file, problem.what);
            if problem.is_harmless { println!("Note: {line}.") } else { found.problem(line) }
        }
        found.check_rows(&reader);
        found.check_catalogue();
        found.print_tables();
        match found.problems {
            0 => {
                println!("No problem was found in {}.", folder.display());
                Ok(())
            }
            problems => Err(format!("{} found in {}.", count(problems, "problem"), folder.display())),
        }
    }
}

impl Findings {
    fn problem(&mut self, what: impl Display) {
        self.problems += 1;
        println!("Problem: {what}.");
    }

    /// A backup says itself what it consists of.
    fn check_list(&mut self, folder: &Path) {
        if !folder.join(backup::LIST).exists() {
            return;
        }
        let differences = Backup::read(folder).map_or_else(|why| vec![why], |list| list.verify(folder));
        differences.iter().for_each(|why| self.problem(why.trim_end_matches('.')));
    }

    fn check_rows(&mut self, reader: &Reader) {
        let last_version = reader.last_version().unwrap_or_else(|why| {
            self.problem(why);
            Version::MAX
        });
        let mut rows = reader.rows(Vec::new(), None);
        while let Some(row) = rows.next_row() {
            match row {
                Ok(row) if row.key.first() == Some(&0) => {}
                Ok(row) => {
                    if let Err(why) = self.check_row(row, last_version) {
                        self.problem(format_args!("{}: {why}", name_of(row.key)));
                    }
                }
                Err(damage) => {
                    let (from, to) = (name_of(&damage.keys.0), damage.keys.1);
                    let to = to.map_or("the end".to_owned(), |to| name_of(&to));
                    self.problem(format_args!("{}: rows from {from} to {to} cannot be read", damage.what));
                }
            }
        }
    }

    fn check_row(&mut self, row: StoredRow<'_>, last_version: Version) -> Result<(), String> {
        let (space, partition, name) = decode_key(row.key).ok_or("it is not the key of a row")?;
        let content = self.spaces.entry(space).or_default();
        content.rows += 1;
        content.bytes += (row.key.len() + row.stored.len()) as u64;
        let (version, value) = row.split().map_err(|error| error.to_string())?;
        if version > last_version {
            return Err(format!("its version {version} is later than the last that was given, {last_version}"));
        }
        if space == CatalogueRow::SPACE {
            let read = CatalogueRow::read(&name, value).map_err(|error| error.to_string())?;
            if !partition.is_empty() || read.row() != *name {
                return Err("it is not where it belongs in the catalogue".into());
            }
            match read {
                CatalogueRow::NextSpace(next) => self.next_space = Some(next),
                CatalogueRow::ServiceProperties { .. } => {}
                CatalogueRow::Table(table) => self.tables.push(table),
            }
            return Ok(());
        }
        let partition = PartitionKey::from_ordered(&partition).ok_or("its PartitionKey is not text")?;
        let name = RowKey::from_ordered(&name).ok_or("its RowKey is not text")?;
        PartitionKey::parse(&partition).map_err(|_| "its PartitionKey is not a valid one")?;
        RowKey::parse(&name).map_err(|_| "its RowKey is not a valid one")?;
        check_record(value).map_err(|error| error.to_string())
    }

    fn check_catalogue(&mut self) {
        let mut of_tables = HashSet::from([CatalogueRow::SPACE]);
        let next = self.next_space.unwrap_or(1);
        for table in self.tables.clone() {
            let Table { account, name, space, .. } = table;
            if space.0 >= next {
                self.problem(format_args!("table {name} of {account} has space {}, and the next is {next}", space.0));
            }
            if !of_tables.insert(space) {
                self.problem(format_args!("table {name} of {account} has space {}, as another has", space.0));
            }
        }
        let strays: Vec<_> = self.spaces.iter().filter(|(space, _)| !of_tables.contains(space)).collect();
        let strays: Vec<_> = strays.into_iter().map(|(space, content)| (space.0, content.rows)).collect();
        for (space, rows) in strays {
            self.problem(format_args!("space {space} has {} and belongs to no table", count(rows, "row")));
        }
    }

    fn print_tables(&self) {
        let (mut rows, mut bytes) = (0, 0);
        for table in &self.tables {
            let content = self.spaces.get(&table.space).unwrap_or(&Content { rows: 0, bytes: 0 });
            println!("{}/{}: {}, {}", table.account, table.name, count(content.rows, "row"), size(content.bytes));
            rows += content.rows;
            bytes += content.bytes;
        }
        let tables = count(self.tables.len() as u64, "table");
        println!("{tables}, {}, {}.", count(rows, "row"), size(bytes));
    }
}

/// Whether all of a record can be read, and is what could have been written.
fn check_record(value: &[u8]) -> Result<(), CorruptRecord> {
    let mut names = HashSet::new();
    for property in Record::open(value)?.iter() {
        let (name, value) = property?;
        let in_range = match value {
            ValueRef::DateTime(date) => (Ticks::MIN_DATE_TIME..=Ticks::MAX).contains(&date),
            _ => true,
        };
        if !names.insert(name) || !in_range {
            return Err(CorruptRecord);
        }
    }
    Ok(())
}

/// A place among the keys for people: which row of which space it names, or lies behind.
pub(crate) fn name_of(key: &[u8]) -> String {
    match decode_key(key) {
        Some((space, partition, row)) if space == CatalogueRow::SPACE && partition.is_empty() => {
            format!("catalogue row '{}'", row.escape_ascii())
        }
        Some((space, partition, row)) => {
            let text = |ordered: &[u8]| {
                let text = PartitionKey::from_ordered(ordered).map(|text| text.escape_debug().to_string());
                text.unwrap_or_else(|| ordered.escape_ascii().to_string())
            };
            format!("PartitionKey '{}' RowKey '{}' of space {}", text(&partition), text(&row), space.0)
        }
        None => match key.strip_suffix(&[0]).filter(|key| decode_key(key).is_some()) {
            Some(row) => format!("behind {}", name_of(row)),
            None => format!("key '{}'", key.escape_ascii()),
        },
    }
}
