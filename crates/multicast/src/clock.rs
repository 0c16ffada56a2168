//! The time of all that is driven here.

use std::time::Instant;

use outflow_media::Time;

/// Monotonic time as the state machines want it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    zero: Instant,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Clock { zero: Instant::now() }
    }

    pub(crate) fn now(self) -> Time {
        Time::ZERO + self.zero.elapsed()
    }

    pub(crate) fn instant(self, time: Time) -> Instant {
        self.zero + time.since(Time::ZERO)
    }
}
