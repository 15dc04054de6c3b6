//! One request and its response: the order in which things are checked, and what every response has.
//!
//! Head, address, operation, version, the gate, body, handler. Until the gate nothing is said of tables, names or bodies, and
//! the body is not read.

use crate::address::Address;
use crate::authorize::{Access, Gate};
use crate::handlers::{Context, access_policies, batch, changes, entities, service, tables};
use crate::operation::Operation;
use crate::query_string::Query;
use crate::reply::{Failure, Form, Prefer, Reply};
use crate::request::{Message, Request};
use crate::{State, negotiate};
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, header};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body as _, Incoming};
use partita_auth::Caller;
use partita_model::limits::{BODY_BYTES_MAX, URL_BYTES_MAX};
use partita_model::{Layer, ServiceError, Ticks};
use partita_wire::entity_json::Metadata;
use std::net::IpAddr;
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::SemaphorePermit;
use tracing::{debug, error};

/// How much of a refused body is read and thrown away, so that the client can read why before the connection closes.
const DRAIN_BYTES_MAX: usize = 4 * BODY_BYTES_MAX;
const DRAIN_TIME_MAX: Duration = Duration::from_secs(5);
const CHALLENGE: &str = "Bearer authorization_uri=https://login.microsoftonline.com/common/oauth2/authorize resource_id=https://storage.azure.com";

/// Where a request came from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer {
    pub(crate) address: IpAddr,
    pub(crate) https: bool,
}

/// What is known of a request when its response is written.
struct Exchange<'s> {
    state: &'s State,
    request_id: String,
    now: Ticks,
    request: Option<Request>,
    operation: Option<Operation>,
}

/// Answers one request. Never fails: whatever goes wrong is an answer.
pub(crate) async fn respond(state: &State, request: hyper::Request<Incoming>, peer: Peer) -> Response<Full<Bytes>> {
    let started = Instant::now();
    let (head, body) = request.into_parts();
    let now = Ticks::from_system_time(SystemTime::now());
    let mut exchange = Exchange { state, request_id: state.ids.next(), now, request: None, operation: None };
    let reply = match exchange.run(&head, body, peer, started).await {
        Ok(reply) => exchange.finish(reply, None),
        Err(error) => exchange.finish(exchange.fail(&error, &head.headers), Some(&error)),
    };
    let name = match (&exchange.operation, &head.method) {
        (Some(operation), _) => operation.name(),
        (None, &Method::OPTIONS) => "PreflightTableRequest",
        (None, _) => "Unknown",
    };
    let status = reply.status().as_u16();
    state.metrics.request(name, status, started.elapsed());
    let (request_id, took) = (exchange.request_id.as_str(), started.elapsed());
    let account = exchange.request.as_ref().map_or("", |request| request.address.account.as_str());
    if status >= 500 && status != 501 {
        error!(request_id, account, operation = name, status, ?took, peer = %peer.address, "request failed");
    } else {
        debug!(request_id, account, operation = name, status, ?took, peer = %peer.address, path = loggable(head.uri.path()), "request");
    }
    reply
}

