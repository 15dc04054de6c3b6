//! The head of a request of HTTP/1.1: who is asked for what, and where the request ends.
//!
//! Where two servers disagree on the end of a request, what one takes for a body is a request to the other. So there is one
//! way to say it: one length, or chunks and nothing else. Whatever is not clear is refused.

use crate::head::Head;
use httparse::{Error, Header, Request, Status};
use partita_model::limits::HEADERS_MAX;
use std::mem::MaybeUninit;

/// What tells HTTP/2 from HTTP/1.1: the first bytes of its connections.
pub(crate) const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A head that is all there.
#[derive(Debug)]
pub(crate) struct Start<'b> {
    pub(crate) head: Head<'b>,
    /// How many bytes it has.
    pub(crate) length: usize,
    pub(crate) framing: Framing,
    /// Whether the client would use the connection again.
    pub(crate) keep_alive: bool,
    /// Whether it would not do so unless it is told that it can.
    pub(crate) is_http10: bool,
    /// Whether the client sends the body only when it is told to.
    pub(crate) expects_continue: bool,
}

/// Where a body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    Length(u64),
    Chunks,
}

/// The status a head is refused with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refused(pub(crate) u16);

const BAD_REQUEST: Refused = Refused(400);

/// Reads the head at the front of `bytes`; `None` while it is not all there.
pub(crate) fn parse(bytes: &[u8]) -> Result<Option<Start<'_>>, Refused> {
    let mut fields = [const { MaybeUninit::<Header<'_>>::uninit() }; HEADERS_MAX];
    let mut request = Request::new(&mut []);
    let length = match request.parse_with_uninit_headers(bytes, &mut fields) {
        Ok(Status::Complete(length)) => length,
        Ok(Status::Partial) => return Ok(None),
        Err(Error::TooManyHeaders) => return Err(Refused(431)),
        Err(_) => return Err(BAD_REQUEST),
    };
    let (Some(method), Some(target), Some(minor)) = (request.method, request.path, request.version) else {
        return Err(BAD_REQUEST);
    };
    let (authority, path, query) = split_target(target).ok_or(BAD_REQUEST)?;
    let head = Head { method, authority, path, query, fields: request.headers.to_vec() };
    let is_http10 = minor == 0;
    let (mut body_length, mut is_chunked, mut expects_continue) = (None, false, false);
    let (mut closes, mut keeps) = (false, false);
    for Header { name, value } in &head.fields {
        if name.eq_ignore_ascii_case("content-length") {
            let given = decimal(value).ok_or(BAD_REQUEST)?;
            if body_length.is_some_and(|length| length != given) {
                return Err(BAD_REQUEST);
            }
            body_length = Some(given);
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            // Nothing but chunks, once: of anything else the end is not known.
            if is_chunked || is_http10 || !value.eq_ignore_ascii_case(b"chunked") {
                return Err(BAD_REQUEST);
            }
            is_chunked = true;
        } else if name.eq_ignore_ascii_case("connection") {
            for token in value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii) {
                closes |= token.eq_ignore_ascii_case(b"close");
                keeps |= token.eq_ignore_ascii_case(b"keep-alive");
            }
        } else if name.eq_ignore_ascii_case("expect") {
            expects_continue |= !is_http10 && value.eq_ignore_ascii_case(b"100-continue");
        }
    }
    let framing = match (body_length, is_chunked) {
        (Some(_), true) => return Err(BAD_REQUEST),
        (length, false) => Framing::Length(length.unwrap_or(0)),
        (None, true) => Framing::Chunks,
    };
    let keep_alive = !closes && (keeps || !is_http10);
    Ok(Some(Start { head, length, framing, keep_alive, is_http10, expects_continue }))
}

/// Whether a head may end in `bytes` at `from` or behind it.
pub(crate) fn may_end(bytes: &[u8], from: usize) -> bool {
    // The end is two ends of lines, of which the first may have come before.
    let from = from.saturating_sub(3);
    memchr::memchr_iter(b'\n', &bytes[from..])
        .any(|at| matches!(bytes[from + at + 1..], [b'\n', ..] | [b'\r', b'\n', ..]))
}

/// Host, path and query of a target. `None` if it is none that a server of tables could have.
fn split_target(target: &str) -> Option<(Option<&str>, &str, &str)> {
    if memchr::memchr(b'#', target.as_bytes()).is_some() {
        return None;
    }
    let (authority, rest) = match target.starts_with('/') || target == "*" {
        true => (None, target),
        false => {
            let (scheme, rest) = target.split_once("://")?;
            if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("https") {
                return None;
            }
            let (authority, rest) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
            (Some(authority).filter(|authority| !authority.is_empty()), rest)
        }
    };
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    Some((authority, if path.is_empty() { "/" } else { path }, query))
}

