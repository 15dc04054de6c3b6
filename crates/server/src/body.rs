//! Reading the bodies of requests: within bounds of size, time and memory.

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::{Body as _, Incoming};
use partita_model::ServiceError;
use partita_model::limits::{ALL_BODIES_BYTES_MAX, BODY_BYTES_MAX, SMALL_BODIES_BYTES, SMALL_BODY_BYTES_MAX};
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

/// A body, and the part it takes of the memory for all bodies.
pub(crate) struct Body<'s> {
    pub(crate) bytes: Bytes,
    _memory: [Option<SemaphorePermit<'s>>; 2],
}

/// Reads a body within its own bound, that of all bodies together, and the time of its request.
pub(crate) async fn read(
    memory: &BodyMemory,
    mut incoming: Incoming,
    deadline: Instant,
) -> Result<Body<'_>, ServiceError> {
    if incoming.is_end_stream() {
        return Ok(Body { bytes: Bytes::new(), _memory: [None, None] });
    }
    // Most bodies come in one piece, which is kept as it is.
    let (mut only, mut bytes) = (Bytes::new(), BytesMut::new());
    let mut taken: [Option<SemaphorePermit<'_>>; 2] = [None, None];
    let read = async {
        while only.len() + bytes.len() + usize::try_from(incoming.size_hint().lower()).unwrap_or(usize::MAX)
            <= BODY_BYTES_MAX
        {
            let data = match incoming.frame().await {
                None => return Ok(()),
                Some(Err(_)) => return Err(ServiceError::RequestIncomplete),
                Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
            };
            // Taken as it arrives, so that a client that announces much and sends little holds little.
            let is_small = only.len() + bytes.len() + data.len() <= SMALL_BODY_BYTES_MAX;
            let from = if is_small { &memory.small } else { &memory.large };
            let more = tokio::time::timeout(MEMORY_TIME_MAX, from.acquire_many(data.len() as u32)).await;
            let more = more.map_err(|_| ServiceError::ServerBusy)?.map_err(|_| ServiceError::ServerBusy)?;
            match &mut taken[usize::from(!is_small)] {
                Some(taken) => taken.merge(more),
                none => *none = Some(more),
            }
            if only.is_empty() && bytes.is_empty() {
                only = data;
            } else {
                if bytes.is_empty() {
                    let announced = usize::try_from(incoming.size_hint().lower()).unwrap_or(usize::MAX);
                    bytes.reserve(only.len() + data.len() + announced.min(AHEAD_BYTES_MAX));
                }
                bytes.extend_from_slice(&std::mem::take(&mut only));
                bytes.extend_from_slice(&data);
            }
        }
        Err(ServiceError::RequestBodyTooLarge)
    };
    let read = tokio::time::timeout_at(deadline.into(), read).await;
    match read.unwrap_or(Err(ServiceError::RequestTimedOut)) {
        Ok(()) => Ok(Body { bytes: if bytes.is_empty() { only } else { bytes.freeze() }, _memory: taken }),
        Err(error) => {
            drop((only, bytes, taken));
            // What is closed with something unread may take the answer with it.
            if matches!(error, ServiceError::RequestBodyTooLarge | ServiceError::ServerBusy) {
                drain(incoming).await;
            }
            Err(error)
        }
    }
}

/// Reads what is left of a body, within bounds.
pub(crate) async fn drain(mut body: Incoming) {
    let mut left = DRAIN_BYTES_MAX;
    let read = async {
        while let Some(Ok(frame)) = body.frame().await {
            left = left.saturating_sub(frame.data_ref().map_or(0, Bytes::len));
            if left == 0 {
                break;
            }
        }
    };
    let _ = tokio::time::timeout(DRAIN_TIME_MAX, read).await;
}
