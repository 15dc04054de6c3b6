//! A client of the Table protocol: one connection, requests one by one, tried again while that may help.

use crate::connection::{Connection, Credential};
use crate::{Entity, Error, Result, json_line};
use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use partita_auth::{Scheme, TableRequest, sign, string_to_sign};
use partita_model::Ticks;
use partita_wire::entity_json::write_typed;
use partita_wire::url::{entity_path, entity_url};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

const VERSION: &str = "2019-02-02";
/// With all that can be said of types: Azurite leaves out that of a Double otherwise.
const ACCEPT: &str = "application/json;odata=fullmetadata";
const ATTEMPTS_MAX: u32 = 9;
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(10);
const CONNECT_TIME_MAX: Duration = Duration::from_secs(15);
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

struct Call<'a> {
    method: Method,
    /// Behind the path of the service.
    path: &'a str,
    query: String,
    content_type: &'static str,
    body: Bytes,
    /// Whether the answer need not say what was stored.
    is_brief: bool,
}

impl<'a> Call<'a> {
    fn get(path: &'a str, query: String) -> Call<'a> {
        Call { method: Method::GET, path, query, content_type: "", body: Bytes::new(), is_brief: false }
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
        let header = |name: &str| answer.headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let next = header("x-ms-continuation-NextPartitionKey")
            .map(|partition| Continuation { partition, row: header("x-ms-continuation-NextRowKey") });

        #[derive(Deserialize)]
        struct Collection<'a> {
            #[serde(borrow)]
            value: Vec<&'a RawValue>,
        }
        let odd = |why: String| Error::Unavailable(format!("its answer is not understood: {why}"));
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

    /// Creates a table, unless it is there.
    pub async fn create_table(&mut self, table: &str) -> Result<()> {
        let body = serde_json::json!({ "TableName": table }).to_string();
        let call = Call {
            method: Method::POST,
            path: "/Tables",
            query: String::new(),
            content_type: "application/json",
            body: body.into(),
            is_brief: true,
        };
        match self.call(&call).await {
            Err(Error::Refused { code, .. }) if code == "TableAlreadyExists" => Ok(()),
            done => done.map(drop),
        }
    }

    /// Writes entities of one partition, all or none. In the end [`Client::was_in_doubt`] says whether they may have been
    /// written although an error came.
    pub async fn write(&mut self, table: &str, mode: Mode, entities: &[Entity]) -> Result<()> {
        let body = change_set(&self.connection.to_string(), table, mode, entities);
        let call = Call {
            method: Method::POST,
            path: "/$batch",
            query: String::new(),
            content_type: "multipart/mixed; boundary=batch_partita",
            body: body.into(),
            is_brief: true,
        };
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
                Ok(Ok(answer)) if !is_passing(answer.status) => return Err(refusal(&answer, None)),
                Ok(Ok(answer)) => {
                    let after = answer.headers.get("retry-after").and_then(|value| value.to_str().ok()?.parse().ok());
                    (refusal(&answer, None), after.map(Duration::from_secs))
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
            self.sender = Some(self.connect().await?);
        }
        let sender = self.sender.as_mut().expect("it was just set");
        sender.ready().await.map_err(|error| chain(&error))?;
        let response = sender.send_request(request).await.map_err(|error| chain(&error))?;
        self.connection.reached.store(true, Ordering::Relaxed);
        let (head, body) = response.into_parts();
        let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await.map_err(|error| error.to_string())?;
        Ok(Answer { status: head.status, headers: head.headers, body: body.to_bytes() })
    }

    async fn connect(&self) -> std::result::Result<SendRequest<Full<Bytes>>, String> {
        let Connection { host, port, .. } = &*self.connection;
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let connected = tokio::time::timeout(CONNECT_TIME_MAX, TcpStream::connect((bare, *port))).await;
        let place = self.connection.authority();
        let stream = connected
            .map_err(|_| format!("{place} does not answer"))?
            .map_err(|error| format!("cannot connect to {place}: {error}"))?;
        let _ = stream.set_nodelay(true);
        match &self.tls {
            None => begin(TokioIo::new(stream)).await,
            Some(tls) => {
                let name = ServerName::try_from(bare.to_owned()).map_err(|error| error.to_string())?;
                let stream = tokio::time::timeout(CONNECT_TIME_MAX, tls.connect(name, stream)).await;
                let stream = stream.map_err(|_| format!("{place} does not answer"))?;
                begin(TokioIo::new(stream.map_err(|error| format!("TLS with {place} failed: {error}"))?)).await
            }
        }
    }

    fn request(&self, call: &Call<'_>) -> Request<Full<Bytes>> {
        let path = format!("{}{}", self.connection.path, call.path);
        let mut target = path.clone();
        let sas = match &self.connection.credential {
            Credential::Sas(sas) => sas.as_str(),
            Credential::Key(_) => "",
        };
        for query in [call.query.as_str(), sas].into_iter().filter(|query| !query.is_empty()) {
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
                comp: None,
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

/// An error and its causes: hyper's own texts leave out what matters.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

async fn begin<S>(stream: TokioIo<S>) -> std::result::Result<SendRequest<Full<Bytes>>, String>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let (sender, connection) = handshake(stream).await.map_err(|error| chain(&error))?;
    tokio::spawn(connection);
    Ok(sender)
}

/// Trusts whom the machine trusts.
fn tls() -> Result<TlsConnector> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        return Err(Error::Option(
            "No root certificates were found on this machine; SSL_CERT_FILE names a file.".into(),
        ));
    }
    let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

fn is_passing(status: StatusCode) -> bool {
    status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED
        || [StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_MANY_REQUESTS].contains(&status)
}

/// What the body of an error says.
fn refusal(answer: &Answer, entity: Option<&Entity>) -> Error {
    error_of(answer.status.as_u16(), &answer.body, entity)
}

fn error_of(status: u16, body: &[u8], entity: Option<&Entity>) -> Error {
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
    let entity = entity.map(|entity| (entity.partition_key.clone(), entity.row_key.clone()));
    Error::Refused { status, code, message, entity }
}

/// The body of a batch that writes entities.
fn change_set(service: &str, table: &str, mode: Mode, entities: &[Entity]) -> Vec<u8> {
    let mut body = Vec::with_capacity(entities.len() * 1024);
    let line = |text: &str, body: &mut Vec<u8>| {
        body.extend_from_slice(text.as_bytes());
        body.extend_from_slice(b"\r\n");
    };
    line("--batch_partita", &mut body);
    line("Content-Type: multipart/mixed; boundary=changeset_partita", &mut body);
    line("", &mut body);
    for entity in entities {
        line("--changeset_partita", &mut body);
        line("Content-Type: application/http", &mut body);
        line("Content-Transfer-Encoding: binary", &mut body);
        line("", &mut body);
        let (verb, url) = match mode {
            Mode::Insert => ("POST", format!("{service}/{table}")),
            Mode::Replace => ("PUT", entity_url(service, table, &entity.partition_key, &entity.row_key)),
            Mode::Merge => ("PATCH", entity_url(service, table, &entity.partition_key, &entity.row_key)),
        };
        line(&format!("{verb} {url} HTTP/1.1"), &mut body);
        line("Content-Type: application/json", &mut body);
        line("Accept: application/json;odata=minimalmetadata", &mut body);
        line("DataServiceVersion: 3.0;", &mut body);
        line("Prefer: return-no-content", &mut body);
        line("", &mut body);
        write_typed(&mut body, &entity.partition_key, &entity.row_key, &entity.properties);
        line("", &mut body);
    }
    line("--changeset_partita--", &mut body);
    line("--batch_partita--", &mut body);
    body
}

/// How many bytes an entity takes of a batch, at the most, beside its own and its address in the service.
pub(crate) const PART_BYTES_MAX: usize = 768;

/// The error in the answer to a batch; `None` if all was written. A failed transaction has one part, which says which
/// operation it speaks of.
fn failure_in(body: &[u8], entities: &[Entity]) -> Option<Error> {
    let text = String::from_utf8_lossy(body);
    let mut seen = 0;
    for part in text.split("\nHTTP/1.1 ").skip(1) {
        seen += 1;
        let status = part.get(..3).and_then(|status| status.parse().ok()).unwrap_or(0);
        if !(200..300).contains(&status) {
            let content = part.find('{').zip(part.rfind('}')).and_then(|(start, end)| part.get(start..=end));
            let error = error_of(status, content.unwrap_or(part).as_bytes(), None);
            return Some(of_entity(error, entities));
        }
    }
    let all = seen >= entities.len();
    (!all).then(|| Error::Unavailable("its answer to a batch is not understood".into()))
}

/// Names the entity by the index that the message begins with.
fn of_entity(error: Error, entities: &[Entity]) -> Error {
    let Error::Refused { status, code, message, .. } = error else { return error };
    let numbered = message.split_once(':').and_then(|(index, rest)| Some((index.parse::<usize>().ok()?, rest)));
    let (index, message) = match numbered {
        Some((index, rest)) => (Some(index), rest.to_owned()),
        None => (None, message),
    };
    let entity = index.and_then(|index| entities.get(index)).or(entities.first().filter(|_| entities.len() == 1));
    let entity = entity.map(|entity| (entity.partition_key.clone(), entity.row_key.clone()));
    Error::Refused { status, code, message, entity }
}

/// Percent-encodes everything but unreserved characters.
fn encode(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::one_of_each;

    #[test]
    fn batches_are_read_by_the_service() {
        let entities = [one_of_each(), Entity { row_key: "2".into(), ..one_of_each() }];
        let body = change_set("http://h:1/a", "People", Mode::Replace, &entities);
        let batch = partita_wire::batch::parse("multipart/mixed; boundary=batch_partita", &body).unwrap();
        let partita_wire::batch::Batch::ChangeSet(parts) = batch else { panic!("{batch:?}") };
        assert_eq!(parts.len(), 2);
        assert_eq!(parts[1].method, "PUT");
        assert_eq!(parts[1].target, "http://h:1/a/People(PartitionKey='a%22b',RowKey='2')");
        assert_eq!(json_line::read(parts[1].body), Ok(entities[1].clone()));
    }

    #[test]
    fn answers_to_batches() {
        let entities = [one_of_each(), Entity { row_key: "2".into(), ..one_of_each() }];
        let good = b"--b\r\nHTTP/1.1 204 No Content\r\n\r\n\r\n--c\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n\r\n--b--";
        assert!(failure_in(good, &entities).is_none());
        assert!(failure_in(&good[..40], &entities).is_some(), "half an answer is none");
        let bad = b"--b\r\n\r\nHTTP/1.1 409 Conflict\r\nContent-Type: application/json\r\n\r\n\
            {\"odata.error\":{\"code\":\"EntityAlreadyExists\",\"message\":{\"lang\":\"en-US\",\"value\":\
            \"1:The specified entity already exists.\\nRequestId:x\"}}}\r\n--b--";
        let error = failure_in(bad, &entities).unwrap().to_string();
        assert_eq!(
            error,
            "PartitionKey 'a\\\"b', RowKey '2': the service answered 409 EntityAlreadyExists: The specified entity \
             already exists."
        );
    }
}
