//! Table files: blocks one behind the other, each with its checksum, and a footer that leads to all of them.
//!
//! ```text
//! block* footer
//! block  = bytes | compression u8 | checksum u32
//! footer = checksum type u8 | 3E 00 7A 00 | checksum u32 | base u32 | size of the metaindex u32 | 24 zeros
//!          | format version u32 | magic u64
//! ```
//!
//! Integers are little endian. The metaindex is the last block; it names the others that hold no rows: index, filter,
//! properties, range deletions. The index has an entry for each block of rows: a key that is not before the last of the
//! block and before the first of the next one, and the block's place. This is format version 6 of RocksDB's block-based
//! tables without compression, the one that this crate writes. Every checksum has something added that depends on file
//! and place, so that a block that strayed is found too.

use super::checksum;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

const MAGIC: u64 = 0x88E2_41B7_85F4_CFF7;
const FORMAT_VERSION: u32 = 6;
const CRC32C: u8 = 1;
const EXTENDED_MAGIC: [u8; 4] = [0x3E, 0x00, 0x7A, 0x00];
const FOOTER_BYTES: u64 = 53;
const TRAILER_BYTES: u64 = 5;
/// The high bits of the number of restarts say other things.
const RESTARTS_MASK: u32 = (1 << 28) - 1;
/// What stands behind a key: what the entry is and its sequence number. In the index only if there are several versions of a key.
const SEQUENCE_BYTES: usize = 8;
/// An entry that is a row, and not the word that it was deleted.
const PUT: u8 = 1;

/// A place of a table file that is not as it was written.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BadPlace {
    /// What is wrong, and where in the file.
    pub(crate) what: String,
    /// The rows that cannot be read for it.
    pub(crate) hides: Hidden,
}

/// Which rows of a file cannot be read for a bad place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Hidden {
    /// All of them.
    All,
    /// Those behind the first key, up to and with the second.
    Between(Vec<u8>, Vec<u8>),
    /// None: what is bad only helps to find rows faster, or hides rows that were deleted.
    Nothing,
}

/// A block's place, without its trailer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    offset: u64,
    size: u64,
}

struct Table<'a> {
    file: &'a File,
    base: u32,
    /// Where the footer begins.
    end: u64,
}

/// Reads all of a table file: every place whose checksum does not hold, and every byte that no checksum covers.
pub(crate) fn verify(path: &Path) -> io::Result<Vec<BadPlace>> {
    let file = File::open(path)?;
    let mut bad = Vec::new();
    if let Err(what) = verify_file(&file, file.metadata()?.len(), &mut bad)? {
        bad.push(BadPlace { what, hides: Hidden::All });
    }
    Ok(bad)
}

/// The inner error is damage that keeps from seeing the rest.
fn verify_file(file: &File, length: u64, bad: &mut Vec<BadPlace>) -> io::Result<Result<(), String>> {
    let (table, metaindex) = match Table::open(file, length)? {
        Ok(opened) => opened,
        Err(what) => return Ok(Err(what)),
    };
    let mut seen = Vec::new();
    let mut read = |place: Place, name: &str, hides: Hidden| {
        seen.push(place);
        match table.block(place)? {
            Ok(bytes) => Ok(Some(bytes)),
            Err(what) => {
                bad.push(BadPlace { what: format!("the {name} at offset {} {what}", place.offset), hides });
                io::Result::Ok(None)
            }
        }
    };

    let Some(metaindex) = read(metaindex, "metaindex", Hidden::All)? else { return Ok(Ok(())) };
    let Some(metaindex) = named_places(&metaindex) else { return Ok(Err("its metaindex is malformed".into())) };
    let mut index = None;
    let mut keys_are_bare = true;
    for (name, place) in metaindex {
        let hides = match name.as_slice() {
            b"rocksdb.index" | b"rocksdb.properties" => Hidden::All,
            _ => Hidden::Nothing,
        };
        let block = read(place, &format!("block '{}'", String::from_utf8_lossy(&name)), hides)?;
        match (name.as_slice(), block) {
            (b"rocksdb.index", block) => index = block,
            (b"rocksdb.properties", Some(block)) => keys_are_bare = are_bare(&block),
            _ => {}
        }
    }
    if let Some(index) = index {
        let Some(entries) = index_entries(&index) else { return Ok(Err("its index is malformed".into())) };
        let mut before = Vec::new();
        for (mut key, place) in entries {
            if !keys_are_bare {
                key.truncate(key.len().saturating_sub(SEQUENCE_BYTES));
            }
            read(place, "block", Hidden::Between(before, key.clone()))?;
            before = key;
        }
        seen.sort_by_key(|place| place.offset);
        let mut at = 0;
        for place in seen {
            if place.offset != at {
                return Ok(Err(format!("the bytes from offset {at} to {} belong to no block", place.offset)));
            }
            at = place.offset + place.size + TRAILER_BYTES;
        }
        if at != table.end {
            return Ok(Err(format!("the bytes from offset {at} to {} belong to no block", table.end)));
        }
    }
    Ok(Ok(()))
}

