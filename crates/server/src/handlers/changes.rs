//! Insert, update, merge, upsert and delete entities: alone or many in an entity group transaction.
//!
//! A plain write is a transaction of one. Each change is drafted by itself (table, keys in the URL, body, condition), then
//! all drafts are looked at together, then each gets its keys checked, then they are applied as one.

use super::Context;
use super::entities::valid_keys;
use crate::header_name;
use crate::negotiate;
use crate::operation::{ChangeVerb, Operation};
use crate::reply::{Prefer, Reply};
use crate::request::Message;
use crate::resource::Keys;
use bytes::Bytes;
use partita_model::limits::BATCH_OPERATIONS_MAX;
use partita_model::{
    ETag, EntityView, IfMatch, KeyError, PartitionKey, Record, Records, RefusedKey, RowKey, ServiceError, Ticks,
};
use partita_table::{Change, ChangeKind, SharedRecords, Table};
use partita_wire::entity_json::{self, EntityBody, KeyField, Metadata, write_entity};
use partita_wire::url;
use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

/// A change before its keys are known to be valid.
#[derive(Debug)]
pub(crate) struct Draft {
    table: Arc<Table>,
    keys: DraftKeys,
    /// Where its properties are among the records.
    record: Range<usize>,
    if_match: Option<IfMatch>,
    pub(crate) answer: Answer,
}

/// How a change is answered when it was made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    verb: ChangeVerb,
    pub(crate) prefer: Option<Prefer>,
    metadata: Metadata,
}

/// The version that the rows of a transaction have in common.
struct Version {
    timestamp: Ticks,
    etag: String,
}

#[derive(Debug)]
enum DraftKeys {
    Url { partition_key: String, row_key: String },
    Body { partition_key: Option<KeyField>, row_key: Option<KeyField> },
}

/// Why a transaction failed.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) index: usize,
    pub(crate) error: ServiceError,
}

/// Makes one change.
pub(crate) async fn run(ctx: &Context<'_>, message: &Message<'_>) -> Result<Reply, ServiceError> {
    let mut records = Records::with_capacity(message.body.len());
    let draft = draft(ctx, message, &mut records, None)?;
    let mut replies = apply(ctx, vec![draft], records).await.map_err(|refused| refused.error)?;
    Ok(replies.remove(0))
}

/// Reads one change: everything that can be said of it without looking at others. Its properties go behind those of others. It
/// mostly is of the same table as the one before, which spares looking that up.
pub(crate) fn draft(
    ctx: &Context<'_>,
    message: &Message<'_>,
    records: &mut Records,
    before: Option<&Draft>,
) -> Result<Draft, ServiceError> {
    let Operation::Change { table, keys, verb } = message.operation else {
        return Err(ServiceError::NotImplemented);
    };
    let verb = *verb;
    let has_body = verb != ChangeVerb::Delete;
    if has_body {
        negotiate::check_json_body(message.headers)?;
    }
    let metadata = match verb {
        ChangeVerb::Insert => negotiate::metadata(message.query.get("$format"), message.headers)?,
        _ => Metadata::Minimal,
    };
    let table = match before.filter(|before| before.table.name.as_str() == table) {
        Some(before) => before.table.clone(),
        None => ctx.table(table)?,
    };
    let url = match (verb, keys) {
        (ChangeVerb::Insert, Keys::None) => None,
        _ => Some(url_keys(ctx, &table, keys)?),
    };
    let body = match has_body {
        true => entity_json::decode(message.body, records)?,
        false => EntityBody::default(),
    };
    let if_match = match (verb, message.header(header_name::IF_MATCH)) {
        (ChangeVerb::Insert, _) => None,
        (ChangeVerb::Delete, None) => return Err(ServiceError::IfMatchMissing),
        (_, None) => None,
        (_, Some(text)) => {
            Some(IfMatch::parse(text).ok_or_else(|| ServiceError::ETagMalformed { value: text.to_owned() })?)
        }
    };
    if verb != ChangeVerb::Insert && message.headers.contains(header_name::IF_NONE_MATCH) {
        return Err(ServiceError::RequestInputInvalid);
    }
    let keys = match url {
        Some((partition_key, row_key)) => {
            DraftKeys::Url { partition_key: partition_key.into(), row_key: row_key.into() }
        }
        None => DraftKeys::Body { partition_key: body.partition_key, row_key: body.row_key },
    };
    let prefer = match verb {
        ChangeVerb::Insert => Prefer::from_headers(message.headers),
        _ => None,
    };
    let answer = Answer { verb, prefer, metadata };
    Ok(Draft { table, keys, record: body.record, if_match, answer })
}

