//! Response bodies as exact bytes, and back through the reader.

use super::{
    Context, EntityPage, KeyField, Metadata, SelectColumns, TablesContext, decode, write_entity, write_table,
    write_tables,
};
use partita_model::{CorruptRecord, EntityView, Guid, Property, Record, Records, Ticks, Value};
use proptest::prelude::*;

const BASE: &str = "http://127.0.0.1:10002/acct";

fn people() -> Vec<Property> {
    vec![
        ("Name", Value::String("Ann \"A\"\n\u{E9}".into())).into(),
        ("Age", Value::Int32(39)).into(),
        ("Visits", Value::Int64(933_311_100)).into(),
        ("Born", Value::DateTime(Ticks::parse_iso("1973-10-04T00:00:00.120Z").unwrap())).into(),
        ("Pic", Value::Binary(vec![1, 2, 3, 4])).into(),
        ("Ref", Value::Guid(Guid::parse("c9da6455-213d-42c9-9a79-3e9149a57833").unwrap())).into(),
        ("Ok", Value::Boolean(true)).into(),
        ("No", Value::Boolean(false)).into(),
        ("Rate", Value::Double(3.0)).into(),
        ("Far", Value::Double(1.5e24)).into(),
        ("Nan", Value::Double(f64::NAN)).into(),
        ("Inf", Value::Double(f64::INFINITY)).into(),
        ("Neg", Value::Double(f64::NEG_INFINITY)).into(),
    ]
}

fn view(record: &[u8]) -> EntityView<'_> {
    EntityView {
        partition_key: "O'N",
        row_key: "a b",
        timestamp: Ticks::parse_iso("2026-01-02T03:04:05.0607Z").unwrap(),
        record: Record::open(record).unwrap(),
    }
}

fn print(metadata: Metadata, select: Option<&str>, properties: &[Property]) -> (String, String) {
    let select = select.map(SelectColumns::parse);
    let ctx = Context { base: BASE, account: "acct", table: "People", metadata, select: select.as_ref() };
    let record = Record::encode(properties);
    let mut one = Vec::new();
    write_entity(&mut one, &ctx, &view(&record)).unwrap();
    let mut page = EntityPage::begin(ctx);
    page.push(&view(&record)).unwrap();
    page.push(&view(&record)).unwrap();
    assert_eq!(page.rows(), 2);
    (String::from_utf8(one).unwrap(), String::from_utf8(page.finish()).unwrap())
}

fn check(metadata: Metadata, select: Option<&str>, properties: &[Property], context: &str, entity: &str) {
    let (one, page) = print(metadata, select, properties);
    let (suffix, lead) = match context {
        "" => (String::new(), String::new()),
        context => (
            format!("\"odata.metadata\":\"{}\",", context.replacen("#People", "#People/@Element", 1)),
            format!("\"odata.metadata\":\"{context}\","),
        ),
    };
    assert_eq!(one, format!("{{{suffix}{entity}}}"));
    assert_eq!(page, format!("{{{lead}\"value\":[{{{entity}}},{{{entity}}}]}}"));
}

#[test]
fn no_metadata() {
    check(
        Metadata::None,
        None,
        &people(),
        "",
        concat!(
            r#""PartitionKey":"O'N","RowKey":"a b","Timestamp":"2026-01-02T03:04:05.0607Z","#,
            r#""Name":"Ann \"A\"\n"#,
            "\u{E9}",
            r#"","Age":39,"Visits":"933311100","Born":"1973-10-04T00:00:00.12Z","#,
            r#""Pic":"AQIDBA==","Ref":"c9da6455-213d-42c9-9a79-3e9149a57833","Ok":true,"No":false,"Rate":3.0,"Far":1.5E+24,"#,
            r#""Nan":"NaN","Inf":"Infinity","Neg":"-Infinity""#,
        ),
    );
}

const TYPED: &str = concat!(
    r#""Name":"Ann \"A\"\n"#,
    "\u{E9}",
    r#"","Age":39,"Visits@odata.type":"Edm.Int64","Visits":"933311100","#,
    r#""Born@odata.type":"Edm.DateTime","Born":"1973-10-04T00:00:00.12Z","#,
    r#""Pic@odata.type":"Edm.Binary","Pic":"AQIDBA==","#,
    r#""Ref@odata.type":"Edm.Guid","Ref":"c9da6455-213d-42c9-9a79-3e9149a57833","#,
    r#""Ok":true,"No":false,"Rate":3.0,"Far":1.5E+24,"Nan@odata.type":"Edm.Double","Nan":"NaN","#,
    r#""Inf@odata.type":"Edm.Double","Inf":"Infinity","Neg@odata.type":"Edm.Double","Neg":"-Infinity""#,
);

