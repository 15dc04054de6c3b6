//! A transaction is refused for what is true at one moment.
//!
//! A merge is planned on the row as it was read, and the changes before it are checked when the batch is committed. What is written
//! in between must not lead to an answer that was right at neither moment. Found by `torture crash --seed 11 --clients 8`.

mod support;

use async_trait::async_trait;
use partita_model::{ETag, IfMatch, Ticks, Value};
use partita_store::{Batch, Memory, Result, Row, Scan, ScanEnd, Space, Store, Version, Visitor};
use partita_table::{Change, ChangeError, ChangeKind, TableService};
use std::sync::{Arc, Mutex};
use support::*;

/// An engine on which somebody else commits first.
#[derive(Debug, Default)]
struct Raced {
    store: Memory,
    first: Mutex<Option<Batch>>,
}

#[async_trait]
impl Store for Raced {
    async fn get(&self, space: Space, partition: &[u8], row: &[u8]) -> Result<Option<Row>> {
        self.store.get(space, partition, row).await
    }

    async fn scan(&self, scan: Scan<'_>, visitor: &mut Visitor<'_>) -> Result<ScanEnd> {
        self.store.scan(scan, visitor).await
    }

    async fn commit(&self, batch: Batch) -> Result<Version> {
        let first = self.first.lock().expect("nothing panics").take();
        if let Some(first) = first {
            self.store.commit(first).await?;
        }
        self.store.commit(batch).await
    }

    fn figures(&self) -> Vec<(&'static str, u64)> {
        self.store.figures()
    }
}

/// The code and index with which `p/a` (insert) and `p/b` (a change) are refused, where both are there and meanwhile these rows
/// are deleted, and the tag that `p/b` has.
fn refusal(deleted: &[&str], second: impl Fn(ETag) -> ChangeKind) -> (usize, &'static str) {
    runtime().block_on(async {
        let store = Arc::new(Raced::default());
        let service = TableService::open(store.clone()).await.expect("an empty store opens");
        let table = create(&service, "Table").await;
        let rows = [insert("p", "a", &[]), insert("p", "b", &[])];
        let version = apply(&service, &table, &rows).await.expect("new rows");
        let delete = |row: &&str| partita_store::Item {
            row: row.as_bytes().to_vec(),
            expect: partita_store::Expect::Present,
            action: partita_store::Action::Delete,
        };
        let items = deleted.iter().map(delete).collect();
        let batch = Batch { space: table.space, partition: b"p".to_vec(), items, drop_space: None };
        *store.first.lock().expect("nothing panics") = Some(batch);
        let changes: [Change; 2] = [insert("p", "a", &[]), change("p", "b", second(ETag(version)))];
        let ChangeError { index, error } = apply(&service, &table, &changes).await.expect_err("one is refused");
        (index, error.code())
    })
}

fn merge_if(if_match: Option<IfMatch>) -> ChangeKind {
    ChangeKind::Merge(named(&[("A", Value::Int32(1))]).into(), if_match)
}

#[test]
fn a_merge_is_refused_for_what_is_there_when_the_others_are_checked() {
    let stale = |_| merge_if(Some(IfMatch::Tag(ETag(Ticks(1)))));
    assert_eq!(refusal(&[], stale), (0, "EntityAlreadyExists"));
    assert_eq!(refusal(&["a"], stale), (1, "UpdateConditionNotSatisfied"));
    // The tag was another while `a` was there, and without `a` there is no `b` that could have one.
    assert_eq!(refusal(&["a", "b"], stale), (1, "ResourceNotFound"));
    assert_eq!(refusal(&["a", "b"], |tag| merge_if(Some(IfMatch::Tag(tag)))), (1, "ResourceNotFound"));
}

#[test]
fn a_merge_that_is_too_large_is_planned_again() {
    let too_many = |_| {
        let many: Vec<_> = (0..253).map(|number| (format!("P{number}"), Value::Int32(1))).collect();
        let many: Vec<_> = many.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
        ChangeKind::Merge(named(&many).into(), Some(IfMatch::Any))
    };
    assert_eq!(refusal(&["a"], too_many), (1, "TooManyProperties"));
    assert_eq!(refusal(&["a", "b"], too_many), (1, "ResourceNotFound"));
}
