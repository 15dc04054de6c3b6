//! Where versions come from.
//!
//! A version is a reading of the clock, because ETag and Timestamp are both this one number, and it is never given
//! twice, because a conditional write relies on that. Clocks stand still between two readings and jump when somebody
//! sets them; [`Versions`] turns such readings into numbers that only grow. The clock is passed in, so that tests can
//! make it jump.

use crate::Version;
use partita_model::Ticks;
use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

/// Tells the time. It may jump; engines make it strictly increasing by themselves.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Ticks + Send + Sync>);

impl Clock {
    /// The clock of the machine.
    pub fn system() -> Clock {
        Clock::new(|| Ticks::from_system_time(SystemTime::now()))
    }

    /// A clock that tells what a function says.
    pub fn new(now: impl Fn() -> Ticks + Send + Sync + 'static) -> Clock {
        Clock(Arc::new(now))
    }

    /// What the clock says now.
    pub fn now(&self) -> Ticks {
        (self.0)()
    }
}

impl Default for Clock {
    fn default() -> Clock {
        Clock::system()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

/// Gives out versions: each greater than all before it, and none less than the clock.
#[derive(Clone, Debug)]
pub struct Versions {
    clock: Clock,
    last: Version,
}

impl Versions {
    /// Goes on behind `last`, the greatest version given out so far, or 0 if there was none.
    pub fn after(last: Version, clock: Clock) -> Versions {
        Versions { clock, last }
    }

    /// The next version.
    pub fn next_version(&mut self) -> Version {
        self.last = self.clock.now().0.max(self.last + 1);
        self.last
    }

    /// The greatest version given out so far.
    pub fn last(&self) -> Version {
        self.last
    }
}
