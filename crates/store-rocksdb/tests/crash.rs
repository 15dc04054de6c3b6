//! What is left when the process is killed, or the disk takes no more, in the middle of writes.
//!
//! A child process writes batches from several tasks and prints each that was acknowledged. Every batch writes the same
//! number to several rows of a partition. Afterwards every acknowledged batch must be there, and no batch by half. Another
//! task fills spaces and drops them; they must be gone exactly if the row is there that says so.

mod support;

use partita_store::{Batch, Error, Item, Space, Store};
use partita_store_rocksdb::RocksStore;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use support::*;
use tokio::task::JoinSet;

const WRITERS: u8 = 4;
const ROWS: u8 = 5;

const CATALOGUE: Space = Space(0);
const FIRST_DROPPED: Space = Space(1000);
const DROPPED_ROWS_MAX: u32 = 1500;

/// Larger than a block of the log, so that batches span several, and never the same.
fn value(writer: u8, number: u32, row: u8) -> Vec<u8> {
    let mut value = number.to_be_bytes().to_vec();
    let mut state = number.wrapping_mul(31).wrapping_add(u32::from(writer) * 7 + u32::from(row)) | 1;
    while value.len() < 100 + (number as usize * 977) % 16_000 {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        value.push((state >> 24) as u8);
    }
    value
}

/// Rows under the number of the batch, and one that each batch replaces.
fn numbered(writer: u8, number: u32) -> Vec<Item> {
    let row = |row: u8| put(&[&number.to_be_bytes()[..], &[row]].concat(), value(writer, number, row));
    let mut items: Vec<Item> = (0..ROWS).map(row).collect();
    items.push(put(b"last", number.to_be_bytes().to_vec()));
    items
}

async fn last_number(store: &RocksStore, writer: u8) -> u32 {
    match get(store, &[writer], b"last").await {
        Some(row) => u32::from_be_bytes(row.value.as_ref().try_into().expect("a number")),
        None => 0,
    }
}

/// Writes from where the process before it ended, and returns when a commit fails.
async fn write_until_failure(store: Arc<RocksStore>, writer: u8) -> Error {
    let first = last_number(&store, writer).await + 1;
    for number in first.. {
        match store.commit(batch(SPACE, &[writer], numbered(writer, number))).await {
            Ok(_) => {
                let mut out = std::io::stdout().lock();
                writeln!(out, "\nacknowledged {writer} {number}").and_then(|()| out.flush()).expect("a pipe");
            }
            Err(error) => return error,
        }
    }
    unreachable!("numbers do not end")
}

fn start_writers(store: &Arc<RocksStore>) -> JoinSet<Error> {
    (0..WRITERS).map(|writer| write_until_failure(Arc::clone(store), writer)).collect()
}

/// Fills spaces and drops them, each together with a row that says so, and returns when a commit fails.
async fn drop_until_failure(store: Arc<RocksStore>) -> Error {
    for number in dropped_spaces(&store).await.. {
        let space = Space(FIRST_DROPPED.0 + number);
        // Every other one is large enough to be dropped as a range.
        let rows = if number % 2 == 0 { 50 } else { DROPPED_ROWS_MAX };
        let items = (0..rows).map(|row| put(&row.to_be_bytes(), "value")).collect();
        let dropped = put(b"dropped", (number + 1).to_be_bytes().to_vec());
        let dropping = Batch { drop_space: Some(space), ..batch(CATALOGUE, b"", vec![dropped]) };
        for change in [batch(space, b"p", items), dropping] {
            if let Err(error) = store.commit(change).await {
                return error;
            }
        }
    }
    unreachable!("numbers do not end")
}

async fn dropped_spaces(store: &RocksStore) -> u64 {
    match store.get(CATALOGUE, b"", b"dropped").await.expect("a row is read") {
        Some(row) => u64::from_be_bytes(row.value.as_ref().try_into().expect("a number")),
        None => 0,
    }
}

/// What the child printed, until `enough` says that it has printed enough, or it ended.
fn acknowledged(
    out: &mut impl BufRead,
    acknowledged: &mut BTreeMap<u8, u32>,
    mut enough: impl FnMut(usize) -> bool,
) -> usize {
    let mut count = 0;
    let mut line = String::new();
    while !enough(count) {
        line.clear();
        if out.read_line(&mut line).expect("lines of text") == 0 {
            break;
        }
        // The last line may be cut when the child is killed; it is then not an acknowledgement.
        let Some(numbers) = line.strip_suffix('\n').and_then(|line| line.strip_prefix("acknowledged ")) else {
            continue;
        };
        let (writer, number) = numbers.split_once(' ').expect("two numbers");
        acknowledged.insert(writer.parse().expect("a writer"), number.parse().expect("a number"));
        count += 1;
    }
    count
}

