//! A timer for things that hardly ever take too long.

use std::pin::Pin;
use std::task::Context;
use std::time::Instant;
use tokio::time::Sleep;

/// Wakes the task of a connection when something has taken too long. To set it to a later moment, as every request does, only
/// notes that moment: the timer itself is set again when it goes off too early.
#[derive(Debug)]
pub(super) struct Alarm {
    sleep: Pin<Box<Sleep>>,
    due: Instant,
    /// Whether the timer knows whom to wake. A connection has one task all its life.
    is_watched: bool,
}

impl Alarm {
    pub(super) fn new(due: Instant) -> Alarm {
        Alarm { sleep: Box::pin(tokio::time::sleep_until(due.into())), due, is_watched: false }
    }

    pub(super) fn set(&mut self, due: Instant) {
        self.due = due;
        if due < self.sleep.deadline().into_std() {
            self.reset();
        }
    }

    fn reset(&mut self) {
        self.sleep.as_mut().reset(self.due.into());
        self.is_watched = false;
    }

    /// Whether it is time. If not, the task is woken when it may be.
    pub(super) fn rings(&mut self, context: &mut Context<'_>) -> bool {
        loop {
            if self.is_watched && !self.sleep.is_elapsed() {
                return false;
            }
            if self.sleep.as_mut().poll(context).is_pending() {
                self.is_watched = true;
                return false;
            }
            if Instant::now() >= self.due {
                return true;
            }
            self.reset();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use std::task::Poll;
    use std::time::Duration;

    async fn until_it_rings(alarm: &mut Alarm) -> Instant {
        let ring = |alarm: &mut Alarm, context: &mut Context<'_>| match alarm.rings(context) {
            true => Poll::Ready(Instant::now()),
            false => Poll::Pending,
        };
        poll_fn(|context| ring(alarm, context)).await
    }

    #[tokio::test]
    async fn it_rings_when_it_was_last_set_to() {
        let start = Instant::now();
        let after = |millis| start + Duration::from_millis(millis);
        let mut alarm = Alarm::new(after(5));
        alarm.set(after(40));
        assert!(until_it_rings(&mut alarm).await >= after(40), "later");
        let mut alarm = Alarm::new(start + Duration::from_secs(3600));
        assert!(!poll_fn(|context| Poll::Ready(alarm.rings(context))).await);
        alarm.set(after(50));
        assert!(until_it_rings(&mut alarm).await >= after(50), "sooner");
    }
}
