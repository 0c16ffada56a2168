//! Packets of one stream that come by two ways, as one: where the one stops being passed on, the other goes on
//! behind the very same packet. No I/O, no clock.
//!
//! Sequence numbers tell packets of different ways apart, not what is in them: a relay that was sent fewer
//! levels for a while has others. So packets are compared by what they carry, and renumbered where a way
//! takes over.

use std::collections::{HashMap, VecDeque};

use minicbor::{Decode, Encode};
use outflow_client::{Packet, Received};

use super::super::limits::{GROUP_HELD_MAX, GROUP_KNOWN_MAX};
use super::super::mark::Mark;
use super::super::splice::numbered;

/// The newest packet that was passed on.
#[derive(Debug, Clone, Copy, Encode, Decode)]
#[cbor(map)]
struct Newest {
    #[n(0)]
    mark: Mark,
    /// Its number as it came, and as it was passed on.
    #[n(1)]
    number: u16,
    #[n(2)]
    passed: u16,
}

/// What is known of a track.
#[derive(Debug, Default)]
struct Line {
    newest: Option<Newest>,
    /// The numbers of packets that were passed on lately.
    known: HashMap<Mark, u16>,
    order: VecDeque<Mark>,
    /// What the numbers of the way that carries are raised by.
    raise: u16,
    /// The timestamp of the newest packet, where packets have headers.
    timestamp: Option<u32>,
}

/// Two ways: one carries, of the other packets are held.
#[derive(Debug, Default)]
pub(super) struct Merge {
    /// Whether packets begin with RTP headers.
    has_headers: bool,
    lines: Vec<Line>,
    held: VecDeque<(Mark, Packet)>,
}

/// What was passed on, as another process goes on from it.
#[derive(Debug, Encode, Decode)]
#[cbor(map)]
pub(super) struct SavedMerge {
    #[n(0)]
    lines: Vec<SavedLine>,
}

#[derive(Debug, Encode, Decode)]
#[cbor(map)]
struct SavedLine {
    #[n(0)]
    newest: Option<Newest>,
    /// The oldest first.
    #[n(1)]
    known: Vec<(Mark, u16)>,
    #[n(2)]
    raise: u16,
}

impl Line {
    /// The number that a packet was passed on with before, if it was: it is behind the newest, or of another picture.
    /// Packets of one picture may look alike.
    fn repeated(&self, mark: Mark, passed: u16, timestamp: Option<u32>) -> Option<u16> {
        let is_ahead = passed.wrapping_sub(self.newest?.passed).cast_signed() > 0;
        let is_same_picture = timestamp == self.timestamp || self.timestamp.is_none();
        if is_ahead && is_same_picture { None } else { self.known.get(&mark).copied() }
    }
}

impl Merge {
    pub(super) fn new(has_headers: bool) -> Self {
        Merge { has_headers, ..Merge::default() }
    }

    /// What another process goes on from. What is held is not part of that: the way that it came by is opened again.
    pub(super) fn save(&self) -> SavedMerge {
        let line = |line: &Line| {
            let known = line.order.iter().filter_map(|mark| Some((*mark, *line.known.get(mark)?)));
            SavedLine { newest: line.newest, known: known.collect(), raise: line.raise }
        };
        SavedMerge { lines: self.lines.iter().map(line).collect() }
    }

    /// Goes on from what another process has passed on. None if that cannot be.
    pub(super) fn restore(has_headers: bool, saved: SavedMerge) -> Option<Self> {
        let is_bounded = |line: &SavedLine| line.known.len() <= GROUP_KNOWN_MAX;
        if saved.lines.len() > usize::from(u8::MAX) + 1 || !saved.lines.iter().all(is_bounded) {
            return None;
        }
        let line = |SavedLine { newest, known, raise }: SavedLine| {
            let order = known.iter().map(|(mark, _)| *mark).collect();
            Line { newest, known: known.into_iter().collect(), order, raise, timestamp: None }
        };
        let lines = saved.lines.into_iter().map(line).collect();
        Some(Merge { lines, ..Merge::new(has_headers) })
    }

