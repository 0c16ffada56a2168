//! Heartbeats: a thread or task says that it goes on, and others see for how long it has not.

use core::time::Duration;
use std::sync::atomic::{AtomicU64, Ordering};

use outflow_media::Time;

/// When something last said that it goes on.
#[derive(Debug, Default)]
pub struct Beat(AtomicU64);

impl Beat {
    /// It goes on.
    pub fn strike(&self, now: Time) {
        self.0.store(now.as_nanos(), Ordering::Relaxed);
    }

    /// When it has to say so again, if it does as often as this.
    pub fn due(&self, every: Duration) -> Time {
        self.last() + every
    }

    /// How long it has not said so.
    pub fn silence(&self, now: Time) -> Duration {
        now.since(self.last())
    }

    fn last(&self) -> Time {
        Time::from_nanos(self.0.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_is_counted_from_the_last_beat() {
        let beat = Beat::default();
        assert_eq!(
            beat.silence(Time::from_millis(70)),
            Duration::from_millis(70),
            "from the start, if none was"
        );
        beat.strike(Time::from_millis(90));
        assert_eq!(beat.silence(Time::from_millis(100)), Duration::from_millis(10));
        assert_eq!(
            beat.silence(Time::from_millis(80)),
            Duration::ZERO,
            "it was faster than the one that looks"
        );
    }
}
