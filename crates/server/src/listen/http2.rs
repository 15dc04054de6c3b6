//! Connections of HTTP/2: hyper's, made to look like the others.

use super::patience::Patience;
use super::stop::Stop;
use super::{Handler, STREAMS_MAX, Stream};
use crate::answer::Answer;
use crate::body::Body;
use crate::bounds::Held;
use crate::head::Head;
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use httparse::Header;
use hyper::body::{Body as _, Incoming};
use hyper::server::conn::http2::Builder;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use partita_model::limits::HEADER_BYTES_MAX;
use std::convert::Infallible;
use std::io;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Answers requests, many at a time, for as long as there are any.
pub(super) async fn serve<S: Stream + 'static, H: Handler>(
    stream: Patience<S>,
    handler: Arc<H>,
    peer: IpAddr,
    keep_alive: Duration,
    stop: Stop,
) -> hyper::Result<()> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .keep_alive_interval(keep_alive)
        .max_header_list_size(HEADER_BYTES_MAX as u32)
        .max_concurrent_streams(STREAMS_MAX);
    let head_is_complete = stream.head().is_complete();
    let service = service_fn(move |request| {
        head_is_complete.store(true, Ordering::Relaxed);
        let handler = handler.clone();
        async move { Ok::<_, Infallible>(answer(&*handler, request, peer).await) }
    });
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    tokio::select! {
        ended = &mut connection => return ended,
        () = stop.wait() => connection.as_mut().graceful_shutdown(),
    }
    connection.await
}

async fn answer<H: Handler>(handler: &H, request: Request<Incoming>, peer: IpAddr) -> Response<Full<Bytes>> {
    let (parts, body) = request.into_parts();
    let fields = parts.headers.iter().map(|(name, value)| Header { name: name.as_str(), value: value.as_bytes() });
    let head = Head {
        method: parts.method.as_str(),
        authority: parts.uri.authority().map(|authority| authority.as_str()),
        path: parts.uri.path(),
        query: parts.uri.query().unwrap_or_default(),
        fields: fields.collect(),
    };
    response(handler.answer(&head, &mut Body::Http2(Http2Body(body)), peer).await)
}

fn response(answer: Answer) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = StatusCode::from_u16(answer.status).expect("the table has only real statuses");
    for (name, value) in answer.headers.iter() {
        if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name), HeaderValue::from_bytes(value)) {
            response.headers_mut().append(name, value);
        }
    }
    *response.body_mut() = Full::new(match answer.share {
        Some(share) if !answer.body.is_empty() => Bytes::from_owner(Held { body: answer.body, _share: share }),
        _ => Bytes::from(answer.body),
    });
    response
}

/// The body of a request of HTTP/2.
pub(crate) struct Http2Body(Incoming);

impl Http2Body {
    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_end_stream()
    }

    /// How many bytes will come at least, as far as is known.
    pub(crate) fn announced(&self) -> usize {
        usize::try_from(self.0.size_hint().lower()).unwrap_or(usize::MAX)
    }

    /// Waits for some of it and appends that; says how much it was, nothing at the end.
    pub(crate) async fn read(&mut self, bytes: &mut Vec<u8>) -> io::Result<usize> {
        while let Some(frame) = self.0.frame().await {
            if let Ok(data) = frame.map_err(io::Error::other)?.into_data()
                && !data.is_empty()
            {
                bytes.extend_from_slice(&data);
                return Ok(data.len());
            }
        }
        Ok(0)
    }
}
