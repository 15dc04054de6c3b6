//! A copy of a table from one account to another, and the proof that it is one.
//!
//! Both tables are read side by side, and what the second lacks is written to it. So a copy that was ended early is begun
//! again to go on: nothing has to be noted anywhere, and no row can be lost or be there twice. To verify is to read both
//! once more with nothing to write.
//!
//! The second table is read while it is written to. Rows are written before the place up to which it was read, and
//! are not met again.

use crate::client::Mode;
use crate::merge::{Merge, Pair};
use crate::table_sink::{TableSink, Writer};
use crate::{Error, Progress, Result, Sink, Source};
use partita_model::{ServiceProperties, StoredAccessPolicy};
use sha2::{Digest, Sha256};
use std::fmt;

/// An account at either end of a copy: its tables.
pub trait Account: fmt::Display + Send + Sync {
    /// The rows of a table.
    type Rows: Source + 'static;
    /// What writes to a table.
    type Writer: Writer;

    /// The names of all tables.
    fn tables(&self) -> impl Future<Output = Result<Vec<String>>> + Send;

    /// Creates a table, unless it is there.
    fn create_table(&self, table: &str) -> impl Future<Output = Result<()>> + Send;

    /// All rows of a table, in the order of their keys.
    fn rows(&self, table: &str) -> Result<Self::Rows>;

    /// Somebody who writes to a table.
    fn writer(&self, table: &str, mode: Mode) -> Result<Self::Writer>;

    /// The stored access policies of a table; `None` if they are not for us to know.
    fn access_policies(&self, table: &str) -> impl Future<Output = Result<Option<Vec<StoredAccessPolicy>>>> + Send;

    /// Replaces them, and says whether that is for us to do.
    fn set_access_policies(
        &self,
        table: &str,
        policies: &[StoredAccessPolicy],
    ) -> impl Future<Output = Result<bool>> + Send;

    /// What the account has set for its service.
    fn service_properties(&self) -> impl Future<Output = Result<ServiceProperties>> + Send;

    /// Replaces it.
    fn set_service_properties(&self, properties: &ServiceProperties) -> impl Future<Output = Result<()>> + Send;
}

/// What becomes of rows that are at the target already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// One that differs is an error.
    Keep,
    /// One that differs is replaced.
    Replace,
    /// One that differs is replaced, and one that the source does not have is deleted.
    Mirror,
}

/// A table at each end of a copy.
#[derive(Debug)]
pub struct Copy<'a, F, T> {
    /// The account that is read.
    pub from: &'a F,
    /// Its table.
    pub table: &'a str,
    /// The account that is written to.
    pub to: &'a T,
    /// What the table is called there.
    pub to_table: &'a str,
    /// What becomes of rows that are there.
    pub existing: Existing,
    /// How many transactions are under way at a time.
    pub connections: usize,
}

/// How many rows were written and deleted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Written {
    /// Written, new ones and others.
    pub rows: u64,
    /// Deleted.
    pub deleted: u64,
    /// All that were looked at.
    pub seen: u64,
}

impl<F: Account, T: Account> Copy<'_, F, T> {
    /// Writes what the target lacks.
    pub async fn write(&self, progress: &mut Progress) -> Result<Written> {
        let sink = |mode, count| {
            let writers = (0..count).map(|_| self.to.writer(self.to_table, mode));
            Ok(TableSink::new(writers.collect::<Result<_>>()?, 0, Box::new(|_| Ok(()))))
        };
        let count = self.connections.max(1);
        let mut puts = sink(if self.existing == Existing::Keep { Mode::Insert } else { Mode::Replace }, count)?;
        let mut deletes = sink(Mode::Delete, if self.existing == Existing::Mirror { count } else { 0 })?;
        let mut merge = self.merge()?;
        let mut written = Written::default();
        while let Some(pair) = merge.next().await? {
            match pair {
                Pair::First(row) => {
                    puts.push(row).await?;
                    written.rows += 1;
                }
                Pair::Both(row, found) if row.content() != found.content() => {
                    if self.existing == Existing::Keep {
                        return Err(Error::Different(format!(
                            "{}: {} is in {} with other content; --mode replace takes its place.",
                            self.to_table,
                            row.key(),
                            self.to
                        )));
                    }
                    puts.push(row).await?;
                    written.rows += 1;
                }
                Pair::Second(row) if self.existing == Existing::Mirror => {
                    deletes.push(row).await?;
                    written.deleted += 1;
                }
                Pair::Both(..) | Pair::Second(_) => {}
            }
            written.seen += 1;
            progress.tell(written.seen, 0);
        }
        puts.finish().await?;
        deletes.finish().await?;
        progress.end();
        Ok(written)
    }

    /// Reads both tables and compares them.
    pub async fn compare(&self, progress: &mut Progress) -> Result<Comparison> {
        let mut merge = self.merge()?;
        let mut found = Comparison::default();
        while let Some(pair) = merge.next().await? {
            found.add(&pair);
            progress.tell(found.from.rows, found.from.rows);
        }
        progress.end();
        Ok(found)
    }

    /// Copies the access policies, unless the target has others that shall stay. Says whether that could be done.
    pub async fn write_access_policies(&self) -> Result<bool> {
        let Some(policies) = self.from.access_policies(self.table).await? else { return Ok(false) };
        match self.to.access_policies(self.to_table).await? {
            None => Ok(policies.is_empty()),
            Some(found) if found == policies => Ok(true),
            Some(found) if !found.is_empty() && self.existing == Existing::Keep => Ok(true),
            Some(_) => self.to.set_access_policies(self.to_table, &policies).await,
        }
    }

    /// Whether the access policies are known at both ends and differ.
    pub async fn access_policies_differ(&self) -> Result<bool> {
        let (from, to) = (self.from.access_policies(self.table).await?, self.to.access_policies(self.to_table).await?);
        Ok(from.zip(to).is_some_and(|(from, to)| from != to))
    }

    fn merge(&self) -> Result<Merge> {
        Ok(Merge::new(self.from.rows(self.table)?, self.to.rows(self.to_table)?))
    }
}