/// The keys of a URL that must have both.
pub(crate) fn url_keys<'k>(
    ctx: &Context<'_>,
    table: &Table,
    keys: &'k Keys,
) -> Result<(&'k str, &'k str), ServiceError> {
    match keys {
        Keys::Pair { partition_key, row_key } => Ok((partition_key, row_key)),
        Keys::Malformed => Err(ServiceError::QuerySyntax),
        Keys::None | Keys::WrongNumber => {
            let (account, table) = (ctx.address.account.clone(), table.name.to_string());
            Err(ServiceError::KeyCount { account, table })
        }
    }
}

/// Applies all drafts or none, and says for each what came of it.
pub(crate) async fn apply(ctx: &Context<'_>, drafts: Vec<Draft>, records: Records) -> Result<Vec<Reply>, Refused> {
    check_together(&drafts)?;
    let answers: Vec<Answer> = drafts.iter().map(|draft| draft.answer).collect();
    let table = drafts[0].table.clone();
    let records = SharedRecords::from(records);
    let changes = drafts.into_iter().enumerate();
    let changes = changes.map(|(index, draft)| draft.change(ctx, &records).map_err(|error| Refused { index, error }));
    let changes = changes.collect::<Result<Vec<_>, _>>()?;
    let applied = ctx.service.apply(&table, &changes, ctx.deadline).await;
    let applied = applied.map_err(|failed| Refused { index: failed.index, error: failed.error })?;
    let version = Version { timestamp: applied.timestamp, etag: ETag(applied.timestamp).into() };
    let replies = answers.iter().zip(&changes).zip(&applied.records);
    Ok(replies.map(|((answer, change), record)| answer.reply(ctx, &table, change, &version, record)).collect())
}

/// What a transaction must be as a whole: one table, one partition, each row once, not too many.
fn check_together(drafts: &[Draft]) -> Result<(), Refused> {
    if drafts.len() > BATCH_OPERATIONS_MAX {
        return Err(Refused { index: BATCH_OPERATIONS_MAX - 1, error: ServiceError::TooManyOperations });
    }
    let partition = drafts.iter().find_map(|draft| draft.keys.partition_key());
    // Rows that come in order, as most do, differ; to look them up would be a fiftieth of the work of a transaction.
    let are_in_order = drafts.is_sorted_by(|a, b| a.keys.row_key().is_some() && a.keys.row_key() < b.keys.row_key());
    let mut rows = HashSet::with_capacity(if are_in_order { 0 } else { drafts.len() });
    for (index, draft) in drafts.iter().enumerate() {
        let error = if draft.table.space != drafts[0].table.space {
            ServiceError::DifferentTables
        } else if draft.keys.partition_key().is_some_and(|key| Some(key) != partition) {
            ServiceError::DifferentPartitions
        } else if !are_in_order && draft.keys.row_key().is_some_and(|row_key| !rows.insert(row_key)) {
            ServiceError::DuplicateRowInBatch
        } else {
            continue;
        };
        return Err(Refused { index, error });
    }
    Ok(())
}

impl DraftKeys {
    fn partition_key(&self) -> Option<&str> {
        match self {
            DraftKeys::Url { partition_key, .. } => Some(partition_key),
            DraftKeys::Body { partition_key: Some(KeyField::Text(text)), .. } => Some(text),
            DraftKeys::Body { .. } => None,
        }
    }

    fn row_key(&self) -> Option<&str> {
        match self {
            DraftKeys::Url { row_key, .. } => Some(row_key),
            DraftKeys::Body { row_key: Some(KeyField::Text(text)), .. } => Some(text),
            DraftKeys::Body { .. } => None,
        }
    }
}

