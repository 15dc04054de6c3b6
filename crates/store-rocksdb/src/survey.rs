//! Goes through table files and notes where rows stand, for `places`.
//!
//! It begins when rows were read that no place is known of. Which of the rows in a file still count, only RocksDB knows: the row
//! that it shows under a key is the one in the file if both have the same version.
//!
//! ```text
//!   file       a 5   c 2   d 7   f 4         rows and their versions
//!   RocksDB    a 5   b 1   d 8   f 4         as of a moment after the tickets of a, c, d and f were taken
//!   noted      a                 f
//! ```

use crate::failure::read_error;
use crate::files::table::{self, RowBlocks};
use crate::format::{LAST_VERSION_KEY, split_value};
use crate::places::{FileNumber, Place};
use crate::row_cache::{KeyHash, Ticket};
use crate::store::Shared;
use partita_store::{Result, Version};
use rocksdb::{DBRawIterator, LiveFile, ReadOptions, properties};
use std::fs::File;
use std::mem;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// So many rows have to be read the long way before it is worth a look at the files.
const READS_MIN: u64 = 1000;
/// After looks that found nothing to do, so many at the most.
const READS_MAX: u64 = 1 << 20;
/// While files are being merged, so that what is found may soon be gone, for each read at the most so many rows are gone through.
const ROWS_PER_READ: u64 = 8;
/// Of so many files the descriptors are held, beside those that RocksDB holds. They have room for four million rows of a kilobyte.
const FILES_MAX: usize = 64;
/// How often files that RocksDB has removed are let go of.
const LET_GO_EVERY: Duration = Duration::from_secs(1);
/// Rows are gone through in parts of this size, so that few of a part are written meanwhile.
const PART_BYTES: usize = 1 << 20;
/// Behind so many rows of other files it is cheaper to seek.
const STEPS_MAX: usize = 8;

/// Wakes the thread that surveys when it is time to.
#[derive(Debug)]
pub(crate) struct Surveyor {
    /// Rows that were read the long way.
    reads: AtomicU64,
    /// With so many it is time for the next look.
    enough: AtomicU64,
    /// Whether there was no room for a place, and none was forgotten since.
    is_full: AtomicBool,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    is_due: bool,
    is_closed: bool,
}

impl Surveyor {
    pub(crate) fn new() -> Surveyor {
        let (reads, enough) = (AtomicU64::new(0), AtomicU64::new(READS_MIN));
        Surveyor { reads, enough, is_full: AtomicBool::new(false), state: Mutex::default(), changed: Condvar::new() }
    }

    /// Counts a row that was read the long way.
    pub(crate) fn count(&self) {
        let reads = self.reads.fetch_add(1, Ordering::Relaxed) + 1;
        if reads >= self.enough.load(Ordering::Relaxed) {
            self.enough.store(u64::MAX, Ordering::Relaxed);
            self.lock().is_due = true;
            self.changed.notify_all();
        }
    }

    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
    }

    fn is_closed(&self) -> bool {
        self.lock().is_closed
    }

    /// Waits until it is time, which is true, or for so long. `None` when the store is closed.
    fn wait(&self, limit: Duration) -> Option<bool> {
        let idle = |state: &mut State| !state.is_due && !state.is_closed;
        let waited = self.changed.wait_timeout_while(self.lock(), limit, idle);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        (!state.is_closed).then(|| mem::take(&mut state.is_due))
    }

    // Nothing that could panic happens half way through a change of the state.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Surveys files when it is time to, until the store is closed.
pub(crate) fn run(shared: &Shared) {
    let surveyor = &shared.surveyor;
    let (mut reads_before, mut pause) = (0, READS_MIN);
    loop {
        let limit = if shared.files.count() == 0 { Duration::MAX } else { LET_GO_EVERY };
        let Some(is_due) = surveyor.wait(limit) else { return };
        let_go(shared);
        if is_due {
            let reads = surveyor.reads.load(Ordering::Relaxed);
            // What cannot be read is told to whoever asks for it.
            match survey(shared, reads - reads_before).unwrap_or(Survey::NothingToDo) {
                Survey::Done => (reads_before, pause) = (reads, READS_MIN),
                Survey::TooEarly => pause = READS_MIN,
                Survey::NothingToDo => pause = READS_MAX.min(2 * pause),
            }
            surveyor.enough.store(surveyor.reads.load(Ordering::Relaxed) + pause, Ordering::Relaxed);
        }
    }
}

/// Lets go of files that RocksDB has removed, and of all places in them.
fn let_go(shared: &Shared) {
    let gone = shared.files.let_go();
    if !gone.is_empty() {
        shared.rows.forget_files(&gone);
        shared.surveyor.is_full.store(false, Ordering::Relaxed);
    }
}

