//! A socket and its buffers.

use super::Link;
use crate::Result;
use crate::wire::{Step, Wire};
use mio::net::TcpStream;
use mio::{Interest, Registry, Token};
use std::io::{ErrorKind, Read, Write};
use std::time::Instant;

/// How much is read at once. A socket that gave less has no more for now.
const READ_BYTES: usize = 64 * 1024;
/// How much of an unexpected answer is shown.
const SHOWN_BYTES: usize = 1500;

pub(super) struct Connection {
    stream: TcpStream,
    wire: Box<dyn Wire>,
    pub(super) is_measured: bool,
    /// From when the latency of the operation under way counts.
    pub(super) from: Instant,
    out: Vec<u8>,
    written: usize,
    input: Vec<u8>,
    filled: usize,
}

/// What came of reading.
pub(super) enum Event {
    /// No answer yet.
    Nothing,
    /// An operation is done; so many rows.
    Done(u32),
    /// An answer that was not expected.
    Failed(String),
}

impl Connection {
    pub(super) fn new(link: Link, registry: &Registry, token: Token) -> Result<Connection> {
        link.stream.set_nodelay(true)?;
        link.stream.set_nonblocking(true)?;
        let mut stream = TcpStream::from_std(link.stream);
        registry.register(&mut stream, token, Interest::READABLE | Interest::WRITABLE)?;
        Ok(Connection {
            stream,
            wire: link.wire,
            is_measured: link.is_measured,
            from: Instant::now(),
            out: Vec::with_capacity(4096),
            written: 0,
            input: vec![0; READ_BYTES],
            filled: 0,
        })
    }

    /// Sends the first request of an operation; `false` if there is none.
    pub(super) fn start(&mut self, from: Instant) -> Result<bool> {
        self.from = from;
        self.send()
    }

    fn send(&mut self) -> Result<bool> {
        self.written = 0;
        if !self.wire.request(&mut self.out) {
            return Ok(false);
        }
        self.write()?;
        Ok(true)
    }

    fn write(&mut self) -> Result<()> {
        while self.written < self.out.len() {
            match self.stream.write(&self.out[self.written..]) {
                Ok(bytes) => self.written += bytes,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(format!("cannot send: {error}").into()),
            }
        }
        Ok(())
    }

    /// Goes on with whatever the socket is ready for.
    pub(super) fn hear(&mut self) -> Result<Event> {
        if self.written < self.out.len() {
            self.write()?;
        }
        loop {
            if self.input.len() - self.filled < READ_BYTES / 2 {
                self.input.resize(2 * self.input.len(), 0);
            }
            let room = &mut self.input[self.filled..];
            let asked = room.len();
            let bytes = match self.stream.read(room) {
                Ok(0) => return Err("the server closed a connection".into()),
                Ok(bytes) => bytes,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Event::Nothing),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(format!("cannot read: {error}").into()),
            };
            self.filled += bytes;
            if let Some(answer) = self.wire.answer(&self.input[..self.filled]) {
                match answer.step {
                    Step::Failed => return Ok(Event::Failed(self.shown())),
                    // Nothing was asked that this could be an answer to.
                    _ if answer.consumed < self.filled => return Ok(Event::Failed(self.shown())),
                    Step::Done(rows) => {
                        self.filled = 0;
                        return Ok(Event::Done(rows));
                    }
                    Step::More => {
                        self.filled = 0;
                        self.send()?;
                    }
                }
            } else if bytes < asked {
                return Ok(Event::Nothing);
            }
        }
    }

    fn shown(&self) -> String {
        let text = String::from_utf8_lossy(&self.input[..self.filled.min(SHOWN_BYTES)]).into_owned();
        let asked = String::from_utf8_lossy(&self.out[..self.out.len().min(200)]).into_owned();
        format!("{text}\nto: {}", asked.lines().next().unwrap_or_default())
    }
}
