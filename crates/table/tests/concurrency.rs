//! Many tasks at once, on each engine: races have one winner, nothing is lost, and nothing is seen by half.
//!
//! Nothing waits for time to pass: tasks do a number of things, or watch until those that do have finished.

mod support;

use partita_model::{ETag, IfMatch, ServiceError, Value};
use partita_store::{Memory, Store};
use partita_table::{Change, Table, TableService};
use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use support::*;
use tokio::task::{JoinSet, yield_now};

const TASKS: i32 = 8;

/// Runs a test on each engine, with more threads than one so that tasks really meet.
fn on_each_engine<F: Future<Output = ()>>(test: impl Fn(Arc<TableService>) -> F) {
    let folder = folder();
    let stores: [Arc<dyn Store>; 2] = [Arc::new(Memory::new()), Arc::new(rocks(folder.path()))];
    for store in stores {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).build().expect("a runtime");
        runtime.block_on(async {
            let service = TableService::open(store).await.expect("an empty store opens");
            test(Arc::new(service)).await;
        });
    }
}

/// Starts the same for each number at once, and gathers what came of it.
async fn each<T, F>(tasks: i32, start: impl Fn(i32) -> F) -> Vec<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let tasks: JoinSet<T> = (0..tasks).map(start).collect();
    tasks.join_all().await
}

fn number(number: i32) -> Value {
    Value::Int32(number)
}

/// Counts the successes and sees that all others failed for the one reason there is.
#[track_caller]
fn one_winner<T>(outcomes: Vec<Result<T, ServiceError>>, losers: ServiceError) -> T {
    let mut winners = Vec::new();
    for outcome in outcomes {
        match outcome {
            Ok(winner) => winners.push(winner),
            Err(error) => assert_eq!(error, losers),
        }
    }
    assert_eq!(winners.len(), 1, "one wins");
    winners.remove(0)
}

#[test]
fn an_etag_race_has_one_winner() {
    on_each_engine(|service| async move {
        let table = create(&service, "Race").await;
        let mut version = apply_one(&service, &table, insert("p", "r", &[])).await.expect("a new row");
        for round in 0..40 {
            let outcomes = each(TASKS, |task| {
                let (service, table) = (service.clone(), table.clone());
                async move {
                    let if_match = Some(IfMatch::Tag(ETag(version)));
                    let content = [("Winner", number(task))];
                    let change = match (round + task) % 2 {
                        0 => replace("p", "r", &content, if_match),
                        _ => merge("p", "r", &content, if_match),
                    };
                    apply_one(&service, &table, change).await.map(|version| (task, version))
                }
            });
            let (winner, next) = one_winner(outcomes.await, ServiceError::UpdateConditionNotSatisfied);
            assert!(next > version, "versions grow");
            version = next;
            let found = get(&service, &table, "p", "r").await.expect("it is there");
            assert_eq!((found.int32("Winner"), found.timestamp), (winner, version));
        }
    });
}

#[test]
fn one_insert_and_one_delete_win() {
    on_each_engine(|service| async move {
        let table = create(&service, "Race").await;
        for _ in 0..40 {
            let inserts = each(TASKS, |task| {
                let (service, table) = (service.clone(), table.clone());
                async move { apply_one(&service, &table, insert("p", "r", &[("Winner", number(task))])).await.map(|_| task) }
            });
            let winner = one_winner(inserts.await, ServiceError::EntityAlreadyExists);
            let found = get(&service, &table, "p", "r").await.expect("it is there");
            assert_eq!(found.int32("Winner"), winner);

            let deletes = each(TASKS, |task| {
                let (service, table) = (service.clone(), table.clone());
                let if_match = if task % 2 == 0 { IfMatch::Any } else { IfMatch::Tag(ETag(found.timestamp)) };
                async move { apply_one(&service, &table, delete("p", "r", if_match)).await }
            });
            one_winner(deletes.await, ServiceError::ResourceNotFound);
        }
    });
}

