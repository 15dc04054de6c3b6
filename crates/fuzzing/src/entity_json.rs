//! Entity JSON: bodies of requests, and of replies written from what was stored.
//!
//! What is read and within the limits is stored, written at every level of metadata, and read again: with types it must
//! be the same entity, and without them the same JSON values. A page of entities has the same members as each by itself.
//! Strings, Booleans and integers are also compared with what serde_json reads.

use partita_model::{EntityView, Property, Record, Records, ServiceError, Ticks, Value, check_limits};
use partita_wire::entity_json::{
    Context, EntityBody, EntityPage, KeyField, Metadata, SelectColumns, TablesContext, decode, decode_table_name,
    write_entity, write_table, write_tables,
};
use serde_json::Value as Json;

const BASE: &str = "http://127.0.0.1:10002/devstoreaccount1";
const ACCOUNT: &str = "devstoreaccount1";

/// Takes the body of an insert, or of Create Table.
pub fn entity_json(data: &[u8]) {
    check_table(data);
    let (body, bytes) = match read(data) {
        Ok(read) => read,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let record = Record::open(&bytes).expect("a record was encoded");
    let properties = record.to_properties().expect("a record was encoded");
    compare_with_serde(data, &properties);
    let text = |key: &Option<KeyField>| match key {
        Some(KeyField::Text(text)) => text.clone(),
        Some(KeyField::NotString) | None => String::new(),
    };
    let (partition_key, row_key) = (text(&body.partition_key), text(&body.row_key));
    if check_limits(&partition_key, &row_key, record).is_err() {
        return;
    }
    let entity = EntityView {
        partition_key: &partition_key,
        row_key: &row_key,
        timestamp: Ticks(638_000_000_000_000_000 + data.len() as u64),
        record,
    };
    let key = |text: &str| Some(KeyField::Text(text.to_owned()));
    let body = EntityBody { partition_key: key(&partition_key), row_key: key(&row_key), record: body.record };
    check_written(&entity, &(body, bytes.clone()));
    check_select(&entity, &properties);
}

/// An entity and the bytes of its record.
fn read(data: &[u8]) -> Result<(EntityBody, Vec<u8>), ServiceError> {
    let mut records = Records::default();
    let body = decode(data, &mut records)?;
    let record = records.into_bytes()[body.record.clone()].to_vec();
    Ok((body, record))
}

fn check_written(entity: &EntityView<'_>, expect: &(EntityBody, Vec<u8>)) {
    let alone = |metadata| {
        let mut out = Vec::new();
        write_entity(&mut out, &context(metadata, None), entity).expect("a record was encoded");
        out
    };
    for metadata in [Metadata::Minimal, Metadata::Full] {
        let out = alone(metadata);
        let read = read(&out).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&out)));
        assert_eq!(&read, expect, "{}", String::from_utf8_lossy(&out));
    }
    let mut bare = json(&alone(Metadata::None));
    let (minimal, full) = (json(&alone(Metadata::Minimal)), json(&alone(Metadata::Full)));
    for typed in [&minimal, &full] {
        let values = members(typed).filter(|(name, _)| !name.contains('@') && !name.starts_with("odata."));
        assert!(values.eq(members(&bare)), "{typed}\n{bare}");
    }
    assert_eq!(members(&bare).count(), 3 + entity.record.iter().count());

    // The second row is written with the labels of the first, the third without them.
    let empty = Record::encode(&[]);
    let other = EntityView { record: Record::open(&empty).expect("a record was encoded"), ..*entity };
    for (metadata, one) in
        [(Metadata::None, &mut bare), (Metadata::Minimal, &mut minimal.clone()), (Metadata::Full, &mut full.clone())]
    {
        let mut page = EntityPage::begin(context(metadata, None));
        for row in [entity, entity, &other, entity] {
            page.push(row).expect("a record was encoded");
        }
        assert_eq!(page.rows(), 4);
        let page = json(&page.finish());
        if let Json::Object(members) = one {
            members.remove("odata.metadata");
        }
        for row in [0, 1, 3] {
            assert_eq!(&page["value"][row], one);
        }
    }
}

fn check_select(entity: &EntityView<'_>, properties: &[Property]) {
    let mut names: Vec<&str> = properties.iter().map(|property| property.name.as_str()).step_by(2).collect();
    names.extend(["RowKey", "Missing", "Timestamp"]);
    names.sort_unstable();
    names.dedup();
    let select = SelectColumns::parse(&names.join(","));
    let mut out = Vec::new();
    write_entity(&mut out, &context(Metadata::None, Some(&select)), entity).expect("a record was encoded");
    let out = json(&out);
    assert_eq!(members(&out).count(), names.len());
    for name in names {
        let is_there = entity.property(name).expect("a record was encoded").is_some();
        assert_eq!(out[name] != Json::Null, is_there, "{name} in {out}");
    }
}

fn check_table(data: &[u8]) {
    match decode_table_name(data) {
        Ok(Some(name)) => {
            for metadata in [Metadata::None, Metadata::Minimal, Metadata::Full] {
                let ctx = TablesContext { base: BASE, account: ACCOUNT, metadata };
                let mut out = Vec::new();
                write_table(&mut out, &ctx, &name);
                assert_eq!(decode_table_name(&out), Ok(Some(name.clone())));
                out.clear();
                write_tables(&mut out, &ctx, [name.as_str(), "abc"]);
                assert_eq!(json(&out)["value"][0]["TableName"], Json::String(name.clone()));
            }
        }
        Ok(None) => {}
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// What both read from the same text.
fn compare_with_serde(data: &[u8], properties: &[Property]) {
    let data = data.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(data);
    // It refuses some that we ignore: numbers out of range and lone surrogates in members that nobody looks at.
    let Ok(read) = serde_json::from_slice::<Json>(data) else { return };
    for Property { name, value } in properties {
        match (&read[name.as_str()], value) {
            (Json::String(text), Value::String(value)) => assert_eq!(text, value),
            (Json::Bool(expect), Value::Boolean(value)) => assert_eq!(expect, value),
            // To serde_json `-0` is a double.
            (Json::Number(expect), Value::Int32(0) | Value::Int64(0)) => assert_eq!(expect.as_f64(), Some(0.0)),
            (Json::Number(expect), Value::Int32(value)) => assert_eq!(expect.as_i64(), Some((*value).into())),
            (Json::Number(expect), Value::Int64(value)) => assert_eq!(expect.as_i64(), Some(*value)),
            (Json::Number(_), Value::Double(_)) => {}
            (Json::String(_), other) => {
                assert!(read.get(format!("{name}@odata.type")).is_some(), "{name} is {other:?}")
            }
            (json, other) => panic!("{name} is {json}, read as {other:?}"),
        }
    }
}

fn context(metadata: Metadata, select: Option<&SelectColumns>) -> Context<'_> {
    Context { base: BASE, account: ACCOUNT, table: "People", metadata, select }
}

fn json(bytes: &[u8]) -> Json {
    serde_json::from_slice(bytes).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(bytes)))
}

fn members(json: &Json) -> impl Iterator<Item = (&String, &Json)> {
    json.as_object().into_iter().flatten()
}
