//! Reading the bodies of requests: within bounds of size, time and memory.

use crate::listen::{Http1Body, Http2Body};
use partita_model::ServiceError;
use partita_model::limits::{ALL_BODIES_BYTES_MAX, BODY_BYTES_MAX, SMALL_BODIES_BYTES, SMALL_BODY_BYTES_MAX};
use std::borrow::Cow;
use std::io;
use std::time::{Duration, Instant};
use tokio::sync::{Semaphore, SemaphorePermit};

/// How much of a refused body is read and thrown away, so that the client can read why before the connection closes.
const DRAIN_BYTES_MAX: usize = 4 * BODY_BYTES_MAX;
const DRAIN_TIME_MAX: Duration = Duration::from_secs(5);
/// How much room is made for what is announced and has not come: enough for most transactions, and little to a client that
/// never sends it.
const AHEAD_BYTES_MAX: usize = 256 << 10;
/// How long a body waits for memory before its client is told to come back later.
const MEMORY_TIME_MAX: Duration = Duration::from_secs(5);

/// The body of a request, as much of it as has come.
pub(crate) enum Body<'c> {
    Http1(Http1Body<'c>),
    Http2(Http2Body),
}

impl<'c> Body<'c> {
    /// All of it, if it has come already and is at hand in one piece.
    fn at_hand(&mut self) -> Option<&'c [u8]> {
        match self {
            Body::Http1(body) => body.at_hand(),
            Body::Http2(body) => body.is_empty().then_some(&[]),
        }
    }

    /// How many bytes will come at least, as far as is known.
    fn announced(&self) -> usize {
        match self {
            Body::Http1(body) => body.announced(),
            Body::Http2(body) => body.announced(),
        }
    }

    /// Waits for some of it and appends that; says how much it was, nothing at the end.
    async fn read(&mut self, bytes: &mut Vec<u8>) -> io::Result<usize> {
        match self {
            Body::Http1(body) => body.read(bytes).await,
            Body::Http2(body) => body.read(bytes).await,
        }
    }

    /// Whether the client waits to be asked for it.
    fn is_unasked(&self) -> bool {
        matches!(self, Body::Http1(body) if body.is_unasked())
    }
}

/// The memory left for the bodies of requests. What a body has beyond the size of a small one comes from a part of its
/// own, so that clients that send much and never finish hold up only one another.
#[derive(Debug)]
pub(crate) struct BodyMemory {
    small: Semaphore,
    large: Semaphore,
}

impl BodyMemory {
    pub(crate) fn new() -> BodyMemory {
        let large = Semaphore::new(ALL_BODIES_BYTES_MAX - SMALL_BODIES_BYTES);
        BodyMemory { small: Semaphore::new(SMALL_BODIES_BYTES), large }
    }
}

/// A body that has come, and the part it takes of the memory for all bodies.
pub(crate) struct Received<'c, 's> {
    pub(crate) bytes: Cow<'c, [u8]>,
    _memory: [Option<SemaphorePermit<'s>>; 2],
}

/// Reads a body within its own bound, that of all bodies together, and the time of its request.
pub(crate) async fn read<'c, 's>(
    memory: &'s BodyMemory,
    body: &mut Body<'c>,
    deadline: Instant,
) -> Result<Received<'c, 's>, ServiceError> {
    // It came with its head, as most do, and stays where that is.
    if let Some(bytes) = body.at_hand() {
        return Ok(Received { bytes: Cow::Borrowed(bytes), _memory: [None, None] });
    }
    let mut bytes = Vec::new();
    let mut taken: [Option<SemaphorePermit<'_>>; 2] = [None, None];
    let read = async {
        while bytes.len().saturating_add(body.announced()) <= BODY_BYTES_MAX {
            if bytes.is_empty() {
                bytes.reserve(body.announced().min(AHEAD_BYTES_MAX));
            }
            let more = match body.read(&mut bytes).await {
                Ok(0) => return Ok(()),
                more => more.map_err(|_| ServiceError::RequestIncomplete)?,
            };
            // Taken as it arrives, so that a client that announces much and sends little holds little.
            let is_small = bytes.len() <= SMALL_BODY_BYTES_MAX;
            let from = if is_small { &memory.small } else { &memory.large };
            let more = tokio::time::timeout(MEMORY_TIME_MAX, from.acquire_many(more as u32)).await;
            let more = more.map_err(|_| ServiceError::ServerBusy)?.map_err(|_| ServiceError::ServerBusy)?;
            match &mut taken[usize::from(!is_small)] {
                Some(taken) => taken.merge(more),
                none => *none = Some(more),
            }
        }
        Err(ServiceError::RequestBodyTooLarge)
    };
    let read = tokio::time::timeout_at(deadline.into(), read).await;
    match read.unwrap_or(Err(ServiceError::RequestTimedOut)) {
        Ok(()) => Ok(Received { bytes: Cow::Owned(bytes), _memory: taken }),
        Err(error) => {
            drop((bytes, taken));
            // What is closed with something unread may take the answer with it.
            if matches!(error, ServiceError::RequestBodyTooLarge | ServiceError::ServerBusy) {
                drain(body).await;
            }
            Err(error)
        }
    }
}

/// Reads what is left of a body, within bounds. One that the client was not asked for stays with the client.
pub(crate) async fn drain(body: &mut Body<'_>) {
    if body.is_unasked() || body.at_hand().is_some() {
        return;
    }
    let (mut left, mut bytes) = (DRAIN_BYTES_MAX, Vec::new());
    let read = async {
        while let Ok(1..) = body.read(&mut bytes).await
            && left > bytes.len()
        {
            left -= bytes.len();
            bytes.clear();
        }
    };
    let _ = tokio::time::timeout(DRAIN_TIME_MAX, read).await;
}
