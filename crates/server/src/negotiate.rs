//! Content negotiation: which JSON a client wants, and what it may send.

use crate::header_name;
use crate::headers::Headers;
use partita_model::ServiceError;
use partita_wire::entity_json::Metadata;

/// What `$format`, or else `Accept`, asks for.
pub(crate) fn metadata(format: Option<&str>, headers: Headers<'_>) -> Result<Metadata, ServiceError> {
    let Some(wanted) = format.or(headers.get(header_name::ACCEPT)).filter(|wanted| !wanted.trim().is_empty()) else {
        return Ok(Metadata::Minimal);
    };
    // What the official clients say, understood at a glance.
    match wanted {
        "application/json;odata=minimalmetadata" => return Ok(Metadata::Minimal),
        "application/json;odata=nometadata" => return Ok(Metadata::None),
        "application/json;odata=fullmetadata" => return Ok(Metadata::Full),
        _ => {}
    }
    let mut refused = ServiceError::MediaTypeNotSupported;
    for choice in wanted.split(',') {
        match media_type(choice) {
            Ok(metadata) => return Ok(metadata),
            Err(ServiceError::MediaTypeNotSupported) => {}
            Err(error) => refused = error,
        }
    }
    Err(refused)
}

fn media_type(text: &str) -> Result<Metadata, ServiceError> {
    let is_one_of = |text: &str, names: &[&str]| names.iter().any(|name| text.trim().eq_ignore_ascii_case(name));
    let mut parts = text.split(';');
    let kind = parts.next().unwrap_or_default();
    if !is_one_of(kind, &["application/json", "json"]) {
        let is_atom = is_one_of(kind, &["application/atom+xml", "application/xml", "text/xml", "atom"]);
        return match is_one_of(kind, &["*/*", "application/*"]) {
            true => Ok(Metadata::Minimal),
            false if is_atom => Err(ServiceError::AtomFormatNotSupported),
            false => Err(ServiceError::MediaTypeNotSupported),
        };
    }
    let parameters = parts.filter_map(|parameter| parameter.split_once('='));
    let mut levels = parameters.filter(|(name, _)| is_one_of(name, &["odata"])).map(|(_, level)| level);
    match levels.next() {
        None => Ok(Metadata::Minimal),
        Some(level) if is_one_of(level, &["minimalmetadata"]) => Ok(Metadata::Minimal),
        Some(level) if is_one_of(level, &["nometadata"]) => Ok(Metadata::None),
        Some(level) if is_one_of(level, &["fullmetadata"]) => Ok(Metadata::Full),
        Some(level) if is_one_of(level, &["verbose"]) => Err(ServiceError::JsonVerboseFormatNotSupported),
        Some(_) => Err(ServiceError::MediaTypeNotSupported),
    }
}

/// Whether the client would rather read JSON than XML, where both are possible.
pub(crate) fn prefers_json(headers: Headers<'_>) -> bool {
    headers.get(header_name::ACCEPT).is_some_and(|accept| accept.contains("json"))
}

/// Whether a body of this content type is read as an entity.
pub(crate) fn check_json_body(headers: Headers<'_>) -> Result<(), ServiceError> {
    let Some(sent) = headers.get(header_name::CONTENT_TYPE) else { return Ok(()) };
    // What the official clients say, understood at a glance.
    if let "application/json" | "application/json;odata=nometadata" | "application/json;odata=minimalmetadata" = sent {
        return Ok(());
    }
    let sent = sent.split(';').next().unwrap_or_default().trim();
    let is = |kind: &str| sent.eq_ignore_ascii_case(kind);
    match sent.is_empty() || is("application/json") || is("text/json") {
        true => Ok(()),
        false if is("application/atom+xml") => Err(ServiceError::AtomFormatNotSupported),
        false => Err(ServiceError::MediaTypeNotSupported),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels() {
        for (format, accept, expect) in [
            (None, None, Ok(Metadata::Minimal)),
            (None, Some("*/*"), Ok(Metadata::Minimal)),
            (None, Some("application/json"), Ok(Metadata::Minimal)),
            (None, Some("application/json;odata=nometadata"), Ok(Metadata::None)),
            (None, Some("application/json; odata=fullmetadata"), Ok(Metadata::Full)),
            (None, Some("Application/JSON ;charset=utf-8; OData = NoMetadata "), Ok(Metadata::None)),
            (Some("application/json;odata=nometadata"), Some("application/atom+xml"), Ok(Metadata::None)),
            (None, Some("application/atom+xml,application/json;odata=nometadata"), Ok(Metadata::None)),
            (None, Some("application/atom+xml,application/xml"), Err("AtomFormatNotSupported")),
            (None, Some("application/json;odata=verbose"), Err("JsonVerboseFormatNotSupported")),
            (None, Some("text/html"), Err("MediaTypeNotSupported")),
        ] {
            let headers: Vec<_> = accept.map(|accept| ("accept", accept.into())).into_iter().collect();
            assert_eq!(
                metadata(format, Headers::Part(&headers)).map_err(|error| error.code()),
                expect,
                "{format:?} {accept:?}"
            );
        }
    }
}
