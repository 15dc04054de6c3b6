//! Gives the disk space of large dropped spaces back.
//!
//! The rows are deleted already; what is left is files that hold nothing else. If the process ends before they are gone,
//! RocksDB comes upon them when it next compacts that part of the keys.

use crate::store::Shared;
use partita_store::{Space, space_end, space_prefix};
use rocksdb::{CompactOptions, WriteBatch, WriteOptions};
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;

/// Works off the dropped spaces until no more can come or the store is closing.
pub(crate) fn run(shared: &Shared, spaces: &Receiver<Space>, settings: &WriteOptions) {
    for space in spaces {
        if shared.closing.load(Ordering::Acquire) || shared.failure.is_set() {
            return;
        }
        // Where it fails, space is left unused and nothing else; it is not worth stopping for.
        let _ = reclaim(shared, space, settings);
        shared.counters.reclaims_pending.subtract(1);
    }
}

fn reclaim(shared: &Shared, space: Space, settings: &WriteOptions) -> Result<(), rocksdb::Error> {
    let (start, end) = (space_prefix(space), space_end(space));
    // Unlinks the files that hold rows of this space only, without reading them.
    shared.database.delete_file_in_range(start.as_slice(), end.as_slice())?;
    // One of them may have held the range deletion itself, and an older file that is shared with a neighbour may still
    // hold rows. Deleting them once more lets the compaction find them.
    let mut again = WriteBatch::default();
    again.delete_range(start.as_slice(), end.as_slice());
    // Synced if commits are: what is in the log unsynced would make one that was torn look damaged, see `log_check`.
    // A write that fails ends all writing, as it does in the committer.
    shared.database.write_opt(again, settings).inspect_err(|error| shared.failure.set(error.as_ref()))?;
    let mut compaction = CompactOptions::default();
    compaction.set_exclusive_manual_compaction(false);
    shared.database.compact_range_opt(Some(start), Some(end), &compaction);
    Ok(())
}
