//! Headers of an answer as they are sent: lines, put together once, whether the answer goes by itself or in a part of a batch.

/// Room for the headers of nearly all answers.
const BYTES: usize = 640;

/// Names and values as lines, each with its end.
#[derive(Debug)]
pub(crate) struct HeaderLines(Vec<u8>);

impl HeaderLines {
    pub(crate) fn new() -> HeaderLines {
        HeaderLines(Vec::with_capacity(BYTES))
    }

    /// Adds a header with a value of our own.
    pub(crate) fn add_own(&mut self, name: &'static str, value: &'static str) {
        self.add_unchecked(name, value.as_bytes());
    }

    /// Adds a header. Whatever of a request is quoted in one was a header or a part of a URL, so it is fit to be one again; if
    /// it ever were not, a missing header is better than a lost answer, and than one more line.
    pub(crate) fn add(&mut self, name: &str, value: impl AsRef<[u8]>) {
        let value = value.as_ref();
        // Without stopping at the first, so that many bytes are looked at together.
        let is_control = |byte: u8| byte.is_ascii_control() & (byte != b'\t');
        if !value.iter().fold(false, |found, &byte| found | is_control(byte)) {
            self.add_unchecked(name, value);
        }
    }

    fn add_unchecked(&mut self, name: &str, value: &[u8]) {
        for part in [name.as_bytes(), b": ", value, b"\r\n"] {
            self.0.extend_from_slice(part);
        }
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// Names and values.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.0.split(|&byte| byte == b'\n').filter_map(|line| {
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
        let mut headers = HeaderLines::new();
        for (name, value) in [("A", "b: c"), ("D", ""), ("E", "f\r\nG: h"), ("I", "\0"), ("J", "k\tl"), ("M", "\u{7f}")]
        {
            headers.add(name, value);
        }
        assert_eq!(headers.as_bytes(), b"A: b: c\r\nD: \r\nJ: k\tl\r\n");
        let pairs: Vec<_> = headers.iter().collect();
        assert_eq!(pairs, [(&b"A"[..], &b"b: c"[..]), (b"D", b""), (b"J", b"k\tl")]);
    }
}
