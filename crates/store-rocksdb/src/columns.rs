//! Numbers of rows, in memory, by which a scan with a sieve passes over rows without reading them.
//!
//! To look at a million rows is to read a gigabyte; to look at one number of each of them is to read eight megabytes. A
//! scan that reads rows anyway notes their numbers in the columns that sieves of this space have asked for, on *sheets*:
//!
//! ```text
//!   sheet   [ line | line | line ... ]   up to 32 lines of 32 rows, from one key to another, without gaps
//!   line    its first key, and of each column the numbers of its rows
//! ```
//!
//! The next scan asks its sieve of each line and reads only lines in which there may be something (see `scan::skim`).
//!
//! # Why it is exact
//!
//! A scan sees the rows as of the moment of its snapshot. It may rely on a line if the rows of the line were the same then as when
//! the sheet was made. The committer therefore marks the lines of the rows that a group writes *before* RocksDB can show the
//! group to anybody, and a scan looks at the marks after it took its snapshot; lines that are marked are read.
//!
//! ```text
//!   committer    |-- lines marked --|-- write, sync, visible --|
//!   scan 1               snapshot: does not show the group; its marks cost a few rows more
//!   scan 2                                              snapshot, then looks at lines: finds them marked
//! ```
//!
//! - Scans are numbered, under the lock under which they take their snapshots, and rely only on sheets that an
//!   earlier scan made: of two snapshots the one of the lower number is never the younger.
//! - A sheet that is not there yet cannot be marked. So while a scan of a space is under way, the keys that are written there
//!   are noted with the number of the last scan that had begun, and marked on its sheets when it hands them in. The keys of a
//!   group that is being written when a scan begins are noted as well: its snapshot may not show them yet.
//! - Lines are marked by key, so that a row that is new, and lies between two that are known, counts as well.
//!
//! A mark stays. A sheet with many marks is of no use to a scan, which then reads its rows and makes it anew.

use partita_store::{Column, RowRef, Sieve, Space, space_end, space_prefix};
use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const LINE_ROWS: usize = 32;
/// One for each bit of the marks.
const SHEET_LINES: usize = u32::BITS as usize;
/// A sheet with more marks is made anew.
const MARKS_MAX: u32 = 8;
/// Of one space; beyond them those that were not asked for longest are forgotten.
pub(crate) const COLUMNS_MAX: usize = 8;
/// Keys that are noted for scans under way; if there are more, those scans hand in nothing.
const NOTED_MAX: usize = 64 * 1024;

#[derive(Debug)]
pub(crate) struct Columns {
    bytes_max: usize,
    passed_over: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// By the key at which they begin; no two overlap.
    sheets: BTreeMap<Vec<u8>, Arc<Sheet>>,
    /// The spaces that have sheets or are being read.
    spaces: HashMap<Space, Filtered>,
    last_scan: u64,
    /// The rows of the group that is being written.
    writing: Keys,
    /// Rows that were written while scans were under way, and the last scan that had begun then.
    noted: BTreeMap<Vec<u8>, u64>,
    /// Scans up to this one hand in nothing, because not all that was written is known.
    noted_from: u64,
}

/// A space that is read with sieves.
#[derive(Debug, Default)]
struct Filtered {
    columns: Arc<[Column]>,
    last_scan: u64,
    scans_under_way: usize,
    bytes: usize,
}

/// Keys, one behind the other.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Keys {
    pub(crate) fn push(&mut self, key: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len());
    }

    fn get(&self, index: usize) -> &[u8] {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.bytes[start..self.ends[index]]
    }

    fn len(&self) -> usize {
        self.ends.len()
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map(|index| self.get(index))
    }
}

/// The numbers of some rows.
#[derive(Debug)]
pub(crate) struct Sheet {
    /// Where each line begins and, last, where the sheet ends.
    keys: Keys,
    rows: usize,
    columns: Arc<[Column]>,
    /// All of the first column, then all of the next.
    numbers: Vec<u64>,
    /// A bit for each line with a row that was written since.
    marks: AtomicU32,
    made_by: u64,
}

impl Sheet {
    pub(crate) fn start(&self) -> &[u8] {
        self.keys.get(0)
    }

