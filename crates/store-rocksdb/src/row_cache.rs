//! Rows that were read lately, in memory, so that reading one again costs a lookup and no search through RocksDB: about
//! a tenth of a microsecond where RocksDB takes several even when all its blocks are in memory.
//!
//! # Why it is exact
//!
//! A reader must find no row that is older than what anybody may have seen, and none that a crash could take back. The
//! cache holds only what readers have found in RocksDB, which shows nothing that is not durable, so the second holds by
//! itself. For the first, the committer takes the rows that a group writes out of the cache *before* RocksDB can show the
//! group to anybody, and readers may put nothing back that they read too early.
//!
//! ```text
//!   committer   |-- stripes odd --|-- rows out --|-- write, sync, visible --|-- stripes even --|
//!   reader 1                 stripe odd: reads RocksDB and keeps the row to itself
//!   reader 2  stripe even, reads RocksDB ................................ stripe has changed: keeps it to itself
//!   reader 3  stripe even, reads RocksDB, puts the row in, which the committer takes out again
//! ```
//!
//! Each row belongs by its hash to one of many *stripes*, a number that is odd while a row of the stripe is being written
//! and is another one afterwards. A reader notes the stripe before it reads RocksDB and puts the row in only if the
//! number is even and still the same.
//!
//! - It looks at the stripe again while it holds the lock of the shard that the row goes to. The committer makes the
//!   stripe odd before it takes that lock to remove the row. Whoever has the lock first, the row is not there when the
//!   committer is through: either the reader finds the stripe changed, or the committer finds the row.
//! - With the stripe unchanged from before the read until the row is in, no write of the row became visible in between,
//!   since that happens only while the stripe is odd. So the row is what RocksDB holds.
//!
//! Dropping a space is a write to rows that nobody lists, so it makes every stripe odd, and takes all rows of the space
//! out. A row that is found here is therefore never one of a dropped space.
//!
//! That a row is absent is not remembered: filters in memory answer that nearly as fast.
//!
//! # Places
//!
//! Of rows that are not here it may be known where they stand (see `places`). Places are put in and taken out by the same rules as
//! rows: whoever notes one has its ticket before it finds in RocksDB that the row which stands there is the one that counts. Only of
//! dropped spaces they stay, so whoever reads a row at its place looks afterwards whether its space is still there.

use crate::places::{FileNumber, Place, PlaceTable};
use bytes::Bytes;
use partita_store::{Row, Space, Version, space_prefix};
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Each under a lock of its own, held for a lookup only.
const SHARDS: usize = 64;
/// So many that of a group of a hundred commits hardly one disturbs a reader of another row.
const STRIPES: usize = 16 * 1024;
/// What a row takes besides its bytes: the entry, its place in the map, the count of its owners, and what an allocator
/// rounds up.
const ENTRY_BYTES: usize = 176;
/// A shard keeps no row that takes more than one of this many parts of it.
const ROWS_PER_SHARD_MIN: usize = 8;
/// Of so many rows that are read at their places one is kept. To keep a row takes as long as to read it there; one that is asked
/// for often is soon among them.
const PLACES_PER_KEPT: u64 = 8;

#[derive(Debug)]
pub(crate) struct RowCache {
    hasher: RandomState,
    shards: Box<[Mutex<Shard>]>,
    stripes: Box<[AtomicU64]>,
}

/// The hash of a row's key, by which the cache knows it.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(crate) struct KeyHash(u64);

/// What a reader noted before it read a row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticket(u64);

/// Says that rows are being written, until it is dropped.
#[derive(Debug)]
#[must_use]
pub(crate) struct Writing<'a> {
    cache: &'a RowCache,
    stripes: Vec<usize>,
}

/// What is known of a row.
#[derive(Debug)]
pub(crate) enum Found {
    Row(Row),
    /// Where it stands, unless its space was dropped; with a ticket if it shall be kept.
    Place(Place, Option<Ticket>),
    Nothing,
}

/// What is known of the use of the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RowCacheFigures {
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
    pub(crate) places: u64,
    pub(crate) place_bytes: u64,
    pub(crate) place_hits: u64,
    pub(crate) hits: u64,
    pub(crate) misses: u64,
}

