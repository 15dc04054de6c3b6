//! Connections of HTTP/1.1, which is what clients of tables speak.
//!
//! A general HTTP library makes a map of the headers of each request, hands its body over piece by piece and makes a map
//! again for the answer. Here a request is read where it lies in the buffer of its connection, and an answer is written into one
//! buffer and sent by one call. Nothing is set up for a request: no timer, no channel, no task.

mod alarm;
mod body;
pub(crate) mod chunks;
pub(crate) mod parse;

pub(crate) use body::Http1Body;

use super::heads::Head as HeadMemory;
use super::stop::Stop;
use super::{HANDSHAKE_TIME_MAX, Handler, STALL_TIME_MAX};
use crate::answer::Answer;
use crate::body::Body;
use alarm::Alarm;
use parse::{HTTP2_PREFACE, Refused};
use partita_model::Ticks;
use partita_model::limits::HEADER_BYTES_MAX;
use std::cell::RefCell;
use std::future::poll_fn;
use std::io::{self, IoSlice, Write};
use std::net::IpAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant, SystemTime};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};

/// Room for what comes, enough for nearly all requests but transactions.
const INPUT_BYTES: usize = 8 << 10;
/// Up to so many bytes of a body are copied behind the head, which is cheaper than to send two pieces.
const COPIED_BYTES_MAX: usize = 16 << 10;
/// What a connection keeps for its next answer.
const OUTPUT_BYTES_KEPT: usize = COPIED_BYTES_MAX + (4 << 10);

/// What a connection goes over.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// What becomes of a connection.
pub(super) enum End<S> {
    /// It is over.
    Closed,
    /// It speaks HTTP/2, of which these bytes have come.
    Http2(S, Vec<u8>),
}

pub(super) struct Connection<S> {
    stream: S,
    head_memory: HeadMemory,
    keep_alive: Duration,
    alarm: Alarm,
    stop: Stop,
    /// What has come and was not taken: the first `filled` bytes.
    input: Vec<u8>,
    filled: usize,
    output: Vec<u8>,
}

impl<S: Stream> Connection<S> {
    pub(super) fn new(stream: S, head_memory: HeadMemory, keep_alive: Duration, stop: Stop) -> Connection<S> {
        let alarm = Alarm::new(Instant::now() + keep_alive.min(HANDSHAKE_TIME_MAX));
        Connection {
            stream,
            head_memory,
            keep_alive,
            alarm,
            stop,
            input: vec![0; INPUT_BYTES],
            filled: 0,
            output: Vec::new(),
        }
    }

    /// Answers requests, one after the other, for as long as there are any.
    pub(super) async fn serve<H: Handler>(mut self, handler: &H, peer: IpAddr) -> io::Result<End<S>> {
        if self.speaks_http2().await? {
            self.input.truncate(self.filled);
            return Ok(End::Http2(self.stream, self.input));
        }
        while self.serve_one(handler, peer).await? {}
        // With TLS there is a last word to be written, which a client that does not read could put off for ever.
        tokio::time::timeout(STALL_TIME_MAX, self.stream.shutdown()).await??;
        Ok(End::Closed)
    }

    /// Waits for the first bytes.
    async fn speaks_http2(&mut self) -> io::Result<bool> {
        while HTTP2_PREFACE.starts_with(&self.input[..self.filled]) {
            if self.filled == HTTP2_PREFACE.len() || !self.read_more().await? {
                break;
            }
        }
        self.alarm.set(Instant::now() + self.keep_alive);
        Ok(self.filled > 0 && self.input[..self.filled].starts_with(HTTP2_PREFACE))
    }

    /// Answers one request. Says whether there may be another.
    async fn serve_one<H: Handler>(&mut self, handler: &H, peer: IpAddr) -> io::Result<bool> {
        let mut parsed = 0;
        let start = loop {
            self.skip_blank_lines();
            // A head that does not come at once is looked at again only when it may be complete.
            if self.filled > 0 && (parsed == 0 || parse::may_end(&self.input[..self.filled], parsed)) {
                match parse::parse(&self.input[..self.filled]) {
                    Ok(Some(start)) => break start,
                    Ok(None) => {}
                    Err(refused) => return self.refuse(refused).await,
                }
            }
            if self.filled >= HEADER_BYTES_MAX {
                return self.refuse(Refused(431)).await;
            }
            parsed = self.filled;
            if !self.read_more().await? {
                return Ok(false);
            }
        };
        let mut body = Body::Http1(Http1Body::new(&mut self.stream, &self.input[start.length..self.filled], &start));
        let answer = handler.answer(&start.head, &mut body, peer).await;
        let Body::Http1(body) = body else { unreachable!("a body does not change its version") };
        let rest = body.rest();
        let is_last = !start.keep_alive || !rest.is_next || self.stop.is_set();
        let is_head = start.head.method == "HEAD";
        let connection = match (is_last, start.is_http10) {
            (true, _) => "Connection: close\r\n",
            (false, true) => "Connection: keep-alive\r\n",
            (false, false) => "",
        };
        write_head(&mut self.output, &answer, connection);
        self.send(if is_head { &[] } else { &answer.body }).await?;
        self.head_memory.answered();
        self.keep(rest)?;
        self.alarm.set(Instant::now() + self.keep_alive);
        Ok(!is_last)
    }

