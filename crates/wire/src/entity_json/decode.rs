//! Request bodies: what a client wants stored.
//!
//! [`flat`] reads what programs write, and leaves everything else. Here the members are collected first, as slices of the body,
//! because `Name@odata.type` may stand anywhere. Numbers stay as they were written until their type is known; their digits
//! are read by the standard library, which rounds exactly.

use super::flat;
use super::members::{self, MEMBERS_MAX, Member, Token};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use partita_model::{EdmType, Guid, Records, ServiceError, Ticks, Value, ValueRef, limits};
use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

/// Ends the name of a member that gives the type of another.
pub(super) const TYPE_SUFFIX: &str = "@odata.type";

/// How much of a client's text an error quotes, in characters.
const QUOTED_CHARS_MAX: usize = 64;

/// What a client sent for an entity. Keys are not checked yet, since that depends on the operation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EntityBody {
    /// `PartitionKey`; `None` when absent or null.
    pub partition_key: Option<KeyField>,
    /// `RowKey`; `None` when absent or null.
    pub row_key: Option<KeyField>,
    /// Where among the records the client's own properties are, in the order in which they came, without those that are null.
    pub record: Range<usize>,
}

/// A key as it stands in a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyField {
    /// A string.
    Text(String),
    /// A value of another type, by its JSON token or by its annotation.
    NotString,
}

/// Reads the body of an insert, update or merge. Its properties go behind those of others. After an error there may be some of
/// them.
///
/// ```
/// use partita_model::{Record, Records, Value};
/// use partita_wire::entity_json::{KeyField, decode};
///
/// let mut records = Records::default();
/// let body = br#"{"PartitionKey":"UK","Rate":3.0,"Visits":"9","Visits@odata.type":"Edm.Int64"}"#;
/// let body = decode(body, &mut records).unwrap();
/// assert_eq!(body.partition_key, Some(KeyField::Text("UK".into())));
/// assert_eq!(body.row_key, None);
/// let properties = [("Rate", Value::Double(3.0)).into(), ("Visits", Value::Int64(9)).into()];
/// assert_eq!(records.into_bytes()[body.record], Record::encode(&properties));
/// ```
pub fn decode(body: &[u8], records: &mut Records) -> Result<EntityBody, ServiceError> {
    let start = records.end();
    match std::str::from_utf8(body).ok().and_then(|text| flat::read(text, records)) {
        Some(entity) => Ok(entity),
        None => {
            records.take_back(start);
            decode_any(body, records)
        }
    }
}

/// Reads any body, and says what is wrong with it.
pub(super) fn decode_any(body: &[u8], records: &mut Records) -> Result<EntityBody, ServiceError> {
    let members = Members::read(body)?;
    let mut entity = EntityBody::default();
    let start = records.begin();
    for (at, member) in members.list.iter().enumerate() {
        match &*member.name {
            "PartitionKey" => entity.partition_key = members.key(at)?,
            "RowKey" => entity.row_key = members.key(at)?,
            "Timestamp" => {}
            name if name.bytes().any(|byte| byte == b'@') || name.starts_with("odata.") => {}
            _ => members.write_property(at, records)?,
        }
    }
    Ok(EntityBody { record: start..records.end(), ..entity })
}

/// Reads the body of Create Table. `None` if it names no table.
pub fn decode_table_name(body: &[u8]) -> Result<Option<String>, ServiceError> {
    let members = Members::read(body)?;
    let Some(member) = members.list.iter().find(|member| member.name == "TableName") else { return Ok(None) };
    match member.token() {
        Token::Null => Ok(None),
        Token::Text => member.text_or_refuse().map(|text| Some(text.into_owned())),
        _ => Err(member.invalid("is not a string")),
    }
}

impl<'a> Member<'a> {
    fn text_or_refuse(&self) -> Result<Cow<'a, str>, ServiceError> {
        self.text().ok_or_else(|| self.invalid("has an escape that is no character"))
    }

    fn invalid(&self, what: impl fmt::Display) -> ServiceError {
        body_invalid(format_args!("Property '{}' {what}.", quoted(&self.name)))
    }
}

/// The members of a body in order.
struct Members<'a> {
    list: Vec<Member<'a>>,
    /// Those that annotate the type of another that is not next to them, by its name in order. Clients write the type beside
    /// the value, so that hardly ever there is one.
    apart: Vec<usize>,
}

