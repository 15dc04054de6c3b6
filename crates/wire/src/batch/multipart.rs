//! The MIME layer: boundaries, parts and headers (RFC 2046, read leniently).

use super::malformed;
use memchr::memmem;
use partita_model::ServiceError;
use partita_model::limits::HEADERS_MAX;
use std::borrow::Cow;

/// Longest boundary that is taken. RFC 2046 allows 70 characters.
const BOUNDARY_BYTES_MAX: usize = 256;

/// How much of a delimiter is searched for.
const SEARCHED_BYTES_MAX: usize = 16;

/// Whether a `Content-Type` is that of a multipart body.
pub(super) fn is_multipart(content_type: &str) -> bool {
    let kind = content_type.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("multipart/mixed")
}

/// The `boundary` parameter of a `Content-Type`, bare or in quotes.
pub(super) fn boundary_of(content_type: &str) -> Result<String, ServiceError> {
    let mut rest = content_type.split_once(';').map_or("", |(_, rest)| rest);
    while !rest.is_empty() {
        let Some((name, value)) = rest.split_once('=') else { break };
        let value = value.trim_start();
        let (value, after) = match value.strip_prefix('"') {
            Some(quoted) => unquote(quoted).ok_or_else(|| malformed("A quote in the content type is not closed."))?,
            None => {
                let (value, after) = value.split_once(';').unwrap_or((value, ""));
                (value.trim_end().to_owned(), after)
            }
        };
        if name.trim().eq_ignore_ascii_case("boundary") {
            let is_usable = !value.is_empty() && value.len() <= BOUNDARY_BYTES_MAX;
            let is_printable = value.bytes().all(|byte| (b' '..=b'~').contains(&byte)) && !value.ends_with(' ');
            return if is_usable && is_printable {
                Ok(value)
            } else {
                Err(malformed("The boundary in the content type cannot be used."))
            };
        }
        rest = after.trim_start_matches([' ', '\t', ';']);
    }
    Err(malformed("The content type names no boundary."))
}

/// The boundary of the first line of `body`, for a body that does not have the one its header announces: recorders and
/// proxies that blank out identifiers change the header and not the body, which still says unmistakably what it is.
pub(super) fn boundary_in<'a>(body: &'a [u8], announced: &'a str) -> &'a str {
    if memmem::find(body, announced.as_bytes()).is_some() {
        return announced;
    }
    let (line, _) = split_line(body.trim_ascii_start());
    let boundary = line.strip_prefix(b"--").and_then(|boundary| std::str::from_utf8(boundary.trim_ascii_end()).ok());
    boundary.filter(|boundary| !boundary.is_empty()).unwrap_or(announced)
}

/// A quoted string after its first quote, and what follows the last.
fn unquote(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => value.push(characters.next()?.1),
            _ => value.push(character),
        }
    }
    None
}

/// The parts between the delimiter lines of `boundary`, at most `limit` of them. What stands before the first and after
/// the last delimiter does not count, nor does a part without any content, which is how some clients write an empty
/// change set.
pub(super) fn split<'a>(body: &'a [u8], boundary: &str, limit: usize) -> Result<Vec<&'a [u8]>, ServiceError> {
    let dashes = format!("--{boundary}");
    let mut parts = Vec::new();
    let mut part_start = None;
    // Boundaries are mostly longer than what can be searched for in the fastest way.
    let searched = &dashes.as_bytes()[..dashes.len().min(SEARCHED_BYTES_MAX)];
    for at in memmem::find_iter(body, searched) {
        if at > 0 && body[at - 1] != b'\n' {
            continue;
        }
        let Some(after) = body[at..].strip_prefix(dashes.as_bytes()) else { continue };
        let (is_last, padding) = match after.strip_prefix(b"--") {
            Some(padding) => (true, padding),
            None => (false, after),
        };
        let line_end = memchr::memchr(b'\n', padding).unwrap_or(padding.len());
        // Anything else on the line makes it the line of another, longer boundary, or text.
        if !padding[..line_end].iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r')) {
            continue;
        }
        if let Some(start) = part_start {
            let part = without_line_end(body.get(start..at).unwrap_or_default());
            if !part.trim_ascii().is_empty() {
                parts.push(part);
            }
        }
        if is_last || parts.len() >= limit {
            return Ok(parts);
        }
        part_start = Some((body.len() - padding.len() + line_end + 1).min(body.len()));
    }
    Err(malformed(format_args!("The line --{boundary}-- that ends the parts is missing.")))
}

