//! Response bodies: stored entities and tables.
//!
//! One buffer, written once from left to right. The order of the members is the service's:
//!
//! ```text
//!             odata.metadata  odata.type  odata.id  odata.etag  odata.editLink  entity
//! none                                                                            x
//! minimal      (not in a page)                           x                        x, types before values
//! full         (not in a page)     x          x          x            x           x, Timestamp's type too
//! ```

use super::{SelectColumns, double};
use crate::json_text::{write_escaped, write_stored, write_string};
use crate::url::write_entity_path;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use partita_model::{CorruptRecord, ETag, EdmType, EntityView, Guid, Property, StoredValue, TimeText, ValueRef};

/// How much a reply says about itself: the `odata=` parameter of `Accept`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Metadata {
    /// `nometadata`: values only.
    None,
    /// `minimalmetadata`, the default: types that JSON cannot tell, ETags, the context.
    #[default]
    Minimal,
    /// `fullmetadata`: names and addresses of everything.
    Full,
}

impl Metadata {
    /// The value of the `odata=` parameter.
    pub fn name(self) -> &'static str {
        match self {
            Metadata::None => "nometadata",
            Metadata::Minimal => "minimalmetadata",
            Metadata::Full => "fullmetadata",
        }
    }

    /// The `Content-Type` of a reply at this level.
    pub fn content_type(self) -> &'static str {
        match self {
            Metadata::None => "application/json;odata=nometadata;streaming=true;charset=utf-8",
            Metadata::Minimal => "application/json;odata=minimalmetadata;streaming=true;charset=utf-8",
            Metadata::Full => "application/json;odata=fullmetadata;streaming=true;charset=utf-8",
        }
    }
}

/// What a reply with entities is about.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The address of the service without a final slash, `http://127.0.0.1:10002/devstoreaccount1`.
    pub base: &'a str,
    /// The name of the account.
    pub account: &'a str,
    /// The name of the table in the case in which it was created.
    pub table: &'a str,
    /// How much the reply says about itself.
    pub metadata: Metadata,
    /// The columns asked for, if `$select` was given.
    pub select: Option<&'a SelectColumns>,
}

/// What a reply with tables is about.
#[derive(Clone, Copy, Debug)]
pub struct TablesContext<'a> {
    /// The address of the service without a final slash.
    pub base: &'a str,
    /// The name of the account.
    pub account: &'a str,
    /// How much the reply says about itself.
    pub metadata: Metadata,
}

/// Writes the body of a reply with one entity. What was written before an error is of no use.
pub fn write_entity(out: &mut Vec<u8>, ctx: &Context<'_>, entity: &EntityView<'_>) -> Result<(), CorruptRecord> {
    // Growing the buffer step by step would cost as much as filling it.
    out.reserve(entity.record.size_bytes() * 5 / 4 + 512);
    let mut object = Object::begin(out);
    if ctx.metadata != Metadata::None {
        object.name("odata.metadata");
        write_context(object.out, ctx, "/@Element");
    }
    write_members(&mut object, ctx, entity, None)?;
    object.end();
    Ok(())
}

/// Writes an entity as requests and files have it: with the type of every value that JSON cannot tell. That includes every
/// Double, since there are readers that take `5.0` for an integer. [`decode`](super::decode()) reads the same back.
pub fn write_typed(out: &mut Vec<u8>, partition_key: &str, row_key: &str, properties: &[Property]) {
    let mut object = Object::begin(out);
    object.name("PartitionKey");
    object.quoted(&[partition_key]);
    object.name("RowKey");
    object.quoted(&[row_key]);
    for Property { name, value } in properties {
        let value = value.as_ref();
        let edm = match value {
            ValueRef::Double(_) => Some(EdmType::Double),
            value => annotated_type(Metadata::Minimal, value.into()),
        };
        object.comma();
        let written =
            write_label(object.out, name.as_bytes(), edm).and_then(|()| write_value(object.out, value.into()));
        written.expect("what came as text is text");
    }
    object.end();
}

