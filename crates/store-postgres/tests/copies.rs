//! Marks that are kept in copies: every copy holds, and a statement asks the one of its partition.

mod support;

use bytes::Bytes;
use partita_store::suite::ClockHand;
use partita_store::{Action, Batch, Error, Expect, Item, Position, Result, Scan, ScanEnd, Space, Step, Store, Version};
use partita_store_postgres::PostgresStore;
use partita_store_postgres::sql::{self, COPIES};
use partita_testing::postgres::Postgres;
use std::sync::Arc;
use std::time::{Duration, Instant};

const SPACE: Space = Space(7);

/// A partition for each copy.
fn partitions(space: Space) -> Vec<Vec<u8>> {
    let asks = |copy| move |partition: &Vec<u8>| sql::copy(sql::space(space), partition) == copy;
    let names = || (0_u32..).map(|number| number.to_string().into_bytes());
    (0..COPIES).map(|copy| names().find(asks(copy)).expect("every copy is asked")).collect()
}

fn put(row: &str, expect: Expect) -> Item {
    Item { row: row.into(), expect, action: Action::Put(Bytes::from_static(b"value")) }
}

fn batch(space: Space, partition: &[u8], items: Vec<Item>) -> Batch {
    Batch { space, partition: partition.to_vec(), items, drop_space: None }
}

/// Writes in each partition, one after the other.
async fn commit_each(store: &PostgresStore, space: Space, items: &[Item]) -> Vec<Result<Version>> {
    let mut results = Vec::new();
    for partition in partitions(space) {
        results.push(store.commit(batch(space, &partition, items.to_vec())).await);
    }
    results
}

/// Writes in each partition, all at once.
async fn commit_together(store: &Arc<PostgresStore>, space: Space, item: Item) -> Vec<Result<Version>> {
    let commit = |store: Arc<PostgresStore>, partition: Vec<u8>| {
        let batch = batch(space, &partition, vec![item.clone()]);
        async move { store.commit(batch).await }
    };
    together(store, space, commit).await
}

/// Does the same in each partition, all at once.
async fn together<T: Send + 'static, F: Future<Output = T> + Send + 'static>(
    store: &Arc<PostgresStore>,
    space: Space,
    act: impl Fn(Arc<PostgresStore>, Vec<u8>) -> F,
) -> Vec<T> {
    let tasks = partitions(space).into_iter().map(|partition| tokio::spawn(act(store.clone(), partition)));
    let mut results = Vec::new();
    for task in tasks.collect::<Vec<_>>() {
        results.push(task.await.expect("it does not panic"));
    }
    results
}

async fn scan(store: &PostgresStore, space: Space, partition: &[u8], end: Option<Position>) -> Result<ScanEnd> {
    let start = Position::new(partition, b"");
    let deadline = Instant::now() + Duration::from_secs(60);
    let scan = Scan { space, start, end, deadline, rows_hint: 1, sieve: None };
    store.scan(scan, &mut |_| Step::Stop).await
}

/// A row in each partition.
async fn fill(store: &Arc<PostgresStore>, space: Space) {
    for result in commit_together(store, space, put("r", Expect::Absent)).await {
        result.expect("it is written");
    }
}