    fn line(&mut self, track: u8) -> &mut Line {
        let index = usize::from(track);
        if self.lines.len() <= index {
            self.lines.resize_with(index + 1, Line::default);
        }
        &mut self.lines[index]
    }

    /// A packet of the way that carries, as it is to be passed on. None if it was passed on before: a way may begin
    /// again, at a key frame of before, as where a group was left and is sent to once more.
    pub(super) fn carry(&mut self, packet: Packet) -> Option<Packet> {
        let mark = Mark::of(&packet, self.has_headers);
        self.pass(mark, packet)
    }

    fn pass(&mut self, mark: Mark, mut packet: Packet) -> Option<Packet> {
        let has_headers = self.has_headers;
        let line = self.line(packet.track);
        let number = number(&packet);
        let timestamp = packet.rtp.filter(|_| has_headers).map(|stamp| stamp.timestamp);
        let passed = number.wrapping_add(line.raise);
        if let Some(before) = line.repeated(mark, passed, timestamp) {
            line.raise = before.wrapping_sub(number);
            return None;
        }
        line.timestamp = timestamp;
        line.newest = Some(Newest { mark, number, passed });
        line.known.insert(mark, passed);
        line.order.push_back(mark);
        if line.order.len() > GROUP_KNOWN_MAX
            && let Some(old) = line.order.pop_front()
        {
            line.known.remove(&old);
        }
        if let Some(stamp) = &mut packet.rtp
            && passed != number
        {
            stamp.sequence = passed;
            if has_headers {
                packet.bytes = numbered(packet.bytes, passed);
            }
        }
        Some(packet)
    }

    /// A packet of the other way. Returns whether it was passed on before.
    pub(super) fn hold(&mut self, packet: Packet) -> bool {
        let mark = Mark::of(&packet, self.has_headers);
        let is_known = self.line(packet.track).known.contains_key(&mark);
        if self.held.len() >= GROUP_HELD_MAX {
            self.held.pop_front();
        }
        self.held.push_back((mark, packet));
        is_known
    }

    /// What is held is of no use any more.
    pub(super) fn forget_held(&mut self) {
        self.held.clear();
    }

    /// Whether anything is held.
    pub(super) fn has_held(&self) -> bool {
        !self.held.is_empty()
    }

    /// Whether the other way can go on exactly behind what was passed on: the newest packet of each track is held.
    pub(super) fn meets(&self) -> bool {
        let mut begun = (0..).zip(&self.lines).filter(|(_, line)| line.newest.is_some()).peekable();
        begun.peek().is_some() && begun.all(|(track, line)| self.newest_held(track, line).is_some())
    }

    /// Whether something is held that comes behind what was passed on.
    pub(super) fn has_news(&self) -> bool {
        let cuts: Vec<_> = (0..).zip(&self.lines).map(|(track, line)| self.cut(track, line)).collect();
        (0..).zip(&self.held).any(|(place, (_, packet))| {
            cuts.get(usize::from(packet.track)).is_none_or(|cut| cut.is_none_or(|cut| place > cut))
        })
    }

    /// The other way carries from now on: gives what it is ahead.
    pub(super) fn change(&mut self, out: &mut VecDeque<Received>) {
        let cuts: Vec<_> = (0..).zip(&self.lines).map(|(track, line)| self.cut(track, line)).collect();
        for (track, cut) in (0..).zip(&cuts) {
            let raise = self.raise(track, *cut);
            self.line(track).raise = raise;
        }
        for (place, (mark, packet)) in std::mem::take(&mut self.held).into_iter().enumerate() {
            let cut = cuts.get(usize::from(packet.track)).copied().flatten();
            if cut.is_none_or(|cut| place > cut) {
                out.extend(self.pass(mark, packet).map(Received::Packet));
            }
        }
    }

