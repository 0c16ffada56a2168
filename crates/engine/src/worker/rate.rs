//! Rates of what is only counted.

use outflow_media::Time;

/// Turns a growing count into a rate, between two snapshots.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Rate {
    last: u64,
    at: Time,
}

impl Rate {
    /// How much of the time since the last call, in percent, of a count of nanoseconds.
    pub(super) fn percent(&mut self, now: Time, nanos: u64) -> f64 {
        // Bits a second of as many bytes: eight times the nanoseconds of a second.
        self.bps(now, nanos) as f64 / 8e7
    }

    /// Bits a second since the last call, of a count of bytes.
    pub(super) fn bps(&mut self, now: Time, bytes: u64) -> u64 {
        let passed = now.since(self.at).as_nanos().max(1);
        let bits = u128::from(bytes.saturating_sub(self.last)) * 8;
        *self = Rate { last: bytes, at: now };
        (bits * 1_000_000_000 / passed) as u64
    }
}
