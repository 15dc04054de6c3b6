//! Reading HTTP/1.1 answers: as much of them as a load generator needs.
//!
//! One pass over the lines of the head finds its end, the length of the body and whether it is in chunks. The body is
//! not copied and not looked at, unless somebody asks for it.

use memchr::{memchr, memmem};

/// An answer that is all there.
#[derive(Clone, Copy, Debug)]
pub struct Response<'a> {
    /// The status; 0 if this is no HTTP.
    pub status: u16,
    /// How many bytes the body has, without the sizes of chunks.
    pub length: usize,
    /// How many bytes the answer has in all.
    pub consumed: usize,
    head: &'a [u8],
    /// The body as it came.
    raw: &'a [u8],
    chunked: bool,
}

/// Reads the answer at the front of `bytes`; `None` while it is not all there.
pub fn read(bytes: &[u8]) -> Option<Response<'_>> {
    let not_http = Response { status: 0, length: 0, consumed: bytes.len(), head: bytes, raw: &[], chunked: false };
    let line_end = memchr(b'\n', bytes)?;
    let status = match bytes.get(..13) {
        Some([b'H', b'T', b'T', b'P', b'/', b'1', b'.', _, b' ', rest @ ..]) => number(&rest[..3], 10),
        _ => None,
    };
    let Some(status) = status else { return Some(not_http) };
    let (mut at, mut length, mut chunked) = (line_end + 1, 0, false);
    loop {
        let line = &bytes[at..at + memchr(b'\n', &bytes[at..])?];
        at += line.len() + 1;
        match line {
            b"" | b"\r" => break,
            _ if name_is(line, b"content-length") => match number(value(line), 10) {
                Some(value) => length = value,
                None => return Some(not_http),
            },
            _ if name_is(line, b"transfer-encoding") => chunked = true,
            _ => {}
        }
    }
    let (head, rest) = bytes.split_at(at);
    if status < 200 || status == 204 || status == 304 {
        (length, chunked) = (0, false);
    }
    let size = if chunked { chunks(rest, |chunk| length += chunk.len())? } else { length };
    let raw = rest.get(..size)?;
    Some(Response { status: status as u16, length, consumed: at + size, head, raw, chunked })
}

impl<'a> Response<'a> {
    /// The value of a header, given in lower case.
    pub fn header(&self, name: &[u8]) -> Option<&'a [u8]> {
        let line = self.head.split(|&byte| byte == b'\n').skip(1).find(|line| name_is(line, name))?;
        Some(value(line))
    }

    /// The body in one piece; `scratch` is where chunks are joined.
    pub fn body<'b>(&self, scratch: &'b mut Vec<u8>) -> &'b [u8]
    where
        'a: 'b,
    {
        if !self.chunked {
            return self.raw;
        }
        scratch.clear();
        chunks(self.raw, |chunk| scratch.extend_from_slice(chunk));
        scratch
    }

    /// How often a text occurs in the body.
    pub fn count(&self, text: &[u8], scratch: &mut Vec<u8>) -> usize {
        memmem::find_iter(self.body(scratch), text).count()
    }
}

/// Walks over chunks up to the end of the last one; `None` while that is not there.
fn chunks<'a>(bytes: &'a [u8], mut each: impl FnMut(&'a [u8])) -> Option<usize> {
    let mut at = 0;
    loop {
        let line = &bytes[at..at + memchr(b'\n', &bytes[at..])?];
        let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        let size = number(&line[..digits], 16).unwrap_or(0);
        at += line.len() + 1;
        each(bytes.get(at..at + size)?);
        at += size + 2;
        if bytes.len() < at {
            return None;
        }
        if size == 0 {
            return Some(at);
        }
    }
}

fn name_is(line: &[u8], name: &[u8]) -> bool {
    line.get(name.len()) == Some(&b':') && line[..name.len()].eq_ignore_ascii_case(name)
}

fn value(line: &[u8]) -> &[u8] {
    let start = memchr(b':', line).map_or(0, |colon| colon + 1);
    line[start..].trim_ascii()
}

fn number(digits: &[u8], radix: u32) -> Option<usize> {
    usize::from_str_radix(std::str::from_utf8(digits).ok()?, radix).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: &[u8] = b"HTTP/1.1 200 OK\r\nETag: W/\"x\"\r\ncontent-length: 5\r\n\r\nhello";
    const CHUNKED: &[u8] =
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;ext=1\r\nlo\r\n0\r\n\r\n";
    const NO_CONTENT: &[u8] = b"HTTP/1.1 204 No Content\r\nContent-Length: 7\r\n\r\n";

    #[test]
    fn whole_answers() {
        for (bytes, status, body) in [(PLAIN, 200, &b"hello"[..]), (CHUNKED, 200, b"hello"), (NO_CONTENT, 204, b"")] {
            let response = read(bytes).unwrap();
            assert_eq!((response.status, response.consumed, response.length), (status, bytes.len(), body.len()));
            assert_eq!(response.body(&mut Vec::new()), body);
        }
        assert_eq!(read(PLAIN).unwrap().header(b"etag"), Some(&b"W/\"x\""[..]));
        assert_eq!(read(PLAIN).unwrap().header(b"date"), None);
    }

    #[test]
    fn split_anywhere_they_are_not_complete() {
        for bytes in [PLAIN, CHUNKED, NO_CONTENT] {
            for end in 0..bytes.len() {
                assert!(read(&bytes[..end]).is_none(), "{:?}", String::from_utf8_lossy(&bytes[..end]));
            }
        }
    }

    #[test]
    fn what_follows_is_left() {
        for bytes in [PLAIN, CHUNKED, NO_CONTENT] {
            let two = [bytes, b"HTTP/1.1 404 Not Found\r\n\r\n"].concat();
            let first = read(&two).unwrap();
            assert_eq!(first.consumed, bytes.len());
            assert_eq!(read(&two[first.consumed..]).unwrap().status, 404);
        }
    }

    #[test]
    fn texts_are_found_across_chunks() {
        let response = read(CHUNKED).unwrap();
        assert_eq!(response.count(b"ell", &mut Vec::new()), 1);
    }

    #[test]
    fn what_is_not_http() {
        for bytes in [&b"SSH-2.0-x\r\n"[..], b"HTTP/1.1 OK\r\n\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n"] {
            assert_eq!(read(bytes).unwrap().status, 0);
        }
    }
}
