//! Get and set the stored access policies of a table.

use super::{Context, table_name};
use crate::reply::Reply;
use crate::request::Message;
use partita_model::ServiceError;
use partita_wire::xml::access_policies;

pub(crate) fn get(ctx: &Context<'_>, table: &str) -> Result<Reply, ServiceError> {
    let table = ctx.table(table)?;
    Ok(Reply::plain(200).body("application/xml", access_policies::print(&table.access_policies)))
}

pub(crate) async fn set(ctx: &Context<'_>, message: &Message<'_>, table: &str) -> Result<Reply, ServiceError> {
    let name = table_name(table)?;
    ctx.table(table)?;
    let policies = access_policies::parse(message.body)?;
    ctx.service.set_access_policies(&ctx.address.account, &name, policies).await?;
    Ok(Reply::plain(204))
}
