//! A folder that is only read shows what the store that wrote it showed.

mod support;

use partita_store::{Error, Position, RowRef, Scan, ScanEnd, Step, Store};
use partita_store_rocksdb::Reader;
use std::time::{Duration, Instant};
use support::*;

type Seen = Vec<(Vec<u8>, Vec<u8>, u64, Vec<u8>)>;

/// What a scan shows that seeks from each partition to the row `m` and then to the next partition, or reads on.
async fn scan(store: &dyn Store, start: &Position, end: Option<&Position>, seeks: bool) -> (Seen, ScanEnd) {
    let deadline = Instant::now() + Duration::from_secs(3600);
    let scan = Scan { space: SPACE, start: start.clone(), end: end.cloned(), deadline, rows_hint: 10, sieve: None };
    let mut seen = Vec::new();
    let mut visitor = |row: RowRef<'_>| {
        seen.push((row.partition.to_vec(), row.row.to_vec(), row.version, row.value.to_vec()));
        match row.row {
            _ if !seeks => Step::Next,
            name if name < b"m".as_slice() => Step::Seek(Position::new(row.partition, "m")),
            _ => Step::Seek(Position::after_partition(row.partition)),
        }
    };
    let end = store.scan(scan, &mut visitor).await.expect("rows are read");
    (seen, end)
}

#[tokio::test]
async fn it_reads_what_was_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let names: [&[u8]; 6] = [b"", b"a", b"a\0", b"m", b"m\x01", b"\xFF"];
    let places = || names.iter().flat_map(|partition| names.iter().map(|row| Position::new(*partition, *row)));
    let ends = || places().map(Some).chain([None]);
    let mut expected = Vec::new();
    {
        let store = open(folder.path());
        for partition in names {
            let items = names.iter().map(|row| put(row, [partition, row].concat())).collect();
            store.commit(batch(SPACE, partition, items)).await.expect("it is written");
        }
        store.commit(batch(SPACE, b"a", vec![delete(b"m")])).await.expect("it is deleted");
        for (start, end) in places().flat_map(|start| ends().map(move |end| (start.clone(), end))) {
            for seeks in [false, true] {
                expected.push(scan(&store, &start, end.as_ref(), seeks).await);
            }
        }
        store.close();
    }
    let reader = Reader::open(folder.path()).expect("the folder opens");
    let mut expected = expected.into_iter();
    for (start, end) in places().flat_map(|start| ends().map(move |end| (start.clone(), end))) {
        for seeks in [false, true] {
            let found = scan(&reader, &start, end.as_ref(), seeks).await;
            assert_eq!(Some(found), expected.next(), "from {start:?} to {end:?}, {seeks}");
        }
    }
    let row = reader.get(SPACE, b"a", b"a\0").await.expect("a row is read");
    assert_eq!(row.map(|row| row.value.to_vec()), Some(b"aa\0".to_vec()));
    assert_eq!(reader.get(SPACE, b"a", b"m").await.expect("it is read"), None, "it was deleted");
    let refused = reader.commit(batch(SPACE, b"a", vec![put(b"a", "new")])).await;
    assert!(matches!(refused, Err(Error::WritesRefused(_))), "{refused:?}");
}

#[tokio::test]
async fn a_scan_ends_at_its_deadline_and_goes_on_there() {
    let folder = tempfile::tempdir().expect("a folder");
    {
        let store = open(folder.path());
        let items = (0..1000_u32).map(|row| put(&row.to_be_bytes(), "value")).collect();
        store.commit(batch(SPACE, b"p", items)).await.expect("it is written");
        store.close();
    }
    let reader = Reader::open(folder.path()).expect("the folder opens");
    let (mut start, mut rows, mut scans) = (Position::default(), 0, 0);
    loop {
        let scan = Scan { space: SPACE, start, end: None, deadline: Instant::now(), rows_hint: 10, sieve: None };
        let mut count = |_: RowRef<'_>| {
            rows += 1;
            Step::Next
        };
        scans += 1;
        match reader.scan(scan, &mut count).await.expect("rows are read") {
            ScanEnd::Deadline(position) => start = position,
            end => break assert_eq!(end, ScanEnd::Exhausted),
        }
    }
    assert!(rows == 1000 && scans > 1, "{rows} rows in {scans} scans");
}
