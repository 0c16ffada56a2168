//! What became of a flow's packets: which frames arrived whole and can be decoded.
//!
//! Goodput is "the percentage of traffic sent to a destination which can be used during an application level
//! decoding process (i.e., for which all data upon which a received portion of data is dependent are also
//! received)" (ABD, section 5.1).

use std::collections::VecDeque;

use outflow_link::Damage;
use outflow_media::{Kind, Needs, Tag, Time};

use super::model::Counting;
use super::outcome::FlowOutcome;

/// Of one flow. Packets are settled in the order in which they were sent, once all of their copies arrived or
/// went missing. Of those that are on their way it knows no more than their number: they say themselves what they
/// are when their turn comes.
#[derive(Debug)]
pub(super) struct Ledger {
    counting: Counting,
    /// Packets sent before do not count.
    from: Time,
    /// How many were sent, and settled.
    sent: u64,
    settled: u64,
    /// Those of which something is known before it is their turn, by their numbers.
    apart: VecDeque<Apart>,
    /// What is known of the frames of those that are settled.
    damage: Damage,
    /// Something has come that needs nothing.
    has_begun: bool,
    /// The frame whose packets are being settled.
    frame: Option<Frame>,
    outcome: FlowOutcome,
}

/// A packet, as it is settled.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fate {
    /// Within its flow.
    pub(super) number: u64,
    pub(super) sent: Time,
    pub(super) tag: Tag,
    pub(super) bytes: usize,
}

/// A packet that has copies, or came before those that were sent before it.
#[derive(Debug)]
struct Apart {
    fate: Fate,
    /// On the way.
    copies: u16,
    arrived: bool,
}

/// A frame, as far as its packets are settled.
#[derive(Debug, Clone, Copy)]
struct Frame {
    number: u32,
    /// It was sent late enough to count.
    counts: bool,
    bytes: u64,
    /// Of packets that can be used, if the frame can.
    good_bytes: u64,
    /// As far as its packets show it: in front of its slices may come others.
    needs: Needs,
    is_shown: bool,
    is_whole: bool,
}

impl Ledger {
    pub(super) fn new(counting: Counting, from: Time) -> Self {
        Ledger {
            counting,
            from,
            sent: 0,
            settled: 0,
            apart: VecDeque::new(),
            damage: Damage::default(),
            has_begun: false,
            frame: None,
            outcome: FlowOutcome::default(),
        }
    }

    /// A packet is sent; its number.
    pub(super) fn sent(&mut self) -> u64 {
        self.sent += 1;
        self.sent - 1
    }

    /// There is another copy of it on the way.
    pub(super) fn copied(&mut self, fate: Fate) {
        if let Some(apart) = self.apart(fate) {
            apart.copies += 1;
        }
    }

    /// A copy arrived, or went missing. Returns whether it is the first that arrived.
    pub(super) fn settle(&mut self, fate: Fate, arrives: bool) -> bool {
        if fate.number == self.settled
            && self.apart.front().is_none_or(|apart| apart.fate.number > fate.number)
        {
            self.settled += 1;
            self.close(&fate, arrives);
            self.settle_others();
            return arrives;
        }
        let Some(apart) = self.apart(fate) else { return false };
        apart.copies -= 1;
        let is_new = arrives && !apart.arrived;
        apart.arrived |= arrives;
        self.settle_others();
        is_new
    }

    /// Those whose turn it is now.
    fn settle_others(&mut self) {
        let settled = |apart: &mut Apart, next: u64| apart.fate.number == next && apart.copies == 0;
        while let Some(Apart { fate, arrived, .. }) = self.apart.pop_front_if(|it| settled(it, self.settled))
        {
            self.settled += 1;
            self.close(&fate, arrived);
        }
    }

    /// What is known of a packet whose turn has not come; `None` if it has.
    fn apart(&mut self, fate: Fate) -> Option<&mut Apart> {
        if fate.number < self.settled {
            return None;
        }
        let at = self.apart.partition_point(|apart| apart.fate.number < fate.number);
        if self.apart.get(at).is_none_or(|apart| apart.fate.number != fate.number) {
            self.apart.insert(at, Apart { fate, copies: 1, arrived: false });
        }
        self.apart.get_mut(at)
    }

