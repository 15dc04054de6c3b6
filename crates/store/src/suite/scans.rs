//! Scans: order, bounds, seeking, stopping and running out of time.

use super::*;

/// Partitions first, then rows, each compared as bytes; zero bytes and empty keys included.
pub async fn rows_come_in_order_of_bytes(store: &dyn Store) {
    let parts: [&[u8]; 12] =
        [b"", b"\0", b"\0\0", b"\0\x01", b"\0\xFF", b"\x01", b"a", b"a\0", b"a\0b", b"a\x01", b"ab", b"\xFF"];
    let mut expected = Vec::new();
    // Written backwards, so that the order written is not the order read.
    for partition in parts.iter().rev() {
        write(store, partition, parts.iter().rev().map(|row| put(row, row)).collect()).await;
        expected.extend(parts.iter().map(|row| (partition.to_vec(), row.to_vec())));
    }
    expected.sort();
    assert_eq!(scanned_keys(store, scan_all(SPACE)).await, expected);
}

/// The start belongs to a scan and the end does not, whether or not a row is there.
pub async fn a_scan_reads_from_start_to_end(store: &dyn Store) {
    let mut keys = Vec::new();
    for partition in ["a", "a\0", "b", "c"] {
        for row in ["", "1", "1\0", "2", "3"] {
            keys.push(Position::new(partition, row));
            write(store, partition.as_bytes(), vec![put(row.as_bytes(), b"value")]).await;
        }
    }
    let mut places = keys.clone();
    places.extend([Position::default(), Position::new("b", "15"), Position::new("bb", ""), Position::new("d", "")]);
    places.extend([Position::after_row("a", "1"), Position::after_row("b", "3"), Position::after_partition("a")]);
    for start in &places {
        for end in places.iter().map(Some).chain([None]) {
            let inside = |key: &&Position| *key >= start && end.is_none_or(|end| *key < end);
            let expected: Vec<_> =
                keys.iter().filter(inside).map(|key| (key.partition.clone(), key.row.clone())).collect();
            let found = scanned_keys(store, scan_of(SPACE, start.clone(), end.cloned())).await;
            assert_eq!(found, expected, "from {start:?} to {end:?}");
        }
    }
}

/// No rows, no visit: an empty space, an empty stretch, an end before the start.
pub async fn a_scan_of_nothing_is_exhausted(store: &dyn Store) {
    assert_eq!(scanned(store, scan_all(SPACE)).await, []);
    write(store, b"b", vec![put(b"1", b"value")]).await;
    assert_eq!(scanned(store, scan_all(OTHER_SPACE)).await, []);
    for (start, end) in [("b", "b"), ("c", "a"), ("c", "d"), ("a", "b")] {
        let scan = scan_of(SPACE, Position::new(start, ""), Some(Position::new(end, "")));
        assert_eq!(scanned(store, scan).await, [], "from {start} to {end}");
    }
    assert_eq!(scanned(store, scan_of(SPACE, Position::after_row("b", "1"), None)).await, []);
}

/// After `Stop` nothing is visited.
pub async fn a_scan_stops_when_told(store: &dyn Store) {
    fill(store, SPACE, 1, 10).await;
    let mut left = 4;
    let (rows, end) = visit(store, scan_all(SPACE), |_| {
        left -= 1;
        if left == 0 { Step::Stop } else { Step::Next }
    })
    .await
    .expect("rows are read");
    assert_eq!((rows.len(), end), (4, ScanEnd::Stopped));
}