/// The base of the checksums, and the size of the metaindex.
fn read_footer(mut footer: [u8; FOOTER_BYTES as usize], offset: u64) -> Result<(u32, u64), String> {
    let word = |at: usize| u32::from_le_bytes(footer[at..at + 4].try_into().expect("four bytes"));
    let magic = u64::from(word(45)) | u64::from(word(49)) << 32;
    let (version, stored, base, metaindex) = (word(41), word(5), word(9), word(13));
    if magic != MAGIC || version != FORMAT_VERSION || footer[0] != CRC32C || footer[1..5] != EXTENDED_MAGIC {
        return Err("its footer is not that of a table".into());
    }
    footer[5..9].fill(0);
    let computed = checksum::masked(crc32c::crc32c(&footer)).wrapping_add(modifier(base, offset));
    if computed != stored {
        return Err(format!("the footer at offset {offset} has a wrong checksum"));
    }
    Ok((base, metaindex.into()))
}

fn modifier(base: u32, offset: u64) -> u32 {
    if base == 0 { 0 } else { base ^ (offset as u32).wrapping_add((offset >> 32) as u32) }
}

impl<'a> Table<'a> {
    /// A table, and the place of its metaindex. The inner error is damage.
    fn open(file: &'a File, length: u64) -> io::Result<Result<(Table<'a>, Place), String>> {
        let Some(end) = length.checked_sub(FOOTER_BYTES) else { return Ok(Err("it is too short for a table".into())) };
        let mut footer = [0; FOOTER_BYTES as usize];
        file.read_exact_at(&mut footer, end)?;
        Ok(read_footer(footer, end).and_then(|(base, size)| {
            let offset = end.checked_sub(size + TRAILER_BYTES).ok_or("its footer leads outside of it")?;
            Ok((Table { file, base, end }, Place { offset, size }))
        }))
    }

    fn block(&self, place: Place) -> io::Result<Result<Vec<u8>, String>> {
        let whole = place.size.checked_add(TRAILER_BYTES).filter(|&whole| whole <= self.end);
        let Some(whole) = whole.filter(|whole| place.offset <= self.end - whole) else {
            return Ok(Err("lies outside of the file".into()));
        };
        let mut bytes = vec![0; whole as usize];
        self.file.read_exact_at(&mut bytes, place.offset)?;
        let trailer = bytes.split_off(place.size as usize);
        let stored = u32::from_le_bytes(trailer[1..].try_into().expect("four bytes"));
        let computed = checksum::of(&bytes, trailer[0]).wrapping_add(modifier(self.base, place.offset));
        if computed != stored {
            return Ok(Err("has a wrong checksum".into()));
        }
        if trailer[0] != 0 {
            return Ok(Err("is compressed".into()));
        }
        Ok(Ok(bytes))
    }
}