async fn check(folder: &Path, acknowledged: &BTreeMap<u8, u32>) {
    let store = open(folder);
    let mut rows_of = BTreeMap::<(u8, u32), u8>::new();
    let mut broken = Vec::new();
    each_row(&store, SPACE, |row| {
        let writer = row.partition[0];
        if let Some((number, [index])) = row.row.split_first_chunk::<4>()
            && row.row != b"last"
        {
            let number = u32::from_be_bytes(*number);
            *rows_of.entry((writer, number)).or_default() += 1;
            if row.value != value(writer, number, *index) {
                broken.push((writer, number, *index));
            }
        }
    })
    .await;
    assert_eq!(broken, [], "rows with wrong values");
    let halves: Vec<_> = rows_of.iter().filter(|(_, rows)| **rows != ROWS).collect();
    assert!(halves.is_empty(), "half of a batch: {halves:?}");
    for writer in 0..WRITERS {
        let last = last_number(&store, writer).await;
        let acknowledged = acknowledged.get(&writer).copied().unwrap_or(0);
        assert!(last >= acknowledged, "writer {writer} was told of {acknowledged}, and {last} is the last there");
        let there = rows_of.keys().filter(|(of, _)| *of == writer).map(|(_, number)| *number);
        assert!(there.eq(1..=last), "batches of writer {writer} are missing");
    }

    let dropped = dropped_spaces(&store).await;
    for number in 0..=dropped {
        let mut rows = 0;
        each_row(&store, Space(FIRST_DROPPED.0 + number), |_| rows += 1).await;
        let all = if number % 2 == 0 { 50 } else { DROPPED_ROWS_MAX };
        let expected = if number < dropped { &[0][..] } else { &[0, all] };
        assert!(expected.contains(&rows), "space {number} of {dropped} has {rows} rows");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_process_loses_nothing_acknowledged() {
    const KILLS: usize = 20;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut told = BTreeMap::new();
    for round in 0..KILLS {
        let mut child = child("child_writes_for_ever", folder.path(), None)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("a child process");
        let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
        // A different number each time, so that the kill comes in different places.
        let enough = 20 + round * 37 % 150;
        let count = acknowledged(&mut out, &mut told, |count| count == enough);
        assert_eq!(count, enough, "the child ended by itself");
        child.kill().expect("the child is killed");
        child.wait().expect("the child ends");
        acknowledged(&mut out, &mut told, |_| false);
        check(folder.path(), &told).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn child_writes_for_ever() {
    let Some(folder) = child_folder() else { return };
    let store = Arc::new(open(&folder));
    let mut writers = start_writers(&store);
    writers.spawn(drop_until_failure(store));
    let ended = writers.join_next().await;
    panic!("nothing should fail: {ended:?}");
}

/// A limit on the size of files stands for the full disk.
#[tokio::test(flavor = "multi_thread")]
async fn a_failed_write_ends_writing_and_loses_nothing_acknowledged() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    // With the signal ignored, writing beyond the limit is an error.
    let out = child("child_writes_until_the_disk_is_full", folder.path(), Some("trap '' XFSZ; ulimit -f 2000"))
        .output()
        .expect("a child process");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let mut told = BTreeMap::new();
    let count = acknowledged(&mut out.stdout.as_slice(), &mut told, |_| false);
    assert!(count > 0, "nothing was written before the disk was full");
    check(folder.path(), &told).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn child_writes_until_the_disk_is_full() {
    let Some(folder) = child_folder() else { return };
    let store = Arc::new(open(&folder));
    let mut writers = start_writers(&store);
    let mut unknown = 0;
    while let Some(ended) = writers.join_next().await {
        match ended.expect("the writer does not panic") {
            Error::OutcomeUnknown(_) => unknown += 1,
            Error::WritesRefused(why) => assert!(why.contains("File too large"), "{why}"),
            other => panic!("{other}"),
        }
    }
    assert!(unknown > 0, "somebody was in the group that failed");

    // Small enough that it would fit.
    match store.commit(batch(SPACE, b"later", vec![put(b"r", "")])).await {
        Err(Error::WritesRefused(why)) => assert!(why.contains("File too large"), "{why}"),
        other => panic!("a write after a failed one: {other:?}"),
    }
    assert_eq!(figure(&store, "writes_refused"), 1);
    assert!(store.writes_refused().is_some_and(|why| why.contains("File too large")), "{:?}", store.writes_refused());
    for writer in 0..WRITERS {
        let last = last_number(&store, writer).await;
        let row = get(&store, &[writer], &[&last.to_be_bytes()[..], &[0]].concat()).await.expect("reads go on");
        assert_eq!(row.value, value(writer, last, 0));
    }
}
