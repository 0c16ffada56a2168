//! How long packets waited at a link: quantiles of the last seconds, in little memory.

use core::time::Duration;

use outflow_media::Time;

use crate::limits::DELAYS_OVER;

/// Buckets: four to each doubling, from 16 us on, so that a quantile is at most a quarter too high.
const BUCKETS: usize = 96;

/// How long packets waited, those of the last [`DELAYS_OVER`] and of as long before.
#[derive(Debug, Clone)]
pub struct Delays {
    since: Time,
    now: ([u64; BUCKETS], Duration),
    before: ([u64; BUCKETS], Duration),
}

impl Delays {
    /// None yet, from this time on.
    pub fn new(since: Time) -> Self {
        let none = ([0; BUCKETS], Duration::ZERO);
        Delays { since, now: none, before: none }
    }

    /// A packet went now that had waited for so long.
    pub fn add(&mut self, now: Time, delay: Duration) {
        if now.since(self.since) >= DELAYS_OVER {
            *self = Delays { before: self.now, ..Delays::new(now) };
        }
        self.now.0[bucket(delay)] += 1;
        self.now.1 = self.now.1.max(delay);
    }

    /// The longest of them.
    pub fn max(&self) -> Duration {
        self.now.1.max(self.before.1)
    }

    /// How long these parts of the packets waited at most, 0.5 for half of them.
    pub fn quantiles<const N: usize>(&self, wanted: [f64; N]) -> [Duration; N] {
        let count = |bucket: usize| self.now.0[bucket] + self.before.0[bucket];
        let all: u64 = (0..BUCKETS).map(count).sum();
        wanted.map(|share| {
            let wanted = (all as f64 * share).ceil().max(1.0) as u64;
            let mut sum = 0;
            let found = (0..BUCKETS).find(|&bucket| {
                sum += count(bucket);
                sum >= wanted
            });
            found.map_or(Duration::ZERO, |bucket| upper(bucket).min(self.max()))
        })
    }
}

fn bucket(delay: Duration) -> usize {
    let parts = (delay.as_micros() / 4).max(4);
    // The highest bit, and the two behind it.
    let octave = parts.ilog2() - 2;
    let quarter = (parts >> octave) as usize & 3;
    (octave as usize * 4 + quarter).min(BUCKETS - 1)
}

/// The longest delay of a bucket.
fn upper(bucket: usize) -> Duration {
    let parts = (bucket as u64 % 4 + 5) << (bucket / 4);
    Duration::from_micros(parts * 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_at_most_a_quarter_too_high() {
        for us in [0, 15, 16, 17, 100, 999, 5_000, 1_000_000, 90_000_000] {
            let delay = Duration::from_micros(us);
            let found = upper(bucket(delay));
            assert!(found >= delay, "{us}: {found:?}");
            assert!(
                found <= delay.max(Duration::from_micros(16)) * 5 / 4 + Duration::from_micros(4),
                "{us}: {found:?}"
            );
        }
    }

    #[test]
    fn quantiles_are_those_of_the_last_seconds() {
        let mut delays = Delays::new(Time::ZERO);
        (1..=100).for_each(|ms| delays.add(Time::ZERO, Duration::from_millis(ms)));
        let [half, most] = delays.quantiles([0.5, 0.99]);
        assert!((50..=63).contains(&half.as_millis()), "{half:?}");
        assert!((99..=100).contains(&most.as_millis()), "{most:?}");
        let mut now = Time::ZERO;
        for _ in 0..2 {
            now = now + DELAYS_OVER;
            delays.add(now, Duration::from_millis(1));
        }
        assert_eq!(delays.max(), Duration::from_millis(1), "the others are long ago");
    }
}