    fn close(&mut self, fate: &Fate, arrived: bool) {
        let (tag, bytes) = (&fate.tag, fate.bytes as u64);
        if tag.kind == Kind::Data {
            return self.close_alone(fate, arrived);
        }
        if self.frame.is_some_and(|frame| frame.number != tag.frame) {
            self.end_frame();
        }
        let counts = fate.sent >= self.from;
        let frame = self.frame.get_or_insert(Frame {
            number: tag.frame,
            counts,
            bytes: 0,
            good_bytes: 0,
            needs: Needs::NOTHING,
            is_shown: false,
            is_whole: true,
        });
        frame.needs = frame.needs.and(tag.needs);
        frame.is_shown |= tag.kind != Kind::Header;
        frame.bytes += bytes;
        if arrived {
            frame.good_bytes += bytes;
        } else {
            frame.is_whole = false;
        }
        self.damage.look(tag);
        if !arrived {
            self.damage.lose(tag.frame);
        }
        if tag.last {
            self.end_frame();
        }
    }

    /// What stands alone does not end the frame in whose midst it comes, nor does it need one.
    fn close_alone(&mut self, fate: &Fate, arrived: bool) {
        if fate.sent >= self.from {
            let good = u64::from(arrived);
            self.outcome.bytes += fate.bytes as u64;
            self.outcome.good_bytes += good * fate.bytes as u64;
            self.outcome.frames += 1;
            self.outcome.good_frames += good;
        }
    }

    fn end_frame(&mut self) {
        let Some(frame) = self.frame.take() else { return };
        self.has_begun |= frame.is_shown && frame.needs.is_nothing();
        if !frame.counts || !self.has_begun {
            return;
        }
        let is_lost = |back: u32| self.damage.is_lost(frame.number.wrapping_sub(back));
        let needs_lost = frame.needs.distances().any(is_lost);
        let can_be_decoded = frame.is_whole && !needs_lost;
        self.outcome.bytes += frame.bytes;
        self.outcome.frames += 1;
        self.outcome.good_frames += u64::from(can_be_decoded);
        let is_good = match self.counting {
            Counting::Frames => can_be_decoded,
            Counting::Portions => !needs_lost,
        };
        if is_good {
            self.outcome.good_bytes += frame.good_bytes;
        }
    }

    /// What came of it so far, of frames that are at their end.
    pub(super) const fn so_far(&self) -> FlowOutcome {
        self.outcome
    }

    /// What came of it; packets that are still on the way count neither as sent nor as missing.
    pub(super) fn outcome(mut self) -> FlowOutcome {
        self.end_frame();
        self.outcome
    }

