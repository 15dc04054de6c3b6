//! Where rows stand in table files, so that a row that is in no cache costs one short read.
//!
//! RocksDB finds a row by its index and reads the block of 8 KiB around it, which it verifies and searches. All of that is in
//! memory of the operating system, and yet takes four times as long as to read the kilobyte of the row itself. So a thread
//! goes through table files (see `survey`) and notes of each row the file, the place in it and a checksum.
//!
//! ```text
//!   cell   hash of the key u64 | number of the file u32 | offset u32 | length u32 | checksum u32
//! ```
//!
//! Table files never change. What could make a place wrong is that the row is written once more, and then the committer takes it
//! out before anybody can see the new row, by the same rules by which rows are taken out of the cache: `row_cache` holds the
//! places, tells why that is exact, and says under which lock all this happens. Where a row was merged into another file
//! meanwhile, the old one still says the same; it is let go of when RocksDB has removed it.
//!
//! A place is found by 64 bits of a hash that nobody can foresee. The checksum is of key and value, so that also of two
//! keys with the same hash none gets the row of the other, and damage on the disk is noticed: then RocksDB is asked, which says
//! what is wrong.

use arc_swap::ArcSwap;
use bytes::{Buf, Bytes};
use partita_store::{Row, Version};
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::mem;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::Arc;

/// Of a hundred cells so many may be taken; with more a search meets too many others.
const CELLS_TAKEN_PERCENT: usize = 75;

/// A number by which RocksDB knows a table file. It is never used again.
pub(crate) type FileNumber = u32;

/// Where a row stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) file: FileNumber,
    pub(crate) offset: u32,
    /// Of the row with its version, so it is never 0.
    pub(crate) length: u32,
    pub(crate) checksum: u32,
}

impl Place {
    /// The place of a row whose value begins at `offset` of a file, if the file is not too large.
    pub(crate) fn of(file: FileNumber, offset: u64, key: &[u8], stored: &[u8]) -> Option<Place> {
        let (offset, length) = (offset.try_into().ok()?, stored.len().try_into().ok()?);
        Some(Place { file, offset, length, checksum: checksum(key, stored) })
    }
}

fn checksum(key: &[u8], stored: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(key), stored)
}

/// The table files that places lead to.
#[derive(Debug, Default)]
pub(crate) struct PlacedFiles(ArcSwap<HashMap<FileNumber, Arc<File>>>);

impl PlacedFiles {
    /// Reads the row of a key at its place; `None` if it is not there, for whatever reason.
    pub(crate) fn read(&self, key: &[u8], place: Place) -> Option<Row> {
        let mut stored = vec![0; place.length as usize];
        self.0.load().get(&place.file)?.read_exact_at(&mut stored, place.offset.into()).ok()?;
        if checksum(key, &stored) != place.checksum {
            return None;
        }
        let mut value = Bytes::from(stored);
        let version: Version = value.try_get_u64().ok()?;
        Some(Row { version, value })
    }

    pub(crate) fn insert(&self, number: FileNumber, file: Arc<File>) {
        self.change(|files| drop(files.insert(number, file)));
    }

    pub(crate) fn contains(&self, number: FileNumber) -> bool {
        self.0.load().contains_key(&number)
    }

    pub(crate) fn count(&self) -> usize {
        self.0.load().len()
    }

    /// Lets go of the files that were removed from the disk, which keeps what they take until then.
    pub(crate) fn let_go(&self) -> HashSet<FileNumber> {
        let files = self.0.load();
        let is_gone = |file: &File| file.metadata().is_ok_and(|file| file.nlink() == 0);
        let gone: HashSet<_> = files.iter().filter(|(_, file)| is_gone(file)).map(|(number, _)| *number).collect();
        if !gone.is_empty() {
            self.change(|files| files.retain(|number, _| !gone.contains(number)));
        }
        gone
    }

