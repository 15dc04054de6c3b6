//! What goes back to a client, whatever version of HTTP it speaks.

use crate::bounds::Share;
use crate::header_lines::HeaderLines;
use crate::header_name;

/// An answer that is ready to be sent.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderLines,
    pub(crate) body: Vec<u8>,
    /// What the body has of the memory for responses until its last byte was sent.
    pub(crate) share: Option<Share>,
}

impl Answer {
    pub(crate) fn new(status: u16, body: Vec<u8>) -> Answer {
        Answer { status, headers: HeaderLines::new(), body, share: None }
    }

    /// An answer for people.
    pub(crate) fn text(status: u16, content_type: &str, body: String) -> Answer {
        let mut answer = Answer::new(status, body.into_bytes());
        answer.headers.add(header_name::CONTENT_TYPE, content_type);
        answer
    }
}
