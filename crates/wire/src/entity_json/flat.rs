//! Entities as programs write them: one object without objects in it, in one line, names without escapes, each type beside the
//! value it speaks of, nothing wrong with anything. They are read in one go, each property stored as it comes, in half the
//! instructions of the general reader, which has to look at all members before it stores one, and has to be able to say
//! where it found what. Whatever is out of the ordinary, well-formed or not, is left to that.

use super::decode::{EntityBody, KeyField, Names, TYPE_SUFFIX, number, typed_text};
use partita_model::{EdmType, Records, Ticks, Value, ValueRef};
use std::borrow::Cow;

/// Reads an entity, or not all of it.
pub(super) fn read(text: &str, records: &mut Records) -> Option<EntityBody> {
    // All at once, so that strings end at the next quote. Without stopping at the first, many bytes are looked at together.
    if text.bytes().fold(false, |found, byte| found | (byte < b' ')) {
        return None;
    }
    let mut reader = Reader { text, rest: text.as_bytes() };
    let mut names = Names::default();
    let start = records.begin();
    let mut entity = EntityBody::default();
    // A member whose type may come next, or whose type came and that has to come next.
    let (mut before, mut announced): (Option<Member<'_>>, Option<(&str, EdmType)>) = (None, None);
    reader.take(b'{')?;
    loop {
        let member = reader.member()?;
        names.add(member.name)?;
        match (member.annotated(), before.take(), announced.take()) {
            (Some(name), Some(before), None) if before.name == name => {
                before.store(Some(member.edm_type()?), &mut entity, records)?
            }
            (Some(name), untyped, None) => {
                untyped.map_or(Some(()), |untyped| untyped.store(None, &mut entity, records))?;
                announced = Some((name, member.edm_type()?));
            }
            (None, None, Some((name, edm))) if member.name == name => member.store(Some(edm), &mut entity, records)?,
            (None, untyped, None) => {
                untyped.map_or(Some(()), |untyped| untyped.store(None, &mut entity, records))?;
                before = Some(member);
            }
            _ => return None,
        }
        if reader.take(b'}').is_some() {
            break;
        }
        reader.take(b',')?;
    }
    before.map_or(Some(()), |untyped| untyped.store(None, &mut entity, records))?;
    reader.skip_space();
    let is_whole = announced.is_none() && reader.rest.is_empty();
    is_whole.then(|| EntityBody { record: start..records.end(), ..entity })
}

struct Member<'a> {
    name: &'a str,
    /// Where the first `@` in the name is.
    at: Option<usize>,
    value: Written<'a>,
}

/// A value as it stands in the text.
enum Written<'a> {
    Null,
    Boolean(bool),
    Number(&'a str),
    /// Without its quotes.
    Text(&'a str),
    /// With them, and with escapes that nobody has looked at.
    Escaped(&'a str),
}

impl<'a> Member<'a> {
    /// The name of the member whose type this one gives, if it gives one.
    fn annotated(&self) -> Option<&'a str> {
        let (annotated, suffix) = self.name.split_at(self.at?);
        (suffix == TYPE_SUFFIX).then_some(annotated)
    }

    /// The type it names.
    fn edm_type(&self) -> Option<EdmType> {
        EdmType::parse(&self.value.text()?)
    }

    fn store(self, edm: Option<EdmType>, entity: &mut EntityBody, records: &mut Records) -> Option<()> {
        match self.name {
            "PartitionKey" => entity.partition_key = self.value.key(edm)?,
            "RowKey" => entity.row_key = self.value.key(edm)?,
            // Nobody looks at what its escapes say.
            name if name == "Timestamp" || self.at.is_some() || name.starts_with("odata.") => {
                return (!matches!(self.value, Written::Escaped(_))).then_some(());
            }
            name => self.value.store(name, edm, records)?,
        }
        Some(())
    }
}

impl<'a> Written<'a> {
    fn text(&self) -> Option<Cow<'a, str>> {
        match self {
            Written::Text(text) => Some(Cow::Borrowed(text)),
            Written::Escaped(quoted) => serde_json::from_str(quoted).map(Cow::Owned).ok(),
            _ => None,
        }
    }

    fn key(&self, edm: Option<EdmType>) -> Option<Option<KeyField>> {
        match (self, edm) {
            (Written::Null, _) => Some(None),
            (_, None | Some(EdmType::String)) => Some(Some(KeyField::Text(self.text()?.into_owned()))),
            _ => None,
        }
    }

    fn store(&self, name: &str, edm: Option<EdmType>, records: &mut Records) -> Option<()> {
        let value = match (self, edm) {
            (Written::Null, _) => return Some(()),
            (Written::Boolean(value), None | Some(EdmType::Boolean)) => Value::Boolean(*value),
            (Written::Boolean(_), _) => return None,
            (Written::Number(digits), edm) => number(digits, edm)?,
            (_, None | Some(EdmType::String)) => {
                records.push(name, ValueRef::String(&self.text()?));
                return Some(());
            }
            (_, Some(EdmType::DateTime)) => {
                Value::DateTime(Ticks::parse_iso(&self.text()?).filter(|date| *date >= Ticks::MIN_DATE_TIME)?)
            }
            (_, Some(edm)) => typed_text(&self.text()?, edm)?,
        };
        records.push(name, value.as_ref());
        Some(())
    }
}