impl RowCache {
    /// With so much memory for rows, and for places.
    pub(crate) fn new(bytes_max: usize, place_bytes_max: usize) -> RowCache {
        let (bytes_max, place_bytes_max) = (bytes_max / SHARDS, place_bytes_max / SHARDS);
        let shard = || Mutex::new(Shard { bytes_max, place_bytes_max, ..Shard::default() });
        RowCache {
            hasher: RandomState::new(),
            shards: (0..SHARDS).map(|_| shard()).collect(),
            stripes: (0..STRIPES).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// Clients choose keys, so the hash is one that they cannot foresee.
    pub(crate) fn hash(&self, key: &[u8]) -> KeyHash {
        let mut hasher = self.hasher.build_hasher();
        hasher.write(key);
        KeyHash(hasher.finish())
    }

    pub(crate) fn find(&self, hash: KeyHash, key: &[u8]) -> Found {
        let mut shard = self.shard(hash);
        if let Some(entry) = shard.find(hash, key) {
            return Found::Row(entry.row());
        }
        let Some(place) = shard.places.get(hash.0) else { return Found::Nothing };
        shard.place_hits += 1;
        // With the place still here, under the lock, an even stripe says as much as if it had been noted before.
        let is_kept = shard.place_hits.is_multiple_of(PLACES_PER_KEPT);
        Found::Place(place, if is_kept { self.ticket(hash) } else { None })
    }

    pub(crate) fn version(&self, hash: KeyHash, key: &[u8]) -> Option<Version> {
        self.shard(hash).find(hash, key).map(|entry| entry.version)
    }

    /// Called before a row is read that is not here; `None` if it is being written and cannot be kept.
    pub(crate) fn ticket(&self, hash: KeyHash) -> Option<Ticket> {
        let stripe = self.stripe(hash).load(Ordering::Acquire);
        stripe.is_multiple_of(2).then_some(Ticket(stripe))
    }

    /// Keeps a row that was read after the ticket was taken, if nobody has begun to write it since.
    pub(crate) fn keep(&self, hash: KeyHash, ticket: Ticket, key: &[u8], version: Version, value: &[u8]) -> Row {
        let entry = Entry::new(hash, key, version, value);
        let row = entry.row();
        let mut shard = self.shard(hash);
        if self.stripe(hash).load(Ordering::Acquire) == ticket.0 {
            shard.insert(entry);
        }
        row
    }

    /// Notes where a row stands, if nobody has begun to write it since the ticket was taken. Says whether there was room.
    pub(crate) fn note(&self, hash: KeyHash, ticket: Ticket, place: Place) -> bool {
        let mut shard = self.shard(hash);
        let bytes_max = shard.place_bytes_max;
        self.stripe(hash).load(Ordering::Acquire) != ticket.0 || shard.places.insert(hash.0, place, bytes_max)
    }

    /// Forgets a place at which the row was not found.
    pub(crate) fn forget_place(&self, hash: KeyHash) {
        self.shard(hash).places.remove(hash.0);
    }

    /// Forgets all places in some files.
    pub(crate) fn forget_files(&self, files: &HashSet<FileNumber>) {
        self.shards.iter().for_each(|shard| lock(shard).places.forget(files));
    }

    /// Takes rows out that are about to be written, and all rows of spaces that are about to be dropped. To be held until
    /// readers can see the write, or it has failed. One thread writes, so there is one of these at a time.
    pub(crate) fn writing(&self, rows: &[KeyHash], dropped: &[Space]) -> Writing<'_> {
        let mut stripes = Vec::with_capacity(rows.len());
        if dropped.is_empty() {
            for hash in rows {
                self.begin(hash.stripe(), &mut stripes);
            }
        } else {
            (0..STRIPES).for_each(|stripe| self.begin(stripe, &mut stripes));
        }
        for hash in rows {
            let mut shard = self.shard(*hash);
            shard.remove(*hash);
            shard.places.remove(hash.0);
        }
        for space in dropped {
            self.shards.iter().for_each(|shard| lock(shard).remove_space(*space));
        }
        Writing { cache: self, stripes }
    }

    fn begin(&self, stripe: usize, begun: &mut Vec<usize>) {
        let number = &self.stripes[stripe];
        // Another row of the stripe may have begun it.
        if number.load(Ordering::Relaxed).is_multiple_of(2) {
            number.fetch_add(1, Ordering::Release);
            begun.push(stripe);
        }
    }

    pub(crate) fn figures(&self) -> RowCacheFigures {
        let mut figures = RowCacheFigures::default();
        for shard in &self.shards {
            let shard = lock(shard);
            figures.rows += shard.entries.len() as u64;
            figures.bytes += shard.bytes as u64;
            figures.places += shard.places.len() as u64;
            figures.place_bytes += shard.places.bytes() as u64;
            figures.place_hits += shard.place_hits;
            figures.hits += shard.hits;
            figures.misses += shard.misses;
        }
        figures
    }

    fn shard(&self, hash: KeyHash) -> MutexGuard<'_, Shard> {
        // Not the lowest bits nor the highest, by which the map in the shard finds its place.
        lock(&self.shards[(hash.0 >> 32) as usize % SHARDS])
    }

