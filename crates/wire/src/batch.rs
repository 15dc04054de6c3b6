//! `$batch`: multipart requests taken apart, multipart replies put together.
//!
//! ```text
//! --batch                                    --batch
//! Content-Type: multipart/mixed; boundary=c  Content-Type: application/http
//!
//! --c                                        GET http://.../T(...) HTTP/1.1
//! Content-Type: application/http             Accept: application/json
//!
//! POST http://.../T HTTP/1.1                 --batch--
//! Content-Type: application/json
//!
//! {"PartitionKey": ...}
//! --c--
//! --batch--
//! ```
//!
//! Left a change set, right a query; a batch is one or the other. The reader takes everything the official clients of
//! fifteen years send: either line end, lengths that are missing, blank lines in places where none belong. It refuses
//! what could be understood in two ways.

mod multipart;
mod part;
mod reply;

#[cfg(test)]
mod tests;

pub use part::Part;
pub use reply::{PartReply, response_content_type, write};

use multipart::{Headers, boundary_in, boundary_of, is_multipart, read_head, split};
use partita_model::ServiceError;
use partita_model::limits::BATCH_OPERATIONS_MAX;

/// What a batch asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Batch<'a> {
    /// The operations of an entity group transaction, in order; there may be none. When there are more than the
    /// service takes, at least one more than that is here.
    ChangeSet(Vec<Part<'a>>),
    /// A single query.
    Query(Part<'a>),
}

/// Takes a batch apart. `content_type` is the header of the request.
pub fn parse<'a>(content_type: &str, body: &'a [u8]) -> Result<Batch<'a>, ServiceError> {
    if !is_multipart(content_type) {
        return Err(malformed("The content type of a batch is multipart/mixed."));
    }
    // Two parts are as wrong as a thousand: there is no need to look for more.
    let announced = boundary_of(content_type)?;
    let mut parts = split(body, boundary_in(body, &announced), 2)?.into_iter();
    let Some(first) = parts.next() else {
        return Err(malformed("The batch has neither a change set nor a query."));
    };
    if parts.next().is_some() {
        return Err(malformed("A batch is one change set or one query, not several."));
    }
    let (head, content) = read_head(first)?;
    match Headers::read(head)?.get("Content-Type") {
        Some(inner) if is_multipart(inner) => change_set(inner, content),
        _ => {
            let part = Part::read(content)?;
            if part.method != "GET" {
                return Err(malformed("An operation that writes belongs in a change set."));
            }
            Ok(Batch::Query(part))
        }
    }
}

fn change_set<'a>(content_type: &str, content: &'a [u8]) -> Result<Batch<'a>, ServiceError> {
    let parts = split(content, &boundary_of(content_type)?, BATCH_OPERATIONS_MAX + 1)?;
    let mut operations = Vec::with_capacity(parts.len());
    // Most parts begin with the same lines as the one before, which takes a fourth off the time for reading all of them.
    let mut known = None;
    for part in parts {
        let content = match known.and_then(|known| part.strip_prefix(known)) {
            Some(content) => content,
            None => {
                let (head, content) = read_head(part)?;
                if Headers::read(head)?.get("Content-Type").is_some_and(is_multipart) {
                    return Err(malformed("A change set cannot stand inside a change set."));
                }
                known = Some(&part[..part.len() - content.len()]);
                content
            }
        };
        let operation = Part::read(content)?;
        if operation.method == "GET" {
            return Err(malformed("A query cannot stand in a change set."));
        }
        operations.push(operation);
    }
    Ok(Batch::ChangeSet(operations))
}

fn malformed(sentence: impl std::fmt::Display) -> ServiceError {
    ServiceError::BatchMalformed { detail: format!("\n{sentence}") }
}