/// A page that is not small is mostly a large one. Each time it outgrows its memory it may have to be copied, so that happens
/// twice at the most: a query of 100 rows takes a fourteenth fewer instructions than with doubling where that had to copy.
const PAGE_BYTES: usize = 16 << 10;
const GROWTH: usize = 16;

/// The body of a reply with a page of entities, growing row by row.
#[derive(Debug)]
pub struct EntityPage<'a> {
    ctx: Context<'a>,
    out: Vec<u8>,
    rows: usize,
    labels: Labels,
}

impl<'a> EntityPage<'a> {
    /// Starts a page.
    pub fn begin(ctx: Context<'a>) -> EntityPage<'a> {
        let mut out = Vec::with_capacity(PAGE_BYTES);
        out.push(b'{');
        if ctx.metadata != Metadata::None {
            out.extend_from_slice(b"\"odata.metadata\":");
            write_context(&mut out, &ctx, "");
            out.push(b',');
        }
        out.extend_from_slice(b"\"value\":[");
        EntityPage { ctx, out, rows: 0, labels: Labels::default() }
    }

    /// Adds a row. After an error the page is as it was before.
    pub fn push(&mut self, entity: &EntityView<'_>) -> Result<(), CorruptRecord> {
        let before = self.out.len();
        if before > self.out.capacity() / 4 * 3 {
            self.out.reserve(GROWTH * before);
        }
        if self.rows > 0 {
            self.out.push(b',');
        }
        let mut object = Object::begin(&mut self.out);
        let written = write_members(&mut object, &self.ctx, entity, Some(&mut self.labels));
        object.end();
        match written {
            Ok(()) => self.rows += 1,
            Err(_) => self.out.truncate(before),
        }
        written
    }

    /// How many rows the page has.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// How many bytes the page has so far.
    pub fn bytes(&self) -> usize {
        self.out.len()
    }

    /// Ends the page and gives its bytes.
    pub fn finish(mut self) -> Vec<u8> {
        self.out.extend_from_slice(b"]}");
        self.out
    }
}

/// Writes the body of a reply with one table.
pub fn write_table(out: &mut Vec<u8>, ctx: &TablesContext<'_>, table: &str) {
    let mut object = Object::begin(out);
    if ctx.metadata != Metadata::None {
        object.name("odata.metadata");
        object.quoted(&[ctx.base, "/$metadata#Tables/@Element"]);
    }
    write_table_members(&mut object, ctx, table);
    object.end();
}

/// Writes the body of a reply with a list of tables.
pub fn write_tables<'t>(out: &mut Vec<u8>, ctx: &TablesContext<'_>, tables: impl IntoIterator<Item = &'t str>) {
    let mut object = Object::begin(out);
    if ctx.metadata != Metadata::None {
        object.name("odata.metadata");
        object.quoted(&[ctx.base, "/$metadata#Tables"]);
    }
    object.name("value");
    object.out.push(b'[');
    for (row, table) in tables.into_iter().enumerate() {
        if row > 0 {
            object.out.push(b',');
        }
        let mut inner = Object::begin(object.out);
        write_table_members(&mut inner, ctx, table);
        inner.end();
    }
    object.out.push(b']');
    object.end();
}

fn write_table_members(object: &mut Object<'_>, ctx: &TablesContext<'_>, table: &str) {
    if ctx.metadata == Metadata::Full {
        object.name("odata.type");
        object.quoted(&[ctx.account, ".Tables"]);
        object.name("odata.id");
        object.quoted(&[ctx.base, "/Tables('", table, "')"]);
        object.name("odata.editLink");
        object.quoted(&["Tables('", table, "')"]);
    }
    object.name("TableName");
    object.quoted(&[table]);
}

fn write_context(out: &mut Vec<u8>, ctx: &Context<'_>, element: &str) {
    out.push(b'"');
    for piece in [ctx.base, "/$metadata#", ctx.table, element] {
        write_escaped(out, piece);
    }
    if let Some(select) = ctx.select {
        out.extend_from_slice(b"&$select=");
        write_escaped(out, select.context());
    }
    out.push(b'"');
}

