//! Reading and writing single rows.

use super::*;

/// Values and versions come back, the empty value too.
pub async fn a_row_is_read_as_it_was_written(store: &dyn Store) {
    let version = write(store, b"p", vec![put(b"r", b"value"), put(b"empty", b"")]).await;
    assert_eq!(read(store, b"p", b"r").await, Some(Row { version, value: Bytes::from_static(b"value") }));
    assert_eq!(read(store, b"p", b"empty").await, Some(Row { version, value: Bytes::new() }));
}

/// The last write is what a read sees.
pub async fn a_row_is_replaced_and_deleted(store: &dyn Store) {
    write(store, b"p", vec![put(b"r", b"a longer first value"), put(b"s", b"stays")]).await;
    let version = write(store, b"p", vec![put(b"r", b"second")]).await;
    assert_eq!(read(store, b"p", b"r").await, Some(Row { version, value: Bytes::from_static(b"second") }));
    write(store, b"p", vec![delete(b"r")]).await;
    assert_eq!(read(store, b"p", b"r").await, None);
    write(store, b"p", vec![delete(b"r")]).await;
    assert_eq!(read(store, b"p", b"r").await, None);
    assert_eq!(read(store, b"p", b"s").await.expect("the other row stays").value, "stays");
}

/// A row is found under its own space, partition and name only.
pub async fn absent_rows_are_none(store: &dyn Store) {
    assert_eq!(read(store, b"p", b"r").await, None);
    write(store, b"p", vec![put(b"r", b"value")]).await;
    for (partition, row) in [("p", "s"), ("q", "r"), ("p", ""), ("", "r"), ("", "pr"), ("pr", ""), ("p", "r\0")] {
        assert_eq!(read(store, partition.as_bytes(), row.as_bytes()).await, None, "{partition:?}, {row:?}");
    }
    assert_eq!(store.get(OTHER_SPACE, b"p", b"r").await.expect("a row is read"), None);
}

/// Partitions and rows are any bytes; how an engine joins them never makes two rows one.
pub async fn keys_may_be_any_bytes(store: &dyn Store) {
    let parts: [&[u8]; 9] = [b"", b"\0", b"\0\0", b"\0\x01", b"\0\xFF", b"\x01", b"a", b"a\0", b"\xFF\xFF"];
    for partition in parts {
        let items = parts.iter().map(|row| put(row, &[partition, b"/", row].concat())).collect();
        write(store, partition, items).await;
    }
    for partition in parts {
        for row in parts {
            let found = read(store, partition, row).await.expect("the row was written");
            assert_eq!(found.value, [partition, b"/", row].concat());
        }
    }
    assert_eq!(scanned(store, scan_all(SPACE)).await.len(), parts.len() * parts.len());
}

/// An entity has at most 1 MiB; several of them fit a batch.
pub async fn large_values_are_kept(store: &dyn Store) {
    const MIB: usize = 1 << 20;
    // No two bytes in a row repeat for long, so that compression cannot make the value small.
    let value = |seed: usize| -> Vec<u8> {
        let mut state = seed as u32 + 1;
        let next = |_| {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            state as u8
        };
        (0..MIB).map(next).collect()
    };
    let items = (0..4_u8).map(|row| put(&[row], &value(row.into()))).collect();
    write(store, b"p", items).await;
    for row in 0..4_u8 {
        assert!(read(store, b"p", &[row]).await.expect("the row was written").value == value(row.into()));
    }
    for seen in scanned(store, scan_all(SPACE)).await {
        assert!(seen.value == value(seen.row[0].into()));
    }
}