struct Reader<'a> {
    text: &'a str,
    /// What of it was not read yet.
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// What was read since `rest` was this.
    fn since(&self, rest: &[u8]) -> Option<&'a str> {
        self.text.get(self.text.len() - rest.len()..self.text.len() - self.rest.len())
    }

    fn skip_space(&mut self) {
        while let [b' ', rest @ ..] = self.rest {
            self.rest = rest;
        }
    }

    /// Takes a byte, if it comes next, and the spaces before it.
    fn take(&mut self, byte: u8) -> Option<()> {
        self.skip_space();
        self.take_here(byte)
    }

    fn take_here(&mut self, byte: u8) -> Option<()> {
        match self.rest {
            [first, rest @ ..] if *first == byte => {
                self.rest = rest;
                Some(())
            }
            _ => None,
        }
    }

    fn member(&mut self) -> Option<Member<'a>> {
        self.take(b'"')?;
        let start = self.rest;
        let mut length = end_of_name(start)?;
        let at = (start[length] == b'@').then_some(length);
        if at.is_some() {
            length += end_or_escape(&start[length..])?;
        }
        self.rest = &start[length..];
        let name = self.since(start)?;
        self.take_here(b'"')?;
        self.take(b':')?;
        self.skip_space();
        let value = match self.rest.first()? {
            b'"' => self.string()?,
            b't' => self.word(b"true", Written::Boolean(true))?,
            b'f' => self.word(b"false", Written::Boolean(false))?,
            b'n' => self.word(b"null", Written::Null)?,
            _ => self.number()?,
        };
        Some(Member { name, at, value })
    }

    fn word(&mut self, word: &[u8], value: Written<'a>) -> Option<Written<'a>> {
        self.rest = self.rest.strip_prefix(word)?;
        Some(value)
    }

    /// A string. What its escapes say is looked at by whoever wants its text.
    fn string(&mut self) -> Option<Written<'a>> {
        let quoted = self.rest;
        self.take_here(b'"')?;
        let start = self.rest;
        self.rest = &start[end_or_escape(start)?..];
        if let [b'"', rest @ ..] = self.rest {
            let text = self.since(start)?;
            self.rest = rest;
            return Some(Written::Text(text));
        }
        while self.take_here(b'"').is_none() {
            // A backslash and what it escapes, or the first byte of that.
            let rest = self.rest.get(2..)?;
            self.rest = &rest[end_or_escape(rest)?..];
        }
        self.since(quoted).map(Written::Escaped)
    }

    fn number(&mut self) -> Option<Written<'a>> {
        let start = self.rest;
        let _ = self.take_here(b'-');
        if self.take_here(b'0').is_none() {
            self.digits()?;
        }
        if self.take_here(b'.').is_some() {
            self.digits()?;
        }
        if let [b'e' | b'E', rest @ ..] = self.rest {
            self.rest = rest;
            if let [b'+' | b'-', rest @ ..] = self.rest {
                self.rest = rest;
            }
            self.digits()?;
        }
        self.since(start).map(Written::Number)
    }

    /// At least one digit.
    fn digits(&mut self) -> Option<()> {
        let start = self.rest.len();
        while let [b'0'..=b'9', rest @ ..] = self.rest {
            self.rest = rest;
        }
        (self.rest.len() < start).then_some(())
    }
}

/// Where the first quote or backslash is.
fn end_or_escape(bytes: &[u8]) -> Option<usize> {
    first_of([b'"', b'\\'], bytes, |far| memchr::memchr2(b'"', b'\\', far))
}

/// Where the first quote, backslash or `@` is.
fn end_of_name(bytes: &[u8]) -> Option<usize> {
    first_of([b'"', b'\\', b'@'], bytes, |far| memchr::memchr3(b'"', b'\\', b'@', far))
}

/// Where the first of some bytes is. To set up a search that is fast on long strings takes longer than to look through most of
/// them: without this an insert takes a fiftieth more instructions.
fn first_of<const N: usize>(
    wanted: [u8; N],
    bytes: &[u8],
    search: impl FnOnce(&[u8]) -> Option<usize>,
) -> Option<usize> {
    const SHORT_BLOCKS: usize = 4;
    let (blocks, _) = bytes.as_chunks();
    for (number, block) in blocks.iter().take(SHORT_BLOCKS).enumerate() {
        let block = u64::from_le_bytes(*block);
        let found = wanted.iter().fold(0, |found, &byte| found | first_zero(block ^ u64::from_le_bytes([byte; 8])));
        if found != 0 {
            return Some(8 * number + found.trailing_zeros() as usize / 8);
        }
    }
    let searched = 8 * blocks.len().min(SHORT_BLOCKS);
    search(&bytes[searched..]).map(|found| searched + found)
}

