//! How many frames are missing between two that came.

use crate::limits::MISSING_FRAMES_MAX;
use crate::y4m::Rate;

use super::CLOCK_RATE;

/// Follows the timestamps of a video of even pace.
#[derive(Debug, Clone)]
pub struct Timeline {
    rate: Rate,
    last: Option<u32>,
}

impl Timeline {
    /// Of `rate` frames a second.
    pub fn new(rate: Rate) -> Self {
        Timeline { rate, last: None }
    }

    /// A frame came: how many should have come between the last one and this. None, where it is before the
    /// last one, or so far behind it ([`MISSING_FRAMES_MAX`]) that the source has restarted.
    pub fn frame(&mut self, timestamp: u32) -> u32 {
        let Some(last) = self.last.replace(timestamp) else { return 0 };
        let ticks = timestamp.wrapping_sub(last).cast_signed();
        let frames = f64::from(ticks) * self.rate.per_second() / f64::from(CLOCK_RATE);
        let missing = frames.round() - 1.0;
        if (0.0..=f64::from(MISSING_FRAMES_MAX)).contains(&missing) { missing as u32 } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_missed_where_time_goes_by_without_them() {
        let mut timeline = Timeline::new(Rate::parse("30000:1001").expect("valid"));
        let begin = u32::MAX - 4000;
        // A tick more or less is how timestamps are rounded.
        let frames = [0, 3003, 6005, 12_013, 12_013, 9_010, 24_025, 999_999_999, 999_999_999 + 3003];
        let missed = frames.map(|ticks| timeline.frame(begin.wrapping_add(ticks)));
        assert_eq!(missed, [0, 0, 0, 1, 0, 0, 4, 0, 0]);
    }
}
