//! Expectations, conflicts, and all or nothing.

use super::*;

/// Each expectation against a row that is absent, present, or present in another version.
pub async fn expectations_hold_or_conflict(store: &dyn Store) {
    for action in [Action::Put(Bytes::from_static(b"new")), Action::Delete, Action::Nothing] {
        for expect in [Expect::Any, Expect::Absent, Expect::Present, Expect::Version(1)] {
            write(store, b"p", vec![delete(b"r")]).await;
            let result = store.commit(batch(SPACE, b"p", vec![item(b"r", expect, action.clone())])).await;
            match expect {
                Expect::Any | Expect::Absent => assert!(result.is_ok(), "{expect:?} and {action:?}: {result:?}"),
                Expect::Present | Expect::Version(_) => assert_conflict(result, 0, None),
            }
        }
        let first = write(store, b"p", vec![put(b"r", b"old")]).await;
        for which in ["any", "absent", "present", "this version", "an earlier version", "no version"] {
            let version = write(store, b"p", vec![put(b"r", b"old")]).await;
            let (expect, holds) = match which {
                "any" => (Expect::Any, true),
                "absent" => (Expect::Absent, false),
                "present" => (Expect::Present, true),
                "this version" => (Expect::Version(version), true),
                "an earlier version" => (Expect::Version(first), false),
                _ => (Expect::Version(version + 1), false),
            };
            let result = store.commit(batch(SPACE, b"p", vec![item(b"r", expect, action.clone())])).await;
            let row = read(store, b"p", b"r").await;
            if holds {
                let now = result.expect(which);
                let expected = match &action {
                    Action::Put(value) => Some(Row { version: now, value: value.clone() }),
                    Action::Delete => None,
                    Action::Nothing => Some(Row { version, value: Bytes::from_static(b"old") }),
                };
                assert_eq!(row, expected, "{which}, {action:?}");
            } else {
                assert_conflict(result, 0, Some(version));
                assert_eq!(row, Some(Row { version, value: Bytes::from_static(b"old") }), "{which}, {action:?}");
            }
        }
    }
}

/// Of several items that fail, the conflict names the first and what was there.
pub async fn the_first_item_that_fails_is_named(store: &dyn Store) {
    let version = write(store, b"p", vec![put(b"a", b"1"), put(b"b", b"1")]).await;
    let items = vec![
        put(b"c", b"2"),
        item(b"a", Expect::Version(version), Action::Delete),
        item(b"b", Expect::Absent, Action::Nothing),
        item(b"z", Expect::Present, Action::Nothing),
    ];
    assert_conflict(store.commit(batch(SPACE, b"p", items.clone())).await, 2, Some(version));
    let reversed = items.into_iter().rev().collect();
    assert_conflict(store.commit(batch(SPACE, b"p", reversed)).await, 0, None);
}

/// Among many new rows the one that is there already is found: at either end of them or between, after others were deleted
/// there or not, and whatever their order.
pub async fn one_of_many_rows_is_not_new(store: &dyn Store) {
    const ROWS: u8 = 100;
    let new = || -> Vec<Item> {
        let mixed = (0..u32::from(ROWS)).map(|row| (row * 37 % u32::from(ROWS)) as u8);
        mixed.map(|row| item(&[row], Expect::Absent, Action::Put(Bytes::new()))).collect()
    };
    for (partition, deletes) in [(b"p", false), (b"q", true)] {
        for there in [0, 1, ROWS / 2, ROWS - 1] {
            if deletes {
                store.commit(batch(SPACE, partition, new())).await.expect("all are new");
                write(store, partition, (0..ROWS).map(|row| delete(&[row])).collect()).await;
            }
            let version = write(store, partition, vec![put(&[there], b"old")]).await;
            let index = new().iter().position(|item| item.row == [there]).expect("it is among them");
            assert_conflict(store.commit(batch(SPACE, partition, new())).await, index, Some(version));
            write(store, partition, vec![delete(&[there])]).await;
            // A neighbour beyond either end is none of them.
            write(store, partition, vec![put(&[], b""), put(&[ROWS], b""), put(&[ROWS - 1, 0], b"")]).await;
            let version = store.commit(batch(SPACE, partition, new())).await.expect("all are new");
            assert_eq!(read(store, partition, &[there]).await.map(|row| row.version), Some(version));
            write(store, partition, (0..=ROWS).map(|row| delete(&[row])).collect()).await;
        }
    }
}

/// A batch that fails at its last item has changed nothing; one that holds has changed everything, in one version.
pub async fn a_batch_applies_as_a_whole_or_not_at_all(store: &dyn Store) {
    let old = write(store, b"p", vec![put(b"changed", b"old"), put(b"deleted", b"old")]).await;
    let items = |last: Expect| {
        let mut items = vec![put(b"changed", b"new"), delete(b"deleted"), put(b"created", b"new")];
        items.extend((0..100_u8).map(|row| put(&[b'x', row], b"new")));
        items.push(item(b"last", last, Action::Put(Bytes::from_static(b"new"))));
        items
    };
    assert_conflict(store.commit(batch(SPACE, b"p", items(Expect::Present))).await, 103, None);
    let rows = scanned(store, scan_all(SPACE)).await;
    let row = |name: &[u8]| Seen { partition: b"p".into(), row: name.into(), version: old, value: b"old".into() };
    assert_eq!(rows, [row(b"changed"), row(b"deleted")]);

    let new = write(store, b"p", items(Expect::Absent)).await;
    let rows = scanned(store, scan_all(SPACE)).await;
    assert_eq!(rows.len(), 103);
    assert!(rows.iter().all(|row| row.version == new && row.value == b"new"));
    assert_eq!(read(store, b"p", b"deleted").await, None);
}

/// A batch may check rows without changing any.
pub async fn a_batch_may_only_check(store: &dyn Store) {
    let version = write(store, b"p", vec![put(b"r", b"value")]).await;
    let check = |expect| batch(SPACE, b"p", vec![item(b"r", expect, Action::Nothing)]);
    store.commit(check(Expect::Version(version))).await.expect("the version is right");
    store.commit(check(Expect::Present)).await.expect("the row is there");
    assert_conflict(store.commit(check(Expect::Absent)).await, 0, Some(version));
    assert_eq!(read(store, b"p", b"r").await, Some(Row { version, value: Bytes::from_static(b"value") }));
}

/// Rows that one batch checks and others that it writes do not disturb one another.
pub async fn a_batch_sees_rows_as_before_it(store: &dyn Store) {
    let version = write(store, b"p", vec![put(b"guard", b"1")]).await;
    let guarded = |expect| {
        let created = item(b"r", Expect::Absent, Action::Put(Bytes::from_static(b"value")));
        batch(SPACE, b"p", vec![created, item(b"guard", expect, Action::Nothing)])
    };
    store.commit(guarded(Expect::Version(version))).await.expect("the guard is right");
    assert_eq!(read(store, b"p", b"guard").await.expect("the guard stays").version, version);
    let found = read(store, b"p", b"r").await.map(|row| row.version);
    assert_conflict(store.commit(guarded(Expect::Version(version))).await, 0, found);
}

/// A batch without items is a commit all the same.
pub async fn an_empty_batch_changes_nothing(store: &dyn Store) {
    let first = write(store, b"p", vec![put(b"r", b"value")]).await;
    let second = write(store, b"p", vec![]).await;
    assert!(second > first);
    assert_eq!(read(store, b"p", b"r").await.map(|row| row.version), Some(first));
}
