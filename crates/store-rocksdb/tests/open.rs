//! Opening, closing and opening again.

mod support;

use partita_model::Ticks;
use partita_store::suite::ClockHand;
use partita_store::{Batch, Error, Space, Store};
use partita_store_rocksdb::{Durability, OpenError, Options, RocksStore};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use support::*;
use tempfile::tempdir;

fn failure(folder: &Path) -> OpenError {
    RocksStore::open(folder, Options::default()).expect_err("the folder does not open")
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_and_versions_outlive_the_store() {
    let folder = tempdir().unwrap();
    let hand = ClockHand::default();
    let noon = 638_000_000_000_000_000;
    let mut last = 0;
    for (round, now) in [noon, noon - 1_000_000, 0, noon + 5, noon - 7].into_iter().enumerate() {
        hand.set(Ticks(now));
        let store = open_at(folder.path(), hand.clock());
        for earlier in 0..round as u8 {
            assert_eq!(get(&store, b"p", &[earlier]).await.expect("the row is still there").value, vec![earlier; 100]);
        }
        let row = [round as u8];
        let version = store.commit(batch(SPACE, b"p", vec![put(&row, vec![row[0]; 100])])).await.unwrap();
        assert!(version > last, "{version} follows {last} across a restart");
        assert_eq!(get(&store, b"p", &row).await.unwrap().version, version);
        // The greatest version belongs to a row that is no longer there.
        store.commit(batch(SPACE, b"p", vec![put(b"gone", "")])).await.unwrap();
        last = store.commit(batch(SPACE, b"p", vec![delete(b"gone")])).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_durability_outlives_a_close() {
    for durability in [Durability::Sync, Durability::Interval(Duration::from_millis(1)), Durability::None] {
        let folder = tempdir().unwrap();
        let store = open_with(folder.path(), durability);
        for row in 0..50_u8 {
            store.commit(batch(SPACE, b"p", vec![put(&[row], "value")])).await.unwrap();
        }
        let (groups, syncs) = (figure(&store, "commit_groups_total"), figure(&store, "syncs_total"));
        match durability {
            Durability::Sync => assert_eq!(syncs, groups),
            Durability::Interval(_) => {}
            Durability::None => assert_eq!(syncs, 0),
        }
        drop(store);
        let store = open(folder.path());
        for row in 0..50_u8 {
            assert!(get(&store, b"p", &[row]).await.is_some(), "{durability:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interval_syncs_by_itself() {
    let folder = tempdir().unwrap();
    let store = open_with(folder.path(), Durability::Interval(Duration::from_millis(1)));
    store.commit(batch(SPACE, b"p", vec![put(b"r", "value")])).await.unwrap();
    while figure(&store, "syncs_total") == 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn closing_finishes_what_is_queued_and_refuses_the_rest() {
    let folder = tempdir().unwrap();
    let store = Arc::new(open(folder.path()));
    let writers: Vec<_> = (0..500_u16)
        .map(|row| {
            let store = Arc::clone(&store);
            tokio::spawn(
                async move { store.commit(batch(SPACE, b"p", vec![put(&row.to_be_bytes(), vec![0; 2000])])).await },
            )
        })
        .collect();
    tokio::task::block_in_place(|| store.close());
    let mut committed = Vec::new();
    for (row, writer) in (0_u16..).zip(writers) {
        match writer.await.unwrap() {
            Ok(_) => committed.push(row),
            Err(Error::Unavailable(why)) => assert_eq!(why, "the store is closed"),
            Err(other) => panic!("{other}"),
        }
    }
    let late = store.commit(batch(SPACE, b"p", vec![put(b"late", "")])).await;
    assert!(matches!(late, Err(Error::Unavailable(_))), "{late:?}");
    drop(store);

    let store = open(folder.path());
    let mut found = Vec::new();
    each_row(&store, SPACE, |row| found.push(u16::from_be_bytes(row.row.try_into().unwrap()))).await;
    assert_eq!(found, committed);
}

#[tokio::test(flavor = "multi_thread")]
async fn dropped_rows_stay_dropped_and_their_space_on_disk_is_given_back() {
    let folder = tempdir().unwrap();
    let store = open(folder.path());
    let (large, kept) = (Space(10), Space(11));
    let mut state = 1_u32;
    let mut incompressible = || -> Vec<u8> {
        let next = |_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        (0..1000).map(next).collect()
    };
    for part in 0..100_u8 {
        let items = (0..100_u8).map(|row| put(&[part, row], incompressible())).collect();
        store.commit(batch(large, &[part % 3], items)).await.unwrap();
    }
    store.commit(batch(kept, b"p", vec![put(b"r", "stays")])).await.unwrap();
    assert!(figure(&store, "disk_bytes") > 10_000_000);

    let dropping = Batch { drop_space: Some(large), ..batch(Space(0), b"tables", vec![delete(b"large")]) };
    store.commit(dropping).await.unwrap();
    while figure(&store, "reclaims_pending") > 0 {
        tokio::task::yield_now().await;
    }
    assert!(figure(&store, "table_file_bytes") < 100_000);
    drop(store);

    let store = open(folder.path());
    assert!(figure(&store, "disk_bytes") < 1_000_000, "{:?}", store.figures());
    each_row(&store, large, |row| panic!("a row of a dropped space: {row:?}")).await;
    assert_eq!(store.get(kept, b"p", b"r").await.unwrap().unwrap().value, "stays");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_starts_leave_the_folder_tidy() {
    let folder = tempdir().unwrap();
    const STARTS: u8 = 50;
    for start in 0..STARTS {
        let store = open(folder.path());
        store.commit(batch(SPACE, b"p", vec![put(&[start], "value")])).await.unwrap();
    }
    let files = std::fs::read_dir(folder.path()).unwrap().count();
    assert!(files < 40, "{files} files after {STARTS} starts");
    let store = open(folder.path());
    let mut rows = 0;
    each_row(&store, SPACE, |_| rows += 1).await;
    assert_eq!(rows, STARTS);
}

#[test]
fn a_folder_in_use_is_locked() {
    let folder = tempdir().unwrap();
    let store = open(folder.path());
    let other_spelling = folder.path().join("..").join(folder.path().file_name().unwrap());
    for path in [folder.path(), &other_spelling] {
        let error = failure(path);
        assert!(matches!(error, OpenError::Locked { .. }), "{error}");
        let folder = folder.path().canonicalize().unwrap();
        let expected = format!("The data folder {} is in use by another Partita process.", folder.display());
        assert_eq!(error.to_string(), expected);
    }
    let out = child("child_opens_a_locked_folder", folder.path(), None).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    drop(store);
    open(folder.path());
}

#[test]
fn child_opens_a_locked_folder() {
    let Some(folder) = child_folder() else { return };
    let error = failure(&folder);
    assert!(matches!(error, OpenError::Locked { .. }), "{error}");
}

#[test]
fn folders_are_created() {
    let folder = tempdir().unwrap();
    let deep = folder.path().join("a/b/c");
    drop(open(&deep));
    open(&deep);
}

/// To write the file of which earlier builds have one takes a start two syncs.
#[tokio::test(flavor = "multi_thread")]
async fn a_folder_opens_with_a_file_that_says_who_it_is_and_without() {
    let folder = tempdir().unwrap();
    let identity = folder.path().join("IDENTITY");
    let store = open(folder.path());
    store.commit(batch(SPACE, b"p", vec![put(b"r", "value")])).await.unwrap();
    drop(store);
    assert!(!identity.exists());
    drop(rocksdb::DB::open_default(folder.path()).unwrap());
    assert!(identity.exists());
    let store = open(folder.path());
    assert_eq!(get(&store, b"p", b"r").await.expect("the row is still there").value, "value");
}

#[test]
fn what_is_no_folder_is_said() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "text").unwrap();
    for path in [file.clone(), file.join("below")] {
        let error = failure(&path);
        assert!(matches!(error, OpenError::NotAFolder { .. }), "{error:?}");
        assert_eq!(error.to_string(), format!("The data folder {} is not a folder.", path.display()));
    }
    assert_eq!(std::fs::read(&file).unwrap(), b"text");
}

#[test]
fn a_later_format_is_refused() {
    let folder = tempdir().unwrap();
    drop(open(folder.path()));
    let raw = rocksdb::DB::open_default(folder.path()).unwrap();
    raw.put(b"\0format", 2_u32.to_be_bytes()).unwrap();
    drop(raw);
    let error = failure(folder.path());
    assert!(matches!(error, OpenError::TooNew { found: 2, .. }), "{error}");
    assert!(error.to_string().contains("later version of Partita (format 2, this one knows up to 1)"), "{error}");
}

#[test]
fn a_foreign_database_is_refused() {
    let folder = tempdir().unwrap();
    let raw = rocksdb::DB::open_default(folder.path()).unwrap();
    raw.put(b"key", b"of something else").unwrap();
    drop(raw);
    let error = failure(folder.path());
    assert!(matches!(error, OpenError::Corrupt { .. }), "{error:?}");
    assert!(error.to_string().ends_with("cannot be read: it holds a database that Partita did not write."), "{error}");
}

#[test]
fn a_damaged_folder_is_refused() {
    let folder = tempdir().unwrap();
    drop(open(folder.path()));
    std::fs::write(folder.path().join("CURRENT"), "garbage").unwrap();
    let error = failure(folder.path());
    assert!(matches!(error, OpenError::Corrupt { .. }), "{error:?}");
}
