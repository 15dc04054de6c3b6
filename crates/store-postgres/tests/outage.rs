//! A database that goes away and comes back.

mod support;

use bytes::Bytes;
use partita_store::{Action, Batch, Error, Expect, Item, Space, Store, Version};
use partita_testing::postgres::Postgres;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const SPACE: Space = Space(7);
const PATIENCE: Duration = Duration::from_secs(60);

fn put(row: u32) -> Batch {
    let action = Action::Put(Bytes::from_static(b"value"));
    let items = vec![Item { row: row.to_be_bytes().to_vec(), expect: Expect::Any, action }];
    Batch { space: SPACE, partition: b"p".to_vec(), items, drop_space: None }
}

/// While somebody writes, the database is stopped, crashes and becomes read-only. What was acknowledged stays, what was not
/// is said to be unavailable or unknown, and the same store goes on when the database is back.
#[tokio::test(flavor = "multi_thread")]
async fn a_store_outlives_its_database() {
    let Some(postgres) = Postgres::start() else { return };
    let url = postgres.database();
    let store = Arc::new(support::open(&url).await);
    let acknowledged: Arc<Mutex<Vec<(u32, Version)>>> = Arc::default();
    let done = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..4_u32)
        .map(|writer| {
            let (store, acknowledged, done) = (store.clone(), acknowledged.clone(), done.clone());
            tokio::spawn(async move {
                let mut row = writer << 24;
                while !done.load(Ordering::SeqCst) {
                    row += 1;
                    match store.commit(put(row)).await {
                        Ok(version) => acknowledged.lock().unwrap().push((row, version)),
                        Err(Error::OutcomeUnknown(_) | Error::Unavailable(_)) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            })
        })
        .collect();
    let written = || acknowledged.lock().unwrap().len();
    let wait_for_writes = async || {
        let (before, begun) = (written(), Instant::now());
        while written() < before + 20 {
            assert!(begun.elapsed() < PATIENCE, "nothing is written any more");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    wait_for_writes().await;
    for mode in ["fast", "immediate"] {
        postgres.stop(mode);
        assert!(matches!(store.get(SPACE, b"p", b"r").await, Err(Error::Unavailable(_))));
        postgres.start_again();
        wait_for_writes().await;
    }

    let set_read_only = |value: &str| {
        Postgres::sql(&url, &format!("ALTER SYSTEM SET default_transaction_read_only = {value}"));
        Postgres::sql(&url, "SELECT pg_reload_conf()");
    };
    set_read_only("on");
    loop {
        match store.commit(put(u32::MAX)).await {
            // Sessions take the new setting up one by one.
            Ok(_) => {}
            Err(Error::Unavailable(why)) => {
                assert!(why.contains("read-only") || why.contains("does not allow writes"), "{why}");
                break;
            }
            Err(error) => panic!("{error}"),
        }
    }
    set_read_only("off");
    wait_for_writes().await;
    done.store(true, Ordering::SeqCst);
    for writer in writers {
        writer.await.expect("it does not panic");
    }
    let acknowledged = acknowledged.lock().unwrap().clone();
    for (row, version) in acknowledged {
        let found = store.get(SPACE, b"p", &row.to_be_bytes()).await.expect("it is read");
        assert_eq!(found.map(|row| row.version), Some(version), "row {row} was acknowledged");
    }
}
