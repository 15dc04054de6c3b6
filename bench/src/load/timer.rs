//! Waking a loop between two milliseconds.
//!
//! The time limit of a poll counts milliseconds, and at fifty thousand requests a second fifty are due in one. On Linux
//! a timer that is polled like a socket wakes the loop on the microsecond; elsewhere the loop polls without rest.

use crate::Result;
use mio::{Registry, Token};
use std::time::Duration;

#[cfg(target_os = "linux")]
pub(super) struct Timer(std::os::fd::OwnedFd);

#[cfg(target_os = "linux")]
impl Timer {
    pub(super) fn new(registry: &Registry, token: Token) -> Result<Timer> {
        use rustix::time::{TimerfdClockId, TimerfdFlags, timerfd_create};
        use std::os::fd::AsRawFd;
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        registry.register(&mut mio::unix::SourceFd(&timer.as_raw_fd()), token, mio::Interest::READABLE)?;
        Ok(Timer(timer))
    }

    /// Arranges for an event after `time`; returns how long to poll.
    pub(super) fn wake_after(&mut self, time: Duration, limit: Duration) -> Result<Duration> {
        use rustix::time::{Itimerspec, TimerfdTimerFlags, Timespec, timerfd_settime};
        if time.is_zero() {
            return Ok(Duration::ZERO);
        }
        let at = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) };
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: at };
        // Setting it anew also takes back an event that nobody read.
        timerfd_settime(&self.0, TimerfdTimerFlags::empty(), &once)?;
        Ok(limit)
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) struct Timer;

#[cfg(not(target_os = "linux"))]
impl Timer {
    pub(super) fn new(_: &Registry, _: Token) -> Result<Timer> {
        Ok(Timer)
    }

    pub(super) fn wake_after(&mut self, _: Duration, _: Duration) -> Result<Duration> {
        Ok(Duration::ZERO)
    }
}