    pub(crate) fn end(&self) -> &[u8] {
        self.keys.get(self.lines())
    }

    pub(crate) fn lines(&self) -> usize {
        self.keys.len() - 1
    }

    /// Where a line begins, or where the last one ends.
    pub(crate) fn line_start(&self, line: usize) -> &[u8] {
        self.keys.get(line)
    }

    pub(crate) fn line_rows(&self, line: usize) -> usize {
        LINE_ROWS.min(self.rows - line * LINE_ROWS)
    }

    /// The line of a key that lies on the sheet.
    pub(crate) fn line_of(&self, key: &[u8]) -> usize {
        let (mut low, mut high) = (0, self.lines());
        while high - low > 1 {
            let middle = low.midpoint(high);
            if self.keys.get(middle) <= key { low = middle } else { high = middle }
        }
        low
    }

    /// A bit for each line that has to be read: of the others the sieve wants no row.
    pub(crate) fn lines_to_read(&self, sieve: &dyn Sieve) -> u32 {
        let mut places = [0; COLUMNS_MAX];
        let wanted = sieve.columns();
        for (place, column) in places.iter_mut().zip(wanted) {
            *place = self.place(column).expect("only sheets with all columns are given out");
        }
        let marks = self.marks.load(Ordering::Acquire);
        let mut lines = marks;
        for line in (0..self.lines()).filter(|line| marks >> line & 1 == 0) {
            let first = line * LINE_ROWS;
            let rows = self.line_rows(line);
            let numbers = places.map(|place| &self.numbers[place * self.rows + first..][..rows]);
            lines |= u32::from(sieve.may_keep(&numbers[..wanted.len()])) << line;
        }
        lines
    }

    fn place(&self, column: &Column) -> Option<usize> {
        self.columns.iter().position(|known| known == column)
    }

    fn is_of_use(&self, wanted: &[Column]) -> bool {
        self.marks.load(Ordering::Acquire).count_ones() <= MARKS_MAX
            && wanted.iter().all(|column| self.place(column).is_some())
    }

    fn mark(&self, key: &[u8]) {
        self.marks.fetch_or(1 << self.line_of(key), Ordering::Release);
    }

    fn bytes(&self) -> usize {
        size_of::<Sheet>()
            + self.keys.bytes.len()
            + 8 * (self.keys.ends.len() + self.numbers.len())
            + self.start().len()
    }
}

/// What is known of the use of sheets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ColumnFigures {
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
    pub(crate) passed_over: u64,
}

impl Columns {
    pub(crate) fn new(bytes_max: usize) -> Columns {
        Columns { bytes_max, passed_over: AtomicU64::new(0), state: Mutex::default() }
    }

    /// Begins a scan of a space with a sieve that looks at some columns, at most [`COLUMNS_MAX`].
    pub(crate) fn begin<S>(&self, space: Space, wanted: &[Column], snapshot: impl FnOnce() -> S) -> (Reading<'_>, S) {
        let mut state = self.lock();
        let state = &mut *state;
        state.last_scan += 1;
        let filtered = state.spaces.entry(space).or_default();
        filtered.want(wanted);
        filtered.last_scan = state.last_scan;
        filtered.scans_under_way += 1;
        let prefix = space_prefix(space);
        for key in state.writing.iter().filter(|key| key.starts_with(&prefix)) {
            state.noted.insert(key.to_vec(), state.last_scan);
        }
        let (columns, has_sheets) = (Arc::clone(&filtered.columns), filtered.bytes > 0);
        (Reading { all: self, space, number: state.last_scan, columns, has_sheets }, snapshot())
    }

