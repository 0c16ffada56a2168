//! Two ends and a path between them, in virtual time.

use core::time::Duration;
use std::collections::BTreeMap;

use outflow_media::Time;
use proptest::prelude::*;

use super::sent::Settings as SentSettings;
use super::*;
use crate::limits::{LOST_REMEMBERED_MAX, RECEIVED_SPANS_MAX};
use crate::packet::{ConnectionId, Datagram, Frame, Mark, Writer, parse};

const ID: ConnectionId = ConnectionId([7; ConnectionId::BYTES]);

/// What a path does, in one direction.
#[derive(Debug, Clone, Copy)]
struct Path {
    delay_ms: u64,
    /// How much later than that some come.
    jitter_ms: u64,
    loss_pct: u64,
    /// Packets lost in a row.
    burst: u64,
    duplicates_pct: u64,
    /// When the delay becomes another one, and which.
    change_ms: u64,
    other_delay_ms: u64,
    /// When nothing comes through any more.
    end_ms: u64,
}

impl Path {
    const fn clean(delay_ms: u64) -> Path {
        Path {
            delay_ms,
            jitter_ms: 0,
            loss_pct: 0,
            burst: 1,
            duplicates_pct: 0,
            change_ms: u64::MAX,
            other_delay_ms: 0,
            end_ms: u64::MAX,
        }
    }
}

fn path() -> impl Strategy<Value = Path> {
    let end = prop_oneof![3 => Just(u64::MAX), 1 => 0..400_u64];
    (1..80_u64, 0..30_u64, 0..40_u64, 1..8_u64, 0..20_u64, (0..300_u64, 1..200_u64), end).prop_map(
        |(delay_ms, jitter_ms, loss_pct, burst, duplicates_pct, (change_ms, other_delay_ms), end_ms)| Path {
            delay_ms,
            jitter_ms,
            loss_pct,
            burst,
            duplicates_pct,
            change_ms,
            other_delay_ms,
            end_ms,
        },
    )
}

/// SplitMix64 (Steele, Lea, Flood, 2014).
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % end
    }
}

/// Datagrams under way, by when they come.
struct Link {
    path: Path,
    chance: Chance,
    burst: u64,
    count: u64,
    under_way: BTreeMap<(Time, u64), Vec<u8>>,
}

impl Link {
    fn new(path: Path, seed: u64) -> Self {
        Link { path, chance: Chance(seed), burst: 0, count: 0, under_way: BTreeMap::new() }
    }

    fn send(&mut self, now: Time, bytes: &[u8]) {
        if self.burst == 0 && self.chance.below(100 * self.path.burst) < self.path.loss_pct {
            self.burst = self.path.burst;
        }
        let is_lost = self.burst > 0 || now.as_millis() >= self.path.end_ms;
        self.burst = self.burst.saturating_sub(1);
        let copies = if self.chance.below(100) < self.path.duplicates_pct { 2 } else { 1 };
        for _ in 0..if is_lost { 0 } else { copies } {
            let is_other = now.as_millis() >= self.path.change_ms;
            let delay = if is_other { self.path.other_delay_ms } else { self.path.delay_ms };
            let jitter =
                if self.path.jitter_ms > 0 { self.chance.below(1000 * self.path.jitter_ms) } else { 0 };
            let due = now + Duration::from_micros(1000 * delay + jitter);
            self.under_way.insert((due, self.count), bytes.to_vec());
            self.count += 1;
        }
    }

    fn next(&self) -> Option<Time> {
        self.under_way.keys().next().map(|(due, _)| *due)
    }

    fn take(&mut self, now: Time) -> Option<Vec<u8>> {
        let entry = self.under_way.first_entry().filter(|entry| entry.key().0 <= now)?;
        Some(entry.remove())
    }
}

/// What became of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    InFlight,
    Acked,
    Lost,
    Spurious,
}

/// A sender of data, a receiver, and what they did.
struct World {
    now: Time,
    there: Link,
    back: Link,
    sent: Sent<u64>,
    received: Received,
    outcome: Outcome<u64>,
    fates: Vec<Fate>,
    /// Packets still to send on their own.
    left: u64,
    next_send: Time,
    gap: Duration,
    /// Packets that the receiver was given, and how often each.
    given: BTreeMap<u64, u32>,
}

impl World {
    fn new(there: Path, back: Path, seed: u64, left: u64, gap: Duration) -> Self {
        World {
            now: Time::ZERO,
            there: Link::new(there, seed),
            back: Link::new(back, !seed),
            sent: Sent::new(SentSettings::default()),
            received: Received::new(ReceivedSettings::default(), Time::ZERO),
            outcome: Outcome::new(),
            fates: Vec::new(),
            left,
            next_send: Time::ZERO,
            gap,
            given: BTreeMap::new(),
        }
    }

    fn send(&mut self) {
        let (number, mut out) = (self.sent.next_number(), Vec::new());
        let mut writer = Writer::new(&mut out, ID, number, 1200);
        assert!(writer.push(&Frame::Ping));
        let bytes = writer.bytes() as u32;
        assert_eq!(self.sent.handle_sent(self.now, bytes, number), Ok(number));
        self.fates.push(Fate::InFlight);
        self.there.send(self.now, &out);
    }

