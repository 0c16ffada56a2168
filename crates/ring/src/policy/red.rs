//! Random early detection (Floyd and Jacobson, "Random Early Detection Gateways for Congestion
//! Avoidance", IEEE/ACM Transactions on Networking, August 1993; section and figure numbers are
//! theirs). The queue is what the ring owes, in bytes; packets are drawn alike, whatever their size.
//!
//! All of it is whole numbers, so that the same seed gives the same bytes on every machine.

use core::time::Duration;

use fastrand::Rng;
use outflow_media::Time;
use outflow_packet::DropReason;

use super::arrival::{Load, Policy, Verdict};
use crate::limits::{RED_MAX_PARTS, RED_MIN_PARTS, RED_ONE_IN, RED_PARTS, RED_WEIGHT_LOG2};

/// Fraction bits of [`left_after`].
const FRACTION_BITS: u32 = 32;

/// Refuses arriving packets by chance, as the mean of what is owed rises between two thresholds;
/// all of them above.
#[derive(Debug)]
pub(super) struct Red {
    /// The mean of what is owed, in bytes, times 2^[`RED_WEIGHT_LOG2`].
    mean_scaled: u64,
    /// Packets admitted since the last that was refused, or since the mean rose above the lower
    /// threshold (`count`, figure 2).
    count: u64,
    /// When the packet before came.
    last: Option<Time>,
    /// Mean time between packets in nanoseconds, times 2^[`RED_WEIGHT_LOG2`].
    gap_scaled: u64,
    rng: Rng,
}

impl Policy for Red {
    fn new(seed: u64) -> Self {
        Red { mean_scaled: 0, count: 0, last: None, gap_scaled: 0, rng: Rng::with_seed(seed) }
    }

    fn arrives(&mut self, now: Time, load: &Load) -> Verdict {
        self.observe(now, load.owed_bytes);
        let early = self.draw(load.bytes_max);
        // The mean lags behind: a ring can be full before it has risen.
        let verdict = if early {
            Verdict::Refuse(DropReason::Red)
        } else if load.is_full() {
            Verdict::Refuse(DropReason::TailDrop)
        } else {
            return Verdict::Admit;
        };
        self.count = 1;
        verdict
    }
}

impl Red {
    /// Follows the mean of what is owed (section 4).
    fn observe(&mut self, now: Time, owed_bytes: usize) {
        let idle = self.last.replace(now).map_or(Duration::ZERO, |last| now.since(last));
        let idle_ns = u64::try_from(idle.as_nanos()).unwrap_or(u64::MAX);
        if owed_bytes == 0 {
            // The queue was empty: as if as many packets as usually come in that time had found it
            // so. The ring is asked only when packets come, so the time counts from the one before.
            let gap_ns = self.gap_scaled >> RED_WEIGHT_LOG2;
            let packets = idle_ns.checked_div(gap_ns).unwrap_or(0);
            let left = u128::from(self.mean_scaled) * u128::from(left_after(packets));
            self.mean_scaled = (left >> FRACTION_BITS) as u64;
        }
        self.mean_scaled = toward(self.mean_scaled, owed_bytes as u64);
        // A pause of the source is no gap between packets.
        self.gap_scaled = toward(self.gap_scaled, idle_ns.min(1_000_000_000));
    }

    /// Whether chance, or a mean above the upper threshold, takes the packet (figure 2).
    fn draw(&mut self, bytes_max: usize) -> bool {
        let mean = self.mean_scaled >> RED_WEIGHT_LOG2;
        let min = bytes_max as u64 / RED_PARTS * RED_MIN_PARTS;
        let max = bytes_max as u64 / RED_PARTS * RED_MAX_PARTS;
        if mean < min {
            self.count = 0;
            return false;
        }
        if mean >= max {
            return true;
        }
        // p_b = (mean - min) / (max - min) / RED_ONE_IN, as the fraction part / whole. Then
        // p_a = p_b / (1 - count · p_b) spaces what is refused evenly (section 7).
        let (part, whole) = (mean - min, (max - min) * RED_ONE_IN);
        let rest = whole.saturating_sub(self.count.saturating_mul(part));
        self.count += 1;
        rest <= part || self.rng.u64(0..rest) < part
    }
}

/// A mean moved towards a new value by one part in 2^[`RED_WEIGHT_LOG2`] (w_q).
fn toward(scaled: u64, value: u64) -> u64 {
    scaled - (scaled >> RED_WEIGHT_LOG2) + value
}

