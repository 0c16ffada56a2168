//! What a link does to packets besides letting them wait: loss, by itself or in bursts, reordering, duplication.

use core::time::Duration;

use serde::Deserialize;

use super::units::{duration, share};

/// What goes wrong on a link, behind its buffer.
#[derive(Debug, Clone, Copy, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Impairments {
    /// Share of packets that are lost, each by itself.
    #[serde(default, deserialize_with = "share")]
    pub loss: f64,
    /// Loss in bursts, on top of that.
    pub bursts: Option<Bursts>,
    /// Packets that are late.
    pub reorder: Option<Reordering>,
    /// Share of packets that arrive twice.
    #[serde(default, deserialize_with = "share")]
    pub duplicate: f64,
}

/// Loss in bursts: a channel that is good or bad, and changes from packet to packet (Gilbert, 1960).
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bursts {
    /// How likely a good channel becomes bad with a packet.
    #[serde(deserialize_with = "share")]
    pub begin: f64,
    /// How likely a bad one becomes good: bursts last for 1 / `end` packets on average.
    #[serde(deserialize_with = "share")]
    pub end: f64,
    /// Share of packets that are lost while it is bad.
    #[serde(default = "all", deserialize_with = "share")]
    pub loss: f64,
}

/// Packets that others overtake.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reordering {
    /// Share of packets that are late.
    #[serde(deserialize_with = "share")]
    pub share: f64,
    /// By how much.
    #[serde(deserialize_with = "duration")]
    pub by: Duration,
}

fn all() -> f64 {
    1.0
}

/// What becomes of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Lost,
    Arrives { late_by: Duration, twice: bool },
}

/// The state of a link's channel.
#[derive(Debug)]
pub(super) struct Channel {
    does: Impairments,
    is_bad: bool,
    rng: fastrand::Rng,
}

impl Channel {
    /// `None` if nothing goes wrong.
    pub(super) fn new(does: Impairments, rng: fastrand::Rng) -> Option<Self> {
        (does != Impairments::default()).then_some(Channel { does, is_bad: false, rng })
    }

    pub(super) fn pass(&mut self) -> Outcome {
        let Impairments { loss, bursts, reorder, duplicate } = self.does;
        let mut happens = |share: f64| share > 0.0 && self.rng.f64() < share;
        let mut is_lost = happens(loss);
        if let Some(bursts) = bursts {
            let changes = happens(if self.is_bad { bursts.end } else { bursts.begin });
            self.is_bad ^= changes;
            is_lost |= self.is_bad && happens(bursts.loss);
        }
        let late_by = reorder.filter(|late| happens(late.share)).map_or(Duration::ZERO, |late| late.by);
        let twice = happens(duplicate);
        if is_lost { Outcome::Lost } else { Outcome::Arrives { late_by, twice } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn channel(text: &str) -> Channel {
        Channel::new(toml::from_str(text).expect("valid"), fastrand::Rng::with_seed(3))
            .expect("it does something")
    }

    #[test]
    fn loss_is_as_often_as_it_says() {
        let mut channel = channel("loss = '2 %'");
        let lost = (0..100_000).filter(|_| channel.pass() == Outcome::Lost).count();
        assert!((1_850..2_150).contains(&lost), "{lost}");
    }

    #[test]
    fn bursts_are_as_long_and_as_often_as_they_say() {
        let mut channel = channel("bursts = { begin = '1 %', end = '20 %' }");
        let lost: Vec<bool> = (0..200_000).map(|_| channel.pass() == Outcome::Lost).collect();
        let runs = lost.windows(2).filter(|pair| !pair[0] && pair[1]).count();
        let all = lost.iter().filter(|lost| **lost).count();
        let (share, length) = (all as f64 / lost.len() as f64, all as f64 / runs as f64);
        assert!((share - 1.0 / 21.0).abs() < 0.004, "{share}");
        assert!((length - 5.0).abs() < 0.3, "{length}");
    }

    #[test]
    fn packets_are_late_and_twice() {
        let mut channel = channel("duplicate = '10 %'\nreorder = { share = '5 %', by = '3 ms' }");
        let (mut late, mut twice) = (0, 0);
        for _ in 0..10_000 {
            let Outcome::Arrives { late_by, twice: again } = channel.pass() else {
                panic!("nothing is lost")
            };
            late += u32::from(late_by == Duration::from_millis(3));
            twice += u32::from(again);
        }
        assert!((400..600).contains(&late) && (900..1_100).contains(&twice), "{late} {twice}");
        assert!(Channel::new(Impairments::default(), fastrand::Rng::with_seed(0)).is_none());
    }
}
