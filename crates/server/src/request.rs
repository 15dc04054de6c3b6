//! Requests, as far as their head says what they are.

use crate::address::Address;
use crate::head::Head;
use crate::header_name;
use crate::headers::{Headers, text};
use crate::operation::{Asked, Operation};
use crate::query_string::Query;
use crate::resource::Resource;
use partita_model::limits::{CLIENT_REQUEST_ID_BYTES_MAX, REQUEST_SECONDS_MAX};
use partita_model::{ServiceError, Ticks};
use partita_wire::batch::Part;
use std::time::Duration;

/// The version with which the service began.
const VERSION_MIN: &str = "2009-04-14";
/// What a request without a version counts as: newer than any.
const VERSION_NEWEST: &str = "9999-12-31";

/// Where a request was sent.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) query: Query,
    pub(crate) address: Address,
}

/// The head of a request whose target was understood.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'a> {
    pub(crate) head: &'a Head<'a>,
    pub(crate) query: &'a Query,
    pub(crate) address: &'a Address,
}

/// What a plain request and a part of a batch have in common once they are known to be allowed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Message<'a> {
    pub(crate) operation: &'a Operation,
    pub(crate) query: &'a Query,
    pub(crate) headers: Headers<'a>,
    pub(crate) body: &'a [u8],
}

/// A part of a batch, read.
#[derive(Debug)]
pub(crate) struct PartMessage<'a> {
    pub(crate) operation: Operation,
    pub(crate) query: Query,
    pub(crate) headers: Headers<'a>,
    body: &'a [u8],
}

impl<'a> Request<'a> {
    /// The operation it asks for.
    pub(crate) fn operation(&self) -> Result<Operation, ServiceError> {
        operation(self.head.method, self.head.headers(), self.query, &self.address.path, self.address)
    }

    /// The version the client speaks.
    pub(crate) fn version(&self) -> &'a str {
        self.given_version().unwrap_or(VERSION_NEWEST)
    }

    /// The version the client says it speaks, in its header or its signature.
    pub(crate) fn given_version(&self) -> Option<&'a str> {
        let header = self.head.headers().get(header_name::VERSION);
        header.or_else(|| self.query.get("api-version")).or_else(|| self.query.get("sv"))
    }

    /// Headers and parameters that concern every operation.
    pub(crate) fn check(&self) -> Result<(), ServiceError> {
        let bad_header = |name: &str, value: &str| {
            let value = value.chars().take(100).collect();
            Err(ServiceError::InvalidHeaderValue { name: name.into(), value })
        };
        if let Some(version) = self.given_version() {
            let date = version.len() == VERSION_MIN.len() && Ticks::parse_iso(version).is_some();
            if !date || version < VERSION_MIN {
                return bad_header(header_name::VERSION, version);
            }
        }
        if let Some(id) = self.head.headers().bytes(header_name::CLIENT_REQUEST_ID)
            && id.len() > CLIENT_REQUEST_ID_BYTES_MAX
        {
            return bad_header(header_name::CLIENT_REQUEST_ID, text(id).unwrap_or_default());
        }
        self.timeout().map(|_| ())
    }

    /// How long the request may take.
    pub(crate) fn timeout(&self) -> Result<Duration, ServiceError> {
        let seconds = match self.query.get("timeout") {
            None => REQUEST_SECONDS_MAX,
            Some(text) => text
                .parse()
                .map_err(|_| ServiceError::InvalidQueryParameterValue { name: "timeout".into(), value: text.into() })?,
        };
        Ok(Duration::from_secs(if seconds == 0 { REQUEST_SECONDS_MAX } else { seconds.min(REQUEST_SECONDS_MAX) }))
    }
}

impl<'a> PartMessage<'a> {
    /// Reads a part of a batch that was sent to `address`.
    pub(crate) fn read(part: &'a Part<'_>, address: &Address) -> Result<PartMessage<'a>, ServiceError> {
        let malformed = |detail: &str| ServiceError::BatchMalformed { detail: format!("\n{detail}") };
        if !part.headers.iter().all(|(name, value)| is_header_name(name) && value.is_ascii()) {
            return Err(malformed("A part has a header that is not valid."));
        }
        let headers = Headers::Part(&part.headers);
        let (target, query) = part.target.split_once('?').unwrap_or((part.target, ""));
        let query = Query::parse(query).ok_or_else(|| malformed("A part has a URL with a broken escape."))?;
        let path = address.part_path(target).ok_or_else(|| malformed("A part has a URL with a broken escape."))?;
        let operation = operation(part.method, headers, &query, &path, address)?;
        Ok(PartMessage { operation, query, headers, body: part.body })
    }

    pub(crate) fn message(&self) -> Message<'_> {
        Message { operation: &self.operation, query: &self.query, headers: self.headers, body: self.body }
    }
}

impl<'a> Message<'a> {
    /// The one value of a header, or `None` if it is absent; several count as one that is not valid.
    pub(crate) fn header(&self, name: &str) -> Option<&'a str> {
        let value = self.headers.get(name)?;
        Some(if self.headers.is_repeated(name) { "" } else { value })
    }
}

/// Whether HTTP allows a name of a header.
fn is_header_name(name: &str) -> bool {
    const TOKEN: [bool; 256] = {
        let (mut table, mut byte) = ([false; 256], 0_u8);
        while byte < 128 {
            table[byte as usize] = byte.is_ascii_alphanumeric()
                || matches!(byte, b'!' | b'#'..=b'\'' | b'*' | b'+' | b'-' | b'.' | b'^'..=b'`' | b'|' | b'~');
            byte += 1;
        }
        table
    };
    !name.is_empty() && name.bytes().all(|byte| TOKEN[usize::from(byte)])
}

/// The one way from a request, plain or in a batch, to what it asks for.
fn operation(
    method: &str,
    headers: Headers<'_>,
    query: &Query,
    path: &str,
    address: &Address,
) -> Result<Operation, ServiceError> {
    Operation::parse(Asked {
        verb: tunnelled(method, headers)?,
        resource: Resource::parse(path),
        comp: query.get("comp"),
        restype: query.get("restype"),
        conditional: headers.contains(header_name::IF_MATCH),
        // A client that derives the secondary from the host name finds none for an address, and asks the primary.
        has_stats: address.secondary || address.path_style,
    })
}

/// The verb that `X-HTTP-Method` puts in the place of POST.
fn tunnelled<'a>(method: &'a str, headers: Headers<'a>) -> Result<&'a str, ServiceError> {
    let Some(verb) = headers.get(header_name::X_HTTP_METHOD) else { return Ok(method) };
    if headers.is_repeated(header_name::X_HTTP_METHOD) {
        return Err(ServiceError::XMethodIncorrectCount);
    }
    if method != "POST" {
        return Err(ServiceError::XMethodNotUsingPost);
    }
    match verb {
        "MERGE" | "PUT" | "DELETE" | "PATCH" => Ok(verb),
        _ => Err(ServiceError::XMethodIncorrectValue),
    }
}
