//! The window of a CUBIC flow (RFC 9438): what is used beside a competing flow that fills the queue.

use core::time::Duration;

use outflow_media::Time;

/// What is kept of the window after a loss (section 4.6).
pub(super) const BETA: f64 = 0.7;

/// How fast it grows, in segments a cubic second (section 5).
const C: f64 = 0.4;

/// Growth in a round trip of a window that is as fair to Reno as one that grows by a segment and is halved
/// (section 4.3).
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

/// Windows in segments.
#[derive(Debug, Clone, Default)]
pub(super) struct Cubic {
    epoch: Time,
    /// Where the last loss was, and where the curve is flat.
    most: f64,
    /// Seconds until then.
    until: f64,
    /// What Reno would have.
    reno: f64,
}

impl Cubic {
    /// Begins at `window`, while the share of the competing flow is unknown.
    pub(super) fn begin(&mut self, now: Time, window: f64) {
        *self = Cubic { epoch: now, most: window, until: 0.0, reno: window };
    }

    /// The window after a loss (sections 4.6 and 4.7).
    pub(super) fn lost(&mut self, now: Time, window: f64) -> f64 {
        let most = if window < self.most { window * (1.0 + BETA) / 2.0 } else { window };
        let kept = window * BETA;
        *self = Cubic { epoch: now, most, until: ((most - kept).max(0.0) / C).cbrt(), reno: kept };
        kept
    }

    /// The window after `segments` segments were acknowledged.
    pub(super) fn acked(&mut self, now: Time, window: f64, segments: f64, rtt: Duration) -> f64 {
        let alpha = if self.reno < self.most { ALPHA } else { 1.0 };
        self.reno += alpha * segments / window.max(1.0);
        let time = (now.since(self.epoch) + rtt).as_secs_f64() - self.until;
        let target = (C * time * time * time + self.most).clamp(window, 1.5 * window);
        (window + (target - window) / window.max(1.0) * segments).max(self.reno.min(1.5 * window))
    }

    /// Time in which nothing waited to be sent does not count (section 5.8).
    pub(super) fn paused(&mut self, now: Time, pause: Duration) {
        self.epoch = (self.epoch + pause).min(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    /// Seconds until the window that was lost at is reached again.
    fn recovers_after(most: f64) -> f64 {
        let mut cubic = Cubic::default();
        let mut window = cubic.lost(Time::ZERO, most);
        assert!((window - most * BETA).abs() < 1e-9);
        let mut rounds = 0;
        while window < most {
            rounds += 1;
            window = cubic.acked(Time::ZERO + RTT * rounds, window, window, RTT);
        }
        f64::from(rounds) * RTT.as_secs_f64()
    }

    #[test]
    fn large_windows_recover_in_cubic_time_and_small_ones_as_reno() {
        let k = (1000.0 * 0.3 / C).cbrt();
        assert!((recovers_after(1000.0) - k).abs() < 0.5, "{}", recovers_after(1000.0));
        let reno = 10.0 * 0.3 / ALPHA * RTT.as_secs_f64();
        assert!((recovers_after(10.0) - reno).abs() < 0.2, "{}", recovers_after(10.0));
    }

    #[test]
    fn a_loss_before_the_last_one_gives_room_to_others() {
        let mut cubic = Cubic::default();
        cubic.lost(Time::ZERO, 100.0);
        assert_eq!(cubic.most, 100.0);
        cubic.lost(Time::from_millis(100), 80.0);
        assert!((cubic.most - 68.0).abs() < 1e-9);
    }
}