impl<'a> Members<'a> {
    fn read(body: &'a [u8]) -> Result<Members<'a>, ServiceError> {
        let body = body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(body);
        let text = std::str::from_utf8(body)
            .map_err(|error| body_invalid(format_args!("The body is not UTF-8 at byte {}.", error.valid_up_to())))?;
        if !text.trim_ascii_start().starts_with('{') {
            return Err(body_invalid("The body is not a JSON object."));
        }
        let list = members::read(text)
            .map_err(|error| body_invalid(format_args!("The body is not well-formed JSON: {error}.")))?;
        if list.len() > MEMBERS_MAX {
            return Err(ServiceError::TooManyProperties);
        }
        Members::index(list)
    }

    fn index(list: Vec<Member<'a>>) -> Result<Members<'a>, ServiceError> {
        if let Some(name) = repeated_name(&list) {
            return Err(ServiceError::DuplicateProperties { name: quoted(name) });
        }
        if let Some(deep) = list.iter().find(|member| is_too_deep(member.raw)) {
            return Err(deep.invalid("is nested too deeply"));
        }
        let is_apart = |at: &usize| match annotated(&list[*at]) {
            Some(name) => !beside(&list, *at).any(|at| list[at].name == name),
            None => false,
        };
        let mut apart: Vec<_> = (0..list.len()).filter(is_apart).collect();
        apart.sort_unstable_by_key(|&at| annotated(&list[at]));
        Ok(Members { list, apart })
    }

    /// The name of the type a member is annotated with.
    fn type_name(&self, at: usize) -> Result<Option<Cow<'a, str>>, ServiceError> {
        let name = Some(&*self.list[at].name);
        let annotates = |at: &usize| annotated(&self.list[*at]) == name;
        let Some(found) = beside(&self.list, at).find(annotates).or_else(|| {
            let found = self.apart.binary_search_by_key(&name, |&at| annotated(&self.list[at]));
            found.map(|found| self.apart[found]).ok()
        }) else {
            return Ok(None);
        };
        let annotation = &self.list[found];
        match annotation.token() {
            Token::Text => annotation.text_or_refuse().map(Some),
            _ => Err(annotation.invalid("is not the name of a type")),
        }
    }

    fn key(&self, at: usize) -> Result<Option<KeyField>, ServiceError> {
        let member = &self.list[at];
        let is_string = self.type_name(at)?.is_none_or(|name| name == EdmType::String.name());
        match member.token() {
            Token::Null => Ok(None),
            Token::Text if is_string => Ok(Some(KeyField::Text(member.text_or_refuse()?.into_owned()))),
            Token::Nested => Err(member.invalid("is an object or an array")),
            _ => Ok(Some(KeyField::NotString)),
        }
    }

    /// Writes a property, unless it is null.
    fn write_property(&self, at: usize, records: &mut Records) -> Result<(), ServiceError> {
        let member = &self.list[at];
        let edm = match self.type_name(at)? {
            None => None,
            Some(name) => Some(
                EdmType::parse(&name)
                    .ok_or_else(|| member.invalid(format_args!("has the unknown type '{}'", quoted(&name))))?,
            ),
        };
        let mismatch = || {
            let name = edm.map_or("any type", EdmType::name);
            member.invalid(format_args!("has a value that is not of {name}: {}", quoted(member.raw)))
        };
        let value = match member.token() {
            Token::Null => return Ok(()),
            Token::Nested => return Err(member.invalid("is an object or an array")),
            Token::Boolean(value) if matches!(edm, None | Some(EdmType::Boolean)) => Value::Boolean(value),
            Token::Boolean(_) => return Err(mismatch()),
            Token::Number => number(member.raw, edm).ok_or_else(mismatch)?,
            Token::Text => {
                let text = member.text_or_refuse()?;
                match edm {
                    None | Some(EdmType::String) => {
                        records.push(&member.name, ValueRef::String(&text));
                        return Ok(());
                    }
                    Some(EdmType::DateTime) => {
                        let date = Ticks::parse_iso(&text).ok_or_else(mismatch)?;
                        if date < Ticks::MIN_DATE_TIME {
                            let name = quoted(&member.name);
                            return Err(ServiceError::DateOutOfRange { name, value: date.us_form() });
                        }
                        Value::DateTime(date)
                    }
                    Some(edm) => typed_text(&text, edm).ok_or_else(mismatch)?,
                }
            }
        };
        records.push(&member.name, value.as_ref());
        Ok(())
    }
}

/// A name that several members have.
fn repeated_name<'m>(list: &'m [Member<'_>]) -> Option<&'m str> {
    let mut seen = Names::default();
    if list.iter().all(|member| seen.add(&member.name).is_some()) {
        return None;
    }
    // Any order brings equal names together. Lengths differ mostly, and are compared in no time.
    let mut names: Vec<(usize, &str)> = list.iter().map(|member| (member.name.len(), &*member.name)).collect();
    names.sort_unstable();
    names.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0].1)
}

