//! Changes of the catalogue whose outcome nobody waited for, or nobody was told.
//!
//! A client that hangs up drops the future of its request in the middle of a commit, and an engine may lose its
//! connection behind one. The change is then made or not, but what the service knows must be what the store holds: a name
//! is there or free, never something in between, a policy that was taken away is gone, and no two tables share a space.

mod support;

use async_trait::async_trait;
use partita_model::ServiceError;
use partita_store::{Batch, Error, Memory, Result, Row, Scan, ScanEnd, Space, Store, Version, Visitor};
use partita_table::{Table, TableQuery, TableService};
use std::collections::BTreeSet;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Waker};
use support::*;

/// An engine that makes its commits whether or not anybody waits for them, one after the other, as all do that hand them to
/// a thread or send them to a server. While it is told to, it loses the answers, having made the commits or not.
#[derive(Debug)]
struct Remote {
    store: Arc<Memory>,
    loses_answers: AtomicBool,
    makes_changes: bool,
}

#[async_trait]
impl Store for Remote {
    async fn get(&self, space: Space, partition: &[u8], row: &[u8]) -> Result<Option<Row>> {
        self.store.get(space, partition, row).await
    }

    async fn scan(&self, scan: Scan<'_>, visitor: &mut Visitor<'_>) -> Result<ScanEnd> {
        self.store.scan(scan, visitor).await
    }

    async fn commit(&self, batch: Batch) -> Result<Version> {
        let lost = self.loses_answers.load(Ordering::Acquire);
        let unknown = || Err(Error::OutcomeUnknown("the connection is gone".to_owned()));
        if lost && !self.makes_changes {
            return unknown();
        }
        let store = self.store.clone();
        // With one thread, tasks run in the order in which they were spawned.
        let answer = tokio::spawn(async move { store.commit(batch).await }).await.expect("a commit does not panic");
        if lost { unknown() } else { answer }
    }

    fn figures(&self) -> Vec<(&'static str, u64)> {
        self.store.figures()
    }
}

async fn remote(makes_changes: bool) -> (Arc<Remote>, TableService) {
    let store = Remote { store: Arc::new(Memory::new()), loses_answers: AtomicBool::new(false), makes_changes };
    let store = Arc::new(store);
    let service = TableService::open(store.clone()).await.expect("an empty store opens");
    (store, service)
}

/// Starts a request and drops it at the first thing it waits for, which is its commit.
fn hang_up<T>(request: impl Future<Output = T>) {
    let polled = pin!(request).poll(&mut Context::from_waker(Waker::noop()));
    assert!(polled.is_pending(), "the request was over before the client could hang up");
}

fn known(service: &TableService) -> Vec<Table> {
    let everything = TableQuery { filter: None, from: None, rows_max: 1000 };
    service.query_tables(ACCOUNT, everything).tables.iter().map(|table| (**table).clone()).collect()
}

/// What the service knows is what one that is opened anew on the same store knows, and tables share nothing.
async fn assert_whole(service: &TableService, store: Arc<Remote>) {
    let anew = TableService::open(store).await.expect("the store opens");
    let stored = known(&anew);
    let spaces: BTreeSet<_> = stored.iter().map(|table| table.space).collect();
    assert_eq!(spaces.len(), stored.len(), "tables share a space: {stored:?}");
    assert_eq!(known(service), stored);
    assert_eq!(service.service_properties(ACCOUNT), anew.service_properties(ACCOUNT));
}

/// A table with an entity and a policy.
async fn create_first(service: &TableService) {
    let first = create(service, "First").await;
    service.set_access_policies(ACCOUNT, &first.name, vec![policy("reader", "r")]).await.expect("it is there");
    apply_one(service, &first, insert("p", "r", &[])).await.expect("a new row");
}

/// Goes on after the creation of `First` was interrupted: it is there or not, and everything works either way.
async fn go_on_after_create(service: &TableService) {
    match service.create_table(ACCOUNT, table_name("First")).await {
        Ok(_) | Err(ServiceError::TableAlreadyExists) => {}
        Err(error) => panic!("create: {error}"),
    }
    let first = service.table(ACCOUNT, &table_name("First")).expect("it is there now");
    assert_eq!(everything(service, &first).await, Ok(Vec::new()));
    service.delete_table(ACCOUNT, &first.name).await.expect("it is there");
    create(service, "First").await;
}

/// Goes on after the deletion of `First` was interrupted.
async fn go_on_after_drop(service: &TableService) {
    match service.delete_table(ACCOUNT, &table_name("First")).await {
        Ok(()) | Err(ServiceError::ResourceNotFound) => {}
        Err(error) => panic!("drop: {error}"),
    }
    let first = create(service, "First").await;
    assert_eq!(everything(service, &first).await, Ok(Vec::new()));
    assert_eq!(first.access_policies, []);
}