/// Asks everything that can be asked of each partition; says for each question which copies answered that the space was
/// dropped.
async fn refusals(store: &Arc<PostgresStore>, space: Space) -> Vec<(&'static str, Vec<usize>)> {
    fn refused<T>(results: Vec<Result<T>>) -> Vec<usize> {
        let refused = |(copy, result)| matches!(result, Err(Error::SpaceDropped)).then_some(copy);
        results.into_iter().enumerate().filter_map(refused).collect()
    }
    let [mut gets, mut scans, mut short_scans] = [const { Vec::new() }; 3];
    for partition in partitions(space) {
        gets.push(store.get(space, &partition, b"r").await.map(drop));
        scans.push(scan(store, space, &partition, None).await.map(drop));
        let end = Position::new(&partition[..], b"s");
        short_scans.push(scan(store, space, &partition, Some(end)).await.map(drop));
    }
    let get = |store: Arc<PostgresStore>, partition: Vec<u8>| async move { store.get(space, &partition, b"r").await };
    let gets_together = together(store, space, get).await;
    let item = |expect, action| [Item { row: b"r".to_vec(), expect, action }];
    vec![
        ("get", refused(gets)),
        ("gets that go together", refused(gets_together)),
        ("scan", refused(scans)),
        ("scan with an end", refused(short_scans)),
        ("insert", refused(commit_each(store, space, &[put("insert", Expect::Absent)]).await)),
        ("inserts that go together", refused(commit_together(store, space, put("insert2", Expect::Absent)).await)),
        ("upsert", refused(commit_each(store, space, &[put("upsert", Expect::Any)]).await)),
        ("replace", refused(commit_each(store, space, &[put("r", Expect::Present)]).await)),
        ("batch", refused(commit_each(store, space, &[put("b", Expect::Absent), put("c", Expect::Any)]).await)),
        ("check", refused(commit_each(store, space, &item(Expect::Present, Action::Nothing)).await)),
        ("delete", refused(commit_each(store, space, &item(Expect::Present, Action::Delete)).await)),
    ]
}

#[track_caller]
fn assert_refused_by(copies: &[usize], refusals: Vec<(&str, Vec<usize>)>) {
    let wrong: Vec<_> = refusals.into_iter().filter(|(_, refused)| refused != copies).collect();
    assert!(wrong.is_empty(), "not refused by {copies:?} alone: {wrong:?}");
}

#[tokio::test]
async fn a_dropped_space_is_refused_in_every_copy() {
    let Some(url) = support::database() else { return };
    let store = Arc::new(support::open(&url).await);
    let other = Space(8);
    fill(&store, SPACE).await;
    fill(&store, other).await;
    let drop = Batch { drop_space: Some(SPACE), ..batch(Space(0), b"", vec![]) };
    store.commit(drop).await.expect("the space is dropped");
    assert_refused_by(&Vec::from_iter(0..COPIES as usize), refusals(&store, SPACE).await);
    assert_refused_by(&[], refusals(&store, other).await);
}

/// Another copy would answer right too, but then copies would not spread what they are there to spread.
#[tokio::test]
async fn a_statement_asks_the_copy_of_its_partition_alone() {
    let Some(url) = support::database() else { return };
    let store = Arc::new(support::open(&url).await);
    fill(&store, SPACE).await;
    let space = sql::space(SPACE);
    Postgres::sql(&url, &format!("INSERT INTO partita_dropped (copy, space) VALUES (37, {space})"));
    assert_refused_by(&[37], refusals(&store, SPACE).await);
}

/// Each copy has another floor here, and the clock of the node is below all of them.
#[tokio::test]
async fn the_floor_holds_in_every_copy() {
    let Some(url) = support::database() else { return };
    let store = Arc::new(support::open_with_clock(&url, ClockHand::default().clock()).await);
    const STEP: i64 = 1000;
    let mut base = 0;
    let mut raise = || {
        base += COPIES * STEP;
        Postgres::sql(&url, &format!("UPDATE partita_floor SET value = {base} + copy * {STEP}"));
        base
    };
    let mut wrong = Vec::new();
    for (write, items) in [
        ("insert", &[put("r", Expect::Absent)][..]),
        ("replace", &[put("r", Expect::Present)]),
        ("upsert", &[put("r", Expect::Any)]),
        ("batch", &[put("one", Expect::Any), put("two", Expect::Any)]),
    ] {
        let base = raise();
        for (copy, result) in (0..).zip(commit_each(&store, SPACE, items).await) {
            let floor = base + copy * STEP;
            let version = result.expect("it is written") as i64;
            if !(floor + 1..floor + STEP).contains(&version) {
                wrong.push((write, copy, floor, version));
            }
        }
    }
    // These have one floor, and versions before any of them knows it.
    let floor = raise();
    Postgres::sql(&url, &format!("UPDATE partita_floor SET value = {floor}"));
    for (copy, result) in (0..).zip(commit_together(&store, SPACE, put("s", Expect::Absent)).await) {
        let version = result.expect("it is written") as i64;
        if version <= floor {
            wrong.push(("inserts that go together", copy, floor, version));
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}
