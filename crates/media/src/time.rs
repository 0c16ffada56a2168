//! Time as the core knows it: a number given by the driver.

use core::fmt;
use core::ops::{Add, Sub};
use core::time::Duration;

/// A point in time: nanoseconds since the driver started.
///
/// The core never reads a clock; `engine` gives it monotonic time, `sim` virtual time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(u64);

impl Time {
    /// The moment the driver started.
    pub const ZERO: Time = Time(0);

    /// The time `nanos` nanoseconds after the driver started.
    pub const fn from_nanos(nanos: u64) -> Self {
        Time(nanos)
    }

    /// The time `micros` microseconds after the driver started.
    pub const fn from_micros(micros: u64) -> Self {
        Time(micros * 1_000)
    }

    /// The time `millis` milliseconds after the driver started.
    pub const fn from_millis(millis: u64) -> Self {
        Time(millis * 1_000_000)
    }

    /// Nanoseconds since the driver started.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Microseconds since the driver started, rounded down.
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }

    /// Milliseconds since the driver started, rounded down.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }

    /// How long after `earlier` this is; zero if it is not after it.
    pub const fn since(self, earlier: Time) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Time {
    type Output = Time;

    fn add(self, d: Duration) -> Time {
        Time(self.0.saturating_add(u64::try_from(d.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl Sub<Duration> for Time {
    type Output = Time;

    fn sub(self, d: Duration) -> Time {
        Time(self.0.saturating_sub(u64::try_from(d.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06} s", self.0 / 1_000_000_000, self.0 / 1_000 % 1_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_never_go_below_zero() {
        let (a, b) = (Time::from_millis(5), Time::from_millis(7));
        assert_eq!(b.since(a), Duration::from_millis(2));
        assert_eq!(a.since(b), Duration::ZERO);
        assert_eq!(a - Duration::from_secs(1), Time::ZERO);
        assert_eq!(a + Duration::from_millis(2), b);
    }
}
