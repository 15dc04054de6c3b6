//! `partita copy`: tables from one place to another, with the proof that they are the same.

mod place;

use super::{block_on, parse_table};
use crate::accounts;
use crate::config::Secret;
use clap::{Args, ValueEnum};
use partita_transfer::copy::{self, Account, Existing};
use partita_transfer::{Error, Progress, count};
use place::{Opened, Place};
use std::fmt::Display;

/// Copies tables between services, data folders and databases, and verifies that they are the same in both.
#[derive(Debug, Args)]
pub struct Copy {
    /// Where the tables are: a connection string as Azure writes it, a data folder that no server has open, or
    /// postgres://user@host/database.
    #[arg(long, value_name = "PLACE", env = "PARTITA_FROM", hide_env_values = true)]
    from: Secret,
    /// Where they shall be, in the same forms. A folder is made if it is not there.
    #[arg(long, value_name = "PLACE", env = "PARTITA_TO", hide_env_values = true)]
    to: Secret,
    /// The tables, with commas between [default: all].
    #[arg(long = "table", value_name = "NAMES", value_delimiter = ',', value_parser = parse_table)]
    tables: Vec<String>,
    /// What a single table is called at the target.
    #[arg(long = "as", value_name = "NAME", value_parser = parse_table, requires = "tables")]
    new_name: Option<String>,
    /// The account in a folder or database [default: that of the service at the other end; without one, all accounts].
    #[arg(long, value_name = "NAME")]
    account: Option<String>,
    /// What becomes of rows that are at the target already.
    #[arg(long, value_enum, value_name = "MODE", default_value = "insert")]
    mode: ModeName,
    /// Go on with a copy that ended early: rows that are at the target are passed over.
    #[arg(long)]
    resume: bool,
    /// Compare the tables and copy nothing.
    #[arg(long, conflicts_with_all = ["resume", "mode"])]
    verify_only: bool,
    /// How many transactions are under way at a time.
    #[arg(long, value_name = "COUNT", default_value_t = 16)]
    connections: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum ModeName {
    /// Tables that have rows are refused.
    Insert,
    /// Rows with the same keys are replaced.
    Replace,
    /// Rows with the same keys are replaced, and rows that the source does not have are deleted.
    Mirror,
}

/// What came of all tables.
#[derive(Default)]
struct Totals {
    tables: u64,
    /// How many there are to do.
    of: u64,
    rows: u64,
    different: u64,
    /// Tables whose access policies could not be copied.
    without_policies: Vec<String>,
    /// Sentences on what else could not be copied.
    notes: Vec<String>,
}

/// An account of the source, and what is copied of it.
struct Tables {
    account: String,
    pairs: Vec<Pair>,
}

/// A table and how it is called here and there.
struct Pair {
    label: String,
    from: String,
    to: String,
}

impl Copy {
    /// Copies, verifies and says so.
    pub fn run(self) -> Result<(), String> {
        super::log_errors();
        let (from, to) = (Place::parse(&self.from.0)?, Place::parse(&self.to.0)?);
        if self.new_name.is_some() && self.tables.len() != 1 {
            return Err("--as is for a single table that --table names.".into());
        }
        if let Some(account) = self.account.as_ref().filter(|account| !accounts::is_name(account)) {
            return Err(format!("'{account}' is not the name of an account."));
        }
        from.check_differs(&to, self.new_name.is_some())?;
        let totals = block_on(async {
            let from = from.open(false).await?;
            // What is asked for is looked for before anything is made at the target.
            let accounts = self.accounts(&from, &to).await.map_err(|error| error.to_string())?;
            let to = to.open(!self.verify_only).await?;
            let of = accounts.iter().map(|account| account.pairs.len() as u64).sum();
            let mut totals = Totals { of, ..Totals::default() };
            let done = self.between(&from, &to, &accounts, &mut totals).await;
            // What was copied is on the disk before anything is said of it.
            to.close();
            done.map(|()| totals).map_err(|error| error.to_string())
        })?;
        totals.conclude(self.verify_only)
    }

