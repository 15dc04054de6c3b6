//! A client of the Table protocol: one connection, requests one by one, tried again while that may help.

mod batch;
mod connect;

use crate::connection::{Connection, Credential};
use crate::{Entity, Error, Result, json_line};
pub(crate) use batch::PART_BYTES_MAX;
use batch::{change_set, failure_in};
use bytes::Bytes;
use connect::{chain, connect, tls};
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::SendRequest;
use partita_auth::{Scheme, TableRequest, sign, string_to_sign};
use partita_model::{ServiceProperties, StoredAccessPolicy, Ticks};
use partita_wire::url::entity_path;
use partita_wire::xml::{access_policies, service_properties};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};
use tokio_rustls::TlsConnector;

/// The service itself, among resources.
const SERVICE: &str = "restype=service";
/// The byte order mark.
const MARK: &[u8] = "\u{FEFF}".as_bytes();
const VERSION: &str = "2019-02-02";
/// With all that can be said of types: Azurite leaves out that of a Double otherwise.
const ACCEPT: &str = "application/json;odata=fullmetadata";
const ATTEMPTS_MAX: u32 = 9;
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(10);
/// The service itself gives up after thirty seconds.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(60);
/// Far more than a page has.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// What becomes of an entity that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It is new; an error if there is one of its keys.
    Insert,
    /// It takes the place of one of its keys.
    Replace,
    /// Its properties join those of one of its keys.
    Merge,
    /// It is deleted; an error if there is none of its keys.
    Delete,
}

/// Where a query goes on.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, Deserialize)]
pub struct Continuation {
    /// `NextPartitionKey`.
    pub partition: String,
    /// `NextRowKey`, which some services leave out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub row: Option<String>,
}

/// A page of a query.
#[derive(Clone, Debug)]
pub struct Answered {
    /// Its entities.
    pub entities: Vec<Entity>,
    /// Where the next page begins, if there is one.
    pub next: Option<Continuation>,
}

/// A client with a connection of its own.
pub struct Client {
    connection: Arc<Connection>,
    tls: Option<TlsConnector>,
    sender: Option<SendRequest<Full<Bytes>>>,
    /// Whether the last request was sent before without an answer that says what became of it.
    in_doubt: bool,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("connection", &self.connection).finish_non_exhaustive()
    }
}

struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

impl Answer {
    fn header(&self, name: &str) -> Option<String> {
        self.headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
    }
}

struct Call<'a> {
    method: Method,
    /// Behind the path of the service.
    path: &'a str,
    query: String,
    /// What of the resource is asked for, if it is not the resource itself.
    comp: Option<&'static str>,
    content_type: &'static str,
    body: Bytes,
    /// Whether the answer need not say what was stored.
    is_brief: bool,
}

impl<'a> Call<'a> {
    fn get(path: &'a str, query: String) -> Call<'a> {
        Call { method: Method::GET, path, query, comp: None, content_type: "", body: Bytes::new(), is_brief: false }
    }

    fn post(path: &'a str, content_type: &'static str, body: impl Into<Bytes>) -> Call<'a> {
        Call { method: Method::POST, content_type, body: body.into(), is_brief: true, ..Call::get(path, String::new()) }
    }
}

impl Client {
    /// A client that connects when it is first used.
    pub fn new(connection: Arc<Connection>) -> Result<Client> {
        let tls = connection.https.then(tls).transpose()?;
        Ok(Client { connection, tls, sender: None, in_doubt: false })
    }

