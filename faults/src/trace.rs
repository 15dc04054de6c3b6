//! The trace of a process: what it did to files, one record for each call that changed something, in the order of its effects.
//!
//! This file is compiled twice: into the library that records, which must not link anything else of this crate, and into this
//! crate, which reads. A record is its length and its bytes, so that one that was cut by the end of the process is noticed:
//!
//! ```text
//!   length u32 | kind u8 | fields          numbers u64, texts and data with a length u32, all little endian
//! ```

#![allow(dead_code, reason = "one side writes, the other reads")]

use std::borrow::Cow;

/// A call that changed a file or a folder, or made a change durable. Files are named by their descriptors, as the calls do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record<'a> {
    /// A process began; descriptors of the one before mean nothing any more.
    Start,
    /// A file or folder was opened.
    Open {
        /// The descriptor it has until it is closed.
        fd: u64,
        /// Where it is.
        path: Cow<'a, [u8]>,
        /// Whether there was none before.
        created: bool,
        /// Whether it lost its contents.
        truncated: bool,
    },
    /// A descriptor was given back.
    Close {
        /// The descriptor.
        fd: u64,
    },
    /// Bytes were written.
    Write {
        /// The descriptor.
        fd: u64,
        /// Where in the file.
        offset: u64,
        /// The bytes that were taken, perhaps fewer than were given.
        data: Cow<'a, [u8]>,
    },
    /// The length was set.
    Resize {
        /// The descriptor.
        fd: u64,
        /// The new length.
        length: u64,
    },
    /// What was written to the file, or done in the folder, is durable as far as it was done when the sync began.
    Sync {
        /// The descriptor.
        fd: u64,
        /// The length of the trace when the sync began.
        began: u64,
    },
    /// A file got another name.
    Rename {
        /// The old one.
        from: Cow<'a, [u8]>,
        /// The new one, which may have been another file's.
        to: Cow<'a, [u8]>,
    },
    /// A file got a second name.
    Link {
        /// The first.
        from: Cow<'a, [u8]>,
        /// The second.
        to: Cow<'a, [u8]>,
    },
    /// A file lost its name.
    Unlink {
        /// The name.
        path: Cow<'a, [u8]>,
    },
    /// A folder was made.
    MakeFolder {
        /// Where.
        path: Cow<'a, [u8]>,
    },
    /// An empty folder was removed.
    RemoveFolder {
        /// Where.
        path: Cow<'a, [u8]>,
    },
}

impl Record<'_> {
    /// Adds the bytes of the record.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend([0; 4]);
        match self {
            Record::Start => out.push(10),
            Record::Open { fd, path, created, truncated } => {
                out.push(0);
                number(out, *fd);
                bytes(out, path);
                number(out, u64::from(*created));
                number(out, u64::from(*truncated));
            }
            Record::Close { fd } => {
                out.push(1);
                number(out, *fd);
            }
            Record::Write { fd, offset, data } => {
                out.push(2);
                number(out, *fd);
                number(out, *offset);
                bytes(out, data);
            }
            Record::Resize { fd, length } => {
                out.push(3);
                number(out, *fd);
                number(out, *length);
            }
            Record::Sync { fd, began } => {
                out.push(4);
                number(out, *fd);
                number(out, *began);
            }
            Record::Rename { from, to } => {
                out.push(5);
                bytes(out, from);
                bytes(out, to);
            }
            Record::Link { from, to } => {
                out.push(6);
                bytes(out, from);
                bytes(out, to);
            }
            Record::Unlink { path } => {
                out.push(7);
                bytes(out, path);
            }
            Record::MakeFolder { path } => {
                out.push(8);
                bytes(out, path);
            }
            Record::RemoveFolder { path } => {
                out.push(9);
                bytes(out, path);
            }
        }
        let length = (out.len() - start - 4) as u32;
        out[start..start + 4].copy_from_slice(&length.to_le_bytes());
    }
}

/// Takes the record at the start of `trace` off, or `None` if there is no whole one.
pub fn decode<'a>(trace: &mut &'a [u8]) -> Option<Record<'a>> {
    let mut rest = *trace;
    let length = u32::from_le_bytes(take(&mut rest, 4)?.try_into().ok()?);
    let mut body = take(&mut rest, length as usize)?;
    *trace = rest;
    let from = &mut body;
    Some(match take(from, 1)?[0] {
        0 => Record::Open {
            fd: read_number(from)?,
            path: read_bytes(from)?,
            created: read_number(from)? != 0,
            truncated: read_number(from)? != 0,
        },
        1 => Record::Close { fd: read_number(from)? },
        2 => Record::Write { fd: read_number(from)?, offset: read_number(from)?, data: read_bytes(from)? },
        3 => Record::Resize { fd: read_number(from)?, length: read_number(from)? },
        4 => Record::Sync { fd: read_number(from)?, began: read_number(from)? },
        5 => Record::Rename { from: read_bytes(from)?, to: read_bytes(from)? },
        6 => Record::Link { from: read_bytes(from)?, to: read_bytes(from)? },
        7 => Record::Unlink { path: read_bytes(from)? },
        8 => Record::MakeFolder { path: read_bytes(from)? },
        9 => Record::RemoveFolder { path: read_bytes(from)? },
        10 => Record::Start,
        _ => return None,
    })
}

fn number(out: &mut Vec<u8>, number: u64) {
    out.extend(number.to_le_bytes());
}

fn bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend((bytes.len() as u32).to_le_bytes());
    out.extend(bytes);
}

fn take<'a>(from: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, rest) = from.split_at_checked(count)?;
    *from = rest;
    Some(taken)
}

fn read_number(from: &mut &[u8]) -> Option<u64> {
    take(from, 8)?.try_into().map(u64::from_le_bytes).ok()
}

fn read_bytes<'a>(from: &mut &'a [u8]) -> Option<Cow<'a, [u8]>> {
    let length = u32::from_le_bytes(take(from, 4)?.try_into().ok()?);
    take(from, length as usize).map(Cow::Borrowed)
}
