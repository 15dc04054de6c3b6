//! Whether the database answers, for whoever decides which node gets requests.
//!
//! Nothing is asked while it answers others: every connection that is given back has just been answered, and a node looks at
//! the catalogue twice a second. Only when nobody was answered for a while is a connection opened, one at a time, to
//! see whether that works. It is none of the pool's, so that a node all of whose connections are waiting for locks is
//! not taken for one without a database.

use crate::failure::words;
use crate::pool::Pool;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

/// How long an answer shows that the database is there; longer than the time between two looks at the catalogue.
const FRESH: Duration = Duration::from_secs(1);
/// How long a connection may take to show it.
const PATIENCE: Duration = Duration::from_secs(2);

/// When the database last answered anything.
#[derive(Debug)]
pub(crate) struct LastAnswer {
    begun: Instant,
    /// Milliseconds since then.
    at: AtomicU64,
    /// Held by whoever opens a connection to find out.
    asking: Mutex<()>,
}

impl LastAnswer {
    pub(crate) fn new() -> LastAnswer {
        LastAnswer { begun: Instant::now(), at: AtomicU64::new(0), asking: Mutex::new(()) }
    }

    pub(crate) fn note(&self) {
        self.at.store(self.begun.elapsed().as_millis() as u64, Relaxed);
    }

    fn is_fresh(&self) -> bool {
        self.begun.elapsed() < Duration::from_millis(self.at.load(Relaxed)) + FRESH
    }
}

impl Pool {
    /// Whether the database answers; if not, why.
    pub(crate) async fn ready(&self) -> Result<(), String> {
        if self.last_answer.is_fresh() {
            return Ok(());
        }
        let ask = async {
            let _alone = self.last_answer.asking.lock().await;
            if !self.last_answer.is_fresh() {
                self.connect_bare().await?;
                self.last_answer.note();
            }
            Ok(())
        };
        match tokio::time::timeout(PATIENCE, ask).await {
            Ok(answer) => answer.map_err(|error| format!("no connection to the database: {}", words(&error))),
            Err(_) => Err("the database does not answer".into()),
        }
    }
}
