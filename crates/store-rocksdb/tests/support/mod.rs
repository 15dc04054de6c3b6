//! What the tests of this crate share: short ways to write and read, and a child process of the test itself.

#![allow(dead_code, reason = "each test file uses a part")]

use bytes::Bytes;
use partita_store::{Action, Batch, Clock, Expect, Item, Position, Row, RowRef, Scan, ScanEnd, Space, Step, Store};
use partita_store_rocksdb::{Durability, Options, RocksStore};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

pub(crate) const SPACE: Space = Space(7);

/// Names the folder that a child process works in; without it the tests that are children do nothing.
const CHILD_FOLDER: &str = "PARTITA_TEST_FOLDER";

pub(crate) fn open(folder: &Path) -> RocksStore {
    RocksStore::open(folder, Options::default()).expect("the folder opens")
}

pub(crate) fn open_with(folder: &Path, durability: Durability) -> RocksStore {
    RocksStore::open(folder, Options { durability, ..Options::default() }).expect("the folder opens")
}

pub(crate) fn open_at(folder: &Path, clock: Clock) -> RocksStore {
    RocksStore::open(folder, Options { clock, ..Options::default() }).expect("the folder opens")
}

pub(crate) fn put(row: &[u8], value: impl Into<Bytes>) -> Item {
    Item { row: row.to_vec(), expect: Expect::Any, action: Action::Put(value.into()) }
}

pub(crate) fn delete(row: &[u8]) -> Item {
    Item { row: row.to_vec(), expect: Expect::Any, action: Action::Delete }
}

pub(crate) fn batch(space: Space, partition: &[u8], items: Vec<Item>) -> Batch {
    Batch { space, partition: partition.to_vec(), items, drop_space: None }
}

pub(crate) async fn get(store: &RocksStore, partition: &[u8], row: &[u8]) -> Option<Row> {
    store.get(SPACE, partition, row).await.expect("a row is read")
}

/// Shows every row of a space.
pub(crate) async fn each_row(store: &RocksStore, space: Space, mut show: impl FnMut(RowRef<'_>) + Send) {
    let deadline = Instant::now() + Duration::from_secs(3600);
    let scan = Scan { space, start: Position::default(), end: None, deadline, rows_hint: 1000, sieve: None };
    let mut visitor = |row: RowRef<'_>| {
        show(row);
        Step::Next
    };
    assert_eq!(store.scan(scan, &mut visitor).await.expect("rows are read"), ScanEnd::Exhausted);
}

pub(crate) fn figure(store: &RocksStore, name: &str) -> u64 {
    let figures = store.figures();
    figures.iter().find(|(found, _)| *found == name).unwrap_or_else(|| panic!("no figure {name}")).1
}

/// The folder, if this process is a child.
pub(crate) fn child_folder() -> Option<std::path::PathBuf> {
    std::env::var_os(CHILD_FOLDER).map(Into::into)
}

/// Runs one test of this file as a child process, behind a command that becomes it, such as a shell that sets limits.
pub(crate) fn child(test: &str, folder: &Path, through: Option<&str>) -> Command {
    let program = std::env::current_exe().expect("the path of the test");
    let mut command = match through {
        None => Command::new(program),
        Some(script) => {
            let mut shell = Command::new("sh");
            shell.args(["-c", &format!("{script}; exec \"$@\""), "sh"]).arg(program);
            shell
        }
    };
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]).env(CHILD_FOLDER, folder);
    command
}
