//! A stream that does not wait for ever.
//!
//! What writes responses of HTTP/2 waits without end for the client to read them. A client that does not would keep its place
//! among the connections, and the memory of its responses, for ever. Nor does it read heads for which there is no memory left.

use super::STALL_TIME_MAX;
use super::heads::Head;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

pub(super) struct Patience<S> {
    stream: S,
    head: Head,
    /// What was read of it before.
    first: Vec<u8>,
    /// Runs while the client takes nothing.
    stalled: Option<Pin<Box<Sleep>>>,
    stall_time_max: Duration,
}

impl<S> Patience<S> {
    /// A stream of which the first bytes were read already. Waits no longer than `idle_time_max` for a client to read.
    pub(super) fn new(stream: S, first: Vec<u8>, head: Head, idle_time_max: Duration) -> Patience<S> {
        Patience { stream, head, first, stalled: None, stall_time_max: idle_time_max.min(STALL_TIME_MAX) }
    }

    pub(super) fn head(&self) -> &Head {
        &self.head
    }

    /// What came of a write of bytes, which are an answer.
    fn answered(&mut self, context: &mut Context<'_>, polled: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if matches!(polled, Poll::Ready(Ok(1..))) {
            self.head.answered();
        }
        self.written(context, polled)
    }

    /// What came of a write, or that it has waited too long.
    fn written<T>(&mut self, context: &mut Context<'_>, polled: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            self.stalled = None;
            return polled;
        }
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep(self.stall_time_max)));
        match stalled.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patience<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.first.is_empty() {
            let taken = self.first.len().min(buffer.remaining());
            buffer.put_slice(&self.first[..taken]);
            self.first.drain(..taken);
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.head.read(buffer.filled().len() - before)?;
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patience<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.answered(context, polled)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_flush(context);
        self.written(context, polled)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_shutdown(context);
        self.written(context, polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.answered(context, polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
