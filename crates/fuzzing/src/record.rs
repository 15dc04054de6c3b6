//! Stored rows: any bytes may be on a damaged disk.
//!
//! Nothing panics; what one way of reading finds, the others find too; a response is whole or refused.

use partita_model::{CorruptRecord, EntityView, Property, Record, RecordBuf, StoredValue, Ticks, Value, ValueRef};
use partita_odata::{Filter, Op};
use partita_wire::entity_json::{Context, EntityPage, Metadata, SelectColumns, write_entity};

/// Takes a stored record.
pub fn record(data: &[u8]) {
    let Ok(record) = Record::open(data) else { return };
    assert_eq!(record.size_bytes(), data.len());
    let read: Result<Vec<(&str, ValueRef<'_>)>, CorruptRecord> = record.iter().collect();
    assert!(record.iter().skip_while(Result::is_ok).nth(1).is_none(), "something follows an error");
    check_get(record);
    check_responses(record, read.is_ok());
    if let Ok(properties) = read {
        check_whole(record, &properties);
    }
}

/// Looking for a name finds what walking there finds.
fn check_get(record: Record<'_>) {
    let mut seen: Vec<&[u8]> = Vec::new();
    for property in record.stored() {
        let Ok((name, value)) = property else { return };
        let is_first = !seen.contains(&name);
        seen.push(name);
        if let (true, Ok(text)) = (is_first, std::str::from_utf8(name)) {
            let expect = match value {
                StoredValue::Text(bytes) => match std::str::from_utf8(bytes) {
                    Ok(text) => Ok(Some(ValueRef::String(text))),
                    Err(_) => Err(CorruptRecord),
                },
                StoredValue::Other(value) => Ok(Some(value)),
            };
            assert!(same_read(record.get(text), expect), "{text}");
        }
        if seen.len() > 300 {
            return;
        }
    }
    if !seen.contains(&b"no such name".as_slice()) {
        assert_eq!(record.get("no such name"), Ok(None));
    }
}

fn check_responses(record: Record<'_>, is_whole: bool) {
    let entity = EntityView { partition_key: "p", row_key: "r", timestamp: Ticks(u64::MAX), record };
    let select = SelectColumns::parse("a,b,RowKey");
    for metadata in [Metadata::None, Metadata::Minimal, Metadata::Full] {
        let ctx = Context { base: "http://h/a", account: "a", table: "T", metadata, select: None };
        let mut out = Vec::new();
        let written = write_entity(&mut out, &ctx, &entity);
        assert_eq!(written.is_ok(), is_whole);
        if is_whole {
            check_json(&out);
        }
        let mut page = EntityPage::begin(ctx);
        for _ in 0..2 {
            let (rows, bytes) = (page.rows(), page.bytes());
            match page.push(&entity) {
                Ok(()) => assert!(is_whole && page.rows() == rows + 1),
                Err(_) => assert!(!is_whole && page.rows() == rows && page.bytes() == bytes),
            }
        }
        check_json(&page.finish());
        let ctx = Context { select: Some(&select), ..ctx };
        let mut out = Vec::new();
        if write_entity(&mut out, &ctx, &entity).is_ok() {
            check_json(&out);
        }
    }
    for literal in [Value::Int32(1), Value::String("a".into()), Value::DateTime(Ticks(1))] {
        let filter = Filter::Compare { property: "a".into(), op: Op::Ge, literal };
        assert!(filter.matches(&entity).is_ok() || !is_whole);
    }
}

/// Of a record that is whole: it is encoded as itself, merged by name, and no beginning of it is as long.
fn check_whole(record: Record<'_>, read: &[(&str, ValueRef<'_>)]) {
    let properties: Vec<Property> =
        read.iter().map(|(name, value)| Property { name: (*name).to_owned(), value: value.to_value() }).collect();
    let bytes = Record::encode(&properties);
    assert!(bytes.len() <= record.size_bytes());
    let again = Record::open(&bytes).expect("a record was encoded");
    let again_read: Vec<_> = again.iter().collect::<Result<_, _>>().expect("a record was encoded");
    assert_eq!(again_read.len(), read.len());
    for ((name, value), (again_name, again_value)) in read.iter().zip(&again_read) {
        assert!(name == again_name && same_value(*value, *again_value));
    }
    for cut in [1, 2, 7].into_iter().filter(|cut| *cut < bytes.len()) {
        let record = Record::open(&bytes[..bytes.len() - cut]).expect("the format is still there");
        let left = record.iter().collect::<Result<Vec<_>, _>>();
        assert!(left.is_err() || left.is_ok_and(|left| left.len() < read.len()));
    }
    let changes = [Property::from(("a", Value::Int32(7))), Property::from(("new name", Value::Boolean(true)))];
    let merged = again.merged(RecordBuf::from(&changes).as_record()).expect("a record was encoded");
    let merged = merged.as_record().to_properties().expect("a record was encoded");
    for change in &changes {
        let first = merged.iter().find(|property| property.name == change.name);
        assert_eq!(first.map(|property| &property.value), Some(&change.value));
    }
    let added = changes.iter().filter(|change| !read.iter().any(|(name, _)| *name == change.name)).count();
    assert_eq!(merged.len(), read.len() + added);
}

/// A double may be a NaN of any bits.
fn same_value(a: ValueRef<'_>, b: ValueRef<'_>) -> bool {
    match (a, b) {
        (ValueRef::Double(a), ValueRef::Double(b)) => a.to_bits() == b.to_bits(),
        _ => a == b,
    }
}

type Read<'a> = Result<Option<ValueRef<'a>>, CorruptRecord>;

fn same_read(a: Read<'_>, b: Read<'_>) -> bool {
    match (a, b) {
        (Ok(Some(a)), Ok(Some(b))) => same_value(a, b),
        _ => a == b,
    }
}

fn check_json(bytes: &[u8]) {
    if let Err(error) = serde_json::from_slice::<serde_json::Value>(bytes) {
        panic!("{error}: {}", String::from_utf8_lossy(bytes));
    }
}
