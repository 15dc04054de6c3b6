//! Wide scans: the rest of the stretch is cut into pieces, and threads sift them for the rows that the sieve keeps.
//!
//! ```text
//!   pieces, in order of keys    | done | done | taken | done | taken | waiting .............. |
//!                                 ^ shown to the visitor as soon as all before it were
//! ```
//!
//! The thread of the caller shows pieces when they are done and sifts others meanwhile, so that a scan goes on even where
//! no helper is free. A piece is small, and threads run only a few pieces ahead of the one that is shown: a visitor
//! that stops early wastes little, and rows that were kept and not shown yet take little memory. What remains is one
//! long piece that is cut in two, and its first part in two again, when somebody needs work; what turns out to be
//! longer than files tell, since rows are also in memory, is put back when enough of it was read and then cut by its keys.
//!
//! Blocks are read ahead in long strides and not put into the cache, where a wide scan would push out everything that
//! others use. RocksDB then copies each byte from the memory of the operating system; that costs no more than going
//! through as many blocks in the cache does, which come from main memory too.

use super::skim;
use super::split::{cut, file_bytes};
use super::{ROWS_BETWEEN_DEADLINE_CHECKS, position_of, read_settings, with_row};
use crate::columns::Reading;
use crate::failure::read_error;
use partita_store::{Error, Result, Scan, ScanEnd, Sieve, Space, Step, Visitor, encode_position};
use rocksdb::{DB, ReadOptions, Snapshot};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

/// A few milliseconds of work.
const PIECE_FILE_BYTES: u64 = 2 << 20;
const PIECE_ROWS_MAX: usize = 8 * 1024;
/// Of rows that were kept.
const PIECE_KEPT_BYTES_MAX: usize = 1 << 20;
/// How far threads run ahead, in pieces for each of them.
const PIECES_AHEAD: usize = 3;
const READAHEAD_BYTES: usize = 256 << 10;

/// The threads that all scans of a store may have besides those of their callers.
#[derive(Debug)]
pub(crate) struct Helpers {
    free: AtomicUsize,
}

impl Helpers {
    /// As many as make a thread for each processor with that of the caller.
    pub(crate) fn new() -> Helpers {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        Helpers { free: AtomicUsize::new(processors - 1) }
    }

    /// Takes all that are free.
    fn take(&self) -> Taken<'_> {
        Taken { helpers: self, count: self.free.swap(0, Ordering::AcqRel) }
    }
}

/// Helpers that are given back when this is dropped.
struct Taken<'a> {
    helpers: &'a Helpers,
    count: usize,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.helpers.free.fetch_add(self.count, Ordering::AcqRel);
    }
}

/// How a wide scan ended.
pub(super) enum WideEnd {
    Ended(ScanEnd),
    /// The visitor wants to see rows one by one from this key on, whatever the sieve says.
    OneByOne(Vec<u8>),
}

pub(super) struct Wide<'a> {
    database: &'a DB,
    snapshot: &'a Snapshot<'a>,
    sieve: &'a dyn Sieve,
    /// The scan that notes what is read, if it is worth noting.
    notes: Option<&'a Reading<'a>>,
    space: Space,
    deadline: Instant,
    pieces: Mutex<Pieces>,
    changed: Condvar,
    /// Whether threads shall end.
    stop: AtomicBool,
}

/// What is not shown yet, in order.
struct Pieces {
    list: VecDeque<Piece>,
    next_number: u64,
    ahead_max: usize,
}

struct Piece {
    number: u64,
    stretch: Stretch,
    state: State,
}

#[derive(Clone, Debug)]
struct Stretch {
    /// The key of a row.
    start: Vec<u8>,
    end: Vec<u8>,
    /// Whether it is known to be long, though files do not tell.
    is_long: bool,
}

enum State {
    Waiting,
    Taken,
    Done(Result<Sifted>),
}

/// What was found in a piece.
#[derive(Default)]
struct Sifted {
    kept: Vec<Kept>,
    /// Keys and values of the rows that were kept.
    bytes: Vec<u8>,
    /// Rows behind the last that was kept.
    passed_over: u64,
    /// The key at which time ran out.
    late_at: Option<Vec<u8>>,
}

struct Kept {
    /// Rows before this one, and behind the one kept before it.
    passed_over: u64,
    key_bytes: usize,
    stored_bytes: usize,
}

