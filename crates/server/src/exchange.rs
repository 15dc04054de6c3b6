//! One request and its response: the order in which things are checked, and what every response has.
//!
//! Head, address, operation, version, the gate, body, handler. Until the gate nothing is said of tables, names or bodies, and
//! the body is not read.

use crate::address::Address;
use crate::answer::Answer;
use crate::authorize::{Access, Gate};
use crate::body::Body;
use crate::bounds::Share;
use crate::handlers::{Context, access_policies, batch, changes, entities, service, tables};
use crate::head::Head;
use crate::header_name;
use crate::operation::{Operation, OperationName};
use crate::query_string::Query;
use crate::reply::{Failure, Form, Prefer, Reply};
use crate::request::{Message, Request, Target};
use crate::request_id::Id;
use crate::{State, accounts, body, host, negotiate};
use partita_auth::Caller;
use partita_model::limits::URL_BYTES_MAX;
use partita_model::{Layer, ServiceError, Ticks};
use partita_wire::entity_json::Metadata;
use std::net::IpAddr;
use std::time::{Instant, SystemTime};
use tracing::{Level, debug, enabled, error};

/// Where a client without credentials is told to get some.
const CHALLENGE: &str = "Bearer authorization_uri=https://login.microsoftonline.com/common/oauth2/authorize resource_id=https://storage.azure.com";

/// Most bytes of what a client sent in a line of a log.
const LOGGED_BYTES_MAX: usize = 500;

/// Where a request came from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer {
    pub(crate) address: IpAddr,
    pub(crate) https: bool,
}

/// One request on its way to its response.
struct Exchange<'s> {
    state: &'s State,
    peer: Peer,
    started: Instant,
    now: Ticks,
    request_id: Id,
    head: &'s Head<'s>,
    target: Result<Target, ServiceError>,
    operation: Result<Operation, ServiceError>,
}

/// Answers one request. Never fails: whatever goes wrong is an answer.
pub(crate) async fn respond(state: &State, head: &Head<'_>, body: &mut Body<'_>, peer: Peer) -> Answer {
    let exchange = Exchange::begin(state, head, peer);
    let answered = match state.places.take() {
        Some(_place) => exchange.run(body).await,
        None => Err(ServiceError::ServerBusy),
    };
    let answer = match answered {
        Ok(reply) => exchange.finish(reply, None),
        Err(error) => exchange.finish(exchange.fail(&error), Some(&error)),
    };
    exchange.record(answer.status);
    answer
}

impl<'s> Exchange<'s> {
    /// Reads the head: where the request was sent and what it asks for, if that can be understood.
    fn begin(state: &'s State, head: &'s Head<'s>, peer: Peer) -> Exchange<'s> {
        let target = read_target(state, head, peer.https);
        let operation = match &target {
            Ok(Target { query, address }) => Request { head, query, address }.operation(),
            Err(error) => Err(error.clone()),
        };
        Exchange {
            state,
            peer,
            started: Instant::now(),
            now: Ticks::from_system_time(SystemTime::now()),
            request_id: state.ids.next(),
            head,
            target,
            operation,
        }
    }

    fn request(&self) -> Result<Request<'_>, ServiceError> {
        match &self.target {
            Ok(Target { query, address }) => Ok(Request { head: self.head, query, address }),
            Err(error) => Err(error.clone()),
        }
    }

    async fn run(&self, body: &mut Body<'_>) -> Result<Reply, ServiceError> {
        if self.head.method == "OPTIONS" {
            return self.preflight();
        }
        let (request, operation, access) = match self.admit() {
            Ok(admitted) => admitted,
            Err(error) => {
                body::drain(body).await;
                return Err(error);
            }
        };
        let deadline = self.started + request.timeout()?;
        let body = body::read(&self.state.bodies, body, deadline).await?;
        // The answer to a change tells what the body said, and once the change is made it must be sent.
        let writes = operation.writes() || *operation == Operation::Batch;
        let share = match writes {
            true => Some(Share::of(&self.state.responses, body.bytes.len()).ok_or(ServiceError::ServerBusy)?),
            false => None,
        };
        let message = Message { operation, query: request.query, headers: self.head.headers(), body: &body.bytes };
        let ctx = Context {
            service: &self.state.service,
            metrics: &self.state.metrics,
            ids: &self.state.ids,
            responses: &self.state.responses,
            address: request.address,
            access: &access,
            request_id: self.request_id.as_str(),
            now: self.now,
            deadline,
            plan_header: self.state.config.plan_header,
        };
        let handled = tokio::time::timeout_at(deadline.into(), self.dispatch(&ctx, &message)).await;
        let mut reply = handled.unwrap_or(Err(ServiceError::OperationTimedOut))?;
        reply.share = match reply.share.or(share) {
            Some(mut share) => {
                share.grow_by_force(reply.body.len());
                Some(share)
            }
            None => Some(Share::of(&self.state.responses, reply.body.len()).ok_or(ServiceError::ServerBusy)?),
        };
        Ok(reply)
    }

