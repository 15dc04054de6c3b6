//! What nobody can see any more is reclaimed, and nothing else.

mod support;

use bytes::Bytes;
use partita_store::suite::ClockHand;
use partita_store::{Action, Batch, Expect, Item, Space, Store};
use partita_store_postgres::sql::COPIES;
use partita_store_postgres::{Grace, PostgresStore};
use partita_testing::postgres::Postgres;
use std::time::Duration;

const SPACE: Space = Space(7);
const NO_GRACE: Grace = Grace { statements: Duration::ZERO, tombstones: Duration::ZERO, floor: Duration::ZERO };

fn item(row: &str, action: Action) -> Item {
    Item { row: row.into(), expect: Expect::Any, action }
}

fn batch(items: Vec<Item>) -> Batch {
    Batch { space: SPACE, partition: b"p".to_vec(), items, drop_space: None }
}

fn put(row: &str) -> Item {
    item(row, Action::Put(Bytes::from_static(b"value")))
}

async fn drop_space(store: &PostgresStore) {
    let drop = Batch { space: Space(0), drop_space: Some(SPACE), ..batch(vec![]) };
    store.commit(drop).await.expect("the space is dropped");
}

fn count(url: &str, what: &str) -> String {
    Postgres::sql(url, &format!("SELECT count(*) FROM {what}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_of_a_dropped_space_are_reclaimed() {
    let Some(url) = support::database() else { return };
    let (store, other) = (support::open(&url).await, support::open(&url).await);
    let rows: Vec<Item> = (0..2500).map(|row| put(&format!("{row:04}"))).collect();
    store.commit(batch(rows)).await.expect("rows are written");
    let neighbour = Batch { space: Space(8), ..batch(vec![put("stays")]) };
    store.commit(neighbour).await.expect("a row is written");
    store.sweep(NO_GRACE).await.expect("it sweeps");
    assert_eq!(count(&url, "partita_row"), "2501", "nothing was dropped yet");
    drop_space(&store).await;
    let (left, right) = tokio::join!(store.sweep(NO_GRACE), other.sweep(NO_GRACE));
    left.and(right).expect("they sweep");
    store.sweep(NO_GRACE).await.expect("it sweeps");
    assert_eq!(count(&url, "partita_row"), "1");
    assert_eq!(count(&url, "partita_dropped WHERE swept"), "1");
    assert_eq!(count(&url, "partita_dropped"), COPIES.to_string(), "every copy still knows");
    assert!(store.get(Space(8), b"p", b"stays").await.expect("it is read").is_some());
}

/// A statement that began before the drop may write behind it. Its row is never seen, and is swept too.
#[tokio::test(flavor = "multi_thread")]
async fn a_late_row_is_caught() {
    let Some(url) = support::database() else { return };
    let store = support::open(&url).await;
    drop_space(&store).await;
    store.sweep(Grace::default()).await.expect("it sweeps");
    assert_eq!(count(&url, "partita_dropped WHERE swept"), "0", "somebody may still write there");
    let space = partita_store_postgres::sql::space(SPACE);
    Postgres::sql(&url, &format!("INSERT INTO partita_row VALUES ({space}, 'p', 'late', 1, 'value')"));
    store.sweep(NO_GRACE).await.expect("it sweeps");
    assert_eq!(count(&url, "partita_row"), "0");
    assert_eq!(count(&url, "partita_dropped WHERE swept"), "1");
}

#[tokio::test(flavor = "multi_thread")]
async fn old_tombstones_go_and_versions_still_grow() {
    let Some(url) = support::database() else { return };
    let store = support::open(&url).await;
    store.commit(batch(vec![put("gone"), put("stays")])).await.expect("rows are written");
    let deleted = store.commit(batch(vec![item("gone", Action::Delete)])).await.expect("it is deleted");
    store.sweep(Grace::default()).await.expect("it sweeps");
    assert_eq!(count(&url, "partita_row WHERE value IS NULL"), "1", "it is young");
    // The floor comes first. Only a sweep that finds it there for long enough takes tombstones away.
    store.sweep(NO_GRACE).await.expect("it sweeps");
    assert_eq!(count(&url, "partita_row WHERE value IS NULL"), "1");
    assert_eq!(count(&url, &format!("partita_floor WHERE value >= {deleted}")), COPIES.to_string());
    store.sweep(Grace::default()).await.expect("it sweeps");
    assert_eq!(count(&url, "partita_row WHERE value IS NULL"), "1", "the floor is young");
    store.sweep(NO_GRACE).await.expect("it sweeps");
    assert_eq!(count(&url, "partita_row"), "1");

    // A node whose clock stands at the beginning of time, and that never saw the row.
    let late = support::open_with_clock(&url, ClockHand::default().clock()).await;
    let created = late.commit(batch(vec![put("gone")])).await.expect("it is created");
    assert!(created > deleted, "{created} follows {deleted}");
}

/// Who asked a copy whose floor is lower, or who may have asked it before it was raised, can still give a version below.
#[tokio::test(flavor = "multi_thread")]
async fn a_tombstone_waits_for_every_copy_of_the_floor() {
    let Some(url) = support::database() else { return };
    let store = support::open(&url).await;
    store.commit(batch(vec![put("gone")])).await.expect("a row is written");
    let deleted = store.commit(batch(vec![item("gone", Action::Delete)])).await.expect("it is deleted");
    let set = |what: &str| Postgres::sql(&url, &format!("UPDATE partita_floor SET {what}"));
    let above = format!("value = {deleted}, since = now() - interval '1 hour'");
    for (spoiled, why) in
        [(format!("value = {deleted} - 1"), "a copy is lower"), ("since = now()".into(), "it is young")]
    {
        for copy in [0, 37, COPIES - 1] {
            set(&above);
            set(&format!("{spoiled} WHERE copy = {copy}"));
            store.sweep(Grace::default()).await.expect("it sweeps");
            assert_eq!(count(&url, "partita_row"), "1", "{why}: {copy}");
        }
    }
    set(&above);
    store.sweep(Grace::default()).await.expect("it sweeps");
    assert_eq!(count(&url, "partita_row"), "0");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_copy_of_the_floor_is_lowered() {
    let Some(url) = support::database() else { return };
    let store = support::open(&url).await;
    let deleted = store.commit(batch(vec![item("gone", Action::Delete)])).await.expect("nothing is expected");
    Postgres::sql(&url, &format!("UPDATE partita_floor SET value = {} WHERE copy = 37", i64::MAX));
    store.sweep(NO_GRACE).await.expect("it sweeps");
    assert_eq!(count(&url, &format!("partita_floor WHERE value >= {deleted}")), COPIES.to_string());
    assert_eq!(count(&url, &format!("partita_floor WHERE value = {}", i64::MAX)), "1");
}