/// The blocks of rows of a table file, in order.
pub(crate) struct RowBlocks<'a> {
    table: Table<'a>,
    places: std::vec::IntoIter<Place>,
}

impl<'a> RowBlocks<'a> {
    /// Begins to read a table file; `None` if something of it is not as it was written.
    pub(crate) fn of(file: &'a File) -> io::Result<Option<RowBlocks<'a>>> {
        let Ok((table, metaindex)) = Table::open(file, file.metadata()?.len())? else { return Ok(None) };
        let Ok(metaindex) = table.block(metaindex)? else { return Ok(None) };
        let named = named_places(&metaindex).unwrap_or_default();
        let Some((_, index)) = named.into_iter().find(|(name, _)| name == b"rocksdb.index") else { return Ok(None) };
        let Ok(index) = table.block(index)? else { return Ok(None) };
        let Some(entries) = index_entries(&index) else { return Ok(None) };
        let places: Vec<Place> = entries.into_iter().map(|(_, place)| place).collect();
        Ok(Some(RowBlocks { table, places: places.into_iter() }))
    }
}

impl Iterator for RowBlocks<'_> {
    /// Where a block begins, and the block.
    type Item = (u64, Vec<u8>);

    /// The next block that can be read.
    fn next(&mut self) -> Option<(u64, Vec<u8>)> {
        let RowBlocks { table, places } = self;
        places.find_map(|place| Some((place.offset, table.block(place).ok()?.ok()?)))
    }
}

/// Shows the rows of a block, each with its key and where in the block its value stands; not those that say that a row was
/// deleted. Where the block is malformed it ends with `None`.
pub(crate) fn visit_rows(block: &[u8], mut visit: impl FnMut(&[u8], Range<usize>)) -> Option<()> {
    let all = entries(block)?;
    let mut rest = all;
    let mut key: Vec<u8> = Vec::new();
    while !rest.is_empty() {
        let (shared, added, length) = (number(&mut rest)?, number(&mut rest)?, number(&mut rest)?);
        key.truncate(usize::try_from(shared).ok()?);
        key.extend_from_slice(take(&mut rest, added)?);
        let start = all.len() - rest.len();
        let value = start..start + take(&mut rest, length)?.len();
        let (key, [kind, ..]) = key.split_last_chunk::<SEQUENCE_BYTES>()?;
        if *kind == PUT {
            visit(key, value);
        }
    }
    Some(())
}

/// Cuts the list of restarts off a block.
fn entries(block: &[u8]) -> Option<&[u8]> {
    let (rest, count) = block.split_last_chunk()?;
    let restarts = 4 * (u32::from_le_bytes(*count) & RESTARTS_MASK) as usize;
    rest.get(..rest.len().checked_sub(restarts)?)
}

/// The entries of a block whose values are places.
fn named_places(block: &[u8]) -> Option<Vec<(Vec<u8>, Place)>> {
    named_values(block)?.into_iter().map(|(name, mut value)| Some((name, place(&mut value)?))).collect()
}

/// Names and values of a block.
fn named_values(block: &[u8]) -> Option<Vec<(Vec<u8>, &[u8])>> {
    let mut rest = entries(block)?;
    let mut found: Vec<(Vec<u8>, &[u8])> = Vec::new();
    while !rest.is_empty() {
        let (shared, added, length) = (number(&mut rest)?, number(&mut rest)?, number(&mut rest)?);
        let shared = found.last().map_or(Some(&[][..]), |(name, _)| name.get(..shared as usize))?;
        let name = [shared, take(&mut rest, added)?].concat();
        found.push((name, take(&mut rest, length)?));
    }
    Some(found)
}

