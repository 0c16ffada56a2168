//! Heartbeats: a thread or task says that it goes on, and others see for how long it has not; and for how long it has
//! had more to do than it gets done.

use core::time::Duration;
use std::sync::atomic::{AtomicU64, Ordering};

use outflow_media::Time;

/// When something last said that it goes on, and that it had done all.
#[derive(Debug, Default)]
pub struct Beat {
    last: AtomicU64,
    through: AtomicU64,
}

impl Beat {
    /// It goes on.
    pub fn strike(&self, now: Time) {
        self.last.store(now.as_nanos(), Ordering::Relaxed);
    }

    /// It has nothing left to do from before.
    pub fn is_through(&self, now: Time) {
        self.through.store(now.as_nanos(), Ordering::Relaxed);
    }

    /// How long it had been at work without a pause when it last said that it goes on. What comes to it may have to
    /// wait that long.
    pub fn lag(&self) -> Duration {
        self.last().since(Time::from_nanos(self.through.load(Ordering::Relaxed)))
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
        Time::from_nanos(self.last.load(Ordering::Relaxed))
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

    #[test]
    fn one_lags_that_goes_on_and_is_never_through() {
        let beat = Beat::default();
        let turn = |ms, is_through| {
            beat.strike(Time::from_millis(ms));
            if is_through {
                beat.is_through(Time::from_millis(ms));
            }
            beat.lag()
        };
        assert_eq!(turn(10, true), Duration::ZERO);
        assert_eq!(turn(11, false), Duration::from_millis(1));
        assert_eq!(turn(2000, false), Duration::from_millis(1990));
        assert_eq!(turn(2001, true), Duration::ZERO, "it has slept, or worked all off");
    }
}
