//! Times on the stream's own clock.

use core::time::Duration;

use outflow_media::Time;

/// Ticks a second of the programme clock reference.
const PCR_RATE: u64 = 27_000_000;

/// A programme clock reference as time.
pub(super) fn of_pcr(pcr: u64) -> Duration {
    Duration::from_nanos((u128::from(pcr) * 1_000_000_000 / u128::from(PCR_RATE)) as u64)
}

/// An RTP timestamp as time; `None` if the clock's rate is not known.
pub(super) fn of_rtp(timestamp: u32, rate: u32) -> Option<Duration> {
    (u64::from(timestamp) * 1_000_000_000).checked_div(u64::from(rate)).map(Duration::from_nanos)
}

/// The mean of the intervals between events. Steps back (a wrap, a new source) do not count.
#[derive(Debug, Default)]
pub(super) struct Intervals {
    last: Option<Duration>,
    sum: Duration,
    count: u32,
}

impl Intervals {
    /// It happened, on the stream's clock, then.
    pub(super) fn at(&mut self, stamp: Option<Duration>) {
        let Some(stamp) = stamp else { return };
        if let Some(interval) = self.last.replace(stamp).and_then(|last| stamp.checked_sub(last)) {
            self.sum += interval;
            self.count += 1;
        }
    }

    pub(super) fn mean(&self) -> Option<Duration> {
        self.sum.checked_div(self.count)
    }
}

/// Interarrival jitter of programme clock references, as RFC 3550 section 6.4.1 has it for RTP
/// timestamps.
#[derive(Debug, Default)]
pub(super) struct PcrJitter {
    last: Option<(u64, Time)>,
    nanos: u64,
}

impl PcrJitter {
    /// The stream's latest PCR when a packet arrived; the same one again says nothing.
    pub(super) fn at(&mut self, pcr: u64, arrived: Time) {
        let Some((before, then)) = self.last else {
            self.last = Some((pcr, arrived));
            return;
        };
        if before == pcr {
            return;
        }
        self.last = Some((pcr, arrived));
        // A wrap, or another clock.
        let Some(sent) = of_pcr(pcr).checked_sub(of_pcr(before)) else { return };
        let difference = arrived.since(then).abs_diff(sent).min(Duration::from_secs(1));
        let difference = u64::try_from(difference.as_nanos()).unwrap_or(u64::MAX);
        self.nanos = self.nanos.saturating_add_signed((difference as i64 - self.nanos as i64) / 16);
    }

    pub(super) fn jitter(&self) -> Duration {
        Duration::from_nanos(self.nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_is_that_of_arrivals_against_the_clock() {
        let mut steady = PcrJitter::default();
        let mut uneven = PcrJitter::default();
        for i in 0..500 {
            let pcr = i * PCR_RATE / 25;
            steady.at(pcr, Time::from_millis(i * 40));
            uneven.at(pcr, Time::from_millis(i * 40 + i % 2 * 8));
            uneven.at(pcr, Time::from_millis(i * 40 + i % 2 * 8 + 1));
        }
        assert_eq!(steady.jitter(), Duration::ZERO);
        assert_eq!(uneven.jitter().as_millis(), 7, "approaches 8 ms from below");
    }

    #[test]
    fn a_clock_that_begins_again_is_not_an_interval() {
        let mut intervals = Intervals::default();
        for seconds in [5, 6, 8, 1, 2] {
            intervals.at(Some(Duration::from_secs(seconds)));
        }
        assert_eq!(intervals.mean(), Some(Duration::from_secs(4) / 3));
    }
}
