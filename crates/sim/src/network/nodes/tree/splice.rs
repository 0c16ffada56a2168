//! Where the packets of another parent go on from those of the one before. A parent begins with its newest key frame,
//! much of which was handed on already; and relays renumber packets by what they leave out.
//!
//! Packets are known again by the timestamp of their frame and their place in it. What was handed on is left out, and
//! what comes next gets the next sequence number; where something is missing in between, one number is left out, so
//! that every receiver sees that. (Live, packets are known again by what is in them: `front/tree/src/splice.rs`.)

use bytes::{Bytes, BytesMut};
use outflow_media::{Format, Time};
use outflow_packet::Parser;
use outflow_rtp::RtpHeader;

use super::limits::JOINT_WAIT;
use crate::network::nodes::reorder::Reorder;

/// A packet on its way.
#[derive(Debug, Clone, Copy)]
struct Place {
    timestamp: u32,
    sequence: u16,
    /// Packets of its frame that come before it, if that is known.
    index: Option<u16>,
    /// The last one of its frame.
    is_last: bool,
    /// Nothing is missing in front of it.
    follows: bool,
}

/// Packets as one parent sends them in one turn.
#[derive(Debug)]
pub(super) struct Way {
    parser: Parser,
    /// Of the frame that is coming: its timestamp, and its first number.
    frame: Option<(u32, u16)>,
    next: Option<u16>,
    /// What is added to sequence numbers.
    shift: u16,
    order: Reorder<Bytes>,
}

impl Way {
    pub(super) fn new(format: &Format) -> Self {
        Way { parser: Parser::new(format), frame: None, next: None, shift: 0, order: Reorder::default() }
    }

    /// A packet has come.
    pub(super) fn put(&mut self, now: Time, packet: Bytes) {
        if let Ok(header) = RtpHeader::new_checked(&packet) {
            let sequence = header.sequence();
            self.order.put(now, sequence, packet);
        }
    }

    /// The next packet, in order.
    pub(super) fn next(&mut self, now: Time) -> Option<Bytes> {
        self.order.take(now).map(|(_, packet)| packet)
    }

    fn place(&mut self, packet: &[u8]) -> Option<Place> {
        let header = RtpHeader::new_checked(packet).ok()?;
        let (timestamp, sequence) = (header.timestamp(), header.sequence());
        if self.parser.tag(0, packet).is_ok_and(|tag| tag.first) {
            self.frame = Some((timestamp, sequence));
        }
        let frame = self.frame.filter(|(of, _)| *of == timestamp);
        let index = frame.map(|(_, first)| sequence.wrapping_sub(first));
        let follows = self.next == Some(sequence);
        self.next = Some(sequence.wrapping_add(1));
        Some(Place { timestamp, sequence, index, is_last: header.marker(), follows })
    }
}

/// What was handed on last.
#[derive(Debug, Clone, Copy)]
struct Last {
    timestamp: u32,
    sequence: u16,
    index: Option<u16>,
    is_last: bool,
}

/// A new parent's packets, until they have come to what was handed on last.
#[derive(Debug, Default)]
struct Seam {
    since: Option<Time>,
    /// The one before was the last one of the frame that was handed on last.
    has_met: bool,
}

/// What was handed on, and how packets go on from that.
#[derive(Debug, Default)]
pub(super) struct Splice {
    last: Option<Last>,
    seam: Option<Seam>,
}

impl Splice {
    /// Packets of another way come from now on.
    pub(super) fn change(&mut self) {
        self.seam = self.last.map(|_| Seam::default());
    }

    /// Whether the packets of the new way have not come to those of the one before.
    pub(super) const fn is_open(&self) -> bool {
        self.seam.is_some()
    }

    /// A packet of the new way; what is to be handed on.
    pub(super) fn take(&mut self, now: Time, way: &mut Way, packet: Bytes) -> Option<Bytes> {
        let place = way.place(&packet)?;
        if let (Some(seam), Some(last)) = (&mut self.seam, self.last) {
            let waited = now.since(*seam.since.get_or_insert(now));
            let Some(behind) = seam.behind(last, place).or((waited > JOINT_WAIT).then_some(2)) else {
                seam.has_met = place.timestamp == last.timestamp && place.is_last;
                return None;
            };
            way.shift = last.sequence.wrapping_add(behind).wrapping_sub(place.sequence);
            self.seam = None;
        }
        Some(self.hand_on(way, place, packet))
    }

    /// A packet of the way before, while there is no other.
    pub(super) fn go_on(&mut self, way: &mut Way, packet: Bytes) -> Option<Bytes> {
        let place = way.place(&packet)?;
        Some(self.hand_on(way, place, packet))
    }

