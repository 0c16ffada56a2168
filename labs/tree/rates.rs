//! What links should have carried, by what was wanted below, next to what they did.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::audience::Receiver;
use crate::scene::{ABOVE, HOLD, NAMES, RELAYS};
use crate::source::is_in;
use crate::wire::Crossed;

/// How long a change may take beside the holds: messages, and the next packet that begins a layer.
const SETTLE: Duration = Duration::from_millis(700);
/// Shorter times of the same demand do not count.
const SHORTEST: Duration = Duration::from_secs(1);
/// Packets that were sent so shortly before a change may cross the link behind it.
const TAIL: Duration = Duration::from_millis(300);

/// A receiver was told to take this level, or nothing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Interest {
    pub(crate) at: Instant,
    pub(crate) receiver: usize,
    pub(crate) level: Option<u8>,
}

/// A time in which the same was wanted of a link.
#[derive(Debug, Clone, Copy)]
struct Window {
    from: Instant,
    to: Instant,
    level: Option<u8>,
}

/// What crossed a link of a stream while demand was steady.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Carried {
    pub(crate) expected: u64,
    /// Packets, each counted once, whatever level they are of.
    pub(crate) carried: u64,
    /// Packets of the best level wanted that did not come.
    pub(crate) missing: u64,
    /// Packets that came and are not of that level, or while nothing was wanted.
    pub(crate) unwanted: u64,
    /// Packets that came more than once.
    pub(crate) duplicates: u64,
    pub(crate) windows: u64,
    pub(crate) seconds: f64,
}

impl Carried {
    fn add(&mut self, other: &Carried) {
        self.expected += other.expected;
        self.carried += other.carried;
        self.missing += other.missing;
        self.unwanted += other.unwanted;
        self.duplicates += other.duplicates;
        self.windows += other.windows;
        self.seconds += other.seconds;
    }

    /// How far the rate is off, in percent: no packet that is missing makes up for one that is not wanted.
    pub(crate) fn error_pct(&self) -> f64 {
        let off = self.missing + self.unwanted;
        if self.expected == 0 { 0.0 } else { 100.0 * off as f64 / self.expected as f64 }
    }

    pub(crate) fn shown(&self) -> Value {
        json!({
            "error_pct": (100.0 * self.error_pct()).round() / 100.0,
            "expected": self.expected, "carried": self.carried, "missing": self.missing,
            "unwanted": self.unwanted, "duplicates": self.duplicates, "windows": self.windows, "seconds": self.seconds.round(),
        })
    }
}

/// Whether a relay is this one or below it.
fn is_below(mut relay: usize, of: usize) -> bool {
    while relay != of && relay != 0 {
        relay = ABOVE[relay];
    }
    relay == of
}

/// The times of the same demand below a link, once it has settled.
fn windows(
    link: usize,
    stream: u8,
    (receivers, wishes): (&[Receiver], &[Interest]),
    end: Instant,
) -> Vec<Window> {
    // At the edge one relay holds; a region holds what its edges held before.
    let holds = if ABOVE[link] == 0 { 2 } else { 1 };
    let settle = HOLD * holds + SETTLE;
    let mut levels: Vec<Option<u8>> = vec![None; receivers.len()];
    let mut all = Vec::new();
    let mut now: Option<(Instant, Option<u8>)> = None;
    let ours = wishes.iter().filter(|wish| {
        let receiver = &receivers[wish.receiver];
        receiver.stream == stream && is_below(receiver.relay, link)
    });
    let mut finish = |(since, level): (Instant, Option<u8>), to: Instant| {
        if to.saturating_duration_since(since) >= settle + SHORTEST + TAIL {
            all.push(Window { from: since + settle, to, level });
        }
    };
    for wish in ours {
        levels[wish.receiver] = wish.level;
        let best = levels.iter().flatten().min().copied();
        if now.is_none_or(|(_, level)| level != best) {
            if let Some(before) = now {
                finish(before, wish.at);
            }
            now = Some((wish.at, best));
        }
    }
    if let Some(last) = now {
        finish(last, end);
    }
    all
}