/// A word whose lowest bit that is set stands in the first byte that is zero; 0 if none is.
fn first_zero(word: u64) -> u64 {
    word.wrapping_sub(u64::from_le_bytes([0x01; 8])) & !word & u64::from_le_bytes([0x80; 8])
}

#[cfg(test)]
mod tests {
    use super::super::decode::decode_any;
    use super::*;
    use proptest::prelude::*;

    /// An entity and the bytes of its record.
    fn with_record(read: impl FnOnce(&mut Records) -> Option<EntityBody>) -> Option<(EntityBody, Vec<u8>)> {
        let mut records = Records::default();
        let entity = read(&mut records)?;
        let record = records.into_bytes()[entity.record.clone()].to_vec();
        Some((entity, record))
    }

    /// Texts that are entities or nearly so: pieces of JSON in any order between braces, or any order at all.
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
            "\"7\"",
            "\"2020-01-01\"",
            "\"1500-01-01\"",
            "\"Edm.Int64\"",
            "\"Edm.DateTime\"",
            "\"Edm.String\"",
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
        let name = prop::sample::select(vec![
            "a",
            "a@odata.type",
            "a@odata.type@odata.type",
            "b",
            "b@odata.type",
            "b@odata.other",
            "@odata.type",
            "PartitionKey",
            "PartitionKey@odata.type",
            "Timestamp",
            "Timestamp@odata.type",
            "odata.etag",
            "é",
            "\\n",
            "",
        ]);
        let member = (name, prop::collection::vec(piece, 1..3))
            .prop_map(|(name, value)| format!("\"{name}\" :{}", value.concat()));
        let object = prop::collection::vec(member, 0..5).prop_map(|members| format!(" {{{}}} ", members.join(", ")));
        prop_oneof![1 => any, 4 => object]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16 * 1024))]
        #[test]
        fn what_is_read_is_what_the_general_reader_reads(text in texts()) {
            if let Some(read) = with_record(|records| read(&text, records)) {
                prop_assert_eq!(with_record(|records| decode_any(text.as_bytes(), records).ok()), Some(read));
            }
        }
    }

    proptest! {
        #[test]
        fn ends_of_strings_are_found(bytes in prop::collection::vec(prop_oneof![20 => any::<u8>(), 1 => Just(b'"'), 1 => Just(b'\\'), 1 => Just(b'@')], 0..80)) {
            prop_assert_eq!(end_or_escape(&bytes), bytes.iter().position(|byte| matches!(byte, b'"' | b'\\')));
            prop_assert_eq!(end_of_name(&bytes), bytes.iter().position(|byte| matches!(byte, b'"' | b'\\' | b'@')));
        }
    }

    #[test]
    fn what_only_looks_like_it_is_left() {
        for text in [
            r#"{"a@odata.type":"Edm.Int64","b":1,"a":"1"}"#,
            r#"{"a":"1","b":1,"a@odata.type":"Edm.Int64"}"#,
            r#"{"Timestamp":"\x"}"#,
            r#"{"odata.etag":"\ud8"}"#,
            r#"{"b@odata.other":"\ud800"}"#,
            r#"{"A":"\"}"#,
            r#"{"A":1,"A":1}"#,
            r#"{"A":01}"#,
            r#"{"\u0041":1}"#,
            "{}",
        ] {
            assert_eq!(read(text, &mut Records::default()), None, "{text}");
        }
    }

    #[test]
    fn what_clients_send_is_read() {
        for text in [
            r#"{"PartitionKey":"p","RowKey":"r","A":1,"B":-0.5e+3,"C":true,"D":false,"E":null,"F":""}"#,
            r#"{"A": "\u00e9\\\"", "A@odata.type": "Edm.String", "B@odata.type": "Edm.Int64", "B": "7"}"#,
            r#"{"a@odata.type@odata.type":"Edm.Guid","a@odata.type":"Edm.Int64","a":"1"}"#,
            " {  \"A\" : \"é\" , \"Timestamp\" : \"x\" , \"odata.metadata\" : \"m\" } ",
            r#"{"PartitionKey":"p","PartitionKey@odata.type":"Edm.String","RowKey@odata.type":"Edm.String","RowKey":"r"}"#,
            r#"{"A":"AQID","A@odata.type":"Edm.Binary","B":"c9da6455-213d-42c9-9a79-3e9149a57833","B@odata.type":"Edm.Guid"}"#,
            r#"{"Timestamp":"2020-01-01T00:00:00Z","Timestamp@odata.type":"Edm.DateTime","A":"2020-01-01T00:00:00.1Z","A@odata.type":"Edm.DateTime"}"#,
        ] {
            let read = with_record(|records| read(text, records)).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(with_record(|records| decode_any(text.as_bytes(), records).ok()), Some(read), "{text}");
        }
    }
}
