//! What a branch owes its sinks, told by scripts of pushes, orders and reports.

use bytes::Bytes;
use outflow_media::{Kind, Needs, Tag, Time};
use outflow_packet::{DropReason, Packet};

use super::*;
use crate::limits::{CATCH_UP_BURST_BYTES, LOOKED_AT_MAX};
use crate::send::{Order, Recipients};
use outflow_ring::limits::RING_BYTES_MIN;
use outflow_ring::{Ring, Seq, WhenFull};

mod gather;

const SIZE: usize = 1024;

/// A branch with its sinks, and what each was sent.
struct Bench {
    branch: Branch,
    sinks: Sinks,
    now: Time,
    frame: u32,
    sent: Vec<Vec<Seq>>,
    timing: Timing,
    room: Room,
}

impl Bench {
    fn new(ring_bytes: usize) -> Self {
        Bench::with(ring_bytes, WhenFull::SlowestSink)
    }

    fn with(ring_bytes: usize, when_full: WhenFull) -> Self {
        let branch = Branch::new(0, Ring::new(ring_bytes, when_full, 1, 0));
        Bench {
            branch,
            sinks: Sinks::new(),
            now: Time::ZERO,
            frame: 0,
            sent: Vec::new(),
            timing: Timing::default(),
            room: Room::UNLIMITED,
        }
    }

    fn push(&mut self, track: u8, key: bool) {
        let needs = if key || track > 0 { Needs::NOTHING } else { Needs::back(1) };
        let kind = if track > 0 { Kind::Data } else { Kind::Predicted };
        let key = key || track > 0;
        let tag =
            Tag { frame: self.frame, track, kind, first: true, last: true, key, needs, ..Tag::default() };
        self.frame += 1;
        let packet = Packet { bytes: Bytes::from(vec![0; SIZE]), tag, arrived: self.now };
        self.branch.push(self.now, &mut self.sinks, packet, [0; 12], || None);
    }

    /// A GOP of `frames` video packets, the first of them a key frame.
    fn gop(&mut self, frames: usize) {
        for frame in 0..frames {
            self.push(0, frame == 0);
        }
    }

    fn join(&mut self, transport: Transport, priority: Priority) -> SinkKey {
        let timing = self.timing;
        let spec = SinkSpec { priority, timing, ..SinkSpec::new(Encapsulation::Rtp, transport) };
        let key = SinkKey(self.sinks.insert(Sink::new(0, spec, self.now)));
        self.branch.join(&mut self.sinks, key);
        self.sent.resize(self.sent.len().max(key.0 + 1), Vec::new());
        key
    }

    fn next(&mut self) -> Option<Order> {
        Priority::ALL.into_iter().find_map(|priority| {
            self.branch.next_order(self.now, &mut self.sinks, priority, self.room, 4_000_000)
        })
    }

    fn carry_out(&mut self, order: &Order) -> Vec<SinkKey> {
        let members = self.branch.ordered(&order.recipients).to_vec();
        for (seq, entry) in self.branch.range(order.from, order.to) {
            if order.tracks.has(entry.packet.tag.track) {
                members.iter().for_each(|key| self.sent[key.0].push(seq));
            }
        }
        members
    }

    fn serve(&mut self) {
        loop {
            match self.next() {
                Some(order) => drop(self.carry_out(&order)),
                None if self.looks_on() => {}
                None => return,
            }
        }
    }

    fn looks_on(&self) -> bool {
        Priority::ALL.into_iter().any(|priority| self.branch.looks_on(priority))
    }

    fn drops(&self, key: SinkKey, reason: DropReason) -> u64 {
        self.branch.drops(&self.sinks, key).get(reason)
    }

    fn block(&mut self, key: SinkKey) {
        let next = self.branch.cursor(&self.sinks, key).expect("has a place");
        self.branch.blocked(&mut self.sinks, key, next);
    }
}

#[test]
fn a_sink_begins_at_the_newest_key_frame_and_then_gets_everything_once() {
    let mut bench = Bench::new(1 << 20);
    bench.gop(5);
    bench.gop(5);
    let key = bench.join(Transport::Stream, Priority::Normal);
    bench.serve();
    bench.gop(3);
    bench.serve();
    assert_eq!(bench.sent[key.0], (5..13).collect::<Vec<_>>());
    assert_eq!(bench.branch.counters(&bench.sinks, key).packets, 8);
    assert!(matches!(bench.sinks[key.0].place(), Place::Live { .. }));
}

