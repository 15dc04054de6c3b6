//! Tells a log that was torn by a power cut from one that was damaged.
//!
//! RocksDB replays a log up to the first record that is not whole and forgets the rest. After a power cut that is right: the end
//! of the log was not synced, and may be anything. But if the disk has damaged a record that was synced, everything behind it was
//! acknowledged, and would be gone without a word.
//!
//! With [`Durability::Sync`](crate::Durability::Sync) the two can be told apart. Every record is synced before the next one is
//! written (RocksDB writes a group as one record, and syncs it, before it takes the next group; all that this crate writes is
//! synced), also across logs, for a log is left only after its last sync. So at most one record is torn, and it is the last: a
//! record that begins behind a broken one is proof of damage. So is a later log that does not go on with the sequence number at
//! which the one before it ends. A log without any record is none of these only if it is the last, because each process begins
//! its log with a record that it syncs, and the next one removes a log in which that failed.
//!
//! What cannot be noticed is damage to the very last record, which looks as if it had been torn.
//!
//! With the other durabilities many records can be torn at once, and what is found here is no damage. But RocksDB notices a hole
//! only if the log before it ends in the middle of a record, and would otherwise show what was written behind the hole without
//! what was written before. [`Logs::end_at`] leaves that out.
//!
//! ```text
//!   log      = blocks of 32 KiB, each of fragments; what is left at its end, less than a header, is zeros
//!   fragment = checksum u32 | length u16 | type u8 | bytes       little endian; type: 1 whole, 2 first, 3 middle, 4 last
//!   record   = the bytes of a whole fragment, or of a first, middle ones and a last
//!            = sequence number u64 | operations u32 | ...        the next record's sequence number is the sum of both
//! ```
//!
//! Zeros behind the last record are those of the [`runway`](crate::runway).

use crate::files::checksum;
use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::{fs, io};

pub(crate) const BLOCK_BYTES: usize = 32 << 10;
pub(crate) const HEADER_BYTES: usize = 7;
/// The part of a record that says which it is.
const BATCH_HEADER_BYTES: usize = 12;

const WHOLE: u8 = 1;
const FIRST: u8 = 2;
const LAST: u8 = 4;

/// Something in a log that no power cut can have done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Damage {
    pub(crate) file: PathBuf,
    /// Where the last record ends that is whole.
    pub(crate) offset: u64,
}

/// The logs of a folder.
#[derive(Debug)]
pub(crate) struct Logs(Vec<Log>);

#[derive(Debug)]
struct Log {
    number: u64,
    file: PathBuf,
    contents: Contents,
}

/// What a log holds.
#[derive(Debug, Default, PartialEq, Eq)]
struct Contents {
    /// The sequence number of the first record.
    first: Option<u64>,
    /// The one that follows the last record before the log ends or breaks.
    next: Option<u64>,
    /// Where that record ends.
    end: u64,
    /// Whether a record begins behind the place where the log breaks.
    goes_on: bool,
}

impl Logs {
    /// Reads the logs of a folder from a number on.
    pub(crate) fn read(folder: &Path, since: u64) -> io::Result<Logs> {
        let mut logs = Vec::new();
        for (number, file) in numbered(folder)? {
            if number >= since {
                let contents = Contents::read(&fs::read(&file)?);
                logs.push(Log { number, file, contents });
            }
        }
        Ok(Logs(logs))
    }

    /// The first damage in a log with at least this number.
    pub(crate) fn damage(&self, least: u64) -> Option<Damage> {
        let mut before: Option<&Log> = None;
        for log in self.0.iter().filter(|log| log.number >= least) {
            let damage = |log: &Log| Some(Damage { file: log.file.clone(), offset: log.contents.end });
            if let (Some(before), Some(first)) = (before, log.contents.first)
                && before.contents.next.is_none_or(|next| next < first)
            {
                return damage(before);
            }
            if log.contents.goes_on {
                return damage(log);
            }
            // Of several without a record the first is where it ends.
            if before.is_none_or(|before| before.contents.first.is_some()) {
                before = Some(log);
            }
        }
        None
    }

    /// Cuts a log off at a place, and takes the later ones out of RocksDB's sight. They are kept under another name.
    pub(crate) fn end_at(&self, damage: &Damage) -> io::Result<()> {
        for log in self.0.iter().skip_while(|log| log.file != damage.file).skip(1) {
            fs::rename(&log.file, log.file.with_extension("log-left-out"))?;
        }
        let log = OpenOptions::new().write(true).open(&damage.file)?;
        log.set_len(damage.offset)?;
        log.sync_all()
    }
}

/// Removes logs at the end that hold no record. RocksDB would replay nothing of them either.
pub(crate) fn remove_empty(folder: &Path, since: u64) -> io::Result<()> {
    let mut removed = false;
    for (number, file) in numbered(folder)?.into_iter().rev() {
        if number < since || Contents::read(&fs::read(&file)?).first.is_some() {
            break;
        }
        fs::remove_file(file)?;
        removed = true;
    }
    if removed { File::open(folder)?.sync_all() } else { Ok(()) }
}

