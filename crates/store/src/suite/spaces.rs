//! Dropping spaces.

use super::*;

/// The catalogue's own space in these cases: the batch that drops a space writes here.
const CATALOGUE: Space = Space(0);

fn drop_of(space: Space, expect: Expect) -> Batch {
    let items = vec![item(b"table", expect, Action::Delete)];
    Batch { space: CATALOGUE, partition: b"tables".to_vec(), items, drop_space: Some(space) }
}

async fn create_table(store: &dyn Store) -> Version {
    store.commit(batch(CATALOGUE, b"tables", vec![put(b"table", b"7")])).await.expect("the catalogue is written")
}

async fn assert_gone(store: &dyn Store, space: Space) {
    assert_dropped(store.get(space, &0_u32.to_be_bytes(), &0_u32.to_be_bytes()).await);
    assert_dropped(store.get(space, b"never", b"written").await);
    assert_dropped(visit(store, scan_all(space), |row| panic!("a row of a dropped space: {row:?}")).await);
    assert_dropped(store.commit(batch(space, b"p", vec![put(b"r", b"value")])).await);
    assert_dropped(store.commit(batch(space, b"p", vec![item(b"r", Expect::Present, Action::Nothing)])).await);
}

/// With the commit that drops it, a space has no rows, and says so whatever is asked of it.
pub async fn a_dropped_space_is_gone_at_once(store: &dyn Store) {
    let version = create_table(store).await;
    fill(store, SPACE, 3, 10).await;
    fill(store, OTHER_SPACE, 3, 10).await;
    // Engines may remember what was read.
    for _ in 0..2 {
        assert!(read(store, &0_u32.to_be_bytes(), &0_u32.to_be_bytes()).await.is_some());
    }
    store.commit(drop_of(SPACE, Expect::Version(version))).await.expect("the space is dropped");
    assert_gone(store, SPACE).await;
    assert_eq!(store.get(CATALOGUE, b"tables", b"table").await.expect("a row is read"), None);
    assert_eq!(scanned(store, scan_all(OTHER_SPACE)).await.len(), 30);
}

/// So is one of thousands of rows, between two neighbours that keep theirs.
pub async fn a_large_space_is_dropped_at_once(store: &dyn Store) {
    create_table(store).await;
    let neighbours = [Space(SPACE.0 - 1), Space(SPACE.0 + 1)];
    for neighbour in neighbours {
        fill(store, neighbour, 2, 20).await;
    }
    fill(store, SPACE, 3, 2000).await;
    store.commit(drop_of(SPACE, Expect::Present)).await.expect("the space is dropped");
    assert_gone(store, SPACE).await;
    for neighbour in neighbours {
        assert_eq!(scanned(store, scan_all(neighbour)).await.len(), 40);
        fill(store, neighbour, 3, 20).await;
        assert_eq!(scanned(store, scan_all(neighbour)).await.len(), 60);
    }
}

/// A batch that does not hold drops nothing either.
pub async fn a_conflict_drops_nothing(store: &dyn Store) {
    let version = create_table(store).await;
    fill(store, SPACE, 1, 10).await;
    assert_conflict(store.commit(drop_of(SPACE, Expect::Absent)).await, 0, Some(version));
    assert_eq!(scanned(store, scan_all(SPACE)).await.len(), 10);
    write(store, b"p", vec![put(b"r", b"value")]).await;
    assert_eq!(scanned(store, scan_all(SPACE)).await.len(), 11);
}

/// What a batch writes to the space that it drops is dropped too.
pub async fn a_batch_may_drop_its_own_space(store: &dyn Store) {
    fill(store, SPACE, 1, 10).await;
    let last = Batch { drop_space: Some(SPACE), ..batch(SPACE, b"p", vec![put(b"r", b"value")]) };
    store.commit(last).await.expect("the space is dropped");
    assert_gone(store, SPACE).await;
}

/// A space that was dropped, or never had a row, can be named again as the one to drop.
pub async fn dropping_twice_is_harmless(store: &dyn Store) {
    fill(store, SPACE, 1, 10).await;
    for _ in 0..2 {
        store.commit(drop_of(SPACE, Expect::Any)).await.expect("the space is dropped");
        assert_gone(store, SPACE).await;
    }
    store.commit(drop_of(OTHER_SPACE, Expect::Any)).await.expect("an empty space is dropped");
    assert_gone(store, OTHER_SPACE).await;
}

/// The same keys in several spaces are several rows.
pub async fn spaces_are_apart(store: &dyn Store) {
    let spaces = [Space(0), Space(1), Space(255), Space(256), Space(u64::MAX - 1), Space(u64::MAX)];
    for space in spaces {
        let items = vec![put(b"r", &space.0.to_be_bytes())];
        store.commit(batch(space, b"p", items)).await.expect("the row is written");
    }
    for space in spaces {
        let rows = scanned(store, scan_all(space)).await;
        assert_eq!(rows.len(), 1, "{space:?}");
        assert_eq!(rows[0].value, space.0.to_be_bytes());
        let row = store.get(space, b"p", b"r").await.expect("a row is read").expect("the row was written");
        assert_eq!(row.value.as_ref(), space.0.to_be_bytes());
    }
}

/// No space lies behind this one to mark its end.
pub async fn the_last_space_can_be_dropped(store: &dyn Store) {
    let last = Space(u64::MAX);
    fill(store, last, 2, 1000).await;
    fill(store, SPACE, 1, 10).await;
    store.commit(drop_of(last, Expect::Any)).await.expect("the space is dropped");
    assert_gone(store, last).await;
    assert_eq!(scanned(store, scan_all(SPACE)).await.len(), 10);
}
