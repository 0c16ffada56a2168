//! The streams served: what each core asks is carried out, what did not go is reported.

use outflow_media::Time;
use outflow_relay::control::{Event, Handed, ReportTo, SinkEnd, Stages};
use outflow_relay::{
    Driven, Driver, Feedback, Order, Priority, Recipients, Report, Room, Share, SinkKey, Stream, Transport,
    drive,
};
use rustix::event::epoll::EventFlags;

use super::Worker;
use super::links::Offered;
use super::shares::Shares;
use super::sink::{LiveSink, Out};
use super::stream::LiveStream;
use super::tasks::Task;
use crate::limits::WORK_ROUND;
use crate::message::{CloseReason, WriteSide};
use crate::send::fanout::{Audience, Layers, Members, by_share};
use crate::send::stream::Flush;
use crate::send::{Headers, pieces};

/// The sinks that are served by an order, and how the fan-out is told.
fn audience<'a>(
    (stream, index): (&'a Stream, usize),
    order: &'a Order,
    parts: Parts<'a>,
    share_of: &'a dyn Fn(SinkKey) -> Share,
) -> (&'a [SinkKey], Audience<'a>) {
    let members = stream.members(order);
    match (parts, order.recipients) {
        (Parts::Of(keys), _) => (keys, Audience::Some(keys)),
        (parts, Recipients::Cohort { cohort, first, count }) => {
            let (id, all) = ((index, order.branch, cohort), stream.cohort(order.branch, cohort));
            let version = stream.cohort_version(order.branch, cohort);
            let told = Members { id, version, all, first, count };
            let audience = match parts {
                Parts::Layers(max_layers) => Audience::Layered(told, Layers { max_layers, share_of }),
                _ => Audience::Members(told),
            };
            (members, audience)
        }
        (_, Recipients::One(_)) => (members, Audience::Some(members)),
    }
}

/// Which of an order's sinks are served.
enum Parts<'a> {
    /// All of them, and with the same.
    All,
    /// These.
    Of(&'a [SinkKey]),
    /// All of them, each with its own; sinks that take the same layers get this.
    Layers(&'a [Share]),
}

/// A stream's turn: until it ends, its worker does what the stream asks.
struct Turn<'a> {
    worker: &'a mut Worker,
    index: usize,
    ends: Time,
    /// In as many parts its orders are cut.
    parts: usize,
}

impl Turn<'_> {
    fn live(&mut self) -> Option<&mut LiveStream> {
        self.worker.streams.get_mut(self.index)
    }
}

impl Driver for Turn<'_> {
    fn now(&self) -> Time {
        self.worker.clock.now()
    }

    fn stream(&mut self) -> Option<&mut Stream> {
        self.live().map(|live| &mut live.core)
    }

    fn room(&self) -> Room {
        self.worker.paths.fanout().room(self.index).part(self.parts)
    }

    fn is_over(&self, now: Time) -> bool {
        now >= self.ends
    }

    fn send(&mut self, _: Time, order: &Order) {
        self.worker.carry_out(self.index, order);
    }

    fn event(&mut self, event: Event) {
        self.worker.tell(self.index, event);
    }

    fn sender_reports(&mut self, to: ReportTo) {
        self.worker.send_reports(self.index, to);
    }

    fn feedback(&mut self, feedback: Feedback) {
        self.worker.hand_up(self.index, feedback);
    }

    fn hand_over(&mut self, handed: Vec<Handed>) {
        if let Some(live) = self.live() {
            live.hand_over(handed);
        }
    }

    fn stages(&mut self, now: Time, what: Stages) {
        if let Some(live) = self.live() {
            live.see_to_stages(now, what);
        }
    }
}

