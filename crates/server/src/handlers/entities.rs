//! Get and query entities.

use super::Context;
use crate::bounds::Share;
use crate::header_name;
use crate::negotiate;
use crate::query_string::Query;
use crate::reply::Reply;
use crate::request::Message;
use crate::resource::Keys;
use partita_model::limits::{PAGE_BYTES_MAX, PAGE_ROWS_MAX, QUERY_SECONDS_MAX, SMALL_RESPONSE_BYTES_MAX};
use partita_model::{KeyError, PartitionKey, Position, RefusedKey, RowKey, ServiceError};
use partita_odata::{Filter, parse_top};
use partita_table::{EntityQuery, QueryReport};
use partita_wire::entity_json::{self, EntityPage, SelectColumns, write_entity};
use partita_wire::token;
use std::time::{Duration, Instant};

/// A page has memory for the next row before it comes, unless that is larger than most.
const ROW_BYTES: usize = SMALL_RESPONSE_BYTES_MAX / 2;

pub(crate) async fn get(
    ctx: &Context<'_>,
    message: &Message<'_>,
    table: &str,
    keys: &Keys,
) -> Result<Reply, ServiceError> {
    let metadata = negotiate::metadata(message.query.get("$format"), message.headers)?;
    let table = ctx.table(table)?;
    let (partition_key, row_key) = super::changes::url_keys(ctx, &table, keys)?;
    let (partition_key, row_key) = valid_keys(partition_key, row_key)?;
    ctx.access.check_keys(partition_key.as_str(), row_key.as_str())?;
    let select = message.query.raw("$select").map(SelectColumns::parse);
    let entity = ctx.service.get(&table, partition_key, row_key).await?;
    let view = entity.view().map_err(|_| ServiceError::InternalError)?;
    let json = entity_json::Context {
        base: &ctx.address.base,
        account: &ctx.address.account,
        table: table.name.as_str(),
        metadata,
        select: select.as_ref(),
    };
    let mut body = Vec::new();
    write_entity(&mut body, &json, &view).map_err(|_| ServiceError::InternalError)?;
    Ok(Reply::json(200).with(header_name::ETAG, String::from(view.etag())).body(metadata.content_type(), body))
}

pub(crate) async fn query(ctx: &Context<'_>, message: &Message<'_>, table: &str) -> Result<Reply, ServiceError> {
    let options = message.query;
    let metadata = negotiate::metadata(options.get("$format"), message.headers)?;
    let table = ctx.table(table)?;
    check_options(options)?;
    let filter = options.get("$filter").map(Filter::parse).transpose()?.flatten();
    let rows_max = options.get("$top").map_or(Ok(PAGE_ROWS_MAX), parse_top)?;
    let select = options.raw("$select").map(SelectColumns::parse);
    let from = continuation(options)?;
    let range = ctx.access.key_range();
    let (low, high) = (range.and_then(|range| range.start()), range.and_then(|range| range.end()));
    let query = EntityQuery {
        filter: filter.as_ref(),
        from: from.as_ref(),
        low: low.as_ref(),
        high: high.as_ref(),
        rows_max,
        bytes_max: PAGE_BYTES_MAX,
        deadline: ctx.deadline.min(Instant::now() + Duration::from_secs(QUERY_SECONDS_MAX)),
    };
    let mut page = EntityPage::begin(entity_json::Context {
        base: &ctx.address.base,
        account: &ctx.address.account,
        table: table.name.as_str(),
        metadata,
        select: select.as_ref(),
    });
    let mut share = Share::of(ctx.responses, SMALL_RESPONSE_BYTES_MAX).ok_or(ServiceError::ServerBusy)?;
    let mut sink = |entity: &partita_model::EntityView<'_>| {
        page.push(entity)?;
        let wanted = page.bytes() + ROW_BYTES;
        let has_room = wanted <= share.bytes() || share.grow(wanted + ROW_BYTES);
        // A page that gets no more memory ends here, and the client comes back for the rest.
        Ok(if has_room { page.bytes() } else { usize::MAX })
    };
    let (end, report) = ctx.service.query(&table, query, &mut sink).await?;
    ctx.metrics.query(&report);
    let mut reply = Reply::json(200);
    if let Some((partition_key, row_key)) = end {
        reply = reply
            .with(header_name::NEXT_PARTITION_KEY, token::encode_key(&partition_key))
            .with(header_name::NEXT_ROW_KEY, token::encode_key(&row_key));
    }
    if ctx.plan_header || message.headers.contains(header_name::PLAN) {
        reply = reply.with(header_name::PLAN, describe(&report));
    }
    let mut body = page.finish();
    body.shrink_to_fit();
    if !share.grow(body.len()) {
        return Err(ServiceError::ServerBusy);
    }
    Ok(Reply { share: Some(share), ..reply.body(metadata.content_type(), body) })
}

fn describe(report: &QueryReport) -> String {
    let QueryReport { class, azure_class, rows_read, rows_returned } = report;
    let (class, azure_class) = (class.name(), azure_class.name());
    format!("class={class}; azure={azure_class}; rows-read={rows_read}; rows-returned={rows_returned}")
}

/// Refuses what OData knows and the service does not: to ignore it would give a wrong answer without a word.
pub(crate) fn check_options(query: &Query) -> Result<(), ServiceError> {
    let known = ["$filter", "$select", "$top", "$format"];
    match query.pairs().iter().find(|(name, _)| name.starts_with('$') && !known.contains(&name.as_str())) {
        Some(_) => Err(ServiceError::NotImplemented),
        None => Ok(()),
    }
}

/// Where an earlier page ended.
fn continuation(query: &Query) -> Result<Option<Position>, ServiceError> {
    let Some(partition_key) = query.get("NextPartitionKey").filter(|token| !token.is_empty()) else { return Ok(None) };
    let partition_key = token::decode_key(partition_key)?;
    let row_key = query.get("NextRowKey").filter(|token| !token.is_empty()).map(token::decode_key).transpose()?;
    let row_key = row_key.unwrap_or_default();
    Ok(Some(Position::new(PartitionKey::to_ordered(&partition_key), RowKey::to_ordered(&row_key))))
}

/// Keys of a URL that must name an entity that is there: one that is too long names none.
pub(crate) fn valid_keys(
    partition_key: impl Into<String>,
    row_key: impl Into<String>,
) -> Result<(PartitionKey, RowKey), ServiceError> {
    let refuse = |refused: RefusedKey| match refused.error {
        KeyError::Slash => ServiceError::QuerySyntax,
        KeyError::Forbidden => ServiceError::UrlKeyOutOfRange,
        KeyError::TooLong => ServiceError::ResourceNotFound,
    };
    let partition_key = PartitionKey::try_from(partition_key.into()).map_err(refuse)?;
    Ok((partition_key, RowKey::try_from(row_key.into()).map_err(refuse)?))
}