#[test]
fn without_a_key_frame_a_sink_waits_for_one() {
    let mut bench = Bench::new(1 << 20);
    let key = bench.join(Transport::Stream, Priority::Normal);
    bench.push(0, false);
    bench.serve();
    assert!(bench.sent[key.0].is_empty());
    bench.gop(2);
    bench.serve();
    assert_eq!(bench.sent[key.0], [1, 2]);
}

#[test]
fn sinks_that_are_up_share_one_order() {
    let mut bench = Bench::new(1 << 20);
    bench.gop(1);
    for _ in 0..100 {
        bench.join(Transport::Stream, Priority::Normal);
    }
    bench.serve();
    bench.push(0, false);
    let order = bench.next().expect("one packet is owed");
    assert_eq!(bench.carry_out(&order).len(), 100);
    assert_eq!(bench.next(), None);
}

#[test]
fn the_ring_keeps_no_more_than_the_newest_gop_when_none_lags() {
    let mut bench = Bench::new(8 << 20);
    bench.join(Transport::Stream, Priority::Normal);
    for _ in 0..100 {
        bench.gop(10);
        bench.serve();
    }
    assert_eq!(bench.branch.ring().len(), 10);
}

#[test]
fn a_slow_sink_loses_its_oldest_packets_up_to_a_key_frame_and_no_other_loses_any() {
    let mut bench = Bench::new(RING_BYTES_MIN);
    let well = bench.join(Transport::Stream, Priority::Normal);
    let slow = bench.join(Transport::Stream, Priority::Normal);
    bench.gop(10);
    bench.serve();
    bench.block(slow);
    for _ in 0..20 {
        bench.gop(10);
        bench.serve();
    }
    assert_eq!(bench.sent[well.0], (0..210).collect::<Vec<_>>());
    assert!(bench.branch.ring().bytes() <= RING_BYTES_MIN);
    bench.branch.writable(&mut bench.sinks, slow);
    bench.serve();
    let resumed = bench.sent[slow.0][10];
    assert_eq!(resumed % 10, 0, "goes on at a key frame, not at {resumed}");
    assert_eq!(bench.sent[slow.0][10..], (resumed..210).collect::<Vec<_>>());
    let lost = bench.drops(slow, DropReason::SlowSink) + bench.drops(slow, DropReason::DependsOnDropped);
    assert_eq!(lost, resumed - 10, "every packet was sent or counted");
    assert_eq!(bench.drops(well, DropReason::SlowSink), 0);
    assert_eq!(bench.sinks[slow.0].lossy_since, None, "it has caught up");
}

#[test]
fn others_have_their_turn_while_sinks_that_have_lost_a_key_frame_go_past_what_needs_it() {
    let mut bench = Bench::new(4 * LOOKED_AT_MAX * SIZE);
    let slow: Vec<_> = (0..2).map(|_| bench.join(Transport::Stream, Priority::Normal)).collect();
    bench.gop(1);
    bench.serve();
    slow.iter().for_each(|key| bench.block(*key));
    for _ in 0..8 * LOOKED_AT_MAX {
        bench.push(0, false);
    }
    let owed = bench.branch.ring().len();
    assert!(owed > 3 * LOOKED_AT_MAX, "{owed}");
    slow.iter().for_each(|key| bench.branch.writable(&mut bench.sinks, *key));
    let mut turns = 1;
    while bench.next().is_none() && bench.looks_on() {
        turns += 1;
        let passed: u64 = slow.iter().map(|key| bench.drops(*key, DropReason::DependsOnDropped)).sum();
        assert!(passed as usize <= turns * LOOKED_AT_MAX, "{passed} in {turns} turns");
    }
    assert!(turns > 2 * 3, "{turns}");
    for key in slow {
        assert_eq!(bench.drops(key, DropReason::DependsOnDropped) as usize, owed);
    }
}

