//! The members of a JSON object, as slices of its text.

use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// Most members of a body that are looked at. An entity has 252 properties; the rest is room for annotations and nulls.
pub(super) const MEMBERS_MAX: usize = 16 * 1024;

/// A member of the body's object, its value still as it was written.
pub(super) struct Member<'a> {
    pub(super) name: Cow<'a, str>,
    pub(super) raw: &'a str,
    /// Whether it is written without escapes.
    plain: bool,
}

/// What kind of value a JSON text is, told by its first character.
pub(super) enum Token {
    Null,
    Boolean(bool),
    Number,
    Text,
    Nested,
}

impl<'a> Member<'a> {
    pub(super) fn token(&self) -> Token {
        match self.raw.as_bytes().first() {
            Some(b'n') => Token::Null,
            Some(b't') => Token::Boolean(true),
            Some(b'f') => Token::Boolean(false),
            Some(b'"') => Token::Text,
            Some(b'{' | b'[') => Token::Nested,
            _ => Token::Number,
        }
    }

    /// The text of a string. `None` if an escape in it is no character: only here are escapes looked at closely, and
    /// skipping a value lets lone surrogates pass.
    pub(super) fn text(&self) -> Option<Cow<'a, str>> {
        if self.plain {
            return self.raw.get(1..self.raw.len() - 1).map(Cow::Borrowed);
        }
        serde_json::from_str(self.raw).map(Cow::Owned).ok()
    }
}

/// Reads the members of an object, and says where it is none. Beyond [`MEMBERS_MAX`], one more is returned and the rest is only
/// checked.
pub(super) fn read(text: &str) -> serde_json::Result<Vec<Member<'_>>> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let list = reader.deserialize_map(MembersVisitor)?;
    reader.end().map(|()| list)
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Vec<Member<'de>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut list = Vec::with_capacity(16);
        while let Some(Name(name)) = map.next_key()? {
            let raw: &'de RawValue = map.next_value()?;
            // One more than the limit is kept, to tell the caller; the rest is only checked for its syntax.
            if list.len() <= MEMBERS_MAX {
                let plain = memchr::memchr(b'\\', raw.get().as_bytes()).is_none();
                list.push(Member { name, raw: raw.get(), plain });
            }
        }
        Ok(list)
    }
}

/// The name of a member, borrowed from the body unless it has escapes.
struct Name<'a>(Cow<'a, str>);

impl<'de> serde::Deserialize<'de> for Name<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameVisitor;

        impl<'de> Visitor<'de> for NameVisitor {
            type Value = Name<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a member")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Name(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Name(Cow::Owned(text.to_owned())))
            }
        }

        deserializer.deserialize_str(NameVisitor)
    }
}
