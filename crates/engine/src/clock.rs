//! The one place that reads the clocks, but for what work is timed with, which contexts do, too.

use std::time::{Duration, Instant, SystemTime};

pub(crate) use outflow_context::probe;
use outflow_media::Time;

/// Monotonic time since the relay started, as the core wants it.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    zero: Instant,
    ntp_at_zero: u64,
}

impl Clock {
    /// Starts now.
    pub fn start() -> Self {
        let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Clock { zero: Instant::now(), ntp_at_zero: outflow_rtp::rtcp::ntp_time(wall) }
    }

    /// One that goes on with another process's: its zero on the monotonic clock of the system, in nanoseconds, and
    /// the NTP time of that.
    pub fn of(zero_ns: u64, ntp_at_zero: u64) -> Self {
        let ago = Duration::from_nanos(probe().saturating_sub(zero_ns));
        let now = Instant::now();
        Clock { zero: now.checked_sub(ago).unwrap_or(now), ntp_at_zero }
    }

    /// Its zero on the monotonic clock of the system, in nanoseconds.
    pub fn zero_ns(&self) -> u64 {
        probe().saturating_sub(self.now().as_nanos())
    }

    /// When it was [`Time::ZERO`].
    pub fn zero(&self) -> Instant {
        self.zero
    }

    /// Now.
    pub fn now(&self) -> Time {
        Time::ZERO + self.zero.elapsed()
    }

    /// NTP time of [`Time::ZERO`], 32.32 fixed point seconds since 1900.
    pub fn ntp_at_zero(&self) -> u64 {
        self.ntp_at_zero
    }

    /// NTP time of `now`.
    pub fn ntp(&self, now: Time) -> u64 {
        self.ntp_at_zero.wrapping_add(((u128::from(now.as_nanos()) << 32) / 1_000_000_000) as u64)
    }
}