    /// Where a track's newest packet is held. Of several that look alike, it is the one with the same number.
    fn newest_held(&self, track: u8, line: &Line) -> Option<usize> {
        let newest = line.newest?;
        let alike =
            |(_, (mark, packet)): &(usize, &(Mark, Packet))| packet.track == track && *mark == newest.mark;
        let mut all = self.held.iter().enumerate().filter(alike);
        let same = all.clone().find(|(_, (_, packet))| number(packet) == newest.number);
        same.or_else(|| all.next_back()).map(|(place, _)| place)
    }

    /// The last packet held of a track that is not to be passed on again.
    fn cut(&self, track: u8, line: &Line) -> Option<usize> {
        let is_known =
            |(mark, packet): &(Mark, Packet)| packet.track == track && line.known.contains_key(mark);
        self.newest_held(track, line).or_else(|| self.held.iter().rposition(is_known))
    }

    /// What numbers of a track are to be raised by, so that they go on.
    fn raise(&self, track: u8, cut: Option<usize>) -> u16 {
        let Some(line) = self.lines.get(usize::from(track)) else { return 0 };
        let Some(newest) = line.newest else { return 0 };
        let first = cut.map_or(0, |cut| cut + 1);
        let first = self.held.iter().skip(first).find(|(_, packet)| packet.track == track);
        let first = first.map(|(_, packet)| number(packet));
        let met = cut.and_then(|cut| self.held.get(cut));
        let known = met.and_then(|(mark, packet)| Some((*line.known.get(mark)?, number(packet))));
        let Some((passed, number)) = known else {
            // How much is missing in between is not known: something is.
            return first.map_or(line.raise, |first| newest.passed.wrapping_add(2).wrapping_sub(first));
        };
        let raise = passed.wrapping_sub(number);
        let goes_on = |first: u16| first.wrapping_add(raise).wrapping_sub(newest.passed).cast_signed() > 0;
        match first {
            Some(first) if !goes_on(first) => newest.passed.wrapping_add(1).wrapping_sub(first),
            _ => raise,
        }
    }
}

fn number(packet: &Packet) -> u16 {
    packet.rtp.map_or(0, |rtp| rtp.sequence)
}

#[cfg(test)]
mod tests {
    use outflow_client::RtpStamp;
    use outflow_media::Time;
    use outflow_rtp::PlainHeader;

    use super::*;

    /// A packet that carries this, under this number.
    fn packet(track: u8, sequence: u16, what: u32) -> Packet {
        let header = PlainHeader { marker: false, payload_type: 96, sequence, timestamp: what / 4, ssrc: 5 };
        let bytes = [&header.emit()[..], &what.to_be_bytes()].concat().into();
        let rtp = Some(RtpStamp { sequence, timestamp: what / 4, ssrc: 5 });
        Packet { track, bytes, arrived: Time::ZERO, rtp }
    }

    /// What came out: track, number and content.
    fn told(received: &Received) -> (u8, u16, u32) {
        let Received::Packet(packet) = received else { panic!("{received:?}") };
        let bytes = &packet.bytes;
        let number = u16::from_be_bytes([bytes[2], bytes[3]]);
        assert_eq!(packet.rtp.map(|rtp| rtp.sequence), Some(number));
        (packet.track, number, u32::from_be_bytes([bytes[12], bytes[13], bytes[14], bytes[15]]))
    }

    fn carried(merge: &mut Merge, all: impl IntoIterator<Item = (u8, u16, u32)>) -> Vec<(u8, u16, u32)> {
        let pass = |(track, number, what)| merge.carry(packet(track, number, what));
        all.into_iter().filter_map(pass).map(|packet| told(&Received::Packet(packet))).collect()
    }

