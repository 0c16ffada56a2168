//! A token bucket: what may pass at a rate.

use outflow_media::Time;

const NANOS: i128 = 1_000_000_000;

/// Fills by its rate, up to its burst. What passes is taken out; the last to pass may leave it in debt.
#[derive(Debug, Clone)]
pub(super) struct Bucket {
    rate_bps: u64,
    burst_bits: i128,
    level: Level,
}

/// How full a bucket is, and since when.
#[derive(Debug, Clone, Copy)]
pub(super) struct Level {
    /// In bits, times [`NANOS`]: filling loses no fraction.
    tokens: i128,
    at: Option<Time>,
}

impl Bucket {
    /// A full one.
    pub(super) fn new(rate_bps: u64, burst_bytes: u64) -> Self {
        let burst_bits = i128::from(burst_bytes) * 8;
        Bucket { rate_bps, burst_bits, level: Level { tokens: burst_bits * NANOS, at: None } }
    }

    /// Fills it with what came since it was asked last.
    pub(super) fn fill(&mut self, now: Time) {
        let passed = now.since(self.level.at.unwrap_or(now));
        let more = i128::from(self.rate_bps) * i128::from(passed.as_nanos() as u64);
        self.level.tokens = (self.level.tokens + more).min(self.burst_bits * NANOS);
        self.level.at = Some(now);
    }

    /// Whether more than `parts` of 128 parts of it are full.
    pub(super) fn has_more_than(&self, parts: u8) -> bool {
        self.level.tokens * 128 > self.burst_bits * NANOS * i128::from(parts)
    }

    /// Takes out what passes.
    pub(super) fn take(&mut self, bytes: usize) {
        self.level.tokens -= bytes as i128 * 8 * NANOS;
    }

    pub(super) fn level(&self) -> Level {
        self.level
    }

    pub(super) fn resume(&mut self, level: Level) {
        self.level = Level { tokens: level.tokens.min(self.burst_bits * NANOS), ..level };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_fills_by_its_rate_up_to_its_burst() {
        let mut bucket = Bucket::new(8_000, 100);
        bucket.fill(Time::from_millis(5));
        bucket.take(150);
        assert!(!bucket.has_more_than(0), "50 bytes of debt");
        bucket.fill(Time::from_millis(55));
        assert!(!bucket.has_more_than(0), "50 ms bring 50 bytes");
        bucket.fill(Time::from_millis(106));
        assert!(bucket.has_more_than(64) && !bucket.has_more_than(66));
        bucket.fill(Time::from_millis(100_000));
        bucket.take(100);
        assert!(!bucket.has_more_than(0), "no more than the burst");
    }
}
