//! The threads that serve connections.
//!
//! Runtimes of one thread, one more than there are cores, and a connection stays where it was put. A runtime of several threads
//! would move requests between them as it sees fit, and wake one thread from another for it, which costs more than most
//! requests do: point reads take a third less time this way. For the same reason they let clients on the same machine finish
//! what they are about. While one of them waits for that, another core may be free: with one thread more there is somebody for
//! it, which on two cores is a tenth more point reads and a seventh more inserts on 64 connections; two more bring nothing.
//! Scans give their thread away while they run, so that nobody waits behind one.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::available_parallelism;
use std::time::Duration;
use tokio::runtime::{Builder, Handle, Runtime};

/// A runtime that a timer makes wake sooner than it meant to is told so through the kernel, even by its own thread. It wakes so
/// often in any case, so that it is not the deadlines of requests that do it, which was a system call for every fourth insert.
const TICK: Duration = Duration::from_secs(10);

/// Threads for connections.
#[derive(Debug)]
pub(crate) struct Workers {
    runtimes: Vec<Option<Runtime>>,
    handles: Vec<Handle>,
    next: AtomicUsize,
}

impl Workers {
    /// One more than there are cores.
    pub(crate) fn start() -> io::Result<Workers> {
        let count = available_parallelism().map_or(1, usize::from) + 1;
        let start = |_| {
            Builder::new_multi_thread()
                .worker_threads(1)
                .thread_name("partita-serve")
                .on_thread_start(|| {
                    // Where it is not allowed, it is slower.
                    let _ = partita_scheduling::let_others_finish();
                })
                .enable_all()
                .build()
        };
        let runtimes = (0..count).map(start).collect::<io::Result<Vec<_>>>()?;
        let handles: Vec<_> = runtimes.iter().map(|runtime| runtime.handle().clone()).collect();
        for handle in &handles {
            handle.spawn(async {
                loop {
                    tokio::time::sleep(TICK).await;
                }
            });
        }
        Ok(Workers { runtimes: runtimes.into_iter().map(Some).collect(), handles, next: AtomicUsize::new(0) })
    }

    /// The one whose turn it is.
    pub(crate) fn next(&self) -> &Handle {
        &self.handles[self.next.fetch_add(1, Ordering::Relaxed) % self.handles.len()]
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        // Waiting for their threads is not allowed on a thread that serves tasks, and there is nothing left to wait for.
        self.runtimes.iter_mut().filter_map(Option::take).for_each(Runtime::shutdown_background);
    }
}
