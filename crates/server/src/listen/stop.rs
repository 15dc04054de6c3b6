//! Telling connections that the server is to stop.

use std::pin::Pin;
use std::task::Context;
use tokio::sync::watch;

/// Tells one connection.
pub(super) struct Stop {
    told: watch::Receiver<bool>,
    /// Wakes the task of the connection. It has one all its life, so that is noted once.
    wait: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl Stop {
    pub(super) fn new(told: &watch::Receiver<bool>) -> Stop {
        Stop { told: told.clone(), wait: None }
    }

    pub(super) fn is_set(&self) -> bool {
        // It is, too, when nobody is left to tell it.
        self.told.has_changed().unwrap_or(true)
    }

    /// Waits until it is set.
    pub(super) async fn wait(mut self) {
        let _ = self.told.changed().await;
    }

    /// Whether it is set. If not, the task is woken when it is.
    pub(super) fn wakes(&mut self, context: &mut Context<'_>) -> bool {
        if self.wait.is_none() {
            let mut told = self.told.clone();
            let wait = self.wait.insert(Box::pin(async move { drop(told.changed().await) }));
            // If it is set by now, the next line sees that.
            let _ = wait.as_mut().poll(context);
        }
        self.is_set()
    }
}
