//! Pacing of a datagram receiver while it catches up from the key frame it joined at: a burst at
//! once, the rest at a multiple of the stream's rate, because a UDP socket's buffer is small.

use core::time::Duration;

use outflow_media::Time;

use crate::limits::{CATCH_UP_BPS_MIN, CATCH_UP_BURST_BYTES, CATCH_UP_SPEED};

/// A token bucket that begins full.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    tokens: i64,
    filled: Time,
}

impl Pace {
    pub(crate) fn new(now: Time) -> Self {
        Pace { tokens: CATCH_UP_BURST_BYTES as i64, filled: now }
    }

    /// How many bytes may be sent now, for a stream of `stream_bps`; or when to ask again.
    pub(crate) fn allowance(&mut self, now: Time, stream_bps: u64) -> Result<usize, Time> {
        let bytes_per_s = (stream_bps * CATCH_UP_SPEED).max(CATCH_UP_BPS_MIN) / 8;
        let earned = u128::from(bytes_per_s) * now.since(self.filled).as_nanos() / 1_000_000_000;
        self.tokens = (self.tokens + earned.min(1 << 40) as i64).min(CATCH_UP_BURST_BYTES as i64);
        self.filled = now;
        if self.tokens > 0 {
            return Ok(self.tokens as usize);
        }
        // Wait until a quarter of a burst is earned, so that wake-ups stay few.
        let missing = (CATCH_UP_BURST_BYTES as i64 / 4 - self.tokens) as u64;
        Err(now + Duration::from_nanos(missing * 1_000_000_000 / bytes_per_s + 1))
    }

    /// Accounts for `bytes` that were sent; may go below zero by one packet.
    pub(crate) fn spend(&mut self, bytes: usize) {
        self.tokens -= bytes as i64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_at_once_then_a_multiple_of_the_rate() {
        let mut pace = Pace::new(Time::ZERO);
        assert_eq!(pace.allowance(Time::ZERO, 8_000_000), Ok(CATCH_UP_BURST_BYTES));
        pace.spend(CATCH_UP_BURST_BYTES);
        let again = pace.allowance(Time::ZERO, 8_000_000).expect_err("spent");
        let earned = pace.allowance(again, 8_000_000).expect("earned by then");
        assert!((CATCH_UP_BURST_BYTES / 4..CATCH_UP_BURST_BYTES / 2).contains(&earned), "{earned}");
        let rate = earned as f64 * 8.0 / again.as_nanos() as f64 * 1e9;
        assert!((rate - 64e6).abs() < 1e5, "{rate}");
    }
}
