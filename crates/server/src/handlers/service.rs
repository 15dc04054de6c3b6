//! Service properties and statistics, and CORS preflight requests.

use super::Context;
use crate::header_name;
use crate::reply::{Reply, ReplyHeaders};
use crate::request::Message;
use http::request::Parts;
use http::{HeaderMap, Method, header};
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
pub(crate) fn preflight(rules: &[CorsRule], headers: &HeaderMap) -> Result<Reply, ServiceError> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let (Some(origin), Some(method)) = (text("origin"), text("access-control-request-method")) else {
        return Err(ServiceError::CorsHeaderMissing);
    };
    let asked = text("access-control-request-headers").unwrap_or_default();
    let rule = cors::preflight(rules, origin, method, asked).ok_or(ServiceError::CorsPreflightFailure)?;
    let mut reply = Reply { headers: allow_origin(rule, origin), ..Reply::plain(200) };
    reply = reply.with(&header_name::ALLOW_METHODS, method.to_owned());
    if !asked.is_empty() {
        reply = reply.with(&header_name::ALLOW_HEADERS, asked.to_owned());
    }
    Ok(reply.with(&header_name::MAX_AGE, rule.max_age_seconds.to_string()))
}

/// What a page of another origin needs to read the answer to an actual request.
pub(crate) fn cors_headers(rules: &[CorsRule], request: &Parts) -> ReplyHeaders {
    let vary = (&header_name::VARY, "Origin".into());
    let Some(origin) = request.headers.get(header::ORIGIN).and_then(|value| value.to_str().ok()) else {
        let specific = rules.iter().any(|rule| !rule.allows_any_origin());
        return if specific && request.method == Method::GET { vec![vary] } else { Vec::new() };
    };
    let Some(rule) = cors::matching(rules, origin, request.method.as_str()) else { return Vec::new() };
    let mut headers = allow_origin(rule, origin);
    headers.push(vary);
    if !rule.exposed_headers.is_empty() {
        headers.push((&header_name::EXPOSE_HEADERS, rule.exposed_headers.join(",").into()));
    }
    headers
}

fn allow_origin(rule: &CorsRule, origin: &str) -> ReplyHeaders {
    if rule.allows_any_origin() {
        return vec![(&header_name::ALLOW_ORIGIN, "*".into())];
    }
    let origin = origin.to_owned().into();
    vec![(&header_name::ALLOW_ORIGIN, origin), (&header_name::ALLOW_CREDENTIALS, "true".into())]
}
