//! Point reads and inserts that go together in a statement.

mod support;

use bytes::Bytes;
use partita_store::{Action, Batch, Error, Expect, Item, Result, Row, Space, Store, Version};
use partita_store_postgres::PostgresStore;
use partita_testing::postgres::Postgres;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;
use tokio_postgres::{Client, NoTls};

const PATIENCE: Duration = Duration::from_secs(60);
/// What statements begin with that read one row, or several.
const READ: &str = "SELECT EXISTS";
const READS: &str = "SELECT u.place";
const INSERTS: &str = "INSERT INTO partita_row";

fn insert(space: u64, partition: &str, row: &str, value: &str) -> Batch {
    let action = Action::Put(Bytes::copy_from_slice(value.as_bytes()));
    let items = vec![Item { row: row.as_bytes().to_vec(), expect: Expect::Absent, action }];
    Batch { space: Space(space), partition: partition.as_bytes().to_vec(), items, drop_space: None }
}

fn commit(store: &Arc<PostgresStore>, batch: Batch) -> JoinHandle<Result<Version>> {
    let store = store.clone();
    tokio::spawn(async move { store.commit(batch).await })
}

fn get(
    store: &Arc<PostgresStore>,
    space: u64,
    partition: &'static str,
    row: &'static str,
) -> JoinHandle<Result<Option<Row>>> {
    let store = store.clone();
    tokio::spawn(async move { store.get(Space(space), partition.as_bytes(), row.as_bytes()).await })
}

async fn value(read: JoinHandle<Result<Option<Row>>>) -> Option<Bytes> {
    read.await.expect("it does not panic").expect("it is read").map(|row| row.value)
}

/// Lets nobody read or write rows until it is dropped.
async fn locker(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("the database runs");
    tokio::spawn(connection);
    client.batch_execute("BEGIN; LOCK TABLE partita_row").await.expect("the table can be locked");
    client
}