    /// Answers what is no request, and ends the connection.
    async fn refuse(&mut self, Refused(status): Refused) -> io::Result<bool> {
        write_head(&mut self.output, &Answer::new(status, Vec::new()), "Connection: close\r\n");
        self.send(&[]).await?;
        Ok(false)
    }

    /// Leaves what follows a request where the next is looked for.
    fn keep(&mut self, rest: body::Rest) -> io::Result<()> {
        let buffered = self.filled - rest.buffered..self.filled;
        self.filled = rest.buffered + rest.read.len();
        if self.input.len() > INPUT_BYTES || self.filled > INPUT_BYTES {
            let mut input = [&self.input[buffered], &rest.read].concat();
            input.resize(self.filled.max(INPUT_BYTES), 0);
            self.input = input;
        } else if self.filled > 0 {
            self.input.copy_within(buffered.clone(), 0);
            self.input[buffered.len()..self.filled].copy_from_slice(&rest.read);
        }
        self.head_memory.read(self.filled)
    }

    /// Waits for bytes; `false` if no more come, or none are wanted.
    async fn read_more(&mut self) -> io::Result<bool> {
        if self.filled == self.input.len() {
            self.input.resize((2 * self.filled).min(HEADER_BYTES_MAX), 0);
        }
        let read = poll_fn(|context| self.poll_read(context)).await?;
        self.head_memory.read(read)?;
        self.filled += read;
        Ok(read > 0)
    }

    /// Some clients end a body with a line of its own.
    fn skip_blank_lines(&mut self) {
        let blank = self.input[..self.filled].iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        if blank > 0 {
            self.input.copy_within(blank..self.filled, 0);
            self.filled -= blank;
        }
    }

    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut room = ReadBuf::new(&mut self.input[self.filled..]);
        if let Poll::Ready(read) = Pin::new(&mut self.stream).poll_read(context, &mut room) {
            return Poll::Ready(read.map(|()| room.filled().len()));
        }
        if self.filled == 0 && self.stop.wakes(context) {
            return Poll::Ready(Ok(0));
        }
        match self.alarm.rings(context) {
            true => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            false => Poll::Pending,
        }
    }

    /// Sends the head that was written, and a body.
    async fn send(&mut self, mut body: &[u8]) -> io::Result<()> {
        if body.len() <= COPIED_BYTES_MAX {
            self.output.extend_from_slice(body);
            body = &[];
        }
        let (all, mut sent, mut has_stalled) = (self.output.len() + body.len(), 0, false);
        poll_fn(|context| {
            loop {
                let polled = match sent < all {
                    true => self.poll_write(context, sent, body),
                    false => Pin::new(&mut self.stream).poll_flush(context).map_ok(|()| 0),
                };
                match polled {
                    Poll::Ready(Ok(_)) if sent == all => return Poll::Ready(Ok(())),
                    Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                    Poll::Ready(Ok(bytes)) => (sent, has_stalled) = (sent + bytes, false),
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                    Poll::Pending => {
                        if !std::mem::replace(&mut has_stalled, true) {
                            self.alarm.set(Instant::now() + self.keep_alive.min(STALL_TIME_MAX));
                        }
                        return match self.alarm.rings(context) {
                            true => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
                            false => Poll::Pending,
                        };
                    }
                }
            }
        })
        .await?;
        self.output.clear();
        self.output.shrink_to(OUTPUT_BYTES_KEPT);
        Ok(())
    }

    fn poll_write(&mut self, context: &mut Context<'_>, sent: usize, body: &[u8]) -> Poll<io::Result<usize>> {
        let stream = Pin::new(&mut self.stream);
        match self.output.get(sent..) {
            Some(head) if body.is_empty() => stream.poll_write(context, head),
            Some(head @ [_, ..]) => stream.poll_write_vectored(context, &[IoSlice::new(head), IoSlice::new(body)]),
            _ => stream.poll_write(context, &body[sent - self.output.len()..]),
        }
    }
}

/// Writes everything of an answer but its body.
fn write_head(out: &mut Vec<u8>, answer: &Answer, connection: &str) {
    let status = http::StatusCode::from_u16(answer.status).expect("the table has only real statuses");
    let reason = status.canonical_reason().unwrap_or_default();
    for part in ["HTTP/1.1 ", status.as_str(), " ", reason, "\r\n"] {
        out.extend_from_slice(part.as_bytes());
    }
    out.extend_from_slice(answer.headers.as_bytes());
    if answer.status != 204 {
        write!(out, "Content-Length: {}\r\n", answer.body.len()).expect("a Vec takes everything");
    }
    out.extend_from_slice(connection.as_bytes());
    DATE.with_borrow_mut(|date| out.extend_from_slice(date.line(SystemTime::now())));
    out.extend_from_slice(b"\r\n");
}

thread_local! {
    static DATE: RefCell<Date> = const { RefCell::new(Date { second: 0, line: String::new() }) };
}

/// The header that tells the time, made once a second.
struct Date {
    second: u64,
    line: String,
}

impl Date {
    fn line(&mut self, now: SystemTime) -> &[u8] {
        let second = now.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.as_secs());
        if self.second != second || self.line.is_empty() {
            self.second = second;
            self.line = format!("Date: {}\r\n", Ticks::from_system_time(now).rfc1123());
        }
        self.line.as_bytes()
    }
}

#[cfg(test)]
mod tests;