#[test]
fn what_a_full_ring_gives_up_is_counted_for_each_from_where_it_was() {
    let mut bench = Bench::new(RING_BYTES_MIN);
    let mut slow = Vec::new();
    for _ in 0..3 {
        let key = bench.join(Transport::Stream, Priority::Normal);
        bench.gop(10);
        bench.serve();
        bench.block(key);
        slow.push(key);
    }
    let got: Vec<_> = slow.iter().map(|key| bench.sent[key.0].clone()).collect();
    assert!(got.iter().map(|got| got.last()).is_sorted(), "each was stopped later than the one before");
    for _ in 0..20 {
        bench.gop(10);
    }
    for (key, got) in slow.into_iter().zip(got) {
        bench.branch.writable(&mut bench.sinks, key);
        bench.serve();
        let (last, resumed) = (got[got.len() - 1], bench.sent[key.0][got.len()]);
        let lost = bench.drops(key, DropReason::SlowSink) + bench.drops(key, DropReason::DependsOnDropped);
        assert_eq!(lost, resumed - last - 1, "every packet was sent or counted");
    }
}

#[test]
fn audio_goes_on_while_video_waits_for_its_key_frame() {
    let mut bench = Bench::new(RING_BYTES_MIN);
    let slow = bench.join(Transport::Stream, Priority::Normal);
    bench.gop(1);
    bench.serve();
    bench.block(slow);
    for _ in 0..100 {
        bench.push(0, false);
        bench.push(1, false);
    }
    bench.branch.writable(&mut bench.sinks, slow);
    bench.serve();
    let audio: Vec<_> = bench.sent[slow.0][1..].to_vec();
    assert!(audio.len() > 20 && audio.iter().all(|seq| seq % 2 == 0), "only audio: {audio:?}");
    bench.gop(2);
    bench.push(1, false);
    bench.serve();
    assert_eq!(bench.sent[slow.0][1 + audio.len()..], [201, 202, 203]);
}

#[test]
fn what_a_sink_did_not_take_is_offered_again_and_counted_once() {
    let mut bench = Bench::new(1 << 20);
    let key = bench.join(Transport::Stream, Priority::Normal);
    let other = bench.join(Transport::Stream, Priority::Normal);
    bench.gop(1);
    bench.serve();
    bench.gop(4);
    let order = bench.next().expect("owed");
    bench.branch.blocked(&mut bench.sinks, key, order.from + 2);
    assert_eq!(bench.branch.counters(&bench.sinks, key).packets, 3);
    bench.branch.writable(&mut bench.sinks, key);
    let again = bench.next().expect("owed again");
    assert_eq!((again.recipients, again.from, again.to), (Recipients::One(key), 3, 5));
    assert_eq!(bench.branch.counters(&bench.sinks, key).packets, 5);
    assert_eq!(bench.branch.counters(&bench.sinks, other).packets, 5);
}

#[test]
fn a_datagram_sink_catches_up_in_a_burst_and_then_paced() {
    let mut bench = Bench::new(8 << 20);
    bench.gop(1000);
    let key = bench.join(Transport::Datagram, Priority::Normal);
    bench.serve();
    assert_eq!(bench.sent[key.0].len(), CATCH_UP_BURST_BYTES / SIZE);
    let mut turns = 0;
    while let Some(due) = bench.branch.next_turn() {
        assert!(due > bench.now);
        bench.now = due;
        bench.serve();
        turns += 1;
    }
    assert_eq!(bench.sent[key.0], (0..1000).collect::<Vec<_>>());
    let rate = (1000 * SIZE - CATCH_UP_BURST_BYTES) as f64 * 8.0 / (bench.now.as_nanos() as f64 / 1e9);
    assert!((0.8..1.1).contains(&(rate / 32e6)), "{rate} bit/s in {turns} turns");
}

#[test]
fn a_higher_class_is_served_first() {
    let mut bench = Bench::new(1 << 20);
    let low = bench.join(Transport::Stream, Priority::Low);
    let high = bench.join(Transport::Stream, Priority::High);
    bench.gop(2);
    let first = bench.next().expect("owed");
    assert_eq!(bench.carry_out(&first), [high]);
    bench.serve();
    bench.branch.set_priority(&mut bench.sinks, low, Priority::High);
    bench.push(0, false);
    bench.serve();
    assert_eq!(bench.sent[low.0], [0, 1, 2], "nothing lost or repeated by changing class");
    assert_eq!(bench.sent[high.0], [0, 1, 2]);
}

#[test]
fn a_sink_that_leaves_leaves_nothing_behind() {
    let mut bench = Bench::new(RING_BYTES_MIN);
    bench.gop(5);
    let keys: Vec<_> = (0..5).map(|_| bench.join(Transport::Stream, Priority::Normal)).collect();
    bench.serve();
    bench.block(keys[1]);
    bench.branch.remove(&mut bench.sinks, keys[1]);
    bench.branch.remove(&mut bench.sinks, keys[0]);
    bench.sinks.remove(keys[0].0);
    bench.sinks.remove(keys[1].0);
    bench.gop(5);
    bench.serve();
    for key in &keys[2..] {
        assert_eq!(bench.sent[key.0], (0..10).collect::<Vec<_>>());
    }
    assert_eq!(bench.branch.ring().len(), 5);
}