/// A seek lands on the first row at or behind its place: in the partition, in a later one, on no row at all.
pub async fn a_scan_seeks_ahead(store: &dyn Store) {
    fill(store, SPACE, 20, 50).await;
    let key = |seen: &Seen| {
        let number = |bytes: &[u8]| u32::from_be_bytes(bytes.try_into().expect("four bytes"));
        (number(&seen.partition), number(&seen.row))
    };
    // Of each partition the rows 10, 11 and 40, as a query does that has bounds on rows only.
    let (rows, end) = visit(store, scan_all(SPACE), |seen| {
        let partition = seen.partition.clone();
        match key(seen).1 {
            0..10 => Step::Seek(Position::new(partition, 10_u32.to_be_bytes())),
            10 => Step::Next,
            11 => Step::Seek(Position::new(partition, 40_u32.to_be_bytes())),
            _ => Step::Seek(Position::after_partition(partition)),
        }
    })
    .await
    .expect("rows are read");
    let expected: Vec<_> = (0..20).flat_map(|partition| [0, 10, 11, 40].map(|row| (partition, row))).collect();
    assert_eq!(rows.iter().map(key).collect::<Vec<_>>(), expected);
    assert_eq!(end, ScanEnd::Exhausted);

    let (rows, _) =
        visit(store, scan_all(SPACE), |seen| Step::Seek(Position::after_row(seen.partition.clone(), seen.row.clone())))
            .await
            .expect("rows are read");
    assert_eq!(rows.len(), 1000);
}

/// Seeking to the end or behind it ends the scan, though the space goes on.
pub async fn a_scan_seeks_behind_its_end(store: &dyn Store) {
    fill(store, SPACE, 3, 5).await;
    fill(store, OTHER_SPACE, 3, 5).await;
    let at = |partition: u32| Position::new(partition.to_be_bytes(), []);
    for target in [at(1), at(2), at(7), Position::new([0xFF; 9], [0xFF; 9])] {
        let scan = scan_of(SPACE, Position::default(), Some(at(1)));
        let (rows, end) = visit(store, scan, |_| Step::Seek(target.clone())).await.expect("rows are read");
        assert_eq!((rows.len(), end), (1, ScanEnd::Exhausted), "to {target:?}");
    }
    let (rows, end) =
        visit(store, scan_all(SPACE), |_| Step::Seek(Position::new([0xFF; 9], []))).await.expect("rows are read");
    assert_eq!((rows.len(), end), (1, ScanEnd::Exhausted));
}

/// However late it is a scan visits a row, says where it goes on, and loses or repeats none on the way.
pub async fn a_late_scan_makes_progress_and_resumes(store: &dyn Store) {
    fill(store, SPACE, 4, 250).await;
    let expected = scanned_keys(store, scan_all(SPACE)).await;
    let mut found = Vec::new();
    let mut scans = 0;
    let mut start = Position::default();
    loop {
        let scan = Scan { deadline: Instant::now(), ..scan_of(SPACE, start, None) };
        let (rows, end) = visit(store, scan, |_| Step::Next).await.expect("rows are read");
        assert!(!rows.is_empty(), "a late scan visits at least one row");
        found.extend(rows.into_iter().map(|seen| (seen.partition, seen.row)));
        scans += 1;
        match end {
            ScanEnd::Exhausted => break,
            ScanEnd::Deadline(position) => start = position,
            ScanEnd::Stopped => panic!("nobody said stop"),
        }
    }
    assert_eq!(found, expected);
    assert!(scans > 1, "a scan looks at its deadline before it has read a thousand rows");

    let mut seeks = 0;
    let scan = Scan { deadline: Instant::now(), ..scan_all(SPACE) };
    let (rows, end) = visit(store, scan, |seen| {
        seeks += 1;
        Step::Seek(Position::after_row(seen.partition.clone(), seen.row.clone()))
    })
    .await
    .expect("rows are read");
    assert!(matches!(end, ScanEnd::Deadline(_)) && rows.len() == seeks, "a scan that seeks has a deadline too");
}

/// A scan sees replaced and deleted rows as a read does, with versions.
pub async fn a_scan_shows_what_was_committed(store: &dyn Store) {
    let first = write(store, b"p", vec![put(b"a", b"1"), put(b"b", b"1"), put(b"c", b"1")]).await;
    let second = write(store, b"p", vec![put(b"b", b"2"), delete(b"c"), put(b"d", b"")]).await;
    let row = |name: &[u8], version, value: &[u8]| Seen {
        partition: b"p".to_vec(),
        row: name.to_vec(),
        version,
        value: value.to_vec(),
    };
    let rows = scanned(store, scan_all(SPACE)).await;
    assert_eq!(rows, [row(b"a", first, b"1"), row(b"b", second, b"2"), row(b"d", second, b"")]);
}
