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
    /// Times in which everything is lost, or much, on top of that.
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

/// Times in which everything is lost, or much: the same channel, which changes with time, however many packets there
/// are.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outages {
    /// Share of the time.
    #[serde(deserialize_with = "share")]
    pub share: f64,
    /// How long one lasts on average. They are distributed exponentially.
    #[serde(deserialize_with = "duration")]
    pub last: Duration,
    /// Share of packets that are lost in one.
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
    /// When outages come, if packets draw in them.
    times: Option<fastrand::Rng>,
}

impl Channel {
    /// One that is good when it begins; `None` if nothing goes wrong. There are generators by number.
    pub(super) fn new(
        does: Impairments,
        begins: Time,
        generator: impl Fn(usize) -> fastrand::Rng,
    ) -> Option<Self> {
        (does != Impairments::default()).then(|| {
            // Then they come at the same times, whatever packets there are. Where all are lost, both draw from one
            // generator: what a seed gives is what it has given.
            let times = does.outages.filter(|outages| outages.loss < 1.0).map(|_| generator(1));
            let rng = generator(0);
            let mut channel = Channel { does, is_bad: false, is_out: false, changes: begins, rng, times };
            channel.changes = begins + channel.until_next_change();
            channel
        })
    }

    /// What it does.
    pub(super) const fn does(&self) -> &Impairments {
        &self.does
    }

    /// A packet comes to it. Times do not go back.
    pub(super) fn pass(&mut self, now: Time) -> Outcome {
        let out = self.lost_at(now);
        let Impairments { loss, bursts, reorder, duplicate, .. } = self.does;
        let mut happens = |share: f64| share > 0.0 && self.rng.f64() < share;
        let mut is_lost = happens(loss);
        is_lost |= out >= 1.0 || happens(out);
        if let Some(bursts) = bursts {
            let changes = happens(if self.is_bad { bursts.end } else { bursts.begin });
            self.is_bad ^= changes;
            is_lost |= self.is_bad && happens(bursts.loss);
        }
        let late_by = reorder.filter(|late| happens(late.share)).map_or(Duration::ZERO, |late| late.by);
        let twice = happens(duplicate);
        if is_lost { Outcome::Lost } else { Outcome::Arrives { late_by, twice } }
    }

    /// The share that is lost by outages then.
    fn lost_at(&mut self, now: Time) -> f64 {
        let Some(Outages { share, last, loss }) = self.does.outages else { return 0.0 };
        let cycle = last.as_secs_f64() / share;
        if now.since(self.changes).as_secs_f64() > cycle * f64::from(CYCLES_FOLLOWED) {
            // After so long it may be in any state, whatever it was in, and an exponential time has no memory.
            self.is_out = self.times.as_mut().unwrap_or(&mut self.rng).f64() < share;
            self.changes = now + self.until_next_change();
        }
        while self.changes <= now {
            self.is_out = !self.is_out;
            self.changes = self.changes + self.until_next_change();
        }
        if self.is_out { loss } else { 0.0 }
    }

    fn until_next_change(&mut self) -> Duration {
        let Some(Outages { share, last, .. }) = self.does.outages else { return Duration::ZERO };
        let mean = match self.is_out {
            true => last.as_secs_f64(),
            false => last.as_secs_f64() * (1.0 - share) / share,
        };
        // What never ends, or never comes, does not fit.
        let chance = self.times.as_mut().unwrap_or(&mut self.rng).f64();
        Duration::try_from_secs_f64(-mean * (1.0 - chance).ln()).unwrap_or(Duration::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn channel(text: &str) -> Channel {
        let does = toml::from_str(text).expect("valid");
        Channel::new(does, Time::ZERO, |number| fastrand::Rng::with_seed(3 + number as u64))
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
    fn half_of_what_is_lost_falls_into_outages_that_lose_half() {
        let mut channel =
            channel("loss = '5 %'\noutages = { share = '10 %', last = '30 ms', loss = '47.4 %' }");
        let (mut calm, mut bad) = ([0, 0], [0, 0]);
        for ms in 0..1_000_000 {
            let is_lost = channel.pass(Time::from_millis(ms)) == Outcome::Lost;
            let count = if channel.is_out { &mut bad } else { &mut calm };
            count[usize::from(is_lost)] += 1;
        }
        let share = |[came, lost]: [i32; 2]| f64::from(lost) / f64::from(came + lost);
        assert!((share(calm) - 0.05).abs() < 0.002, "{calm:?}");
        assert!((share(bad) - 0.5).abs() < 0.01, "{bad:?}");
        assert!((f64::from(bad[0] + bad[1]) / 1e6 - 0.1).abs() < 0.01, "{bad:?}");
    }

    #[test]
    fn outages_that_let_some_through_come_at_the_same_times_whatever_packets_there_are() {
        let text = "loss = '5 %'\noutages = { share = '10 %', last = '30 ms', loss = '50 %' }";
        let [mut few, mut many] = [channel(text), channel(text)];
        for ms in 0..100_000 {
            let now = Time::from_millis(ms);
            for _ in 0..ms % 4 {
                many.pass(now);
            }
            few.pass(now);
            assert_eq!(few.lost_at(now), many.lost_at(now), "at {ms} ms");
        }
    }

    #[test]
    fn what_a_seed_gives_where_everything_is_lost_in_outages_is_what_it_gave() {
        let mut channel = channel("loss = '20 %'\noutages = { share = '20 %', last = '3 ms' }");
        let lost = (0..64).map(|ms| u64::from(channel.pass(Time::from_millis(ms)) == Outcome::Lost));
        assert_eq!(lost.fold(0, |all, lost| all << 1 | lost), 0x0098_2000_c003_8440);
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
        let generator = |_| fastrand::Rng::with_seed(0);
        assert!(Channel::new(Impairments::default(), Time::ZERO, generator).is_none());
    }
}
