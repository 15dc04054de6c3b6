//! The protocol of Redis: GET and SET of rows.

use super::{Answer, Step, Wire};
use crate::entity::{Entities, NewRow, Rng, Spread, row_key};
use memchr::memchr;
use std::io::Write;
use std::sync::Arc;

/// Appends a command that stores a row.
pub fn set(key: &[u8], value: &[u8], out: &mut Vec<u8>) {
    write!(out, "*3\r\n$3\r\nSET\r\n${}\r\n", key.len()).expect("a Vec takes everything");
    out.extend_from_slice(key);
    write!(out, "\r\n${}\r\n", value.len()).expect("a Vec takes everything");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// Appends the key of a loaded row.
pub fn key(row: usize, out: &mut Vec<u8>) {
    Spread::Partitions.partition(row, out);
    out.push(b':');
    row_key(row, out);
}

/// Reads rows at random.
pub struct Get {
    rows: usize,
    rng: Rng,
    key: Vec<u8>,
}

impl Get {
    /// Reads some of so many rows.
    pub fn new(rows: usize, rng: Rng) -> Get {
        Get { rows, rng, key: Vec::new() }
    }
}

impl Wire for Get {
    fn request(&mut self, out: &mut Vec<u8>) -> bool {
        self.key.clear();
        key(self.rng.below(self.rows), &mut self.key);
        out.clear();
        write!(out, "*2\r\n$3\r\nGET\r\n${}\r\n", self.key.len()).expect("a Vec takes everything");
        out.extend_from_slice(&self.key);
        out.extend_from_slice(b"\r\n");
        true
    }

    fn answer(&mut self, bytes: &[u8]) -> Option<Answer> {
        let end = memchr(b'\n', bytes)? + 1;
        let length = match bytes.split_first() {
            Some((b'$', rest)) => {
                std::str::from_utf8(rest[..end - 1].trim_ascii()).ok().and_then(|text| text.parse().ok())
            }
            _ => None,
        };
        let Some(length) = length.filter(|&length: &usize| length > 900) else {
            return Some(Answer { consumed: bytes.len(), step: Step::Failed });
        };
        let consumed = end + length + 2;
        (bytes.len() >= consumed).then_some(Answer { consumed, step: Step::Done(1) })
    }
}

/// Stores new rows.
pub struct Set {
    entities: Arc<Entities>,
    row: NewRow,
    key: Vec<u8>,
    value: Vec<u8>,
}

impl Set {
    /// Stores rows that this writer has not stored yet.
    pub fn new(entities: Arc<Entities>, row: NewRow) -> Set {
        Set { entities, row, key: Vec::new(), value: Vec::new() }
    }
}

impl Wire for Set {
    fn request(&mut self, out: &mut Vec<u8>) -> bool {
        self.key.clear();
        self.value.clear();
        Spread::Partitions.new_partition(self.row, &mut self.key);
        self.key.push(b':');
        self.row.row_key(&mut self.key);
        self.entities.properties(self.row.sequence, self.row.writer, &mut self.value);
        out.clear();
        set(&self.key, &self.value, out);
        self.row.sequence += 1;
        true
    }

    fn answer(&mut self, bytes: &[u8]) -> Option<Answer> {
        let consumed = memchr(b'\n', bytes)? + 1;
        let step = if &bytes[..consumed] == b"+OK\r\n" { Step::Done(1) } else { Step::Failed };
        Some(Answer { consumed, step })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read() {
        let mut get = Get::new(1, Rng::new(0));
        let mut out = Vec::new();
        get.request(&mut out);
        assert_eq!(out, b"*2\r\n$3\r\nGET\r\n$21\r\np00000000:r0000000000\r\n");
        let answer = [&b"$1000\r\n"[..], &[b'x'; 1000], b"\r\n"].concat();
        for end in 0..answer.len() {
            assert_eq!(get.answer(&answer[..end]), None);
        }
        assert_eq!(get.answer(&answer), Some(Answer { consumed: 1009, step: Step::Done(1) }));
        for missing in [&b"$-1\r\n"[..], b"-ERR no\r\n", b"$2\r\nhi\r\n"] {
            assert_eq!(get.answer(missing).unwrap().step, Step::Failed);
        }
    }

    #[test]
    fn a_write() {
        let mut wire = Set::new(Arc::new(Entities::new(1)), NewRow { writer: 1, sequence: 0 });
        let (mut one, mut two) = (Vec::new(), Vec::new());
        wire.request(&mut one);
        wire.request(&mut two);
        assert!(one.starts_with(b"*3\r\n$3\r\nSET\r\n$28\r\nn000"));
        assert_ne!(one[..60], two[..60]);
        assert_eq!(wire.answer(b"+OK\r"), None);
        assert_eq!(wire.answer(b"+OK\r\n").unwrap().step, Step::Done(1));
        assert_eq!(wire.answer(b"-MISCONF disk\r\n").unwrap().step, Step::Failed);
    }
}
