//! When a packet counts as lost.
//!
//! Both thresholds begin as in RFC 9002 section 6.1, and rise when a packet came later than they allow, as
//! RFC 8985 section 6.2 does it: the one of time by a quarter of a round trip, once in a round trip; the one
//! of packets to what would have been right. After 16 round trips without, both begin again.

use core::time::Duration;

use outflow_media::Time;

use super::outcome::Spurious;
use crate::limits::REORDER_PACKETS_MAX;
use crate::recovery::rtt::{GRANULARITY, Rtt};

const PACKETS: u64 = 3;
const EIGHTHS: u32 = 9;
const EIGHTHS_MAX: u32 = 16;
const ROUND_TRIPS: u32 = 16;

#[derive(Debug, Clone, Copy)]
pub(super) struct Thresholds {
    packets: u64,
    /// Of a round trip.
    eighths: u32,
    /// When something came later than allowed for the last time, and when the time was raised for it.
    spurious_at: Time,
    raised_at: Option<Time>,
}

impl Default for Thresholds {
    fn default() -> Self {
        Thresholds { packets: PACKETS, eighths: EIGHTHS, spurious_at: Time::ZERO, raised_at: None }
    }
}

impl Thresholds {
    /// How many packets may come in front of one.
    pub(super) fn packets(&self) -> u64 {
        self.packets
    }

    /// How long after a packet the acknowledgement of a later one may come.
    pub(super) fn delay(&self, rtt: &Rtt) -> Duration {
        let delay = rtt.smoothed().max(rtt.latest()) * self.eighths / 8;
        delay.max(GRANULARITY)
    }

    pub(super) fn handle_spurious(&mut self, now: Time, rtt: &Rtt, spurious: &Spurious) {
        self.packets = self.packets.max((spurious.behind + 1).min(REORDER_PACKETS_MAX));
        self.spurious_at = now;
        if self.raised_at.is_none_or(|raised| now.since(raised) >= rtt.smoothed()) {
            self.eighths = (self.eighths + 2).min(EIGHTHS_MAX);
            self.raised_at = Some(now);
        }
    }

    pub(super) fn handle_time(&mut self, now: Time, rtt: &Rtt) {
        if self.raised_at.is_some() && now.since(self.spurious_at) > ROUND_TRIPS * rtt.smoothed() {
            *self = Thresholds::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rtt(ms: u64) -> Rtt {
        let mut rtt = Rtt::new(Duration::ZERO);
        rtt.handle_sample(Duration::from_millis(ms), Duration::ZERO);
        rtt
    }

    fn spurious(behind: u64) -> Spurious {
        Spurious { number: 0, sent: Time::ZERO, bytes: 0, behind }
    }

    #[test]
    fn time_is_raised_once_in_a_round_trip_up_to_two_of_them() {
        let (mut thresholds, rtt) = (Thresholds::default(), rtt(80));
        let delays = [0, 79, 80, 159, 160, 240, 320, 400].map(|ms| {
            thresholds.handle_spurious(Time::from_millis(ms), &rtt, &spurious(1));
            thresholds.delay(&rtt).as_millis()
        });
        assert_eq!(delays, [110, 110, 130, 130, 150, 160, 160, 160]);
    }

    #[test]
    fn packets_are_raised_to_what_would_have_been_right_within_limits() {
        let (mut thresholds, rtt) = (Thresholds::default(), rtt(80));
        let packets = [1, 9, 5, 1000].map(|behind| {
            thresholds.handle_spurious(Time::ZERO, &rtt, &spurious(behind));
            thresholds.packets()
        });
        assert_eq!(packets, [3, 10, 10, REORDER_PACKETS_MAX]);
    }

    #[test]
    fn a_round_trip_that_grows_counts_at_once_and_a_short_one_as_a_clock_shows() {
        let (thresholds, mut growing) = (Thresholds::default(), rtt(40));
        growing.handle_sample(Duration::from_millis(80), Duration::ZERO);
        assert_eq!(thresholds.delay(&growing), Duration::from_millis(90));
        assert_eq!(thresholds.delay(&rtt(0)), GRANULARITY);
    }
}
