//! A client of HTTP/1.1 that hides nothing.

use serde_json::Value;
use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Longest a test waits for a byte before it fails. Far more than any machine needs.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A request to one account. Its target is what follows the account in path style.
#[derive(Clone, Debug)]
pub struct Request {
    pub account: String,
    pub method: String,
    pub target: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// The version that most tests speak.
pub const VERSION: &str = "2019-02-02";

impl Request {
    pub fn new(method: &str, target: impl Into<String>) -> Request {
        let headers = vec![
            ("Accept".to_owned(), "application/json;odata=nometadata".to_owned()),
            ("x-ms-version".to_owned(), VERSION.to_owned()),
        ];
        let account = super::signing::ACCOUNT.to_owned();
        Request { account, method: method.to_owned(), target: target.into(), headers, body: Vec::new() }
    }

    pub fn get(target: impl Into<String>) -> Request {
        Request::new("GET", target)
    }

    pub fn delete(target: impl Into<String>) -> Request {
        Request::new("DELETE", target)
    }

    /// A request with a JSON body.
    pub fn json(method: &str, target: impl Into<String>, body: impl Into<Vec<u8>>) -> Request {
        Request::new(method, target).header("Content-Type", "application/json").body(body)
    }

    /// Of this account, perhaps with `-secondary`.
    pub fn at(self, account: &str) -> Request {
        Request { account: account.to_owned(), ..self }
    }

    /// Sets a header; the last value counts.
    pub fn header(mut self, name: &str, value: impl Into<String>) -> Request {
        self = self.without(name);
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    pub fn without(mut self, name: &str) -> Request {
        self.headers.retain(|(other, _)| !other.eq_ignore_ascii_case(name));
        self
    }

    pub fn body(self, body: impl Into<Vec<u8>>) -> Request {
        Request { body: body.into(), ..self }
    }

    /// Adds to the query.
    pub fn query(mut self, query: &str) -> Request {
        self.target.push(if self.target.contains('?') { '&' } else { '?' });
        self.target.push_str(query);
        self
    }

    pub fn get_header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// The path on the request line.
    pub fn path(&self) -> String {
        let path = self.target.split('?').next().unwrap_or_default();
        format!("/{}{path}", self.account)
    }

    /// The head without the headers that say how long the body is.
    pub fn head(&self) -> String {
        let mut head =
            format!("{} /{}{} HTTP/1.1\r\nHost: 127.0.0.1:10002\r\n", self.method, self.account, self.target);
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head
    }

    /// The bytes on the wire, with a `Content-Length`.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.head().into_bytes();
        if !self.body.is_empty() || matches!(self.method.as_str(), "POST" | "PUT" | "PATCH" | "MERGE") {
            bytes.extend(format!("Content-Length: {}\r\n", self.body.len()).into_bytes());
        }
        bytes.extend(b"\r\n");
        bytes.extend(&self.body);
        bytes
    }

    /// The bytes on the wire, with the body in chunks of this size.
    pub fn chunked(&self, size: usize) -> Vec<u8> {
        let mut bytes = self.head().into_bytes();
        bytes.extend(b"Transfer-Encoding: chunked\r\n\r\n");
        for chunk in self.body.chunks(size) {
            bytes.extend(format!("{:x}\r\n", chunk.len()).into_bytes());
            bytes.extend(chunk);
            bytes.extend(b"\r\n");
        }
        bytes.extend(b"0\r\n\r\n");
        bytes
    }
}

/// A response: headers as they were sent and in their order.
#[derive(Clone)]
pub struct Response {
    pub status: u16,
    pub reason: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Response {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }

    /// The code in the body, of either form; empty for a success.
    pub fn code(&self) -> String {
        if let Ok(json) = serde_json::from_slice::<Value>(&self.body) {
            return json["odata.error"]["code"].as_str().unwrap_or_default().to_owned();
        }
        let text = self.text();
        let code = text.split_once("code>").and_then(|(_, rest)| rest.split_once("</"));
        code.map(|(code, _)| code.to_owned()).unwrap_or_default()
    }

    /// The first line of the message of a JSON error.
    pub fn message(&self) -> String {
        let json = self.json();
        let message = json["odata.error"]["message"]["value"].as_str().unwrap_or_default();
        message.lines().next().unwrap_or_default().to_owned()
    }

    pub fn outcome(&self) -> (u16, String) {
        (self.status, self.code())
    }

    /// Fails unless the status is this.
    #[track_caller]
    pub fn expect(self, status: u16) -> Response {
        assert_eq!(self.status, status, "{self:?}");
        self
    }