fn write_members(
    object: &mut Object<'_>,
    ctx: &Context<'_>,
    entity: &EntityView<'_>,
    mut labels: Option<&mut Labels>,
) -> Result<(), CorruptRecord> {
    let mut write_label = |object: &mut Object<'_>, place, name: &[u8], edm| {
        object.comma();
        match &mut labels {
            Some(labels) => labels.write(object.out, place, name, edm),
            None => write_label(object.out, name, edm),
        }
    };
    let time = entity.timestamp.text();
    let is_full = ctx.metadata == Metadata::Full;
    if is_full {
        object.name("odata.type");
        object.quoted(&[ctx.account, ".", ctx.table]);
        object.name("odata.id");
        object.quoted_with(|out| {
            write_escaped(out, ctx.base);
            out.push(b'/');
            write_entity_path(out, ctx.table, entity.partition_key, entity.row_key);
        });
    }
    if ctx.metadata != Metadata::None {
        object.name("odata.etag");
        object.quoted_with(|out| ETag::write_of(&time, out, "\\\""));
    }
    if is_full {
        object.name("odata.editLink");
        object.quoted_with(|out| write_entity_path(out, ctx.table, entity.partition_key, entity.row_key));
    }
    let columns = ctx.select.and_then(SelectColumns::names);
    let Some(columns) = columns else {
        object.name("PartitionKey");
        object.quoted(&[entity.partition_key]);
        object.name("RowKey");
        object.quoted(&[entity.row_key]);
        write_timestamp(object, is_full, &time);
        for (place, property) in entity.record.stored().enumerate() {
            let (name, value) = property?;
            write_label(object, place, name, annotated_type(ctx.metadata, value))?;
            write_value(object.out, value)?;
        }
        return Ok(());
    };
    for (place, name) in columns.iter().enumerate() {
        match entity.property(name)? {
            _ if name == "Timestamp" => write_timestamp(object, is_full, &time),
            Some(value) => {
                write_label(object, place, name.as_bytes(), annotated_type(ctx.metadata, value.into()))?;
                write_value(object.out, value.into())?;
            }
            None => {
                write_label(object, place, name.as_bytes(), None)?;
                object.out.extend_from_slice(b"null");
            }
        }
    }
    Ok(())
}

fn write_timestamp(object: &mut Object<'_>, is_full: bool, time: &TimeText) {
    if is_full {
        object.name("Timestamp@odata.type");
        object.quoted(&[EdmType::DateTime.name()]);
    }
    object.name("Timestamp");
    object.quoted_with(|out| out.extend_from_slice(time.as_bytes()));
}

/// The type that stands before a property, if JSON cannot tell it.
fn annotated_type(metadata: Metadata, value: StoredValue<'_>) -> Option<EdmType> {
    let StoredValue::Other(value) = value else { return None };
    let needs_type = match value {
        ValueRef::Binary(_) | ValueRef::DateTime(_) | ValueRef::Guid(_) | ValueRef::Int64(_) => true,
        ValueRef::Double(value) => !value.is_finite(),
        ValueRef::Boolean(_) | ValueRef::Int32(_) | ValueRef::String(_) => false,
    };
    (needs_type && metadata != Metadata::None).then(|| value.edm_type())
}

/// What stands before the values of a row, `,"Views@odata.type":"Edm.Int64","Views":` and so on, kept by place for the next
/// row of the page. Rows of a page mostly have the same properties in the same order, and a comparison and a copy take
/// a tenth of the instructions of making a label anew.
#[derive(Debug, Default)]
struct Labels(Vec<Label>);

#[derive(Debug)]
struct Label {
    name: Vec<u8>,
    edm: Option<EdmType>,
    text: Vec<u8>,
}

impl Labels {
    fn write(
        &mut self,
        out: &mut Vec<u8>,
        place: usize,
        name: &[u8],
        edm: Option<EdmType>,
    ) -> Result<(), CorruptRecord> {
        match self.0.get(place) {
            Some(label) if label.edm == edm && label.name == name => out.extend_from_slice(&label.text),
            _ => {
                let start = out.len();
                write_label(out, name, edm)?;
                self.0.truncate(place);
                self.0.push(Label { name: name.to_vec(), edm, text: out[start..].to_vec() });
            }
        }
        Ok(())
    }
}

