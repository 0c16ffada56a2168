//! How long the token of a place is of use.

use core::fmt;
use core::time::Duration;

use crate::limits::INTERVAL_MAX;

/// When what a place holds may be taken, counted from the date of its token.
///
/// In whole microseconds, because that is what goes on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Interval {
    /// Not before (a).
    pub earliest: Duration,
    /// When it is meant to be (n). The engine does not look at it: a sender paces by it, and reports of how a
    /// service was kept are about it.
    pub nominal: Duration,
    /// Not after (b); `None` waits without end.
    pub latest: Option<Duration>,
}

impl Interval {
    /// At any time.
    pub const ALWAYS: Interval = Interval { earliest: Duration::ZERO, nominal: Duration::ZERO, latest: None };

    /// From the beginning until `latest_ms`, meant for `nominal_ms`.
    pub const fn until_ms(nominal_ms: u64, latest_ms: u64) -> Self {
        Interval {
            earliest: Duration::ZERO,
            nominal: Duration::from_millis(nominal_ms),
            latest: Some(Duration::from_millis(latest_ms)),
        }
    }

    /// What is wrong with it, if anything.
    pub(crate) fn problem(&self) -> Option<&'static str> {
        let ends = [Some(self.earliest), Some(self.nominal), self.latest];
        if ends.into_iter().flatten().any(|end| end > INTERVAL_MAX) {
            return Some("reaches further than a day; say inf for what has no end");
        }
        if ends.into_iter().flatten().any(|end| end.subsec_nanos() % 1000 != 0) {
            return Some("is not in whole microseconds");
        }
        let ordered =
            self.earliest <= self.nominal && self.latest.is_none_or(|latest| self.nominal <= latest);
        (!ordered).then_some("is not in order; say the earliest, the nominal and the latest time")
    }
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        duration(f, Some(self.earliest))?;
        f.write_str(", ")?;
        duration(f, Some(self.nominal))?;
        f.write_str(", ")?;
        duration(f, self.latest)
    }
}

/// In the largest unit that leaves a whole number.
fn duration(f: &mut fmt::Formatter<'_>, duration: Option<Duration>) -> fmt::Result {
    match duration.map(|duration| duration.as_micros()) {
        None => f.write_str("inf"),
        Some(us) if us > 0 && us % 1_000_000 == 0 => write!(f, "{} s", us / 1_000_000),
        Some(us) if us % 1000 == 0 => write!(f, "{} ms", us / 1000),
        Some(us) => write!(f, "{us} us"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_said_in_units_that_leave_whole_numbers() {
        let us = Duration::from_micros;
        let interval = Interval { earliest: us(0), nominal: us(1500), latest: Some(us(2_000_000)) };
        assert_eq!(interval.to_string(), "0 ms, 1500 us, 2 s");
        assert_eq!(Interval::ALWAYS.to_string(), "0 ms, 0 ms, inf");
    }

    #[test]
    fn what_is_wrong_with_an_interval_is_told() {
        let problem = |earliest, nominal, latest| {
            let ns = Duration::from_nanos;
            let interval =
                Interval { earliest: ns(earliest), nominal: ns(nominal), latest: Some(ns(latest)) };
            interval.problem().unwrap_or("nothing")
        };
        assert_eq!(problem(0, 1000, 2000), "nothing");
        assert!(problem(1000, 0, 2000).contains("in order"));
        assert!(problem(0, 3000, 2000).contains("in order"));
        assert!(problem(0, 1, 2000).contains("microseconds"));
        assert!(problem(0, 0, 100_000_000_000_000).contains("a day"));
        assert_eq!(Interval::ALWAYS.problem(), None);
        assert_eq!(Interval::until_ms(40, 80).problem(), None);
    }
}
