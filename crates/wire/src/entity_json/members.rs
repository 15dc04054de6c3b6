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

/// Reads the members of an object. Beyond [`MEMBERS_MAX`], one more is returned and the rest is only checked.
pub(super) fn read(text: &str) -> serde_json::Result<Vec<Member<'_>>> {
    match Flat::read(text) {
        Some(list) => Ok(list),
        None => read_any(text),
    }
}

/// Reads what may be any JSON, and says where it is none.
fn read_any(text: &str) -> serde_json::Result<Vec<Member<'_>>> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let list = reader.deserialize_map(MembersVisitor)?;
    reader.end().map(|()| list)
}

/// A reader of what entities are as programs write them: objects without objects in them, in one line, and names without
/// escapes. It takes a fifth of the instructions of the general one, which has to remember where it is and to be able to say so.
struct Flat<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Flat<'a> {
    /// The members, or `None` if this is anything out of the ordinary, well-formed or not.
    fn read(text: &'a str) -> Option<Vec<Member<'a>>> {
        // All at once, so that strings end at the next quote. Without stopping at the first, many bytes are looked at together.
        if text.bytes().fold(false, |found, byte| found | (byte < b' ')) {
            return None;
        }
        let mut flat = Flat { text, at: 0 };
        let mut list = Vec::with_capacity(20);
        flat.skip_space();
        flat.expect(b'{')?;
        flat.skip_space();
        while list.len() < MEMBERS_MAX {
            let (name, escaped) = flat.string()?;
            if escaped {
                return None;
            }
            flat.skip_space();
            flat.expect(b':')?;
            flat.skip_space();
            let (raw, escaped) = flat.value()?;
            list.push(Member { name: Cow::Borrowed(&name[1..name.len() - 1]), raw, plain: !escaped });
            flat.skip_space();
            if flat.peek() == Some(b'}') {
                flat.at += 1;
                flat.skip_space();
                return (flat.at == text.len()).then_some(list);
            }
            flat.expect(b',')?;
            flat.skip_space();
        }
        None
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    fn skip_space(&mut self) {
        while self.peek() == Some(b' ') {
            self.at += 1;
        }
    }

    /// A value, and whether it has escapes.
    fn value(&mut self) -> Option<(&'a str, bool)> {
        let raw = match self.peek()? {
            b'"' => return self.string(),
            b't' => self.word("true"),
            b'f' => self.word("false"),
            b'n' => self.word("null"),
            _ => self.number(),
        };
        raw.map(|raw| (raw, false))
    }

    fn word(&mut self, word: &str) -> Option<&'a str> {
        let raw = self.text.get(self.at..self.at + word.len()).filter(|raw| *raw == word)?;
        self.at += word.len();
        Some(raw)
    }

    /// A string with its quotes, and whether it has escapes.
    fn string(&mut self) -> Option<(&'a str, bool)> {
        let (bytes, start) = (self.text.as_bytes(), self.at);
        let mut escaped = false;
        self.expect(b'"')?;
        loop {
            self.at += end_or_escape(bytes.get(self.at..)?)?;
            match (self.peek()?, bytes.get(self.at + 1)) {
                (b'"', _) => {
                    self.at += 1;
                    return Some((self.text.get(start..self.at)?, escaped));
                }
                (b'\\', Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't')) => self.at += 2,
                (b'\\', Some(b'u')) => {
                    let digits = bytes.get(self.at + 2..self.at + 6)?;
                    digits.iter().all(u8::is_ascii_hexdigit).then(|| self.at += 6)?;
                }
                _ => return None,
            }
            escaped = true;
        }
    }

    fn number(&mut self) -> Option<&'a str> {
        let start = self.at;
        let _ = self.expect(b'-');
        match self.peek()? {
            b'0' => self.at += 1,
            _ => self.digits()?,
        }
        if self.expect(b'.').is_some() {
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        self.text.get(start..self.at)
    }

    /// At least one digit.
    fn digits(&mut self) -> Option<()> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        (self.at > start).then_some(())
    }
}