/// Copies what an account has set for its service, unless the target has set something else that shall stay. If it is not the
/// same in the end, the answer is a sentence that says why.
pub async fn write_service_properties<F, T>(from: &F, to: &T, existing: Existing) -> Result<Option<String>>
where
    F: Account,
    T: Account,
{
    let refused = |place: &dyn fmt::Display, error| match error {
        // Not every signature may do this, and not every service does.
        Error::Refused { status: 400..=499 | 501, .. } | Error::Different(_) => {
            Ok(Some(format!("The service properties were not copied. {place}: {error}")))
        }
        error => Err(error),
    };
    let properties = match from.service_properties().await {
        Ok(properties) => properties,
        Err(error) => return refused(from, error),
    };
    let found = match to.service_properties().await {
        Ok(found) if found == properties => return Ok(None),
        Ok(found) => found,
        Err(error) => return refused(to, error),
    };
    if existing == Existing::Keep && found != ServiceProperties::default() {
        return Ok(Some(format!("The service properties of {to} are others and stay; --mode replace copies them.")));
    }
    match to.set_service_properties(&properties).await {
        Ok(()) => Ok(None),
        Err(error) => refused(to, error),
    }
}

/// Whether a table has rows, or `None` if there is no such table.
pub async fn has_rows(account: &impl Account, table: &str) -> Result<Option<bool>> {
    let first = async {
        let mut rows = account.rows(table)?;
        while let Some(page) = rows.next_page().await? {
            if !page.entities.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    };
    match first.await {
        Err(Error::Refused { code, .. }) if code == "TableNotFound" => Ok(None),
        found => found.map(Some),
    }
}

/// What two tables have in common.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    /// All of the source.
    pub from: Tally,
    /// All of the target.
    pub to: Tally,
    /// How many rows only the source has.
    pub missing: u64,
    /// How many rows have other content.
    pub different: u64,
    /// How many rows only the target has.
    pub extra: u64,
    /// The first of these, in words.
    pub first: Option<String>,
}

impl Comparison {
    /// Whether the target is what a copy should have made of it.
    pub fn holds(&self, existing: Existing) -> bool {
        (self.missing, self.different) == (0, 0) && (self.extra == 0 || existing == Existing::Replace)
    }

    fn add(&mut self, pair: &Pair) {
        let what = match pair {
            Pair::First(row) => {
                self.from.add(&row.content());
                self.missing += 1;
                format!("{} is only at the source", row.key())
            }
            Pair::Second(row) => {
                self.to.add(&row.content());
                self.extra += 1;
                format!("{} is only at the target", row.key())
            }
            Pair::Both(row, found) => {
                let (content, found_content) = (row.content(), found.content());
                self.from.add(&content);
                self.to.add(&found_content);
                if content == found_content {
                    return;
                }
                self.different += 1;
                let property = row.first_difference(found).unwrap_or_default();
                format!("{} differs in {property}", row.key())
            }
        };
        self.first.get_or_insert(what);
    }
}

/// How many rows, and a checksum of what they say, in the order of their keys.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// How many.
    pub rows: u64,
    hash: Sha256,
}

impl Tally {
    fn add(&mut self, content: &[u8]) {
        self.rows += 1;
        self.hash.update((content.len() as u32).to_be_bytes());
        self.hash.update(content);
    }

    /// Digits that are the same wherever the same rows are.
    pub fn checksum(&self) -> String {
        self.hash.clone().finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
    }
}

/// For people.
impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, checksum {}", crate::count(self.rows, "row"), self.checksum())
    }
}
