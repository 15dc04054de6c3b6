//! The rules of the service, on a map in memory.

use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// A property as JSON has it, with its annotation.
pub(crate) type Typed = (Value, Option<&'static str>);

/// What a client sends for an entity besides the keys.
#[derive(Clone, Debug)]
pub(crate) enum Body {
    Good(BTreeMap<&'static str, Typed>),
    /// With a property that is null, which is no property.
    WithNull(BTreeMap<&'static str, Typed>),
    /// So many that two of another letter are too many together.
    Many(char),
    TooMany,
    WrongType(Typed),
    Twice,
    NotJson,
    BadName,
    LongName,
    LongText,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Condition {
    Any,
    /// The ETag it has; if it is absent, the one it last had.
    Current,
    /// One that it had before, or else one that never was.
    Stale,
    Foreign,
    Malformed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Insert,
    Replace,
    Merge,
    Delete,
}

#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) partition: &'static str,
    pub(crate) row: &'static str,
    pub(crate) verb: Verb,
    /// Without one a replace or a merge is an upsert. An insert has none.
    pub(crate) condition: Option<Condition>,
    pub(crate) body: Body,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Which {
    All,
    Partition(&'static str),
    Point(&'static str, &'static str),
    RowsFrom(&'static str),
    AIs(i64),
    AAtLeast(i64),
    BIsTrue,
}

pub(crate) const LONG: &str = {
    const BYTES: [u8; 1025] = [b'k'; 1025];
    match std::str::from_utf8(&BYTES) {
        Ok(text) => text,
        Err(_) => panic!(),
    }
};
/// Keys are ordered by UTF-16 unit.
pub(crate) fn units(text: &str) -> Vec<u16> {
    text.encode_utf16().collect()
}

pub(crate) type Key = (Vec<u16>, Vec<u16>);

pub(crate) fn key_of(partition: &str, row: &str) -> Key {
    (units(partition), units(row))
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entity {
    pub(crate) partition: String,
    pub(crate) row: String,
    pub(crate) etag: String,
    pub(crate) properties: BTreeMap<String, Typed>,
}

/// A status and a code, with the index of the change if there are several.
pub(crate) type Refusal = (usize, u16, &'static str);

/// The rules of the service.
#[derive(Debug, Default)]
pub(crate) struct Model {
    /// By lower-case name: the name as it was given, and the entities.
    pub(crate) tables: BTreeMap<String, (String, BTreeMap<Key, Entity>)>,
    /// Every ETag an entity with these keys ever had, whatever its table.
    pub(crate) history: BTreeMap<Key, Vec<String>>,
}

impl Body {
    /// As it is sent, with what stands before it in the object.
    pub(crate) fn text(&self, keys: &str) -> String {
        let mut members = keys.to_owned();
        let mut push = |name: &str, (value, edm): &Typed| {
            let comma = if members.is_empty() { "" } else { "," };
            members.push_str(&format!("{comma}{}:{value}", json!(name)));
            if let Some(edm) = edm {
                members.push_str(&format!(r#",{}:"{edm}""#, json!(format!("{name}@odata.type"))));
            }
        };
        match self {
            Body::Good(properties) => properties.iter().for_each(|(name, value)| push(name, value)),
            Body::WithNull(properties) => {
                push("Nothing", &(Value::Null, Some("Edm.Int64")));
                properties.iter().for_each(|(name, value)| push(name, value));
            }
            Body::Many(letter) => {
                (0..200).for_each(|number| push(&format!("{letter}{number}"), &(json!(number), None)))
            }
            Body::TooMany => (0..253).for_each(|number| push(&format!("z{number}"), &(json!(number), None))),
            Body::WrongType(value) => push("A", value),
            Body::Twice => (0..2).for_each(|number| push("A", &(json!(number), None))),
            Body::NotJson => return format!("{{{members}"),
            Body::BadName => push("a-b", &(json!(1), None)),
            Body::LongName => push(&"n".repeat(256), &(json!(1), None)),
            Body::LongText => push("A", &(json!("x".repeat(32_769)), None)),
        }
        format!("{{{members}}}")
    }

    /// What can be told from the body alone, before anything else is looked at.
    pub(crate) fn malformed(&self) -> Option<(u16, &'static str)> {
        match self {
            Body::WrongType(_) | Body::NotJson => Some((400, "InvalidInput")),
            Body::Twice => Some((400, "DuplicatePropertiesSpecified")),
            _ => None,
        }
    }

    /// Its properties, or why an entity cannot have them.
    pub(crate) fn properties(&self) -> Result<BTreeMap<String, Typed>, &'static str> {
        match self {
            Body::Good(properties) | Body::WithNull(properties) => {
                Ok(properties.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect())
            }
            Body::Many(letter) => {
                Ok((0..200).map(|number| (format!("{letter}{number}"), (json!(number), None))).collect())
            }
            Body::TooMany => Err("TooManyProperties"),
            Body::BadName => Err("PropertyNameInvalid"),
            Body::LongName => Err("PropertyNameTooLong"),
            Body::LongText => Err("PropertyValueTooLarge"),
            Body::WrongType(_) | Body::Twice | Body::NotJson => unreachable!("refused before"),
        }
    }
}

impl Which {
    pub(crate) fn text(self) -> Option<String> {
        let quoted = |key: &str| key.replace('\'', "''");
        Some(match self {
            Which::All => return None,
            Which::Partition(partition) => format!("PartitionKey eq '{}'", quoted(partition)),
            Which::Point(partition, row) => {
                format!("PartitionKey eq '{}' and RowKey eq '{}'", quoted(partition), quoted(row))
            }
            Which::RowsFrom(row) => format!("RowKey ge '{}'", quoted(row)),
            Which::AIs(number) => format!("A eq {number}"),
            Which::AAtLeast(number) => format!("A ge {number}L"),
            Which::BIsTrue => "B eq true".to_owned(),
        })
    }

    pub(crate) fn holds(self, entity: &Entity) -> bool {
        // Numbers compare by value, whatever their types. A property that is missing or no number compares with none.
        let number = |name| match entity.properties.get(name) {
            Some((value, None)) => value.as_f64(),
            Some((value, Some("Edm.Int64"))) => value.as_str().and_then(|text| text.parse().ok()),
            _ => None,
        };
        match self {
            Which::All => true,
            Which::Partition(partition) => entity.partition == partition,
            Which::Point(partition, row) => entity.partition == partition && entity.row == row,
            Which::RowsFrom(row) => units(&entity.row) >= units(row),
            Which::AIs(wanted) => number("A") == Some(wanted as f64),
            Which::AAtLeast(wanted) => number("A").is_some_and(|number| number >= wanted as f64),
            Which::BIsTrue => entity.properties.get("B") == Some(&(json!(true), None)),
        }
    }
}

impl Change {
    pub(crate) fn is_upsert(&self) -> bool {
        matches!(self.verb, Verb::Replace | Verb::Merge) && self.condition.is_none()
    }

    /// What is wrong with a key, which differs by where it stands and whether the entity must be there.
    pub(crate) fn bad_key(&self) -> Option<(u16, &'static str)> {
        let fault = |key: &str| match (self.verb, key) {
            (_, LONG) if self.verb == Verb::Insert || self.is_upsert() => Some((400, "KeyValueTooLarge")),
            (_, LONG) => Some((404, "ResourceNotFound")),
            (Verb::Insert, "x/y" | "x\\y" | "x#y") => Some((400, "OutOfRangeInput")),
            (_, "x/y" | "x\\y") => Some((400, "InvalidInput")),
            (_, "x#y") => Some((400, "OutOfRangeInput")),
            _ => None,
        };
        fault(self.partition).or_else(|| fault(self.row))
    }
}

impl Model {
    pub(crate) fn entities(&self, table: &str) -> Result<&BTreeMap<Key, Entity>, (u16, &'static str)> {
        self.tables.get(&table.to_lowercase()).map(|(_, entities)| entities).ok_or((404, "TableNotFound"))
    }

    /// The header for a condition.
    pub(crate) fn if_match(&self, table: &str, change: &Change) -> Option<String> {
        let key = key_of(change.partition, change.row);
        let none = Vec::new();
        let history = self.history.get(&key).unwrap_or(&none);
        let present = self.entities(table).ok().and_then(|entities| entities.get(&key));
        let current = present.map(|entity| &entity.etag).or(history.last());
        let never = "W/\"datetime'2001-01-01T00%3A00%3A00Z'\"".to_owned();
        Some(match change.condition? {
            Condition::Any => "*".to_owned(),
            Condition::Current => current.cloned().unwrap_or(never),
            Condition::Stale => history.iter().rev().find(|etag| Some(*etag) != current).cloned().unwrap_or(never),
            Condition::Foreign => "W/\"foreign\"".to_owned(),
            Condition::Malformed => "malformed".to_owned(),
        })
    }

    /// What becomes of each entity, or the change that fails first. Checks go from what a change is by itself, over what the
    /// transaction is as a whole, to what is stored.
    pub(crate) fn apply(
        &self,
        table: &str,
        changes: &[Change],
    ) -> Result<Vec<Option<BTreeMap<String, Typed>>>, Refusal> {
        let at = |index| move |(status, code)| (index, status, code);
        for (index, change) in changes.iter().enumerate() {
            self.entities(table).map_err(at(index))?;
            let body = if change.verb == Verb::Delete { None } else { change.body.malformed() };
            let condition = match (change.verb, change.condition) {
                (Verb::Delete, None) => Some((400, "MissingRequiredHeader")),
                (_, Some(Condition::Malformed)) => Some((400, "InvalidInput")),
                _ => None,
            };
            body.or(condition).map_or(Ok(()), Err).map_err(at(index))?;
        }
        let mut rows = BTreeSet::new();
        for (index, change) in changes.iter().enumerate() {
            if change.partition != changes[0].partition {
                return Err((index, 400, "CommandsInBatchActOnDifferentPartitions"));
            }
            if !rows.insert(change.row) {
                return Err((index, 400, "InvalidDuplicateRow"));
            }
        }
        for (index, change) in changes.iter().enumerate() {
            change.bad_key().map_or(Ok(()), Err).map_err(at(index))?;
        }
        let one = |(index, change)| self.after(table, change).map_err(at(index));
        changes.iter().enumerate().map(one).collect()
    }

    pub(crate) fn after(
        &self,
        table: &str,
        change: &Change,
    ) -> Result<Option<BTreeMap<String, Typed>>, (u16, &'static str)> {
        let present = self.entities(table)?.get(&key_of(change.partition, change.row));
        let met = match (self.if_match(table, change), present) {
            (None, _) => Ok(()),
            (Some(_), None) => Err((404, "ResourceNotFound")),
            (Some(if_match), Some(entity)) if if_match == "*" || if_match == entity.etag => Ok(()),
            (Some(_), Some(_)) => Err((412, "UpdateConditionNotSatisfied")),
        };
        let properties = || change.body.properties().map_err(|code| (400, code));
        match change.verb {
            Verb::Insert => match (properties()?, present) {
                (properties, None) => Ok(Some(properties)),
                (_, Some(_)) => Err((409, "EntityAlreadyExists")),
            },
            Verb::Replace => properties().and_then(|properties| met.map(|()| Some(properties))),
            Verb::Merge => {
                met?;
                // The limits hold for the result.
                let mut merged = present.map_or(BTreeMap::new(), |entity| entity.properties.clone());
                merged.extend(properties()?);
                if merged.len() > 252 { Err((400, "TooManyProperties")) } else { Ok(Some(merged)) }
            }
            Verb::Delete => met.map(|()| None),
        }
    }
}
