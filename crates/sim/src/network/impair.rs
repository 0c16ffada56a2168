//! What a link does to packets besides letting them wait: loss, by itself or in bursts, reordering, duplication.

use core::time::Duration;

use outflow_media::Time;
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
    /// Times in which everything is lost, on top of that.
    pub outages: Option<Outages>,
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

/// Times in which everything is lost: the same channel, which changes with time, however many packets there are.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outages {
    /// Share of the time.
    #[serde(deserialize_with = "share")]
    pub share: f64,
    /// How long one lasts on average. They are distributed exponentially.
    #[serde(deserialize_with = "duration")]
    pub last: Duration,
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

/// Outages that nothing comes in between: after more of them they are not followed one by one.
const CYCLES_FOLLOWED: u32 = 64;

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
    is_out: bool,
    /// When that changes next.
    changes: Time,
    rng: fastrand::Rng,
}

impl Channel {
    /// `None` if nothing goes wrong.
    pub(super) fn new(does: Impairments, rng: fastrand::Rng) -> Option<Self> {
        (does != Impairments::default()).then(|| {
            let mut channel = Channel { does, is_bad: false, is_out: false, changes: Time::ZERO, rng };
            channel.changes = Time::ZERO + channel.until_next_change();
            channel
        })
    }

    /// A packet comes to it. Times do not go back.
    pub(super) fn pass(&mut self, now: Time) -> Outcome {
        let is_out = self.is_out_at(now);
        let Impairments { loss, bursts, reorder, duplicate, .. } = self.does;
        let mut happens = |share: f64| share > 0.0 && self.rng.f64() < share;
        let mut is_lost = happens(loss) || is_out;
        if let Some(bursts) = bursts {
            let changes = happens(if self.is_bad { bursts.end } else { bursts.begin });
            self.is_bad ^= changes;
            is_lost |= self.is_bad && happens(bursts.loss);
        }
        let late_by = reorder.filter(|late| happens(late.share)).map_or(Duration::ZERO, |late| late.by);
        let twice = happens(duplicate);
        if is_lost { Outcome::Lost } else { Outcome::Arrives { late_by, twice } }
    }

    fn is_out_at(&mut self, now: Time) -> bool {
        let Some(Outages { share, last }) = self.does.outages else { return false };
        let cycle = last.as_secs_f64() / share;
        if now.since(self.changes).as_secs_f64() > cycle * f64::from(CYCLES_FOLLOWED) {
            // After so long it may be in any state, whatever it was in, and an exponential time has no memory.
            self.is_out = self.rng.f64() < share;
            self.changes = now + self.until_next_change();
        }
        while self.changes <= now {
            self.is_out = !self.is_out;
            self.changes = self.changes + self.until_next_change();
        }
        self.is_out
    }

    fn until_next_change(&mut self) -> Duration {
        let Some(Outages { share, last }) = self.does.outages else { return Duration::ZERO };
        let mean = match self.is_out {
            true => last.as_secs_f64(),
            false => last.as_secs_f64() * (1.0 - share) / share,
        };
        // What never ends, or never comes, does not fit.
        Duration::try_from_secs_f64(-mean * (1.0 - self.rng.f64()).ln()).unwrap_or(Duration::MAX)
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
        let lost = (0..100_000).filter(|_| channel.pass(Time::ZERO) == Outcome::Lost).count();
        assert!((1_850..2_150).contains(&lost), "{lost}");
    }

    #[test]
    fn bursts_are_as_long_and_as_often_as_they_say() {
        let mut channel = channel("bursts = { begin = '1 %', end = '20 %' }");
        let lost: Vec<bool> = (0..200_000).map(|_| channel.pass(Time::ZERO) == Outcome::Lost).collect();
        let runs = lost.windows(2).filter(|pair| !pair[0] && pair[1]).count();
        let all = lost.iter().filter(|lost| **lost).count();
        let (share, length) = (all as f64 / lost.len() as f64, all as f64 / runs as f64);
        assert!((share - 1.0 / 21.0).abs() < 0.004, "{share}");
        assert!((length - 5.0).abs() < 0.3, "{length}");
    }

    #[test]
    fn outages_are_as_long_and_as_often_as_they_say() {
        let mut channel = channel("outages = { share = '2 %', last = '30 ms' }");
        let lost: Vec<bool> =
            (0..2_000_000).map(|ms| channel.pass(Time::from_millis(ms)) == Outcome::Lost).collect();
        let runs = lost.windows(2).filter(|pair| !pair[0] && pair[1]).count();
        let all = lost.iter().filter(|lost| **lost).count();
        let (share, length) = (all as f64 / lost.len() as f64, all as f64 / runs as f64);
        assert!((share - 0.02).abs() < 0.002, "{share}");
        // Those that fall between two packets are not seen.
        assert!((length - 30.5).abs() < 2.0, "{length}");
    }

    #[test]
    fn packets_are_late_and_twice() {
        let mut channel = channel("duplicate = '10 %'\nreorder = { share = '5 %', by = '3 ms' }");
        let (mut late, mut twice) = (0, 0);
        for _ in 0..10_000 {
            let Outcome::Arrives { late_by, twice: again } = channel.pass(Time::ZERO) else {
                panic!("nothing is lost")
            };
            late += u32::from(late_by == Duration::from_millis(3));
            twice += u32::from(again);
        }
        assert!((400..600).contains(&late) && (900..1_100).contains(&twice), "{late} {twice}");
        assert!(Channel::new(Impairments::default(), fastrand::Rng::with_seed(0)).is_none());
    }
}
