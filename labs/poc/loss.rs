//! Which packets are lost: bursts at times that are the same for all flows, and in between single packets, by
//! each flow's own chance, which begins with the same seed.
//!
//! Half of what is lost falls into bursts: bad times of 30 ms on average (as in the model of Gilbert and Elliott, in
//! time), in which every other packet is lost.

use std::time::Duration;

use fastrand::Rng;

/// How long a bad time is on average.
const BURST: Duration = Duration::from_millis(30);
/// What is lost in one.
const IN_BURST: f64 = 0.5;

/// The bad times of a direction.
#[derive(Debug, Clone)]
pub(crate) struct Weather {
    /// When each begins and ends, from the beginning.
    bursts: Vec<(Duration, Duration)>,
    /// What is lost in between.
    calm: f64,
}

impl Weather {
    /// A share of all packets is lost, from 0 to 0.5.
    pub(crate) fn new(share: f64, lasts: Duration, seed: u64) -> Self {
        let bad = share / 2.0 / IN_BURST;
        let calm = if bad < 1.0 { share / 2.0 / (1.0 - bad) } else { 0.0 };
        let mut random = Rng::with_seed(seed);
        let mut wait = |mean: f64| Duration::from_secs_f64(-mean * (1.0 - random.f64()).ln());
        let between = BURST.as_secs_f64() * (1.0 - bad) / bad.max(1e-9);
        let (mut bursts, mut at) = (Vec::new(), wait(between));
        while at < lasts {
            let until = at + wait(BURST.as_secs_f64());
            bursts.push((at, until));
            at = until + wait(between);
        }
        Self { bursts, calm }
    }

    fn share_at(&self, at: Duration) -> f64 {
        let next = self.bursts.partition_point(|(_, until)| *until <= at);
        let is_bad = self.bursts.get(next).is_some_and(|(from, _)| *from <= at);
        if is_bad { IN_BURST } else { self.calm }
    }

    /// Whether a packet of a flow that has this chance is lost.
    pub(crate) fn loses(&self, at: Duration, chance: &mut Rng) -> bool {
        // Drawn in any case, so that flows with packets at the same times lose the same ones.
        chance.f64() < self.share_at(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wanted_share_is_lost_half_of_it_in_bursts() {
        for share in [0.05, 0.1, 0.3] {
            let lasts = Duration::from_secs(2000);
            let weather = Weather::new(share, lasts, 1);
            let mut chance = Rng::with_seed(2);
            let times = (0..200_000).map(|packet| Duration::from_millis(packet * 10));
            let lost: Vec<f64> =
                times.filter(|at| weather.loses(*at, &mut chance)).map(|at| weather.share_at(at)).collect();
            let found = lost.len() as f64 / 200_000.0;
            assert!((found / share - 1.0).abs() < 0.1, "{found} instead of {share}");
            let in_bursts =
                lost.iter().filter(|share| **share == IN_BURST).count() as f64 / lost.len() as f64;
            assert!((in_bursts - 0.5).abs() < 0.06, "{in_bursts}");
        }
    }

    #[test]
    fn bad_times_are_the_same_again() {
        let weather = || Weather::new(0.1, Duration::from_secs(60), 9).bursts;
        assert_eq!(weather(), weather());
        assert!(Weather::new(0.0, Duration::from_secs(60), 9).bursts.is_empty());
    }
}
