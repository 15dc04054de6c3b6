//! What goes back to a client, whatever version of HTTP it speaks.

use crate::bounds::Share;
use crate::header_name;

/// An answer that is ready to be sent.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// The headers as lines, each with its end.
    lines: Vec<u8>,
    pub(crate) body: Vec<u8>,
    /// What the body has of the memory for responses until its last byte was sent.
    pub(crate) share: Option<Share>,
}

impl Answer {
    pub(crate) fn new(status: u16, body: Vec<u8>) -> Answer {
        Answer { status, lines: Vec::with_capacity(640), body, share: None }
    }

    /// An answer for people.
    pub(crate) fn text(status: u16, content_type: &str, body: String) -> Answer {
        let mut answer = Answer::new(status, body.into_bytes());
        answer.header(header_name::CONTENT_TYPE, content_type);
        answer
    }

    /// Adds a header. Whatever of a request is quoted in one was a header or a part of a URL, so it is fit to be one again; if
    /// it ever were not, a missing header is better than a lost answer, and than one more line.
    pub(crate) fn header(&mut self, name: &str, value: impl AsRef<[u8]>) {
        let value = value.as_ref();
        // Without stopping at the first, so that many bytes are looked at together.
        let is_control = |byte: u8| byte.is_ascii_control() & (byte != b'\t');
        if !value.iter().fold(false, |found, &byte| found | is_control(byte)) {
            for part in [name.as_bytes(), b": ", value, b"\r\n"] {
                self.lines.extend_from_slice(part);
            }
        }
    }

    /// The headers as lines, each with its end.
    pub(crate) fn lines(&self) -> &[u8] {
        &self.lines
    }

    /// The headers one by one.
    pub(crate) fn headers(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.lines.split(|&byte| byte == b'\n').filter_map(|line| {
            let colon = memchr::memchr(b':', line)?;
            Some((&line[..colon], line[colon + 1..].trim_ascii()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_one_line() {
        let mut answer = Answer::new(200, Vec::new());
        for (name, value) in [("A", "b: c"), ("D", ""), ("E", "f\r\nG: h"), ("I", "\0"), ("J", "k\tl"), ("M", "\u{7f}")]
        {
            answer.header(name, value);
        }
        assert_eq!(answer.lines(), b"A: b: c\r\nD: \r\nJ: k\tl\r\n");
        let headers: Vec<_> = answer.headers().collect();
        assert_eq!(headers, [(&b"A"[..], &b"b: c"[..]), (b"D", b""), (b"J", b"k\tl")]);
    }
}