impl Exchange<'_> {
    async fn run(
        &mut self,
        head: &http::request::Parts,
        body: Incoming,
        peer: Peer,
        started: Instant,
    ) -> Result<Reply, ServiceError> {
        match self.admit(head, peer) {
            Ok(None) => {
                let request = self.request.as_ref().ok_or(ServiceError::InvalidUri)?;
                let properties = self.state.service.service_properties(&request.address.account);
                service::preflight(&properties.cors, &head.headers)
            }
            Ok(Some(access)) => {
                let request = self.request.as_ref().ok_or(ServiceError::InvalidUri)?;
                let deadline = started + request.timeout()?;
                let body = read_body(self.state, body, deadline).await?;
                self.handle(&access, body.bytes.clone(), deadline).await
            }
            Err(error) => {
                drain(body).await;
                Err(error)
            }
        }
    }

    /// Everything up to and with the gate. `None` for a preflight, which has no gate.
    fn admit(&mut self, head: &http::request::Parts, peer: Peer) -> Result<Option<Access>, ServiceError> {
        let request = self.request.insert(read_head(self.state, head, peer.https)?);
        if head.method == Method::OPTIONS {
            if self.state.accounts.keys(&request.address.account).is_none() {
                return Err(ServiceError::AccountNotFound);
            }
            return Ok(None);
        }
        let operation = self.operation.insert(request.operation()?);
        request.check()?;
        let gate = Gate {
            accounts: &self.state.accounts,
            service: &self.state.service,
            clock_skew: self.state.config.clock_skew,
            caller: Caller { now: self.now, https: peer.https, address: peer.address },
        };
        let access = gate.check(request, operation)?;
        if request.address.secondary && operation.writes() {
            return Err(ServiceError::SecondaryWrite);
        }
        Ok(Some(access))
    }

    async fn handle(&self, access: &Access, body: Bytes, deadline: Instant) -> Result<Reply, ServiceError> {
        let (Some(request), Some(operation)) = (&self.request, &self.operation) else {
            return Err(ServiceError::InvalidUri);
        };
        let ctx = Context {
            service: &self.state.service,
            metrics: &self.state.metrics,
            ids: &self.state.ids,
            address: &request.address,
            access,
            request_id: &self.request_id,
            now: self.now,
            deadline,
            plan_header: self.state.config.plan_header,
        };
        let (operation, query, headers) = (operation.clone(), request.query.clone(), request.headers.clone());
        let message = Message { operation, query, headers, body };
        let handled = dispatch(&ctx, &message);
        tokio::time::timeout_at(deadline.into(), handled).await.unwrap_or(Err(ServiceError::OperationTimedOut))
    }

    fn fail(&self, error: &ServiceError, headers: &HeaderMap) -> Reply {
        let xml_operation = self.operation.as_ref().is_some_and(Operation::is_xml);
        let form = match error {
            ServiceError::AtomFormatNotSupported | ServiceError::InvalidQueryParameterValue { .. } => Form::Xml,
            _ if error.layer() == Layer::Front && !negotiate::prefers_json(headers) => Form::Xml,
            _ if error.layer() != Layer::Front && xml_operation => Form::Xml,
            _ => {
                let format = self.request.as_ref().and_then(|request| request.query.get("$format"));
                Form::Json(negotiate::metadata(format, headers).unwrap_or(Metadata::Minimal))
            }
        };
        let prefer = match self.operation {
            Some(Operation::Batch) => None,
            _ => Prefer::from_headers(headers),
        };
        let failure = Failure { error, index: None, prefer, request_id: &self.request_id, time: self.now };
        let reply = failure.render(form).with("x-ms-error-code", error.code());
        if error.status() == 401 { reply.with("WWW-Authenticate", CHALLENGE) } else { reply }
    }

    /// Adds what every response has. Those of the front end say nothing of the service behind it.
    fn finish(&self, mut reply: Reply, error: Option<&ServiceError>) -> Response<Full<Bytes>> {
        let front = error.is_some_and(|error| error.layer() == Layer::Front);
        reply = reply.with("x-ms-request-id", self.request_id.as_str());
        let server = if front { "Microsoft-HTTPAPI/2.0" } else { "Windows-Azure-Table/1.0 Microsoft-HTTPAPI/2.0" };
        reply = reply.with("Server", server);
        if let (Some(request), false) = (&self.request, front) {
            if let Some(version) = request.given_version() {
                reply = reply.with("x-ms-version", version);
            }
            if let Some(id) = request.headers.get("x-ms-client-request-id").and_then(|id| id.to_str().ok()) {
                reply = reply.with("x-ms-client-request-id", id);
            }
            if self.operation.is_some() {
                let rules = &self.state.service.service_properties(&request.address.account).cors;
                if !rules.is_empty() {
                    reply = service::add_cors(reply, rules, &request.headers, &request.method);
                }
            }
        }
        let mut response = Response::new(Full::new(Bytes::from(reply.body)));
        *response.status_mut() = http::StatusCode::from_u16(reply.status).expect("the table has only real statuses");
        for (name, value) in reply.headers {
            // Whatever of a request is quoted here was a header or a part of a URL, so this does not fail; if it ever did,
            // a missing header is better than a lost answer.
            let name = HeaderName::from_bytes(name.as_bytes());
            if let (Ok(name), Ok(value)) = (name, HeaderValue::from_str(&value)) {
                response.headers_mut().append(name, value);
            }
        }
        response
    }
}

/// A path without the query that a client may have escaped into it: there could be a signature in it.
fn loggable(path: &str) -> &str {
    let end = path.find("%3F").or_else(|| path.find("%3f")).unwrap_or(path.len());
    &path[..end]
}

