//! The paper's algorithms, as printed (GMS, section III.C).

use core::time::Duration;

use outflow_media::Time;

use crate::{Arrival, Choice, Decision, Policy, Reason};

/// "averaged over a time window currently set to be one second".
const WINDOW: Duration = Duration::from_secs(1);

/// `algorithm_adapt` with `algorithm_degrade`.
///
/// The paper does not say what its threshold and MAX_DELAY were. The defaults are those of `labs/adaptation`.
#[derive(Debug, Clone)]
pub struct Paper {
    threshold: f64,
    max_delay: u32,
    recover_delay: u32,
    window: Option<Time>,
    bytes: u64,
}

impl Default for Paper {
    fn default() -> Self {
        Paper::new(0.1, 10)
    }
}

impl Paper {
    /// `threshold`: by which share less than expected may arrive. `max_delay`: after how many samples without
    /// trouble the ideal level is tried.
    pub fn new(threshold: f64, max_delay: u32) -> Self {
        Paper { threshold, max_delay, recover_delay: 0, window: None, bytes: 0 }
    }

    /// `algorithm_adapt(sample_rate)`, line by line.
    fn algorithm_adapt(&mut self, sample_rate: u64, choice: &Choice<'_>) -> u8 {
        let expected = choice.rate(choice.current);
        let diff = sample_rate as f64 - expected as f64;
        if diff < 0.0 && diff.abs() >= self.threshold * expected as f64 {
            return algorithm_degrade(sample_rate, choice);
        }
        // Lines 6 to 10 and 15 to 20, which are the same.
        let before = self.recover_delay;
        self.recover_delay += 1;
        if before < self.max_delay {
            choice.current
        } else {
            self.recover_delay = 0;
            choice.ideal
        }
    }
}

/// `algorithm_degrade(sample_rate)`: the first level that costs less than what arrives.
fn algorithm_degrade(sample_rate: u64, choice: &Choice<'_>) -> u8 {
    (1..=choice.base()).find(|level| choice.rate(*level) < sample_rate).unwrap_or(choice.base())
}

impl Policy for Paper {
    fn arrived(&mut self, now: Time, arrival: Arrival) {
        self.window.get_or_insert(now);
        self.bytes += arrival.bytes as u64;
    }

    fn decide(&mut self, now: Time, choice: &Choice<'_>) -> Option<Decision> {
        let began = self.window.filter(|began| now.since(*began) >= WINDOW)?;
        let sample_rate = (self.bytes as f64 / now.since(began).as_secs_f64()) as u64;
        (self.window, self.bytes) = (Some(now), 0);
        let level = self.algorithm_adapt(sample_rate, choice);
        let why = match level.cmp(&choice.current) {
            core::cmp::Ordering::Less if level == choice.ideal => Reason::Recovered,
            _ => Reason::TooSlow { rate: sample_rate },
        };
        (level != choice.current).then_some(Decision { level, why })
    }

    fn due(&self) -> Option<Time> {
        self.window.map(|began| began + WINDOW)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATES: [u64; 4] = [1000, 500, 200, 100];

    fn choice(current: u8) -> Choice<'static> {
        Choice { rates: &RATES, current, ideal: 1 }
    }

    #[test]
    fn degrading_takes_the_first_level_that_costs_less() {
        let degrade = |rate| algorithm_degrade(rate, &choice(1));
        assert_eq!([degrade(1001), degrade(1000), degrade(400), degrade(150), degrade(3)], [1, 2, 3, 4, 4]);
    }

    #[test]
    fn a_little_less_is_borne_and_after_a_while_the_ideal_level_is_tried() {
        let mut paper = Paper::new(0.1, 2);
        let levels: Vec<u8> = (0..6).map(|_| paper.algorithm_adapt(470, &choice(2))).collect();
        assert_eq!(levels, [2, 2, 1, 2, 2, 1], "within the threshold");
        let mut paper = Paper::new(0.1, 2);
        let levels: Vec<u8> = (0..3).map(|_| paper.algorithm_adapt(600, &choice(2))).collect();
        assert_eq!(levels, [2, 2, 1], "more than expected");
        assert_eq!(paper.algorithm_adapt(450, &choice(2)), 3, "the threshold itself is too little");
    }

    #[test]
    fn samples_are_of_one_second() {
        let mut paper = Paper::default();
        assert_eq!(paper.decide(Time::from_millis(5), &choice(1)), None);
        for ms in (0..1000).step_by(10) {
            paper.arrived(Time::from_millis(ms), Arrival { media: Time::ZERO, bytes: 3, lost: 0 });
            assert_eq!(paper.decide(Time::from_millis(ms), &choice(1)), None);
        }
        let due = paper.due().expect("a window goes on");
        assert_eq!(due, Time::from_millis(1000));
        let decision = paper.decide(due, &choice(1)).expect("too slow");
        assert_eq!(decision, Decision { level: 3, why: Reason::TooSlow { rate: 300 } });
    }
}