    fn hand_on(&mut self, way: &Way, place: Place, packet: Bytes) -> Bytes {
        let Place { timestamp, index, is_last, .. } = place;
        let sequence = place.sequence.wrapping_add(way.shift);
        if self.last.is_none_or(|last| sequence.wrapping_sub(last.sequence).cast_signed() > 0) {
            self.last = Some(Last { timestamp, sequence, index, is_last });
        }
        if way.shift == 0 {
            return packet;
        }
        let mut own = packet.try_into_mut().unwrap_or_else(|shared| BytesMut::from(&shared[..]));
        outflow_rtp::set_sequence(&mut own, sequence);
        own.freeze()
    }
}

impl Seam {
    /// By how much the number of a packet is to be larger than the last one; `None` if it was handed on before.
    fn behind(&self, last: Last, place: Place) -> Option<u16> {
        let ahead = place.timestamp.wrapping_sub(last.timestamp).cast_signed();
        if ahead > 0 {
            let is_next = last.is_last && self.has_met && place.follows && place.index == Some(0);
            return Some(if is_next { 1 } else { 2 });
        }
        let (before, index) = last.index.zip(place.index).filter(|_| ahead == 0)?;
        let by = index.wrapping_sub(before).cast_signed();
        (by > 0).then_some(if by == 1 { 1 } else { 2 })
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;
    use crate::network::nodes::tree::tests::{model, thinned};
    use crate::source::Source;

    /// Packets of the stream; those of one frame have its timestamp.
    fn packets() -> Vec<Bytes> {
        let mut source = Source::new(model());
        let mut rng = fastrand::Rng::with_seed(1);
        (0..40).flat_map(|_| thinned(&mut source, &mut rng)).collect()
    }

    fn numbered(packets: &[Bytes], first: u16) -> Vec<Bytes> {
        let number = |(index, packet): (usize, &Bytes)| {
            let mut own = BytesMut::from(&packet[..]);
            outflow_rtp::set_sequence(&mut own, first.wrapping_add(index as u16));
            own.freeze()
        };
        packets.iter().enumerate().map(number).collect()
    }

    /// Packets up to `end` come by one way, and those from `begin` on by another.
    fn join(end: usize, begin: usize) -> Vec<u16> {
        let (mut splice, all) = (Splice::default(), packets());
        let ways = [numbered(&all[..end], 65_530), numbered(&all[begin..], 7)];
        let mut out = Vec::new();
        for packets in ways {
            let mut way = Way::new(&Source::format());
            splice.change();
            out.extend(packets.into_iter().filter_map(|packet| splice.take(Time::ZERO, &mut way, packet)));
        }
        assert!(!splice.is_open());
        let payload = |packet: &Bytes| (packet.slice(1..2), packet.slice(4..));
        let rest = all[begin.max(end)..].iter().map(payload);
        let expected: Vec<_> = all[..end].iter().map(payload).chain(rest).collect();
        assert_eq!(out.iter().map(payload).collect::<Vec<_>>(), expected, "{end}, {begin}");
        let number = |packet: &Bytes| RtpHeader::new_checked(packet).expect("RTP").sequence();
        out.windows(2).map(|two| number(&two[1]).wrapping_sub(number(&two[0]))).collect()
    }

    #[test]
    fn another_parent_goes_on_where_the_one_before_has_come_to() {
        for end in 1..60 {
            assert!(join(end, 0).iter().all(|step| *step == 1), "{end}");
        }
        let is_last = |packet: &Bytes| RtpHeader::new_checked(packet).expect("RTP").marker();
        let begin = 55 + packets()[55..].iter().position(is_last).expect("a frame") + 1;
        let steps = join(50, begin);
        assert_eq!(steps.iter().position(|step| *step == 2), Some(49), "some are missing");
        assert_eq!(steps.iter().filter(|step| **step != 1).count(), 1);
    }

    #[test]
    fn a_parent_that_stays_behind_is_taken_all_the_same() {
        let (mut splice, all) = (Splice::default(), packets());
        let mut way = Way::new(&Source::format());
        assert!(splice.take(Time::ZERO, &mut way, all[50].clone()).is_some());
        splice.change();
        let mut way = Way::new(&Source::format());
        let late = Time::ZERO + JOINT_WAIT;
        let mut is_taken = |now, packet: &Bytes| splice.take(now, &mut way, packet.clone()).is_some();
        assert!(!is_taken(Time::ZERO, &all[0]));
        assert!(!is_taken(late, &all[1]));
        assert!(is_taken(late + Duration::from_millis(1), &all[2]));
    }
}