/// The names of the members that were met, each a hash of a few bytes: of some twenty it is nearly always seen that they differ.
pub(super) struct Names([u64; 64]);

impl Default for Names {
    fn default() -> Names {
        Names([0; 64])
    }
}

impl Names {
    /// Adds a name, if it is certain that it was not met before.
    pub(super) fn add(&mut self, name: &str) -> Option<()> {
        let (first, last) = (name.bytes().next().unwrap_or(0), name.bytes().next_back().unwrap_or(0));
        let middle = name.as_bytes().get(name.len() / 2).copied().unwrap_or(0);
        let mixed = [first, middle, last, name.len() as u8];
        let hash = u32::from_le_bytes(mixed).wrapping_mul(0x9E37_79B1) >> 20;
        let (word, bit) = (&mut self.0[hash as usize / 64], 1 << (hash % 64));
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new.then_some(())
    }
}

/// The places before and after a member.
fn beside(list: &[Member<'_>], at: usize) -> impl Iterator<Item = usize> {
    at.checked_sub(1).into_iter().chain((at + 1 < list.len()).then_some(at + 1))
}

/// The name of the member whose type a member gives, if it gives one.
fn annotated<'m>(member: &'m Member<'_>) -> Option<&'m str> {
    member.name.strip_suffix(TYPE_SUFFIX)
}

/// The value of a JSON number. Without a type, an integer that fits is an Int32 and every other number a Double.
pub(super) fn number(raw: &str, edm: Option<EdmType>) -> Option<Value> {
    match edm {
        None => raw.parse().map(Value::Int32).ok().or_else(|| double(raw)),
        Some(EdmType::Double) => double(raw),
        Some(EdmType::Int32) => raw.parse().map(Value::Int32).ok(),
        Some(EdmType::Int64) => raw.parse().map(Value::Int64).ok(),
        Some(_) => None,
    }
}

/// The value of a text that is known to be of a type, in the form in which it stands in JSON strings.
pub fn parse_value(text: &str, edm: EdmType) -> Option<Value> {
    match edm {
        EdmType::String => Some(Value::String(text.to_owned())),
        EdmType::DateTime => Ticks::parse_iso(text).filter(|date| *date >= Ticks::MIN_DATE_TIME).map(Value::DateTime),
        edm => typed_text(text, edm),
    }
}

/// The value of a JSON string annotated with a type other than String and DateTime.
pub(super) fn typed_text(text: &str, edm: EdmType) -> Option<Value> {
    match edm {
        EdmType::Binary => STANDARD.decode(text).map(Value::Binary).ok(),
        // Python writes "False" when it is given a pair of value and type.
        EdmType::Boolean => text.to_ascii_lowercase().parse().map(Value::Boolean).ok(),
        EdmType::Double => match text {
            "NaN" => Some(Value::Double(f64::NAN)),
            "Infinity" => Some(Value::Double(f64::INFINITY)),
            "-Infinity" => Some(Value::Double(f64::NEG_INFINITY)),
            // The words the standard library also takes for numbers, such as `inf`, are not among these characters.
            _ if text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E')) => {
                double(text)
            }
            _ => None,
        },
        EdmType::Guid => Guid::parse(text).map(Value::Guid),
        EdmType::Int32 => text.parse().map(Value::Int32).ok(),
        EdmType::Int64 => text.parse().map(Value::Int64).ok(),
        EdmType::DateTime | EdmType::String => None,
    }
}

/// A finite number.
fn double(text: &str) -> Option<Value> {
    text.parse().ok().filter(|value: &f64| value.is_finite()).map(Value::Double)
}

/// Whether brackets outside strings nest deeper than an entity could. Members that are ignored may hold anything.
fn is_too_deep(raw: &str) -> bool {
    if !raw.starts_with(['{', '[']) {
        return false;
    }
    // The object of the body is the first level.
    let (mut depth, mut in_string, mut escaped) = (1, false, false);
    for byte in raw.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => depth += 1,
            b'}' | b']' if !in_string => depth -= 1,
            _ => {}
        }
        if depth > limits::JSON_DEPTH_MAX {
            return true;
        }
    }
    false
}

fn body_invalid(sentence: impl fmt::Display) -> ServiceError {
    ServiceError::BodyInvalid { detail: format!("\n{sentence}") }
}

/// The beginning of a client's text, safe to repeat: short, and in one line.
fn quoted(text: &str) -> String {
    let shown = text.chars().take(QUOTED_CHARS_MAX).map(|c| if c.is_control() { '\u{FFFD}' } else { c });
    let mut shown: String = shown.collect();
    if text.chars().nth(QUOTED_CHARS_MAX).is_some() {
        shown.push_str("...");
    }
    shown
}