#[test]
fn concurrent_merges_lose_nothing() {
    const MERGES: i32 = 30;
    on_each_engine(|service| async move {
        let table = create(&service, "Merges").await;
        // The entity is not there at first, so that an insert is raced for as well. Every other one of the tasks merges
        // in a transaction.
        each(TASKS, |task| {
            let (service, table) = (service.clone(), table.clone());
            async move {
                let name = format!("Task{task}");
                for round in 1..=MERGES {
                    let mut changes = vec![merge("p", "r", &[(&name, number(round))], None)];
                    if task % 2 == 0 {
                        changes.push(merge("p", "other", &[(&name, number(round))], None));
                    }
                    apply(&service, &table, &changes).await.expect("a merge without a condition is always made");
                }
            }
        })
        .await;
        let found = get(&service, &table, "p", "r").await.expect("it is there");
        assert_eq!(found.properties.len(), TASKS as usize);
        for task in 0..TASKS {
            assert_eq!(found.int32(&format!("Task{task}")), MERGES);
        }
        let other = get(&service, &table, "p", "other").await.expect("it is there");
        assert_eq!(other.properties.len(), TASKS as usize / 2);
    });
}

#[test]
fn counting_with_etags_loses_nothing() {
    const INCREMENTS: i32 = 15;
    on_each_engine(|service| async move {
        let table = create(&service, "Counter").await;
        apply_one(&service, &table, insert("p", "r", &[("Count", number(0))])).await.expect("a new row");
        each(TASKS, |_| {
            let (service, table) = (service.clone(), table.clone());
            async move {
                let mut done = 0;
                while done < INCREMENTS {
                    let found = get(&service, &table, "p", "r").await.expect("it is there");
                    let count = [("Count", number(found.int32("Count") + 1))];
                    let if_match = Some(IfMatch::Tag(ETag(found.timestamp)));
                    match apply_one(&service, &table, replace("p", "r", &count, if_match)).await {
                        Ok(_) => done += 1,
                        Err(error) => assert_eq!(error, ServiceError::UpdateConditionNotSatisfied),
                    }
                    yield_now().await;
                }
            }
        })
        .await;
        let found = get(&service, &table, "p", "r").await.expect("it is there");
        assert_eq!(found.int32("Count"), TASKS * INCREMENTS);
    });
}

/// Rows that every transaction writes the same number to.
const MEMBERS: [&str; 5] = ["a", "b", "c", "d", "e"];

/// Writes a number to all rows, or takes them all away.
fn together(round: i32) -> Vec<Change> {
    let each = |change: &dyn Fn(&str) -> Change| MEMBERS.iter().map(|row| change(row)).collect();
    match round % 4 {
        0 => each(&|row| replace("p", row, &[("Round", number(round))], None)),
        1 => each(&|row| merge("p", row, &[("Round", number(round))], Some(IfMatch::Any))),
        2 => each(&|row| delete("p", row, IfMatch::Any)),
        _ => each(&|row| insert("p", row, &[("Round", number(round))])),
    }
}

#[test]
fn a_query_never_sees_half_a_transaction() {
    const ROUNDS: i32 = 400;
    on_each_engine(|service| async move {
        let table = create(&service, "Whole").await;
        let done = Arc::new(AtomicBool::new(false));
        let mut readers = JoinSet::new();
        for _ in 0..2 {
            let (service, table, done) = (service.clone(), table.clone(), done.clone());
            readers.spawn(async move {
                let mut last = 0;
                while !done.load(Ordering::Acquire) {
                    let rows = everything(&service, &table).await.expect("the table is there");
                    let rounds: BTreeSet<_> = rows.iter().map(|row| row.int32("Round")).collect();
                    let versions: BTreeSet<_> = rows.iter().map(|row| row.timestamp).collect();
                    assert!(rows.is_empty() || rows.len() == MEMBERS.len(), "some of the rows: {rows:?}");
                    assert!(rounds.len() <= 1 && versions.len() <= 1, "rows of two transactions: {rows:?}");
                    let round = rounds.first().copied().unwrap_or(last);
                    assert!(round >= last, "round {round} after round {last}");
                    last = round;
                    yield_now().await;
                }
            });
        }
        for round in 0..ROUNDS {
            apply(&service, &table, &together(round)).await.expect("nobody else writes");
            yield_now().await;
        }
        done.store(true, Ordering::Release);
        readers.join_all().await;
    });
}