/// Waits until statements like this wait for the lock, and says how many.
async fn waiting(url: &str, like: &'static str) -> usize {
    let url = url.to_owned();
    let wait = move || {
        let count = format!(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
             AND application_name = 'partita' AND wait_event_type = 'Lock' AND query LIKE '%{like}%'"
        );
        let begun = Instant::now();
        loop {
            match Postgres::sql(&url, &count).parse() {
                Ok(0) => assert!(begun.elapsed() < PATIENCE, "no statement waits"),
                Ok(count) => return count,
                Err(error) => panic!("{error}"),
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    tokio::task::spawn_blocking(wait).await.expect("they wait")
}

/// Reads of rows that are there, that are not and that are the same, in tables that were dropped and not.
#[tokio::test]
async fn reads_of_all_kinds_go_together() {
    let Some(url) = support::database() else { return };
    let store = Arc::new(support::open(&url).await);
    for (space, partition, row) in [(1, "p", "a"), (1, "p", "b"), (1, "q", "a"), (2, "p", "a"), (3, "p", "a")] {
        store.commit(insert(space, partition, row, &format!("{space}{partition}{row}"))).await.expect("it is written");
    }
    let drop = Batch { space: Space(9), partition: vec![], items: vec![], drop_space: Some(Space(3)) };
    store.commit(drop).await.expect("a space is dropped");
    let lock = locker(&url).await;
    let reads = [(1, "p", "a"), (1, "p", "b"), (1, "q", "a"), (2, "p", "a"), (1, "p", "c"), (1, "p", "b")]
        .map(|(space, partition, row)| get(&store, space, partition, row));
    let dropped = get(&store, 3, "p", "a");
    let gone = get(&store, 1, "q", "a");
    assert!(waiting(&url, READS).await <= 2);
    gone.abort();
    std::mem::drop(lock);
    let expected = [Some("1pa"), Some("1pb"), Some("1qa"), Some("2pa"), None, Some("1pb")];
    for (read, expected) in reads.into_iter().zip(expected) {
        assert_eq!(value(read).await.as_deref(), expected.map(str::as_bytes));
    }
    let dropped = dropped.await.expect("it does not panic");
    assert!(matches!(dropped, Err(Error::SpaceDropped)), "{dropped:?}");
    assert!(gone.await.is_err_and(|error| error.is_cancelled()), "who hung up is not answered, and disturbs nobody");
}

/// Each insert has its own outcome: written, in the way of another, or in a table that is gone.
#[tokio::test]
async fn inserts_that_go_together_are_told_apart() {
    let Some(url) = support::database() else { return };
    let store = Arc::new(support::open(&url).await);
    store.commit(insert(1, "p", "there", "old")).await.expect("it is written");
    let drop = Batch { space: Space(9), partition: vec![], items: vec![], drop_space: Some(Space(3)) };
    store.commit(drop).await.expect("a space is dropped");
    let lock = locker(&url).await;
    let good: Vec<_> = (0..50).map(|n| commit(&store, insert(1 + n % 2, "p", &n.to_string(), "new"))).collect();
    let twice = ["one", "other"].map(|value| commit(&store, insert(1, "p", "twice", value)));
    let in_the_way = commit(&store, insert(1, "p", "there", "new"));
    let dropped = commit(&store, insert(3, "p", "a", "new"));
    assert!(waiting(&url, INSERTS).await <= 8);
    std::mem::drop(lock);
    let mut versions = Vec::new();
    for commit in good {
        versions.push(commit.await.expect("it does not panic").expect("it is written"));
    }
    versions.sort_unstable();
    versions.dedup();
    assert_eq!(versions.len(), 50);
    let [one, other] = twice;
    let [one, other] = [one.await, other.await].map(|result| result.expect("it does not panic"));
    let (won, lost) = if one.is_ok() { (one, other) } else { (other, one) };
    assert!(
        matches!((&won, &lost), (Ok(version), Err(Error::Conflict { index: 0, found: Some(found) })) if version == found)
    );
    let in_the_way = in_the_way.await.expect("it does not panic");
    assert!(matches!(in_the_way, Err(Error::Conflict { index: 0, found: Some(_) })), "{in_the_way:?}");
    let dropped = dropped.await.expect("it does not panic");
    assert!(matches!(dropped, Err(Error::SpaceDropped)), "{dropped:?}");
    assert_eq!(value(get(&store, 1, "p", "there")).await.expect("it is there"), "old");
}

/// Cuts all connections of ours to a database.
fn cut_connections(url: &str) {
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
               WHERE datname = current_database() AND application_name = 'partita'";
    Postgres::sql(url, end);
}

/// Nobody knows what became of inserts whose connection is lost, so nobody is told.
#[tokio::test]
async fn a_lost_connection_leaves_all_inserts_in_doubt() {
    let Some(url) = support::database() else { return };
    let store = Arc::new(support::open(&url).await);
    store.commit(insert(1, "p", "there", "old")).await.expect("it is written");
    let lock = locker(&url).await;
    let inserts = ["a", "b"].map(|row| commit(&store, insert(1, "p", row, "new")));
    waiting(&url, INSERTS).await;
    cut_connections(&url);
    std::mem::drop(lock);
    for insert in inserts {
        let outcome = insert.await.expect("it does not panic");
        assert!(matches!(outcome, Err(Error::OutcomeUnknown(_))), "{outcome:?}");
    }
}

/// Reads whose connection is lost are asked again.
#[tokio::test]
async fn a_lost_connection_is_not_noticed_by_readers() {
    let Some(url) = support::database() else { return };
    let store = Arc::new(support::open(&url).await);
    store.commit(insert(1, "p", "there", "old")).await.expect("it is written");
    for (rows, like) in [(vec!["there", "there", "absent"], READS), (vec!["there", "there"], READ)] {
        let lock = locker(&url).await;
        let reads: Vec<_> = rows.iter().map(|row| get(&store, 1, "p", row)).collect();
        waiting(&url, like).await;
        cut_connections(&url);
        std::mem::drop(lock);
        for (row, read) in rows.iter().zip(reads) {
            assert_eq!(value(read).await, (*row == "there").then_some(Bytes::from_static(b"old")), "{row}");
        }
    }
}
