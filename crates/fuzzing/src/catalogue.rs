//! The catalogue of tables, read from rows that may hold anything.
//!
//! It is opened or refused as damaged. What was opened is coherent: a table in the list is found by its name, and a new
//! table gets a space that no other has.

use crate::source::Source;
use partita_model::TableName;
use partita_store::{Action, Batch, Error, Expect, Item, Memory, Space, Store};
use partita_table::{TableQuery, TableService};
use partita_wire::xml::{access_policies, service_properties};
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};
use tokio::runtime::{Builder, Runtime};

const ACCOUNT: &str = "a";

static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Builder::new_current_thread().build().expect("a runtime without threads, network and clock"));

/// Takes rows, each a name and a record, both behind a byte or two that say how long they are.
pub fn catalogue(data: &[u8]) {
    let mut source = Source(data);
    let mut rows = BTreeMap::new();
    while !source.is_empty() {
        let name = source.counted().to_vec();
        let length = u16::from_le_bytes(source.array());
        rows.insert(name, source.take(length.into()));
    }
    let items = rows.iter().map(|(name, record)| Item {
        row: name.clone(),
        expect: Expect::Any,
        action: Action::Put(record.to_vec().into()),
    });
    let batch = Batch { space: Space(0), partition: Vec::new(), items: items.collect(), drop_space: None };
    let store = Arc::new(Memory::new());
    RUNTIME.block_on(store.commit(batch)).expect("a commit without expectations");
    match RUNTIME.block_on(TableService::open(store)) {
        Ok(service) => {
            check(&service);
            check_new_table(&service);
        }
        Err(error) => assert!(matches!(error, Error::Corrupt(_)), "{error}"),
    }
}

fn check(service: &TableService) {
    let page = service.query_tables(ACCOUNT, TableQuery { filter: None, from: None, rows_max: usize::MAX });
    assert!(page.next.is_none());
    for table in &page.tables {
        assert_ne!(table.space, Space(0), "a table that shows the catalogue");
        assert_eq!(service.table(ACCOUNT, &table.name).as_ref(), Ok(table));
        let upper = TableName::parse(&table.name.as_str().to_ascii_uppercase()).expect("a name in another case");
        assert_eq!(service.table(ACCOUNT, &upper).as_ref(), Ok(table));
        // What was damaged may be more than a client could have set, but it can be shown.
        assert!(!access_policies::print(&table.access_policies).is_empty());
    }
    assert!(!service_properties::print(&service.service_properties(ACCOUNT)).is_empty());
}

fn check_new_table(service: &TableService) {
    for name in ["Fresh", "Fresher"] {
        let name = TableName::parse(name).expect("a name");
        let tables =
            service.query_tables(ACCOUNT, TableQuery { filter: None, from: None, rows_max: usize::MAX }).tables;
        match RUNTIME.block_on(service.create_table(ACCOUNT, name.clone())) {
            Ok(created) => {
                assert!(created.space != Space(0) && tables.iter().all(|table| table.space != created.space));
                assert_eq!(service.table(ACCOUNT, &name), Ok(created));
            }
            Err(error) => assert_eq!(error.code(), "TableAlreadyExists"),
        }
    }
}
