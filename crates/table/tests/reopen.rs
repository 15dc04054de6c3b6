//! What a service finds when it is opened again on the same folder.

mod support;

use partita_model::{CorsRule, Logging, Metrics, ServiceProperties, StoredAccessPolicy, Ticks, Value};
use partita_store::Space;
use partita_table::{Table, TableQuery, TableService};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use support::*;

async fn open(folder: &Path) -> TableService {
    TableService::open(Arc::new(rocks(folder))).await.expect("the store opens")
}

fn tables(service: &TableService, account: &str) -> Vec<Arc<Table>> {
    service.query_tables(account, TableQuery { filter: None, from: None, rows_max: 1000 }).tables
}

#[tokio::test]
async fn everything_is_still_there() {
    let folder = folder();
    let policies = vec![
        StoredAccessPolicy { start: Some(Ticks(1)), expiry: Some(Ticks::MAX), ..policy("full", "raud") },
        StoredAccessPolicy { id: "empty".to_owned(), ..StoredAccessPolicy::default() },
    ];
    let list = |texts: &[&str]| texts.iter().map(ToString::to_string).collect();
    let properties = ServiceProperties {
        logging: Logging { read: true, write: false, delete: true, retention_days: Some(365) },
        hour_metrics: Metrics { enabled: true, include_apis: Some(false), retention_days: Some(1) },
        minute_metrics: Metrics::default(),
        cors: vec![
            CorsRule {
                allowed_origins: list(&["http://a.com", "http://*.b.com"]),
                allowed_methods: list(&["GET", "PUT"]),
                allowed_headers: list(&["x-ms-meta*"]),
                exposed_headers: Vec::new(),
                max_age_seconds: u32::MAX,
            },
            CorsRule { allowed_origins: list(&["*"]), ..CorsRule::default() },
        ],
    };

    let service = open(folder.path()).await;
    let people = create(&service, "PeopleOfUK").await;
    let other = service.create_table("other", table_name("peopleofuk")).await.expect("a new table");
    create(&service, "Empty").await;
    service.set_access_policies(ACCOUNT, &people.name, policies.clone()).await.expect("the table is there");
    let set = |to: &mut ServiceProperties| *to = properties.clone();
    service.update_service_properties(ACCOUNT, set).await.expect("they are set");
    let content = [("Name", Value::String("Ann".to_owned())), ("Age", Value::Int32(39))];
    for (partition, row) in [("", ""), ("UK", "1"), ("\u{1F600}", "\u{E001}")] {
        apply_one(&service, &people, insert(partition, row, &content)).await.expect("a new row");
    }
    apply_one(&service, &other, insert("UK", "1", &[])).await.expect("a new row");
    let before = (
        tables(&service, ACCOUNT),
        tables(&service, "other"),
        everything(&service, &people).await,
        everything(&service, &other).await,
    );
    drop(service);

    let service = open(folder.path()).await;
    let after = (
        tables(&service, ACCOUNT),
        tables(&service, "other"),
        everything(&service, &people).await,
        everything(&service, &other).await,
    );
    assert_eq!(after, before);
    assert_eq!(service.table(ACCOUNT, &people.name).expect("it is there").access_policies, policies);
    assert_eq!(*service.service_properties(ACCOUNT), properties);
    assert_eq!(*service.service_properties("other"), ServiceProperties::default());

    // Tags are still good, and what is written now is later than all that was written before.
    let found = get(&service, &people, "UK", "1").await.expect("it is there");
    let tag = Some(partita_model::IfMatch::Tag(partita_model::ETag(found.timestamp)));
    let version = apply_one(&service, &people, merge("UK", "1", &[], tag)).await.expect("the tag is good");
    let versions = before.2.into_iter().flatten().map(|found| found.timestamp);
    assert!(version > versions.max().expect("there are rows"));
}

#[tokio::test]
async fn what_was_dropped_stays_away() {
    let folder = folder();
    let service = open(folder.path()).await;
    let table = create(&service, "Dropped").await;
    service.set_access_policies(ACCOUNT, &table.name, vec![policy("reader", "r")]).await.expect("it is there");
    apply_one(&service, &table, insert("p", "r", &[])).await.expect("a new row");
    service.delete_table(ACCOUNT, &table.name).await.expect("it is there");
    drop(service);

    let service = open(folder.path()).await;
    assert_eq!(tables(&service, ACCOUNT), []);
    let table = create(&service, "Dropped").await;
    assert_eq!(table.access_policies, []);
    assert_eq!(everything(&service, &table).await, Ok(Vec::new()));
}

#[tokio::test]
async fn no_space_is_used_twice() {
    let folder = folder();
    let mut used = BTreeSet::from([Space(0)]);
    for round in 0..4 {
        let service = open(folder.path()).await;
        for number in 0..3 {
            let table = create(&service, &format!("Table{round}x{number}")).await;
            assert!(used.insert(table.space), "{:?} was given before", table.space);
        }
        // The last one given is dropped, and at last all of them.
        service.delete_table(ACCOUNT, &table_name(&format!("Table{round}x2"))).await.expect("it is there");
        if round == 2 {
            for table in tables(&service, ACCOUNT) {
                service.delete_table(ACCOUNT, &table.name).await.expect("it is there");
            }
        }
    }
}