    /// The rows of a collection as `PartitionKey/RowKey`, with a blank between.
    pub fn rows(&self) -> String {
        let json = self.json();
        let rows = json["value"].as_array().unwrap_or_else(|| panic!("no collection in {self:?}"));
        let text = |row: &Value, key: &str| row[key].as_str().unwrap_or_default().to_owned();
        rows.iter()
            .map(|row| format!("{}/{}", text(row, "PartitionKey"), text(row, "RowKey")))
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// What asks for the next page, or `None` if this was the last.
    pub fn continuation(&self) -> Option<String> {
        let partition = self.header("x-ms-continuation-NextPartitionKey")?;
        let row = self.header("x-ms-continuation-NextRowKey").map(|row| format!("&NextRowKey={}", encode(row)));
        Some(format!("NextPartitionKey={}{}", encode(partition), row.unwrap_or_default()))
    }
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} {}", self.status, self.reason)?;
        for (name, value) in &self.headers {
            writeln!(f, "{name}: {value}")?;
        }
        let text = self.text();
        write!(f, "\n{}", text.chars().take(2000).collect::<String>())
    }
}

/// Anything that bytes go in and out of.
pub trait Stream: Read + Write + Send {}
impl<S: Read + Write + Send> Stream for S {}

/// One connection.
pub struct Connection {
    stream: BufReader<Box<dyn Stream>>,
}

impl Connection {
    pub fn open(address: SocketAddr) -> Connection {
        Connection::over(tcp(address))
    }

    /// As [`Connection::open`]; an error if nobody listens.
    pub fn try_open(address: SocketAddr) -> io::Result<Connection> {
        try_tcp(address).map(Connection::over)
    }

    pub fn over(stream: impl Stream + 'static) -> Connection {
        Connection { stream: BufReader::new(Box::new(stream)) }
    }

    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes)?;
        self.stream.get_mut().flush()
    }

    /// Reads one response; an error if the connection ends before or within it.
    pub fn read(&mut self) -> io::Result<Response> {
        let line = self.line()?;
        let mut words = line.splitn(3, ' ');
        let (version, status) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        assert_eq!(version, "HTTP/1.1", "{line}");
        let status = status.parse().unwrap_or_else(|_| panic!("{line}"));
        let reason = words.next().unwrap_or_default().to_owned();
        let mut response = Response { status, reason, headers: Vec::new(), body: Vec::new() };
        loop {
            let line = self.line()?;
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(": ").or(line.split_once(':')).unwrap_or_else(|| panic!("{line}"));
            response.headers.push((name.to_owned(), value.to_owned()));
        }
        if status < 200 || status == 204 || status == 304 {
            return Ok(response);
        }
        if response.header("transfer-encoding").is_some() {
            loop {
                let size = usize::from_str_radix(&self.line()?, 16).expect("the size of a chunk");
                let mut chunk = vec![0; size];
                self.stream.read_exact(&mut chunk)?;
                response.body.extend(chunk);
                self.line()?;
                if size == 0 {
                    return Ok(response);
                }
            }
        }
        match response.header("content-length") {
            Some(length) => {
                response.body = vec![0; length.parse().expect("a length")];
                self.stream.read_exact(&mut response.body)?;
            }
            None => {
                self.stream.read_to_end(&mut response.body)?;
            }
        }
        Ok(response)
    }

    /// Sends bytes and reads the response to them.
    #[track_caller]
    pub fn exchange(&mut self, bytes: &[u8]) -> Response {
        self.write(bytes).expect("the server reads");
        self.read().expect("the server answers")
    }

    /// Sends a request as it is, without adding credentials.
    #[track_caller]
    pub fn send(&mut self, request: &Request) -> Response {
        self.exchange(&request.bytes())
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = Vec::new();
        self.stream.read_until(b'\n', &mut line)?;
        if !line.ends_with(b"\r\n") {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        line.truncate(line.len() - 2);
        String::from_utf8(line).map_err(|_| io::ErrorKind::InvalidData.into())
    }
}

/// Asks an admin port.
#[track_caller]
pub fn ask_admin(address: SocketAddr, path: &str) -> Response {
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n");
    Connection::open(address).exchange(request.as_bytes())
}

/// A socket that fails rather than waits for ever.
pub fn tcp(address: SocketAddr) -> TcpStream {
    try_tcp(address).expect("the server listens")
}

fn try_tcp(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Percent-encodes everything but unreserved characters.
pub fn encode(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

/// The path of an entity.
pub fn entity(table: &str, partition_key: &str, row_key: &str) -> String {
    let key = |key: &str| encode(&key.replace('\'', "''"));
    format!("/{table}(PartitionKey='{}',RowKey='{}')", key(partition_key), key(row_key))
}
