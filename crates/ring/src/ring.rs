//! The session ring: the packets of a branch that are still owed to a sink, and those since the
//! newest key frame, at which receivers join.

use std::collections::VecDeque;

use bytes::Bytes;
use outflow_media::{Tag, Time};
use outflow_packet::limits::TRACKS_MAX;
use outflow_packet::{MaxLayer, Openings, Packet};

use super::policy::{Load, Policy};
use super::{Verdict, WhenFull};
use crate::limits::{RING_BYTES_MIN, RING_GIVE_UP_PARTS, RING_PACKETS_MAX};

/// Position of a packet in its branch, counting from 0, never reused.
pub type Seq = u64;

/// A packet in the ring.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The packet itself.
    pub packet: Packet,
    /// The RTP header that goes before a transport stream's packet when it travels in RTP
    /// (RFC 2250, section 2). Made once, shared by all receivers; unused for RTP streams.
    pub rtp_header: [u8; 12],
    /// Decoding can start at this packet: it is the first of a key frame, or the one that made
    /// known that its frame is one.
    pub starts_key: bool,
    /// Of the main track: a sink that took fewer layers can take all from this packet on.
    pub opens_all: bool,
    /// What a receiver that starts here needs first (the transport stream's PAT and PMT).
    pub preamble: Option<Bytes>,
    /// Bytes of all packets that went into the ring before it.
    begins: u64,
}

impl Entry {
    /// The RTP header for the preamble: that of the packet before this one, which the receiver
    /// that the preamble is for does not get.
    pub fn preamble_header(&self) -> [u8; 12] {
        let mut header = self.rtp_header;
        // No extension, padding or source beside the sender, and no end of a picture (RFC 3550, section 5.1).
        (header[0], header[1]) = (header[0] & 0xc0, header[1] & 0x7f);
        let sequence = u16::from_be_bytes([header[2], header[3]]).wrapping_sub(1);
        header[2..4].copy_from_slice(&sequence.to_be_bytes());
        header
    }
}

/// Packets in order, bounded in bytes.
///
/// The ring itself does not know its readers: each reader asks [`Ring::first`] whether its
/// position is still there.
#[derive(Debug)]
pub struct Ring {
    entries: VecDeque<Entry>,
    first: Seq,
    bytes: usize,
    bytes_max: usize,
    when_full: WhenFull,
    policy: Box<dyn Policy>,
    main_track: u8,
    /// Where the frame that is now arriving began, per track.
    frame_start: [Seq; TRACKS_MAX],
    /// Whether the policy refused packets of that frame, per track.
    frame_torn: [bool; TRACKS_MAX],
    /// First packets of key frames of the main track, oldest first.
    keys: VecDeque<Seq>,
    /// The newest key frame has not come in whole yet.
    key_arriving: bool,
    /// Where all layers of the main track can be taken.
    openings: Openings,
}

impl Ring {
    /// An empty ring of at most `bytes_max` bytes, joined at key frames of `main_track`. All chance
    /// of its policy comes from `seed`.
    pub fn new(bytes_max: usize, when_full: WhenFull, seed: u64, main_track: u8) -> Self {
        Ring {
            entries: VecDeque::new(),
            first: 0,
            bytes: 0,
            bytes_max: bytes_max.max(RING_BYTES_MIN),
            when_full,
            policy: when_full.begin(seed),
            main_track,
            frame_start: [0; TRACKS_MAX],
            frame_torn: [false; TRACKS_MAX],
            keys: VecDeque::new(),
            key_arriving: false,
            openings: Openings::default(),
        }
    }

    /// Changes the limit and the policy. A smaller limit takes effect with the next packet; under a
    /// policy that refuses, as soon as sinks have been sent what is above it.
    pub fn set_limits(&mut self, bytes_max: usize, when_full: WhenFull, seed: u64) {
        self.bytes_max = bytes_max.max(RING_BYTES_MIN);
        if when_full != self.when_full {
            self.when_full = when_full;
            self.policy = when_full.begin(seed);
        }
    }

    /// The track at whose key frames sinks join, and of which they may take fewer layers.
    pub fn main_track(&self) -> u8 {
        self.main_track
    }

    /// Whether a packet is for sinks that take layers up to `max_layer`.
    pub fn is_within(&self, max_layer: MaxLayer, tag: &Tag) -> bool {
        tag.track != self.main_track || max_layer.takes(tag.layer)
    }