#[tokio::test]
async fn a_client_hangs_up_while_it_creates_a_table() {
    let (store, service) = remote(true).await;
    hang_up(service.create_table(ACCOUNT, table_name("First")));
    go_on_after_create(&service).await;
    assert_whole(&service, store).await;
}

/// The worst that could happen: the entities of one table in another.
#[tokio::test]
async fn a_table_has_its_own_space_though_a_client_hung_up_before() {
    let (store, service) = remote(true).await;
    hang_up(service.create_table(ACCOUNT, table_name("First")));
    let second = create(&service, "Second").await;
    apply_one(&service, &second, insert("p", "secret", &[])).await.expect("a new row");
    let anew = TableService::open(store.clone()).await.expect("the store opens");
    if let Ok(first) = anew.table(ACCOUNT, &table_name("First")) {
        assert_eq!(everything(&anew, &first).await, Ok(Vec::new()), "entities of another table");
    }
    assert_whole(&service, store).await;
}

#[tokio::test]
async fn a_client_hangs_up_while_it_drops_a_table() {
    let (store, service) = remote(true).await;
    create_first(&service).await;
    hang_up(service.delete_table(ACCOUNT, &table_name("First")));
    go_on_after_drop(&service).await;
    assert_whole(&service, store).await;
}

/// A policy that was taken away must not go on to hold because nobody waited for the answer.
#[tokio::test]
async fn a_client_hangs_up_while_it_sets_policies() {
    let (store, service) = remote(true).await;
    create_first(&service).await;
    hang_up(service.set_access_policies(ACCOUNT, &table_name("First"), Vec::new()));
    create(&service, "Second").await;
    assert_whole(&service, store).await;
}

#[tokio::test]
async fn a_client_hangs_up_while_it_sets_service_properties() {
    let (store, service) = remote(true).await;
    hang_up(service.update_service_properties(ACCOUNT, |properties| properties.logging.read = true));
    create(&service, "Second").await;
    assert_whole(&service, store).await;
}

/// A transaction goes on without its client: it is made as a whole, or not at all.
#[tokio::test]
async fn a_client_hangs_up_during_a_transaction() {
    let (_, service) = remote(true).await;
    let table = create(&service, "First").await;
    hang_up(apply(&service, &table, &[insert("p", "a", &[]), insert("p", "b", &[])]));
    apply_one(&service, &table, insert("p", "c", &[])).await.expect("a new row");
    let rows = everything(&service, &table).await.expect("the table is there");
    assert!(matches!(rows.len(), 1 | 3), "half of a transaction: {rows:?}");
}

#[tokio::test]
async fn the_answer_to_the_creation_of_a_table_is_lost() {
    for makes_changes in [true, false] {
        let (store, service) = remote(makes_changes).await;
        store.loses_answers.store(true, Ordering::Release);
        let created = service.create_table(ACCOUNT, table_name("First")).await;
        assert_eq!(created, Err(ServiceError::OperationTimedOut));
        store.loses_answers.store(false, Ordering::Release);
        let second = create(&service, "Second").await;
        apply_one(&service, &second, insert("p", "secret", &[])).await.expect("a new row");
        assert_whole(&service, store.clone()).await;
        go_on_after_create(&service).await;
        assert_whole(&service, store).await;
    }
}

#[tokio::test]
async fn the_answer_to_the_deletion_of_a_table_is_lost() {
    for makes_changes in [true, false] {
        let (store, service) = remote(makes_changes).await;
        create_first(&service).await;
        store.loses_answers.store(true, Ordering::Release);
        let dropped = service.delete_table(ACCOUNT, &table_name("First")).await;
        assert_eq!(dropped, Err(ServiceError::OperationTimedOut));
        store.loses_answers.store(false, Ordering::Release);
        go_on_after_drop(&service).await;
        assert_whole(&service, store).await;
    }
}

#[tokio::test]
async fn the_answer_to_new_policies_is_lost() {
    for makes_changes in [true, false] {
        let (store, service) = remote(makes_changes).await;
        create_first(&service).await;
        store.loses_answers.store(true, Ordering::Release);
        let set = service.set_access_policies(ACCOUNT, &table_name("First"), Vec::new()).await;
        assert_eq!(set, Err(ServiceError::OperationTimedOut));
        store.loses_answers.store(false, Ordering::Release);
        create(&service, "Second").await;
        assert_whole(&service, store).await;
    }
}

#[tokio::test]
async fn the_answer_to_a_transaction_is_lost() {
    for makes_changes in [true, false] {
        let (store, service) = remote(makes_changes).await;
        let table = create(&service, "First").await;
        store.loses_answers.store(true, Ordering::Release);
        let refused = apply(&service, &table, &[insert("p", "a", &[]), insert("p", "b", &[])]).await;
        assert_eq!(refused.expect_err("nobody knows").error, ServiceError::OperationTimedOut);
        store.loses_answers.store(false, Ordering::Release);
        let rows = everything(&service, &table).await.expect("the table is there");
        assert_eq!(rows.len(), if makes_changes { 2 } else { 0 });
    }
}
