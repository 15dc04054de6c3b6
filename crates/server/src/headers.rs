//! The headers of a plain request and of a part of a batch, read alike.

use httparse::Header;
use std::borrow::Cow;

/// The headers of a message, as they were written: to make a map of them would cost more than the few lookups.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Headers<'a> {
    /// Of a plain request.
    Request(&'a [Header<'a>]),
    /// Of a part of a batch.
    Part(&'a [(&'a str, Cow<'a, str>)]),
}

impl<'a> Headers<'a> {
    /// The first value of a header. One that is no text reads as an empty one.
    pub(crate) fn get(self, name: &str) -> Option<&'a str> {
        self.bytes(name).map(|value| text(value).unwrap_or_default())
    }

    /// The first value of a header as it came.
    pub(crate) fn bytes(self, name: &str) -> Option<&'a [u8]> {
        match self {
            Headers::Request(headers) => {
                headers.iter().find(|header| header.name.eq_ignore_ascii_case(name)).map(|header| header.value)
            }
            Headers::Part(headers) => {
                headers.iter().find(|(given, _)| given.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_bytes())
            }
        }
    }

    pub(crate) fn contains(self, name: &str) -> bool {
        self.bytes(name).is_some()
    }

    /// Whether a header was given more than once.
    pub(crate) fn is_repeated(self, name: &str) -> bool {
        let is_it = |given: &str| given.eq_ignore_ascii_case(name);
        match self {
            Headers::Request(headers) => headers.iter().filter(|header| is_it(header.name)).nth(1).is_some(),
            Headers::Part(headers) => headers.iter().filter(|(given, _)| is_it(given)).nth(1).is_some(),
        }
    }
}

/// The value of a header, if it is text.
pub(crate) fn text(value: &[u8]) -> Option<&str> {
    std::str::from_utf8(value).ok().filter(|text| text.is_ascii())
}
