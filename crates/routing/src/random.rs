//! Delays and choices, the same from the same seed: splitmix64, by Sebastiano Vigna, in the public domain.

use core::time::Duration;

/// A generator that the driver seeds. Nothing that has to be secret is taken from it.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// Of a seed that differs from host to host.
    pub const fn new(seed: u64) -> Self {
        Random(seed)
    }

    /// The next 64 bits.
    pub const fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From no time to `longest`, in steps of a microsecond.
    pub fn delay(&mut self, longest: Duration) -> Duration {
        let steps = u64::try_from(longest.as_micros()).unwrap_or(u64::MAX).saturating_add(1);
        Duration::from_micros(self.bits() % steps)
    }

    /// From `least` to `most`, or `least` if that is more, in steps of a microsecond.
    pub fn between(&mut self, least: Duration, most: Duration) -> Duration {
        least + self.delay(most.saturating_sub(least))
    }

    /// This duration and up to a quarter more.
    pub fn stretched(&mut self, duration: Duration) -> Duration {
        self.between(duration, duration + duration / 4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_are_spread_and_never_too_long() {
        let (mut random, longest) = (Random::new(7), Duration::from_millis(100));
        let mut slots = [0; 10];
        for _ in 0..10_000 {
            let delay = random.delay(longest);
            assert!(delay <= longest);
            slots[(delay.as_micros() as usize / 10_001).min(9)] += 1;
        }
        assert!(slots.iter().all(|count| *count > 800), "{slots:?}");
        assert_eq!(random.delay(Duration::ZERO), Duration::ZERO);
    }

    #[test]
    fn a_stretched_duration_is_at_most_a_quarter_longer() {
        let (mut random, second) = (Random::new(1), Duration::from_secs(1));
        let stretched: Vec<_> = (0..1000).map(|_| random.stretched(second)).collect();
        assert!(stretched.iter().all(|long| *long >= second && *long <= second * 5 / 4));
        assert!(stretched.iter().any(|long| *long > second * 6 / 5));
        assert_eq!(random.between(second, Duration::ZERO), second);
    }
}