    /// Reads a page of a table. `select` names properties, all if it is empty.
    pub async fn query(
        &mut self,
        table: &str,
        filter: Option<&str>,
        select: &[String],
        from: Option<&Continuation>,
    ) -> Result<Answered> {
        let mut query = Vec::new();
        let mut add = |name: &str, value: &str| query.push(format!("{name}={}", encode(value)));
        filter.into_iter().for_each(|filter| add("$filter", filter));
        if !select.is_empty() {
            add("$select", &select.join(","));
        }
        if let Some(from) = from {
            add("NextPartitionKey", &from.partition);
            from.row.iter().for_each(|row| add("NextRowKey", row));
        }
        let answer = self.call(&Call::get(&format!("/{table}()"), query.join("&"))).await?;
        let next = answer
            .header("x-ms-continuation-NextPartitionKey")
            .map(|partition| Continuation { partition, row: answer.header("x-ms-continuation-NextRowKey") });

        #[derive(Deserialize)]
        struct Collection<'a> {
            #[serde(borrow)]
            value: Vec<&'a RawValue>,
        }
        let body: Collection<'_> = serde_json::from_slice(&answer.body).map_err(|error| odd(error.to_string()))?;
        let entities = body.value.iter().map(|row| json_line::read(row.get().as_bytes()).map_err(odd));
        Ok(Answered { entities: entities.collect::<Result<_>>()?, next })
    }

    /// Reads one entity.
    pub async fn get(&mut self, table: &str, partition_key: &str, row_key: &str) -> Result<Option<Entity>> {
        let path = format!("/{}", entity_path(table, partition_key, row_key));
        match self.call(&Call::get(&path, String::new())).await {
            Ok(answer) => json_line::read(&answer.body).map(Some).map_err(Error::Unavailable),
            Err(Error::Refused { code, .. }) if code == "ResourceNotFound" => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The names of all tables.
    pub async fn tables(&mut self) -> Result<Vec<String>> {
        #[derive(Deserialize)]
        struct Collection {
            value: Vec<Table>,
        }
        #[derive(Deserialize)]
        struct Table {
            #[serde(rename = "TableName")]
            name: String,
        }
        let mut names = Vec::new();
        let mut next: Option<String> = None;
        loop {
            let query = next.map(|next| format!("NextTableName={}", encode(&next))).unwrap_or_default();
            let answer = self.call(&Call::get("/Tables", query)).await?;
            let page: Collection = serde_json::from_slice(&answer.body).map_err(|error| odd(error.to_string()))?;
            names.extend(page.value.into_iter().map(|table| table.name));
            next = answer.header("x-ms-continuation-NextTableName");
            if next.is_none() {
                return Ok(names);
            }
        }
    }

    /// The stored access policies of a table.
    pub async fn access_policies(&mut self, table: &str) -> Result<Vec<StoredAccessPolicy>> {
        let path = format!("/{table}");
        let call = Call { comp: Some("acl"), ..Call::get(&path, String::new()) };
        let answer = self.call(&call).await?;
        access_policies::parse(&answer.body).map_err(|error| odd(error.to_string()))
    }

    /// Replaces the stored access policies of a table.
    pub async fn set_access_policies(&mut self, table: &str, policies: &[StoredAccessPolicy]) -> Result<()> {
        let path = format!("/{table}");
        let body = without_mark(access_policies::print(policies));
        let call = Call { method: Method::PUT, comp: Some("acl"), ..Call::post(&path, "application/xml", body) };
        self.call(&call).await.map(drop)
    }

    /// What the account has set for its service.
    pub async fn service_properties(&mut self) -> Result<ServiceProperties> {
        let call = Call { comp: Some("properties"), ..Call::get("/", SERVICE.to_owned()) };
        let answer = self.call(&call).await?;
        let update = service_properties::parse(&answer.body)
            .map_err(|error| Error::Different(format!("what is set there is not understood: {error}")))?;
        let mut properties = ServiceProperties::default();
        update.apply(&mut properties);
        Ok(properties)
    }

    /// Replaces what the account has set for its service.
    pub async fn set_service_properties(&mut self, properties: &ServiceProperties) -> Result<()> {
        let body = without_mark(service_properties::print(properties));
        let call = Call {
            method: Method::PUT,
            query: SERVICE.to_owned(),
            comp: Some("properties"),
            ..Call::post("/", "application/xml", body)
        };
        self.call(&call).await.map(drop)
    }

    /// Creates a table, unless it is there.
    pub async fn create_table(&mut self, table: &str) -> Result<()> {
        let body = serde_json::json!({ "TableName": table }).to_string();
        match self.call(&Call::post("/Tables", "application/json", body)).await {
            Err(Error::Refused { code, .. }) if code == "TableAlreadyExists" => Ok(()),
            done => done.map(drop),
        }
    }

    /// Writes entities of one partition, all or none. In the end [`Client::was_in_doubt`] says whether they may have been
    /// written although an error came.
    pub async fn write(&mut self, table: &str, mode: Mode, entities: &[Entity]) -> Result<()> {
        let body = change_set(&self.connection.to_string(), table, mode, entities);
        let call = Call::post("/$batch", "multipart/mixed; boundary=batch_partita", body);
        let (mut pause, mut in_doubt) = (PAUSE_MIN, false);
        loop {
            let answer = self.call(&call).await;
            in_doubt |= self.in_doubt;
            self.in_doubt = in_doubt;
            let answer = answer?;
            let Some(error) = failure_in(&answer.body, entities) else { return Ok(()) };
            // A part can be busy though the batch was answered.
            match error {
                Error::Refused { status: 500.., .. } if pause < PAUSE_MAX => {
                    in_doubt = true;
                    tokio::time::sleep(pause).await;
                    pause *= 2;
                }
                error => return Err(error),
            }
        }
    }

    /// Whether the last request was sent more than once, and an earlier time may have had its effect.
    pub fn was_in_doubt(&self) -> bool {
        self.in_doubt
    }

    /// Sends a request until it is answered with what trying again would not change.
    async fn call(&mut self, call: &Call<'_>) -> Result<Answer> {
        let mut pause = PAUSE_MIN;
        self.in_doubt = false;
        for attempt in 1.. {
            let outcome = tokio::time::timeout(ANSWER_TIME_MAX, self.attempt(call)).await;
            let (why, wait) = match outcome {
                Ok(Ok(answer)) if answer.status.is_success() => return Ok(answer),
                Ok(Ok(answer)) if !is_passing(answer.status) => return Err(refusal(&answer)),
                Ok(Ok(answer)) => {
                    let after = answer.headers.get("retry-after").and_then(|value| value.to_str().ok()?.parse().ok());
                    (refusal(&answer), after.map(Duration::from_secs))
                }
                Ok(Err(why)) => (Error::Unavailable(why), None),
                Err(_) => (Error::Unavailable(format!("no answer came in {} s", ANSWER_TIME_MAX.as_secs())), None),
            };
            // Where nothing has ever answered there is most likely nothing, and somebody waits to be told.
            if attempt == ATTEMPTS_MAX || !self.connection.reached.load(Ordering::Relaxed) {
                return Err(why);
            }
            self.in_doubt = true;
            self.sender = None;
            tokio::time::sleep(wait.unwrap_or(pause).min(PAUSE_MAX)).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
        unreachable!("the last attempt returns")
    }

    async fn attempt(&mut self, call: &Call<'_>) -> std::result::Result<Answer, String> {
        let request = self.request(call);
        if self.sender.as_ref().is_none_or(SendRequest::is_closed) {
            self.sender = Some(connect(&self.connection, self.tls.as_ref()).await?);
        }
        let sender = self.sender.as_mut().expect("it was just set");
        sender.ready().await.map_err(|error| chain(&error))?;
        let response = sender.send_request(request).await.map_err(|error| chain(&error))?;
        self.connection.reached.store(true, Ordering::Relaxed);
        let (head, body) = response.into_parts();
        let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await.map_err(|error| error.to_string())?;
        Ok(Answer { status: head.status, headers: head.headers, body: body.to_bytes() })
    }

    fn request(&self, call: &Call<'_>) -> Request<Full<Bytes>> {
        let path = format!("{}{}", self.connection.path, call.path);
        let mut target = path.clone();
        let sas = match &self.connection.credential {
            Credential::Sas(sas) => sas.as_str(),
            Credential::Key(_) => "",
        };
        let comp = call.comp.map(|comp| format!("comp={comp}")).unwrap_or_default();
        for query in [call.query.as_str(), &comp, sas].into_iter().filter(|query| !query.is_empty()) {
            target.push(if target.contains('?') { '&' } else { '?' });
            target.push_str(query);
        }
        let date = Ticks::from_system_time(SystemTime::now()).rfc1123();
        let mut request = Request::builder()
            .method(call.method.clone())
            .uri(target)
            .header("Host", self.connection.authority())
            .header("Accept", ACCEPT)
            .header("x-ms-version", VERSION)
            .header("DataServiceVersion", "3.0;NetFx")
            .header("MaxDataServiceVersion", "3.0;NetFx")
            .header("x-ms-date", &date);
        if !call.content_type.is_empty() {
            request = request.header("Content-Type", call.content_type);
        }
        if call.is_brief {
            request = request.header("Prefer", "return-no-content");
        }
        if let Credential::Key(key) = &self.connection.credential {
            let account = &self.connection.account;
            let signed = TableRequest {
                account,
                method: call.method.as_str(),
                path: &path,
                comp: call.comp,
                content_md5: "",
                content_type: call.content_type,
                date: &date,
            };
            let signature = sign(key, &string_to_sign(Scheme::SharedKey, &signed));
            request = request.header("Authorization", format!("SharedKey {account}:{signature}"));
        }
        request.body(Full::new(call.body.clone())).expect("what was not made here was checked")
    }
}

/// A document as it is sent: the mark at its beginning is for readers of answers.
fn without_mark(mut document: Vec<u8>) -> Vec<u8> {
    if document.starts_with(MARK) {
        document.drain(..MARK.len());
    }
    document
}

fn odd(why: String) -> Error {
    Error::Unavailable(format!("its answer is not understood: {why}"))
}

fn is_passing(status: StatusCode) -> bool {
    status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED
        || [StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_MANY_REQUESTS].contains(&status)
}

fn refusal(answer: &Answer) -> Error {
    error_of(answer.status.as_u16(), &answer.body)
}

/// What the body of an error says.
fn error_of(status: u16, body: &[u8]) -> Error {
    let json: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let (mut code, mut message) = {
        let error = &json["odata.error"];
        (text(&error["code"]), text(&error["message"]["value"]))
    };
    if code.is_empty() {
        // Some errors come as XML, whatever was asked for.
        let xml = String::from_utf8_lossy(body);
        let inner = |name: &str| {
            let (_, rest) = xml.split_once(&format!("<{name}")).or(xml.split_once(&format!("<m:{name}")))?;
            let (_, rest) = rest.split_once('>')?;
            Some(rest.split_once('<')?.0.to_owned())
        };
        code = inner("code").or(inner("Code")).unwrap_or_default();
        message = inner("message").or(inner("Message")).unwrap_or_default();
    }
    Error::Refused { status, code, message, entity: None }
}

/// Percent-encodes everything but unreserved characters.
fn encode(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}
