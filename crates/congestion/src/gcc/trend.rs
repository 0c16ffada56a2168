//! Whether packets wait longer and longer: a trendline through the delay, in place of the filter of section 5.3, and
//! the detector of section 5.4.
//!
//! A line through the smoothed delays of the last groups is what libwebrtc has instead; its slope is how much longer the
//! queue becomes with time. The threshold follows what is seen, so that a flow of TCP, whose queue goes up and down,
//! does not take all. It does so by the gains of the draft (section 5.6). Libwebrtc's of today let the threshold fall
//! two hundred times as fast: then the queue runs empty sooner on a way that became narrow, but at seven bottlenecks
//! a flow had 0.02 to 0.18 of the rate of one of TCP beside it, where it has 0.13 to 2.4 by those of the draft.

use super::groups::Apart;

/// Groups that the line goes through.
const POINTS: usize = 20;

/// How much of the smoothed delay stays with a new group.
const SMOOTHING: f64 = 0.9;

/// The slope, times the groups so far, times that is what the threshold is for, in milliseconds.
const GAIN: f64 = 4.0;
const GROUPS_MAX: u32 = 60;

/// The threshold in milliseconds at first, and between what (section 5.4).
const THRESHOLD: f64 = 12.5;
const THRESHOLD_LEAST: f64 = 6.0;
const THRESHOLD_MOST: f64 = 600.0;

/// How fast it follows what is beyond it, and what is below it, a millisecond (K_u and K_d of section 5.4).
const GAIN_UP: f64 = 0.01;
const GAIN_DOWN: f64 = 0.00018;

/// What is so much beyond it is no reason to raise it (section 5.4); and longest time that counts, in milliseconds.
const BEYOND: f64 = 15.0;
const ADAPTS_MS: f64 = 100.0;

/// For how long packets wait longer, in milliseconds, before that is told (section 5.4).
const OVER_MS: f64 = 10.0;

/// What the detector tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Usage {
    #[default]
    Normal,
    /// More is sent than the way carries.
    Over,
    /// What waited runs empty.
    Under,
}

/// The line, and the detector.
#[derive(Debug, Clone)]
pub(super) struct Trend {
    /// When groups arrived, and their smoothed delay, in milliseconds since the first one.
    points: [(f64, f64); POINTS],
    groups: u32,
    /// Where the next point stands.
    next: usize,
    first_us: i64,
    delay_ms: f64,
    smoothed_ms: f64,
    slope: f64,
    threshold: f64,
    at_ms: f64,
    /// For how long it is over the threshold, and of how many groups.
    over: Option<(f64, u32)>,
    usage: Usage,
}

impl Trend {
    pub(super) fn new() -> Self {
        Trend {
            points: [(0.0, 0.0); POINTS],
            groups: 0,
            next: 0,
            first_us: 0,
            delay_ms: 0.0,
            smoothed_ms: 0.0,
            slope: 0.0,
            threshold: THRESHOLD,
            at_ms: 0.0,
            over: None,
            usage: Usage::Normal,
        }
    }

    pub(super) fn usage(&self) -> Usage {
        self.usage
    }

    /// Two groups arrived one after the other.
    pub(super) fn note(&mut self, apart: Apart) {
        if self.groups == 0 {
            self.first_us = apart.at_us;
        }
        self.groups = self.groups.saturating_add(1);
        let at_ms = ms(apart.at_us.wrapping_sub(self.first_us));
        self.delay_ms += ms(apart.received_us.saturating_sub(apart.sent_us));
        self.smoothed_ms = SMOOTHING * self.smoothed_ms + (1.0 - SMOOTHING) * self.delay_ms;
        self.points[self.next] = (at_ms, self.smoothed_ms);
        self.next = (self.next + 1) % POINTS;
        let before = self.slope;
        if self.groups as usize >= POINTS {
            self.slope = slope(&self.points).unwrap_or(before);
        }
        if self.groups >= 2 {
            self.detect(before, ms(apart.sent_us));
            self.adapt(at_ms);
        }
        self.at_ms = at_ms;
    }

    /// What the threshold is for.
    fn scaled(&self) -> f64 {
        f64::from(self.groups.min(GROUPS_MAX)) * self.slope * GAIN
    }