    fn changed(merge: &mut Merge) -> Vec<(u8, u16, u32)> {
        let mut out = VecDeque::new();
        merge.change(&mut out);
        out.iter().map(told).collect()
    }

    #[test]
    fn a_way_that_is_ahead_takes_over_behind_the_newest_packet() {
        let mut merge = Merge::new(true);
        carried(&mut merge, (10..20).map(|n| (0, n, u32::from(n))));
        // The other way numbers them differently.
        for n in 15_u16..25 {
            assert_eq!(merge.hold(packet(0, n.wrapping_add(65_530), u32::from(n))), n < 20);
        }
        assert!(merge.meets() && merge.has_news());
        assert_eq!(changed(&mut merge), (20..25).map(|n| (0, n, u32::from(n))).collect::<Vec<_>>());
        assert_eq!(carried(&mut merge, [(0, 19, 25)]), [(0, 25, 25)]);
    }

    #[test]
    fn a_way_that_is_behind_meets_later() {
        let mut merge = Merge::new(true);
        carried(&mut merge, (10..20).map(|n| (0, n, u32::from(n))));
        assert!(!merge.meets());
        for n in 15..19 {
            assert!(merge.hold(packet(0, n, u32::from(n))));
            assert!(!merge.meets() && !merge.has_news());
        }
        assert!(merge.hold(packet(0, 19, 19)) && merge.meets() && !merge.has_news());
        assert_eq!(changed(&mut merge), []);
        assert_eq!(carried(&mut merge, [(0, 20, 20)]), [(0, 20, 20)]);
    }

    #[test]
    fn tracks_are_cut_each_for_itself() {
        let mut merge = Merge::new(true);
        carried(&mut merge, [(0, 1, 1), (1, 7, 101), (0, 2, 2)]);
        merge.hold(packet(0, 2, 2));
        assert!(!merge.meets(), "the other track's is not there");
        merge.hold(packet(1, 7, 101));
        merge.hold(packet(0, 3, 3));
        merge.hold(packet(1, 8, 102));
        assert!(merge.meets());
        assert_eq!(changed(&mut merge), [(0, 3, 3), (1, 8, 102)]);
    }

    #[test]
    fn what_was_lost_in_between_shows_in_the_numbers() {
        let mut merge = Merge::new(true);
        carried(&mut merge, (10..20).map(|n| (0, n, u32::from(n))));
        // The newest one is lost on the other way: it goes on behind the last one that is known.
        merge.hold(packet(0, 118, 18));
        merge.hold(packet(0, 120, 20));
        assert!(!merge.meets() && merge.has_news());
        assert_eq!(changed(&mut merge), [(0, 20, 20)]);
        // Nothing is known: a number is left out, so that it is noticed.
        merge.hold(packet(0, 7, 90));
        assert_eq!(changed(&mut merge), [(0, 22, 90)]);
    }

    #[test]
    fn numbers_never_go_back() {
        let mut merge = Merge::new(true);
        // The carrying way has left levels out, and so counts less.
        carried(&mut merge, [(0, 10, 1), (0, 11, 5), (0, 12, 9)]);
        for (number, what) in [(20, 1), (21, 2), (22, 5), (23, 6), (24, 10), (25, 11)] {
            merge.hold(packet(0, number, what));
        }
        assert_eq!(changed(&mut merge), [(0, 13, 6), (0, 14, 10), (0, 15, 11)]);
    }

    #[test]
    fn packets_that_look_alike_are_told_apart_by_their_numbers() {
        let mut merge = Merge::new(true);
        carried(&mut merge, [(0, 1, 1), (0, 2, 7), (0, 3, 7)]);
        for (number, what) in [(1, 1), (2, 7), (3, 7), (4, 7), (5, 8)] {
            merge.hold(packet(0, number, what));
        }
        assert_eq!(changed(&mut merge), [(0, 4, 7), (0, 5, 8)]);
    }

