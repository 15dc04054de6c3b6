//! Request bodies, case by case.

use super::{KeyField, decode_table_name};
use partita_model::{Guid, Property, Record, Records, ServiceError, Ticks, Value, limits};
use proptest::prelude::*;

fn date(text: &str) -> Value {
    Value::DateTime(Ticks::parse_iso(text).unwrap())
}

fn text(text: &str) -> Value {
    Value::String(text.into())
}

/// What was read, with the properties.
#[derive(Debug, PartialEq)]
struct Read {
    partition_key: Option<KeyField>,
    row_key: Option<KeyField>,
    properties: Vec<Property>,
}

fn decode(body: &[u8]) -> Result<Read, ServiceError> {
    // It has a neighbour, which stays as it is.
    let mut records = Records::default();
    super::decode(br#"{"Neighbour":true}"#, &mut records)?;
    let neighbour = records.clone().into_bytes();
    let body = super::decode(body, &mut records)?;
    let bytes = records.into_bytes();
    assert!(bytes.starts_with(&neighbour) && body.record == (neighbour.len()..bytes.len()));
    let properties = Record::open(&bytes[body.record]).and_then(Record::to_properties).unwrap();
    Ok(Read { partition_key: body.partition_key, row_key: body.row_key, properties })
}

/// The value of the only property `P` of a body with these members.
fn property(members: &str) -> Result<Option<Value>, ServiceError> {
    let body = decode(format!("{{{members}}}").as_bytes())?;
    let properties = body.properties;
    assert!(properties.len() <= 1 && properties.iter().all(|property| property.name == "P"), "{members}");
    Ok(properties.into_iter().next().map(|property| property.value))
}

fn check(value: &str, expect: Option<Value>) {
    assert_eq!(property(&format!(r#""P":{value}"#)), Ok(expect), "{value}");
}

fn check_typed(edm: &str, value: &str, expect: Value) {
    for members in [format!(r#""P@odata.type":"{edm}","P":{value}"#), format!(r#""P":{value},"P@odata.type":"{edm}""#)]
    {
        match (property(&members), &expect) {
            // By bits, for the sake of NaN and of the sign of zero.
            (Ok(Some(Value::Double(read))), Value::Double(expect)) => assert_eq!(read.to_bits(), expect.to_bits()),
            (read, expect) => assert_eq!(read, Ok(Some(expect.clone())), "{members}"),
        }
    }
}

fn check_refused(members: &str) {
    match property(members) {
        Err(ServiceError::BodyInvalid { detail }) => {
            assert!(detail.starts_with('\n') && detail.lines().count() == 2 && detail.len() < 300, "{detail}");
        }
        other => panic!("{members}: {other:?}"),
    }
}

#[test]
fn types_are_inferred() {
    check(r#""""#, Some(text("")));
    check(r#""2021-01-01T00:00:00Z""#, Some(text("2021-01-01T00:00:00Z")));
    check(r#""  a\n\u00e9\ud83d\ude00  ""#, Some(text("  a\n\u{E9}\u{1F600}  ")));
    check("true", Some(Value::Boolean(true)));
    check("false", Some(Value::Boolean(false)));
    check("3", Some(Value::Int32(3)));
    check("-0", Some(Value::Int32(0)));
    check("3.0", Some(Value::Double(3.0)));
    check("3e0", Some(Value::Double(3.0)));
    check("3E2", Some(Value::Double(300.0)));
    check("2147483647", Some(Value::Int32(i32::MAX)));
    check("-2147483648", Some(Value::Int32(i32::MIN)));
    check("2147483648", Some(Value::Double(2_147_483_648.0)));
    check("-2147483649", Some(Value::Double(-2_147_483_649.0)));
    check("123456789012345678901234567890", Some(Value::Double(123_456_789_012_345_680_000_000_000_000.0)));
    check("0.30000000000000004", Some(Value::Double(0.1 + 0.2)));
    check("1.7976931348623157e308", Some(Value::Double(f64::MAX)));
    check("5e-324", Some(Value::Double(5e-324)));
    check("null", None);
}

#[test]
fn annotations_give_the_type() {
    check_typed("Edm.String", r#""x""#, text("x"));
    check_typed("Edm.Boolean", "true", Value::Boolean(true));
    check_typed("Edm.Boolean", r#""false""#, Value::Boolean(false));
    check_typed("Edm.Boolean", r#""True""#, Value::Boolean(true));
    check_typed("Edm.Int32", "7", Value::Int32(7));
    check_typed("Edm.Int32", r#""-7""#, Value::Int32(-7));
    check_typed("Edm.Int64", r#""9223372036854775807""#, Value::Int64(i64::MAX));
    check_typed("Edm.Int64", "-9223372036854775808", Value::Int64(i64::MIN));
    check_typed("Edm.Double", "5", Value::Double(5.0));
    check_typed("Edm.Double", "-0.0", Value::Double(-0.0));
    check_typed("Edm.Double", r#""0""#, Value::Double(0.0));
    check_typed("Edm.Double", r#""1.23456789012346e+24""#, Value::Double(1.234_567_890_123_46e24));
    check_typed("Edm.Double", r#""NaN""#, Value::Double(f64::NAN));
    check_typed("Edm.Double", r#""Infinity""#, Value::Double(f64::INFINITY));
    check_typed("Edm.Double", r#""-Infinity""#, Value::Double(f64::NEG_INFINITY));
    check_typed("Edm.DateTime", r#""1973-10-04T00:00:00Z""#, date("1973-10-04"));
    check_typed("Edm.DateTime", r#""1601-01-01T00:00:00""#, date("1601-01-01"));
    check_typed("Edm.DateTime", r#""2020-01-01T02:00:00+02:00""#, date("2020-01-01"));
    check_typed("Edm.DateTime", r#""9999-12-31T23:59:59.9999999Z""#, Value::DateTime(Ticks::MAX));
    check_typed(
        "Edm.Guid",
        r#""C9DA6455-213d-42c9-9a79-3e9149a57833""#,
        Value::Guid(Guid::parse("c9da6455-213d-42c9-9a79-3e9149a57833").unwrap()),
    );
    check_typed("Edm.Binary", r#""AQID""#, Value::Binary(vec![1, 2, 3]));
    check_typed("Edm.Binary", r#""+/8=""#, Value::Binary(vec![0xFB, 0xFF]));
    check_typed("Edm.Binary", r#""+\/8=""#, Value::Binary(vec![0xFB, 0xFF]));
    check_typed("Edm.Binary", r#""""#, Value::Binary(Vec::new()));
}

#[test]
fn values_that_do_not_fit_their_type_are_refused() {
    for (edm, value) in [
        ("Edm.Boolean", r#""not a bool""#),
        ("Edm.Boolean", "1"),
        ("Edm.Boolean", r#""""#),
        ("Edm.Int32", "2147483648"),
        ("Edm.Int32", r#""2147483648""#),
        ("Edm.Int32", "1.0"),
        ("Edm.Int32", "true"),
        ("Edm.Int64", r#""9223372036854775808""#),
        ("Edm.Int64", r#""1.5""#),
        ("Edm.Int64", "1e3"),
        ("Edm.Int64", r#""""#),
        ("Edm.Double", r#""inf""#),
        ("Edm.Double", r#""nan""#),
        ("Edm.Double", r#""1e999""#),
        ("Edm.Double", "1e999"),
        ("Edm.Double", r#""""#),
        ("Edm.Double", "true"),
        ("Edm.DateTime", r#""""#),
        ("Edm.DateTime", r#""yesterday""#),
        ("Edm.DateTime", r#""2021-02-30T00:00:00Z""#),
        ("Edm.DateTime", "5"),
        ("Edm.Guid", r#""c9da6455""#),
        ("Edm.Guid", "1"),
        ("Edm.Binary", r#""AQI""#),
        ("Edm.Binary", r#""AQI-""#),
        ("Edm.Binary", r#""A Q I D""#),
        ("Edm.Binary", "1"),
        ("Edm.String", "1"),
        ("Edm.String", "true"),
        ("Edm.Null", r#""x""#),
        ("Edm.Int16", "1"),
        ("edm.string", r#""x""#),
        ("", r#""x""#),
    ] {
        check_refused(&format!(r#""P":{value},"P@odata.type":"{edm}""#));
        check_refused(&format!(r#""P@odata.type":"{edm}","P":{value}"#));
    }
    check_refused(r#""P":1,"P@odata.type":5"#);
    check_refused(r#""P":1,"P@odata.type":null"#);
    check_refused(r#""P":{}"#);
    check_refused(r#""P":[1]"#);
    check_refused(r#""P":1e999"#);
    check_refused(r#""P":"\ud800""#);
    check_refused(r#""P":"\udc00\ud800""#);
    check_refused(r#""PartitionKey":{}"#);
}

#[test]
fn early_dates_are_out_of_range() {
    for (value, shown) in
        [("1600-12-31T23:59:59.9999999Z", "12/31/1600 23:59:59"), ("0001-01-01T00:00:00Z", "01/01/0001 00:00:00")]
    {
        let error = ServiceError::DateOutOfRange { name: "P".into(), value: shown.into() };
        assert_eq!(property(&format!(r#""P":"{value}","P@odata.type":"Edm.DateTime""#)), Err(error));
    }
}

#[test]
fn members_that_are_ignored() {
    for members in [
        r#""Timestamp":null"#,
        r#""Timestamp":5"#,
        r#""Timestamp":"x","Timestamp@odata.type":"Edm.DateTime""#,
        r#""Timestamp":{"a":[1]}"#,
        r#""odata.etag":"W/\"x\"","odata.metadata":"m","odata.type":{}"#,
        r#""P@odata.type":"Edm.Int64""#,
        r#""P@odata.type":"nonsense""#,
        r#""P":null,"P@odata.type":"Edm.Int64""#,
        r#""P@odata.other":[1,2]"#,
        r#""@odata.etag":"x""#,
        "",
    ] {
        assert_eq!(property(members), Ok(None), "{members}");
    }
}

#[test]
fn keys() {
    for (members, expect) in [
        (r#""PartitionKey":"a""#, Some(KeyField::Text("a".into()))),
        (r#""PartitionKey":"""#, Some(KeyField::Text(String::new()))),
        (r#""PartitionKey":"a","PartitionKey@odata.type":"Edm.String""#, Some(KeyField::Text("a".into()))),
        (r#""PartitionKey@odata.type":"Edm.Guid","PartitionKey":"a""#, Some(KeyField::NotString)),
        (r#""PartitionKey@odata.type":"Edm.Nothing","PartitionKey":"a""#, Some(KeyField::NotString)),
        (r#""PartitionKey":1"#, Some(KeyField::NotString)),
        (r#""PartitionKey":true"#, Some(KeyField::NotString)),
        (r#""PartitionKey":null"#, None),
        ("", None),
    ] {
        let body = decode(format!("{{{members}}}").as_bytes()).unwrap();
        assert_eq!((body.partition_key, body.row_key), (expect.clone(), None), "{members}");
        assert_eq!(body.properties, []);
        let members = members.replace("PartitionKey", "RowKey");
        let body = decode(format!("{{{members}}}").as_bytes()).unwrap();
        assert_eq!((body.partition_key, body.row_key), (None, expect), "{members}");
    }
    // Only this spelling is the key.
    let body = decode(br#"{"partitionkey":"a","ETag":"b"}"#).unwrap();
    assert_eq!(body.partition_key, None);
    assert_eq!(body.properties, [("partitionkey", text("a")).into(), ("ETag", text("b")).into()]);
}

#[test]
fn a_member_comes_once() {
    for (members, name) in [
        (r#""P":1,"P":2"#, "P"),
        (r#""P":null,"P":null"#, "P"),
        (r#""P":1,"\u0050":2"#, "P"),
        (r#""P@odata.type":"Edm.Int32","P":1,"P@odata.type":"Edm.Int32""#, "P@odata.type"),
        (r#""RowKey":"a","RowKey":"a""#, "RowKey"),
        (r#""Timestamp":"a","Timestamp":"a""#, "Timestamp"),
    ] {
        assert_eq!(property(members), Err(ServiceError::DuplicateProperties { name: name.into() }), "{members}");
    }
    // Names differ by case.
    assert_eq!(decode(br#"{"p":1,"P":2}"#).unwrap().properties.len(), 2);
}

#[test]
fn bodies_that_are_no_object() {
    let deep =
        format!(r#"{{"odata.x":{}1{}}}"#, "[".repeat(limits::JSON_DEPTH_MAX), "]".repeat(limits::JSON_DEPTH_MAX));
    for body in [
        "",
        " ",
        "1",
        "\"{}\"",
        "[]",
        "null",
        "{",
        "{\"P\"}",
        "{\"P\":}",
        "{\"P\":1,}",
        "{'P':1}",
        "{P:1}",
        "{\"P\":01}",
        "{\"P\":+1}",
        "{\"P\":.5}",
        "{\"P\":5.}",
        "{\"P\":NaN}",
        "{\"P\":1}}",
        "{\"P\":1} x",
        "{\"P\":\"\n\"}",
        "{\"P\":\"\\x\"}",
        "{\"\\ud800\":1}",
        &deep,
        "\u{FEFF}\u{FEFF}{}",
    ] {
        let error = decode(body.as_bytes()).expect_err(body);
        let text = error.to_string();
        assert_eq!(error.code(), "InvalidInput", "{body}");
        assert!(
            text.starts_with("An error occurred while processing this request.\nThe body") || text.contains("deep")
        );
        assert!(text.len() < 300 && text.lines().count() == 2, "{text}");
    }
    assert!(decode(b"{\"P\":\"\xFF\"}").is_err());
    assert!(decode("\u{FEFF} {\"P\":1}\r\n".as_bytes()).is_ok());
    let just = format!(r#"{{"odata.x":{}1{}}}"#, "[".repeat(31), "]".repeat(31));
    assert!(decode(just.as_bytes()).is_ok());
}

#[test]
fn a_flood_is_refused_in_bounded_memory() {
    let nested = format!("{{\"odata.a\":{}", "[".repeat(1_000_000));
    assert!(decode(nested.as_bytes()).is_err());
    let members: Vec<String> = (0..100_000).map(|n| format!("\"p{n}\":1")).collect();
    let many = format!("{{{}}}", members.join(","));
    assert_eq!(decode(many.as_bytes()), Err(ServiceError::TooManyProperties));
    let long = format!("{{\"{}\":1e999}}", "x".repeat(1_000_000));
    assert!(decode(long.as_bytes()).unwrap_err().to_string().len() < 300);
}

#[test]
fn order_is_kept() {
    let body = decode(br#"{"b":1,"RowKey":"r","a":"2","c@odata.type":"Edm.Int64","c":"3","a@odata.type":"Edm.Int64"}"#);
    let expect = [("b", Value::Int32(1)).into(), ("a", Value::Int64(2)).into(), ("c", Value::Int64(3)).into()];
    assert_eq!(body.unwrap().properties, expect);
}

#[test]
fn table_names() {
    for (body, expect) in [
        (r#"{"TableName":"People"}"#, Ok(Some("People"))),
        (r#"{"odata.metadata":"x","TableName":"a\u0062c"}"#, Ok(Some("abc"))),
        (r#"{"TableName":""}"#, Ok(Some(""))),
        (r#"{"TableName":null}"#, Ok(None)),
        ("{}", Ok(None)),
        (r#"{"TableName":5}"#, Err("InvalidInput")),
        (r#"{"TableName":["x"]}"#, Err("InvalidInput")),
        (r#"{"TableName":"a","TableName":"b"}"#, Err("DuplicatePropertiesSpecified")),
        ("", Err("InvalidInput")),
    ] {
        let name = decode_table_name(body.as_bytes());
        let name = name.as_ref().map(Option::as_deref).map_err(ServiceError::code);
        assert_eq!(name, expect, "{body}");
    }
}

proptest! {
    #[test]
    fn a_type_may_stand_anywhere(members in Just(vec![
        r#""a":"1""#, r#""a@odata.type":"Edm.Int64""#, r#""b":"2""#, r#""b@odata.type":"Edm.Int64""#,
        r#""aa":"3""#, r#""aa@odata.type":"Edm.Int32""#, r#""c":"4""#, r#""d@odata.type":"Edm.Nothing""#,
        r#""a@odata.type@odata.type":"Edm.Guid""#,
    ]).prop_shuffle()) {
        let body = decode(format!("{{{}}}", members.join(",")).as_bytes()).unwrap();
        let mut read = body.properties;
        read.sort_by(|one, other| one.name.cmp(&other.name));
        let expect = [("a", Value::Int64(1)), ("aa", Value::Int32(3)), ("b", Value::Int64(2)), ("c", text("4"))];
        prop_assert_eq!(read, expect.map(Property::from));
    }

    #[test]
    fn any_bytes_are_answered(body in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = (decode(&body), decode_table_name(&body));
    }

    #[test]
    fn damaged_json_is_answered(at in 0usize..130, byte in any::<u8>()) {
        let mut body = br#"{"PartitionKey":"UK","RowKey":"1","a@odata.type":"Edm.DateTime","a":"2020-01-01","b":1.5e3,"c":null,"d":"\u00e9\n","e":true}"#.to_vec();
        let at = at % body.len();
        body[at] = byte;
        let _ = decode(&body);
        body.truncate(at);
        prop_assert!(decode(&body).is_err());
    }

    #[test]
    fn doubles_keep_every_bit(bits in any::<u64>()) {
        let value = f64::from_bits(bits);
        prop_assume!(value.is_finite());
        let body = decode(format!("{{\"P\":{value:e}}}").as_bytes()).unwrap();
        let Value::Double(read) = body.properties[0].value else { panic!("not a double") };
        prop_assert_eq!(read.to_bits(), bits);
    }
}
