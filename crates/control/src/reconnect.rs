//! How long to wait before connecting again.

use std::time::Duration;

use outflow_media::Backoff;

use crate::limits::{RECONNECT_AGAIN, RECONNECT_GOOD_AFTER, RECONNECT_WAIT_MIN};

/// How long to wait before connecting again: twice as long each time, and never quite the same, so
/// that many relays do not come back to a server all at once.
#[derive(Debug)]
pub struct Reconnect {
    backoff: Backoff,
    random: u32,
}

impl Reconnect {
    /// One that has not failed yet; equal seeds wait alike.
    pub fn new(seed: u32) -> Self {
        Reconnect { backoff: RECONNECT_AGAIN, random: seed }
    }

    /// How long to wait after a failure; the first one again, if what failed had held for long enough to count as good.
    pub fn after(&mut self, held: Duration) -> Duration {
        if held >= RECONNECT_GOOD_AFTER {
            self.backoff.reset();
        }
        self.wait()
    }

    fn wait(&mut self) -> Duration {
        let wait = self.backoff.wait();
        // Between all of it and half; the constants are those of Numerical Recipes.
        self.random = self.random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (wait - wait / 2 * (self.random >> 16) / (1 << 16)).max(RECONNECT_WAIT_MIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::RECONNECT_WAIT_MAX;

    #[test]
    fn waiting_grows_up_to_its_limit_and_begins_again_after_a_success() {
        let mut reconnect = Reconnect::new(7);
        let waits: Vec<_> = (0..40).map(|_| reconnect.wait()).collect();
        assert_eq!(waits[0], RECONNECT_WAIT_MIN);
        assert!(waits.iter().all(|wait| (RECONNECT_WAIT_MIN..=RECONNECT_WAIT_MAX).contains(wait)));
        assert!(waits[10..].iter().all(|wait| *wait >= RECONNECT_WAIT_MAX / 2));
        assert!(waits[10..].windows(2).any(|pair| pair[0] != pair[1]), "never quite the same");
        reconnect.backoff.reset();
        assert_eq!(reconnect.wait(), RECONNECT_WAIT_MIN);
    }

    #[test]
    fn what_has_held_for_long_fails_for_the_first_time_again() {
        let mut reconnect = Reconnect::new(7);
        let soon = RECONNECT_GOOD_AFTER - Duration::from_millis(1);
        let waits: Vec<_> = (0..40).map(|_| reconnect.after(soon)).collect();
        assert!(waits[10..].iter().all(|wait| *wait >= RECONNECT_WAIT_MAX / 2));
        assert_eq!(reconnect.after(RECONNECT_GOOD_AFTER), RECONNECT_WAIT_MIN);
    }

    #[test]
    fn the_same_seed_waits_the_same() {
        let waits = |seed| {
            let mut reconnect = Reconnect::new(seed);
            (0..9).map(|_| reconnect.wait()).collect::<Vec<_>>()
        };
        assert_eq!(waits(3), waits(3));
        assert_ne!(waits(3), waits(4));
    }
}
