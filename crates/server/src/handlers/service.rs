//! Service properties and statistics, and CORS preflight requests.

use super::Context;
use crate::reply::Reply;
use crate::request::Message;
use http::HeaderMap;
use partita_model::{CorsRule, ServiceError};
use partita_wire::cors;
use partita_wire::xml::{service_properties, stats};

pub(crate) fn get_properties(ctx: &Context<'_>) -> Reply {
    let properties = ctx.service.service_properties(&ctx.address.account);
    Reply::plain(200).body("application/xml", service_properties::print(&properties))
}

pub(crate) async fn set_properties(ctx: &Context<'_>, message: &Message) -> Result<Reply, ServiceError> {
    let update = service_properties::parse(&message.body)?;
    ctx.service.update_service_properties(&ctx.address.account, |properties| update.apply(properties)).await?;
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
    let mut reply = allow_origin(Reply::plain(200), rule, origin).with("Access-Control-Allow-Methods", method);
    if !asked.is_empty() {
        reply = reply.with("Access-Control-Allow-Headers", asked);
    }
    Ok(reply.with("Access-Control-Max-Age", rule.max_age_seconds.to_string()))
}

/// Adds what a page of another origin needs to read the answer to an actual request.
pub(crate) fn add_cors(reply: Reply, rules: &[CorsRule], headers: &HeaderMap, method: &str) -> Reply {
    let origin = headers.get("origin").and_then(|value| value.to_str().ok());
    let Some(origin) = origin else {
        let specific = rules.iter().any(|rule| !rule.allows_any_origin());
        return if specific && method == "GET" { reply.with("Vary", "Origin") } else { reply };
    };
    match cors::matching(rules, origin, method) {
        None => reply,
        Some(rule) => {
            let reply = allow_origin(reply, rule, origin).with("Vary", "Origin");
            match rule.exposed_headers.as_slice() {
                [] => reply,
                exposed => reply.with("Access-Control-Expose-Headers", exposed.join(",")),
            }
        }
    }
}

fn allow_origin(reply: Reply, rule: &CorsRule, origin: &str) -> Reply {
    if rule.allows_any_origin() {
        return reply.with("Access-Control-Allow-Origin", "*");
    }
    reply.with("Access-Control-Allow-Origin", origin).with("Access-Control-Allow-Credentials", "true")
}