/// A log without what stands behind its last record.
pub(crate) fn records(log: &[u8]) -> &[u8] {
    &log[..Contents::read(log).end as usize]
}

/// The logs of a folder by number.
pub(crate) fn numbered(folder: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut logs = Vec::new();
    for file in fs::read_dir(folder)? {
        let path = file?.path();
        let number = path.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| stem.parse().ok());
        if let Some(number) = number
            && path.extension().is_some_and(|extension| extension == "log")
        {
            logs.push((number, path));
        }
    }
    logs.sort_unstable();
    Ok(logs)
}

pub(crate) struct Fragment<'a> {
    kind: u8,
    pub(crate) bytes: &'a [u8],
}

impl Fragment<'_> {
    fn begins_record(&self) -> bool {
        matches!(self.kind, WHOLE | FIRST)
    }

    pub(crate) fn ends_record(&self) -> bool {
        matches!(self.kind, WHOLE | LAST)
    }
}

/// The fragment at the start of `block`, if it is whole.
pub(crate) fn fragment(block: &[u8]) -> Option<Fragment<'_>> {
    let (header, rest) = block.split_at_checked(HEADER_BYTES)?;
    let expected = u32::from_le_bytes(header[..4].try_into().ok()?);
    let length = usize::from(u16::from_le_bytes([header[4], header[5]]));
    let (kind, bytes) = (header[6], rest.get(..length)?);
    let is_whole = (WHOLE..=LAST).contains(&kind)
        && checksum::masked(crc32c::crc32c(&block[6..HEADER_BYTES + length])) == expected;
    is_whole.then_some(Fragment { kind, bytes })
}

/// Sequence number and number of operations.
fn batch_header(record: &[u8]) -> Option<(u64, u64)> {
    let (sequence, rest) = record.split_first_chunk()?;
    let (operations, _) = rest.split_first_chunk()?;
    Some((u64::from_le_bytes(*sequence), u64::from(u32::from_le_bytes(*operations))))
}

impl Contents {
    fn read(log: &[u8]) -> Contents {
        let mut contents = Contents::default();
        // The start of the record under way, as far as it is needed.
        let mut record: Option<Vec<u8>> = None;
        let mut at = 0;
        loop {
            let block = &log[at..log.len().min(at / BLOCK_BYTES * BLOCK_BYTES + BLOCK_BYTES)];
            let is_full = (at + block.len()).is_multiple_of(BLOCK_BYTES) && !(block.is_empty() && at == log.len());
            if block.len() < HEADER_BYTES && is_full {
                at += block.len();
                continue;
            }
            if block.is_empty() {
                return contents;
            }
            let Some(fragment) = fragment(block).filter(|fragment| fragment.begins_record() == record.is_none()) else {
                break;
            };
            let start = record.get_or_insert_default();
            let wanted = BATCH_HEADER_BYTES - start.len();
            start.extend_from_slice(&fragment.bytes[..wanted.min(fragment.bytes.len())]);
            at += HEADER_BYTES + fragment.bytes.len();
            if fragment.ends_record() {
                let Some((sequence, operations)) = batch_header(start) else { break };
                contents.first.get_or_insert(sequence);
                contents.next = Some(sequence.saturating_add(operations));
                contents.end = at as u64;
                record = None;
            }
        }
        contents.goes_on = contents.begins_again(log, at);
        contents
    }

    /// Whether a record begins behind the broken fragment at `broken`.
    fn begins_again(&self, log: &[u8], broken: usize) -> bool {
        let next_block = log.len().min(broken / BLOCK_BYTES * BLOCK_BYTES + BLOCK_BYTES);
        // Where the broken fragment ends cannot be known, so every place is looked at. A value could hold bytes that look like
        // a fragment, but not with a sequence number that fits.
        let fits = |(sequence, operations): (u64, u64)| {
            self.next.is_some_and(|next| sequence > next && sequence - next < BLOCK_BYTES as u64) && operations > 0
        };
        let in_block = (broken + 1..next_block).any(|at| {
            let block = &log[at..next_block];
            // Most places are ruled out by a look at one byte.
            block.get(6).is_some_and(|kind| matches!(*kind, WHOLE | FIRST))
                && fragment(block).is_some_and(|first| {
                    // A few bytes at the end of a block may be all that there was room for.
                    let second = fragment(&log[next_block..log.len().min(next_block + BLOCK_BYTES)]);
                    let second = second.filter(|second| first.kind == FIRST && !second.begins_record());
                    let rest =
                        second.map_or(&[][..], |second| &second.bytes[..second.bytes.len().min(BATCH_HEADER_BYTES)]);
                    let first = &first.bytes[..first.bytes.len().min(BATCH_HEADER_BYTES)];
                    batch_header(&[first, rest].concat()).is_some_and(fits)
                })
        });
        // Later blocks begin with a fragment, which can be relied on.
        in_block
            || log[next_block..].chunks(BLOCK_BYTES).any(|mut block| {
                while let Some(fragment) = fragment(block) {
                    if fragment.begins_record() {
                        return true;
                    }
                    block = &block[HEADER_BYTES + fragment.bytes.len()..];
                }
                false
            })
    }
}

#[cfg(test)]
mod tests;
