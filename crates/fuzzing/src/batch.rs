//! `$batch`: requests taken apart, replies put together.
//!
//! The input is the `Content-Type` of a request in the first line and its body in the rest. What was understood is
//! written as a plain client would write it and must be understood in the same way; a reply to it is written by the real
//! writer and read by a plain reader.

use partita_model::limits::BATCH_OPERATIONS_MAX;
use partita_wire::batch::{Batch, Part, PartReply, parse, response_content_type, write};

/// Takes a content type, a line end and a body.
pub fn batch(data: &[u8]) {
    let at = memchr::memchr(b'\n', data).unwrap_or(data.len());
    let Ok(content_type) = std::str::from_utf8(&data[..at]) else { return };
    let body = data.get(at + 1..).unwrap_or_default();
    let read = match parse(content_type, body) {
        Ok(read) => read,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let (parts, is_query) = match &read {
        Batch::ChangeSet(parts) => (parts.as_slice(), false),
        Batch::Query(part) => (std::slice::from_ref(part), true),
    };
    assert!(parts.len() <= BATCH_OPERATIONS_MAX + 1);
    for part in parts {
        check_part(part, is_query);
        check_end(part.body, body);
    }
    let boundary = unused_boundary(body);
    let (content_type, again) = written(parts, is_query, &boundary);
    assert_eq!(parse(&content_type, &again).as_ref(), Ok(&read), "{}", String::from_utf8_lossy(&again));
    check_reply(parts, is_query, &boundary);
}

fn check_part(part: &Part<'_>, is_query: bool) {
    assert_eq!(part.method == "GET", is_query);
    assert!(!part.target.is_empty());
    assert_eq!(part.body, part.body.trim_ascii());
    // None of these may end a line, wherever it is repeated.
    let words = part.headers.iter().flat_map(|(name, value)| [*name, value]);
    for word in words.chain([part.method, part.target]).chain(part.content_id.as_deref()) {
        assert!(!word.contains(['\r', '\n', '\0']), "{word:?}");
    }
    for (name, value) in &part.headers {
        let first = part.headers.iter().find(|(other, _)| other.eq_ignore_ascii_case(name));
        assert_eq!(part.header(name), first.map(|(_, value)| &**value));
        assert_eq!(&**value, value.trim(), "white space around a header");
    }
}

/// A body ends where a delimiter line follows, with nothing but white space between: no length cuts anything off.
fn check_end(part: &[u8], body: &[u8]) {
    if !part.is_empty() {
        let end = part.as_ptr_range().end as usize - body.as_ptr() as usize;
        assert!(body[end..].trim_ascii_start().starts_with(b"--"), "{}", String::from_utf8_lossy(&body[end..]));
    }
}

fn unused_boundary(body: &[u8]) -> String {
    let candidates = (0..).map(|number| format!("boundary_{number}"));
    let mut unused = candidates.filter(|boundary| memchr::memmem::find(body, boundary.as_bytes()).is_none());
    unused.next().expect("there are more numbers than bytes")
}

/// The batch as a plain client writes it, and its content type.
fn written(parts: &[Part<'_>], is_query: bool, boundary: &str) -> (String, Vec<u8>) {
    let mut out = Vec::new();
    let (outer, inner) = (format!("{boundary}_outer"), format!("{boundary}_inner"));
    let line = |out: &mut Vec<u8>, text: &str| out.extend([text.as_bytes(), b"\r\n"].concat());
    let around = if is_query { &outer } else { &inner };
    if !is_query {
        line(&mut out, &format!("--{outer}\r\nContent-Type: multipart/mixed; boundary={inner}\r\n"));
    }
    for part in parts {
        line(&mut out, &format!("--{around}\r\nContent-Type: application/http\r\n"));
        line(&mut out, &format!("{} {} HTTP/1.1", part.method, part.target));
        for (name, value) in &part.headers {
            line(&mut out, &format!("{name}: {value}"));
        }
        line(&mut out, "");
        out.extend(part.body);
        line(&mut out, "");
    }
    if !is_query {
        line(&mut out, &format!("--{inner}--"));
    }
    line(&mut out, &format!("--{outer}--"));
    (format!("multipart/mixed; boundary=\"{outer}\""), out)
}

fn check_reply(parts: &[Part<'_>], is_query: bool, boundary: &str) {
    let (outer, inner) = (format!("{boundary}_outer"), format!("{boundary}_inner"));
    let replies: Vec<PartReply<'_>> = parts
        .iter()
        .zip([200, 204, 404, 409, 999].into_iter().cycle())
        .map(|(part, status)| PartReply {
            status,
            content_id: part.content_id.as_deref(),
            headers: b"A: b\r\n".to_vec(),
            body: part.body.to_vec(),
        })
        .collect();
    let body = write(&replies, is_query, &outer, &inner);
    let mut rest = body.as_slice();
    if !is_query {
        let head = format!("--{outer}\r\nContent-Type: {}\r\n\r\n", response_content_type(&inner));
        rest = rest.strip_prefix(head.as_bytes()).expect("the head of a change set");
    }
    let around = if is_query { &outer } else { &inner };
    for reply in &replies {
        rest = behind(rest, &format!("--{around}\r\n"));
        rest = behind(rest, &format!("HTTP/1.1 {} ", reply.status));
        if let Some(id) = reply.content_id {
            rest = behind(rest, &format!("\r\nContent-ID: {id}"));
        }
        rest = behind(rest, "\r\nA: b");
        rest = behind(rest, "\r\n\r\n").strip_prefix(reply.body.as_slice()).expect("the body behind the blank line");
        rest = rest.strip_prefix(b"\r\n").expect("a line end behind the body");
    }
    let tail = if is_query { format!("--{outer}--\r\n") } else { format!("--{inner}--\r\n--{outer}--\r\n") };
    assert_eq!(rest, tail.as_bytes());
}

/// What follows the first `wanted`.
fn behind<'a>(bytes: &'a [u8], wanted: &str) -> &'a [u8] {
    let at = memchr::memmem::find(bytes, wanted.as_bytes()).unwrap_or_else(|| panic!("{wanted:?} is missing"));
    &bytes[at + wanted.len()..]
}
