//! Replies, before they are an HTTP response or a part of one.

use crate::bounds::Share;
use crate::header_lines::HeaderLines;
use crate::header_name;
use crate::headers::Headers;
use partita_model::{Layer, ServiceError, Status, Ticks};
use partita_wire::batch::PartReply;
use partita_wire::entity_json::Metadata;
use partita_wire::error_body;

/// What is sent back, without what every response has.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: Status,
    pub(crate) headers: HeaderLines,
    pub(crate) body: Vec<u8>,
    /// What the body has of the memory for responses, if that was seen to already.
    pub(crate) share: Option<Share>,
    /// Whether it says in a part of a batch that a table was not found.
    pub(crate) misses_table: bool,
}

impl Reply {
    /// A reply of an operation on tables or entities.
    pub(crate) fn json(status: Status) -> Reply {
        Reply::plain(status)
            .with_own(header_name::CONTENT_TYPE_OPTIONS, "nosniff")
            .with_own(header_name::CACHE_CONTROL, "no-cache")
    }

    /// A reply of any other operation.
    pub(crate) fn plain(status: Status) -> Reply {
        Reply { status, headers: HeaderLines::new(), body: Vec::new(), share: None, misses_table: false }
    }

    /// The reply with one more header.
    pub(crate) fn with(mut self, name: &'static str, value: impl AsRef<[u8]>) -> Reply {
        self.headers.add(name, value);
        self
    }

    /// The reply with one more header, whose value is our own.
    pub(crate) fn with_own(mut self, name: &'static str, value: &'static str) -> Reply {
        self.headers.add_own(name, value);
        self
    }

    pub(crate) fn body(self, content_type: impl AsRef<[u8]>, body: Vec<u8>) -> Reply {
        Reply { body, ..self.with(header_name::CONTENT_TYPE, content_type) }
    }

    /// The reply as a part of a batch. `data_service_version` is what the service says for this kind of operation.
    pub(crate) fn into_part<'a>(
        self,
        data_service_version: &'static str,
        content_id: Option<&'a str>,
    ) -> PartReply<'a> {
        let Reply { status, headers, body, .. } =
            self.with_own(header_name::DATA_SERVICE_VERSION, data_service_version);
        PartReply { status, content_id, headers: headers.into_bytes(), body }
    }
}

/// What the client wants back from an insert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Prefer {
    NoContent,
    Content,
}

impl Prefer {
    pub(crate) fn from_headers(headers: Headers<'_>) -> Option<Prefer> {
        let prefer = |preference: &str| match preference {
            "return-no-content" => Some(Prefer::NoContent),
            "return-content" => Some(Prefer::Content),
            _ => None,
        };
        let value = headers.get(header_name::PREFER)?;
        prefer(value).or_else(|| value.split(',').find_map(|preference| prefer(preference.trim())))
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Prefer::NoContent => "return-no-content",
            Prefer::Content => "return-content",
        }
    }
}

/// How an error is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Json(Metadata),
    Xml,
}

/// What an error says besides itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Failure<'a> {
    pub(crate) error: &'a ServiceError,
    /// The operation of a change set that failed.
    pub(crate) index: Option<usize>,
    pub(crate) prefer: Option<Prefer>,
    pub(crate) request_id: &'a str,
    pub(crate) time: Ticks,
}

impl Failure<'_> {
    /// The one place where an error becomes a reply.
    pub(crate) fn render(&self, form: Form) -> Reply {
        let layer = self.error.layer();
        let mut reply = Reply::plain(self.error.status());
        match form {
            Form::Xml => {
                let content_type = match self.error {
                    ServiceError::AtomFormatNotSupported => "application/xml; charset=utf-8",
                    _ => "application/xml",
                };
                reply = reply.body(content_type, error_body::xml(self.error, self.request_id, self.time));
            }
            Form::Json(metadata) => {
                let body = error_body::json(self.error, self.index, self.request_id, self.time);
                let content_type = if layer == Layer::Front { "application/json" } else { metadata.content_type() };
                if layer != Layer::Front {
                    reply = reply.with_own(header_name::CONTENT_TYPE_OPTIONS, "nosniff");
                }
                if matches!(layer, Layer::Late | Layer::Store) {
                    reply = reply.with_own(header_name::CACHE_CONTROL, "no-cache");
                    if let Some(prefer) = self.prefer {
                        reply = reply.with_own(header_name::PREFERENCE_APPLIED, prefer.name());
                    }
                }
                reply = reply.body(content_type, body);
            }
        }
        if self.error.status() == 503 {
            reply = reply.with_own(header_name::RETRY_AFTER, "1");
        }
        reply
    }
}
