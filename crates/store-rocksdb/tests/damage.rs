//! Files that were whole when the store was closed, and are not any more: the store does not open, or shows every row.

mod support;

use partita_store::Store;
use partita_store_rocksdb::{Durability, OpenError, Options, Reader, RocksStore};
use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use support::*;
use tempfile::{TempDir, tempdir};

const ROWS: u32 = 60;

fn options() -> Options {
    Options { write_buffer_bytes: 1 << 20, ..Options::default() }
}

async fn write(store: &RocksStore, rows: std::ops::Range<u32>, row_bytes: usize) {
    for row in rows {
        store.commit(batch(SPACE, b"p", vec![put(&row.to_be_bytes(), vec![row as u8; row_bytes])])).await.unwrap();
    }
}

/// A folder with rows in table files, and a few in the log.
async fn filled() -> TempDir {
    let folder = tempdir().unwrap();
    let store = RocksStore::open(folder.path(), options()).expect("the folder opens");
    write(&store, 0..ROWS, 50_000).await;
    assert!(figure(&store, "table_file_bytes") > 0, "rows were written out");
    folder
}

fn copy(from: &Path) -> TempDir {
    let to = tempdir().unwrap();
    for file in fs::read_dir(from).unwrap() {
        let file = file.unwrap();
        match fs::copy(file.path(), to.path().join(file.file_name())) {
            // Of a store that goes on: what it deletes meanwhile, as the first list of files, it needs no more.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            copied => assert!(copied.is_ok(), "{copied:?}"),
        }
    }
    to
}

fn file(folder: &Path, says: impl Fn(&str) -> bool) -> PathBuf {
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
    files.into_iter().rfind(|path| says(&name(path))).expect("there is such a file")
}