    /// Packets on the way.
    #[cfg(test)]
    pub(super) fn open(&self) -> usize {
        let copies = self.apart.iter().map(|apart| usize::from(apart.copies)).sum::<usize>();
        (self.sent - self.settled) as usize - self.apart.len() + copies
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn tag(frame: u32, needs: &[u32], first: bool, last: bool) -> Tag {
        let needs = needs.iter().fold(Needs::NOTHING, |all, back| all.and(Needs::back(*back)));
        Tag { frame, kind: Kind::Predicted, needs, first, last, ..Tag::default() }
    }

    /// Sends a packet.
    fn sent(ledger: &mut Ledger, sent: Time, tag: Tag, bytes: usize) -> Fate {
        Fate { number: ledger.sent(), sent, tag, bytes }
    }

    /// Frames of two packets each, 100 bytes a packet, each frame but the first needing the one before it;
    /// those packets are lost.
    fn run(counting: Counting, lost: &[u64]) -> FlowOutcome {
        let mut ledger = Ledger::new(counting, Time::ZERO);
        for frame in 0..4_u32 {
            let needs: &[u32] = if frame == 0 { &[] } else { &[1] };
            for part in 0..2 {
                let fate = sent(&mut ledger, Time::ZERO, tag(frame, needs, part == 0, part == 1), 100);
                ledger.settle(fate, !lost.contains(&fate.number));
            }
        }
        ledger.outcome()
    }

    #[test]
    fn what_needs_a_lost_frame_is_no_good() {
        let all = run(Counting::Frames, &[]);
        assert_eq!((all.bytes, all.good_bytes, all.frames, all.good_frames), (800, 800, 4, 4));
        let half = run(Counting::Frames, &[5]);
        assert_eq!((half.bytes, half.good_bytes, half.good_frames), (800, 400, 2));
        let portions = run(Counting::Portions, &[5]);
        assert_eq!((portions.good_bytes, portions.good_frames), (500, 2), "a part of the third frame");
    }

    #[test]
    fn it_counts_from_a_moment_and_a_start_on() {
        let mut ledger = Ledger::new(Counting::Frames, Time::from_millis(10));
        let mut send = |ms: u64, frame: u32, needs: &[u32]| {
            let fate = sent(&mut ledger, Time::from_millis(ms), tag(frame, needs, true, true), 1);
            ledger.settle(fate, true);
        };
        send(0, 0, &[]);
        send(20, 1, &[1]);
        assert_eq!(ledger.outcome().frames, 1);
        let mut ledger = Ledger::new(Counting::Frames, Time::ZERO);
        for (frame, needs) in [(7, &[1][..]), (8, &[1]), (9, &[])] {
            let fate = sent(&mut ledger, Time::ZERO, tag(frame, needs, true, true), 1);
            ledger.settle(fate, true);
        }
        assert_eq!(ledger.outcome().frames, 1, "none can begin in the middle");
    }

    #[test]
    fn frames_need_what_any_of_their_packets_shows() {
        let mut ledger = Ledger::new(Counting::Frames, Time::ZERO);
        for frame in 0..4_u32 {
            let needs: &[u32] = if frame == 0 { &[] } else { &[1] };
            // A delimiter in front.
            let header = Tag { kind: Kind::Header, ..tag(frame, &[], true, false) };
            for (tag, arrives) in [(header, true), (tag(frame, needs, false, true), frame != 1)] {
                let fate = sent(&mut ledger, Time::ZERO, tag, 10);
                ledger.settle(fate, arrives);
            }
        }
        let outcome = ledger.outcome();
        assert_eq!((outcome.frames, outcome.good_frames, outcome.good_bytes), (4, 1, 20));
    }

    #[test]
    fn what_stands_alone_takes_nothing_from_the_frame_around_it() {
        let mut ledger = Ledger::new(Counting::Frames, Time::ZERO);
        let alone = Tag { kind: Kind::Data, ..tag(0, &[], false, false) };
        for (tag, arrives) in
            [(tag(0, &[], true, false), true), (alone, false), (tag(0, &[], false, true), true)]
        {
            let fate = sent(&mut ledger, Time::ZERO, tag, 10);
            ledger.settle(fate, arrives);
        }
        let outcome = ledger.outcome();
        assert_eq!((outcome.bytes, outcome.good_bytes, outcome.frames, outcome.good_frames), (30, 20, 2, 1));
    }

    #[test]
    fn copies_count_once_and_one_of_them_is_enough() {
        let mut ledger = Ledger::new(Counting::Frames, Time::ZERO);
        let fate = sent(&mut ledger, Time::ZERO, tag(0, &[], true, true), 50);
        ledger.copied(fate);
        assert!(!ledger.settle(fate, false));
        assert_eq!(ledger.open(), 1);
        assert!(ledger.settle(fate, true));
        let outcome = ledger.outcome();
        assert_eq!((outcome.bytes, outcome.good_bytes), (50, 50));
    }

    proptest! {
        /// Against a plain account of what arrived, in whatever order it was settled.
        #[test]
        fn nothing_is_good_whose_needs_were_not_delivered(
            frames in prop::collection::vec((1..4_usize, prop::collection::btree_set(1..6_u32, 0..3)), 1..40),
            lost in prop::collection::btree_set(0..80_usize, 0..30),
            order in any::<u64>(),
        ) {
            let mut ledger = Ledger::new(Counting::Frames, Time::ZERO);
            let mut packets_sent = Vec::new();
            for (frame, (packets, needs)) in frames.iter().enumerate() {
                let needs: Vec<u32> = needs.iter().copied().filter(|back| *back as usize <= frame).collect();
                for part in 0..*packets {
                    let tag = tag(frame as u32, &needs, part == 0, part + 1 == *packets);
                    packets_sent.push((sent(&mut ledger, Time::ZERO, tag, 10), frame));
                }
            }
            let mut good = BTreeSet::new();
            for (frame, (_, needs)) in frames.iter().enumerate() {
                let is_lost = |fate: &Fate| lost.contains(&(fate.number as usize));
                let arrived = packets_sent.iter().all(|(fate, of)| *of != frame || !is_lost(fate));
                let back = |back: &u32| frame.checked_sub(*back as usize);
                if arrived && needs.iter().filter_map(back).all(|needed| good.contains(&needed)) {
                    good.insert(frame);
                }
            }
            fastrand::Rng::with_seed(order).shuffle(&mut packets_sent);
            for (fate, _) in packets_sent {
                ledger.settle(fate, !lost.contains(&(fate.number as usize)));
            }
            prop_assert_eq!(ledger.open(), 0);
            let outcome = ledger.outcome();
            prop_assert_eq!(outcome.frames, frames.len() as u64);
            prop_assert_eq!(outcome.good_frames, good.len() as u64);
        }
    }
}