/// A number in digits, and nothing but digits.
fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(text: &str) -> Start<'_> {
        parse(text.as_bytes()).unwrap().expect("a head")
    }

    #[test]
    fn a_head() {
        let text = "PUT /acct/T(a)?x=y?z HTTP/1.1\r\nHost: h:1\r\nContent-Length: 7\r\nX-A:  b \r\n\r\nabcdefgGET";
        let start = start(text);
        let Head { method, authority, path, query, fields } = start.head;
        assert_eq!((method, authority, path, query), ("PUT", None, "/acct/T(a)", "x=y?z"));
        let fields: Vec<_> = fields.iter().map(|field| (field.name, field.value)).collect();
        assert_eq!(fields, [("Host", &b"h:1"[..]), ("Content-Length", b"7"), ("X-A", b"b")]);
        assert_eq!((start.framing, start.length), (Framing::Length(7), text.len() - 10));
        assert!(start.keep_alive && !start.expects_continue && !start.is_http10);
        for end in 0..text.len() - 10 {
            assert!(parse(&text.as_bytes()[..end]).unwrap().is_none(), "{end}");
            assert!(!may_end(&text.as_bytes()[..end], end.saturating_sub(1)), "{end}");
        }
        assert!(may_end(&text.as_bytes()[..text.len() - 10], text.len() - 11));
    }

    #[test]
    fn targets() {
        for (target, wanted) in [
            ("/", Some((None, "/", ""))),
            ("/a?b", Some((None, "/a", "b"))),
            ("*", Some((None, "*", ""))),
            ("http://h:1/a/b?c=d", Some((Some("h:1"), "/a/b", "c=d"))),
            ("HTTPS://h", Some((Some("h"), "/", ""))),
            ("http://h?c", Some((Some("h"), "/", "c"))),
            ("http:///a", Some((None, "/a", ""))),
            ("ftp://h/a", None),
            ("h:1", None),
            ("a", None),
            ("/a#b", None),
        ] {
            assert_eq!(split_target(target), wanted, "{target}");
        }
    }

    #[test]
    fn connections() {
        for (line, headers, keeps, is_http10) in [
            ("HTTP/1.1", "", true, false),
            ("HTTP/1.1", "Connection: close\r\n", false, false),
            ("HTTP/1.1", "Connection: Upgrade , CLOSE\r\n", false, false),
            ("HTTP/1.1", "Connection: keep-alive\r\nconnection: close\r\n", false, false),
            ("HTTP/1.0", "", false, true),
            ("HTTP/1.0", "Connection: Keep-Alive\r\n", true, true),
        ] {
            let text = format!("GET / {line}\r\n{headers}\r\n");
            let start = start(&text);
            assert_eq!((start.keep_alive, start.is_http10), (keeps, is_http10), "{text}");
        }
        assert!(start("PUT / HTTP/1.1\r\nExpect: 100-Continue\r\n\r\n").expects_continue);
        assert!(!start("PUT / HTTP/1.0\r\nExpect: 100-continue\r\n\r\n").expects_continue);
    }

    #[test]
    fn ends_of_bodies() {
        for (headers, wanted) in [
            ("", Ok(Framing::Length(0))),
            ("Content-Length: 0\r\n", Ok(Framing::Length(0))),
            ("Content-Length: 5\r\ncontent-length: 5\r\n", Ok(Framing::Length(5))),
            ("Transfer-Encoding: Chunked\r\n", Ok(Framing::Chunks)),
            ("Content-Length: 5\r\nContent-Length: 6\r\n", Err(BAD_REQUEST)),
            ("Content-Length: 5, 5\r\n", Err(BAD_REQUEST)),
            ("Content-Length: +5\r\n", Err(BAD_REQUEST)),
            ("Content-Length: \r\n", Err(BAD_REQUEST)),
            ("Content-Length: 99999999999999999999\r\n", Err(BAD_REQUEST)),
            ("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", Err(BAD_REQUEST)),
            ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", Err(BAD_REQUEST)),
            ("Transfer-Encoding: gzip, chunked\r\n", Err(BAD_REQUEST)),
            ("Transfer-Encoding: identity\r\n", Err(BAD_REQUEST)),
        ] {
            let text = format!("PUT / HTTP/1.1\r\n{headers}\r\n");
            let found = parse(text.as_bytes()).map(|start| start.expect("a head").framing);
            assert_eq!(found, wanted, "{headers}");
        }
        assert_eq!(parse(b"PUT / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n").unwrap_err(), BAD_REQUEST);
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(HEADERS_MAX + 1));
        assert_eq!(parse(many.as_bytes()).unwrap_err(), Refused(431));
    }
}
