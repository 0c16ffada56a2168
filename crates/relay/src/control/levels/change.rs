//! Sinks go from one level of a transport stream to another.
//!
//! They do so where a frame of the original begins, each at its own position: it has been sent all of one
//! branch before that frame, and goes on in the other from there. In between it is *greeted*:
//!
//! - The whole stream stands in the ring as it came, and a datagram of it may have the end of one frame and
//!   the start of the next. A sink that leaves the whole stream gets the former, one that comes the latter.
//! - The main stream's continuity counter is elsewhere in the other branch. It gets there by packets that
//!   add nothing ([`TsFrames::fill`](outflow_ts::TsFrames::fill)), so that there is no gap.
//!
//! RTP sequence numbers go on because another offset is subtracted from the sink's from then on.

use bytes::Bytes;
use outflow_media::Time;
use outflow_packet::MaxLayer;
use outflow_rtp::set_sequence;
use outflow_ts::{DATAGRAM_BYTES, PACKET_BYTES};

use super::frames::{Mark, Start};
use super::ts::TsBranches;
use crate::control::distribution::Distribution;
use crate::schedule::{Encapsulation, Place, SinkKey, Splice, Stop};
use outflow_ring::Seq;

/// From where to where a sink goes.
#[derive(Debug, Clone, Copy)]
struct Hop {
    /// The place of the frame among those of the whole stream.
    mark: usize,
    from: (usize, Start),
    to: (usize, Start),
}

impl TsBranches {
    /// More is known of a transport stream than before: for some this is where they change.
    pub(super) fn look_at_news(self, out: &mut Distribution, now: Time) -> bool {
        let Some(levels) = self.frames_mut(out).filter(|levels| levels.news) else { return false };
        levels.news = false;
        let layers = levels.layers();
        let mut changing = core::mem::take(&mut levels.changing);
        if core::mem::replace(&mut levels.layers_before, layers) != layers {
            let of_whole = |key: &SinkKey| {
                out.place_of(*key).is_some_and(|(at, _)| out.branches.whole(at) == self.whole)
            };
            changing = out.sinks.iter().map(|(key, _)| SinkKey(key)).filter(of_whole).collect();
        }
        changing.retain(|key| self.hop_or_stop(out, now, *key));
        if let Some(levels) = self.frames_mut(out) {
            levels.changing = changing;
        }
        true
    }

    /// Lets a sink go on in another branch if this is where it can, or stop where that will be. Returns whether
    /// it still takes other layers than it wants.
    pub(super) fn hop_or_stop(self, out: &mut Distribution, now: Time, key: SinkKey) -> bool {
        let Some((from, place)) =
            out.place_of(key).filter(|(from, _)| out.branches.whole(*from) == self.whole)
        else {
            return false;
        };
        let (Some(levels), Some(sink)) = (self.frames(out), out.sinks.get(key.0)) else { return false };
        let (max_layer, wish) = (self.max_layer_at(out, from), levels.max_layer(sink.spec.level));
        if max_layer == wish || place == Place::Paused {
            out.go_on(from, key);
            return false;
        }
        // A sink that has been sent nothing joins again.
        if place == Place::Waiting || sink.needs_preamble {
            out.take_out(from, key);
            out.place(now, key);
            out.left_branch(now, from);
            return false;
        }
        let (is_spliced, came_at) = (sink.splice.is_given(), sink.came_at);
        let cursor = out.branches.get(from).and_then(|branch| branch.cursor(&out.sinks, key));
        let hop = |cursor| Some((cursor, self.hop_behind(out, now, from, (cursor, came_at), wish)?));
        let hop = cursor.and_then(hop);
        match hop {
            Some((cursor, hop)) if hop.from.1.at == cursor && is_spliced => {
                self.hop(out, now, key, hop);
                return self.max_layer_at(out, hop.to.0) != wish;
            }
            Some((_, hop)) => {
                if let Some(branch) = out.branches.get_mut(from) {
                    let stop = Stop { at: hop.from.1.at, begins_again: false };
                    branch.stop_at(&mut out.sinks, key, stop);
                }
            }
            None => out.go_on(from, key),
        }
        true
    }

    /// The layers that a branch has of a transport stream.
    fn max_layer_at(self, out: &Distribution, index: usize) -> MaxLayer {
        out.branches
            .slot(index)
            .and_then(|slot| slot.level())
            .map_or(MaxLayer::ALL, |(_, level)| level.filter.max_layer())
    }

