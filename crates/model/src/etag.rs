//! ETags, and what `If-Match` asks for.

use crate::{Ticks, TimeText};
use std::fmt;

/// The tag of one version of an entity: its Timestamp in another dress, `W/"datetime'2022-02-01T20%3A52%3A40.635278Z'"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ETag(pub Ticks);

impl ETag {
    /// Writes the tag, with `quote` for its quotes: in JSON they are escaped.
    pub fn write(self, out: &mut Vec<u8>, quote: &str) {
        ETag::write_of(&self.0.text(), out, quote);
    }

    /// Writes the tag of the version of this time, for those who need the text of both.
    pub fn write_of(time: &TimeText, out: &mut Vec<u8>, quote: &str) {
        // Up to the fraction every digit has its place, and copies of a known size cost next to nothing.
        let time = time.as_bytes();
        let mut start = *b"datetime'0000-00-00T00%3A00%3A00";
        start[9..22].copy_from_slice(&time[..13]);
        start[25..27].copy_from_slice(&time[14..16]);
        start[30..32].copy_from_slice(&time[17..19]);
        for piece in [b"W/", quote.as_bytes(), &start, &time[19..], b"'", quote.as_bytes()] {
            out.extend_from_slice(piece);
        }
    }
}

impl From<ETag> for String {
    fn from(etag: ETag) -> String {
        let mut text = Vec::with_capacity(48);
        etag.write(&mut text, "\"");
        String::from_utf8(text).expect("digits and separators are text")
    }
}

impl fmt::Display for ETag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from(*self))
    }
}

/// What a client asks of the entity it changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfMatch {
    /// `*`: the entity exists.
    Any,
    /// A tag: the entity has this version.
    Tag(ETag),
    /// A well-formed tag that was never ours, so that no entity has it.
    Foreign,
}

impl IfMatch {
    /// Reads the header: `*` or one weak quoted tag. `None` if it is anything else.
    pub fn parse(text: &str) -> Option<IfMatch> {
        let text = text.trim();
        if text == "*" {
            return Some(IfMatch::Any);
        }
        let tag = text.strip_prefix("W/\"")?.strip_suffix('"')?;
        if tag.contains('"') {
            return None;
        }
        let time = tag.strip_prefix("datetime'").and_then(|tag| tag.strip_suffix('\''));
        let ticks = time.and_then(|time| Ticks::parse_iso(&time.replace("%3A", ":").replace("%3a", ":")));
        Some(ticks.map_or(IfMatch::Foreign, |ticks| IfMatch::Tag(ETag(ticks))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn print_and_parse() {
        let tag = ETag(Ticks::parse_iso("2022-02-01T20:52:40.635278Z").unwrap());
        assert_eq!(tag.to_string(), "W/\"datetime'2022-02-01T20%3A52%3A40.635278Z'\"");
        for text in [tag.to_string(), tag.to_string().replace("%3A", "%3a"), tag.to_string().replace("%3A", ":")] {
            assert_eq!(IfMatch::parse(&text), Some(IfMatch::Tag(tag)), "{text}");
        }
        assert_eq!(IfMatch::parse("*"), Some(IfMatch::Any));
        assert_eq!(IfMatch::parse("W/\"abc\""), Some(IfMatch::Foreign));
        for text in ["", "abc", "\"abc\"", "W/abc", "W/\"a\", W/\"b\"", &tag.to_string()[2..]] {
            assert_eq!(IfMatch::parse(text), None, "{text}");
        }
    }
}
