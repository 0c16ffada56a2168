//! Packets of frames that do not show yet what they are. In front of the first slice of a picture may come packets
//! of their own with a delimiter, parameter sets, or messages: what these are worth is not known before the
//! slice is seen. They are held back until then (that is the next packet of the flow as a rule) and count as
//! what their frame is.

use outflow_media::{Kind, Tag};

use crate::buffer::Waiting;
use crate::flow::FlowId;

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

    /// How many flows there is room for.
    pub(super) fn flows(&self) -> usize {
        self.flows.len()
    }

    /// Whether a packet is the first of its frame that shows what that is.
    pub(super) fn shows(&self, flow: FlowId, tag: &Tag) -> bool {
        let is_held = || self.of(flow).first().is_some_and(|(held, _)| held.tag.frame == tag.frame);
        tag.kind != Kind::Header && (tag.first || is_held())
    }

    /// What is held of a flow.
    pub(super) fn of(&self, flow: FlowId) -> &[(Waiting, T)] {
        self.flows.get(flow.0).map_or(&[], Vec::as_slice)
    }

    /// Holds a packet back.
    pub(super) fn put(&mut self, packet: Waiting, item: T) {
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
