//! Jitter, the same from the same seed: splitmix64, by Sebastiano Vigna, in the public domain.

use core::time::Duration;

/// A generator that the driver seeds. Nothing that has to be secret is taken from it.
#[derive(Debug, Clone)]
pub(super) struct Random(u64);

impl Random {
    pub(super) const fn new(seed: u64) -> Self {
        Random(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// At least `least`, and less than `most` if that is more.
    pub(super) fn between(&mut self, least: Duration, most: Duration) -> Duration {
        let width_ms = most.saturating_sub(least).as_millis().max(1) as u64;
        least + Duration::from_millis(self.next() % width_ms)
    }

    /// This duration and up to a quarter more.
    pub(super) fn stretched(&mut self, duration: Duration) -> Duration {
        self.between(duration, duration + duration / 4)
    }
}