    /// Only the thread that surveys does.
    fn change(&self, change: impl FnOnce(&mut HashMap<FileNumber, Arc<File>>)) {
        let mut files = HashMap::clone(&self.0.load());
        change(&mut files);
        self.0.store(Arc::new(files));
    }
}

/// Places by the hashes of their keys, packed closely: of a million rows they take 30 to 40 MB.
#[derive(Debug, Default)]
pub(crate) struct PlaceTable {
    /// A place stands where its hash says or, where others were before it, behind them without a gap; the first cell follows the last.
    cells: Vec<Cell>,
    taken: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    hash: u64,
    /// Of length 0 if the cell is free.
    place: Place,
}

impl Cell {
    fn is_free(&self) -> bool {
        self.place.length == 0
    }
}

impl PlaceTable {
    pub(crate) fn len(&self) -> usize {
        self.taken
    }

    pub(crate) fn bytes(&self) -> usize {
        self.cells.len() * size_of::<Cell>()
    }

    pub(crate) fn get(&self, hash: u64) -> Option<Place> {
        self.find(hash).map(|at| self.cells[at].place)
    }

    /// Puts a place in, instead of the one that the hash had. Says whether there was room.
    pub(crate) fn insert(&mut self, hash: u64, place: Place, bytes_max: usize) -> bool {
        if let Some(at) = self.find(hash) {
            self.cells[at].place = place;
            return true;
        }
        if self.taken >= self.cells.len() * CELLS_TAKEN_PERCENT / 100 {
            let more = self.cells.len() + self.cells.len() / 4 + 64;
            if more * size_of::<Cell>() > bytes_max {
                return false;
            }
            self.rebuild(more, |_| true);
        }
        self.add(Cell { hash, place });
        true
    }

    pub(crate) fn remove(&mut self, hash: u64) {
        let Some(mut hole) = self.find(hash) else { return };
        self.taken -= 1;
        let mut at = self.behind(hole);
        while !self.cells[at].is_free() {
            // What may stand farther ahead moves into the hole.
            if self.distance(self.home(self.cells[at].hash), at) >= self.distance(hole, at) {
                self.cells[hole] = self.cells[at];
                hole = at;
            }
            at = self.behind(at);
        }
        self.cells[hole] = Cell::default();
    }

    /// Forgets all places in some files.
    pub(crate) fn forget(&mut self, files: &HashSet<FileNumber>) {
        self.rebuild(self.cells.len(), |place| !files.contains(&place.file));
    }

    fn rebuild(&mut self, cells: usize, keep: impl Fn(&Place) -> bool) {
        let before = mem::replace(&mut self.cells, vec![Cell::default(); cells]);
        self.taken = 0;
        for cell in before.into_iter().filter(|cell| !cell.is_free() && keep(&cell.place)) {
            self.add(cell);
        }
    }

    /// Adds what is not there. There is a free cell.
    fn add(&mut self, cell: Cell) {
        let mut at = self.home(cell.hash);
        while !self.cells[at].is_free() {
            at = self.behind(at);
        }
        self.cells[at] = cell;
        self.taken += 1;
    }

    fn find(&self, hash: u64) -> Option<usize> {
        if self.taken == 0 {
            return None;
        }
        let mut at = self.home(hash);
        while !self.cells[at].is_free() {
            if self.cells[at].hash == hash {
                return Some(at);
            }
            at = self.behind(at);
        }
        None
    }

    fn home(&self, hash: u64) -> usize {
        // The upper half chooses the shard.
        (((hash & u64::from(u32::MAX)) * self.cells.len() as u64) >> 32) as usize
    }

    fn behind(&self, at: usize) -> usize {
        if at + 1 == self.cells.len() { 0 } else { at + 1 }
    }

    fn distance(&self, from: usize, to: usize) -> usize {
        if from <= to { to - from } else { to + self.cells.len() - from }
    }
}

#[cfg(test)]
mod tests;
