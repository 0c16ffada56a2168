//! A buffer of a link: packets in the order in which they came, bounded in bytes.

use std::collections::VecDeque;

use outflow_media::{Tag, Time};
use outflow_packet::DropReason;

use crate::flow::FlowId;

/// What is known of a packet that waits, or arrives.
#[derive(Debug, Clone, Copy)]
pub struct Waiting {
    /// The flow that it is of.
    pub flow: FlowId,
    /// What it means.
    pub tag: Tag,
    /// Its size, as it counts on the link.
    pub bytes: usize,
    /// When it came.
    pub arrived: Time,
    /// The place of the packet before it that is discarded together with it.
    pub(super) before: Option<u64>,
}

/// A packet that a link did not let through, and why.
#[derive(Debug)]
pub struct Dropped<T> {
    /// What is known of it.
    pub packet: Waiting,
    /// The packet itself.
    pub item: T,
    /// Why.
    pub reason: DropReason,
}

/// Packets that wait. Places are numbered as packets come, and stay empty where one was taken out; the first never
/// is.
#[derive(Debug)]
pub(super) struct Buffer<T> {
    waiting: VecDeque<Option<(Waiting, T)>>,
    /// The place of the first.
    first: u64,
    packets: usize,
    bytes: usize,
}

impl<T> Default for Buffer<T> {
    fn default() -> Self {
        Buffer { waiting: VecDeque::new(), first: 0, packets: 0, bytes: 0 }
    }
}

impl<T> Buffer<T> {
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn packets(&self) -> usize {
        self.packets
    }

    pub(super) fn push(&mut self, packet: Waiting, item: T) {
        self.packets += 1;
        self.bytes += packet.bytes;
        self.waiting.push_back(Some((packet, item)));
    }

    /// The packet that goes next.
    pub(super) fn first(&self) -> Option<&Waiting> {
        self.waiting.front()?.as_ref().map(|(packet, _)| packet)
    }

    /// Takes the packet out that goes next, and the place where it stood.
    pub(super) fn pop(&mut self) -> Option<(u64, Waiting, T)> {
        let place = self.first;
        let (packet, item) = self.waiting.pop_front()??;
        self.first += 1;
        self.left(packet.bytes);
        Some((place, packet, item))
    }

    fn take(&mut self, place: u64) -> Option<(Waiting, T)> {
        let at = usize::try_from(place.checked_sub(self.first)?).ok()?;
        let (packet, item) = self.waiting.get_mut(at)?.take()?;
        self.left(packet.bytes);
        Some((packet, item))
    }

    /// A packet of this size was taken out. The first place is not empty.
    fn left(&mut self, bytes: usize) {
        self.packets -= 1;
        self.bytes -= bytes;
        while let Some(None) = self.waiting.front() {
            self.waiting.pop_front();
            self.first += 1;
        }
    }
}

/// The packets of a buffer, for the rules that decide which of them go.
pub(super) trait Held {
    /// Bytes that wait.
    fn bytes(&self) -> usize;

    /// The packet that goes next, and its place.
    fn first(&self) -> Option<(u64, &Waiting)>;

    /// The place where the next one will stand.
    fn next_place(&self) -> u64;

    /// The packet at a place goes no further, if it is there. Returns the place of the one before it that is
    /// discarded together with it.
    fn discard(&mut self, place: u64, reason: DropReason) -> Option<u64>;
}

/// A buffer, and what is taken out of it.
pub(super) struct Sifted<'b, T> {
    pub(super) buffer: &'b mut Buffer<T>,
    pub(super) dropped: &'b mut Vec<Dropped<T>>,
}

impl<T> Sifted<'_, T> {
    /// The places where packets of a flow wait.
    pub(super) fn places_of(&self, flow: FlowId) -> Vec<u64> {
        let places = (self.buffer.first..).zip(&self.buffer.waiting);
        let of_flow =
            |waiting: &Option<(Waiting, T)>| waiting.as_ref().is_some_and(|(one, _)| one.flow == flow);
        places.filter(|(_, waiting)| of_flow(waiting)).map(|(place, _)| place).collect()
    }
}

impl<T> Held for Sifted<'_, T> {
    fn bytes(&self) -> usize {
        self.buffer.bytes
    }

    fn first(&self) -> Option<(u64, &Waiting)> {
        Some((self.buffer.first, self.buffer.first()?))
    }

    fn next_place(&self) -> u64 {
        self.buffer.first + self.buffer.waiting.len() as u64
    }

    fn discard(&mut self, place: u64, reason: DropReason) -> Option<u64> {
        let (packet, item) = self.buffer.take(place)?;
        let before = packet.before;
        self.dropped.push(Dropped { packet, item, reason });
        before
    }
}
