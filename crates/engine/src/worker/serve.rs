//! The streams served: what each core asks is carried out, what did not go is reported.

use std::os::fd::AsFd;

use outflow_kernel::Part;
use outflow_relay::control::{Event, Output, SinkEnd};
use outflow_relay::schedule::Sink;
use outflow_relay::{Order, Priority, Report, Share, SinkKey, Stream, Transport, Whom};
use rustix::event::epoll;
use rustix::event::epoll::EventFlags;
use slab::Slab;

use super::links::Offered;
use super::stream::{LiveSink, LiveStream, Out};
use super::tasks::Task;
use super::{Watched, Worker};
use crate::limits::WORK_ROUND;
use crate::message::{CloseReason, WriteSide};
use crate::send::fanout::{Audience, Fanout, Layers, Means, Members, by_share};
use crate::send::stream::{Connection, Flush, Outcome};
use crate::send::udp::UdpPort;
use crate::send::uring::Uring;
use crate::send::{Headers, Piece, pieces};

/// What each sink of an order gets, if that differs; kept so that no memory is asked for an order.
#[derive(Debug, Default)]
pub(super) struct Shares {
    members: Vec<(Share, SinkKey)>,
    cuts: Vec<Share>,
    keys: Vec<SinkKey>,
}

/// The sinks that are served by an order, and how the fan-out is told.
fn audience<'a>(
    (stream, index): (&'a Stream, usize),
    order: &'a Order,
    parts: Parts<'a>,
    share_of: &'a dyn Fn(SinkKey) -> Share,
) -> (&'a [SinkKey], Audience<'a>) {
    let members = stream.members(order);
    match (parts, order.whom) {
        (Parts::Of(keys), _) => (keys, Audience::Some(keys)),
        (parts, Whom::Cohort { cohort, first, count }) => {
            let (id, all) = ((index, order.branch, cohort), stream.cohort(order.branch, cohort));
            let version = stream.cohort_version(order.branch, cohort);
            let told = Members { id, version, all, first, count };
            let audience = match parts {
                Parts::Layers(cuts) => Audience::Layered(told, Layers { cuts, share_of }),
                _ => Audience::Members(told),
            };
            (members, audience)
        }
        (_, Whom::One(_)) => (members, Audience::Some(members)),
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

impl Worker {
    /// Does what a stream asks in this class until it asks nothing more, or others have to have
    /// their turn.
    pub(super) fn serve(&mut self, index: usize, class: Priority) {
        let parts = self.parts(class);
        let ends = self.clock.now() + WORK_ROUND / parts;
        loop {
            let now = self.clock.now();
            if now >= ends {
                self.tasks.add(class, Task::Serve(index));
                return;
            }
            let room = self.fanout.room(index).part(parts as usize);
            let Some(stream) = self.streams.get_mut(index) else { return };
            let output = stream.core.poll_class(now, class, room);
            stream.give_far(now);
            match output {
                Output::Order(order) => self.carry_out(index, &order),
                Output::SenderReports(to) => self.send_reports(index, to),
                Output::HandOver => stream.hand_over(),
                // They were seen to just now.
                Output::Stages(_) => {}
                Output::Event(event) => self.tell(index, event),
                Output::Feedback(feedback) => self.hand_up(index, feedback),
                Output::Wait { until } => {
                    stream.wake = until.map(|(at, _)| at).into_iter().chain(stream.wake).min();
                    return;
                }
            }
        }
    }

    fn carry_out(&mut self, index: usize, order: &Order) {
        let (None, Whom::Cohort { cohort, .. }) = (order.share, order.whom) else {
            return self.send(index, order, order.share.unwrap_or(Share::WHOLE), Parts::All);
        };
        let Some(stream) = self.streams.get(index) else { return };
        let mut scratch = core::mem::take(&mut self.shares);
        let Shares { members: shares, cuts, keys } = &mut scratch;
        let members = stream.core.members(order);
        let spec = members.iter().find_map(|key| stream.core.spec(*key));
        let is_datagram = spec.is_some_and(|spec| spec.transport == Transport::Datagram);
        let is_behind = spec.and_then(|spec| spec.link).is_some_and(|link| self.links.has(link));
        if is_datagram
            && !is_behind
            && self.fanout.asks_kernel(stream.core.cohort(order.branch, cohort).len())
        {
            cuts.clear();
            cuts.extend(stream.core.shares(order.branch, cohort));
            self.send(index, order, Share::WHOLE, Parts::Layers(cuts));
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
        let share_of = |key: SinkKey| stream.core.share(order, key);
        let (members, audience) = audience((&stream.core, index), order, parts, &share_of);
        let Some(spec) = members.iter().find_map(|key| stream.core.spec(*key)) else { return };
        let mut headers = Headers::new();
        let pieces = pieces(&stream.core, order, share, spec.carriage, &mut headers);
        if pieces.is_empty() {
            return;
        }
        if let Some(link) = spec.link.filter(|link| self.links.has(*link)) {
            let place = (self.clock.now(), link);
            let offered = Offered { stream: (&stream.core, index), order, share, pieces: &pieces, members };
            self.links.offer(place, &offered, &mut stream.sinks, &mut self.tasks);
            drop(pieces);
            return self.settle(link);
        }
        let mut gone = Vec::new();
        match spec.transport {
            Transport::Datagram => {
                let out = (&mut self.fanout, &mut self.uring, &mut self.ports);
                stream.send_datagrams(index, audience, &pieces, out);
            }
            Transport::Stream => {
                let flush = Flush { pieces: &pieces, end: order.to };
                let (sinks, reports) = (&mut stream.sinks, self.fanout.reports());
                self.streamer.send(&mut self.uring, flush, members, sinks, |key, outcome| match outcome {
                    Outcome::Sent => {}
                    Outcome::Blocked(next) => reports.push((key, Report::Blocked { next })),
                    Outcome::Gone => gone.push(key),
                });
                if !self.peers.is_empty() {
                    let place_of = |key: SinkKey| stream.sinks.get(key.0)?.as_ref()?.out.peer();
                    let report = |key, report| reports.push((key, report));
                    self.peers.send(self.clock.now(), &pieces, members, place_of, report);
                }
            }
        }
        drop(pieces);
        self.report(index, spec.transport);
        self.plan_peers();
        for key in gone {
            self.end(index, key, CloseReason::PeerGone);
        }
    }

    /// Tells the core what of an order did not go.
    fn report(&mut self, index: usize, transport: Transport) {
        let Some(stream) = self.streams.get_mut(index) else { return };
        let mut blocked = false;
        for (key, report) in self.fanout.reports().drain(..) {
            blocked |= transport == Transport::Datagram && matches!(report, Report::Blocked { .. });
            stream.core.handle_report(key, report);
        }
        if blocked {
            self.wait_for_ports();
        }
    }

    fn tell(&mut self, index: usize, event: Event) {
        let Some(stream) = self.streams.get_mut(index) else { return };
        let name = &stream.name;
        match event {
            Event::SourceUp => {
                let peer = stream.source.as_ref().map_or("", |source| &source.peer);
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
        if let Some(stream) = self.streams.get_mut(index) {
            stream.core.handle_leave(now, key);
            stream.touched = true;
        }
        self.forget(index, key, reason);
    }

    /// Lets go everything that belongs to a sink which the core no longer has.
    fn forget(&mut self, index: usize, key: SinkKey, reason: CloseReason) {
        let Some(stream) = self.streams.get_mut(index) else { return };
        let Some(sink) = stream.sinks.get_mut(key.0).and_then(Option::take) else { return };
        stream.receivers.remove(&sink.id);
        stream.forget_wish(&sink);
        let (name, receiver, to) = (&stream.name, sink.id, &sink.to);
        tracing::info!(stream = name, receiver, to, %reason, "a receiver has left");
        // A caller that waited for it may have gone first.
        self.leave_link(&sink);
        let _ = sink.closed.send(reason);
        self.disconnect(sink.out, reason);
    }

    fn disconnect(&mut self, out: Out, reason: CloseReason) {
        match out {
            Out::Udp { route, rtcp, own_socket } => {
                for address in rtcp.iter().filter_map(|(_, address)| address.as_socket()) {
                    self.rtcp_peers.remove(&address);
                }
                self.fanout.forget_receiver(&mut self.uring, &route);
                if own_socket && let Some(port) = self.ports.try_remove(route.socket) {
                    self.watched.try_remove(port.token);
                }
            }
            Out::Stream { connection: Some((connection, token)), .. } => {
                self.close_connection(connection, token);
            }
            Out::Peer { place: Some(place), .. } => self.end_peer(place, reason),
            Out::Stream { connection: None, .. } | Out::Peer { place: None, .. } => {}
        }
    }

    /// A receiver's connection is there: packets may flow.
    pub(super) fn connect(
        &mut self,
        index: usize,
        key: SinkKey,
        write_side: WriteSide,
    ) -> std::io::Result<()> {
        crate::send::prepare(&write_side);
        let flags = EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        let token = self.register(write_side.as_fd(), flags)?;
        self.watched.insert(Watched::Connection { stream: index, sink: key });
        let connection = Connection::new(write_side, &mut self.uring);
        let before = match self.streams.get_mut(index).and_then(|stream| stream.sink_mut(key)) {
            Some(LiveSink { out: Out::Stream { connection: place, .. }, .. }) => {
                place.replace((connection, token))
            }
            _ => Some((connection, token)),
        };
        if let Some((connection, token)) = before {
            self.close_connection(connection, token);
        }
        Ok(())
    }

    fn close_connection(&mut self, connection: Connection, token: usize) {
        // Another owner of the connection keeps it in the epoll set, too.
        let _ = epoll::delete(&self.epoll, &connection);
        self.watched.try_remove(token);
        connection.close(&mut self.uring);
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

    /// Waits until those UDP sockets take packets again that are full. Others are not waited for: they
    /// would wake the worker whenever a packet has left.
    pub(super) fn wait_for_ports(&self) {
        for (_, port) in self.ports.iter().filter(|(_, port)| port.full) {
            let (token, flags) = (epoll::EventData::new_u64(port.token as u64), EventFlags::OUT);
            if let Err(error) = epoll::modify(&self.epoll, &port.socket, token, flags | EventFlags::ONESHOT) {
                tracing::error!(%error, "cannot wait for a socket that is full");
            }
        }
    }

    /// A UDP socket takes packets again: every receiver that it serves may be sent to.
    pub(super) fn port_writable(&mut self, port: usize) {
        if !self.ports.get_mut(port).is_some_and(|port| core::mem::take(&mut port.full)) {
            return;
        }
        for (_, stream) in &mut self.streams {
            let LiveStream { sinks, core, touched, .. } = stream;
            for (index, sink) in sinks.iter().enumerate() {
                let out = sink.as_ref().map(|sink| &sink.out);
                let serves = matches!(out, Some(Out::Udp { route, .. }) if route.socket == port);
                let key = SinkKey(index);
                if serves && core.is_blocked(key) {
                    core.handle_report(key, Report::Writable);
                    *touched = true;
                }
            }
        }
    }
}

impl LiveStream {
    /// Sends packets to sinks that take datagrams. The stream is number `index` of the worker, whose means these
    /// are.
    pub(super) fn send_datagrams(
        &self,
        index: usize,
        audience: Audience<'_>,
        pieces: &[Piece<'_>],
        (fanout, uring, ports): (&mut Fanout, &mut Uring, &mut Slab<UdpPort>),
    ) {
        let route_of = |key: SinkKey| match &self.sinks.get(key.0)?.as_ref()?.out {
            Out::Udp { route, .. } => Some(route),
            Out::Stream { .. } | Out::Peer { .. } => None,
        };
        let part = |sink: &Sink| Part { cut: sink.cut(), apart: sink.apart() };
        let part_of = &|key: SinkKey| self.core.sink(key).map_or(Part::WHOLE, part);
        let mut means = Means { stream: index, uring, ports, route_of, part_of };
        fanout.send(audience, pieces, &mut means);
    }
}
