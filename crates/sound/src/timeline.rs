//! Where frames belong on the timeline, by their times and by how many samples there were.

use crate::limits::{DRIFT_TICKS_MAX, GAP_TICKS_MIN, LEAP_TICKS_MAX};

/// Ticks a second of the timeline.
pub(crate) const TICKS: i64 = 90_000;

/// Times are kept this near to zero, so that sums of a few of them fit their type.
const TIME_MAX: i64 = 1 << 60;

/// A run of samples without a break.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timeline {
    /// Presentation time of its first sample.
    began: i64,
    /// Samples that were fed since.
    fed: i64,
    frequency_hz: i64,
}

/// What is to be done with a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// It is where it is expected.
    Here,
    /// The source's clock is ahead of its samples: one more is wanted.
    Longer,
    /// The source's clock is behind its samples: one is too many.
    Shorter,
    /// This number of samples is missing in front of it.
    Behind(usize),
    /// The time of this number of samples at its beginning is over.
    Late(usize),
    /// It has nothing to do with what was before it.
    Elsewhere,
}

impl Timeline {
    /// A run that begins at this time.
    pub(crate) fn new(pts: i64, frequency_hz: u32) -> Self {
        Timeline { began: near(pts), fed: 0, frequency_hz: i64::from(frequency_hz.max(1)) }
    }

    /// When its first sample is presented.
    pub(crate) const fn began(&self) -> i64 {
        self.began
    }

    /// Samples were fed, of each channel.
    pub(crate) fn feed(&mut self, samples: usize) {
        self.fed += i64::try_from(samples).unwrap_or(0);
    }

    /// What is to be done with a frame of this time.
    pub(crate) fn place(&self, pts: i64) -> Place {
        let ahead = near(pts) - self.expected();
        match (ahead.abs(), ahead > 0) {
            (..=DRIFT_TICKS_MAX, _) => Place::Here,
            (..GAP_TICKS_MIN, true) => Place::Longer,
            (..GAP_TICKS_MIN, false) => Place::Shorter,
            (..=LEAP_TICKS_MAX, true) => Place::Behind(self.samples(ahead)),
            (..=LEAP_TICKS_MAX, false) => Place::Late(self.samples(-ahead)),
            _ => Place::Elsewhere,
        }
    }

    /// When the next sample is presented, if the source's clock goes as its samples do.
    fn expected(&self) -> i64 {
        let ticks = i128::from(self.fed) * i128::from(TICKS) / i128::from(self.frequency_hz);
        self.began + near(i64::try_from(ticks).unwrap_or(i64::MAX))
    }

    fn samples(&self, ticks: i64) -> usize {
        usize::try_from((ticks * self.frequency_hz + TICKS / 2) / TICKS).unwrap_or(0)
    }
}

fn near(ticks: i64) -> i64 {
    ticks.clamp(-TIME_MAX, TIME_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One second at 44.1 kHz has gone.
    fn timeline() -> Timeline {
        let mut timeline = Timeline::new(1_000, 44_100);
        timeline.feed(44_100);
        timeline
    }

    #[test]
    fn frames_that_tremble_are_where_they_are_expected() {
        for pts in [91_000, 91_000 - DRIFT_TICKS_MAX, 91_000 + DRIFT_TICKS_MAX] {
            assert_eq!(timeline().place(pts), Place::Here, "{pts}");
        }
    }

    #[test]
    fn a_clock_that_drifts_is_followed_a_sample_at_a_time() {
        assert_eq!(timeline().place(91_000 + DRIFT_TICKS_MAX + 1), Place::Longer);
        assert_eq!(timeline().place(91_000 - DRIFT_TICKS_MAX - 1), Place::Shorter);
    }

    #[test]
    fn what_is_missing_and_what_is_too_late_is_told_in_samples() {
        assert_eq!(timeline().place(91_000 + 9_000), Place::Behind(4_410));
        assert_eq!(timeline().place(91_000 - 9_000), Place::Late(4_410));
    }

    #[test]
    fn a_leap_is_no_gap() {
        assert_eq!(timeline().place(91_000 + LEAP_TICKS_MAX + 1), Place::Elsewhere);
        assert_eq!(timeline().place(91_000 - LEAP_TICKS_MAX - 1), Place::Elsewhere);
        for pts in [i64::MIN, i64::MAX] {
            assert_eq!(timeline().place(pts), Place::Elsewhere);
            assert_eq!(Timeline::new(pts, 0).place(pts), Place::Here);
            assert_eq!(Timeline::new(pts, 48_000).place(0), Place::Elsewhere);
        }
    }
}