    /// Position of the oldest packet that is still here.
    pub fn first(&self) -> Seq {
        self.first
    }

    /// Position that the next packet will get.
    pub fn head(&self) -> Seq {
        self.first + self.entries.len() as Seq
    }

    /// Bytes of the packets held.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Bytes of the packets from `from` on.
    fn bytes_from(&self, from: Seq) -> usize {
        match (self.get(from), self.entries.front()) {
            (Some(entry), Some(first)) => self.bytes - (entry.begins - first.begins) as usize,
            _ => 0,
        }
    }

    /// The newest packet of which this holds.
    pub fn newest(&self, is: impl Fn(&Entry) -> bool) -> Option<&Entry> {
        self.entries.iter().rev().find(|entry| is(entry))
    }

    /// Number of packets held.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no packet is held.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The packet at `seq`, if it is here.
    pub fn get(&self, seq: Seq) -> Option<&Entry> {
        let index = usize::try_from(seq.checked_sub(self.first)?).ok()?;
        self.entries.get(index)
    }

    /// The packets from `from` up to but without `to`, as far as they are here.
    pub fn range(&self, from: Seq, to: Seq) -> impl Iterator<Item = (Seq, &Entry)> {
        let clamp = |seq: Seq| (seq.clamp(self.first, self.head()) - self.first) as usize;
        let (from, to) = (clamp(from), clamp(to));
        let base = self.first;
        self.entries.range(from..to.max(from)).enumerate().map(move |(i, e)| (base + (from + i) as Seq, e))
    }

