//! Several nodes on one database: two stores that know nothing of one another.

mod support;

use bytes::Bytes;
use partita_model::Ticks;
use partita_store::suite::ClockHand;
use partita_store::{Action, Batch, Error, Expect, Item, Space, Store};
use partita_store_postgres::{Grace, PostgresStore};
use partita_testing::postgres::Postgres;
use std::time::{Duration, SystemTime};

const SPACE: Space = Space(7);
const HOUR: u64 = 36_000_000_000;
const NO_GRACE: Grace = Grace { statements: Duration::ZERO, tombstones: Duration::ZERO, floor: Duration::ZERO };

fn item(row: &str, expect: Expect, action: Action) -> Item {
    Item { row: row.into(), expect, action }
}

fn put(row: &str, expect: Expect, value: &str) -> Item {
    item(row, expect, Action::Put(Bytes::copy_from_slice(value.as_bytes())))
}

fn batch(items: Vec<Item>) -> Batch {
    Batch { space: SPACE, partition: b"p".to_vec(), items, drop_space: None }
}

/// Two nodes whose clocks are two hours apart.
async fn two_nodes(url: &str) -> [PostgresStore; 2] {
    let now = Ticks::from_system_time(SystemTime::now()).0;
    let node = async |time| {
        let hand = ClockHand::default();
        hand.set(Ticks(time));
        support::open_with_clock(url, hand.clock()).await
    };
    [node(now + HOUR).await, node(now - HOUR).await]
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_start_at_once_make_the_tables_once() {
    let Some(url) = support::database() else { return };
    let nodes = (0..6).map(|_| {
        let url = url.clone();
        tokio::spawn(async move { support::open(&url).await })
    });
    for node in nodes.collect::<Vec<_>>() {
        let node = node.await.expect("it starts");
        node.commit(batch(vec![put("r", Expect::Any, "value")])).await.expect("it works");
    }
    assert_eq!(Postgres::sql(&url, "SELECT name, value FROM partita_meta"), "format|1");
    let floor = "SELECT count(*), min(copy), max(copy), max(value) FROM partita_floor";
    assert_eq!(Postgres::sql(&url, floor), "64|0|63|0");
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_of_a_newer_version_are_left_alone() {
    let Some(url) = support::database() else { return };
    drop(support::open(&url).await);
    Postgres::sql(&url, "UPDATE partita_meta SET value = 2 WHERE name = 'format'");
    let refused = PostgresStore::open(support::options(&url)).await.expect_err("it is newer");
    assert!(refused.contains("newer version"), "{refused}");
}

/// Whatever the clocks say, each version of a row is above the one before, across deletion, creation and the end of
/// tombstones.
#[tokio::test(flavor = "multi_thread")]
async fn versions_grow_whatever_the_clocks_of_nodes_say() {
    let Some(url) = support::database() else { return };
    let nodes = two_nodes(&url).await;
    let mut last = 0;
    for round in 0..20 {
        let node = &nodes[round % 2];
        let action = if round % 3 == 2 { Action::Delete } else { Action::Put(Bytes::from_static(b"value")) };
        let version = node.commit(batch(vec![item("r", Expect::Any, action)])).await.expect("nothing is expected");
        assert!(version > last, "{version} follows {last}");
        last = version;
        if round == 11 {
            // Tombstones go only below a floor, which is never above the clock of the database; this one has to wait.
            nodes[0].sweep(NO_GRACE).await.expect("it sweeps");
        }
    }
    // The other way round: the node that is behind leaves the tombstone, and it may go at once.
    let slow = &nodes[1];
    let deleted = slow.commit(batch(vec![put("s", Expect::Absent, "value")])).await.expect("it is new");
    let deleted =
        slow.commit(batch(vec![item("s", Expect::Version(deleted), Action::Delete)])).await.expect("it is there");
    let again = support::open_with_clock(&url, ClockHand::default().clock()).await;
    let created = again.commit(batch(vec![put("s", Expect::Absent, "value")])).await.expect("it is gone");
    assert!(created > deleted, "{created} follows {deleted}");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_two_nodes_wins_a_race() {
    let Some(url) = support::database() else { return };
    let [left, right] = &two_nodes(&url).await;
    let mut version = left.commit(batch(vec![put("r", Expect::Absent, "0")])).await.expect("it is new");
    for round in 0..50 {
        let change = |who: &str| batch(vec![put("r", Expect::Version(version), &format!("{who}{round}"))]);
        let (left_result, right_result) = tokio::join!(left.commit(change("left")), right.commit(change("right")));
        let (winner, lost) = match (left_result, right_result) {
            (Ok(winner), Err(lost)) | (Err(lost), Ok(winner)) => (winner, lost),
            both => panic!("round {round}: {both:?}"),
        };
        assert!(winner > version);
        assert!(matches!(lost, Error::Conflict { index: 0, found: Some(found) } if found == winner), "{lost:?}");
        version = winner;
    }
}

/// Each batch writes a row and relies on the other's not being there: they cannot both be right.
#[tokio::test(flavor = "multi_thread")]
async fn batches_that_check_what_the_other_writes_do_not_both_pass() {
    let Some(url) = support::database() else { return };
    let [left, right] = &two_nodes(&url).await;
    for round in 0..30 {
        let (a, b) = (format!("a{round}"), format!("b{round}"));
        let change = |mine: &str, other: &str| {
            batch(vec![put(mine, Expect::Absent, "value"), item(other, Expect::Absent, Action::Nothing)])
        };
        let results = tokio::join!(left.commit(change(&a, &b)), right.commit(change(&b, &a)));
        assert!(results.0.is_ok() != results.1.is_ok(), "round {round}: {results:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_space_that_one_node_drops_is_gone_on_the_other() {
    let Some(url) = support::database() else { return };
    let [left, right] = &two_nodes(&url).await;
    left.commit(batch(vec![put("r", Expect::Any, "value")])).await.expect("it is written");
    let catalogue = Batch { space: Space(0), drop_space: Some(SPACE), ..batch(vec![]) };
    right.commit(catalogue).await.expect("the space is dropped");
    assert!(matches!(left.get(SPACE, b"p", b"r").await, Err(Error::SpaceDropped)));
    for expect in [Expect::Any, Expect::Absent, Expect::Present] {
        let late = left.commit(batch(vec![put("late", expect, "value")])).await;
        assert!(matches!(late, Err(Error::SpaceDropped)), "{late:?}");
    }
}