#[test]
fn gets_never_see_half_a_transaction() {
    const ROUNDS: i32 = 400;
    on_each_engine(|service| async move {
        let table = create(&service, "Whole").await;
        apply(&service, &table, &together(0)).await.expect("new rows");
        let done = Arc::new(AtomicBool::new(false));
        let mut readers = JoinSet::new();
        // Whoever has seen a round in one row sees it, or a later one, in every other, whichever is read first.
        for [first, second] in [["a", "e"], ["e", "a"], ["c", "b"]] {
            let (service, table, done) = (service.clone(), table.clone(), done.clone());
            readers.spawn(async move {
                while !done.load(Ordering::Acquire) {
                    let one = get(&service, &table, "p", first).await.expect("it is there").int32("Round");
                    let other = get(&service, &table, "p", second).await.expect("it is there").int32("Round");
                    assert!(other >= one, "round {other} in {second} after round {one} in {first}");
                    yield_now().await;
                }
            });
        }
        for round in 1..ROUNDS {
            let changes: Vec<_> =
                MEMBERS.iter().map(|row| replace("p", row, &[("Round", number(round))], None)).collect();
            apply(&service, &table, &changes).await.expect("nobody else writes");
            yield_now().await;
        }
        done.store(true, Ordering::Release);
        readers.join_all().await;
    });
}

#[test]
fn a_refused_transaction_is_never_seen() {
    const ROUNDS: i32 = 200;
    on_each_engine(|service| async move {
        let table = create(&service, "Refused").await;
        apply_one(&service, &table, insert("p", "z", &[])).await.expect("a new row");
        let done = Arc::new(AtomicBool::new(false));
        let reader = {
            let (service, table, done) = (service.clone(), table.clone(), done.clone());
            tokio::spawn(async move {
                while !done.load(Ordering::Acquire) {
                    let rows = everything(&service, &table).await.expect("the table is there");
                    assert_eq!(rows.len(), 1, "{rows:?}");
                    yield_now().await;
                }
            })
        };
        each(2, |task| {
            let (service, table) = (service.clone(), table.clone());
            async move {
                for _ in 0..ROUNDS {
                    let changes = [insert("p", &format!("new{task}"), &[]), insert("p", "z", &[])];
                    let refused = apply(&service, &table, &changes).await;
                    let refused = refused.expect_err("the row is there");
                    assert_eq!((refused.index, refused.error), (1, ServiceError::EntityAlreadyExists));
                    yield_now().await;
                }
            }
        })
        .await;
        done.store(true, Ordering::Release);
        reader.await.expect("the reader saw nothing wrong");
    });
}

#[test]
fn one_of_many_creates_a_table_and_one_drops_it() {
    on_each_engine(|service| async move {
        for _ in 0..20 {
            let created = each(TASKS, |task| {
                let service = service.clone();
                let name = ["Race", "RACE", "race"][task as usize % 3];
                async move { service.create_table(ACCOUNT, table_name(name)).await }
            });
            let table = one_winner(created.await, ServiceError::TableAlreadyExists);
            let found = service.table(ACCOUNT, &table_name("race")).expect("it is there");
            assert_eq!(found, table);
            let dropped = each(TASKS, |_| {
                let service = service.clone();
                async move { service.delete_table(ACCOUNT, &table_name("Race")).await }
            });
            one_winner(dropped.await, ServiceError::ResourceNotFound);
            assert_eq!(service.table(ACCOUNT, &table_name("race")), Err(ServiceError::TableNotFound));
        }
    });
}