/// `bytes` without the line end that belongs to the delimiter after them.
fn without_line_end(bytes: &[u8]) -> &[u8] {
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    bytes.strip_suffix(b"\r").unwrap_or(bytes)
}

/// The first line of `bytes` without its end, and the rest.
pub(super) fn split_line(bytes: &[u8]) -> (&[u8], &[u8]) {
    match memchr::memchr(b'\n', bytes) {
        Some(at) => (bytes[..at].strip_suffix(b"\r").unwrap_or(&bytes[..at]), &bytes[at + 1..]),
        None => (bytes.strip_suffix(b"\r").unwrap_or(bytes), &[]),
    }
}

/// The lines before the first blank one as text, and what follows that.
pub(super) fn read_head(bytes: &[u8]) -> Result<(&str, &[u8]), ServiceError> {
    let mut start = 0;
    for end in memchr::memchr_iter(b'\n', bytes).chain([bytes.len()]) {
        if bytes[start..end].iter().all(u8::is_ascii_whitespace) {
            return Ok((head_text(&bytes[..start])?, bytes.get(end + 1..).unwrap_or_default()));
        }
        start = end + 1;
    }
    Ok((head_text(bytes)?, &[]))
}

/// Checks all lines at once: one by one they took three times the instructions. Control characters within them are refused: a
/// value may be repeated in the reply.
fn head_text(lines: &[u8]) -> Result<&str, ServiceError> {
    let text = std::str::from_utf8(lines).map_err(|_| malformed("A header of a part is not UTF-8."))?;
    // Without stopping at the first, so that many bytes are looked at together. Nothing is behind the last.
    let is_control = |byte: u8| byte.is_ascii_control() & !matches!(byte, b'\t' | b'\n' | b'\r');
    let is_wrong = |(&byte, &next): (&u8, &u8)| is_control(byte) | ((byte == b'\r') & (next != b'\n'));
    let pairs = lines.iter().zip(lines.get(1..).unwrap_or_default());
    if pairs.fold(false, |found, pair| found | is_wrong(pair)) || lines.last().is_some_and(|&last| is_control(last)) {
        return Err(malformed("A header of a part has a control character."));
    }
    Ok(text)
}

/// The first line of a text, which may keep its return, and the rest.
pub(super) fn split_text_line(text: &str) -> (&str, &str) {
    match memchr::memchr(b'\n', text.as_bytes()) {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (text, ""),
    }
}

/// The headers of a part, in order.
pub(super) struct Headers<'a>(pub(super) Vec<(&'a str, Cow<'a, str>)>);

impl<'a> Headers<'a> {
    /// Reads the lines of headers.
    pub(super) fn read(lines: &'a str) -> Result<Headers<'a>, ServiceError> {
        let mut headers = Headers(Vec::with_capacity(8));
        let (mut start, mut colon) = (0, None);
        for at in memchr::memchr2_iter(b':', b'\n', lines.as_bytes()) {
            if lines.as_bytes()[at] == b':' {
                colon = colon.or(Some(at - start));
            } else {
                headers.add(&lines[start..at], colon.take())?;
                start = at + 1;
            }
        }
        if start < lines.len() {
            headers.add(&lines[start..], colon)?;
        }
        Ok(headers)
    }

    /// Adds what a line says, whose first colon is known.
    fn add(&mut self, line: &'a str, colon: Option<usize>) -> Result<(), ServiceError> {
        if line.starts_with([' ', '\t']) {
            let Some((_, value)) = self.0.last_mut() else {
                return Err(malformed("The first header of a part starts with a space."));
            };
            // In place: a body may have a million of these lines.
            let (value, more) = (value.to_mut(), line.trim());
            if !value.is_empty() && !more.is_empty() {
                value.push(' ');
            }
            value.push_str(more);
            return Ok(());
        }
        let (name, value) = line.split_at(colon.ok_or_else(|| malformed("A header of a part has no colon."))?);
        if self.0.len() >= HEADERS_MAX {
            return Err(malformed("A part has too many headers."));
        }
        self.0.push((name.trim_ascii(), Cow::Borrowed(value[1..].trim_ascii())));
        Ok(())
    }

    /// The value of the first header of that name, in any case.
    pub(super) fn get(&self, wanted: &str) -> Option<&str> {
        let found = self.0.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted));
        found.map(|(_, value)| &**value)
    }
}
