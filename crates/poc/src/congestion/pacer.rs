//! Spreads packets over time.

use core::time::Duration;

use outflow_media::Time;

/// When the next packet may go. Bytes that go between two moments never exceed the rate over the time between
/// them and [`Pacer::burst`], and one packet: time in which nothing was sent gives no credit beyond that.
#[derive(Debug, Clone)]
pub(super) struct Pacer {
    /// The moment up to which everything that was sent is paid for.
    paid: Time,
    burst: Duration,
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
    pub(super) fn new(burst: Duration) -> Self {
        Pacer { paid: Time::ZERO, burst }
    }

    /// When the next packet may go: now, or later.
    pub(super) fn next(&self, now: Time) -> Time {
        self.paid.max(now)
    }

    /// A packet went.
    pub(super) fn sent(&mut self, now: Time, bytes: u64, rate_bps: u64) {
        self.paid = self.paid.max(now - self.burst) + time_of(bytes, rate_bps);
    }

    /// Bytes that may go from now on within a time.
    pub(super) fn allowance(&self, now: Time, within: Duration, rate_bps: u64) -> u64 {
        let from = self.paid.max(now - self.burst);
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
        assert_eq!(sent, [0, 0, 0, 1, 2, 3, 4, 5], "two of credit, one to go, then one a millisecond");
    }

    #[test]
    fn idle_time_gives_no_more_credit_than_a_burst() {
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
        assert_eq!(pacer.allowance(now, within, RATE), 12_000);
        pacer.sent(now, 5000, RATE);
        assert_eq!(pacer.allowance(now, within, RATE), 7000);
        assert_eq!(pacer.allowance(now, Duration::ZERO, RATE), 0);
    }
}
