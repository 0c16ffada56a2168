//! How long to wait before trying again.

use std::time::Duration;

use crate::limits::{PULL_GOOD_AFTER, PULL_WAIT_MAX, PULL_WAIT_MIN};

/// How long to wait before trying again: twice as long each time, and never quite the same, so
/// that many relays do not come back to a server all at once.
#[derive(Debug)]
pub struct Backoff {
    failures: u32,
    random: u32,
}

impl Backoff {
    /// One that has not failed yet; equal seeds wait alike.
    pub fn new(seed: u32) -> Self {
        Backoff { failures: 0, random: seed }
    }

    /// How long to wait after a failure; the first one again, if what failed had held for long enough to count as good.
    pub fn after(&mut self, held: Duration) -> Duration {
        if held >= PULL_GOOD_AFTER {
            self.reset();
        }
        self.wait()
    }

    fn reset(&mut self) {
        self.failures = 0;
    }

    fn wait(&mut self) -> Duration {
        let wait = PULL_WAIT_MIN.saturating_mul(1 << self.failures.min(16)).min(PULL_WAIT_MAX);
        self.failures = self.failures.saturating_add(1);
        // Between all of it and half; the constants are those of Numerical Recipes.
        self.random = self.random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (wait - wait / 2 * (self.random >> 16) / (1 << 16)).max(PULL_WAIT_MIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_grows_up_to_its_limit_and_begins_again_after_a_success() {
        let mut backoff = Backoff::new(7);
        let waits: Vec<_> = (0..40).map(|_| backoff.wait()).collect();
        assert_eq!(waits[0], PULL_WAIT_MIN);
        assert!(waits.iter().all(|wait| (PULL_WAIT_MIN..=PULL_WAIT_MAX).contains(wait)));
        assert!(waits[10..].iter().all(|wait| *wait >= PULL_WAIT_MAX / 2));
        assert!(waits[10..].windows(2).any(|pair| pair[0] != pair[1]), "never quite the same");
        backoff.reset();
        assert_eq!(backoff.wait(), PULL_WAIT_MIN);
    }

    #[test]
    fn what_has_held_for_long_fails_for_the_first_time_again() {
        let mut backoff = Backoff::new(7);
        let soon = PULL_GOOD_AFTER - Duration::from_millis(1);
        let waits: Vec<_> = (0..40).map(|_| backoff.after(soon)).collect();
        assert!(waits[10..].iter().all(|wait| *wait >= PULL_WAIT_MAX / 2));
        assert_eq!(backoff.after(PULL_GOOD_AFTER), PULL_WAIT_MIN);
    }

    #[test]
    fn the_same_seed_waits_the_same() {
        let waits = |seed| {
            let mut backoff = Backoff::new(seed);
            (0..9).map(|_| backoff.wait()).collect::<Vec<_>>()
        };
        assert_eq!(waits(3), waits(3));
        assert_ne!(waits(3), waits(4));
    }
}
