//! Rates of what is only counted.

use crate::Time;

/// Turns a growing count into a rate, between two looks at it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Growth {
    last: u64,
    at: Time,
}

impl Growth {
    /// How much of the time since the last call, in percent, of a count of nanoseconds.
    pub fn percent(&mut self, now: Time, nanos: u64) -> f64 {
        // Bits a second of as many bytes: eight times the nanoseconds of a second.
        self.bps(now, nanos) as f64 / 8e7
    }

    /// Bits a second since the last call, of a count of bytes.
    pub fn bps(&mut self, now: Time, bytes: u64) -> u64 {
        let passed = now.since(self.at).as_nanos().max(1);
        let bits = u128::from(bytes.saturating_sub(self.last)) * 8;
        *self = Growth { last: bytes, at: now };
        (bits * 1_000_000_000 / passed) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_what_came_since_the_last_look() {
        let mut growth = Growth::default();
        assert_eq!(growth.bps(Time::from_millis(1_000), 500), 4_000);
        assert_eq!(growth.bps(Time::from_millis(1_500), 750), 4_000);
        assert_eq!(growth.bps(Time::from_millis(2_500), 750), 0);
        assert_eq!(growth.bps(Time::from_millis(3_500), 0), 0, "it began again");
        assert_eq!(Growth::default().percent(Time::from_millis(2_000), 500_000_000), 25.0);
    }
}