impl Worker {
    /// Does what a stream asks in this class until it asks nothing more, or others have to have
    /// their turn.
    pub(super) fn serve(&mut self, index: usize, class: Priority) {
        let parts = self.tasks.parts(class);
        let ends = self.clock.now() + WORK_ROUND / parts;
        let mut turn = Turn { worker: self, index, ends, parts: parts as usize };
        match drive(&mut turn, Some(class)) {
            Driven::Until(until) => {
                if let Some(stream) = self.streams.get_mut(index) {
                    stream.wake = until.into_iter().chain(stream.wake).min();
                }
            }
            Driven::Over => self.tasks.add(class, Task::Serve(index)),
            Driven::Gone => {}
        }
    }

    fn carry_out(&mut self, index: usize, order: &Order) {
        let (None, Recipients::Cohort { cohort, .. }) = (order.share, order.recipients) else {
            return self.send(index, order, order.share.unwrap_or(Share::WHOLE), Parts::All);
        };
        let Some(stream) = self.streams.get(index) else { return };
        let mut scratch = core::mem::take(&mut self.shares);
        let Shares { members: shares, max_layers, keys } = &mut scratch;
        let members = stream.core.members(order);
        let spec = members.iter().find_map(|key| stream.core.spec(*key));
        let is_datagram = spec.is_some_and(|spec| spec.transport == Transport::Datagram);
        let is_behind = spec.and_then(|spec| spec.link).is_some_and(|link| self.links.has(link));
        if is_datagram
            && !is_behind
            && self.paths.fanout().asks_kernel(stream.core.cohort(order.branch, cohort).len())
        {
            max_layers.clear();
            max_layers.extend(stream.core.shares(order.branch, cohort));
            self.send(index, order, Share::WHOLE, Parts::Layers(max_layers));
        } else {
            by_share(members, |key| stream.core.share(order, key), shares);
            for same in shares.chunk_by(|one, other| one.0 == other.0) {
                keys.clear();
                keys.extend(same.iter().map(|(_, key)| *key));
                self.send(index, order, same[0].0, Parts::Of(keys));
            }
        }
        self.shares = scratch;
    }

    /// Sends this share of an order's packets to the sinks that it names, or to some of them.
    fn send(&mut self, index: usize, order: &Order, share: Share, parts: Parts<'_>) {
        let Some(stream) = self.streams.get_mut(index) else { return };
        let LiveStream { core, sinks, .. } = stream;
        let core = &*core;
        let share_of = |key: SinkKey| core.share(order, key);
        let (members, audience) = audience((core, index), order, parts, &share_of);
        let Some(spec) = members.iter().find_map(|key| core.spec(*key)) else { return };
        let mut headers = Headers::new();
        let pieces = pieces(core, order, share, spec.encapsulation, &mut headers);
        if pieces.is_empty() {
            return;
        }
        if let Some(link) = spec.link.filter(|link| self.links.has(*link)) {
            let place = (self.clock.now(), link);
            let offered = Offered { stream: (core, index), order, share, pieces: &pieces, members };
            if self.links.offer(place, &offered, sinks) {
                self.tasks.add(Priority::High, Task::Depart(link));
            }
            drop(pieces);
            return self.settle(link);
        }
        let mut gone = Vec::new();
        match spec.transport {
            Transport::Datagram => self.paths.send_datagrams((core, sinks), index, audience, &pieces),
            Transport::Stream => {
                let flush = Flush { pieces: &pieces, end: order.to };
                self.paths.send_to_streams(&self.clock, flush, (members, sinks), &mut gone);
            }
        }
        drop(pieces);
        self.report(index);
        self.settle_peers();
        for key in gone {
            self.end(index, key, CloseReason::PeerGone);
        }
    }

    /// Tells the core what of an order did not go.
    fn report(&mut self, index: usize) {
        let Some(LiveStream { core, sinks, .. }) = self.streams.get_mut(index) else { return };
        self.paths.settle(&self.watch, (index, sinks), |key, report| core.handle_report(key, report));
    }

