//! Cuts what is left of a scan into stretches that have to be read and stretches in which, by what earlier scans have noted
//! (see [`crate::columns`]), the sieve wants nothing.
//!
//! ```text
//!   sheets     [ . . . # . . ][ . . . . . ]        [ # # # # # ][ # # # # ]
//!   to read            [-]                 [------] [----------------------]
//!                      lines of interest   a gap    sheets full of them, as one
//! ```

use crate::columns::{Reading, Sheet};
use partita_store::{Scan, Sieve};
use std::iter::Peekable;
use std::sync::Arc;
use std::time::Instant;
use std::vec;

/// A sheet with more lines of interest is read as a whole, as part of a stretch that may be long enough for several threads.
const LINES_OF_INTEREST_MAX: u32 = 4;
/// Looked at before rows are read: a page may be full long before.
const SHEETS_AHEAD: usize = 64;

/// Rows from one key up to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    pub(super) start: Vec<u8>,
    pub(super) end: Vec<u8>,
    /// Whether sheets cover it.
    pub(super) is_known: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Skimmed {
    /// Up to here nothing is wanted.
    Read(Stretch),
    /// Time ran out at this key.
    Late(Vec<u8>),
    /// Nothing more is wanted.
    End,
}

pub(super) struct Skim<'a> {
    reading: Option<(&'a Reading<'a>, &'a dyn Sieve)>,
    end: &'a [u8],
    deadline: Instant,
    sheets: Peekable<vec::IntoIter<Arc<Sheet>>>,
    /// Whether a scan that is late has come far enough to end.
    has_moved: bool,
}

impl<'a> Skim<'a> {
    /// Of the rest of a scan from a key on.
    pub(super) fn new(scan: &Scan<'a>, reading: Option<&'a Reading<'a>>, from: &[u8], end: &'a [u8]) -> Skim<'a> {
        let reading = reading.zip(scan.sieve);
        let sheets = reading.map(|(reading, sieve)| reading.sheets(sieve.columns(), from, end)).unwrap_or_default();
        Skim { reading, end, deadline: scan.deadline, sheets: sheets.into_iter().peekable(), has_moved: false }
    }

    /// The next stretch to read at or behind a key. The sieve is told of the rows before it.
    pub(super) fn next(&mut self, from: Vec<u8>) -> Skimmed {
        let mut passed_over = 0;
        let skimmed = self.find(from, &mut passed_over);
        if let Some((reading, sieve)) = self.reading
            && passed_over > 0
        {
            reading.passed_over(passed_over);
            sieve.passed_over(passed_over);
        }
        skimmed
    }

    fn find(&mut self, mut at: Vec<u8>, passed_over: &mut u64) -> Skimmed {
        while at.as_slice() < self.end {
            while self.sheets.next_if(|sheet| sheet.end() <= at.as_slice()).is_some() {}
            let (Some((_, sieve)), Some(sheet)) = (self.reading, self.sheets.peek()) else {
                return Skimmed::Read(Stretch { start: at, end: self.end.to_vec(), is_known: false });
            };
            if std::mem::replace(&mut self.has_moved, true) && Instant::now() >= self.deadline {
                return Skimmed::Late(at);
            }
            if sheet.start() > at.as_slice() {
                let end = sheet.start().min(self.end).to_vec();
                return Skimmed::Read(Stretch { start: at, end, is_known: false });
            }
            let interest = Interest::of(sheet, sieve);
            let first = sheet.line_of(&at);
            let is_whole = |line| sheet.line_start(line) >= at.as_slice() && sheet.line_start(line + 1) <= self.end;
            let wanted = |line: &usize| interest.has(*line) || !is_whole(*line);
            let line = (first..sheet.lines()).find(wanted).unwrap_or(sheet.lines());
            *passed_over += (first..line).map(|line| sheet.line_rows(line) as u64).sum::<u64>();
            at = at.max(sheet.line_start(line).to_vec());
            if line < sheet.lines() {
                let behind = (line + 1..sheet.lines()).find(|line| !interest.has(*line)).unwrap_or(sheet.lines());
                let end = sheet.line_start(behind).to_vec();
                let end = if behind == sheet.lines() { self.end_of_interest(end, sieve) } else { end };
                return Skimmed::Read(Stretch { start: at, end: end.min(self.end.to_vec()), is_known: true });
            }
        }
        Skimmed::End
    }

    /// Where what is of interest ends, if at the end of the present sheet it has not: sheets that are of interest as a
    /// whole may follow.
    fn end_of_interest(&mut self, mut end: Vec<u8>, sieve: &dyn Sieve) -> Vec<u8> {
        for _ in 0..SHEETS_AHEAD {
            while self.sheets.next_if(|sheet| sheet.end() <= end.as_slice()).is_some() {}
            let Some(next) = self.sheets.peek() else { break };
            if next.start() != end || Interest::of(next, sieve) != Interest::ALL {
                break;
            }
            end = next.end().to_vec();
        }
        end
    }
}

/// The lines of a sheet that have to be read, a bit for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Interest(u32);

impl Interest {
    const ALL: Interest = Interest(u32::MAX);

    fn of(sheet: &Sheet, sieve: &dyn Sieve) -> Interest {
        let lines = sheet.lines_to_read(sieve);
        if lines.count_ones() > LINES_OF_INTEREST_MAX { Interest::ALL } else { Interest(lines) }
    }

    fn has(self, line: usize) -> bool {
        self.0 >> line & 1 == 1
    }
}
