//! The head of a request: request line, query and headers.
//!
//! The input is a head as it stands on the wire. What its path names is written as a URL by the real writer, in every
//! form in which clients send it, and must name the same; a query is written and read again; what only reads is never
//! taken for something that writes; signatures do not show in what is printed for logs.

use crate::address::Address;
use crate::header_name::{AUTHORIZATION, HOST, IF_MATCH};
use crate::headers::Headers;
use crate::negotiate;
use crate::operation::{Asked, Operation};
use crate::query_string::Query;
use crate::resource::{Keys, Resource};
use httparse::Header;
use partita_auth::{AddressRange, Authorization, Credential, Letters, check_date};
use partita_model::{Guid, IfMatch, TableName, Ticks};
use partita_odata::parse_top;
use partita_wire::entity_json::SelectColumns;
use partita_wire::url::{entity_path, entity_url, table_path, table_url};
use std::time::Duration;

const HOST_NAME: &str = "127.0.0.1:10002";

/// Takes the head of a request.
pub fn request(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut lines = text.lines();
    let Some((method, target)) = lines.next().and_then(|line| line.split_once(' ')) else { return };
    let target = target.strip_suffix(" HTTP/1.1").unwrap_or(target);
    let fields = fields(lines);
    fields.iter().filter_map(|field| std::str::from_utf8(field.value).ok()).for_each(check_words);
    let headers = Headers::Request(&fields);
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let query = Query::parse(query);
    if let Some(query) = &query {
        check_query(query);
        check_credential(headers, query);
        let _ = negotiate::metadata(query.get("$format"), headers).map_err(|error| error.to_string());
    }
    let _ = (negotiate::check_json_body(headers), negotiate::prefers_json(headers));

    let host = headers.get(HOST).unwrap_or(HOST_NAME);
    let Some(address) = Address::parse("http", host, path, |name| name == "acct") else { return };
    assert!(address.base.starts_with(&format!("http://{host}")));
    let _ = address.part_path(target);
    let resource = Resource::parse(&address.path);
    check_resource(&resource);
    check_operation(method, resource, &query.unwrap_or_default(), &address, headers);
}

fn fields<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<Header<'a>> {
    let fields = lines.filter_map(|line| line.split_once(':'));
    fields.map(|(name, value)| Header { name, value: value.trim().as_bytes() }).collect()
}

fn check_query(query: &Query) {
    let encode = |text: &str| text.bytes().map(|byte| format!("%{byte:02X}")).collect::<String>();
    let written: Vec<_> =
        query.pairs().iter().map(|(name, value)| format!("{}={}", encode(name), encode(value))).collect();
    let again = Query::parse(&written.join("&")).expect("a query was written");
    assert_eq!(again.pairs(), query.pairs());
    for (name, value) in query.pairs() {
        let first = query.pairs().iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str());
        assert_eq!(query.get(name), first);
        check_words(value);
        if let Ok(rows) = parse_top(value) {
            assert!((1..=1000).contains(&rows));
        }
    }
    if let (Some(raw), Some(decoded)) = (query.raw("$select"), query.get("$select")) {
        let names = SelectColumns::parse(raw);
        let wanted: Vec<&str> = decoded.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
        match names.names() {
            None => assert!(wanted.is_empty() || wanted.contains(&"*")),
            Some(names) => assert!(names.iter().all(|name| wanted.contains(&name.as_str())) && !names.is_empty()),
        }
    }
}

/// What is printed of a credential for logs is the same whatever its secret is.
fn check_credential(headers: Headers<'_>, query: &Query) {
    const OTHER: &str = "b3RoZXI=";
    let header = headers.get(AUTHORIZATION);
    let Ok(credential) = Credential::from_request(header, query.pairs()) else { return };
    let other = match credential {
        Credential::None => return assert!(header.is_none() && query.get("sig").is_none()),
        Credential::Header(Authorization::SharedKey { scheme, account, .. }) => {
            Credential::Header(Authorization::SharedKey { scheme, account, signature: OTHER })
        }
        Credential::Header(Authorization::Bearer { .. }) => Credential::Header(Authorization::Bearer { token: OTHER }),
        Credential::Sas(_) => {
            let mut pairs = query.pairs().to_vec();
            pairs.iter_mut().filter(|(name, _)| name == "sig").for_each(|(_, value)| value.replace_range(.., OTHER));
            Credential::from_request(None, &pairs).expect("a signature with another sig")
        }
    };
    assert_eq!(format!("{credential:?}"), format!("{other:?}"));
}