fn write_label(out: &mut Vec<u8>, name: &[u8], edm: Option<EdmType>) -> Result<(), CorruptRecord> {
    out.push(b'"');
    let start = out.len();
    write_stored(out, name)?;
    if let Some(edm) = edm {
        let end = out.len();
        out.extend_from_slice(b"@odata.type\":\"");
        out.extend_from_slice(edm.name().as_bytes());
        out.extend_from_slice(b"\",\"");
        out.extend_from_within(start..end);
    }
    out.extend_from_slice(b"\":");
    Ok(())
}

fn write_value(out: &mut Vec<u8>, value: StoredValue<'_>) -> Result<(), CorruptRecord> {
    let quoted = |out: &mut Vec<u8>, text: &[u8]| {
        out.push(b'"');
        out.extend_from_slice(text);
        out.push(b'"');
    };
    match value {
        StoredValue::Text(text) => {
            out.push(b'"');
            write_stored(out, text)?;
            out.push(b'"');
        }
        StoredValue::Other(value) => match value {
            ValueRef::Binary(bytes) => write_base64(out, bytes),
            ValueRef::Boolean(true) => out.extend_from_slice(b"true"),
            ValueRef::Boolean(false) => out.extend_from_slice(b"false"),
            ValueRef::DateTime(date) => quoted(out, date.text().as_bytes()),
            ValueRef::Double(value) if value.is_nan() => out.extend_from_slice(b"\"NaN\""),
            ValueRef::Double(f64::INFINITY) => out.extend_from_slice(b"\"Infinity\""),
            ValueRef::Double(f64::NEG_INFINITY) => out.extend_from_slice(b"\"-Infinity\""),
            ValueRef::Double(value) => double::write(out, value),
            ValueRef::Guid(guid) => quoted(out, &guid_text(guid)),
            ValueRef::Int32(value) => out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes()),
            ValueRef::Int64(value) => quoted(out, itoa::Buffer::new().format(value).as_bytes()),
            ValueRef::String(text) => write_string(out, text),
        },
    }
    Ok(())
}

/// As the model prints it, without a formatter call per byte: pages of a thousand rows have thousands of these.
fn guid_text(guid: Guid) -> [u8; 36] {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let mut text = *b"00000000-0000-0000-0000-000000000000";
    for (byte, at) in guid.0.into_iter().zip([0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34]) {
        text[at] = HEX[usize::from(byte >> 4)];
        text[at + 1] = HEX[usize::from(byte & 15)];
    }
    text
}

fn write_base64(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(b'"');
    let start = out.len();
    let length = base64::encoded_len(bytes.len(), true).expect("a value is far smaller than the address space");
    out.resize(start + length, 0);
    let written = STANDARD.encode_slice(bytes, &mut out[start..]).expect("the length was computed for these bytes");
    debug_assert_eq!(written, length);
    out.push(b'"');
}

/// An object being written: sees to the commas.
struct Object<'o> {
    out: &'o mut Vec<u8>,
    is_empty: bool,
}

impl<'o> Object<'o> {
    fn begin(out: &'o mut Vec<u8>) -> Object<'o> {
        out.push(b'{');
        Object { out, is_empty: true }
    }

    fn comma(&mut self) {
        if !std::mem::take(&mut self.is_empty) {
            self.out.push(b',');
        }
    }

    /// The name of a member, which needs no escapes.
    fn name(&mut self, name: &str) {
        self.comma();
        self.out.push(b'"');
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
    }

    fn quoted(&mut self, pieces: &[&str]) {
        self.quoted_with(|out| pieces.iter().for_each(|piece| write_escaped(out, piece)));
    }

    /// A string whose content `write` gives; it must need no escapes, or bring them.
    fn quoted_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.out.push(b'"');
        write(self.out);
        self.out.push(b'"');
    }

    fn end(self) {
        self.out.push(b'}');
    }
}