    /// Marks rows that are about to be written and forgets spaces that are about to be dropped. To be held until
    /// readers can see the write, or it has failed. One thread writes, so there is one of these at a time.
    pub(crate) fn writing(&self, rows: Keys, dropped: &[Space]) -> Writing<'_> {
        let mut state = self.lock();
        for space in dropped {
            state.forget(*space);
            state.noted_from = state.last_scan + 1;
        }
        for key in rows.iter() {
            state.mark(key);
        }
        state.note(&rows);
        state.writing = rows;
        Writing(self)
    }

    pub(crate) fn figures(&self) -> ColumnFigures {
        let state = self.lock();
        ColumnFigures {
            rows: state.sheets.values().map(|sheet| sheet.rows as u64).sum(),
            bytes: state.bytes() as u64,
            passed_over: self.passed_over.load(Ordering::Relaxed),
        }
    }

    // Nothing that could panic happens half way through a change of the state.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Filtered {
    /// Puts the columns behind the others, as those that were asked for last.
    fn want(&mut self, wanted: &[Column]) {
        if wanted.iter().all(|column| self.columns.contains(column)) {
            return;
        }
        let others = self.columns.iter().filter(|column| !wanted.contains(column));
        let columns: Vec<Column> = others.chain(wanted).cloned().collect();
        self.columns = columns[columns.len().saturating_sub(COLUMNS_MAX)..].into();
    }
}

impl State {
    fn bytes(&self) -> usize {
        self.spaces.values().map(|filtered| filtered.bytes).sum()
    }

    /// The sheets that cover something of what lies between two keys, in order.
    fn between(&self, start: &[u8], end: &[u8]) -> impl Iterator<Item = &Arc<Sheet>> {
        let before = self.sheets.range::<[u8], _>((Bound::Unbounded, Bound::Excluded(start))).next_back();
        let before = before.filter(|(_, sheet)| sheet.end() > start);
        let others = self.sheets.range::<[u8], _>((Bound::Included(start), Bound::Excluded(end)));
        before.into_iter().chain(others).map(|(_, sheet)| sheet)
    }

    fn mark(&self, key: &[u8]) {
        let up_to_key = (Bound::Unbounded, Bound::Included(key));
        if let Some((_, sheet)) = self.sheets.range::<[u8], _>(up_to_key).next_back()
            && key < sheet.end()
        {
            sheet.mark(key);
        }
    }

    /// Notes rows for scans that are under way.
    fn note(&mut self, rows: &Keys) {
        let read = self.spaces.iter().filter(|(_, filtered)| filtered.scans_under_way > 0);
        for prefix in read.map(|(space, _)| space_prefix(*space)) {
            for key in rows.iter().filter(|key| key.starts_with(&prefix)) {
                self.noted.insert(key.to_vec(), self.last_scan);
            }
        }
        if self.noted.len() > NOTED_MAX {
            self.noted.clear();
            self.noted_from = self.last_scan + 1;
        }
    }

    fn insert(&mut self, space: Space, sheet: Sheet, bytes_max: usize) {
        self.remove(space, sheet.start(), sheet.end());
        while self.bytes() + sheet.bytes() > bytes_max {
            // What is there of the same space is worth as much as the new one: to push it out would help nobody.
            let others = self.spaces.iter().filter(|(other, filtered)| **other != space && filtered.bytes > 0);
            let Some(oldest) = others.min_by_key(|(_, filtered)| filtered.last_scan).map(|(oldest, _)| *oldest) else {
                return;
            };
            self.forget(oldest);
        }
        self.spaces.entry(space).or_default().bytes += sheet.bytes();
        self.sheets.insert(sheet.start().to_vec(), Arc::new(sheet));
    }

    /// Takes out the sheets that cover something of what lies between two keys.
    fn remove(&mut self, space: Space, start: &[u8], end: &[u8]) {
        let starts: Vec<Vec<u8>> = self.between(start, end).map(|sheet| sheet.start().to_vec()).collect();
        for start in starts {
            if let (Some(sheet), Some(filtered)) = (self.sheets.remove(&start), self.spaces.get_mut(&space)) {
                filtered.bytes -= sheet.bytes();
            }
        }
    }

    fn forget(&mut self, space: Space) {
        self.remove(space, &space_prefix(space), &space_end(space));
        self.tidy(space);
    }

    fn tidy(&mut self, space: Space) {
        if self.spaces.get(&space).is_some_and(|filtered| filtered.scans_under_way == 0 && filtered.bytes == 0) {
            self.spaces.remove(&space);
        }
        if self.spaces.values().all(|filtered| filtered.scans_under_way == 0) {
            self.noted.clear();
        }
    }
}