/// Words that stand in headers and parameters, each printed and read again.
fn check_words(text: &str) {
    if let Some(IfMatch::Tag(tag)) = IfMatch::parse(text) {
        assert_eq!(IfMatch::parse(&tag.to_string()), Some(IfMatch::Tag(tag)));
    }
    if let Some(moment) = Ticks::parse_iso(text) {
        assert_eq!(Ticks::parse_iso(&moment.to_string()), Some(moment));
        assert_eq!(Ticks::parse_iso(&moment.seven_digits()), Some(moment));
    }
    if let Some(date) = Ticks::parse_rfc1123(text) {
        assert_eq!(Ticks::parse_rfc1123(&date.rfc1123()), Some(date));
        let window = Duration::from_secs(900);
        assert_eq!(check_date(text, date, window), Ok(date));
        let late = Ticks(date.0.saturating_add(901 * 10_000_000));
        assert!(check_date(text, late, window).is_err());
    }
    if let Some(guid) = Guid::parse(text) {
        assert_eq!(guid.to_string(), text.to_ascii_lowercase());
    }
    if let Some(letters) = Letters::parse(text) {
        assert_eq!(Letters::parse(&letters.to_string()), Some(letters));
        assert!(text.chars().all(|letter| letters.contains(letter)));
    }
    if let Some(range) = AddressRange::parse(text) {
        let ends = text.split('-').map(|end| end.parse().expect("an address"));
        assert!(ends.into_iter().all(|end| range.contains(end)));
    }
}

/// What a path names, written as a URL, names the same.
fn check_resource(resource: &Resource) {
    let base = format!("http://{HOST_NAME}/acct");
    let urls = match resource {
        Resource::Entities(table, Keys::Pair { partition_key, row_key }) if TableName::parse(table).is_ok() => {
            let quoted = |key: &str| key.replace('\'', "''");
            let swapped = format!("{table}(RowKey='{}',PartitionKey='{}')", quoted(row_key), quoted(partition_key));
            assert_eq!(&Resource::parse(&swapped), resource, "{swapped}");
            [entity_url(&base, table, partition_key, row_key), entity_path(table, partition_key, row_key)]
        }
        Resource::Tables(Some(table)) if TableName::parse(table).is_ok() => {
            [table_url(&base, table), table_path(table)]
        }
        _ => return,
    };
    let [url, relative] = &urls;
    let path = url.strip_prefix(&format!("http://{HOST_NAME}")).expect("a URL starts with its base");
    let address = Address::parse("http", HOST_NAME, path, |_| false).expect("a URL was written");
    assert_eq!((address.account.as_str(), address.secondary, address.base.as_str()), ("acct", false, base.as_str()));
    assert_eq!(&Resource::parse(&address.path), resource, "{url}");
    let in_host = Address::parse("http", "acct.table.localhost", &format!("/{relative}"), |name| name == "acct");
    let in_host = in_host.expect("a URL was written");
    assert_eq!(&Resource::parse(&in_host.path), resource, "{relative}");
    for target in [url, path, relative] {
        let part = address.part_path(target).expect("a URL was written");
        assert_eq!(&Resource::parse(&part), resource, "{target} in a batch");
    }
}

fn check_operation(method: &str, resource: Resource, query: &Query, address: &Address, headers: Headers<'_>) {
    let asked = Asked {
        verb: method,
        resource: resource.clone(),
        comp: query.get("comp"),
        restype: query.get("restype"),
        conditional: headers.contains(IF_MATCH),
        has_stats: address.secondary || address.path_style,
    };
    let operation = match Operation::parse(asked) {
        Ok(operation) => operation,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    assert_eq!(operation.need().is_none(), operation == Operation::Batch);
    assert_eq!(operation == Operation::Batch, resource == Resource::Batch);
    assert!(!operation.name().text().is_empty());
    if method == "GET" {
        assert!(!operation.writes(), "{operation:?}");
    } else {
        assert!(operation.writes() || operation == Operation::Batch, "{operation:?}");
    }
    // A signature is checked against the table that is named, and no other.
    match resource {
        Resource::Entities(table, _) => assert_eq!(operation.table(), Some(table.as_str())),
        _ => assert_eq!(operation.table(), None),
    }
}
