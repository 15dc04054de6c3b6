//! What a connection says and hears, whatever the protocol.
//!
//! A `Wire` is one connection's side of a conversation of requests and answers. It knows no socket and no clock: the
//! loops in `load` move bytes and take the time, a wire only writes and reads them. That keeps the loops the same for
//! all contestants, and the protocols testable without a server.

pub mod http;
pub mod postgres;
pub mod resp;

/// One connection's side of a conversation.
pub trait Wire: Send {
    /// Makes the next request of the one before, or of nothing; `false` if there is nothing more to ask.
    fn request(&mut self, out: &mut Vec<u8>) -> bool;

    /// Reads the answer at the front of `bytes`; `None` while it is not all there.
    fn answer(&mut self, bytes: &[u8]) -> Option<Answer>;
}

/// An answer that is all there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// How many bytes it has.
    pub consumed: usize,
    /// What it means for the operation.
    pub step: Step,
}

/// What an answer means for the operation it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The operation is done, and so many rows were read or written by it.
    Done(u32),
    /// The operation needs another request.
    More,
    /// The answer is not the expected one.
    Failed,
}
