//! Spreads packets over time by one moment: that up to which all that was sent is paid for (virtual scheduling, as
//! in ITU-T I.371).
//!
//! That is no [`TokenBucket`](outflow_media::TokenBucket), on purpose. What is owed is time, at the rates at which
//! packets went: a rate that follows each acknowledgement does not change what those before cost. A bucket's debt,
//! tokens, is paid off at the newest rate, and when that is over takes a division of 128 bits for each packet.

use core::time::Duration;

use outflow_media::Time;

/// When the next packet may go. Bytes that go between two moments never exceed the rate over the time between
/// them and [`Pacer::behind_max`], and one packet: what was not sent before that is not made up for.
#[derive(Debug, Clone)]
pub(super) struct Pacer {
    /// The moment up to which everything that was sent is paid for.
    paid_until: Time,
    /// How far that moment lies behind a packet that goes, at most.
    behind_max: Duration,
}

/// How long bytes take at a rate.
pub(super) fn time_of(bytes: u64, rate_bps: u64) -> Duration {
    Duration::from_nanos(ratio(bytes, 8_000_000_000, rate_bps.max(1)))
}

/// Bytes that go in a time at a rate.
pub(super) fn bytes_in(time: Duration, rate_bps: u64) -> u64 {
    ratio(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), rate_bps, 8_000_000_000)
}

/// `a * b / c`. Most products fit into 64 bits, where a division is cheap.
fn ratio(a: u64, b: u64, c: u64) -> u64 {
    match a.checked_mul(b) {
        Some(product) => product / c,
        None => u64::try_from(u128::from(a) * u128::from(b) / u128::from(c)).unwrap_or(u64::MAX),
    }
}

impl Pacer {
    pub(super) fn new(behind_max: Duration) -> Self {
        Pacer { paid_until: Time::ZERO, behind_max }
    }

    /// The moment up to which everything that was sent is paid for.
    pub(super) fn paid_until(&self) -> Time {
        self.paid_until
    }

    /// What was sent is paid for up to this moment.
    pub(super) fn owe(&mut self, paid_until: Time) {
        self.paid_until = paid_until;
    }

    /// When the next packet may go: now, or later.
    pub(super) fn next(&self, now: Time) -> Time {
        self.paid_until.max(now)
    }

    /// A packet went.
    pub(super) fn sent(&mut self, now: Time, bytes: u64, rate_bps: u64) {
        self.paid_until = self.paid_until.max(now - self.behind_max) + time_of(bytes, rate_bps);
    }

    /// Bytes that may go from now on within a time.
    pub(super) fn bytes_within(&self, now: Time, within: Duration, rate_bps: u64) -> u64 {
        let from = self.paid_until.max(now - self.behind_max);
        bytes_in((now + within).since(from), rate_bps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1,000 bytes take a millisecond.
    const RATE: u64 = 8_000_000;

    #[test]
    fn long_times_and_high_rates_are_worked_out_too() {
        assert_eq!(bytes_in(Duration::from_secs(1000), 100_000_000_000), 12_500_000_000_000);
        assert_eq!(time_of(12_500_000_000_000, 100_000_000_000), Duration::from_secs(1000));
        assert_eq!(
            (bytes_in(Duration::MAX, u64::MAX), time_of(u64::MAX, 1).as_nanos()),
            (u64::MAX, u64::MAX.into())
        );
    }

    #[test]
    fn packets_are_spread() {
        let mut pacer = Pacer::new(Duration::from_millis(2));
        let mut now = Time::from_millis(1000);
        let mut sent = Vec::new();
        for _ in 0..8 {
            now = pacer.next(now);
            pacer.sent(now, 1000, RATE);
            sent.push(now.as_millis() - 1000);
        }
        assert_eq!(
            sent,
            [0, 0, 0, 1, 2, 3, 4, 5],
            "two that are made up for, one to go, then one a millisecond"
        );
    }

    #[test]
    fn idle_time_is_made_up_for_by_no_more_than_a_burst() {
        let mut pacer = Pacer::new(Duration::from_millis(2));
        for now in [Time::from_millis(10), Time::from_millis(9_000)] {
            let burst = core::iter::repeat_with(|| {
                let may = pacer.next(now) == now;
                pacer.sent(now, 1000, RATE);
                may
            });
            assert_eq!(burst.take(9).filter(|may| *may).count(), 3, "at {now}");
        }
    }

    #[test]
    fn what_may_go_within_a_time_counts_what_went() {
        let mut pacer = Pacer::new(Duration::from_millis(2));
        let (now, within) = (Time::from_millis(100), Duration::from_millis(10));
        assert_eq!(pacer.bytes_within(now, within, RATE), 12_000);
        pacer.sent(now, 5000, RATE);
        assert_eq!(pacer.bytes_within(now, within, RATE), 7000);
        assert_eq!(pacer.bytes_within(now, Duration::ZERO, RATE), 0);
    }
}
