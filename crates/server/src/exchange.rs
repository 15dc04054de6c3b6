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
use crate::{State, body, negotiate};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, header};
use http_body_util::Full;
use hyper::body::Incoming;
use partita_auth::Caller;
use partita_model::limits::URL_BYTES_MAX;
use partita_model::{Layer, ServiceError, Ticks};
use partita_wire::entity_json::Metadata;
use std::net::IpAddr;
use std::time::{Duration, Instant, SystemTime};
use tracing::{debug, error};

/// Where a client without credentials is told to get some.
const CHALLENGE: &str = "Bearer authorization_uri=https://login.microsoftonline.com/common/oauth2/authorize resource_id=https://storage.azure.com";

/// Where a request came from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer {
    pub(crate) address: IpAddr,
    pub(crate) https: bool,
}

/// One request on its way to its response.
struct Exchange<'s> {
    state: &'s State,
    started: Instant,
    now: Ticks,
    request_id: String,
    /// `None` as long as the head was not understood.
    request: Option<Request>,
    /// `None` as long as it is not known what is asked for, and for a preflight.
    operation: Option<Operation>,
}

/// Answers one request. Never fails: whatever goes wrong is an answer.
pub(crate) async fn respond(state: &State, request: hyper::Request<Incoming>, peer: Peer) -> Response<Full<Bytes>> {
    let (head, body) = request.into_parts();
    let mut exchange = Exchange {
        state,
        started: Instant::now(),
        now: Ticks::from_system_time(SystemTime::now()),
        request_id: state.ids.next(),
        request: None,
        operation: None,
    };
    let response = match exchange.run(&head, body, peer).await {
        Ok(reply) => exchange.finish(reply, None),
        Err(error) => exchange.finish(exchange.fail(&error, &head.headers), Some(&error)),
    };
    exchange.record(&head, peer, response.status().as_u16());
    response
}

impl Exchange<'_> {
    async fn run(&mut self, head: &http::request::Parts, body: Incoming, peer: Peer) -> Result<Reply, ServiceError> {
        match self.admit(head, peer) {
            Err(error) => {
                body::drain(body).await;
                Err(error)
            }
            Ok(Admitted::Preflight { account }) => {
                service::preflight(&self.state.service.service_properties(&account).cors, &head.headers)
            }
            Ok(Admitted::Operation { message, address, access, timeout }) => {
                let deadline = self.started + timeout;
                let body = body::read(&self.state.bodies, body, deadline).await?;
                let message = Message { body: body.bytes.clone(), ..message };
                let ctx = Context {
                    service: &self.state.service,
                    metrics: &self.state.metrics,
                    ids: &self.state.ids,
                    address: &address,
                    access: &access,
                    request_id: &self.request_id,
                    now: self.now,
                    deadline,
                    plan_header: self.state.config.plan_header,
                };
                let handled = tokio::time::timeout_at(deadline.into(), dispatch(&ctx, &message)).await;
                handled.unwrap_or(Err(ServiceError::OperationTimedOut))
            }
        }
    }

    /// Everything up to and with the gate.
    fn admit(&mut self, head: &http::request::Parts, peer: Peer) -> Result<Admitted, ServiceError> {
        let request = self.request.insert(read_head(self.state, head, peer.https)?);
        let account = &request.address.account;
        if head.method == Method::OPTIONS {
            self.state.accounts.keys(account).ok_or(ServiceError::AccountNotFound)?;
            return Ok(Admitted::Preflight { account: account.clone() });
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
        let (query, headers) = (request.query.clone(), request.headers.clone());
        let message = Message { operation: operation.clone(), query, headers, body: Bytes::new() };
        Ok(Admitted::Operation { message, address: request.address.clone(), access, timeout: request.timeout()? })
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

    /// Counts and logs what came of it.
    fn record(&self, head: &http::request::Parts, peer: Peer, status: u16) {
        let name = match (&self.operation, &head.method) {
            (Some(operation), _) => operation.name(),
            (None, &Method::OPTIONS) => "PreflightTableRequest",
            (None, _) => "Unknown",
        };
        let (request_id, took) = (self.request_id.as_str(), self.started.elapsed());
        self.state.metrics.request(name, status, took);
        let account = self.request.as_ref().map_or("", |request| request.address.account.as_str());
        if status >= 500 && status != 501 {
            error!(request_id, account, operation = name, status, ?took, peer = %peer.address, "request failed");
        } else {
            let path = loggable(head.uri.path());
            debug!(request_id, account, operation = name, status, ?took, peer = %peer.address, path, "request");
        }
    }
}

/// What may go on.
#[allow(clippy::large_enum_variant, reason = "there is one per request, and it is taken apart at once")]
enum Admitted {
    /// A question of a browser, which has no credentials.
    Preflight { account: String },
    /// A request of somebody who may make it; its body is still to be read.
    Operation { message: Message, address: Address, access: Access, timeout: Duration },
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
