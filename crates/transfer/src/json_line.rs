//! An entity as a line of JSON: the object that the service itself takes in the body of an insert, with the type of
//! every value that JSON cannot tell.
//!
//! ```text
//! {"PartitionKey":"UK","RowKey":"1","Name":"Ann","Visits@odata.type":"Edm.Int64","Visits":"9"}
//! ```

use crate::Entity;
use partita_model::{Record, Records};
use partita_wire::entity_json::{KeyField, decode, write_typed};

/// Writes an entity and the end of the line.
pub fn write(out: &mut Vec<u8>, entity: &Entity) {
    write_typed(out, &entity.partition_key, &entity.row_key, &entity.properties);
    out.push(b'\n');
}

/// Reads an entity; a Timestamp and annotations that are not types are passed over. An error says what is wrong.
pub fn read(line: &[u8]) -> Result<Entity, String> {
    let mut records = Records::default();
    let body = decode(line, &mut records).map_err(|error| {
        let text = error.to_string();
        text.lines().nth(1).unwrap_or(&text).trim_end_matches('.').to_owned()
    })?;
    let key = |field: Option<KeyField>, name: &str| match field {
        Some(KeyField::Text(key)) => Ok(key),
        Some(KeyField::NotString) => Err(format!("its {name} is not a string")),
        None => Err(format!("it has no {name}")),
    };
    Ok(Entity {
        partition_key: key(body.partition_key, "PartitionKey")?,
        row_key: key(body.row_key, "RowKey")?,
        properties: Record::open(&records.into_bytes()[body.record])
            .and_then(Record::to_properties)
            .map_err(|error| error.to_string())?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{entity, one_of_each};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn round_trips(entity in entity()) {
            let mut line = Vec::new();
            write(&mut line, &entity);
            prop_assert_eq!(line.iter().filter(|&&byte| byte == b'\n').count(), 1);
            prop_assert_eq!(read(&line), Ok(entity));
        }
    }

    #[test]
    fn the_form() {
        let mut line = Vec::new();
        write(&mut line, &one_of_each());
        let expect = concat!(
            r#"{"PartitionKey":"a\"b","RowKey":"","Binary@odata.type":"Edm.Binary","Binary":"AP8=","Boolean":true,"#,
            r#""DateTime@odata.type":"Edm.DateTime","DateTime":"2021-12-09T00:25:32.7684043Z","#,
            r#""Double@odata.type":"Edm.Double","Double":5.0,"Negative@odata.type":"Edm.Double","Negative":-0.0,"#,
            r#""Nan@odata.type":"Edm.Double","Nan":"NaN","Infinity@odata.type":"Edm.Double","Infinity":"-Infinity","#,
            r#""Guid@odata.type":"Edm.Guid","Guid":"c9da6455-213d-42c9-9a79-3e9149a57833","Int32":-1,"#,
            r#""Int64@odata.type":"Edm.Int64","Int64":"-9223372036854775808","Empty":"","Text":"a,\"b\"\r\nc"}"#,
            "\n"
        );
        assert_eq!(String::from_utf8(line).unwrap(), expect);
    }

    #[test]
    fn what_is_no_entity() {
        for (line, says) in [
            ("", "not a JSON object"),
            ("[]", "not a JSON object"),
            ("{\"PartitionKey\":\"a\"", "not well-formed"),
            ("{\"PartitionKey\":\"a\"}", "no RowKey"),
            ("{\"PartitionKey\":1,\"RowKey\":\"\"}", "PartitionKey is not a string"),
            ("{\"PartitionKey\":\"\",\"RowKey\":\"\",\"A@odata.type\":\"Edm.Int64\",\"A\":\"x\"}", "not of Edm.Int64"),
        ] {
            let error = read(line.as_bytes()).unwrap_err();
            assert!(error.contains(says), "{line}: {error}");
        }
    }
}