    fn tell(&mut self, index: usize, event: Event) {
        let Some(stream) = self.streams.get_mut(index) else { return };
        let name = &stream.name;
        match event {
            Event::SourceUp => {
                let peer = stream.source.as_ref().map_or("", |source| source.peer());
                tracing::info!(stream = name, peer, format = stream.core.describe(), "the source is up");
                stream.look_for_left_out();
            }
            Event::SourceAway { silent } => {
                let receivers = stream.receivers.len();
                let silent_ms = silent.as_millis() as u64;
                tracing::warn!(stream = name, silent_ms, receivers, "the source is away; receivers are kept");
            }
            Event::SinkEnded { key, end, .. } => {
                let reason = match end {
                    SinkEnd::Hopeless => CloseReason::Hopeless,
                    SinkEnd::FormatChanged => CloseReason::FormatChanged,
                    SinkEnd::BranchRemoved => CloseReason::BranchRemoved,
                };
                self.forget(index, key, reason);
            }
        }
    }

    /// Ends a receiver from this side.
    pub(super) fn end(&mut self, index: usize, key: SinkKey, reason: CloseReason) {
        let now = self.clock.now();
        if reason != CloseReason::PeerGone {
            self.say_goodbye(index, key);
        }
        if let Some(stream) = self.streams.get_mut(index) {
            stream.core.handle_leave(now, key);
            stream.touched = true;
        }
        self.forget(index, key, reason);
    }

    /// Lets go everything that belongs to a sink which the core no longer has.
    fn forget(&mut self, index: usize, key: SinkKey, reason: CloseReason) {
        let Some(stream) = self.streams.get_mut(index) else { return };
        let Some(sink) = stream.take_out(key) else { return };
        let (name, receiver, to) = (&stream.name, sink.id, &sink.to);
        tracing::info!(stream = name, receiver, to, %reason, "a receiver has left");
        if let Some(link) = self.links.leave(&sink) {
            self.settle(link);
        }
        // A caller that waited for it may have gone first.
        let _ = sink.closed.send(reason);
        self.paths.leave(&mut self.watch, self.clock.now(), sink.out, reason);
    }

    /// A receiver's connection is there: packets may flow.
    pub(super) fn connect(
        &mut self,
        index: usize,
        key: SinkKey,
        write_side: WriteSide,
    ) -> std::io::Result<()> {
        let sink = self.streams.get_mut(index).and_then(|stream| stream.sink_mut(key));
        let Some(LiveSink { out: Out::Stream { connection: place, unsent, .. }, .. }) = sink else {
            return Ok(());
        };
        // One that goes on from another process may be exchanged for the one that control has, too.
        let first = match place {
            Some((connection, _)) => connection.unsent().to_vec(),
            None => core::mem::take(unsent),
        };
        let opened = self.paths.open_connection(&mut self.watch, (index, key), (write_side, first))?;
        let before = place.replace(opened);
        if let Some((connection, token)) = before {
            self.paths.close_connection(&mut self.watch, connection, token);
        }
        Ok(())
    }

    /// A receiver's connection takes bytes again, or has ended.
    pub(super) fn connection_event(&mut self, index: usize, key: SinkKey, flags: EventFlags) {
        if flags.intersects(EventFlags::HUP | EventFlags::ERR | EventFlags::RDHUP) {
            self.end(index, key, CloseReason::PeerGone);
        } else if flags.contains(EventFlags::OUT) {
            self.connection_writable(index, key);
        }
    }

    fn connection_writable(&mut self, index: usize, key: SinkKey) {
        let Some(stream) = self.streams.get_mut(index) else { return };
        let Some(Out::Stream { connection: Some((connection, _)), .. }) =
            stream.sink_mut(key).map(|sink| &mut sink.out)
        else {
            return;
        };
        match connection.flush() {
            Some(true) => {
                stream.core.handle_report(key, Report::Writable);
                stream.touched = true;
            }
            Some(false) => {}
            None => self.end(index, key, CloseReason::PeerGone),
        }
    }

    /// A UDP socket takes packets again: the receivers that have waited for it may be sent to.
    pub(super) fn port_writable(&mut self, port: usize) {
        for (index, key) in self.paths.take_full(port) {
            if let Some(stream) = self.streams.get_mut(index) {
                stream.port_writable(port, key);
            }
        }
    }
}