impl<'a> Wide<'a> {
    /// Goes on with a scan at a row's key.
    pub(super) fn new(
        database: &'a DB,
        snapshot: &'a Snapshot<'a>,
        sieve: &'a dyn Sieve,
        notes: Option<&'a Reading<'a>>,
        scan: &Scan<'_>,
        rest: skim::Stretch,
    ) -> Wide<'a> {
        let stretch = Stretch { start: rest.start, end: rest.end, is_long: true };
        let piece = Piece { number: 0, stretch, state: State::Waiting };
        Wide {
            database,
            snapshot,
            sieve,
            notes,
            space: scan.space,
            deadline: scan.deadline,
            pieces: Mutex::new(Pieces { list: [piece].into(), next_number: 1, ahead_max: 0 }),
            changed: Condvar::new(),
            stop: AtomicBool::new(false),
        }
    }

    pub(super) fn run(self, helpers: &Helpers, visitor: &mut Visitor<'_>) -> Result<WideEnd> {
        let helpers = helpers.take();
        self.lock().ahead_max = PIECES_AHEAD * (1 + helpers.count);
        thread::scope(|scope| {
            let _stop = StopOnDrop(&self);
            for _ in 0..helpers.count {
                // Without a helper there is more to do for the others.
                let _ = thread::Builder::new().name("partita-scan".to_owned()).spawn_scoped(scope, || self.help());
            }
            self.show_all(visitor)
        })
    }

    fn help(&self) {
        loop {
            let taken = {
                let mut pieces = self.lock();
                loop {
                    if self.stop.load(Ordering::Acquire) || pieces.list.is_empty() {
                        return;
                    }
                    if let Some(taken) = pieces.take() {
                        break taken;
                    }
                    pieces = self.wait(pieces);
                }
            };
            self.work_on(taken);
        }
    }

    fn show_all(&self, visitor: &mut Visitor<'_>) -> Result<WideEnd> {
        loop {
            let mut pieces = self.lock();
            let Some(first) = pieces.list.front() else { return Ok(WideEnd::Ended(ScanEnd::Exhausted)) };
            if matches!(first.state, State::Done(_)) {
                let Some(Piece { state: State::Done(sifted), .. }) = pieces.list.pop_front() else { unreachable!() };
                drop(pieces);
                // There is room for another piece ahead.
                self.changed.notify_all();
                if let Some(end) = self.show(sifted?, visitor)? {
                    return Ok(end);
                }
            } else if let Some(taken) = pieces.take() {
                drop(pieces);
                self.work_on(taken);
            } else {
                drop(self.wait(pieces));
            }
        }
    }

    /// Shows the rows that were kept; `None` if the scan goes on behind them.
    fn show(&self, sifted: Sifted, visitor: &mut Visitor<'_>) -> Result<Option<WideEnd>> {
        let mut rest = sifted.bytes.as_slice();
        for row in sifted.kept {
            let (key, behind) = rest.split_at(row.key_bytes);
            let (stored, behind) = behind.split_at(row.stored_bytes);
            rest = behind;
            self.pass_over(row.passed_over);
            match with_row(key, stored, &mut *visitor)? {
                Step::Next => {}
                // No key lies between one and the same with a zero behind it.
                Step::NextAny => return Ok(Some(WideEnd::OneByOne([key, &[0]].concat()))),
                Step::Seek(target) => {
                    return Ok(Some(WideEnd::OneByOne(encode_position(self.space, &target))));
                }
                Step::Stop => return Ok(Some(WideEnd::Ended(ScanEnd::Stopped))),
            }
        }
        self.pass_over(sifted.passed_over);
        match sifted.late_at {
            Some(key) => Ok(Some(WideEnd::Ended(ScanEnd::Deadline(position_of(&key)?)))),
            None => Ok(None),
        }
    }

    fn pass_over(&self, rows: u64) {
        if rows > 0 {
            self.sieve.passed_over(rows);
        }
    }

    /// Sifts the first part of a piece that was taken, and leaves the rest to others.
    fn work_on(&self, (number, stretch): (u64, Stretch)) {
        let unfinished = Unfinished { wide: self, number };
        let sifted = self.cut_and_sift(number, stretch);
        std::mem::forget(unfinished);
        self.finish(number, sifted);
    }

    fn cut_and_sift(&self, number: u64, mut stretch: Stretch) -> Result<Sifted> {
        let mut bytes = file_bytes(self.database, &stretch.start, &stretch.end);
        if stretch.is_long || bytes > PIECE_FILE_BYTES {
            let mut rows = self.database.raw_iterator_opt(self.settings(stretch.end.clone()));
            while stretch.is_long || bytes > PIECE_FILE_BYTES {
                let Some(key) = cut(&mut rows, &stretch.start, &stretch.end)? else { break };
                let end = std::mem::replace(&mut stretch.end, key.clone());
                // Of both parts it is not known how long they are.
                stretch.is_long = false;
                self.leave(number, Stretch { start: key, end, is_long: false });
                bytes = file_bytes(self.database, &stretch.start, &stretch.end);
            }
        }
        self.sift(number, &stretch)
    }

    fn sift(&self, number: u64, stretch: &Stretch) -> Result<Sifted> {
        let mut sifted = Sifted::default();
        let mut rows = self.database.raw_iterator_opt(self.settings(stretch.end.clone()));
        rows.seek(&stretch.start);
        let mut maker = self.notes.map(|reading| reading.maker(self.sieve));
        let mut rows_read = 0;
        while let Some((key, stored)) = rows.item() {
            if rows_read % ROWS_BETWEEN_DEADLINE_CHECKS == 0 {
                if self.stop.load(Ordering::Relaxed) {
                    return Ok(sifted);
                }
                if Instant::now() >= self.deadline {
                    sifted.late_at = Some(key.to_vec());
                    return Ok(sifted);
                }
            }
            if rows_read == PIECE_ROWS_MAX || sifted.bytes.len() > PIECE_KEPT_BYTES_MAX {
                let rest = Stretch { start: key.to_vec(), end: stretch.end.clone(), is_long: true };
                self.leave(number, rest);
                if let Some(maker) = &mut maker {
                    maker.finish(key);
                }
                return Ok(sifted);
            }
            rows_read += 1;
            let keeps = with_row(key, stored, |row| {
                if let Some(maker) = &mut maker {
                    maker.add(key, row);
                }
                self.sieve.keeps(row)
            })?;
            if keeps {
                sifted.keep(key, stored);
            } else {
                sifted.passed_over += 1;
            }
            rows.next();
        }
        rows.status().map_err(read_error)?;
        if let Some(maker) = &mut maker {
            maker.finish(&stretch.end);
        }
        Ok(sifted)
    }

    fn settings(&self, end: Vec<u8>) -> ReadOptions {
        let mut settings = read_settings(end);
        settings.set_snapshot(self.snapshot);
        settings.fill_cache(false);
        settings.set_readahead_size(READAHEAD_BYTES);
        settings
    }

    /// Puts the rest of a piece behind it.
    fn leave(&self, number: u64, rest: Stretch) {
        let mut pieces = self.lock();
        let next = pieces.next_number;
        pieces.next_number += 1;
        let place = pieces.place(number);
        pieces.list.insert(place + 1, Piece { number: next, stretch: rest, state: State::Waiting });
        drop(pieces);
        self.changed.notify_all();
    }

    fn finish(&self, number: u64, sifted: Result<Sifted>) {
        let mut pieces = self.lock();
        let place = pieces.place(number);
        pieces.list[place].state = State::Done(sifted);
        drop(pieces);
        self.changed.notify_all();
    }

    // Nothing that could panic happens half way through a change of the pieces.
    fn lock(&self) -> MutexGuard<'_, Pieces> {
        self.pieces.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'g>(&self, pieces: MutexGuard<'g, Pieces>) -> MutexGuard<'g, Pieces> {
        self.changed.wait(pieces).unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pieces {
    /// The first piece that waits, unless it is too far ahead.
    fn take(&mut self) -> Option<(u64, Stretch)> {
        let ahead = self.list.iter_mut().take(self.ahead_max);
        let piece = ahead.into_iter().find(|piece| matches!(piece.state, State::Waiting))?;
        piece.state = State::Taken;
        Some((piece.number, piece.stretch.clone()))
    }

    fn place(&self, number: u64) -> usize {
        self.list.iter().position(|piece| piece.number == number).expect("a piece stays until it was done")
    }
}

impl Sifted {
    fn keep(&mut self, key: &[u8], stored: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(stored);
        let passed_over = std::mem::take(&mut self.passed_over);
        self.kept.push(Kept { passed_over, key_bytes: key.len(), stored_bytes: stored.len() });
    }
}

/// Tells the threads to end when the caller's part is over, even by a panic of the visitor.
struct StopOnDrop<'a>(&'a Wide<'a>);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.stop.store(true, Ordering::Release);
        // Whoever looked at it before this lock is waiting by now.
        drop(self.0.lock());
        self.0.changed.notify_all();
    }
}

/// A piece that somebody works on. If a panic of the sieve ends that, nobody waits for it for ever.
struct Unfinished<'a> {
    wide: &'a Wide<'a>,
    number: u64,
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        let ended = Error::Unavailable("a thread that read ended in the middle".to_owned());
        self.wide.finish(self.number, Err(ended));
    }
}
