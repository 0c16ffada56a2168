//! Pacing by a token bucket: of a datagram receiver that catches up from the key frame it joined at
//! (a burst at once, the rest at a multiple of the stream's rate, because a UDP socket's buffer is
//! small), and of receivers that asked for bursts to be spread out.

use outflow_media::{Rate, Time, TokenBucket};

use crate::limits::{
    CATCH_UP_BPS_MIN, CATCH_UP_BURST_BYTES, CATCH_UP_SPEED, PACE_BURST_BYTES_MIN, PACE_BURST_TIME,
};

/// The bytes that may be sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    bytes: TokenBucket,
    /// A quarter of the burst: by so much a wait is worth while, so that wake-ups stay few.
    worth_while: i64,
}

/// The rate at which a receiver catches up with a stream of `stream_bps`.
pub(crate) fn catch_up_bps(stream_bps: u64) -> u64 {
    (stream_bps * CATCH_UP_SPEED).max(CATCH_UP_BPS_MIN)
}

impl Pace {
    fn new(burst: usize) -> Self {
        Pace { bytes: TokenBucket::new(burst as u64), worth_while: burst as i64 / 4 }
    }

    /// For catching up.
    pub(crate) fn catch_up() -> Self {
        Pace::new(CATCH_UP_BURST_BYTES)
    }

    /// For spreading bursts out at `bps`: a packet or two, or what a millisecond brings.
    pub(crate) fn smooth(bps: u64) -> Self {
        let bytes = u128::from(bps) * PACE_BURST_TIME.as_nanos() / 8_000_000_000;
        Pace::new((bytes as usize).clamp(PACE_BURST_BYTES_MIN, CATCH_UP_BURST_BYTES))
    }

    /// How many bytes may be sent now, at `bps`; or when to ask again.
    pub(crate) fn allowance(&mut self, now: Time, bps: u64) -> Result<usize, Time> {
        let rate = Rate::per_second((bps / 8).max(1));
        self.bytes.fill(now, rate);
        match self.bytes.tokens() {
            bytes @ 1.. => Ok(bytes as usize),
            _ => Err(now + self.bytes.wait_for(self.worth_while, rate)),
        }
    }

    /// Accounts for `bytes` that were sent; may go below zero by one packet.
    pub(crate) fn spend(&mut self, bytes: usize) {
        self.bytes.take(bytes as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_at_once_then_a_multiple_of_the_rate() {
        let mut pace = Pace::catch_up();
        let bps = catch_up_bps(8_000_000);
        assert_eq!(pace.allowance(Time::ZERO, bps), Ok(CATCH_UP_BURST_BYTES));
        pace.spend(CATCH_UP_BURST_BYTES);
        let again = pace.allowance(Time::ZERO, bps).expect_err("spent");
        let earned = pace.allowance(again, bps).expect("earned by then");
        assert!((CATCH_UP_BURST_BYTES / 4..CATCH_UP_BURST_BYTES / 2).contains(&earned), "{earned}");
        let rate = earned as f64 * 8.0 / again.as_nanos() as f64 * 1e9;
        assert!((rate - 64e6).abs() < 1e5, "{rate}");
    }

    #[test]
    fn spread_out_means_a_millisecond_at_most_at_once() {
        let mut now = Time::ZERO;
        let mut pace = Pace::smooth(80_000_000);
        let mut sent = 0;
        while sent < 1_000_000 {
            match pace.allowance(now, 80_000_000) {
                Ok(bytes) => {
                    assert!(bytes <= 10_000, "{bytes}");
                    pace.spend(bytes);
                    sent += bytes;
                }
                Err(later) => now = later,
            }
        }
        // 1 MB at 10 MB/s, less the burst at the beginning.
        assert!(now >= Time::from_millis(98) && now <= Time::from_millis(101), "{now:?}");
    }
}