    /// What is to be copied, of which there is something.
    async fn accounts(&self, from: &Opened, to: &Place) -> Result<Vec<Tables>, Error> {
        let mut all = Vec::new();
        match from {
            Opened::Service(_) if self.account.is_some() && matches!(to, Place::Service(_)) => {
                return Err(Error::Option("--account is for folders and databases.".into()));
            }
            Opened::Service(from) => all.push(self.tables(from, &from.0.account, "").await?),
            Opened::Store(from) => {
                let known = from.service.accounts();
                let (named, is_alone) = match to {
                    Place::Service(to) => (Some(self.account.as_ref().unwrap_or(&to.account)), true),
                    _ => (self.account.as_ref(), false),
                };
                if let Some(account) = named.filter(|account| !known.contains(*account)) {
                    let (name, known) = (&from.name, known.into_iter().collect::<Vec<_>>().join(", "));
                    return Err(Error::Option(format!(
                        "There is no account {account} in {name}; --account names one that is there: {known}."
                    )));
                }
                for account in known.iter().filter(|account| named.is_none_or(|named| named == *account)) {
                    let prefix = if is_alone { String::new() } else { format!("{account}/") };
                    all.push(self.tables(&from.account(account), account, &prefix).await?);
                }
            }
        }
        match all.iter().all(|account| account.pairs.is_empty()) {
            true => Err(Error::Option("There are no tables at the source.".into())),
            false => Ok(all),
        }
    }

    async fn between(&self, from: &Opened, to: &Opened, accounts: &[Tables], totals: &mut Totals) -> Result<(), Error> {
        for tables in accounts {
            let account = &tables.account;
            match (from, to) {
                (Opened::Service(from), Opened::Service(to)) => self.account(from, to, tables, totals).await?,
                (Opened::Service(from), Opened::Store(to)) => {
                    let to = to.account(self.account.as_ref().unwrap_or(account));
                    self.account(from, &to, tables, totals).await?;
                }
                (Opened::Store(from), Opened::Service(to)) => {
                    self.account(&from.account(account), to, tables, totals).await?;
                }
                (Opened::Store(from), Opened::Store(to)) => {
                    let ends = (from.account(account), to.account(account));
                    self.account(&ends.0, &ends.1, tables, totals).await?;
                }
            }
        }
        Ok(())
    }

    async fn account<F: Account, T: Account>(
        &self,
        from: &F,
        to: &T,
        tables: &Tables,
        totals: &mut Totals,
    ) -> Result<(), Error> {
        let mut missing = Vec::new();
        for pair in &tables.pairs {
            if !self.check(&self.copy(from, to, pair)).await? {
                missing.push(&pair.to);
            }
        }
        for table in missing {
            to.create_table(table).await?;
        }
        for pair in &tables.pairs {
            self.table(&self.copy(from, to, pair), &pair.label, totals).await?;
        }
        // Of whole accounts also what they have set for their service.
        if self.tables.is_empty() && !self.verify_only {
            totals.notes.extend(copy::write_service_properties(from, to, self.existing()).await?);
        }
        Ok(())
    }

    /// The tables of an account that were asked for, all of which are there.
    async fn tables(&self, from: &impl Account, account: &str, prefix: &str) -> Result<Tables, Error> {
        let tables = match self.tables.is_empty() {
            false => self.tables.clone(),
            true => from.tables().await.map_err(|error| match error {
                Error::Refused { status: 403, .. } => {
                    Error::Option(format!("The tables of {from} cannot be listed: name them with --table."))
                }
                error => error,
            })?,
        };
        for table in &self.tables {
            if copy::has_rows(from, table).await?.is_none() {
                return Err(no_table(table, from));
            }
        }
        let pair = |from: String| match &self.new_name {
            Some(to) => Pair { label: format!("{prefix}{from} as {to}"), from, to: to.clone() },
            None => Pair { label: format!("{prefix}{from}"), to: from.clone(), from },
        };
        Ok(Tables { account: account.to_owned(), pairs: tables.into_iter().map(pair).collect() })
    }