/// One window of a link.
fn measure(window: &Window, stream: u8, sent: &[Instant], crossed: &[Crossed]) -> Carried {
    let first = sent.partition_point(|at| *at < window.from);
    let last = sent.partition_point(|at| *at < window.to - TAIL);
    let mut counts = vec![0u32; last.saturating_sub(first)];
    for one in crossed {
        let place = (one.stamp.number as usize).checked_sub(first);
        if one.stamp.stream == stream
            && one.at <= window.to
            && let Some(count) = place.and_then(|place| counts.get_mut(place))
        {
            *count += 1;
        }
    }
    let mut all = Carried {
        duplicates: counts.iter().map(|count| u64::from(count.saturating_sub(1))).sum(),
        windows: 1,
        seconds: (window.to - window.from).as_secs_f64(),
        ..Carried::default()
    };
    for (number, count) in (first..).zip(counts) {
        let belongs = window.level.is_some_and(|level| is_in(level, number as u32));
        let came = count > 0;
        all.expected += u64::from(belongs);
        all.carried += u64::from(came);
        all.missing += u64::from(belongs && !came);
        all.unwanted += u64::from(came && !belongs);
    }
    all
}

/// Packets of a stream that came again, and how much later: a repeat of the transport comes some round trips later, a
/// change of parents or levels repeats several at once.
fn repeats(stream: u8, crossed: &[Crossed]) -> impl Iterator<Item = (u32, Duration)> {
    let mut first = BTreeMap::new();
    crossed.iter().filter(move |one| one.stamp.stream == stream).filter_map(move |one| {
        let before = *first.entry(one.stamp.number).or_insert(one.at);
        (before != one.at).then(|| (one.stamp.number, one.at - before))
    })
}

/// What all links carried, each with its name and all streams together.
pub(crate) fn of_links(
    streams: std::ops::Range<u8>,
    demand: (&[Receiver], &[Interest]),
    sent: &[Instant],
    crossed: &[Vec<Crossed>],
    end: Instant,
) -> Vec<(&'static str, Carried)> {
    let of_link = |link: usize| {
        let mut sum = Carried::default();
        for stream in streams.clone() {
            for window in windows(link, stream, demand, end) {
                let one = measure(&window, stream, sent, &crossed[link - 1]);
                if one.missing > 0 || one.unwanted > 0 || one.duplicates > 0 {
                    let (name, level) = (NAMES[link], window.level);
                    eprintln!("  not as it should be: {name}, stream {stream}, level {level:?}: {one:?}");
                    repeats(stream, &crossed[link - 1]).for_each(|(number, apart)| {
                        eprintln!("    packet {number} came again after {} ms", apart.as_millis());
                    });
                }
                sum.add(&one);
            }
        }
        (NAMES[link], sum)
    };
    (1..RELAYS).map(of_link).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Stamp;

    #[test]
    fn a_missing_packet_does_not_make_up_for_an_unwanted_one() {
        let from = Instant::now();
        let sent: Vec<Instant> = (0..80).map(|number| from + Duration::from_millis(10) * number).collect();
        let base = |number: &u32| is_in(5, *number);
        let [missing, unwanted] = [(0..80).find(base), (0..80).find(|number| !base(number))];
        let (missing, unwanted) = (missing.expect("the base has packets"), unwanted.expect("as others have"));
        let comes = |number: &u32| base(number) != [missing, unwanted].contains(number);
        let cross = |number: u32| Crossed { stamp: Stamp { stream: 0, number }, at: sent[number as usize] };
        let crossed: Vec<Crossed> = (0..80).filter(comes).map(cross).collect();
        let window = |level| Window { from, to: from + Duration::from_millis(800) + TAIL, level };

        let carried = measure(&window(Some(5)), 0, &sent, &crossed);
        assert_eq!(carried.carried, carried.expected, "as many as there should be");
        assert_eq!((carried.missing, carried.unwanted, carried.duplicates), (1, 1, 0));
        assert!((carried.error_pct() - 200.0 / carried.expected as f64).abs() < 1e-9);

        let carried = measure(&window(None), 0, &sent, &crossed);
        assert_eq!((carried.expected, carried.missing), (0, 0));
        assert_eq!(carried.unwanted, crossed.len() as u64, "no receiver wants any");
    }
}
