//! How long to wait before another try.

use core::time::Duration;

/// Waits that double with each failure, from the first to the longest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
    next: Duration,
}

impl Backoff {
    /// One that has not failed yet.
    pub const fn new(first: Duration, longest: Duration) -> Self {
        Backoff { first, longest, next: first }
    }

    /// How long to wait after a failure; the next one waits twice as long.
    pub fn wait(&mut self) -> Duration {
        let wait = self.next;
        self.next = wait.saturating_mul(2).min(self.longest);
        wait
    }

    /// It has succeeded: the next failure counts as the first one.
    pub fn reset(&mut self) {
        self.next = self.first;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest_and_begin_again_after_a_success() {
        let mut backoff = Backoff::new(Duration::from_millis(300), Duration::from_secs(1));
        let waits: Vec<_> = (0..4).map(|_| backoff.wait().as_millis()).collect();
        assert_eq!(waits, [300, 600, 1000, 1000]);
        backoff.reset();
        assert_eq!(backoff.wait().as_millis(), 300);
    }
}