/// What is left of the mean after `packets` packets have found the queue empty: (1 - w_q)^packets,
/// with [`FRACTION_BITS`] bits behind the point.
fn left_after(mut packets: u64) -> u64 {
    let mut power = (1_u64 << FRACTION_BITS) - (1 << (FRACTION_BITS - RED_WEIGHT_LOG2));
    let mut left = 1_u64 << FRACTION_BITS;
    while packets > 0 && left > 0 {
        if packets & 1 == 1 {
            left = times(left, power);
        }
        power = times(power, power);
        packets >>= 1;
    }
    left
}

fn times(a: u64, b: u64) -> u64 {
    ((u128::from(a) * u128::from(b)) >> FRACTION_BITS) as u64
}

#[cfg(test)]
mod tests {
    use super::super::tests::owing;
    use super::*;

    const EVERY: Duration = Duration::from_millis(2);

    /// Feeds `packets` to the policy at a steady load; returns which of them it refused.
    fn refused(red: &mut Red, now: &mut Time, owed_bytes: usize, packets: usize) -> Vec<usize> {
        let mut refused = Vec::new();
        for packet in 0..packets {
            *now = *now + EVERY;
            if red.arrives(*now, &owing(owed_bytes)) != Verdict::Admit {
                refused.push(packet);
            }
        }
        refused
    }

    /// The share that is refused at a steady load, once the mean has followed.
    fn share(owed_bytes: usize) -> f64 {
        let (mut red, mut now) = (Red::new(7), Time::ZERO);
        refused(&mut red, &mut now, owed_bytes, 10_000);
        refused(&mut red, &mut now, owed_bytes, 20_000).len() as f64 / 20_000.0
    }

    #[test]
    fn nothing_is_refused_below_the_lower_threshold_and_all_above_the_upper() {
        assert_eq!(share(24_000), 0.0);
        assert_eq!(share(76_000), 1.0);
    }

    #[test]
    fn between_the_thresholds_it_refuses_the_more_the_fuller_the_ring() {
        // Even spacing doubles the rate of p_b: one in 1/p_b at most, half of that in the mean.
        for (owed, p_b) in [(35_000, 0.02), (50_000, 0.05), (70_000, 0.09)] {
            let share = share(owed);
            assert!((1.5..2.2).contains(&(share / p_b)), "{owed} bytes: {share}");
        }
    }

    #[test]
    fn refusals_are_spaced_evenly() {
        let (mut red, mut now) = (Red::new(7), Time::ZERO);
        refused(&mut red, &mut now, 50_000, 10_000);
        let refused = refused(&mut red, &mut now, 50_000, 20_000);
        let widest = refused.windows(2).map(|pair| pair[1] - pair[0]).max();
        assert!(widest.is_some_and(|gap| (15..=20).contains(&gap)), "never more than 1/p_b: {widest:?}");
    }

    #[test]
    fn a_burst_passes_and_a_full_ring_does_not() {
        let (mut red, mut now) = (Red::new(7), Time::ZERO);
        refused(&mut red, &mut now, 0, 1_000);
        assert_eq!(refused(&mut red, &mut now, 80_000, 100), [], "the mean has not risen yet");
        assert_eq!(red.arrives(now, &owing(100_000)), Verdict::Refuse(DropReason::TailDrop));
    }

    #[test]
    fn an_idle_ring_forgets_its_load() {
        let load = |pause: Duration| {
            let (mut red, mut now) = (Red::new(7), Time::ZERO);
            refused(&mut red, &mut now, 60_000, 5_000);
            now = now + pause;
            red.arrives(now, &owing(0));
            red.mean_scaled >> RED_WEIGHT_LOG2
        };
        let (before, after) = (load(EVERY), load(Duration::from_secs(2)));
        assert!((59_000..60_000).contains(&before), "{before}");
        // 1000 packets' time: (1 - 1/512)^1000 = 0.1415.
        assert!((8_000..9_000).contains(&after), "{after}");
        assert_eq!(left_after(u64::MAX), 0);
    }

    #[test]
    fn the_same_seed_refuses_the_same_packets() {
        let with = |seed| {
            let (mut red, mut now) = (Red::new(seed), Time::ZERO);
            refused(&mut red, &mut now, 50_000, 5_000)
        };
        assert_eq!(with(1), with(1));
        assert_ne!(with(1), with(2));
    }
}