    /// The first change from a branch towards other layers that is not before a position there, nor before a
    /// frame.
    fn hop_behind(
        self,
        out: &mut Distribution,
        now: Time,
        from: usize,
        (cursor, frame): (Seq, Option<u32>),
        wish: MaxLayer,
    ) -> Option<Hop> {
        let max_layer = self.max_layer_at(out, from);
        let is_behind = |start: &Start| {
            let steps = frame.map_or(0, |frame| start.frame.wrapping_sub(frame).cast_signed());
            start.at >= cursor && steps >= 0
        };
        for mark in 0.. {
            let known = self.frames(out)?.marks.get(mark)?;
            let next = known.max_layer_from(max_layer, wish);
            let Some(start) = self.start_in(out, from, known).filter(is_behind) else { continue };
            if next == max_layer {
                continue;
            }
            let to = self.at_max_layer(out, now, next);
            let known = self.frames(out)?.marks.get(mark)?;
            if let Some(there) = self.start_in(out, to, known) {
                return Some(Hop { mark, from: (from, start), to: (to, there) });
            }
        }
        None
    }

    /// Where a frame begins in a branch, if that has it still.
    fn start_in(self, out: &Distribution, index: usize, mark: &Mark) -> Option<Start> {
        let slot = out.branches.slot(index)?;
        let start = match slot.level() {
            Some((_, level)) => *level.start_of(mark.start.frame)?,
            None => mark.start,
        };
        (start.at >= slot.branch.ring().first()).then_some(start)
    }

    fn hop(self, out: &mut Distribution, now: Time, key: SinkKey, hop: Hop) {
        let ((from, left), (to, entered)) = (hop.from, hop.to);
        let bytes = self.splice(out, key, hop);
        out.take_out(from, key);
        let Some(sink) = out.sinks.get(key.0) else { return };
        // Of the datagram that the frame begins in, the rest is in the splice, if there is one.
        let at = entered.at + Seq::from(entered.skip > 0 && !bytes.is_empty());
        let datagrams = bytes.len().div_ceil(DATAGRAM_BYTES) as u16;
        let sequence = outflow_rtp::sequence(&entered.rtp_header).wrapping_add((at - entered.at) as u16);
        let next = outflow_rtp::sequence(&left.rtp_header).wrapping_sub(sink.sequence_offset);
        let sequence_offset = match sink.spec.encapsulation {
            Encapsulation::Rtp | Encapsulation::Tracks => sequence.wrapping_sub(next.wrapping_add(datagrams)),
            Encapsulation::Ts => 0,
        };
        let datagram = |index: u16| {
            let begins = usize::from(index) * DATAGRAM_BYTES;
            let mut header = entered.rtp_header;
            if header[0] != 0 {
                set_sequence(&mut header, sequence.wrapping_sub(datagrams).wrapping_add(index));
            }
            (bytes.slice(begins..bytes.len().min(begins + DATAGRAM_BYTES)), header)
        };
        let splice = Splice::new((0..datagrams).map(datagram).collect());
        let Some(slot) = out.branches.slot_mut(to) else { return };
        slot.idle_since = None;
        slot.branch.enter(&mut out.sinks, key, (Some(entered.frame), at, sequence_offset), splice);
        out.left_branch(now, from);
    }

    /// What a sink is sent between two branches. Nothing for one that has lost something: there is nothing that
    /// could be continued.
    fn splice(self, out: &Distribution, key: SinkKey, hop: Hop) -> Bytes {
        let Hop { mark, from: (from, left), to: (to, entered) } = hop;
        let sink = out.sinks.get(key.0).filter(|sink| sink.broken.is_empty());
        let mark = self.frames(out).and_then(|levels| Some((levels, levels.marks.get(mark)?)));
        let (Some(_), Some((levels, mark))) = (sink, mark) else { return Bytes::new() };
        let datagram = |index: usize, at: Seq| {
            let entry = out.branches.get(index).and_then(|branch| branch.ring().get(at));
            entry.map_or(&[][..], |entry| &entry.packet.bytes[..])
        };
        let head = datagram(from, left.at).get(..left.skip * PACKET_BYTES).unwrap_or_default();
        let fill = levels.fill(
            mark,
            left.counter_offset,
            left.counter_offset.wrapping_sub(entered.counter_offset) & 0x0f,
        );
        let rest = match entered.skip {
            0 => &[][..],
            skip => datagram(to, entered.at).get(skip * PACKET_BYTES..).unwrap_or_default(),
        };
        Bytes::from([head, &fill[..], rest].concat())
    }
}
