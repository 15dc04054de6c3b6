//! A stream whose first bytes must come in time.
//!
//! What tells HTTP/1.1 from HTTP/2 waits for the first bytes of a connection without end; a client that never sends them
//! would keep its place among the connections for ever.

use super::HANDSHAKE_TIME_MAX;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

/// As many bytes as tell the two protocols apart: the preface of HTTP/2.
const FIRST_BYTES: usize = 24;

pub(super) struct FirstWord<S> {
    stream: S,
    missing: usize,
    late: Option<Pin<Box<Sleep>>>,
}

impl<S> FirstWord<S> {
    pub(super) fn new(stream: S) -> FirstWord<S> {
        let late = Some(Box::pin(tokio::time::sleep(HANDSHAKE_TIME_MAX)));
        FirstWord { stream, missing: FIRST_BYTES, late }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for FirstWord<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        if self.late.is_none() {
            return polled;
        }
        self.missing = self.missing.saturating_sub(buffer.filled().len() - before);
        if self.missing == 0 {
            self.late = None;
        }
        if polled.is_pending()
            && let Some(late) = &mut self.late
            && late.as_mut().poll(context).is_ready()
        {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for FirstWord<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