async fn dispatch(ctx: &Context<'_>, message: &Message) -> Result<Reply, ServiceError> {
    match &message.operation {
        Operation::QueryTables => tables::query(ctx, message),
        Operation::GetTable { table } => tables::get(ctx, message, table),
        Operation::CreateTable => tables::create(ctx, message).await,
        Operation::DeleteTable { table } => tables::delete(ctx, table).await,
        Operation::GetTableAcl { table } => access_policies::get(ctx, table),
        Operation::SetTableAcl { table } => access_policies::set(ctx, message, table).await,
        Operation::GetServiceProperties => Ok(service::get_properties(ctx)),
        Operation::SetServiceProperties => service::set_properties(ctx, message).await,
        Operation::GetServiceStats => Ok(service::stats(ctx)),
        Operation::QueryEntities { table } => entities::query(ctx, message, table).await,
        Operation::GetEntity { table, keys } => entities::get(ctx, message, table, keys).await,
        Operation::Change { .. } => {
            let draft = changes::draft(ctx, message)?;
            let mut replies = changes::apply(ctx, vec![draft]).await.map_err(|refused| refused.error)?;
            Ok(replies.remove(0))
        }
        Operation::Batch => batch::run(ctx, message).await,
    }
}

fn read_head(state: &State, head: &http::request::Parts, https: bool) -> Result<Request, ServiceError> {
    if head.uri.path_and_query().map_or(0, |target| target.as_str().len()) > URL_BYTES_MAX {
        return Err(ServiceError::RequestUrlTooLong);
    }
    let host = head.headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let host = head.uri.authority().map(|authority| authority.as_str()).or(host).unwrap_or("localhost");
    let host_style = state.config.host_style;
    let is_account = |name: &str| host_style && state.accounts.keys(name).is_some();
    let scheme = if https { "https" } else { "http" };
    let path = head.uri.path();
    Ok(Request {
        method: head.method.as_str().to_owned(),
        path: path.to_owned(),
        query: Query::parse(head.uri.query().unwrap_or_default()).ok_or(ServiceError::InvalidUri)?,
        headers: head.headers.clone(),
        address: Address::parse(scheme, host, path, is_account).ok_or(ServiceError::InvalidUri)?,
    })
}

/// A body, and the part it takes of the memory for all bodies.
struct Body<'s> {
    bytes: Bytes,
    _memory: Option<SemaphorePermit<'s>>,
}

/// Reads a body within its own bound, that of all bodies together, and the time of its request.
async fn read_body(state: &State, mut incoming: Incoming, deadline: Instant) -> Result<Body<'_>, ServiceError> {
    let mut bytes = BytesMut::new();
    let mut memory: Option<SemaphorePermit<'_>> = None;
    let read = async {
        while bytes.len() + usize::try_from(incoming.size_hint().lower()).unwrap_or(usize::MAX) <= BODY_BYTES_MAX {
            let data = match incoming.frame().await {
                None => return Ok(()),
                Some(Err(_)) => return Err(ServiceError::RequestIncomplete),
                Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
            };
            // Taken as it arrives, so that a client that announces much and sends little holds little.
            let more = state.bodies.acquire_many(data.len() as u32);
            let more = tokio::time::timeout_at(deadline.into(), more).await.map_err(|_| ServiceError::ServerBusy)?;
            let more = more.map_err(|_| ServiceError::ServerBusy)?;
            match &mut memory {
                Some(memory) => memory.merge(more),
                None => memory = Some(more),
            }
            bytes.extend_from_slice(&data);
        }
        Err(ServiceError::RequestBodyTooLarge)
    };
    let read = tokio::time::timeout_at(deadline.into(), read).await;
    match read.unwrap_or(Err(ServiceError::RequestTimedOut)) {
        Ok(()) => Ok(Body { bytes: bytes.freeze(), _memory: memory }),
        Err(ServiceError::RequestBodyTooLarge) => {
            drop((bytes, memory));
            drain(incoming).await;
            Err(ServiceError::RequestBodyTooLarge)
        }
        Err(error) => Err(error),
    }
}

/// Reads what is left of a body, within bounds.
async fn drain(mut body: Incoming) {
    let mut left = DRAIN_BYTES_MAX;
    let read = async {
        while let Some(Ok(frame)) = body.frame().await {
            left = left.saturating_sub(frame.data_ref().map_or(0, Bytes::len));
            if left == 0 {
                break;
            }
        }
    };
    let _ = tokio::time::timeout(DRAIN_TIME_MAX, read).await;
}
