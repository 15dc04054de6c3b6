//! Connections that break, locks that are held, clients that hang up.

mod support;

use bytes::Bytes;
use partita_store::{Action, Batch, Error, Expect, Item, Result, Row, Space, Store, Version};
use partita_store_postgres::PostgresStore;
use partita_testing::postgres::Postgres;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;
use tokio_postgres::{Client, NoTls};

const SPACE: Space = Space(7);
const PATIENCE: Duration = Duration::from_secs(60);

fn put(row: &[u8], value: &'static str) -> Batch {
    let action = Action::Put(Bytes::from_static(value.as_bytes()));
    let items = vec![Item { row: row.to_vec(), expect: Expect::Any, action }];
    Batch { space: SPACE, partition: b"p".to_vec(), items, drop_space: None }
}

/// Somebody else in the database, who has locked all rows.
async fn locker(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("the database runs");
    tokio::spawn(connection);
    client.batch_execute("BEGIN; SELECT * FROM partita_row FOR UPDATE").await.expect("rows can be locked");
    client
}

/// Connections of ours that wait for a lock.
const WAITING: &str = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() \
                       AND application_name = 'partita' AND wait_event_type = 'Lock'";

/// Waits until that many connections of ours wait for a lock.
fn wait_for_waiting(url: &str, count: usize) -> String {
    let begun = Instant::now();
    loop {
        let pids = Postgres::sql(url, WAITING);
        if pids.lines().count() == count {
            return pids;
        }
        assert!(begun.elapsed() < PATIENCE, "expected {count} connections to wait, found {pids}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

async fn store_with_row(url: &str) -> Arc<PostgresStore> {
    let store = support::open(url).await;
    store.commit(put(b"r", "old")).await.expect("a row is written");
    Arc::new(store)
}

/// A commit that goes on by itself.
fn begin(store: &Arc<PostgresStore>, batch: Batch) -> JoinHandle<Result<Version>> {
    let store = store.clone();
    tokio::spawn(async move { store.commit(batch).await })
}

async fn value(store: &PostgresStore) -> Option<Bytes> {
    let row: Option<Row> = store.get(SPACE, b"p", b"r").await.expect("it is read");
    row.map(|row| row.value)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_lost_during_a_commit_leaves_its_outcome_unknown() {
    let Some(url) = support::database() else { return };
    let store = store_with_row(&url).await;
    let other = locker(&url).await;
    let commit = begin(&store, put(b"r", "new"));
    let pid = wait_for_waiting(&url, 1);
    Postgres::sql(&url, &format!("SELECT pg_terminate_backend({pid})"));
    let result = commit.await.expect("it does not panic");
    assert!(matches!(result, Err(Error::OutcomeUnknown(_))), "{result:?}");
    drop(other);
    assert_eq!(value(&store).await.expect("it is there"), "old");
    store.commit(put(b"r", "newer")).await.expect("another connection serves");
}

/// Connections that are cut while nobody uses them are not noticed by anybody.
#[tokio::test(flavor = "multi_thread")]
async fn idle_connections_that_break_are_replaced() {
    let Some(url) = support::database() else { return };
    let store = store_with_row(&url).await;
    for _ in 0..5 {
        let killed = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
                      WHERE datname = current_database() AND application_name = 'partita'";
        assert_ne!(Postgres::sql(&url, killed), "0");
        assert_eq!(value(&store).await.expect("it is there"), "old");
    }
}

/// Whoever hangs up leaves no statement behind that waits or works for nobody.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_hangs_up_stops_its_statement() {
    let Some(url) = support::database() else { return };
    let store = store_with_row(&url).await;
    let other = locker(&url).await;
    let commit = begin(&store, put(b"r", "new"));
    wait_for_waiting(&url, 1);
    commit.abort();
    wait_for_waiting(&url, 0);
    other.batch_execute("COMMIT").await.expect("locks can be given back");
    assert_eq!(value(&store).await.expect("it is there"), "old");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pool_that_is_exhausted_says_so() {
    let Some(url) = support::database() else { return };
    let store = store_with_row(&format!("{url}?connections=1")).await;
    let other = locker(&url).await;
    let commit = begin(&store, put(b"r", "new"));
    wait_for_waiting(&url, 1);
    match store.get(SPACE, b"p", b"r").await {
        Err(Error::Unavailable(why)) => assert!(why.contains("all 1 connections"), "{why}"),
        other => panic!("{other:?}"),
    }
    store.ready().await.expect("who waits for locks is not without a database");
    other.batch_execute("COMMIT").await.expect("locks can be given back");
    commit.await.expect("it does not panic").expect("it goes on");
    assert_eq!(value(&store).await.expect("it is there"), "new");
}

/// An index of PostgreSQL holds at most a third of a page, after compression.
#[tokio::test(flavor = "multi_thread")]
async fn keys_that_cannot_be_indexed_are_refused() {
    let Some(url) = support::database() else { return };
    let store = store_with_row(&url).await;
    let mut state = 1_u32;
    let mut random = |length: usize| -> Vec<u8> {
        let next = |_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        (0..length).map(next).collect()
    };
    let key = random(3000);
    let result = store.commit(put(&key, "value")).await;
    assert!(matches!(result, Err(Error::KeyTooLong)), "{result:?}");
    let key = random(2500);
    store.commit(put(&key, "value")).await.expect("this fits");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_user_must_mend_is_said_at_once() {
    let Some(url) = support::database() else { return };
    let refused = PostgresStore::open(support::options(&format!("{url}x"))).await.expect_err("there is none");
    assert!(refused.contains("does not exist"), "{refused}");
    let name = url.rsplit('/').next().expect("a URL has a database");
    Postgres::sql(&url, &format!("ALTER DATABASE {name} SET default_transaction_read_only = on"));
    let refused = PostgresStore::open(support::options(&url)).await.expect_err("it is read-only");
    assert!(refused.contains("does not allow writes"), "{refused}");
}

/// A statement for one row that had to wait judges the row as it is then, and is not begun anew.
#[tokio::test(flavor = "multi_thread")]
async fn who_waits_for_a_row_goes_on_with_what_is_there_then() {
    let Some(url) = support::database() else { return };
    let store = store_with_row(&url).await;
    let version = store.get(SPACE, b"p", b"r").await.expect("it is read").expect("it is there").version;
    let put = |expect| {
        let action = Action::Put(Bytes::from_static(b"new"));
        let items = vec![Item { row: b"r".to_vec(), expect, action }];
        Batch { space: SPACE, partition: b"p".to_vec(), items, drop_space: None }
    };
    for (expect, succeeds) in
        [(Expect::Version(version), false), (Expect::Absent, false), (Expect::Any, true), (Expect::Present, true)]
    {
        let other = locker(&url).await;
        other.batch_execute("UPDATE partita_row SET version = version + 1").await.expect("it has the lock");
        let commit = begin(&store, put(expect));
        wait_for_waiting(&url, 1);
        other.batch_execute("COMMIT").await.expect("locks can be given back");
        let result = commit.await.expect("it does not panic");
        match succeeds {
            true => assert!(result.is_ok(), "{expect:?}: {result:?}"),
            false => {
                assert!(matches!(result, Err(Error::Conflict { index: 0, found: Some(_) })), "{expect:?}: {result:?}")
            }
        }
    }
    let retries = store.figures().into_iter().find(|(name, _)| *name == "retries_total");
    assert_eq!(retries, Some(("retries_total", 0)));
}
