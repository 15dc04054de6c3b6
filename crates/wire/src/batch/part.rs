//! One operation of a batch: an HTTP request written out inside a part.

use super::malformed;
use super::multipart::{Headers, read_head, split_text_line};
use partita_model::ServiceError;
use std::borrow::Cow;

/// An HTTP request inside a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part<'a> {
    /// The verb as written.
    pub method: &'a str,
    /// The target as written: absolute, a path, or relative to the service.
    pub target: &'a str,
    /// The headers of the request itself, in order, not those of the part around it. No value has a control character but
    /// tabs.
    pub headers: Vec<(&'a str, Cow<'a, str>)>,
    /// The body, without the white space around it.
    pub body: &'a [u8],
    /// `Content-ID`, if it stood among the request's own headers: only then does the reply repeat it.
    pub content_id: Option<Cow<'a, str>>,
}

impl<'a> Part<'a> {
    /// The value of the first header of that name, in any case.
    pub fn header(&self, wanted: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted));
        found.map(|(_, value)| &**value)
    }

    pub(super) fn read(content: &'a [u8]) -> Result<Part<'a>, ServiceError> {
        let (head, body) = read_head(content.trim_ascii_start())?;
        let (line, lines) = split_text_line(head);
        let (method, target) = request_line(line)
            .ok_or_else(|| malformed("A part does not start with a request line such as POST /T HTTP/1.1."))?;
        let headers = Headers::read(lines)?;
        let content_id = headers.0.iter().find(|(name, _)| name.eq_ignore_ascii_case("Content-ID"));
        let content_id = content_id.map(|(_, id)| id.clone());
        let body = body_of(body, headers.get("Content-Length"));
        Ok(Part { method, target, headers: headers.0, body, content_id })
    }
}

/// Verb and target of a request line. The target ends at the last space, so one inside it does no harm.
fn request_line(line: &str) -> Option<(&str, &str)> {
    let (method, rest) = line.trim_end().split_once(' ')?;
    let (target, version) = rest.rsplit_once(' ')?;
    let is_method = !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_alphabetic());
    let target = target.trim();
    (is_method && version.starts_with("HTTP/") && !target.is_empty()).then_some((method, target))
}

/// The body of a request. Clients leave out the length, or count it in characters instead of bytes, so it is believed
/// only if nothing but white space follows; otherwise the delimiter line decides.
fn body_of<'a>(rest: &'a [u8], length: Option<&str>) -> &'a [u8] {
    let announced = length.and_then(|length| length.parse().ok()).and_then(|length| rest.split_at_checked(length));
    match announced {
        Some((body, after)) if after.trim_ascii().is_empty() => body.trim_ascii(),
        _ => rest.trim_ascii(),
    }
}
