//! The headers of a plain request and of a part of a batch, read alike.

use http::{HeaderMap, HeaderName};
use std::borrow::Cow;

/// The headers of a message. A value that is no text reads as an empty one.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Headers<'a> {
    /// Of a plain request.
    Request(&'a HeaderMap),
    /// Of a part of a batch, as they were written: to make a map of them would cost more than the few lookups.
    Part(&'a [(&'a str, Cow<'a, str>)]),
}

impl<'a> Headers<'a> {
    /// The first value of a header.
    pub(crate) fn get(self, name: &HeaderName) -> Option<&'a str> {
        match self {
            Headers::Request(headers) => headers.get(name).map(|value| value.to_str().unwrap_or_default()),
            Headers::Part(headers) => {
                let found = headers.iter().find(|(given, _)| given.eq_ignore_ascii_case(name.as_str()));
                found.map(|(_, value)| &**value)
            }
        }
    }

    pub(crate) fn contains(self, name: &HeaderName) -> bool {
        self.get(name).is_some()
    }

    /// Whether a header was given more than once.
    pub(crate) fn is_repeated(self, name: &HeaderName) -> bool {
        match self {
            Headers::Request(headers) => headers.get_all(name).iter().nth(1).is_some(),
            Headers::Part(headers) => {
                headers.iter().filter(|(given, _)| given.eq_ignore_ascii_case(name.as_str())).nth(1).is_some()
            }
        }
    }
}
