//! Service properties and statistics, and CORS preflight requests.

use super::Context;
use crate::head::Head;
use crate::header_lines::HeaderLines;
use crate::header_name;
use crate::headers::{Headers, text};
use crate::reply::Reply;
use crate::request::Message;
use partita_model::{CorsRule, ServiceError};
use partita_wire::cors;
use partita_wire::xml::{service_properties, stats};

pub(crate) fn get_properties(ctx: &Context<'_>) -> Reply {
    let properties = ctx.service.service_properties(&ctx.address.account);
    Reply::plain(200).body("application/xml", service_properties::print(&properties))
}

pub(crate) async fn set_properties(ctx: &Context<'_>, message: &Message<'_>) -> Result<Reply, ServiceError> {
    let update = service_properties::parse(message.body)?;
    ctx.service.update_service_properties(&ctx.address.account, |properties| update.clone().apply(properties)).await?;
    Ok(Reply::plain(202))
}

/// The secondary endpoint serves the same data, so it is in step as of now.
pub(crate) fn stats(ctx: &Context<'_>) -> Reply {
    Reply::plain(200).body("application/xml", stats::print(stats::GeoReplication::Live(ctx.now)))
}

/// Answers `OPTIONS`: may a page of this origin send such a request.
pub(crate) fn preflight(rules: &[CorsRule], headers: Headers<'_>) -> Result<Reply, ServiceError> {
    let text = |name| headers.bytes(name).and_then(text);
    let (Some(origin), Some(method)) = (text(header_name::ORIGIN), text(header_name::REQUEST_METHOD)) else {
        return Err(ServiceError::CorsHeaderMissing);
    };
    let asked = text(header_name::REQUEST_HEADERS).unwrap_or_default();
    let rule = cors::preflight(rules, origin, method, asked).ok_or(ServiceError::CorsPreflightFailure)?;
    let mut reply = Reply::plain(200);
    add_allowed_origin(rule, origin, &mut reply.headers);
    reply = reply.with(header_name::ALLOW_METHODS, method);
    if !asked.is_empty() {
        reply = reply.with(header_name::ALLOW_HEADERS, asked);
    }
    Ok(reply.with(header_name::MAX_AGE, rule.max_age_seconds.to_string()))
}

/// Adds what a page of another origin needs to read the answer to an actual request.
pub(crate) fn add_cors(rules: &[CorsRule], head: &Head<'_>, headers: &mut HeaderLines) {
    let Some(origin) = head.headers().bytes(header_name::ORIGIN).and_then(text) else {
        if head.method == "GET" && rules.iter().any(|rule| !rule.allows_any_origin()) {
            headers.add(header_name::VARY, "Origin");
        }
        return;
    };
    let Some(rule) = cors::matching(rules, origin, head.method) else { return };
    add_allowed_origin(rule, origin, headers);
    headers.add(header_name::VARY, "Origin");
    if !rule.exposed_headers.is_empty() {
        headers.add(header_name::EXPOSE_HEADERS, rule.exposed_headers.join(","));
    }
}

fn add_allowed_origin(rule: &CorsRule, origin: &str, headers: &mut HeaderLines) {
    if rule.allows_any_origin() {
        headers.add(header_name::ALLOW_ORIGIN, "*");
    } else {
        headers.add(header_name::ALLOW_ORIGIN, origin);
        headers.add(header_name::ALLOW_CREDENTIALS, "true");
    }
}