    #[test]
    fn a_way_that_begins_again_repeats_nothing() {
        let mut merge = Merge::new(true);
        carried(&mut merge, (10..20).map(|n| (0, n, u32::from(n))));
        // While it carries, with the numbers of before, and with others, as where levels were left out.
        assert_eq!(carried(&mut merge, (12..22).map(|n| (0, n, u32::from(n)))), [(0, 20, 20), (0, 21, 21)]);
        let shifted = |shift: u16| move |n: u16| (0, n.wrapping_add(shift), u32::from(n));
        for (shift, range) in [(100, 12..24), (7, 16..26), (65_000, 14..28)] {
            let new = range.end - 2..range.end;
            let expected: Vec<_> = new.map(|n| (0, n, u32::from(n))).collect();
            assert_eq!(carried(&mut merge, range.map(shifted(shift))), expected, "{shift}");
        }
        // While it is held: unicast carries, and the group meets it, and begins again.
        let mut merge = Merge::new(true);
        carried(&mut merge, (10..20).map(|n| (0, n, u32::from(n))));
        let held = (18..20).chain(10..21);
        held.for_each(|n| _ = merge.hold(packet(0, n, u32::from(n))));
        assert!(merge.meets());
        assert_eq!(changed(&mut merge), [(0, 20, 20)]);
        assert_eq!(carried(&mut merge, [(0, 21, 21)]), [(0, 21, 21)]);
    }

    #[test]
    fn another_process_goes_on_with_the_same_numbers_and_knows_what_was_passed_on() {
        let mut merge = Merge::new(true);
        carried(&mut merge, (10..20).map(|n| (0, n, u32::from(n))));
        (15..22).for_each(|n| _ = merge.hold(packet(0, n + 100, u32::from(n))));
        assert_eq!(changed(&mut merge), [(0, 20, 20), (0, 21, 21)]);
        let bytes = minicbor::to_vec(merge.save()).expect("memory takes all that is written to it");
        let saved = minicbor::decode(&bytes).expect("it was just written");
        let mut merge = Merge::restore(true, saved).expect("it was just saved");
        assert_eq!(carried(&mut merge, [(0, 122, 22)]), [(0, 22, 22)]);
        // The other way takes over behind the very same packet.
        assert!(merge.hold(packet(0, 12, 12)), "it was passed on before");
        assert!(!merge.meets());
        (18..25).for_each(|n| _ = merge.hold(packet(0, n, u32::from(n))));
        assert!(merge.meets());
        assert_eq!(changed(&mut merge), [(0, 23, 23), (0, 24, 24)]);
    }

    #[test]
    fn what_no_process_would_say_is_not_taken() {
        let mark = Mark::of(&packet(0, 1, 1), true);
        let line = |known| SavedLine { newest: None, known: vec![(mark, 1); known], raise: 0 };
        let is_taken = |lines| Merge::restore(true, SavedMerge { lines }).is_some();
        assert!(is_taken(vec![line(GROUP_KNOWN_MAX)]));
        assert!(!is_taken(vec![line(GROUP_KNOWN_MAX + 1)]));
        assert!(!is_taken((0..257).map(|_| line(1)).collect()));
    }

    #[test]
    fn transport_streams_have_no_headers() {
        let mut merge = Merge::new(false);
        let ts = |sequence| {
            let mut bytes = vec![0x47; 188];
            bytes[1..3].copy_from_slice(&sequence_of(sequence));
            let rtp = Some(RtpStamp { sequence, timestamp: 1, ssrc: 1 });
            Packet { track: 0, bytes: bytes.into(), arrived: Time::ZERO, rtp }
        };
        fn sequence_of(number: u16) -> [u8; 2] {
            number.to_be_bytes()
        }
        merge.carry(ts(1));
        merge.hold(ts(1));
        merge.hold(ts(2));
        let mut out = VecDeque::new();
        merge.change(&mut out);
        assert_eq!(out, [Received::Packet(ts(2))]);
    }
}