/// Opens, if it does, and counts rows.
async fn rows(folder: &Path) -> Result<u32, OpenError> {
    let store = RocksStore::open(folder, options())?;
    let mut rows = 0;
    each_row(&store, SPACE, |_| rows += 1).await;
    Ok(rows)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_manifest_that_is_cut_short() {
    let folder = filled().await;
    let manifest = file(folder.path(), |name| name.starts_with("MANIFEST"));
    let length = fs::metadata(&manifest).unwrap().len();
    for cut in (0..length).rev().step_by(7) {
        let folder = copy(folder.path());
        let manifest = folder.path().join(manifest.file_name().unwrap());
        fs::OpenOptions::new().write(true).open(&manifest).unwrap().set_len(cut).unwrap();
        let error = rows(folder.path()).await.expect_err("a list of files without its end is refused");
        assert!(
            matches!(&error, OpenError::Damaged { file, .. } if file.ends_with(manifest.file_name().unwrap())),
            "{error}"
        );
    }
}

/// A power cut while a record was appended that crosses a sector: the length survived, and the second sector did not.
#[tokio::test(flavor = "multi_thread")]
async fn a_manifest_that_is_torn() {
    let folder = tempdir().unwrap();
    let store = open(folder.path());
    write(&store, 0..20, 10_000).await;
    let manifest = file(folder.path(), |name| name.starts_with("MANIFEST"));
    let in_sector = 512 - fs::metadata(&manifest).unwrap().len() as usize % 512;
    let after = |bytes: Vec<u8>| {
        let folder = killed(folder.path());
        let manifest = folder.path().join(manifest.file_name().unwrap());
        fs::OpenOptions::new().append(true).open(manifest).unwrap().write_all(&bytes).unwrap();
        folder
    };
    let length = (in_sector as u16 + 100).to_le_bytes();
    let mut record = [&[7; 4][..], &length, &vec![1; 1 + in_sector + 100]].concat();
    let error = rows(after(record.clone()).path()).await.expect_err("a record that is whole but for its checksum");
    assert!(matches!(error, OpenError::Corrupt { .. }), "{error}");
    record[in_sector..].fill(0);
    // Alone, or with a later record behind it of which more has survived.
    for behind in [&[][..], &[9; 50]] {
        let torn = after([&record, behind].concat());
        {
            let reader = Reader::open(torn.path()).expect("whoever only looks finds the same");
            assert_eq!(reader.verify_tables(), []);
            let problems = reader.verify_logs().unwrap();
            let list = problems.iter().find(|problem| problem.file.starts_with("MANIFEST")).expect("it is told");
            assert!(list.is_harmless, "{list:?}");
            assert!(reader.rows(Vec::new(), None).next_row().is_some());
        }
        assert_eq!(rows(torn.path()).await.unwrap(), 20);
    }
    let missing = killed(folder.path());
    fs::remove_file(missing.path().join(manifest.file_name().unwrap())).unwrap();
    let error = rows(missing.path()).await.expect_err("there is no list of files").to_string();
    assert!(error.contains("MANIFEST"), "{error}");
}

/// A copy of a folder as it is, as if the process had been killed; the store goes on.
fn killed(folder: &Path) -> TempDir {
    copy(folder)
}

fn flip(file: &Path, at: usize) {
    let mut bytes = fs::read(file).unwrap();
    bytes[at] ^= 1;
    fs::write(file, bytes).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_of_a_closed_store_is_as_it_was() {
    let folder = tempdir().unwrap();
    let store = open(folder.path());
    write(&store, 0..20, 10_000).await;
    drop(store);
    let log = file(folder.path(), |name| name.ends_with(".log"));
    let length = fs::metadata(&log).unwrap().len() as usize;
    // The last record too, which could otherwise have been torn.
    for at in [0, length / 2, length - 1] {
        let folder = copy(folder.path());
        flip(&folder.path().join(log.file_name().unwrap()), at);
        let error = RocksStore::open(folder.path(), Options::default()).expect_err("the log is damaged");
        assert!(matches!(error, OpenError::Damaged { .. }), "{error}");
    }
    let missing = copy(folder.path());
    fs::remove_file(missing.path().join(log.file_name().unwrap())).unwrap();
    RocksStore::open(missing.path(), Options::default()).expect_err("a log is missing");
    assert_eq!(rows(folder.path()).await.unwrap(), 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_is_damaged_is_refused_if_every_commit_was_synced() {
    for (durability, is_refused) in [(Durability::Sync, true), (Durability::None, false)] {
        let folder = tempdir().unwrap();
        let store = open_with(folder.path(), durability);
        write(&store, 0..20, 10_000).await;
        let folder = killed(folder.path());
        let log = file(folder.path(), |name| name.ends_with(".log"));
        let middle = 10 * 10_000;
        flip(&log, middle);
        let opened = RocksStore::open(folder.path(), Options { durability, ..Options::default() });
        assert_eq!(opened.is_err(), is_refused, "{opened:?}");
        if let Err(error) = opened {
            assert!(matches!(&error, OpenError::Damaged { offset, .. } if *offset <= middle as u64), "{error:?}");
            let name = log.canonicalize().unwrap();
            assert!(error.to_string().contains(&format!("The file {} is damaged", name.display())), "{error}");
            let accepting = Options { accept_damage: true, ..Options::default() };
            let store = RocksStore::open(folder.path(), accepting).expect("the loss is accepted");
            let mut rows = 0;
            each_row(&store, SPACE, |_| rows += 1).await;
            assert!((1..20).contains(&rows), "{rows} rows are left");
            write(&store, 100..101, 10).await;
            open(killed(folder.path()).path());
        }
    }
}

/// Zeros ahead of the log are no damage, and hide nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_ends_in_zeros() {
    let folder = tempdir().unwrap();
    let store = open(folder.path());
    let log = file(folder.path(), |name| name.ends_with(".log"));
    // Until there are zeros and some rows in front of them.
    let mut written = 0;
    let mut written_in_zeros = 0;
    while written_in_zeros < 10 {
        write(&store, written..written + 1, 1000).await;
        written += 1;
        written_in_zeros += u32::from(fs::metadata(&log).unwrap().len() >= 1 << 20);
    }
    assert_eq!(rows(killed(folder.path()).path()).await.unwrap(), written);
}

/// Logs that were written without syncs stay as they may be, also after the folder was opened with them.
#[tokio::test(flavor = "multi_thread")]
async fn logs_from_before_syncs_are_not_held_to_them() {
    let folder = tempdir().unwrap();
    let store = open_with(folder.path(), Durability::None);
    write(&store, 0..20, 10_000).await;
    let folder = killed(folder.path());
    let log = file(folder.path(), |name| name.ends_with(".log"));
    let store = open(folder.path());
    write(&store, 20..30, 10_000).await;
    // As a power cut may have left it before the store was opened with syncs.
    let folder = killed(folder.path());
    let log = folder.path().join(log.file_name().unwrap());
    flip(&log, fs::metadata(&log).unwrap().len() as usize / 2);
    open(folder.path());
}
