//! The body of a request of HTTP/1.1.

use super::Stream;
use super::chunks::Chunks;
use super::parse::{Framing, Start};
use bytes::BufMut;
use std::io;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// How much is asked of the network at a time where the end is not known.
const READ_BYTES: usize = 16 << 10;
const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// The body of a request: what came with its head, and what is still to come.
pub(crate) struct Http1Body<'c> {
    stream: &'c mut dyn Stream,
    /// What came behind the head and was not taken yet. Some of it may belong to the next request.
    buffered: &'c [u8],
    /// What was read since and not taken yet.
    read: Vec<u8>,
    left: Left,
    is_unasked: bool,
}

/// What is still to be taken.
enum Left {
    Length(u64),
    Chunks(Chunks),
}

/// What a body leaves behind.
pub(super) struct Rest {
    /// Whether all of the body was taken, so that what follows is a request.
    pub(super) is_next: bool,
    /// How much of what came with the head was not taken.
    pub(super) buffered: usize,
    /// What follows it.
    pub(super) read: Vec<u8>,
}

impl<'c> Http1Body<'c> {
    pub(super) fn new(stream: &'c mut dyn Stream, buffered: &'c [u8], start: &Start<'_>) -> Http1Body<'c> {
        let left = match start.framing {
            Framing::Length(length) => Left::Length(length),
            Framing::Chunks => Left::Chunks(Chunks::new()),
        };
        // Who has begun to send does not wait.
        let is_unasked = start.expects_continue && buffered.is_empty();
        Http1Body { stream, buffered, read: Vec::new(), left, is_unasked }
    }

    /// All of it, if it came with the head.
    pub(crate) fn at_hand(&mut self) -> Option<&'c [u8]> {
        let Left::Length(length) = self.left else { return None };
        let (body, rest) = self.buffered.split_at_checked(usize::try_from(length).ok()?)?;
        (self.left, self.buffered) = (Left::Length(0), rest);
        Some(body)
    }

    /// How many bytes will come at least.
    pub(crate) fn announced(&self) -> usize {
        match self.left {
            Left::Length(length) => usize::try_from(length).unwrap_or(usize::MAX),
            Left::Chunks(_) => 0,
        }
    }

    /// Whether the client waits to be asked for it.
    pub(crate) fn is_unasked(&self) -> bool {
        self.is_unasked
    }

    fn is_over(&self) -> bool {
        match &self.left {
            Left::Length(length) => *length == 0,
            Left::Chunks(chunks) => chunks.is_done(),
        }
    }

    /// Waits for some of it and appends that; says how much it was, nothing at the end.
    pub(crate) async fn read(&mut self, bytes: &mut Vec<u8>) -> io::Result<usize> {
        let before = bytes.len();
        if std::mem::take(&mut self.is_unasked) && !self.is_over() {
            self.stream.write_all(CONTINUE).await?;
            self.stream.flush().await?;
        }
        while !self.is_over() && bytes.len() == before {
            match &mut self.left {
                Left::Length(length) => {
                    let wanted = usize::try_from(*length).unwrap_or(usize::MAX);
                    let taken = wanted.min(self.buffered.len());
                    bytes.extend_from_slice(&self.buffered[..taken]);
                    self.buffered = &self.buffered[taken..];
                    if taken == 0 {
                        bytes.reserve(wanted.min(READ_BYTES));
                        some(self.stream.read_buf(&mut (&mut *bytes).limit(wanted)).await?)?;
                    }
                    *length -= (bytes.len() - before) as u64;
                }
                Left::Chunks(chunks) => {
                    let malformed = |_| io::Error::from(io::ErrorKind::InvalidData);
                    let taken = chunks.decode(self.buffered, bytes).map_err(malformed)?;
                    self.buffered = &self.buffered[taken..];
                    let taken = chunks.decode(&self.read, bytes).map_err(malformed)?;
                    self.read.drain(..taken);
                    if bytes.len() == before && !chunks.is_done() {
                        self.read.reserve(READ_BYTES);
                        some(self.stream.read_buf(&mut self.read).await?)?;
                    }
                }
            }
        }
        Ok(bytes.len() - before)
    }

    pub(super) fn rest(self) -> Rest {
        Rest { is_next: self.is_over(), buffered: self.buffered.len(), read: self.read }
    }
}

/// A body that ends before its end is none.
fn some(read: usize) -> io::Result<()> {
    if read == 0 { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
}
