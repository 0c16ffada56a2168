//! How many bits a second pass.

use outflow_media::Time;

use crate::limits::RATE_WINDOW;

/// Counts bytes, and tells the rate of the last whole window.
#[derive(Debug, Clone, Copy, Default)]
pub struct Meter {
    began: Time,
    bytes: u64,
    bps: u64,
    whole: bool,
}

impl Meter {
    /// Counts `bytes` that pass at `now`.
    pub fn add(&mut self, now: Time, bytes: usize) {
        self.roll(now);
        self.bytes += bytes as u64;
    }

    /// Bits a second; before the first window is over, of what came so far.
    pub fn bps(&self, now: Time) -> u64 {
        let passed = now.since(self.began);
        if self.whole && passed < 2 * RATE_WINDOW {
            return self.bps;
        }
        rate(self.bytes, passed.max(RATE_WINDOW / 10))
    }

    fn roll(&mut self, now: Time) {
        let passed = now.since(self.began);
        if self.bytes == 0 && !self.whole {
            self.began = now;
        } else if passed >= RATE_WINDOW {
            self.bps = rate(self.bytes, passed);
            *self = Meter { began: now, bytes: 0, bps: self.bps, whole: true };
        }
    }
}

fn rate(bytes: u64, passed: core::time::Duration) -> u64 {
    (u128::from(bytes) * 8_000_000_000 / passed.as_nanos().max(1)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_the_rate_of_the_last_second() {
        let mut meter = Meter::default();
        for ms in 0..3_000 {
            meter.add(Time::from_millis(5_000 + ms), 500);
        }
        assert_eq!(meter.bps(Time::from_millis(8_000)), 4_000_000);
        assert_eq!(meter.bps(Time::from_millis(100_000)), 500 * 1000 * 8 / 93, "a source that fell silent");
    }
}
