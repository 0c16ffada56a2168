use bytes::Bytes;
use outflow_media::{Kind, Needs, Time};
use outflow_packet::{DropReason, Packet};
use proptest::prelude::*;

use super::super::*;
use super::*;
use crate::send::Recipients;
use outflow_ring::limits::RING_BYTES_MIN;
use outflow_ring::{Ring, WhenFull};

use Style::{Chained, Open, Plain};

const LAYERS: u8 = 3;
const GROUP: u32 = 16;
const SIZE: usize = 1000;

/// How an encoder makes temporal layers T0 T2 T1 T2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    Plain,
    /// Frames of T1 need the one before of T1, too, so that it opens only with a key frame.
    Chained,
    /// Groups are open: the two frames behind a key frame are leading, and need T1 and T2 from before it.
    Open,
}

fn styles() -> impl Strategy<Value = Style> {
    proptest::sample::select(vec![Plain, Chained, Open])
}

fn tag(frame: u32, style: Style) -> Tag {
    let place = frame % GROUP;
    let layer = [0, 2, 1, 2][(place % 4) as usize];
    let key = place == 0;
    let is_leading = style == Open && (1..3).contains(&place);
    let needs = match layer {
        _ if key => Needs::NOTHING,
        // The newest of T1 of the group before.
        _ if is_leading => Needs::back(place).and(Needs::back(place + 2)),
        // Leading frames are needed by no others.
        _ if style == Open && place == 3 => Needs::back(3),
        0 => Needs::back(4),
        1 if style == Chained && place > 4 => Needs::back(2).and(Needs::back(4)),
        1 => Needs::back(2),
        _ => Needs::back(1),
    };
    let by_itself = layer == 2 || (layer == 1 && style == Plain);
    let opens = if key { style != Open } else { by_itself && !is_leading };
    Tag { frame, kind: Kind::Predicted, layer, layers: LAYERS, opens, key, needs, ..Tag::default() }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Got {
    frame: u32,
    part: usize,
    sequence: u16,
}

/// What happens to a sink.
#[derive(Debug, Clone)]
enum Step {
    Join(u8),
    Request(usize, u8),
    /// It takes this many packets of its next order and no more, for this many frames.
    Block(usize, u64, u32),
    Leave(usize),
    Frames(u32),
}

struct Bench {
    branch: Branch,
    sinks: Sinks,
    now: Time,
    style: Style,
    frame: u32,
    sequence: u16,
    /// By key; sinks that have left, too.
    got: Vec<Vec<Got>>,
    /// By key: this many packets are taken, and then none for this many frames.
    blocks: Vec<Option<(u64, u32)>>,
}

impl Bench {
    fn new(ring_bytes: usize, style: Style) -> Self {
        Bench {
            branch: Branch::new(0, Ring::new(ring_bytes, WhenFull::SlowestSink, 1, 0)),
            sinks: Sinks::new(),
            now: Time::ZERO,
            style,
            frame: 0,
            // Soon it wraps.
            sequence: 65_400,
            got: Vec::new(),
            blocks: Vec::new(),
        }
    }

    fn join(&mut self, level: u8) -> usize {
        let level = Level::new(level).expect("a level");
        let spec = SinkSpec { level, ..SinkSpec::new(Encapsulation::Rtp, Transport::Stream) };
        // Keys are not given again here: a sink that leaves is only taken out of the branch.
        let key = self.sinks.insert(Sink::new(1, spec, self.now));
        self.branch.join(&mut self.sinks, SinkKey(key));
        self.got.push(Vec::new());
        self.blocks.push(None);
        key
    }

    fn frame(&mut self) {
        let tag = tag(self.frame, self.style);
        let parts = 1 + (self.frame as usize * 7) % 3;
        for part in 0..parts {
            let mut bytes = vec![0x80; SIZE];
            bytes[2..4].copy_from_slice(&self.sequence.to_be_bytes());
            bytes[12..16].copy_from_slice(&self.frame.to_be_bytes());
            bytes[16] = part as u8;
            self.sequence = self.sequence.wrapping_add(1);
            let tag = Tag { first: part == 0, last: part + 1 == parts, ..tag };
            let packet = Packet { bytes: Bytes::from(bytes), tag, arrived: self.now };
            self.branch.push(self.now, &mut self.sinks, packet, [0; 12], || None);
            self.serve();
        }
        self.frame += 1;
        for key in 0..self.blocks.len() {
            match &mut self.blocks[key] {
                Some((_, frames)) if *frames > 0 => *frames -= 1,
                Some(_) => {
                    self.blocks[key] = None;
                    self.branch.writable(&mut self.sinks, SinkKey(key));
                }
                None => {}
            }
        }
        self.serve();
    }

    fn serve(&mut self) {
        let order = |bench: &mut Self| {
            let (now, sinks) = (bench.now, &mut bench.sinks);
            bench.branch.next_order(now, sinks, Priority::Normal, Room { datagram: 3, stream: 3 }, 0)
        };
        while let Some(order) = order(self) {
            let members = self.branch.ordered(&order.recipients).to_vec();
            let share = |key: &SinkKey| match order.recipients {
                Recipients::Cohort { cohort, .. } => {
                    let own = self.branch.share(cohort, &self.sinks[key.0]);
                    assert!(order.share.is_none_or(|share| share == own), "{order:?} {own:?}");
                    own
                }
                Recipients::One(_) => order.share.expect("of one sink"),
            };
            let shares: Vec<_> = members.iter().map(share).collect();
            for (key, share) in members.into_iter().zip(shares) {
                self.deliver(&order, key, share);
            }
        }
    }

    fn deliver(&mut self, order: &crate::Order, key: SinkKey, share: Share) {
        let mut sequence_offset = share.sequence_offset;
        let mut blocked = None;
        for (seq, entry) in self.branch.range(order.from, order.to) {
            let bytes = &entry.packet.bytes;
            if !share.max_layer.takes(entry.packet.tag.layer) {
                sequence_offset = sequence_offset.wrapping_add(1);
                continue;
            }
            if let Some((room, _)) = &mut self.blocks[key.0] {
                if *room == 0 {
                    blocked = Some(seq);
                    break;
                }
                *room -= 1;
            }
            let word =
                |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
            let sequence = u16::from_be_bytes([bytes[2], bytes[3]]).wrapping_sub(sequence_offset);
            self.got[key.0].push(Got { frame: word(12), part: bytes[16].into(), sequence });
        }
        if let Some(next) = blocked {
            self.branch.blocked(&mut self.sinks, key, next);
        }
    }

    fn step(&mut self, step: &Step) {
        let known = |bench: &Self, key: usize| bench.sinks.len().checked_sub(1).map(|last| key.min(last));
        match *step {
            Step::Join(level) => drop(self.join(level)),
            Step::Request(key, level) => {
                if let Some(key) = known(self, key) {
                    let level = Level::new(level).expect("a level");
                    self.branch.set_level(&mut self.sinks, SinkKey(key), level);
                }
            }
            Step::Block(key, room, frames) => {
                if let Some(key) = known(self, key).filter(|key| self.blocks[*key].is_none()) {
                    self.blocks[key] = Some((room, frames));
                }
            }
            Step::Leave(key) => {
                if let Some(key) = known(self, key) {
                    self.branch.remove(&mut self.sinks, SinkKey(key));
                }
            }
            Step::Frames(count) => (0..count).for_each(|_| self.frame()),
        }
    }

    fn lost(&self, key: usize) -> u64 {
        let drops = self.branch.drops(&self.sinks, SinkKey(key));
        drops.get(DropReason::SlowSink) + drops.get(DropReason::DependsOnDropped)
    }

    fn parts(frame: u32) -> usize {
        1 + (frame as usize * 7) % 3
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        1 => (1..=4_u8).prop_map(Step::Join),
        3 => (0..6_usize, 1..=4_u8).prop_map(|(key, level)| Step::Request(key, level)),
        2 => (0..6_usize, 0..9_u64, 0..9_u32).prop_map(|(key, room, frames)| Step::Block(key, room, frames)),
        1 => (0..6_usize).prop_map(Step::Leave),
        4 => (1..9_u32).prop_map(Step::Frames),
    ];
    proptest::collection::vec(step, 1..60)
}

proptest! {
    /// Whatever is asked for, whichever sink is slow: none gets a packet that needs one that it was refused,
    /// no frame comes in part, and what is left out leaves no gap.
    #[test]
    fn what_a_sink_gets_can_be_decoded_and_has_no_gaps(steps in steps(), style in styles()) {
        let mut bench = Bench::new(64 << 20, style);
        steps.iter().for_each(|step| bench.step(step));
        for (key, got) in bench.got.iter().enumerate() {
            prop_assert_eq!(bench.lost(key), 0);
            for pair in got.windows(2) {
                let follows = pair[1].sequence == pair[0].sequence.wrapping_add(1);
                prop_assert!(follows, "sink {}: {:?}", key, pair);
                let goes_on = pair[0].part + 1 < Bench::parts(pair[0].frame);
                let next = if goes_on { pair[0].part + 1 } else { 0 };
                prop_assert_eq!((pair[1].part, pair[1].frame == pair[0].frame), (next, goes_on));
            }
            // What was before it joined was not refused: players leave such leading frames out.
            let joined = got.first().map_or(0, |got| got.frame);
            let has = |frame: u32| frame < joined || got.iter().any(|got| got.frame == frame);
            for one in got {
                let mut needs = tag(one.frame, style).needs.distances();
                let is_whole = needs.all(|back| one.frame.checked_sub(back).is_none_or(has));
                prop_assert!(is_whole, "sink {}: {:?}", key, one);
            }
            let counted = bench.branch.counters(&bench.sinks, SinkKey(key)).packets;
            prop_assert_eq!(counted, got.len() as u64);
        }
    }

    /// The same through a ring that is too small: gaps are as large as what was lost, and no larger.
    #[test]
    fn only_what_is_lost_leaves_gaps(steps in steps(), style in styles()) {
        let mut bench = Bench::new(RING_BYTES_MIN, style);
        steps.iter().for_each(|step| bench.step(step));
        for (key, got) in bench.got.iter().enumerate() {
            let step = |pair: &[Got]| pair[1].sequence.wrapping_sub(pair[0].sequence);
            let gap = |pair: &[Got]| u64::from(step(pair).wrapping_sub(1));
            let gaps: u64 = got.windows(2).map(gap).sum();
            // What it lost last may show no gap yet.
            prop_assert!(gaps <= bench.lost(key), "sink {}: {} of {}", key, gaps, bench.lost(key));
            let counted = bench.branch.counters(&bench.sinks, SinkKey(key)).packets;
            prop_assert_eq!(counted, got.len() as u64);
        }
    }

    /// Once no sink is slow, each gets what it wants within a group of pictures, all by one order.
    #[test]
    fn each_ends_up_with_what_it_wants(steps in steps(), style in styles()) {
        let mut bench = Bench::new(64 << 20, style);
        steps.iter().for_each(|step| bench.step(step));
        bench.step(&Step::Frames(10 + 2 * GROUP));
        let first = bench.frame;
        let begun = bench.got.iter().map(Vec::len).collect::<Vec<_>>();
        bench.step(&Step::Frames(GROUP));
        for (key, sink) in &bench.sinks {
            if sink.place == Place::Paused {
                continue;
            }
            let wish = sink.spec.level.of(LAYERS);
            prop_assert!(matches!(sink.place, Place::Live { .. }), "sink {}: {:?}", key, sink.place);
            let wanted = (first..first + GROUP).filter(|frame| wish.takes(tag(*frame, style).layer));
            let parts = |frame: u32| core::iter::repeat_n(frame, Bench::parts(frame));
            let wanted: Vec<_> = wanted.flat_map(parts).collect();
            let got: Vec<_> = bench.got[key][begun[key]..].iter().map(|got| got.frame).collect();
            prop_assert_eq!(got, wanted);
        }
        prop_assert!(bench.branch.cohorts.len() <= 1);
    }
}

#[test]
fn less_comes_with_the_next_frame_and_more_where_it_can_be_decoded() {
    let mut bench = Bench::new(64 << 20, Chained);
    let key = bench.join(1);
    bench.step(&Step::Frames(GROUP));
    bench.step(&Step::Request(key, 3));
    bench.step(&Step::Frames(5));
    bench.step(&Step::Request(key, 1));
    bench.step(&Step::Frames(GROUP));
    let mut frames: Vec<_> = bench.got[key].iter().map(|got| got.frame).filter(|f| *f >= GROUP).collect();
    frames.dedup();
    let only_base = (GROUP..2 * GROUP).step_by(4);
    assert_eq!(frames, only_base.chain(2 * GROUP..bench.frame).collect::<Vec<_>>());
}

#[test]
fn one_that_goes_up_at_an_open_group_gets_none_of_its_leading_frames() {
    let mut bench = Bench::new(64 << 20, Open);
    let key = bench.join(3);
    bench.step(&Step::Frames(GROUP - 2));
    bench.step(&Step::Request(key, 1));
    bench.step(&Step::Frames(7));
    let mut frames: Vec<_> = bench.got[key].iter().map(|got| got.frame).collect();
    frames.dedup();
    // The last frame before the key frame is one that opens its layer, were T1 not missing.
    assert_eq!(frames, [0, 4, 8, 12, 16, 19, 20]);
}

#[test]
fn those_with_the_same_level_share_sequence_numbers_and_one_order_serves_all_levels() {
    let mut bench = Bench::new(64 << 20, Plain);
    let keys: Vec<_> = (0..9).map(|index| bench.join(1 + index % 3)).collect();
    bench.step(&Step::Frames(2 * GROUP));
    let late = bench.join(3);
    bench.step(&Step::Frames(GROUP));
    assert_eq!(bench.branch.cohorts.len(), 1);
    let mut groups: Vec<_> = bench.branch.cohorts[0].groups.iter().map(|group| group.members).collect();
    groups.sort_unstable();
    assert_eq!(groups, [3, 3, 4]);
    assert!(
        bench.sinks.iter().all(|(_, sink)| sink.sequence_offset == 0),
        "all have the numbers of their group"
    );
    let last = |key: usize| bench.got[key].last().expect("packets");
    assert_eq!(last(keys[2]), last(late));
    assert_ne!(last(keys[0]).sequence, last(late).sequence);
}

#[test]
fn one_that_lags_changes_where_it_is() {
    let mut bench = Bench::new(64 << 20, Plain);
    let key = bench.join(1);
    bench.step(&Step::Frames(GROUP + 1));
    bench.step(&Step::Block(key, 1, 4));
    bench.step(&Step::Frames(1));
    bench.step(&Step::Request(key, 3));
    bench.step(&Step::Frames(5));
    let behind: Vec<_> = bench.got[key].iter().map(|got| got.frame).filter(|frame| *frame > GROUP).collect();
    assert_eq!(behind, [17, 17, 17, 20, 20, 20], "the frame that had begun as a whole");
}