/// Where the first quote or backslash is. To set up a search that is fast on long strings takes longer than to look through most of
/// them: without this an insert takes a fiftieth more instructions.
fn end_or_escape(bytes: &[u8]) -> Option<usize> {
    const SHORT_BLOCKS: usize = 4;
    let (blocks, _) = bytes.as_chunks();
    for (number, block) in blocks.iter().take(SHORT_BLOCKS).enumerate() {
        let word = u64::from_le_bytes(*block);
        let found =
            first_zero(word ^ u64::from_le_bytes([b'"'; 8])) | first_zero(word ^ u64::from_le_bytes([b'\\'; 8]));
        if found != 0 {
            return Some(8 * number + found.trailing_zeros() as usize / 8);
        }
    }
    let searched = 8 * blocks.len().min(SHORT_BLOCKS);
    memchr::memchr2(b'"', b'\\', &bytes[searched..]).map(|found| searched + found)
}

/// A word whose lowest bit that is set stands in the first byte that is zero; 0 if none is.
fn first_zero(word: u64) -> u64 {
    word.wrapping_sub(u64::from_le_bytes([0x01; 8])) & !word & u64::from_le_bytes([0x80; 8])
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Members as pairs that can be compared.
    fn pairs(list: Vec<Member<'_>>) -> Vec<(String, String)> {
        list.into_iter().map(|member| (member.name.into_owned(), member.raw.to_owned())).collect()
    }

    /// Texts that are JSON or nearly so: pieces of JSON in any order between braces, or any order at all.
    fn texts() -> impl Strategy<Value = String> {
        let piece = prop::sample::select(vec![
            "{",
            "}",
            "[",
            "]",
            ",",
            ":",
            " ",
            "\n",
            "\"",
            "\\",
            "\\u",
            "00e9",
            "d83d",
            "\"a\"",
            "\"\\n\"",
            "\"\"",
            "-",
            "0",
            "1",
            "12",
            ".5",
            "e",
            "E+",
            "true",
            "false",
            "null",
            "tru",
            "é",
            "\u{1}",
            "\t",
            "\"b\":1",
            "\"c\":\"x\"",
        ]);
        let any = prop::collection::vec(piece.clone(), 0..12).prop_map(|pieces| pieces.concat());
        let member = (prop::sample::select(vec!["a", "b", "é", "\\n", ""]), prop::collection::vec(piece, 1..3))
            .prop_map(|(name, value)| format!("\"{name}\" :{}", value.concat()));
        let object = prop::collection::vec(member, 0..4).prop_map(|members| format!(" {{{}}} ", members.join(", ")));
        prop_oneof![any, object]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]
        #[test]
        fn flat_agrees_with_the_general_reader(text in texts()) {
            if let Some(flat) = Flat::read(&text) {
                let any = read_any(&text);
                prop_assert!(any.is_ok(), "{text} is {any:?}", any = any.err());
                prop_assert_eq!(pairs(flat), pairs(any.unwrap()));
            }
        }
    }

    proptest! {
        #[test]
        fn ends_of_strings_are_found(bytes in prop::collection::vec(prop_oneof![20 => any::<u8>(), 1 => Just(b'"'), 1 => Just(b'\\')], 0..80)) {
            prop_assert_eq!(end_or_escape(&bytes), bytes.iter().position(|byte| matches!(byte, b'"' | b'\\')));
        }
    }

    #[test]
    fn flat_reads_what_clients_send() {
        for text in [
            r#"{"PartitionKey":"p","RowKey":"r","A":1,"B":-0.5e+3,"C":true,"D":false,"E":null,"F":""}"#,
            " {  \"A\" : \"\\u00e9\\\\\\\"\" , \"A@odata.type\": \"Edm.String\" } ",
        ] {
            let flat = Flat::read(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(pairs(flat), pairs(read_any(text).unwrap()));
        }
    }
}
