//! Create, query, get and delete tables.

use super::{Context, table_name};
use crate::header_name;
use crate::negotiate;
use crate::reply::{Prefer, Reply};
use crate::request::Message;
use partita_model::limits::PAGE_ROWS_MAX;
use partita_model::{ServiceError, TableName, TableNameError};
use partita_odata::{Filter, parse_top};
use partita_table::TableQuery;
use partita_wire::entity_json::{TablesContext, decode_table_name, write_table, write_tables};
use partita_wire::{token, url};

pub(crate) async fn create(ctx: &Context<'_>, message: &Message<'_>) -> Result<Reply, ServiceError> {
    negotiate::check_json_body(message.headers)?;
    let json = context(ctx, message)?;
    let name = decode_table_name(message.body)?.filter(|name| !name.is_empty());
    let name = name.ok_or(ServiceError::PropertiesNeedValue)?;
    let name = TableName::parse(&name).map_err(|error| match error {
        TableNameError::Length => ServiceError::NewTableNameLength,
        TableNameError::Characters => ServiceError::NewTableNameCharacters,
        TableNameError::Reserved => ServiceError::NewTableNameReserved,
    })?;
    let table = ctx.service.create_table(&ctx.address.account, name).await?;
    let location = url::table_url(&ctx.address.base, table.name.as_str());
    let prefer = Prefer::from_headers(message.headers);
    let mut reply = Reply::json(if prefer == Some(Prefer::NoContent) { 204 } else { 201 });
    if let Some(prefer) = prefer {
        reply = reply.with_own(header_name::PREFERENCE_APPLIED, prefer.name());
    }
    reply = reply.with(header_name::LOCATION, &location);
    if prefer == Some(Prefer::NoContent) {
        return Ok(reply.with(header_name::DATA_SERVICE_ID, location));
    }
    let mut body = Vec::new();
    write_table(&mut body, &json, table.name.as_str());
    Ok(reply.body(json.metadata.content_type(), body))
}

pub(crate) fn query(ctx: &Context<'_>, message: &Message<'_>) -> Result<Reply, ServiceError> {
    let json = context(ctx, message)?;
    super::entities::check_options(message.query)?;
    let filter = message.query.get("$filter").map(Filter::parse).transpose()?.flatten();
    let rows_max = message.query.get("$top").map_or(Ok(PAGE_ROWS_MAX), parse_top)?;
    let from = message.query.get("NextTableName").map(token::decode_table).transpose()?;
    let query = TableQuery { filter: filter.as_ref(), from: from.as_deref(), rows_max };
    let page = ctx.service.query_tables(&ctx.address.account, query);
    let mut body = Vec::new();
    write_tables(&mut body, &json, page.tables.iter().map(|table| table.name.as_str()));
    let mut reply = Reply::json(200);
    if let Some(next) = page.next {
        let token = token::encode_table(&next.name.lower(), next.space.0);
        reply = reply.with(header_name::NEXT_TABLE_NAME, token);
    }
    Ok(reply.body(json.metadata.content_type(), body))
}

pub(crate) fn get(ctx: &Context<'_>, message: &Message<'_>, name: &str) -> Result<Reply, ServiceError> {
    let json = context(ctx, message)?;
    let table = ctx.table(name).map_err(|error| match error {
        ServiceError::TableNotFound => ServiceError::ResourceNotFound,
        error => error,
    })?;
    let mut body = Vec::new();
    write_table(&mut body, &json, table.name.as_str());
    Ok(Reply::json(200).body(json.metadata.content_type(), body))
}

pub(crate) async fn delete(ctx: &Context<'_>, name: &str) -> Result<Reply, ServiceError> {
    ctx.service.delete_table(&ctx.address.account, &table_name(name)?).await?;
    Ok(Reply::json(204))
}

fn context<'a>(ctx: &Context<'a>, message: &Message<'_>) -> Result<TablesContext<'a>, ServiceError> {
    let metadata = negotiate::metadata(message.query.get("$format"), message.headers)?;
    Ok(TablesContext { base: &ctx.address.base, account: &ctx.address.account, metadata })
}
