//! The XML of the service: stored access policies, service properties, stats.
//!
//! Successful replies start with a byte order mark and the declaration; requests may have either or not. What arrives
//! is read into a small tree first, with bounds on its size and depth and no document type, so that the rules of each
//! document can be written as plain code over elements.

pub mod access_policies;
mod document;
pub mod service_properties;
pub mod stats;

#[cfg(test)]
mod tests;

pub use service_properties::ServicePropertiesUpdate;

use partita_model::ServiceError;

/// What a successful reply starts with.
const PROLOGUE: &str = "\u{FEFF}<?xml version=\"1.0\" encoding=\"utf-8\"?>";

fn invalid_document(sentence: impl std::fmt::Display) -> ServiceError {
    ServiceError::InvalidXmlDocument { detail: format!("\n{sentence}") }
}

/// Writes `text` as the content of an element. Characters that XML cannot hold are replaced.
pub(crate) fn write_text(out: &mut String, text: &str) {
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\t' | '\n' => out.push(character),
            // As it is, a reader would take it for a line end.
            '\r' => out.push_str("&#xD;"),
            '\u{FFFE}' | '\u{FFFF}' => out.push('\u{FFFD}'),
            _ if character < ' ' => out.push('\u{FFFD}'),
            _ => out.push(character),
        }
    }
}

/// Writes an element with text; without text, the short form the service uses.
fn write_element(out: &mut String, name: &str, text: &str) {
    if text.is_empty() {
        out.push_str(&format!("<{name} />"));
        return;
    }
    out.push_str(&format!("<{name}>"));
    write_text(out, text);
    out.push_str(&format!("</{name}>"));
}
