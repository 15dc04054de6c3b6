//! The admin port: is it alive, is it ready, what are its figures. Without credentials, so on loopback by default.

use crate::answer::Answer;
use crate::head::Head;
use crate::{State, host};
use std::net::IpAddr;

/// Answers a request that came to `listens`. On loopback a browser is the only way in for strangers, under a name of theirs;
/// elsewhere the machine has names we do not know, and its figures are for whoever reaches the port.
pub(crate) async fn respond(state: &State, head: &Head<'_>, listens: IpAddr) -> Answer {
    let (status, content_type, body) = match (head.method, head.path) {
        _ if listens.is_loopback() && host::of(head).is_some_and(host::is_foreign) => {
            (421, "text/plain", "not by this name: use an address or localhost\n".to_owned())
        }
        ("GET", "/livez") => (200, "text/plain", "alive\n".to_owned()),
        ("GET", "/readyz") => match state.service.store().ready().await {
            Ok(()) => (200, "text/plain", "ready\n".to_owned()),
            Err(why) => (503, "text/plain", format!("{why}\n")),
        },
        ("GET", "/metrics") => {
            let content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            (200, content_type, state.metrics.encode())
        }
        ("GET", _) => (404, "text/plain", "try /livez, /readyz or /metrics\n".to_owned()),
        _ => (405, "text/plain", "only GET\n".to_owned()),
    };
    Answer::text(status, content_type, body)
}
