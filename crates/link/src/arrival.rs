//! A packet comes to a link: it shows what its frame is, or is held back; then it has its place in a buffer, or
//! is discarded.

use outflow_media::{Kind, Tag, Time};
use outflow_packet::DropReason;
use outflow_packet::limits::HELD_PACKETS_MAX;

use super::{Link, Queue};
use crate::buffer::{Dropped, Sifted, Waiting};
use crate::discard::Verdict;
use crate::flow::FlowId;

impl<T> Link<T> {
    /// A packet of a flow comes, `bytes` bytes on the link. What does not go on stands in
    /// [`Link::dropped`] afterwards.
    pub fn offer(&mut self, now: Time, flow: FlowId, tag: Tag, bytes: usize, item: T) {
        self.halve_offered(now);
        let useful_until = self.useful_for.map(|useful_for| now + useful_for);
        let deadline = match (tag.deadline, useful_until) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        let tag = Tag { deadline, ..tag };
        self.show(now, Waiting { flow, tag, bytes, arrived: now, before: None }, item);
    }

    /// Whether a packet is the first of its frame that shows what that is.
    pub fn shows(&self, flow: FlowId, tag: &Tag) -> bool {
        self.held.shows(flow, tag)
    }

    /// A packet comes. Those that show nothing wait for one that does, or ends their frame.
    fn show(&mut self, now: Time, packet: Waiting, item: T) {
        let Waiting { flow, tag, .. } = packet;
        let held = self.held.of(flow);
        let shows_itself = tag.kind != Kind::Header && held.is_empty();
        if shows_itself || self.flows.get(flow.0).is_none() {
            return self.arrive(now, packet, item);
        }
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
    fn release(&mut self, now: Time, flow: FlowId, shown: Option<&Tag>) {
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
        (0..self.held.flows()).for_each(|flow| self.release(now, FlowId(flow), None));
    }

    pub(super) fn arrive(&mut self, now: Time, mut packet: Waiting, item: T) {
        let at = self.flows.get(packet.flow.0).map(|flow| flow.queue);
        let Some(at) = at.filter(|at| self.queues.contains(*at)) else {
            self.dropped.push(Dropped { packet, item, reason: DropReason::UnknownTrack });
            return;
        };
        let free = self.free(now, at, packet.bytes);
        let Some(queue) = self.queues.get_mut(at) else { return };
        queue.offered += packet.bytes as u64;
        self.offered += packet.bytes as u64;
        let dropped_before = self.dropped.len();
        let mut held = Sifted { buffer: &mut queue.buffer, dropped: &mut self.dropped };
        let verdict = queue.discard.arrives(now, &mut packet, free, &mut held);
        self.packets -= self.dropped.len() - dropped_before;
        match verdict {
            Verdict::Wait => {
                queue.buffer.push(packet, item);
                self.packets += 1;
                self.scheduler.wakes(at);
            }
            Verdict::Discard(reason) => self.dropped.push(Dropped { packet, item, reason }),
        }
    }

    /// What a buffer holds by itself.
    fn room(&self, queue: &Queue<T>) -> usize {
        queue.size.unwrap_or(self.options.size).of(queue.flows)
    }

    /// Bytes that are free for a packet that comes to a buffer. What was lent is called back as far as it is the
    /// buffer's own.
    fn free(&mut self, now: Time, at: usize, bytes: usize) -> usize {
        let Some(queue) = self.queues.get(at) else { return 0 };
        let own = self.room(queue).saturating_sub(queue.buffer.bytes());
        if !self.options.policy.lends() {
            return own;
        }
        let all: usize = self.queues.iter().map(|(_, queue)| self.room(queue)).sum();
        let free = all.saturating_sub(self.buffered());
        if bytes <= free || bytes > own {
            return free;
        }
        let over = |(_, queue): &(usize, &Queue<T>)| queue.buffer.bytes().saturating_sub(self.room(queue));
        let debtor = self.queues.iter().max_by_key(over).map(|(at, _)| at);
        if let Some(debtor) = debtor.and_then(|debtor| self.queues.get_mut(debtor)) {
            let before = self.dropped.len();
            let mut held = Sifted { buffer: &mut debtor.buffer, dropped: &mut self.dropped };
            debtor.discard.give_back(now, bytes - free, &mut held);
            self.packets -= self.dropped.len() - before;
        }
        all.saturating_sub(self.buffered())
    }
}
