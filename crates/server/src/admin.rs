//! The admin port: is it alive, is it ready, what are its figures. Without credentials, so on loopback by default.

use crate::{State, host};
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::Incoming;
use std::net::IpAddr;

/// Answers a request that came to `listens`. On loopback a browser is the only way in for strangers, under a name of theirs;
/// elsewhere the machine has names we do not know, and its figures are for whoever reaches the port.
pub(crate) async fn respond(state: &State, request: Request<Incoming>, listens: IpAddr) -> Response<Full<Bytes>> {
    let (head, _) = request.into_parts();
    let (status, content_type, body) = match (&head.method, head.uri.path()) {
        _ if listens.is_loopback() && host::of(&head).is_some_and(host::is_foreign) => (
            StatusCode::MISDIRECTED_REQUEST,
            "text/plain",
            "not by this name: use an address or localhost\n".to_owned(),
        ),
        (&Method::GET, "/livez") => (StatusCode::OK, "text/plain", "alive\n".to_owned()),
        (&Method::GET, "/readyz") => match state.service.store().ready().await {
            Ok(()) => (StatusCode::OK, "text/plain", "ready\n".to_owned()),
            Err(why) => (StatusCode::SERVICE_UNAVAILABLE, "text/plain", format!("{why}\n")),
        },
        (&Method::GET, "/metrics") => {
            let content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            (StatusCode::OK, content_type, state.metrics.encode())
        }
        (&Method::GET, _) => (StatusCode::NOT_FOUND, "text/plain", "try /livez, /readyz or /metrics\n".to_owned()),
        _ => (StatusCode::METHOD_NOT_ALLOWED, "text/plain", "only GET\n".to_owned()),
    };
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(content_type));
    response
}
