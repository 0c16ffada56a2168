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

    /// How many nanoseconds after `epoch` it began.
    pub(crate) fn after(&self, epoch: Instant) -> i64 {
        let nanos = |time: Duration| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
        nanos(self.zero.saturating_duration_since(epoch)) - nanos(epoch.saturating_duration_since(self.zero))
    }

    /// A clock that began `after` nanoseconds later than `epoch`; none if the system cannot tell that time.
    pub(crate) fn begun(epoch: Instant, after: i64) -> Option<Self> {
        let by = Duration::from_nanos(after.unsigned_abs());
        let zero = if after < 0 { epoch.checked_sub(by) } else { epoch.checked_add(by) };
        zero.map(|zero| Clock { zero })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_on_by_a_time_that_both_share() {
        let (epoch, clock) = (Instant::now(), Clock::start());
        for other in [epoch, epoch + Duration::from_secs(3)] {
            let again = Clock::begun(other, clock.after(other)).expect("it is near");
            assert_eq!(again.zero, clock.zero);
        }
    }
}