impl Draft {
    /// Checks the keys, and that the caller may reach them.
    fn change(self, ctx: &Context<'_>, records: &SharedRecords) -> Result<Change, ServiceError> {
        let (partition_key, row_key) = match self.keys {
            DraftKeys::Url { partition_key, row_key } => match self.answer.verb {
                ChangeVerb::InsertOrReplace | ChangeVerb::InsertOrMerge => {
                    let refuse = |key: &str, refused: RefusedKey| match refused.error {
                        KeyError::Slash => ServiceError::QuerySyntax,
                        KeyError::Forbidden => ServiceError::UrlKeyOutOfRange,
                        KeyError::TooLong => ServiceError::KeyValueTooLarge { key: key.to_owned() },
                    };
                    (
                        PartitionKey::try_from(partition_key).map_err(|refused| refuse("PartitionKey", refused))?,
                        RowKey::try_from(row_key).map_err(|refused| refuse("RowKey", refused))?,
                    )
                }
                _ => valid_keys(partition_key, row_key)?,
            },
            DraftKeys::Body { partition_key, row_key } => {
                let (partition_key, row_key) = (body_key(partition_key)?, body_key(row_key)?);
                let refuse = |key: &str, RefusedKey { error, text }| match error {
                    KeyError::TooLong => ServiceError::KeyValueTooLarge { key: key.to_owned() },
                    KeyError::Slash | KeyError::Forbidden => {
                        ServiceError::KeyOutOfRange { key: key.to_owned(), value: text }
                    }
                };
                (
                    PartitionKey::try_from(partition_key).map_err(|refused| refuse("PartitionKey", refused))?,
                    RowKey::try_from(row_key).map_err(|refused| refuse("RowKey", refused))?,
                )
            }
        };
        ctx.access.check_keys(partition_key.as_str(), row_key.as_str())?;
        let record = records.at(self.record);
        let kind = match (self.answer.verb, self.if_match) {
            (ChangeVerb::Insert, _) => ChangeKind::Insert(record),
            (ChangeVerb::Replace | ChangeVerb::InsertOrReplace, if_match) => ChangeKind::Replace(record, if_match),
            (ChangeVerb::Merge | ChangeVerb::InsertOrMerge, if_match) => ChangeKind::Merge(record, if_match),
            (ChangeVerb::Delete, if_match) => ChangeKind::Delete(if_match.expect("a delete without one is refused")),
        };
        Ok(Change { partition_key, row_key, kind })
    }
}

impl Answer {
    /// The data service version the service names in a part that answers this change.
    pub(crate) fn data_service_version(self) -> &'static str {
        if self.verb == ChangeVerb::Insert { "3.0;" } else { "1.0;" }
    }

    fn reply(
        self,
        ctx: &Context<'_>,
        table: &Table,
        change: &Change,
        version: &Version,
        record: &Option<Bytes>,
    ) -> Reply {
        let no_content = self.verb != ChangeVerb::Insert || self.prefer == Some(Prefer::NoContent);
        let mut reply = Reply::json(if no_content { 204 } else { 201 });
        if let Some(prefer) = self.prefer {
            reply = reply.with_own(header_name::PREFERENCE_APPLIED, prefer.name());
        }
        if self.verb == ChangeVerb::Delete {
            return reply;
        }
        let etag = &version.etag;
        if self.verb != ChangeVerb::Insert {
            return reply.with(header_name::ETAG, etag);
        }
        let (table, partition_key, row_key) =
            (table.name.as_str(), change.partition_key.as_str(), change.row_key.as_str());
        let location = url::entity_url(&ctx.address.base, table, partition_key, row_key);
        reply = reply.with(header_name::LOCATION, &location);
        if no_content {
            return reply.with(header_name::DATA_SERVICE_ID, location).with(header_name::ETAG, etag);
        }
        let record = Record::open(record.as_deref().unwrap_or_default()).expect("it was encoded for this very insert");
        let view = EntityView { partition_key, row_key, timestamp: version.timestamp, record };
        let (base, account) = (ctx.address.base.as_str(), ctx.address.account.as_str());
        let json = entity_json::Context { base, account, table, metadata: self.metadata, select: None };
        let mut body = Vec::new();
        write_entity(&mut body, &json, &view).expect("it was encoded for this very insert");
        reply.with(header_name::ETAG, etag).body(self.metadata.content_type(), body)
    }
}

fn body_key(key: Option<KeyField>) -> Result<String, ServiceError> {
    match key {
        None => Err(ServiceError::PropertiesNeedValue),
        Some(KeyField::NotString) => Err(ServiceError::KeyNotString),
        Some(KeyField::Text(text)) => Ok(text),
    }
}