#[test]
fn tables_created_at_once_share_nothing() {
    on_each_engine(|service| async move {
        let tables = each(TASKS * 4, |task| {
            let service = service.clone();
            async move { create(&service, &format!("Table{task}")).await }
        })
        .await;
        let spaces: BTreeSet<_> = tables.iter().map(|table| table.space).collect();
        assert_eq!(spaces.len(), tables.len());
        each(TASKS * 4, |task| {
            let (service, table) = (service.clone(), tables[task as usize].clone());
            async move { apply_one(&service, &table, insert("p", "r", &[("Task", number(task))])).await.expect("new") }
        })
        .await;
    });
}

/// Entities carry the space of the table they were meant for.
fn meant_for(table: &Table) -> [(&'static str, Value); 1] {
    [("Space", number(table.space.0 as i32))]
}

#[test]
fn no_entity_survives_its_table() {
    const ROUNDS: i32 = 150;
    on_each_engine(|service| async move {
        let name = || table_name("Race");
        let mut tasks = JoinSet::new();
        for task in 0..2 {
            let creator = service.clone();
            tasks.spawn(async move {
                for _ in 0..ROUNDS {
                    match creator.create_table(ACCOUNT, name()).await {
                        Ok(_) | Err(ServiceError::TableAlreadyExists) => {}
                        Err(error) => panic!("create: {error}"),
                    }
                    let policies = vec![policy("reader", "r")];
                    match creator.set_access_policies(ACCOUNT, &name(), policies).await {
                        Ok(()) | Err(ServiceError::TableNotFound) => {}
                        Err(error) => panic!("set policies: {error}"),
                    }
                    yield_now().await;
                }
            });
            let dropper = service.clone();
            tasks.spawn(async move {
                for _ in 0..ROUNDS {
                    match dropper.delete_table(ACCOUNT, &name()).await {
                        Ok(()) | Err(ServiceError::ResourceNotFound) => {}
                        Err(error) => panic!("drop: {error}"),
                    }
                    yield_now().await;
                }
            });
            let writer = service.clone();
            tasks.spawn(async move {
                for round in 0..ROUNDS {
                    if let Ok(table) = writer.table(ACCOUNT, &name()) {
                        write_and_read(&writer, &table, &format!("{task}-{round}")).await;
                    }
                    yield_now().await;
                }
            });
        }
        tasks.join_all().await;

        match service.delete_table(ACCOUNT, &name()).await {
            Ok(()) | Err(ServiceError::ResourceNotFound) => {}
            Err(error) => panic!("drop: {error}"),
        }
        let table = create(&service, "Race").await;
        assert_eq!(everything(&service, &table).await.expect("the table is there"), []);
        assert_eq!(table.access_policies, []);
    });
}

/// Writes to a table that others drop and create meanwhile. Whatever is seen in it was meant for it.
async fn write_and_read(service: &TableService, table: &Table, row: &str) {
    let gone = |error: &ServiceError| *error == ServiceError::TableNotFound;
    let content = meant_for(table);
    let changes =
        [insert("p", row, &content), merge("p", "shared", &content, None), replace("p", "other", &content, None)];
    for change in changes {
        if let Err(error) = apply_one(service, table, change).await {
            assert!(gone(&error), "a write: {error}");
        }
    }
    match get(service, table, "p", "shared").await {
        Ok(found) => assert_eq!(found.int32("Space"), table.space.0 as i32, "an entity of another table"),
        Err(error) => assert!(gone(&error), "a get of an entity that was written: {error}"),
    }
    match everything(service, table).await {
        Ok(rows) => {
            assert!(rows.iter().any(|found| found.row_key == row), "{row} is missing: {rows:?}");
            for found in rows {
                assert_eq!(found.int32("Space"), table.space.0 as i32, "an entity of another table");
            }
        }
        Err(error) => assert!(gone(&error), "a query: {error}"),
    }
}
