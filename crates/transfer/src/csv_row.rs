//! Entities as comma-separated values (RFC 4180), with two columns for each property: its value and its type.
//!
//! ```text
//! PartitionKey,RowKey,Name,Name@type,Age,Age@type
//! UK,1,Ann,Edm.String,39,Edm.Int32
//! UK,2,,Edm.String,,
//! ```
//!
//! The columns are in the way of Azure Storage Explorer. The second row has an empty Name and no Age: a property is there if its
//! type is. Rows may differ in the type of a property. Where the properties of a row stand in another order than the
//! columns, a last column `@order` names them in theirs, with a blank between; most files have no such column.
//!
//! A file of others may leave out types. A value without a type is a string, and an empty one without a type is absent.

use crate::Entity;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use csv::StringRecord;
use partita_model::{EdmType, Property, ValueRef};
use partita_wire::entity_json::parse_value;
use std::collections::HashMap;

const PARTITION_KEY: &str = "PartitionKey";
const ROW_KEY: &str = "RowKey";
const TIMESTAMP: &str = "Timestamp";
const TYPE_SUFFIX: &str = "@type";
const ORDER: &str = "@order";

/// The columns of a file that is written: known when every entity was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Columns {
    names: Vec<String>,
    places: HashMap<String, usize>,
    has_order: bool,
}

impl Columns {
    /// Takes an entity into account.
    pub fn see(&mut self, entity: &Entity) {
        let mut last = None;
        for Property { name, .. } in &entity.properties {
            let place = match self.places.get(name) {
                Some(&place) => place,
                None => {
                    self.places.insert(name.clone(), self.names.len());
                    self.names.push(name.clone());
                    self.names.len() - 1
                }
            };
            self.has_order |= last.is_some_and(|last| place < last);
            last = Some(place);
        }
    }

    /// The first line.
    pub fn header(&self) -> Vec<String> {
        let mut header = vec![PARTITION_KEY.to_owned(), ROW_KEY.to_owned()];
        header.extend(self.names.iter().flat_map(|name| [name.clone(), format!("{name}{TYPE_SUFFIX}")]));
        header.extend(self.has_order.then(|| ORDER.to_owned()));
        header
    }

    /// The line of an entity that was seen.
    pub fn row(&self, entity: &Entity) -> Vec<String> {
        let mut row = vec![String::new(); 2 + 2 * self.names.len() + usize::from(self.has_order)];
        row[0].clone_from(&entity.partition_key);
        row[1].clone_from(&entity.row_key);
        let places: Vec<usize> = entity.properties.iter().map(|property| self.places[&property.name]).collect();
        for (place, Property { value, .. }) in places.iter().zip(&entity.properties) {
            let value = value.as_ref();
            row[2 + 2 * place] = text(value);
            row[3 + 2 * place] = value.edm_type().name().to_owned();
        }
        if self.has_order && !places.is_sorted() {
            let names: Vec<&str> = entity.properties.iter().map(|property| property.name.as_str()).collect();
            row[2 + 2 * self.names.len()] = names.join(" ");
        }
        row
    }
}

fn text(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Binary(bytes) => STANDARD.encode(bytes),
        ValueRef::Boolean(value) => value.to_string(),
        ValueRef::DateTime(date) => date.to_string(),
        ValueRef::Double(f64::INFINITY) => "Infinity".into(),
        ValueRef::Double(f64::NEG_INFINITY) => "-Infinity".into(),
        ValueRef::Double(value) if value.is_nan() => "NaN".into(),
        // The fewest digits that read back as the same number, and always a point or an exponent.
        ValueRef::Double(value) => format!("{value:?}"),
        ValueRef::Guid(guid) => guid.to_string(),
        ValueRef::Int32(value) => value.to_string(),
        ValueRef::Int64(value) => value.to_string(),
        ValueRef::String(text) => text.to_owned(),
    }
}

/// What the columns of a file that is read mean.
#[derive(Clone, Debug)]
pub struct Header {
    partition_key: usize,
    row_key: usize,
    /// Name, place of the value, place of the type.
    properties: Vec<(String, usize, Option<usize>)>,
    order: Option<usize>,
}

impl Header {
    /// Reads the first line. An error says what is wrong.
    pub fn read(line: &StringRecord) -> Result<Header, String> {
        let find = |name: &str| line.iter().position(|column| column == name);
        let twice = line.iter().enumerate().find(|(at, name)| find(name) != Some(*at));
        if let Some((_, name)) = twice {
            return Err(format!("the column '{name}' is there twice"));
        }
        let key = |name: &str| find(name).ok_or(format!("there is no column {name}"));
        let is_property = |name: &str| {
            ![PARTITION_KEY, ROW_KEY, TIMESTAMP, ORDER].contains(&name)
                && !name.is_empty()
                && !name.ends_with(TYPE_SUFFIX)
        };
        let properties = line.iter().enumerate().filter(|(_, name)| is_property(name));
        let properties = properties.map(|(at, name)| (name.to_owned(), at, find(&format!("{name}{TYPE_SUFFIX}"))));
        Ok(Header {
            partition_key: key(PARTITION_KEY)?,
            row_key: key(ROW_KEY)?,
            properties: properties.collect(),
            order: find(ORDER),
        })
    }

