//! What becomes of packets for a sink with a cursor of its own.

use core::ops::Range;

use outflow_packet::{DropReason, MaxLayer, TrackMask};

use super::counters::Counters;
use super::sink::Sink;
use crate::limits::{LOOKED_AT_MAX, ORDER_PACKETS_MAX};
use outflow_ring::{Entry, Ring, Seq};

/// What becomes of some packets.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Stride {
    pub(super) sent: Counters,
    /// Packets that are of no use to the sink, because it has lost what they need.
    skipped: u64,
    /// Packets of layers that it does not take.
    left_out: u64,
}

impl Stride {
    /// One packet more.
    pub(super) fn count(&mut self, ring: &Ring, sink: &Sink, (seq, entry): (Seq, &Entry)) {
        let tag = &entry.packet.tag;
        if !sink.tracks_at(seq, ring.main_track()).has(tag.track) {
            return;
        }
        if !ring.is_within(sink.max_layer, tag) {
            self.left_out += 1;
        } else if sink.broken.has(tag.track) {
            self.skipped += 1;
        } else {
            self.sent.packets += 1;
            self.sent.bytes += entry.packet.bytes.len() as u64;
        }
    }

    /// The sink has gone past them.
    pub(super) fn add_to(&self, sink: &mut Sink) {
        sink.counters.add(self.sent);
        sink.drops.add(DropReason::DependsOnDropped, self.skipped);
        sink.drops.add(DropReason::Level, self.left_out);
        sink.sequence_offset = sink.sequence_offset.wrapping_add(self.left_out as u16);
    }

    /// It goes back to before them.
    pub(super) fn take_from(&self, sink: &mut Sink) {
        sink.counters.take_off(self.sent);
        sink.drops.take_back(DropReason::DependsOnDropped, self.skipped);
        sink.drops.take_back(DropReason::Level, self.left_out);
        sink.sequence_offset = sink.sequence_offset.wrapping_sub(self.left_out as u16);
    }
}

/// How far a sink goes by one order, and what becomes of the packets: as far as packets and bytes of an order
/// reach and packets are looked at at once, but not beyond where a broken track mends, where the sink takes other layers, or where it goes on in
/// another branch.
pub(super) fn stride(ring: &Ring, sink: &Sink, reach: Range<Seq>, room: usize) -> (Seq, Stride) {
    let from = reach.start;
    let (mut to, mut stride) = (from, Stride::default());
    for (seq, entry) in ring.range(from, reach.end) {
        let mends = seq > from && sink.broken.has(entry.packet.tag.track) && entry.starts_key;
        let full = stride.sent.packets as usize >= ORDER_PACKETS_MAX
            || stride.sent.bytes as usize >= room
            || (seq - from) as usize >= LOOKED_AT_MAX;
        let stops =
            sink.stop.is_some_and(|stop| seq >= stop.at) || sink.is_entering(from) != sink.is_entering(seq);
        if mends || full || stops || max_layer_from(ring, sink, entry) != sink.max_layer {
            break;
        }
        to = seq + 1;
        stride.count(ring, sink, (seq, entry));
    }
    (to, stride)
}

/// A receiver that has lost something of a track can go on where decoding can start.
pub(super) fn mend(broken: &mut TrackMask, entry: &Entry) {
    if entry.starts_key {
        *broken = broken.without(TrackMask::only(entry.packet.tag.track));
    }
}

/// The layers that a sink takes from this packet on.
pub(super) fn max_layer_from(ring: &Ring, sink: &Sink, entry: &Entry) -> MaxLayer {
    let tag = &entry.packet.tag;
    match tag.track == ring.main_track() {
        true => {
            let level = sink.spec.level;
            sink.max_layer.grown(level, tag).from(level.of(tag.layers), tag, entry.opens_all)
        }
        false => sink.max_layer,
    }
}
