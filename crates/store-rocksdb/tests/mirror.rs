//! The shared suite on RocksDB beside [`Memory`], which must answer alike.

use partita_store::{Memory, Mirror, store_suite};
use partita_store_rocksdb::{Options, RocksStore};
use tempfile::TempDir;

fn mirrored() -> (Mirror<RocksStore, Memory>, TempDir) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = RocksStore::open(folder.path(), Options::default()).expect("the folder opens");
    (Mirror::new(store, Memory::new()), folder)
}

store_suite!(mirrored());
