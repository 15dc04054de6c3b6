//! Entity group transactions: the one write path.
//!
//! A single insert is a transaction of one. Changes arrive decoded; here they are planned against the rows as they are
//! now, committed with what the plan relied on, and planned again if a race was lost. Nothing is applied and then undone.
//!
//! ```text
//! Change --plan--> Item { expect, action } --commit--> version
//!                      ^                       |
//!                      +------- lost race -----+
//! ```

use crate::{Table, TableService, corrupt, service_error};
use bytes::Bytes;
use partita_model::limits::CUSTOM_PROPERTIES_MAX;
use partita_model::{
    IfMatch, PartitionKey, Property, Record, RecordBuf, Records, RowKey, ServiceError, Ticks, check_limits,
};
use partita_store::{Action, Batch, Error as StoreError, Expect, Item, Version};
use std::ops::Range;
use std::time::Instant;

/// A change to one entity.
#[derive(Clone, Debug)]
pub struct Change {
    /// The partition, the same for all changes of a transaction.
    pub partition_key: PartitionKey,
    /// The entity in it, another one for each change of a transaction.
    pub row_key: RowKey,
    /// What is done to it.
    pub kind: ChangeKind,
}

/// What a change does. An update without a condition is an upsert.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names are the service's")]
pub enum ChangeKind {
    Insert(Encoded),
    Replace(Encoded, Option<IfMatch>),
    Merge(Encoded, Option<IfMatch>),
    Delete(IfMatch),
}

/// A record whose bytes are shared: by the change, the store that writes them, and the answer.
#[derive(Clone, Debug)]
pub struct Encoded(Bytes);

impl Encoded {
    /// The properties.
    pub fn as_record(&self) -> Record<'_> {
        Record::open(&self.0).expect("it was made of a record")
    }
}

/// The records of all changes of a transaction, in one piece of memory.
#[derive(Clone, Debug)]
pub struct SharedRecords(Bytes);

impl SharedRecords {
    /// The record at a place where one was written.
    pub fn at(&self, place: Range<usize>) -> Encoded {
        Encoded(self.0.slice(place))
    }
}

impl From<Records> for SharedRecords {
    fn from(records: Records) -> SharedRecords {
        SharedRecords(records.into_bytes().into())
    }
}

impl From<RecordBuf> for Encoded {
    fn from(record: RecordBuf) -> Encoded {
        Encoded(record.into_bytes().into())
    }
}

impl From<Vec<Property>> for Encoded {
    fn from(properties: Vec<Property>) -> Encoded {
        RecordBuf::from(properties).into()
    }
}

/// A transaction that was committed.
#[derive(Clone, Debug)]
pub struct Applied {
    /// The Timestamp, and so the ETag, of every entity it wrote.
    pub timestamp: Ticks,
    /// What was written for each change; `None` for a delete.
    pub records: Vec<Option<Bytes>>,
}

/// Why a transaction was not committed: the first change that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeError {
    /// Its index.
    pub index: usize,
    /// What is wrong with it.
    pub error: ServiceError,
}

/// Items for the changes, or for those before the first one that cannot be made, its index, and why it cannot.
struct Plan {
    items: Vec<Item>,
    refused: Option<(usize, ServiceError)>,
}

impl TableService {
    /// Applies all changes, or none. They must be in one partition, each on another row, and not be empty.
    pub async fn apply(&self, table: &Table, changes: &[Change], deadline: Instant) -> Result<Applied, ChangeError> {
        let whole = |error| ChangeError { index: 0, error };
        let partition = PartitionKey::to_ordered(changes[0].partition_key.as_str()).into_owned();
        loop {
            let Plan { mut items, refused } = self.plan(table, &partition, changes).await.map_err(whole)?;
            let records = match refused {
                None => items.iter().map(|item| item.action.written()).collect(),
                Some(_) => Vec::new(),
            };
            if refused.is_some() {
                // A change is refused by its index only if all before it could be made, so those are still checked.
                items.iter_mut().for_each(|item| item.action = Action::Nothing);
            }
            let batch = Batch { space: table.space, partition: partition.clone(), items, drop_space: None };
            match (self.store.commit(batch).await, refused) {
                (Ok(version), None) => return Ok(Applied { timestamp: Ticks(version), records }),
                (Ok(_), Some((index, error))) => return Err(ChangeError { index, error }),
                (Err(StoreError::Conflict { index, found }), _) => {
                    if let Some(error) = changes[index].kind.explain(found) {
                        return Err(ChangeError { index, error });
                    }
                    if Instant::now() > deadline {
                        return Err(ChangeError { index, error: ServiceError::OperationTimedOut });
                    }
                }
                (Err(error), _) => return Err(whole(service_error(error))),
            }
        }
    }