/// A stream of 300 packets to one that takes everything and one that soon takes nothing.
fn half_stalled(when_full: WhenFull) -> (Bench, SinkKey, SinkKey) {
    let mut bench = Bench::with(RING_BYTES_MIN, when_full);
    let well = bench.join(Transport::Stream, Priority::Normal);
    let slow = bench.join(Transport::Stream, Priority::Normal);
    bench.gop(10);
    bench.serve();
    bench.block(slow);
    for _ in 0..29 {
        bench.gop(10);
        bench.serve();
        assert!(bench.branch.ring().bytes() <= RING_BYTES_MIN);
    }
    (bench, well, slow)
}

#[test]
fn under_tail_drop_everyone_loses_what_arrives_at_a_full_ring() {
    let (mut bench, well, slow) = half_stalled(WhenFull::Tail);
    let fit = RING_BYTES_MIN / SIZE;
    assert_eq!(bench.sent[well.0].len(), 10 + fit, "up to the full ring");
    bench.branch.writable(&mut bench.sinks, slow);
    bench.serve();
    assert_eq!(bench.sent[slow.0], bench.sent[well.0], "nothing is taken from the slow one alone");
    for key in [well, slow] {
        assert_eq!(bench.drops(key, DropReason::TailDrop), 300 - 10 - fit as u64);
        assert_eq!(bench.branch.drops(&bench.sinks, key).total(), 300 - 10 - fit as u64, "and nothing else");
    }
    assert_eq!(bench.branch.passed(0).packets, 10 + fit as u64, "sender reports tell what was sent");
    bench.gop(5);
    bench.serve();
    assert_eq!(bench.sent[well.0].len(), 15 + fit, "there is room again");
}

#[test]
fn random_early_detection_begins_before_the_ring_is_full_and_hits_all_alike() {
    let (mut bench, well, slow) = half_stalled(WhenFull::Red);
    for _ in 0..50 {
        bench.branch.writable(&mut bench.sinks, slow);
        // The slow one lags half a ring, for a thousand packets.
        for _ in 0..2 {
            bench.gop(10);
            bench.serve();
            bench.block(slow);
        }
    }
    bench.branch.writable(&mut bench.sinks, slow);
    bench.serve();
    assert_eq!(bench.sent[slow.0], bench.sent[well.0]);
    assert_eq!(bench.branch.drops(&bench.sinks, well), bench.branch.drops(&bench.sinks, slow));
    assert!(bench.drops(well, DropReason::Red) > 0);
    let lost = bench.branch.drops(&bench.sinks, well).total();
    assert_eq!(bench.sent[well.0].len() as u64 + lost, 1300, "every packet was sent or counted");
}

#[test]
fn what_is_kept_only_to_join_at_fills_no_ring() {
    for &when_full in WhenFull::ALL {
        let mut bench = Bench::with(RING_BYTES_MIN, when_full);
        let key = bench.join(Transport::Stream, Priority::Normal);
        for frame in 0..1000 {
            bench.push(0, frame == 0);
            bench.serve();
        }
        assert_eq!(bench.sent[key.0].len(), 1000, "{when_full:?}");
        assert_eq!(bench.branch.drops(&bench.sinks, key).total(), 0, "{when_full:?}");
        assert!(bench.branch.ring().bytes() <= RING_BYTES_MIN, "{when_full:?}");
    }
}

#[test]
fn one_that_joins_later_has_not_lost_what_was_refused_before() {
    let (mut bench, well, slow) = half_stalled(WhenFull::Tail);
    let lost = bench.drops(well, DropReason::TailDrop);
    bench.branch.remove(&mut bench.sinks, slow);
    bench.gop(10);
    bench.serve();
    let late = bench.join(Transport::Stream, Priority::Normal);
    bench.serve();
    assert!(matches!(bench.sinks[late.0].place(), Place::Live { .. }));
    assert_eq!(bench.branch.drops(&bench.sinks, late).total(), 0);
    bench.block(well);
    assert_eq!(bench.drops(well, DropReason::TailDrop), lost, "and one that leaves a cohort keeps its count");
}
