//! How many packets are lost.

use core::time::Duration;

use outflow_media::Time;

/// Losses are counted over one to two of these.
const SLOT: Duration = Duration::from_secs(1);

/// Fewer packets say nothing.
const PACKETS_LEAST: u64 = 20;

#[derive(Debug, Clone, Copy, Default)]
struct Count {
    acked: u64,
    lost: u64,
}

/// Counts over the last second or two.
#[derive(Debug, Clone, Default)]
pub(super) struct Losses {
    since: Time,
    before: Count,
    current: Count,
}

impl Losses {
    fn turn(&mut self, now: Time) -> &mut Count {
        let age = now.since(self.since);
        if age >= SLOT {
            self.before = if age < SLOT * 2 { self.current } else { Count::default() };
            (self.since, self.current) = (now, Count::default());
        }
        &mut self.current
    }

    pub(super) fn acked(&mut self, now: Time, packets: u64) {
        self.turn(now).acked += packets;
    }

    pub(super) fn lost(&mut self, now: Time, packets: u64) {
        self.turn(now).lost += packets;
    }

    /// Packets were not lost after all.
    pub(super) fn spurious(&mut self, now: Time, packets: u64) {
        let count = self.turn(now);
        count.acked += packets;
        count.lost = count.lost.saturating_sub(packets);
    }

    /// The share of packets that was lost, from 0 to 1; none if too few were sent to tell.
    pub(super) fn share(&self) -> f64 {
        let lost = self.before.lost + self.current.lost;
        let all = lost + self.before.acked + self.current.acked;
        if all < PACKETS_LEAST { 0.0 } else { lost as f64 / all as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_is_that_of_the_last_seconds() {
        let mut losses = Losses::default();
        let at = Time::from_millis;
        losses.lost(at(100), 5);
        assert_eq!(losses.share(), 0.0, "too few");
        losses.acked(at(200), 15);
        assert_eq!(losses.share(), 0.25);
        losses.acked(at(1200), 30);
        assert_eq!(losses.share(), 0.1);
        losses.spurious(at(1300), 1);
        losses.acked(at(4000), 20);
        assert_eq!(losses.share(), 0.0, "forgotten");
    }
}