    async fn plan(&self, table: &Table, partition: &[u8], changes: &[Change]) -> Result<Plan, ServiceError> {
        let mut items = Vec::with_capacity(changes.len());
        for (index, change) in changes.iter().enumerate() {
            let row = RowKey::to_ordered(change.row_key.as_str()).into_owned();
            let put = |record: &Encoded| {
                check_limits(change.partition_key.as_str(), change.row_key.as_str(), record.as_record())?;
                Ok(Action::Put(record.0.clone()))
            };
            let planned = match &change.kind {
                ChangeKind::Insert(record) => put(record).map(|put| (Expect::Absent, put)),
                ChangeKind::Replace(record, if_match) => put(record).map(|put| (expected(*if_match), put)),
                ChangeKind::Delete(if_match) => Ok((expected(Some(*if_match)), Action::Delete)),
                ChangeKind::Merge(changes, if_match) => {
                    let present = self.store.read(table.space, partition, &row).await.map_err(service_error)?;
                    let found = present.as_ref().map(|row| row.version);
                    let as_read = found.map_or(Expect::Absent, Expect::Version);
                    let planned = if !expected(*if_match).holds(found) {
                        Err(change.kind.explain(found).expect("an unmet condition of the client has a name"))
                    } else {
                        // Names differ within a change, so one of too many is refused whatever it meets; to compare
                        // thousands of them with what is there first would keep a thread busy.
                        let is_too_many = changes.as_record().stored().count() > CUSTOM_PROPERTIES_MAX;
                        let merged = match &present {
                            Some(row) if !is_too_many => {
                                let record = Record::open(&row.value);
                                record.and_then(|record| record.merged(changes.as_record())).map(Encoded::from)
                            }
                            _ => Ok(changes.clone()),
                        };
                        put(&merged.map_err(corrupt)?).map(|put| (as_read, put))
                    };
                    // What it is refused for was read before the others are checked, and must still be so then.
                    if planned.is_err() && index > 0 {
                        items.push(Item { row: row.clone(), expect: as_read, action: Action::Nothing });
                    }
                    planned
                }
            };
            match planned {
                Ok((expect, action)) => items.push(Item { row, expect, action }),
                Err(error) => return Ok(Plan { items, refused: Some((index, error)) }),
            }
        }
        Ok(Plan { items, refused: None })
    }
}

impl ChangeKind {
    /// The error a client gets when the row it wants to change is of the version `found`, or `None` if the client does
    /// not mind and only the plan did not hold.
    fn explain(&self, found: Option<Version>) -> Option<ServiceError> {
        let if_match = match self {
            ChangeKind::Insert(_) => return Some(ServiceError::EntityAlreadyExists),
            ChangeKind::Replace(_, if_match) | ChangeKind::Merge(_, if_match) => (*if_match)?,
            ChangeKind::Delete(if_match) => *if_match,
        };
        if expected(Some(if_match)).holds(found) {
            None
        } else if found.is_none() {
            Some(ServiceError::ResourceNotFound)
        } else {
            Some(ServiceError::UpdateConditionNotSatisfied)
        }
    }
}

/// What a condition of the client means for the row.
fn expected(if_match: Option<IfMatch>) -> Expect {
    match if_match {
        None => Expect::Any,
        Some(IfMatch::Any) => Expect::Present,
        Some(IfMatch::Tag(etag)) => Expect::Version(etag.0.0),
        // No row ever has version 0.
        Some(IfMatch::Foreign) => Expect::Version(0),
    }
}