    /// Reads a row. An error says what is wrong.
    pub fn entity(&self, row: &StringRecord) -> Result<Entity, String> {
        let cell = |at: usize| row.get(at).ok_or("it has fewer cells than the first line");
        let mut properties = Vec::new();
        for (name, at, type_at) in &self.properties {
            let (text, edm) = (cell(*at)?, type_at.map_or(Ok(""), cell)?);
            let edm = match edm {
                "" if text.is_empty() => continue,
                "" => EdmType::String,
                edm => EdmType::parse(edm).ok_or_else(|| format!("'{edm}' is not a type"))?,
            };
            let value = parse_value(text, edm).ok_or_else(|| {
                let shown: String = text.chars().take(64).collect();
                format!("{name} is not of {}: '{}'", edm.name(), shown.escape_debug())
            })?;
            properties.push(Property { name: name.clone(), value });
        }
        let order = self.order.map_or(Ok(""), cell)?;
        if !order.is_empty() {
            let places: HashMap<&str, usize> = order.split(' ').enumerate().map(|(at, name)| (name, at)).collect();
            properties.sort_by_key(|property| places.get(property.name.as_str()).copied().unwrap_or(usize::MAX));
        }
        Ok(Entity {
            partition_key: cell(self.partition_key)?.to_owned(),
            row_key: cell(self.row_key)?.to_owned(),
            properties,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{entity, one_of_each};
    use proptest::prelude::*;

    fn write(entities: &[Entity]) -> Vec<u8> {
        let mut columns = Columns::default();
        entities.iter().for_each(|entity| columns.see(entity));
        let mut out = csv::Writer::from_writer(Vec::new());
        out.write_record(columns.header()).unwrap();
        entities.iter().for_each(|entity| out.write_record(columns.row(entity)).unwrap());
        out.into_inner().unwrap()
    }

    fn read(bytes: &[u8]) -> Result<Vec<Entity>, String> {
        let mut rows = csv::ReaderBuilder::new().flexible(true).from_reader(bytes);
        let header = Header::read(rows.headers().map_err(|error| error.to_string())?)?;
        rows.records().map(|row| header.entity(&row.map_err(|error| error.to_string())?)).collect()
    }

    proptest! {
        #[test]
        fn round_trips(entities in proptest::collection::vec(entity(), 0..6)) {
            prop_assert_eq!(read(&write(&entities)), Ok(entities));
        }
    }

    #[test]
    fn the_form() {
        let one = one_of_each();
        let mut other =
            Entity { partition_key: "p".into(), row_key: "r".into(), properties: one.properties[10..].to_vec() };
        other.properties.reverse();
        let text = String::from_utf8(write(&[one.clone(), other.clone()])).unwrap();
        let mut lines = text.lines();
        assert!(lines.next().unwrap().starts_with("PartitionKey,RowKey,Binary,Binary@type,Boolean,Boolean@type,"));
        assert!(lines.next().unwrap().starts_with(
            "\"a\"\"b\",,AP8=,Edm.Binary,true,Edm.Boolean,2021-12-09T00:25:32.7684043Z,Edm.DateTime,5.0,Edm.Double,"
        ));
        assert!(text.ends_with(",,Edm.String,\"a,\"\"b\"\"\r\nc\",Edm.String,Text Empty\n"), "{text}");
        assert_eq!(read(text.as_bytes()), Ok(vec![one, other]));
    }

    /// Files of spreadsheets and of Storage Explorer.
    #[test]
    fn files_of_others() {
        let rows = read(b"\xEF\xBB\xBFRowKey,PartitionKey,Timestamp,A,B\r\n1,p,2020-01-01T00:00:00Z,x,\r\n2,p,,,y\r\n")
            .unwrap();
        let text = |name, text: &str| Property::from((name, partita_model::Value::String(text.into())));
        assert_eq!(rows[0].properties, [text("A", "x")]);
        assert_eq!((rows[1].row_key.as_str(), &rows[1].properties), ("2", &vec![text("B", "y")]));
        for (bytes, says) in [
            (&b"PartitionKey,A\n"[..], "no column RowKey"),
            (b"PartitionKey,RowKey,A,A\n", "twice"),
            (b"PartitionKey,RowKey,A,A@type\np,r,x,Edm.Int32\n", "not of Edm.Int32: 'x'"),
            (b"PartitionKey,RowKey,A,A@type\np,r,x,Int\n", "'Int' is not a type"),
            (b"PartitionKey,RowKey,A,A@type\np\n", "fewer cells"),
        ] {
            let error = read(bytes).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
    }
}