    /// Handles a message. Where other nodes share the store, a table that was not found is looked for again before the client
    /// is told so: nothing was changed by then. A table that is found now may be another than the one whose policies let the
    /// caller pass, so the caller is checked again.
    async fn dispatch(&self, ctx: &Context<'_>, message: &Message<'_>) -> Result<Reply, ServiceError> {
        let known = ctx.service.catalogue_version();
        let reply = handle(ctx, message).await;
        if misses_table(message.operation, &reply) && Box::pin(ctx.service.catalogue_has_changed(known)).await {
            return Box::pin(self.handle_again(ctx, message)).await;
        }
        reply
    }

    async fn handle_again(&self, ctx: &Context<'_>, message: &Message<'_>) -> Result<Reply, ServiceError> {
        let (_, _, access) = self.admit()?;
        handle(&Context { access: &access, ..*ctx }, message).await
    }

    /// Answers the question of a browser, which has no credentials.
    fn preflight(&self) -> Result<Reply, ServiceError> {
        let account = &self.request()?.address.account;
        self.state.accounts.keys(account).ok_or(ServiceError::AccountNotFound)?;
        service::preflight(&self.state.service.service_properties(account).cors, self.head.headers())
    }

    /// Everything up to and with the gate: what is asked for, and what the caller may do.
    fn admit(&self) -> Result<(Request<'_>, &Operation, Access), ServiceError> {
        let request = self.request()?;
        let operation = self.operation.as_ref().map_err(ServiceError::clone)?;
        request.check()?;
        let gate = Gate {
            accounts: &self.state.accounts,
            service: &self.state.service,
            clock_skew: self.state.config.clock_skew,
            guards_development_key: self.state.config.guards_development_key(),
            caller: Caller { now: self.now, https: self.peer.https, address: self.peer.address },
        };
        let access = gate.check(&request, operation)?;
        if request.address.secondary && operation.writes() {
            return Err(ServiceError::SecondaryWrite);
        }
        Ok((request, operation, access))
    }

    fn fail(&self, error: &ServiceError) -> Reply {
        let headers = self.head.headers();
        let xml_operation = self.operation.as_ref().is_ok_and(Operation::is_xml);
        let form = match error {
            ServiceError::AtomFormatNotSupported | ServiceError::InvalidQueryParameterValue { .. } => Form::Xml,
            _ if error.layer() == Layer::Front && !negotiate::prefers_json(headers) => Form::Xml,
            _ if error.layer() != Layer::Front && xml_operation => Form::Xml,
            _ => {
                let format = self.target.as_ref().ok().and_then(|target| target.query.get("$format"));
                Form::Json(negotiate::metadata(format, headers).unwrap_or(Metadata::Minimal))
            }
        };
        let prefer = match self.operation {
            Ok(Operation::Batch) => None,
            _ => Prefer::from_headers(headers),
        };
        let failure = Failure { error, index: None, prefer, request_id: self.request_id.as_str(), time: self.now };
        let reply = failure.render(form).with(header_name::ERROR_CODE, error.code());
        if error.status() == 401 { reply.with_own(header_name::WWW_AUTHENTICATE, CHALLENGE) } else { reply }
    }

    /// Adds what every response has. Those of the front end say nothing of the service behind it.
    fn finish(&self, reply: Reply, error: Option<&ServiceError>) -> Answer {
        let front = error.is_some_and(|error| error.layer() == Layer::Front);
        let server = if front { "Microsoft-HTTPAPI/2.0" } else { "Windows-Azure-Table/1.0 Microsoft-HTTPAPI/2.0" };
        let Reply { status, mut headers, body, share, .. } = reply;
        headers.add(header_name::REQUEST_ID, self.request_id.as_str());
        headers.add_own(header_name::SERVER, server);
        if let (Ok(request), false) = (self.request(), front) {
            let asked = self.head.headers();
            let given_version = || request.given_version().map(str::as_bytes);
            if let Some(version) = asked.bytes(header_name::VERSION).or_else(given_version) {
                headers.add(header_name::VERSION, version);
            }
            if let Some(id) = asked.bytes(header_name::CLIENT_REQUEST_ID) {
                headers.add(header_name::CLIENT_REQUEST_ID, id);
            }
            if self.operation.is_ok() {
                let rules = &self.state.service.service_properties(&request.address.account).cors;
                if !rules.is_empty() {
                    service::add_cors(rules, self.head, &mut headers);
                }
            }
        }
        Answer { status, headers, body, share }
    }