/// The entries of the index. The length of a value is left out, since a place says its own.
fn index_entries(block: &[u8]) -> Option<Vec<(Vec<u8>, Place)>> {
    let mut rest = entries(block)?;
    let mut found: Vec<(Vec<u8>, Place)> = Vec::new();
    while !rest.is_empty() {
        let (shared, added) = (number(&mut rest)?, number(&mut rest)?);
        let before = found.last().filter(|_| shared > 0);
        let start = before.map_or(Some(&[][..]), |(key, _)| key.get(..shared as usize))?;
        let key = [start, take(&mut rest, added)?].concat();
        let place = match before {
            None => place(&mut rest)?,
            // A block that follows the one before says only how much larger it is.
            Some((_, before)) => {
                let zigzag = number(&mut rest)?;
                let change = (zigzag >> 1) as i64 ^ -((zigzag & 1) as i64);
                let offset = before.offset + before.size + TRAILER_BYTES;
                Place { offset, size: before.size.checked_add_signed(change)? }
            }
        };
        found.push((key, place));
    }
    Some(found)
}

/// Whether the keys of the index stand there without what RocksDB adds to them.
fn are_bare(properties: &[u8]) -> bool {
    let Some(properties) = named_values(properties) else { return true };
    let found = properties.into_iter().find(|(name, _)| name == b"rocksdb.index.key.is.user.key");
    found.and_then(|(_, mut value)| number(&mut value)) != Some(0)
}

fn place(bytes: &mut &[u8]) -> Option<Place> {
    Some(Place { offset: number(bytes)?, size: number(bytes)? })
}

fn take<'a>(bytes: &mut &'a [u8], count: u64) -> Option<&'a [u8]> {
    let (head, rest) = bytes.split_at_checked(usize::try_from(count).ok()?)?;
    *bytes = rest;
    Some(head)
}

/// LEB128.
fn number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7F) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Options, settings};
    use rocksdb::{DB, WriteBatch};
    use std::fs;
    use std::path::PathBuf;

    /// A folder with one table file of a few hundred rows, some of which are deleted.
    fn table() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let database = DB::open(&settings::database(&Options::default()).unwrap(), folder.path()).unwrap();
        for row in 0..300_u32 {
            database.put(format!("row {row:04}"), vec![row as u8; 100]).unwrap();
        }
        let mut deletion = WriteBatch::default();
        deletion.delete_range("row 0100", "row 0110");
        database.write(deletion).unwrap();
        database.flush().unwrap();
        drop(database);
        let files = fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().path());
        let path = files.into_iter().find(|path| path.extension().is_some_and(|name| name == "sst")).unwrap();
        (folder, path)
    }

    #[test]
    fn a_whole_file_is_whole() {
        let (_folder, path) = table();
        assert_eq!(verify(&path).unwrap(), []);
    }

    #[test]
    fn every_byte_counts() {
        let (_folder, path) = table();
        let good = fs::read(&path).unwrap();
        for at in (0..good.len()).step_by(97).chain(good.len() - 60..good.len()) {
            let mut bytes = good.clone();
            bytes[at] ^= 0x10;
            fs::write(&path, &bytes).unwrap();
            assert_ne!(verify(&path).unwrap(), [], "byte {at} of {}", good.len());
        }
        for length in [0, 10, 53, good.len() / 2, good.len() - 1] {
            fs::write(&path, &good[..length]).unwrap();
            assert_ne!(verify(&path).unwrap(), [], "cut at {length}");
        }
    }

    #[test]
    fn a_bad_block_names_its_rows() {
        let (_folder, path) = table();
        let mut bytes = fs::read(&path).unwrap();
        bytes[12_000] ^= 1;
        fs::write(&path, &bytes).unwrap();
        let bad = verify(&path).unwrap();
        let [BadPlace { what, hides: Hidden::Between(after, up_to) }] = &bad[..] else { panic!("{bad:?}") };
        assert!(what.contains("offset") && what.contains("checksum"), "{what}");
        assert!(after < up_to && after.starts_with(b"row 00") && up_to.starts_with(b"row 0"), "{bad:?}");
    }
}