    fn copy<'c, F, T>(&self, from: &'c F, to: &'c T, pair: &'c Pair) -> copy::Copy<'c, F, T> {
        let (existing, connections) = (self.existing(), self.connections);
        copy::Copy { from, table: &pair.from, to, to_table: &pair.to, existing, connections }
    }

    fn existing(&self) -> Existing {
        match self.mode {
            ModeName::Insert => Existing::Keep,
            ModeName::Replace => Existing::Replace,
            ModeName::Mirror => Existing::Mirror,
        }
    }

    /// Sees that the target can take the table before any is copied, and whether it is there.
    async fn check<F: Account, T: Account>(&self, copy: &copy::Copy<'_, F, T>) -> Result<bool, Error> {
        match copy::has_rows(copy.to, copy.to_table).await? {
            None if self.verify_only => Err(no_table(copy.to_table, copy.to)),
            Some(true) if self.mode == ModeName::Insert && !self.resume && !self.verify_only => {
                Err(Error::Option(format!(
                    "{} in {} has rows already: give --resume to go on with a copy that ended early, or --mode replace or \
                     mirror to write over them.",
                    copy.to_table, copy.to
                )))
            }
            found => Ok(found.is_some()),
        }
    }

    async fn table<F: Account, T: Account>(
        &self,
        copy: &copy::Copy<'_, F, T>,
        label: &str,
        totals: &mut Totals,
    ) -> Result<(), Error> {
        let mut done = String::new();
        let mut total = None;
        let place = totals.place(label);
        if !self.verify_only {
            let written = copy.write(&mut Progress::new(0, None).of(&place)).await?;
            done = format!(", {} written", written.rows);
            if written.deleted > 0 {
                done = format!("{done}, {} deleted", written.deleted);
            }
            total = Some(written.seen);
            if !copy.write_access_policies().await? {
                totals.without_policies.push(label.to_owned());
            }
        }
        let found = copy.compare(&mut Progress::new(0, total).of(&format!("{place}, verifying"))).await?;
        totals.tables += 1;
        totals.rows += found.from.rows;
        let others = if found.extra > 0 { format!(", {} only at the target", found.extra) } else { String::new() };
        if !found.holds(copy.existing) {
            totals.different += 1;
            println!(
                "{label} differs: {} at the source, {} at the target; {} missing, {} different{others}; {}.",
                found.from,
                found.to,
                found.missing,
                found.different,
                found.first.unwrap_or_default()
            );
        } else if copy.access_policies_differ().await? {
            totals.different += 1;
            println!("{label} differs: {}, the same at both ends, and other access policies.", found.from);
        } else {
            println!("{label}: {}{done}{others}.", found.from);
        }
        Ok(())
    }
}

fn no_table(table: &str, place: &impl Display) -> Error {
    Error::Option(format!("There is no table {table} in {place}."))
}

impl Totals {
    /// What the next table is called while it is worked on.
    fn place(&self, label: &str) -> String {
        match self.of {
            1 => label.to_owned(),
            of => format!("{label} ({} of {of})", self.tables + 1),
        }
    }

    fn conclude(self, verify_only: bool) -> Result<(), String> {
        if !self.without_policies.is_empty() {
            eprintln!(
                "partita: Access policies were not copied, for that takes the account's key at both ends: {}.",
                self.without_policies.join(", ")
            );
        }
        for note in &self.notes {
            eprintln!("partita: {note}");
        }
        let all = count(self.tables, "table");
        if self.different > 0 {
            let hint = match verify_only {
                true => "",
                false => " If the source was written to meanwhile, stop that and run again with --mode mirror.",
            };
            return Err(format!("{} of {all} differ.{hint}", self.different));
        }
        println!("{all} verified, {}.", count(self.rows, "row"));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_counted_where_there_are_several() {
        let place = |tables, of| Totals { tables, of, ..Totals::default() }.place("Ledger");
        assert_eq!((place(0, 1), place(0, 3)), ("Ledger".to_owned(), "Ledger (1 of 3)".to_owned()));
        assert_eq!(place(2, 3), "Ledger (3 of 3)");
    }
}