    /// Reads what followed, and checks that nothing has two fates.
    fn note(&mut self) {
        let turn = |fates: &mut Vec<Fate>, number: u64, from: Fate, to: Fate| {
            let fate = &mut fates[number as usize];
            assert_eq!(*fate, from, "{number} becomes {to:?}");
            *fate = to;
        };
        for acked in &self.outcome.acked {
            assert_eq!(acked.number, acked.content);
            assert!(self.given.contains_key(&acked.number));
            turn(&mut self.fates, acked.number, Fate::InFlight, Fate::Acked);
        }
        for lost in &self.outcome.lost {
            assert_eq!(lost.number, lost.content);
            turn(&mut self.fates, lost.number, Fate::InFlight, Fate::Lost);
        }
        for spurious in &self.outcome.spurious {
            assert!(self.given.contains_key(&spurious.number));
            turn(&mut self.fates, spurious.number, Fate::Lost, Fate::Spurious);
        }
        let in_flight = self.fates.iter().filter(|fate| **fate == Fate::InFlight).count();
        assert_eq!(self.sent.in_flight(), in_flight);
        assert_eq!(self.sent.bytes_in_flight() == 0, in_flight == 0);
        assert!(self.received.ranges() <= RECEIVED_SPANS_MAX);
        assert!(self.sent.remembered() <= LOST_REMEMBERED_MAX);
    }

    fn step(&mut self) {
        while let Some(bytes) = self.there.take(self.now) {
            let Ok(Datagram::Data(data)) = parse(&bytes) else { panic!("{bytes:?}") };
            let arrived = self.received.handle_received(self.now, data.number, true, Mark::None);
            let times = self.given.entry(data.number).or_insert(0);
            *times += 1;
            // Packets that were forgotten count as duplicates, too; here there are too few for that.
            assert_eq!(arrived == Arrived::New, *times == 1, "{}", data.number);
        }
        if self.received.next_timeout().is_some_and(|due| due <= self.now) {
            let ack = self.received.ack(self.now).expect("something was received");
            let mut out = Vec::new();
            assert!(Writer::new(&mut out, ID, 0, 300).ack(&ack));
            self.back.send(self.now, &out);
        }
        while let Some(bytes) = self.back.take(self.now) {
            let Ok(Datagram::Data(mut data)) = parse(&bytes) else { panic!("{bytes:?}") };
            let Some(Ok(Frame::Ack(ack))) = data.frames.next() else { panic!("{bytes:?}") };
            self.sent.handle_ack(self.now, &ack, &mut self.outcome).expect("the peer is honest");
            self.note();
        }
        while self.sent.next_timeout().is_some_and(|due| due <= self.now) {
            self.sent.handle_timeout(self.now, &mut self.outcome);
            self.note();
            if self.outcome.probe && self.sent.in_flight() > 0 {
                self.send();
            }
        }
        if self.left > 0 && self.next_send <= self.now {
            self.send();
            self.left -= 1;
            self.next_send = self.now + self.gap;
        }
    }

    /// Until nothing is left to do.
    fn run(&mut self) {
        for _ in 0..100_000 {
            self.step();
            let send = (self.left > 0).then_some(self.next_send);
            let dues = [send, self.there.next(), self.back.next(), self.sent.next_timeout()];
            let next = dues.into_iter().chain([self.received.next_timeout()]).flatten().min();
            let Some(next) = next else { return };
            assert!(self.now <= next);
            self.now = next;
        }
        panic!("it does not end");
    }

    fn count(&self, fate: Fate) -> usize {
        self.fates.iter().filter(|of| **of == fate).count()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn each_packet_has_one_fate(
        there in path(),
        back in path(),
        seed in any::<u64>(),
        count in 1..250_u64,
        gap_us in 50..8000_u64,
    ) {
        let mut world = World::new(there, back, seed, count, Duration::from_micros(gap_us));
        world.run();
        prop_assert_eq!(world.count(Fate::InFlight), 0);
        prop_assert_eq!(world.sent.in_flight(), 0);
        let counts = world.sent.counts();
        let lost = counts.lost_by_packets + counts.lost_by_time + counts.lost_by_silence;
        prop_assert_eq!(counts.acked, world.count(Fate::Acked) as u64);
        prop_assert_eq!(lost, (world.count(Fate::Lost) + world.count(Fate::Spurious)) as u64);
        prop_assert_eq!(counts.spurious, world.count(Fate::Spurious) as u64);
    }

    #[test]
    fn a_clean_path_loses_nothing_and_is_measured(
        delay in 1..100_u64,
        back in 1..100_u64,
        seed in any::<u64>(),
        gap_us in 50..20_000_u64,
    ) {
        let gap = Duration::from_micros(gap_us);
        let mut world = World::new(Path::clean(delay), Path::clean(back), seed, 300, gap);
        world.run();
        prop_assert_eq!(world.sent.counts().acked, world.fates.len() as u64);
        prop_assert_eq!(world.count(Fate::Lost) + world.count(Fate::Spurious), 0);
        let (rtt, path) = (world.sent.rtt(), Duration::from_millis(delay + back));
        let delayed = ReceivedSettings::default().ack_delay_max;
        prop_assert!(path <= rtt.min() && rtt.min() <= path + delayed);
        prop_assert!(rtt.smoothed() <= path + delayed, "{:?}", rtt);
        prop_assert!(rtt.smoothed() >= path.mul_f64(0.95), "{:?}", rtt);
    }

    #[test]
    fn what_is_lost_is_noticed_in_time_and_little_else(
        loss_pct in 1..15_u64,
        burst in 1..5_u64,
        seed in any::<u64>(),
    ) {
        let there = Path { loss_pct, burst, ..Path::clean(20) };
        let mut world = World::new(there, Path::clean(20), seed, 300, Duration::from_millis(1));
        world.run();
        let missing = world.fates.len() - world.given.len();
        prop_assert_eq!(world.count(Fate::Lost), missing);
        prop_assert_eq!(world.count(Fate::Spurious), 0);
    }
}
