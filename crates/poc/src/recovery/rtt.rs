//! Times of round trips (RFC 9002 section 5).

use core::time::Duration;

use crate::save::SavedRtt;

/// The finest that a clock is believed (RFC 9002 section 6.1.2).
pub(super) const GRANULARITY: Duration = Duration::from_millis(1);

/// Longest round trip that is believed of what was saved.
const RTT_MAX: Duration = Duration::from_secs(3600);

/// What is known of the time from a packet to its acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rtt {
    latest: Duration,
    smoothed: Duration,
    variation: Duration,
    min: Duration,
    is_measured: bool,
}

impl Rtt {
    /// Nothing was measured yet: what is taken until then, and half of it as its variation.
    pub const fn new(initial: Duration) -> Self {
        Rtt {
            latest: initial,
            smoothed: initial,
            variation: Duration::from_nanos(initial.as_nanos() as u64 / 2),
            min: initial,
            is_measured: false,
        }
    }

    /// What another one needs to go on.
    pub(super) fn save(&self) -> SavedRtt {
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        SavedRtt {
            latest: nanos(self.latest),
            smoothed: nanos(self.smoothed),
            variation: nanos(self.variation),
            min: nanos(self.min),
            is_measured: self.is_measured,
        }
    }

    /// One that goes on. What is longer than any round trip is taken for that.
    pub(super) fn restore(saved: &SavedRtt) -> Self {
        let time = |nanos: u64| Duration::from_nanos(nanos).min(RTT_MAX);
        Rtt {
            latest: time(saved.latest),
            smoothed: time(saved.smoothed),
            variation: time(saved.variation),
            min: time(saved.min),
            is_measured: saved.is_measured,
        }
    }

    /// A round trip took so long, of which the peer says that it waited `ack_delay`: not more than it may.
    pub fn handle_sample(&mut self, latest: Duration, ack_delay: Duration) {
        self.latest = latest;
        if !self.is_measured {
            *self = Rtt { is_measured: true, ..Rtt::new(latest) };
            return;
        }
        self.min = self.min.min(latest);
        // A peer cannot claim a wait that would make the path faster than it ever was.
        let adjusted = if latest >= self.min + ack_delay { latest - ack_delay } else { latest };
        let deviation = self.smoothed.abs_diff(adjusted);
        self.variation = (3 * self.variation + deviation) / 4;
        self.smoothed = (7 * self.smoothed + adjusted) / 8;
    }

    /// The last one, with the peer's wait in it.
    pub const fn latest(&self) -> Duration {
        self.latest
    }

    /// The mean, the last ones counting most; without the peer's waits.
    pub const fn smoothed(&self) -> Duration {
        self.smoothed
    }

    /// The mean distance from the mean.
    pub const fn variation(&self) -> Duration {
        self.variation
    }

    /// The shortest.
    pub const fn min(&self) -> Duration {
        self.min
    }

    /// Whether anything was measured.
    pub const fn is_measured(&self) -> bool {
        self.is_measured
    }

    /// How long to wait for an acknowledgement before asking for one (RFC 9002 section 6.2.1).
    pub fn probe_after(&self, ack_delay_max: Duration) -> Duration {
        self.smoothed + (4 * self.variation).max(GRANULARITY) + ack_delay_max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn the_first_sample_replaces_what_was_taken_for_it() {
        let mut rtt = Rtt::new(ms(333));
        assert!(!rtt.is_measured());
        assert_eq!(rtt.probe_after(ms(5)), ms(333 + 4 * 333 / 2 + 5));
        rtt.handle_sample(ms(40), ms(5));
        assert!(rtt.is_measured());
        assert_eq!(
            (rtt.latest(), rtt.smoothed(), rtt.variation(), rtt.min()),
            (ms(40), ms(40), ms(20), ms(40))
        );
    }

    #[test]
    fn later_samples_are_weighted_as_in_rfc_9002() {
        let mut rtt = Rtt::new(ms(333));
        rtt.handle_sample(ms(40), ms(0));
        rtt.handle_sample(ms(56), ms(0));
        assert_eq!((rtt.smoothed(), rtt.variation(), rtt.min()), (ms(42), ms(19), ms(40)));
    }

    #[test]
    fn the_wait_of_the_peer_is_taken_off_unless_it_is_implausible() {
        let mut rtt = Rtt::new(ms(333));
        rtt.handle_sample(ms(40), ms(0));
        rtt.handle_sample(ms(64), ms(24));
        assert_eq!((rtt.latest(), rtt.smoothed()), (ms(64), ms(40)));
        rtt.handle_sample(ms(48), ms(24));
        assert_eq!((rtt.smoothed(), rtt.min()), (ms(41), ms(40)));
    }

    #[test]
    fn what_is_waited_is_never_less_than_a_clock_shows() {
        let mut rtt = Rtt::new(ms(333));
        (0..200).for_each(|_| rtt.handle_sample(ms(8), ms(0)));
        assert_eq!(rtt.probe_after(ms(5)), ms(8 + 1 + 5));
    }
}
