//! Service properties and statistics, and CORS preflight requests.

use super::Context;
use crate::head::Head;
use crate::header_name;
use crate::headers::{Headers, text};
use crate::reply::{Reply, ReplyHeaders};
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
    let mut reply = Reply { headers: allow_origin(rule, origin), ..Reply::plain(200) };
    reply = reply.with(header_name::ALLOW_METHODS, method.to_owned());
    if !asked.is_empty() {
        reply = reply.with(header_name::ALLOW_HEADERS, asked.to_owned());
    }
    Ok(reply.with(header_name::MAX_AGE, rule.max_age_seconds.to_string()))
}

/// What a page of another origin needs to read the answer to an actual request.
pub(crate) fn cors_headers(rules: &[CorsRule], head: &Head<'_>) -> ReplyHeaders {
    let vary = (header_name::VARY, "Origin".into());
    let Some(origin) = head.headers().bytes(header_name::ORIGIN).and_then(text) else {
        let specific = rules.iter().any(|rule| !rule.allows_any_origin());
        return if specific && head.method == "GET" { vec![vary] } else { Vec::new() };
    };
    let Some(rule) = cors::matching(rules, origin, head.method) else { return Vec::new() };
    let mut headers = allow_origin(rule, origin);
    headers.push(vary);
    if !rule.exposed_headers.is_empty() {
        headers.push((header_name::EXPOSE_HEADERS, rule.exposed_headers.join(",").into()));
    }
    headers
}

fn allow_origin(rule: &CorsRule, origin: &str) -> ReplyHeaders {
    if rule.allows_any_origin() {
        return vec![(header_name::ALLOW_ORIGIN, "*".into())];
    }
    let origin = origin.to_owned().into();
    vec![(header_name::ALLOW_ORIGIN, origin), (header_name::ALLOW_CREDENTIALS, "true".into())]
}