    fn stripe(&self, hash: KeyHash) -> &AtomicU64 {
        &self.stripes[hash.stripe()]
    }
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        for stripe in &self.stripes {
            self.cache.stripes[*stripe].fetch_add(1, Ordering::Release);
        }
    }
}

impl KeyHash {
    #[cfg(test)]
    pub(crate) fn of_number(number: u64) -> KeyHash {
        KeyHash(number)
    }

    fn stripe(self) -> usize {
        self.0 as usize % STRIPES
    }
}

// Nothing that could panic happens half way through a change of a shard.
fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Some of the rows. When there is no room, a hand goes round them and takes the first that was not used since it last
/// came by.
#[derive(Debug, Default)]
struct Shard {
    /// Which entry is of a hash. Two rows of one hash, should they ever meet, push each other out.
    indexes: HashMap<u64, usize, BuildHasherDefault<HashItself>>,
    entries: Vec<Entry>,
    hand: usize,
    bytes: usize,
    bytes_max: usize,
    hits: u64,
    misses: u64,
    /// Of rows that may or may not be here.
    places: PlaceTable,
    place_bytes_max: usize,
    place_hits: u64,
}

#[derive(Debug)]
struct Entry {
    hash: KeyHash,
    version: Version,
    /// The key and, behind it, the value.
    bytes: Bytes,
    key_bytes: usize,
    used: bool,
}

impl Entry {
    fn new(hash: KeyHash, key: &[u8], version: Version, value: &[u8]) -> Entry {
        Entry { hash, version, bytes: [key, value].concat().into(), key_bytes: key.len(), used: false }
    }

    fn key(&self) -> &[u8] {
        &self.bytes[..self.key_bytes]
    }

    fn row(&self) -> Row {
        Row { version: self.version, value: self.bytes.slice(self.key_bytes..) }
    }

    fn bytes(&self) -> usize {
        self.bytes.len() + ENTRY_BYTES
    }
}

impl Shard {
    fn find(&mut self, hash: KeyHash, key: &[u8]) -> Option<&Entry> {
        let entry = self.indexes.get(&hash.0).map(|place| &mut self.entries[*place]).filter(|entry| entry.key() == key);
        match entry {
            Some(entry) => {
                self.hits += 1;
                entry.used = true;
                Some(entry)
            }
            None => {
                self.misses += 1;
                None
            }
        }
    }

    fn insert(&mut self, entry: Entry) {
        if entry.bytes() > self.bytes_max / ROWS_PER_SHARD_MIN {
            return;
        }
        self.remove(entry.hash);
        while self.bytes + entry.bytes() > self.bytes_max {
            self.evict_one();
        }
        self.bytes += entry.bytes();
        self.indexes.insert(entry.hash.0, self.entries.len());
        self.entries.push(entry);
    }

    fn remove(&mut self, hash: KeyHash) {
        if let Some(place) = self.indexes.remove(&hash.0) {
            let entry = self.entries.swap_remove(place);
            self.bytes -= entry.bytes();
            if let Some(moved) = self.entries.get(place) {
                self.indexes.insert(moved.hash.0, place);
            }
        }
    }

    fn remove_space(&mut self, space: Space) {
        let prefix = space_prefix(space);
        let of_space = self.entries.iter().filter(|entry| entry.key().starts_with(&prefix)).map(|entry| entry.hash);
        let hashes: Vec<KeyHash> = of_space.collect();
        hashes.into_iter().for_each(|hash| self.remove(hash));
    }

    fn evict_one(&mut self) {
        loop {
            if self.hand >= self.entries.len() {
                self.hand = 0;
            }
            let entry = &mut self.entries[self.hand];
            if !entry.used {
                let hash = entry.hash;
                return self.remove(hash);
            }
            entry.used = false;
            self.hand += 1;
        }
    }
}

/// Takes a number that is a hash already for its own hash.
#[derive(Debug, Default)]
pub(crate) struct HashItself(u64);

impl Hasher for HashItself {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("keys are numbers");
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

#[cfg(test)]
mod tests;
