//! The suite on [`Memory`], and what it keeps.

use bytes::Bytes;
use partita_store::{Action, Batch, Expect, Item, Memory, Space, Store, store_suite};

store_suite!(Memory::new(), clock: Memory::with_clock);

/// A value may come in memory that is as large as the request it was read from.
#[tokio::test]
async fn the_memory_of_the_writer_is_not_kept() {
    let store = Memory::new();
    let mut roomy = Vec::with_capacity(1 << 20);
    roomy.extend_from_slice(b"value");
    let value = Bytes::from(roomy);
    let items = vec![Item { row: b"r".to_vec(), expect: Expect::Any, action: Action::Put(value.clone()) }];
    let batch = Batch { space: Space(1), partition: b"p".to_vec(), items, drop_space: None };
    store.commit(batch).await.expect("nothing is expected");
    let row = store.get(Space(1), b"p", b"r").await.expect("it can be read").expect("it is there");
    assert_eq!(row.value, value);
    assert_ne!(row.value.as_ptr(), value.as_ptr());
}
