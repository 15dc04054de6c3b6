//! The head of a request, whatever version of HTTP it came in.

use crate::headers::Headers;
use httparse::Header;

/// What a request says before its body, as it came: method and path on the wire are what was signed.
#[derive(Clone, Debug)]
pub(crate) struct Head<'a> {
    pub(crate) method: &'a str,
    /// The host, if the target names one; it counts more than the one of the header.
    pub(crate) authority: Option<&'a str>,
    pub(crate) path: &'a str,
    /// What follows the `?`, or nothing.
    pub(crate) query: &'a str,
    pub(crate) fields: Vec<Header<'a>>,
}

impl Head<'_> {
    pub(crate) fn headers(&self) -> Headers<'_> {
        Headers::Request(&self.fields)
    }
}
