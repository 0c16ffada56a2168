//! The one place that reads the clock.

use std::time::{Duration, Instant};

use outflow_media::Time;

/// Monotonic time since it was started.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    zero: Instant,
}

impl Clock {
    /// Starts now.
    pub fn start() -> Self {
        Clock { zero: Instant::now() }
    }

    /// One that has run for so long already; none if that is longer than this machine has.
    pub(crate) fn since(ran: Duration) -> Option<Self> {
        Instant::now().checked_sub(ran).map(|zero| Clock { zero })
    }

    /// Now.
    pub fn now(&self) -> Time {
        Time::ZERO + self.zero.elapsed()
    }

    /// The moment in the runtime's terms.
    pub(crate) fn instant(&self, at: Time) -> tokio::time::Instant {
        tokio::time::Instant::from_std(self.zero + at.since(Time::ZERO))
    }
}

impl Default for Clock {
    fn default() -> Self {
        Clock::start()
    }
}