/// What became of a survey.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Survey {
    Done,
    /// Files are being merged, and the reads so far are not worth it yet.
    TooEarly,
    /// There is no new file, or no room.
    NothingToDo,
}

/// Goes through the files that are new, if the reads since the last time are worth it.
pub(crate) fn survey(shared: &Shared, reads: u64) -> Result<Survey> {
    let files = shared.database.live_files().map_err(read_error)?;
    let numbered = files.into_iter().filter_map(|file| Some((number(&file)?, file)));
    let new: Vec<(FileNumber, LiveFile)> = numbered.filter(|(number, _)| !shared.files.contains(*number)).collect();
    let is_merging = shared.property(properties::NUM_RUNNING_COMPACTIONS) > 0;
    let rows: u64 = new.iter().map(|(_, file)| file.num_entries).sum();
    if is_merging && rows > ROWS_PER_READ * reads {
        return Ok(Survey::TooEarly);
    }
    let mut outcome = Survey::NothingToDo;
    for (number, file) in new {
        if shared.files.count() >= FILES_MAX || shared.surveyor.is_full.load(Ordering::Relaxed) {
            break;
        }
        // It may have been merged into another meanwhile.
        let path = shared.database.path().join(file.name.trim_start_matches('/'));
        let Ok(file) = File::open(path).map(Arc::new) else { continue };
        shared.files.insert(number, Arc::clone(&file));
        if !survey_file(shared, number, &file)? {
            break;
        }
        outcome = Survey::Done;
    }
    Ok(outcome)
}

fn number(file: &LiveFile) -> Option<FileNumber> {
    file.name.trim_start_matches('/').strip_suffix(".sst")?.parse().ok()
}

/// Goes through a file. Says whether it got to the end: not if there is no more room, or the store is closed.
fn survey_file(shared: &Shared, number: FileNumber, file: &File) -> Result<bool> {
    let Ok(Some(blocks)) = RowBlocks::of(file) else { return Ok(true) };
    let mut part = Part::default();
    for (offset, block) in blocks {
        part.add(shared, number, offset, &block);
        if part.bytes >= PART_BYTES && !mem::take(&mut part).note(shared)? {
            return Ok(false);
        }
    }
    part.note(shared)
}

/// Rows of a file, one behind the other.
#[derive(Default)]
struct Part {
    keys: Vec<u8>,
    rows: Vec<Candidate>,
    bytes: usize,
}

/// A row that may be the one that counts.
struct Candidate {
    key: Range<usize>,
    hash: KeyHash,
    ticket: Ticket,
    version: Version,
    place: Place,
}

impl Part {
    fn add(&mut self, shared: &Shared, number: FileNumber, offset: u64, block: &[u8]) {
        self.bytes += block.len();
        // Rows behind a malformed place are left out.
        let _ = table::visit_rows(block, |key, value| {
            if key == LAST_VERSION_KEY {
                // It is written with every group, and not taken out.
                return;
            }
            let (at, stored) = (offset + value.start as u64, &block[value]);
            let hash = shared.rows.hash(key);
            let place = Place::of(number, at, key, stored);
            if let (Ok((version, _)), Some(place), Some(ticket)) =
                (split_value(stored), place, shared.rows.ticket(hash))
            {
                let start = self.keys.len();
                self.keys.extend_from_slice(key);
                self.rows.push(Candidate { key: start..self.keys.len(), hash, ticket, version, place });
            }
        });
    }

    /// Notes the rows that RocksDB shows. Says whether there was room for all, and the store is still open.
    fn note(self, shared: &Shared) -> Result<bool> {
        let mut settings = ReadOptions::default();
        settings.fill_cache(false);
        let mut shown = shared.database.raw_iterator_opt(settings);
        let key = |row: &Candidate| &self.keys[row.key.clone()];
        if let Some(first) = self.rows.first() {
            shown.seek(key(first));
        }
        for row in &self.rows {
            advance(&mut shown, key(row));
            let Some((found, stored)) = shown.item() else { break };
            let counts = found == key(row) && split_value(stored)?.0 == row.version;
            if counts && !shared.rows.note(row.hash, row.ticket, row.place) {
                shared.surveyor.is_full.store(true, Ordering::Relaxed);
                return Ok(false);
            }
        }
        shown.status().map_err(read_error)?;
        Ok(!shared.surveyor.is_closed())
    }
}

/// Goes on to the first row that is not before a key.
fn advance(shown: &mut DBRawIterator<'_>, key: &[u8]) {
    let mut steps = 0;
    while shown.key().is_some_and(|shown| shown < key) {
        if steps < STEPS_MAX {
            shown.next()
        } else {
            shown.seek(key)
        }
        steps += 1;
    }
}

#[cfg(test)]
mod tests;
