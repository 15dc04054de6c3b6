//! Error bodies in the two forms of the Table service.
//!
//! The first line of the text is the service's own. What we know beyond it follows in lines of its own, and the text
//! ends with `RequestId:` and `Time:`, as the service's always does.

use crate::json_text;
use crate::xml::write_text;
use partita_model::{ServiceError, Ticks};

/// The `odata.error` form of table and entity operations. `index` is the place of the operation in its change set,
/// where the service says it.
pub fn json(error: &ServiceError, index: Option<usize>, request_id: &str, time: Ticks) -> Vec<u8> {
    let mut out = Vec::with_capacity(320);
    out.extend_from_slice(b"{\"odata.error\":{\"code\":\"");
    out.extend_from_slice(error.code().as_bytes());
    out.extend_from_slice(b"\",\"message\":{\"lang\":\"en-US\",\"value\":");
    json_text::write_string(&mut out, &text(error, index, request_id, time));
    out.extend_from_slice(b"}}}");
    out
}

/// The `m:error` form of access policies, service properties and stats. Unlike their successes it has no byte order
/// mark. A refusal of Atom has the namespace as its default.
pub fn xml(error: &ServiceError, request_id: &str, time: Ticks) -> Vec<u8> {
    let (prefix, xmlns) = match error {
        ServiceError::AtomFormatNotSupported => ("", "xmlns"),
        _ => ("m:", "xmlns:m"),
    };
    let code = error.code();
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?><{prefix}error \
         {xmlns}=\"http://schemas.microsoft.com/ado/2007/08/dataservices/metadata\">\
         <{prefix}code>{code}</{prefix}code><{prefix}message xml:lang=\"en-US\">"
    );
    write_text(&mut out, &text(error, None, request_id, time));
    out.push_str(&format!("</{prefix}message></{prefix}error>"));
    out.into_bytes()
}

fn text(error: &ServiceError, index: Option<usize>, request_id: &str, time: Ticks) -> String {
    let index = index.map(|index| format!("{index}:")).unwrap_or_default();
    format!("{index}{error}\nRequestId:{request_id}\nTime:{}", time.seven_digits())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "5849a522-0002-00d9-45cd-590556000000";

    fn time() -> Ticks {
        Ticks::parse_iso("2026-03-04T05:06:07.89Z").unwrap()
    }

    fn check_json(error: &ServiceError, index: Option<usize>, expect: &str) {
        assert_eq!(String::from_utf8(json(error, index, ID, time())).unwrap(), expect);
    }

    #[test]
    fn json_bodies() {
        check_json(
            &ServiceError::ResourceNotFound,
            None,
            r#"{"odata.error":{"code":"ResourceNotFound","message":{"lang":"en-US","value":"The specified resource does not exist.\nRequestId:5849a522-0002-00d9-45cd-590556000000\nTime:2026-03-04T05:06:07.8900000Z"}}}"#,
        );
        check_json(
            &ServiceError::EntityAlreadyExists,
            Some(3),
            r#"{"odata.error":{"code":"EntityAlreadyExists","message":{"lang":"en-US","value":"3:The specified entity already exists.\nRequestId:5849a522-0002-00d9-45cd-590556000000\nTime:2026-03-04T05:06:07.8900000Z"}}}"#,
        );
        check_json(
            &ServiceError::DuplicateProperties { name: "a\"b".into() },
            None,
            r#"{"odata.error":{"code":"DuplicatePropertiesSpecified","message":{"lang":"en-US","value":"A property is specified more than one time.\nPropertyName:a\"b\nRequestId:5849a522-0002-00d9-45cd-590556000000\nTime:2026-03-04T05:06:07.8900000Z"}}}"#
                .replace("a\"b", "a\\\"b")
                .as_str(),
        );
    }

    #[test]
    fn xml_bodies() {
        let error = ServiceError::InvalidXmlNodeValue { name: "Days".into(), value: "<&>\u{1}".into() };
        let expect = concat!(
            "<?xml version=\"1.0\" encoding=\"utf-8\"?>",
            "<m:error xmlns:m=\"http://schemas.microsoft.com/ado/2007/08/dataservices/metadata\">",
            "<m:code>InvalidXmlNodeValue</m:code><m:message xml:lang=\"en-US\">",
            "The value provided for one of the XML nodes in the request body was not in the correct format.\n",
            "XmlNodeName:Days\nXmlNodeValue:&lt;&amp;&gt;\u{FFFD}\n",
            "RequestId:5849a522-0002-00d9-45cd-590556000000\nTime:2026-03-04T05:06:07.8900000Z</m:message></m:error>",
        );
        assert_eq!(String::from_utf8(xml(&error, ID, time())).unwrap(), expect);
    }
}