/// Says that rows are being written, until it is dropped.
#[derive(Debug)]
#[must_use]
pub(crate) struct Writing<'a>(&'a Columns);

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        self.0.lock().writing = Keys::default();
    }
}

/// A scan that is under way.
#[derive(Debug)]
pub(crate) struct Reading<'a> {
    all: &'a Columns,
    space: Space,
    number: u64,
    columns: Arc<[Column]>,
    has_sheets: bool,
}

impl Reading<'_> {
    /// Whether there was any sheet of the space when the scan began.
    pub(crate) fn has_sheets(&self) -> bool {
        self.has_sheets
    }

    /// The sheets between two keys that the scan may rely on, in order.
    pub(crate) fn sheets(&self, wanted: &[Column], start: &[u8], end: &[u8]) -> Vec<Arc<Sheet>> {
        let state = self.all.lock();
        let usable = |sheet: &&Arc<Sheet>| sheet.made_by <= self.number && sheet.is_of_use(wanted);
        state.between(start, end).filter(usable).cloned().collect()
    }

    /// Makes sheets of rows that come one after the other.
    pub(crate) fn maker<'r>(&'r self, sieve: &'r dyn Sieve) -> Maker<'r> {
        Maker { reading: self, sieve, keys: Keys::default(), rows: Vec::new(), is_readable: true }
    }

    pub(crate) fn passed_over(&self, rows: u64) {
        self.all.passed_over.fetch_add(rows, Ordering::Relaxed);
    }

    fn hand_in(&self, sheet: Sheet) {
        let mut state = self.all.lock();
        if self.number < state.noted_from {
            return;
        }
        let between = (Bound::Included(sheet.start()), Bound::Excluded(sheet.end()));
        for (key, last_scan) in state.noted.range::<[u8], _>(between) {
            if *last_scan >= self.number {
                sheet.mark(key);
            }
        }
        if sheet.marks.load(Ordering::Relaxed).count_ones() <= MARKS_MAX {
            state.insert(self.space, sheet, self.all.bytes_max);
        }
    }
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        let mut state = self.all.lock();
        if let Some(filtered) = state.spaces.get_mut(&self.space) {
            filtered.scans_under_way -= 1;
        }
        state.tidy(self.space);
    }
}

/// Makes sheets of rows.
#[derive(Debug)]
pub(crate) struct Maker<'r> {
    reading: &'r Reading<'r>,
    sieve: &'r dyn Sieve,
    keys: Keys,
    /// The numbers of a row, then those of the next.
    rows: Vec<u64>,
    is_readable: bool,
}

impl Maker<'_> {
    /// Takes the next row.
    pub(crate) fn add(&mut self, key: &[u8], row: RowRef<'_>) {
        let columns = &self.reading.columns;
        let rows = self.rows.len() / columns.len();
        if rows == SHEET_LINES * LINE_ROWS {
            self.finish(key);
            return self.add(key, row);
        }
        if rows.is_multiple_of(LINE_ROWS) {
            self.keys.push(key);
        }
        for column in columns.iter() {
            let number = self.sieve.number(column, row);
            self.is_readable &= number.is_some();
            self.rows.push(number.unwrap_or(0));
        }
    }

    /// Hands in what was made. There is no row between the last that was taken and `end`.
    pub(crate) fn finish(&mut self, end: &[u8]) {
        let columns = &self.reading.columns;
        let (mut keys, by_row) = (std::mem::take(&mut self.keys), std::mem::take(&mut self.rows));
        if by_row.is_empty() || !std::mem::replace(&mut self.is_readable, true) {
            return;
        }
        keys.push(end);
        keys.bytes.shrink_to_fit();
        keys.ends.shrink_to_fit();
        let by_column = (0..columns.len()).flat_map(|place| by_row.iter().skip(place).step_by(columns.len()));
        self.reading.hand_in(Sheet {
            keys,
            rows: by_row.len() / columns.len(),
            columns: Arc::clone(columns),
            numbers: by_column.copied().collect(),
            marks: AtomicU32::new(0),
            made_by: self.reading.number,
        });
    }
}

#[cfg(test)]
mod tests;