    fn detect(&mut self, before: f64, sent_ms: f64) {
        let scaled = self.scaled();
        if scaled <= self.threshold {
            self.over = None;
            self.usage = if scaled < -self.threshold { Usage::Under } else { Usage::Normal };
            return;
        }
        // Of the time before the first group that was over it, half.
        let (lasts_ms, groups) =
            self.over.map_or((sent_ms / 2.0, 1), |(for_ms, n)| (for_ms + sent_ms, n + 1));
        self.over = Some((lasts_ms, groups));
        if lasts_ms > OVER_MS && groups > 1 && self.slope >= before {
            self.over = Some((0.0, 0));
            self.usage = Usage::Over;
        }
    }

    fn adapt(&mut self, at_ms: f64) {
        let scaled = self.scaled().abs();
        if scaled > self.threshold + BEYOND {
            return;
        }
        let gain = if scaled < self.threshold { GAIN_DOWN } else { GAIN_UP };
        let passed = (at_ms - self.at_ms).clamp(0.0, ADAPTS_MS);
        self.threshold += gain * (scaled - self.threshold) * passed;
        self.threshold = self.threshold.clamp(THRESHOLD_LEAST, THRESHOLD_MOST);
    }
}

fn ms(micros: i64) -> f64 {
    micros as f64 / 1000.0
}

/// The slope of the line with the least squares; none if all points lie above each other.
fn slope(points: &[(f64, f64)]) -> Option<f64> {
    let count = points.len() as f64;
    let (x_sum, y_sum) = points.iter().fold((0.0, 0.0), |(x, y), point| (x + point.0, y + point.1));
    let (x_mean, y_mean) = (x_sum / count, y_sum / count);
    let (above, below) = points.iter().fold((0.0, 0.0), |(above, below), (x, y)| {
        (above + (x - x_mean) * (y - y_mean), below + (x - x_mean).powi(2))
    });
    (below > 0.0).then(|| above / below)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Groups that are sent 20 ms apart; the time between their arrivals is so much longer, in microseconds.
    fn noted(trend: &mut Trend, groups: i64, longer_us: impl Fn(i64) -> i64) -> Vec<Usage> {
        let mut at_us = trend.first_us + (trend.at_ms * 1000.0) as i64;
        let mut told = Vec::new();
        for group in 0..groups {
            let received_us = 20_000 + longer_us(group);
            at_us += received_us;
            trend.note(Apart { sent_us: 20_000, received_us, at_us });
            told.push(trend.usage());
        }
        told
    }

    #[test]
    fn a_line_has_its_slope() {
        let points: Vec<_> = (0..20).map(|n| (f64::from(n) * 20.0, f64::from(n) * 2.0 + 7.0)).collect();
        assert!((slope(&points).expect("a line") - 0.1).abs() < 1e-9);
        assert_eq!(slope(&[(1.0, 2.0), (1.0, 3.0)]), None);
    }

    #[test]
    fn a_queue_that_grows_is_over_and_one_that_runs_empty_is_under() {
        let mut trend = Trend::new();
        let steady = noted(&mut trend, 100, |_| 0);
        assert!(steady.iter().all(|usage| *usage == Usage::Normal));
        let grows = noted(&mut trend, 30, |_| 2_000);
        let first = grows.iter().position(|usage| *usage == Usage::Over).expect("it grows");
        assert!((5..25).contains(&first), "{first}");
        let empties = noted(&mut trend, 40, |_| -2_000);
        assert_eq!(empties.last(), Some(&Usage::Under));
        assert_eq!(noted(&mut trend, 60, |_| 0).last(), Some(&Usage::Normal));
    }

    #[test]
    fn jitter_is_neither() {
        let mut trend = Trend::new();
        let jitter = |group: i64| (group * 7919 % 11 - 5) * 1000 - ((group - 1) * 7919 % 11 - 5) * 1000;
        assert!(noted(&mut trend, 500, jitter).iter().all(|usage| *usage == Usage::Normal));
    }

    #[test]
    fn the_threshold_follows_what_is_near_it_and_not_a_leap() {
        let mut trend = Trend::new();
        noted(&mut trend, 1000, |_| 0);
        assert!((trend.threshold - THRESHOLD_LEAST).abs() < 0.01, "{}", trend.threshold);
        noted(&mut trend, 100, |_| 1_000);
        let risen = trend.threshold;
        assert!(risen > 1.5 * THRESHOLD_LEAST, "it rises fast: {risen}");
        noted(&mut trend, 30, |_| 0);
        assert!(trend.threshold > 0.8 * risen, "it falls slowly: {}", trend.threshold);
        let before = trend.threshold;
        noted(&mut trend, 20, |group| if group == 0 { 400_000 } else { 0 });
        assert!(trend.scaled() > 100.0 && trend.threshold < before + 5.0, "{}", trend.threshold);
    }
}
