//! The protocol of PostgreSQL: prepared statements by Bind, Execute and Sync.

use super::{Answer, Step, Wire};
use crate::entity::{Entities, NewRow, Rng, Spread, row_key};
use std::sync::Arc;

/// Appends a message: its kind, its length and what `body` writes.
pub fn message(kind: u8, out: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
    out.push(kind);
    sized(out, body);
}

/// The first message of a connection, which has no kind.
pub fn startup(user: &str) -> Vec<u8> {
    let mut out = Vec::new();
    sized(&mut out, |out| {
        out.extend_from_slice(&196_608u32.to_be_bytes());
        out.extend_from_slice(format!("user\0{user}\0database\0postgres\0\0").as_bytes());
    });
    out
}

fn sized(out: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    body(out);
    let length = (out.len() - start) as u32;
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
}

/// Appends the messages that prepare a statement under the name `s`.
pub fn prepare(sql: &str, out: &mut Vec<u8>) {
    message(b'P', out, |out| {
        out.extend_from_slice(b"s\0");
        out.extend_from_slice(sql.as_bytes());
        out.extend_from_slice(b"\0\0\0");
    });
    message(b'S', out, |_| {});
}

/// What the server said up to its being ready again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// How many bytes it has.
    pub consumed: usize,
    /// How many rows came.
    pub rows: usize,
    /// Whether there was an error.
    pub is_error: bool,
    /// Whether a command was completed.
    pub is_complete: bool,
}

/// Reads up to `ReadyForQuery`, or to a message of the kind `until`; `None` while that is not there.
pub fn reply(bytes: &[u8], until: u8) -> Option<Reply> {
    let mut reply = Reply { consumed: 0, rows: 0, is_error: false, is_complete: false };
    loop {
        let rest = &bytes[reply.consumed..];
        let kind = *rest.first()?;
        let length = u32::from_be_bytes(*rest[1..].first_chunk()?) as usize;
        if rest.len() <= length {
            return None;
        }
        reply.consumed += 1 + length;
        match kind {
            b'D' => reply.rows += 1,
            b'C' => reply.is_complete = true,
            b'E' => reply.is_error = true,
            _ => {}
        }
        if kind == b'Z' || kind == until {
            return Some(reply);
        }
    }
}

/// Appends Bind, Execute and Sync with the parameters that `each` writes by turns.
fn execute(out: &mut Vec<u8>, parameters: &[&[u8]]) {
    message(b'B', out, |out| {
        out.extend_from_slice(b"\0s\0\0\0");
        out.extend_from_slice(&(parameters.len() as u16).to_be_bytes());
        for parameter in parameters {
            out.extend_from_slice(&(parameter.len() as u32).to_be_bytes());
            out.extend_from_slice(parameter);
        }
        out.extend_from_slice(&[0, 0]);
    });
    message(b'E', out, |out| out.extend_from_slice(&[0; 5]));
    message(b'S', out, |_| {});
}

/// Reads rows at random.
pub struct Select {
    rows: usize,
    rng: Rng,
    keys: [Vec<u8>; 2],
}

impl Select {
    /// What is prepared.
    pub const SQL: &str = "SELECT value FROM rows WHERE pk = $1 AND rk = $2";

    /// Reads some of so many rows.
    pub fn new(rows: usize, rng: Rng) -> Select {
        Select { rows, rng, keys: Default::default() }
    }
}

impl Wire for Select {
    fn request(&mut self, out: &mut Vec<u8>) -> bool {
        let row = self.rng.below(self.rows);
        let [partition, key] = &mut self.keys;
        partition.clear();
        key.clear();
        Spread::Partitions.partition(row, partition);
        row_key(row, key);
        out.clear();
        execute(out, &[partition, key]);
        true
    }

    fn answer(&mut self, bytes: &[u8]) -> Option<Answer> {
        let reply = reply(bytes, b'Z')?;
        let good = reply.rows == 1 && !reply.is_error && reply.consumed > 900;
        Some(Answer { consumed: reply.consumed, step: if good { Step::Done(1) } else { Step::Failed } })
    }
}

/// Inserts new rows, each in a transaction of its own.
pub struct Insert {
    entities: Arc<Entities>,
    row: NewRow,
    fields: [Vec<u8>; 3],
}

impl Insert {
    /// What is prepared.
    pub const SQL: &str = "INSERT INTO rows (pk, rk, value) VALUES ($1, $2, $3)";

    /// Inserts rows that this writer has not inserted yet.
    pub fn new(entities: Arc<Entities>, row: NewRow) -> Insert {
        Insert { entities, row, fields: Default::default() }
    }
}

impl Wire for Insert {
    fn request(&mut self, out: &mut Vec<u8>) -> bool {
        self.fields.iter_mut().for_each(Vec::clear);
        let [partition, key, value] = &mut self.fields;
        Spread::Partitions.new_partition(self.row, partition);
        self.row.row_key(key);
        self.entities.properties(self.row.sequence, self.row.writer, value);
        self.row.sequence += 1;
        out.clear();
        execute(out, &[partition, key, value]);
        true
    }

    fn answer(&mut self, bytes: &[u8]) -> Option<Answer> {
        let reply = reply(bytes, b'Z')?;
        let good = reply.is_complete && !reply.is_error;
        Some(Answer { consumed: reply.consumed, step: if good { Step::Done(1) } else { Step::Failed } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(parts: &[(u8, &[u8])]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (kind, body) in parts {
            message(*kind, &mut bytes, |out| out.extend_from_slice(body));
        }
        bytes
    }

    #[test]
    fn a_request_is_three_messages() {
        let mut out = Vec::new();
        Select::new(1, Rng::new(0)).request(&mut out);
        let bind = b"\0s\0\0\0\0\x02\0\0\0\x09p00000000\0\0\0\x0br0000000000\0\0";
        assert_eq!(out, messages(&[(b'B', bind), (b'E', &[0; 5]), (b'S', b"")]));
    }

    #[test]
    fn answers_are_complete_when_the_server_is_ready() {
        let row = [b'x'; 1000];
        let answer = messages(&[(b'2', b""), (b'D', &row), (b'C', b"SELECT 1\0"), (b'Z', b"I")]);
        let mut select = Select::new(1, Rng::new(0));
        for end in 0..answer.len() {
            assert_eq!(select.answer(&answer[..end]), None);
        }
        assert_eq!(select.answer(&answer), Some(Answer { consumed: answer.len(), step: Step::Done(1) }));
    }

    #[test]
    fn errors_and_missing_rows_are_failures() {
        let none = messages(&[(b'2', b""), (b'C', b"SELECT 0\0"), (b'Z', b"I")]);
        assert_eq!(Select::new(1, Rng::new(0)).answer(&none).unwrap().step, Step::Failed);
        let mut insert = Insert::new(Arc::new(Entities::new(1)), NewRow { writer: 0, sequence: 0 });
        let good = messages(&[(b'2', b""), (b'C', b"INSERT 0 1\0"), (b'Z', b"I")]);
        let error = messages(&[(b'E', b"SERROR\0\0"), (b'Z', b"I")]);
        assert_eq!(insert.answer(&good).unwrap().step, Step::Done(1));
        assert_eq!(insert.answer(&error).unwrap().step, Step::Failed);
    }

    #[test]
    fn the_first_message() {
        let bytes = startup("postgres");
        assert_eq!(&bytes[..8], [0, 0, 0, bytes.len() as u8, 0, 3, 0, 0]);
        assert!(bytes.ends_with(b"user\0postgres\0database\0postgres\0\0"));
    }
}
