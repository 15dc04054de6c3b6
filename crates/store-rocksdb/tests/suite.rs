//! The shared suite on RocksDB, in a folder of its own for each case.

use partita_store::{Clock, store_suite};
use partita_store_rocksdb::{Options, RocksStore};
use tempfile::TempDir;

fn temporary(clock: Clock) -> (RocksStore, TempDir) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = RocksStore::open(folder.path(), Options { clock, ..Options::default() }).expect("the folder opens");
    (store, folder)
}

store_suite!(temporary(Clock::system()), clock: temporary);
