//! Replies to a batch, byte for byte as the service writes them.
//!
//! JavaScript's client splits on the literal `--changesetresponse_` and others look for `HTTP/1.1 `, so spelling and
//! line ends are part of the protocol. A part without a body ends with two line ends after its headers.

/// The reply to one operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartReply<'a> {
    /// The HTTP status.
    pub status: u16,
    /// `Content-ID`, which stands before the other headers.
    pub content_id: Option<&'a str>,
    /// The other headers as lines, each with its end.
    pub headers: Vec<u8>,
    /// The body, which may be empty.
    pub body: Vec<u8>,
}

/// The `Content-Type` of a reply to a batch.
pub fn response_content_type(boundary: &str) -> String {
    format!("multipart/mixed; boundary={boundary}")
}

/// Writes the body of the reply to a batch: of a query (`query`, then there is one part) or of a change set. The
/// service's boundaries are `batchresponse_<guid>` and `changesetresponse_<guid>`; the prefixes are for the caller to
/// write, since clients look for them.
pub fn write(parts: &[PartReply<'_>], query: bool, batch_boundary: &str, changeset_boundary: &str) -> Vec<u8> {
    let size: usize = parts.iter().map(|part| part.body.len() + 768).sum();
    let mut out = Vec::with_capacity(size + 512);
    if query {
        parts.iter().for_each(|part| write_part(&mut out, part, batch_boundary));
    } else {
        line(&mut out, &["--", batch_boundary]);
        line(&mut out, &["Content-Type: ", &response_content_type(changeset_boundary)]);
        line(&mut out, &[]);
        parts.iter().for_each(|part| write_part(&mut out, part, changeset_boundary));
        line(&mut out, &["--", changeset_boundary, "--"]);
    }
    line(&mut out, &["--", batch_boundary, "--"]);
    out
}

fn write_part(out: &mut Vec<u8>, part: &PartReply<'_>, boundary: &str) {
    line(out, &["--", boundary]);
    line(out, &["Content-Type: application/http"]);
    line(out, &["Content-Transfer-Encoding: binary"]);
    line(out, &[]);
    line(out, &["HTTP/1.1 ", itoa::Buffer::new().format(part.status), " ", reason(part.status)]);
    if let Some(id) = part.content_id {
        line(out, &["Content-ID: ", id]);
    }
    out.extend_from_slice(&part.headers);
    line(out, &[]);
    out.extend_from_slice(&part.body);
    line(out, &[]);
}

fn line(out: &mut Vec<u8>, pieces: &[&str]) {
    pieces.iter().for_each(|piece| out.extend_from_slice(piece.as_bytes()));
    out.extend_from_slice(b"\r\n");
}

/// The words after a status. Only those the Table service answers with.
fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        204 => "No Content",
        304 => "Not Modified",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        409 => "Conflict",
        411 => "Length Required",
        412 => "Precondition Failed",
        413 => "Request Entity Too Large",
        414 => "Request-URI Too Long",
        415 => "Unsupported Media Type",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        503 => "Service Unavailable",
        _ => "Unknown",
    }
}