    /// First packets of key frames of the main track that are still here, oldest first.
    pub fn keys(&self) -> impl Iterator<Item = Seq> + '_ {
        self.keys.iter().copied()
    }

    /// Sinks join at these key frames only, of those that are here.
    pub fn keep_keys(&mut self, is_kept: impl Fn(Seq) -> bool) {
        self.keys.retain(|key| is_kept(*key));
    }

    /// First packet of the newest key frame that is still here.
    pub fn newest_key(&self) -> Option<Seq> {
        self.keys.back().copied()
    }

    /// Asks the policy about a packet that arrives, while the packets from `owed` on are owed to
    /// sinks. One that is refused leaves a hole in its frame.
    pub fn arrives(&mut self, now: Time, owed: Seq, packet: &Packet) -> Verdict {
        let load = Load {
            arriving_bytes: packet.bytes.len(),
            owed_bytes: self.bytes_from(owed),
            owed_packets: (self.head() - owed) as usize,
            bytes_max: self.bytes_max,
        };
        let verdict = self.policy.arrives(now, &load);
        if matches!(verdict, Verdict::Refuse(_)) {
            self.tear(&packet.tag);
        }
        verdict
    }

    /// A packet was refused: its frame is no place to begin.
    fn tear(&mut self, tag: &Tag) {
        let track = usize::from(tag.track) % TRACKS_MAX;
        if tag.first {
            self.frame_start[track] = self.head();
        } else if self.frame_torn[track] {
            return;
        }
        self.frame_torn[track] = true;
        let start = self.frame_start[track].max(self.first);
        for entry in self.entries.range_mut((start - self.first) as usize..) {
            entry.starts_key &= entry.packet.tag.track != tag.track;
            entry.opens_all &= entry.packet.tag.track != tag.track;
        }
        if tag.track == self.main_track {
            self.key_arriving = false;
            self.openings.torn(tag);
            self.keys.pop_back_if(|key| *key >= start);
        }
    }

    /// Whether all layers can be taken from this packet on, which is about to come ([`Openings::opens_all`]).
    pub fn opens_all(&self, tag: &Tag) -> bool {
        tag.track == self.main_track && self.openings.opens_all(tag)
    }

    /// Adds a packet. Returns the position of the first packet of its frame, if this packet made
    /// known that it is a key frame of the main track.
    ///
    /// `preamble` is asked only then.
    pub fn push(
        &mut self,
        packet: Packet,
        rtp_header: [u8; 12],
        preamble: impl FnOnce() -> Option<Bytes>,
    ) -> Option<Seq> {
        let seq = self.head();
        let tag = packet.tag;
        let opens_all = self.opens_all(&tag);
        let begins = self.entries.back().map_or(0, |last| last.begins + last.packet.bytes.len() as u64);
        self.bytes += packet.bytes.len();
        let is_behind = opens_all && !tag.key;
        let entry =
            Entry { packet, rtp_header, starts_key: false, opens_all: is_behind, preamble: None, begins };
        self.entries.push_back(entry);
        if is_behind {
            self.openings.opened();
        }
        let track = usize::from(tag.track) % TRACKS_MAX;
        if tag.first {
            self.frame_start[track] = seq;
            self.frame_torn[track] = false;
        }
        let (start, first) = (self.frame_start[track], self.first);
        if tag.track == self.main_track && tag.first {
            self.key_arriving = false;
        }
        let start = if tag.key && !self.frame_torn[track] {
            self.key_frame(start, first, &tag, preamble)
        } else {
            None
        };
        if tag.track == self.main_track {
            self.key_arriving = (self.key_arriving || start.is_some()) && !tag.last;
        }
        start
    }

    /// The newest packet makes known that its frame, which began at `start`, is a key frame.
    fn key_frame(
        &mut self,
        start: Seq,
        first: Seq,
        tag: &Tag,
        preamble: impl FnOnce() -> Option<Bytes>,
    ) -> Option<Seq> {
        // The first packets of a frame larger than the ring are gone: no sink can join there.
        let index = usize::try_from(start.checked_sub(first)?).ok()?;
        if self.entries.get(index)?.starts_key {
            return None;
        }
        let is_main = tag.track == self.main_track;
        for index in [index, self.entries.len() - 1] {
            let entry = &mut self.entries[index];
            entry.starts_key = true;
            entry.opens_all = is_main && tag.opens;
        }
        if !is_main {
            return None;
        }
        self.openings.key(tag);
        let entry = &mut self.entries[index];
        entry.preamble = preamble();
        self.keys.push_back(start);
        Some(start)
    }

    /// Where a receiver joins: at the newest key frame that has come in whole, so that it can show
    /// a picture at once; before there is one, at the newest.
    pub fn join_point(&self) -> Option<Seq> {
        let before = self.keys.len().checked_sub(2).filter(|_| self.key_arriving);
        before.and_then(|index| self.keys.get(index)).or(self.keys.back()).copied()
    }

    /// The oldest packet that the next to join needs: that of the key frame to join at, or of the
    /// frame that is now arriving, which may turn out to be one.
    pub fn join_floor(&self) -> Seq {
        let arriving = self.frame_start[usize::from(self.main_track) % TRACKS_MAX];
        self.join_point().unwrap_or(arriving).max(self.first)
    }

    /// What comes now does not go on from what came, and may begin in the midst of another group of pictures:
    /// no sink joins at what came before.
    pub fn break_off(&mut self) {
        self.keys.clear();
        self.key_arriving = false;
        self.openings.opened();
        self.frame_start = [self.head(); TRACKS_MAX];
    }

    /// The first position that must go so that the ring is within its limits again, with some
    /// room to spare; `None` if it is within them.
    pub fn overflow(&self) -> Option<Seq> {
        if self.bytes <= self.bytes_max && self.entries.len() <= RING_PACKETS_MAX {
            return None;
        }
        let bytes_goal = self.bytes_max - self.bytes_max / RING_GIVE_UP_PARTS;
        let count_goal = RING_PACKETS_MAX - RING_PACKETS_MAX / RING_GIVE_UP_PARTS;
        let (mut bytes, mut count) = (self.bytes, self.entries.len());
        let mut until = self.first;
        for entry in &self.entries {
            if bytes <= bytes_goal && count <= count_goal {
                break;
            }
            bytes -= entry.packet.bytes.len();
            count -= 1;
            until += 1;
        }
        Some(until)
    }

    /// Forgets all packets before `until`.
    pub fn forget_before(&mut self, until: Seq) {
        while self.first < until {
            let Some(entry) = self.entries.pop_front() else { break };
            self.bytes -= entry.packet.bytes.len();
            self.first += 1;
        }
        while self.keys.front().is_some_and(|&key| key < self.first) {
            self.keys.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(frame: u32, first: bool, key: bool, size: usize) -> Packet {
        let tag = Tag { frame, first, key, ..Tag::default() };
        Packet { bytes: Bytes::from(vec![0; size]), tag, arrived: Time::ZERO }
    }

    fn ring(bytes_max: usize) -> Ring {
        Ring::new(bytes_max, WhenFull::SlowestSink, 1, 0)
    }

    fn push(ring: &mut Ring, packet: Packet) -> Option<Seq> {
        ring.push(packet, [0; 12], || None)
    }

    #[test]
    fn a_key_frame_starts_at_the_first_packet_of_its_frame() {
        let mut ring = ring(1 << 20);
        push(&mut ring, packet(0, true, false, 100));
        push(&mut ring, packet(1, true, false, 10)); // access unit delimiter
        assert_eq!(push(&mut ring, packet(1, false, true, 100)), Some(1));
        assert_eq!(push(&mut ring, packet(1, false, true, 100)), None, "told once");
        assert_eq!(ring.newest_key(), Some(1));
        assert!(ring.get(1).is_some_and(|e| e.starts_key));
    }

    #[test]
    fn one_joins_at_the_newest_key_frame_that_is_whole() {
        let mut ring = ring(1 << 20);
        push(&mut ring, packet(0, true, true, 100));
        assert_eq!(ring.join_point(), Some(0), "nothing better yet");
        push(&mut ring, packet(0, false, true, 100));
        push(&mut ring, packet(1, true, false, 100));
        push(&mut ring, packet(2, true, true, 100));
        assert_eq!((ring.newest_key(), ring.join_point(), ring.join_floor()), (Some(3), Some(0), 0));
        push(&mut ring, packet(2, false, true, 100));
        push(&mut ring, packet(3, true, false, 100));
        assert_eq!((ring.join_point(), ring.join_floor()), (Some(3), 3), "the next frame has begun");
        let mut whole = packet(4, true, true, 100);
        whole.tag.last = true;
        push(&mut ring, whole);
        assert_eq!(ring.join_point(), Some(6), "its last packet is there");
    }

    #[test]
    fn none_joins_at_a_key_frame_with_a_hole() {
        let mut ring = Ring::new(RING_BYTES_MIN, WhenFull::Tail, 1, 0);
        push(&mut ring, packet(0, true, true, 100));
        push(&mut ring, packet(1, true, false, 100));
        push(&mut ring, packet(2, true, true, 100));
        let second = packet(2, false, true, RING_BYTES_MIN);
        assert_eq!(
            ring.arrives(Time::ZERO, 0, &second),
            Verdict::Refuse(outflow_packet::DropReason::TailDrop)
        );
        assert_eq!(push(&mut ring, packet(2, false, true, 100)), None, "the rest makes it no better");
        assert_eq!((ring.newest_key(), ring.join_point()), (Some(0), Some(0)));
        assert!(ring.range(1, 4).all(|(_, entry)| !entry.starts_key));
        let first = packet(3, true, true, RING_BYTES_MIN);
        assert!(matches!(ring.arrives(Time::ZERO, 0, &first), Verdict::Refuse(_)));
        assert_eq!(push(&mut ring, packet(3, false, true, 100)), None, "it lacks its first packet");
        assert_eq!(push(&mut ring, packet(4, true, true, 100)), Some(5), "the next is whole");
    }

    #[test]
    fn overflow_names_what_must_go() {
        let mut ring = ring(RING_BYTES_MIN);
        for frame in 0..(RING_BYTES_MIN / 1024) as u32 {
            push(&mut ring, packet(frame, true, frame == 0, 1024));
        }
        assert_eq!(ring.overflow(), None);
        push(&mut ring, packet(64, true, false, 1024));
        let until = ring.overflow().expect("one packet too many");
        assert_eq!(until, 5, "a sixteenth of 64 packets, and the one too many");
        ring.forget_before(until);
        assert_eq!(ring.first(), 5);
        assert_eq!(ring.bytes(), 60 * 1024);
        assert_eq!(ring.newest_key(), None);
        assert_eq!(ring.range(0, 7).map(|(seq, _)| seq).collect::<Vec<_>>(), [5, 6]);
    }

    #[test]
    fn keys_of_other_tracks_are_marked_but_not_joined_at() {
        let mut ring = ring(1 << 20);
        let mut audio = packet(0, true, true, 10);
        audio.tag.track = 1;
        assert_eq!(push(&mut ring, audio), None);
        assert!(ring.get(0).is_some_and(|e| e.starts_key));
        assert_eq!(ring.newest_key(), None);
    }
}