#[test]
fn minimal_metadata() {
    let entity = [
        r#""odata.etag":"W/\"datetime'2026-01-02T03%3A04%3A05.0607Z'\"","#,
        r#""PartitionKey":"O'N","RowKey":"a b","Timestamp":"2026-01-02T03:04:05.0607Z","#,
        TYPED,
    ];
    check(Metadata::Minimal, None, &people(), "http://127.0.0.1:10002/acct/$metadata#People", &entity.concat());
}

#[test]
fn full_metadata() {
    let entity = [
        r#""odata.type":"acct.People","#,
        r#""odata.id":"http://127.0.0.1:10002/acct/People(PartitionKey='O''N',RowKey='a%20b')","#,
        r#""odata.etag":"W/\"datetime'2026-01-02T03%3A04%3A05.0607Z'\"","#,
        r#""odata.editLink":"People(PartitionKey='O''N',RowKey='a%20b')","#,
        r#""PartitionKey":"O'N","RowKey":"a b","#,
        r#""Timestamp@odata.type":"Edm.DateTime","Timestamp":"2026-01-02T03:04:05.0607Z","#,
        TYPED,
    ];
    check(Metadata::Full, None, &people(), "http://127.0.0.1:10002/acct/$metadata#People", &entity.concat());
}

#[test]
fn selected_columns() {
    let etag = r#""odata.etag":"W/\"datetime'2026-01-02T03%3A04%3A05.0607Z'\"""#;
    let context = |select| format!("http://127.0.0.1:10002/acct/$metadata#People&$select={select}");
    for (select, shown, members) in [
        ("Age", "Age", r#","Age":39"#),
        ("Visits%2CAge", "Visits,Age", r#","Visits@odata.type":"Edm.Int64","Visits":"933311100","Age":39"#),
        ("Age,%20Ok", "Age,%20Ok", r#","Age":39,"Ok":true"#),
        ("Missing,Age", "Missing,Age", r#","Missing":null,"Age":39"#),
        ("age", "age", r#","age":null"#),
        ("RowKey,Timestamp", "RowKey,Timestamp", r#","RowKey":"a b","Timestamp":"2026-01-02T03:04:05.0607Z""#),
        ("a\"b", "a\\\"b", r#","a\"b":null"#),
    ] {
        check(Metadata::Minimal, Some(select), &people(), &context(shown), &format!("{etag}{members}"));
    }
    check(Metadata::None, Some("Missing"), &people(), "", r#""Missing":null"#);
    let (all, _) = print(Metadata::Minimal, None, &people());
    let (star, _) = print(Metadata::Minimal, Some("*"), &people());
    assert_eq!(star, all.replacen("@Element", "@Element&$select=*", 1));
}

#[test]
fn empty_pages() {
    for (metadata, expect) in [
        (Metadata::None, r#"{"value":[]}"#),
        (Metadata::Minimal, r#"{"odata.metadata":"http://127.0.0.1:10002/acct/$metadata#People","value":[]}"#),
        (Metadata::Full, r#"{"odata.metadata":"http://127.0.0.1:10002/acct/$metadata#People","value":[]}"#),
    ] {
        let ctx = Context { base: BASE, account: "acct", table: "People", metadata, select: None };
        assert_eq!(String::from_utf8(EntityPage::begin(ctx).finish()).unwrap(), expect);
    }
}

#[test]
fn a_damaged_row_leaves_the_page_whole() {
    let ctx = Context { base: BASE, account: "acct", table: "People", metadata: Metadata::None, select: None };
    let good = Record::encode(&[("a", Value::Int32(1)).into()]);
    let mut page = EntityPage::begin(ctx);
    page.push(&view(&good)).unwrap();
    assert_eq!(page.push(&view(&good[..good.len() - 1])), Err(CorruptRecord));
    page.push(&view(&good)).unwrap();
    let body: serde_json::Value = serde_json::from_slice(&page.finish()).unwrap();
    assert_eq!(body["value"].as_array().unwrap().len(), 2);
}

#[test]
fn tables() {
    let full = r#""odata.type":"acct.Tables","odata.id":"http://127.0.0.1:10002/acct/Tables('People')","odata.editLink":"Tables('People')","#;
    for (metadata, one, list, element) in [
        (Metadata::None, "", "", ""),
        (
            Metadata::Minimal,
            r#""odata.metadata":"http://127.0.0.1:10002/acct/$metadata#Tables/@Element","#,
            r#""odata.metadata":"http://127.0.0.1:10002/acct/$metadata#Tables","#,
            "",
        ),
        (
            Metadata::Full,
            r#""odata.metadata":"http://127.0.0.1:10002/acct/$metadata#Tables/@Element","#,
            r#""odata.metadata":"http://127.0.0.1:10002/acct/$metadata#Tables","#,
            full,
        ),
    ] {
        let ctx = TablesContext { base: BASE, account: "acct", metadata };
        let mut out = Vec::new();
        write_table(&mut out, &ctx, "People");
        assert_eq!(String::from_utf8(out).unwrap(), format!(r#"{{{one}{element}"TableName":"People"}}"#));
        let mut out = Vec::new();
        write_tables(&mut out, &ctx, ["People", "Abc"]);
        let second = element.replace("People", "Abc");
        let expect = format!(r#"{{{list}"value":[{{{element}"TableName":"People"}},{{{second}"TableName":"Abc"}}]}}"#);
        assert_eq!(String::from_utf8(out).unwrap(), expect);
        let mut out = Vec::new();
        write_tables(&mut out, &ctx, []);
        assert_eq!(String::from_utf8(out).unwrap(), format!(r#"{{{list}"value":[]}}"#));
    }
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..50).prop_map(Value::Binary),
        any::<bool>().prop_map(Value::Boolean),
        (Ticks::MIN_DATE_TIME.0..=Ticks::MAX.0).prop_map(|ticks| Value::DateTime(Ticks(ticks))),
        any::<f64>().prop_filter("NaN is not equal to itself", |value| !value.is_nan()).prop_map(Value::Double),
        any::<[u8; 16]>().prop_map(|bytes| Value::Guid(Guid(bytes))),
        any::<i32>().prop_map(Value::Int32),
        any::<i64>().prop_map(Value::Int64),
        any::<String>().prop_map(Value::String),
    ]
}

fn properties() -> impl Strategy<Value = Vec<Property>> {
    let named = proptest::collection::btree_map("[A-Za-z_][A-Za-z0-9_\u{E9}\u{4E00}]{0,20}", value(), 0..12);
    named.prop_map(|named| named.into_iter().map(|(name, value)| Property { name, value }).collect())
}

/// What a reader without annotations makes of a value.
fn untyped(value: Value) -> Value {
    let text = match value {
        Value::Binary(bytes) => {
            use base64::Engine;
            base64::engine::general_purpose::STANDARD.encode(bytes)
        }
        Value::DateTime(date) => date.to_string(),
        Value::Guid(guid) => guid.to_string(),
        Value::Int64(number) => number.to_string(),
        Value::Double(f64::INFINITY) => "Infinity".to_owned(),
        Value::Double(f64::NEG_INFINITY) => "-Infinity".to_owned(),
        other => return other,
    };
    Value::String(text)
}

proptest! {
    #[test]
    fn what_is_written_reads_back(properties in properties(), partition_key in any::<String>(), row_key in any::<String>()) {
        let record = Record::encode(&properties);
        let entity = EntityView { partition_key: &partition_key, row_key: &row_key, ..view(&record) };
        for metadata in [Metadata::None, Metadata::Minimal, Metadata::Full] {
            let ctx = Context { base: BASE, account: "acct", table: "People", metadata, select: None };
            let mut out = Vec::new();
            write_entity(&mut out, &ctx, &entity).unwrap();
            let mut records = Records::default();
            let body = decode(&out, &mut records).unwrap();
            prop_assert_eq!(body.partition_key, Some(KeyField::Text(partition_key.clone())));
            prop_assert_eq!(body.row_key, Some(KeyField::Text(row_key.clone())));
            let expect: Vec<_> = match metadata {
                Metadata::None => {
                    let untype = |property: Property| Property { value: untyped(property.value), ..property };
                    properties.iter().cloned().map(untype).collect()
                }
                _ => properties.clone(),
            };
            prop_assert_eq!(&records.into_bytes()[body.record], Record::encode(&expect));
        }
    }

    #[test]
    fn damaged_rows_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100), ticks in any::<u64>()) {
        let mut record = vec![1];
        record.extend(bytes);
        let ctx = Context { base: BASE, account: "acct", table: "People", metadata: Metadata::Full, select: None };
        let entity = EntityView { timestamp: Ticks(ticks), ..view(&record) };
        let _ = write_entity(&mut Vec::new(), &ctx, &entity);
    }
}
