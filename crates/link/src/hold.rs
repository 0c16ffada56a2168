//! Packets of frames that do not show yet what they are. In front of the first slice of a picture may come packets
//! of their own with a delimiter, parameter sets, or messages: what these are worth is not known before the
//! slice is seen. They are held back until then (that is the next packet of the flow as a rule) and count as
//! what their frame is.

use outflow_media::{Kind, Tag, Time};
use outflow_packet::limits::HELD_PACKETS_MAX;

use super::buffer::Waiting;
use super::{FlowId, Link};

/// What is held back.
#[derive(Debug)]
pub(super) struct Hold<T> {
    /// By flow: packets of one frame. Memory stays for the next.
    flows: Vec<Vec<(Waiting, T)>>,
    bytes: usize,
    packets: usize,
}

impl<T> Default for Hold<T> {
    fn default() -> Self {
        Hold { flows: Vec::new(), bytes: 0, packets: 0 }
    }
}

impl<T> Hold<T> {
    /// Bytes and packets.
    pub(super) fn holds(&self) -> (usize, usize) {
        (self.bytes, self.packets)
    }

    fn of(&self, flow: FlowId) -> &[(Waiting, T)] {
        self.flows.get(flow.0).map_or(&[], Vec::as_slice)
    }

    fn put(&mut self, packet: Waiting, item: T) {
        let FlowId(at) = packet.flow;
        if self.flows.len() <= at {
            self.flows.resize_with(at + 1, Vec::new);
        }
        self.bytes += packet.bytes;
        self.packets += 1;
        self.flows[at].push((packet, item));
    }

    /// What is held of a flow; to be given back by [`Self::restore`].
    pub(super) fn take(&mut self, flow: FlowId) -> Vec<(Waiting, T)> {
        let taken = self.flows.get_mut(flow.0).map(core::mem::take).unwrap_or_default();
        self.bytes -= taken.iter().map(|(packet, _)| packet.bytes).sum::<usize>();
        self.packets -= taken.len();
        taken
    }

    /// The memory of what was taken.
    pub(super) fn restore(&mut self, flow: FlowId, memory: Vec<(Waiting, T)>) {
        debug_assert!(memory.is_empty(), "only its memory is of use");
        if let Some(place) = self.flows.get_mut(flow.0) {
            *place = memory;
        }
    }
}

impl<T> Link<T> {
    /// Whether a packet is the first of its frame that shows what that is.
    pub fn shows(&self, flow: FlowId, tag: &Tag) -> bool {
        let is_held = || self.held.of(flow).first().is_some_and(|(held, _)| held.tag.frame == tag.frame);
        tag.kind != Kind::Header && (tag.first || is_held())
    }

    /// A packet comes. Those that show nothing wait for one that does, or ends their frame.
    pub(super) fn show(&mut self, now: Time, packet: Waiting, item: T) {
        let Waiting { flow, tag, .. } = packet;
        if self.flows.get(flow.0).is_none() {
            return self.arrive(now, packet, item);
        }
        let held = self.held.of(flow);
        let is_other = held.first().is_some_and(|(held, _)| held.tag.frame != tag.frame);
        let has_room = is_other || held.len() < HELD_PACKETS_MAX;
        if tag.kind == Kind::Header && !tag.last && has_room {
            if is_other {
                self.release(now, flow, None);
            }
            return self.held.put(packet, item);
        }
        self.release(now, flow, Some(&tag));
        self.arrive(now, packet, item);
    }

    /// What is held of a flow arrives: as this is, if it is of the same frame.
    pub(super) fn release(&mut self, now: Time, flow: FlowId, shown: Option<&Tag>) {
        if self.held.of(flow).is_empty() {
            return;
        }
        let mut held = self.held.take(flow);
        for (mut packet, item) in held.drain(..) {
            if let Some(shown) = shown.filter(|shown| shown.frame == packet.tag.frame) {
                (packet.tag.kind, packet.tag.needs) = (shown.kind, shown.needs);
            }
            self.arrive(now, packet, item);
        }
        self.held.restore(flow, held);
    }

    /// The flow ends, so that nothing shows any more what is held of it.
    pub(super) fn release_at_end(&mut self, flow: FlowId) {
        if let Some(now) = self.held.of(flow).last().map(|(last, _)| last.arrived) {
            self.release(now, flow, None);
        }
    }

    /// What is held back arrives, because nothing comes behind it.
    pub fn release_all(&mut self, now: Time) {
        (0..self.held.flows.len()).for_each(|flow| self.release(now, FlowId(flow), None));
    }
}