    /// Counts and logs what came of it.
    fn record(&self, status: u16) {
        let name = match (&self.operation, self.head.method) {
            (Ok(operation), _) => operation.name(),
            (Err(_), "OPTIONS") => OperationName::PreflightTableRequest,
            (Err(_), _) => OperationName::Unknown,
        };
        let (request_id, took) = (self.request_id.as_str(), self.started.elapsed());
        self.state.metrics.request(name, status, took);
        // It is what the client wrote, in any characters. What no account can be called is not named.
        let account = self.target.as_ref().map_or("", |target| target.address.account.as_str());
        let account = if accounts::is_name(account) { account } else { "" };
        let (operation, peer) = (name.text(), self.peer.address);
        if status >= 500 && status != 501 {
            error!(request_id, account, operation, status, ?took, %peer, "request failed");
        } else if enabled!(Level::DEBUG) {
            let path = loggable(self.head.path);
            debug!(request_id, account, operation, status, ?took, %peer, path, "request");
        }
    }
}

/// A path without the query that a client may have escaped into it, since there could be a signature in it, and no longer
/// than a line of a log should be.
fn loggable(path: &str) -> &str {
    let end = path.find("%3F").or_else(|| path.find("%3f")).unwrap_or(path.len());
    &path[..path.floor_char_boundary(end.min(LOGGED_BYTES_MAX))]
}

/// Whether an answer says that there is no such table.
fn misses_table(operation: &Operation, reply: &Result<Reply, ServiceError>) -> bool {
    match reply {
        Ok(reply) => reply.misses_table,
        Err(ServiceError::TableNotFound) => true,
        Err(ServiceError::ResourceNotFound) => matches!(operation, Operation::GetTable { .. }),
        Err(_) => false,
    }
}

async fn handle(ctx: &Context<'_>, message: &Message<'_>) -> Result<Reply, ServiceError> {
    // A future is as large as the largest it may await, and all of it is moved for every request. With all but one of them in
    // boxes that is less than 2 KB and not more than 3.
    match message.operation {
        Operation::QueryTables => tables::query(ctx, message),
        Operation::GetTable { table } => tables::get(ctx, message, table),
        Operation::CreateTable => Box::pin(tables::create(ctx, message)).await,
        Operation::DeleteTable { table } => Box::pin(tables::delete(ctx, table)).await,
        Operation::GetTableAcl { table } => access_policies::get(ctx, table),
        Operation::SetTableAcl { table } => Box::pin(access_policies::set(ctx, message, table)).await,
        Operation::GetServiceProperties => Ok(service::get_properties(ctx)),
        Operation::SetServiceProperties => Box::pin(service::set_properties(ctx, message)).await,
        Operation::GetServiceStats => Ok(service::stats(ctx)),
        Operation::QueryEntities { table } => Box::pin(entities::query(ctx, message, table)).await,
        Operation::GetEntity { table, keys } => entities::get(ctx, message, table, keys).await,
        Operation::Change { .. } => Box::pin(changes::run(ctx, message)).await,
        Operation::Batch => Box::pin(batch::run(ctx, message)).await,
    }
}

fn read_target(state: &State, head: &Head<'_>, https: bool) -> Result<Target, ServiceError> {
    if head.path.len() + 1 + head.query.len() > URL_BYTES_MAX {
        return Err(ServiceError::RequestUrlTooLong);
    }
    let host = host::of(head).unwrap_or("localhost");
    // Which of two hosts was meant is a guess that whoever stands in front of us may make otherwise.
    if head.headers().is_repeated(header_name::HOST) || !host::is_valid(host) {
        return Err(ServiceError::InvalidUri);
    }
    let host_style = state.config.host_style;
    let is_account = |name: &str| host_style && state.accounts.keys(name).is_some();
    let scheme = if https { "https" } else { "http" };
    let query = Query::parse(head.query).ok_or(ServiceError::InvalidUri)?;
    let address = Address::parse(scheme, host, head.path, is_account).ok_or(ServiceError::InvalidUri)?;
    Ok(Target { query, address })
}
