//! The ways by which packets leave a worker: UDP sockets with the fan-out, connections, and peers.

mod save;

use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;

use outflow_config::Switch;
use outflow_kernel::Part;
use outflow_media::Time;
use outflow_relay::schedule::Sink;
use outflow_relay::{Report, SinkKey, Stream};
use outflow_ring::Seq;
use outflow_udp::Parcels;
use outflow_uring::Uring;
use rustix::event::epoll::EventFlags;

use super::peers::Peers;
use super::reporter::Pin;
use super::sink::{LiveSink, Out};
use super::tasks::Tasks;
use super::udp_ports::{Reporter, UdpPorts};
use super::watch::{Watch, Watched};
use crate::clock::Clock;
use crate::limits::ROUTES_REFRESH;
use crate::message::{CloseReason, ControlError, Delivery, Ends, ReceiverId, WriteSide};
use crate::receive::PortPair;
use crate::send::Piece;
use crate::send::fanout::{Audience, Fanout, Means};
use crate::send::stream::{Connection, Flush, Outcome, StreamSender};
use crate::send::udp::send_one;

/// Everything that a worker sends with.
pub(super) struct Paths {
    fanout: Fanout,
    next_refresh: Time,
    streamer: StreamSender,
    uring: Uring,
    ports: UdpPorts,
    /// Receivers that are reached by state machines of their own.
    peers: Peers,
}

impl Paths {
    /// As configured, with this pair of ports; what comes for peers comes through `parcels`.
    ///
    /// # Errors
    /// The system refuses to wait for a socket.
    pub(super) fn open(
        watch: &mut Watch,
        pair: PortPair,
        parcels: Parcels,
        (paths, receivers_max): (outflow_config::Fanout, usize),
    ) -> io::Result<Self> {
        let uring = match paths.io_uring {
            Switch::Auto => Uring::open(),
            Switch::Off => Uring::without(),
        };
        let fanout = Fanout::open(paths.udp, receivers_max);
        if let Some(routes) = fanout.descriptor() {
            watch.add(routes, EventFlags::IN)?.insert(Watched::Routes);
        }
        let ports = UdpPorts::open(watch, pair)?;
        let (streamer, peers) = (StreamSender::default(), Peers::new(parcels));
        Ok(Paths { fanout, next_refresh: Time::ZERO, streamer, uring, ports, peers })
    }

    /// When there is something to do here at the latest.
    pub(super) fn due(&self) -> Time {
        self.next_refresh.min(self.peers.due().unwrap_or(self.next_refresh))
    }

    /// Does what is due, and puts down what peers have to do.
    pub(super) fn plan(&mut self, now: Time, tasks: &mut Tasks) {
        if now >= self.next_refresh {
            self.next_refresh = now + ROUTES_REFRESH;
            self.fanout.refresh(now);
        }
        self.peers.wake(now);
        self.peers.plan(tasks);
    }

    /// The kernel's routes have changed.
    pub(super) fn routes_changed(&mut self) {
        self.fanout.routes_changed();
    }

    /// The fan-out, to be asked.
    pub(super) fn fanout(&self) -> &Fanout {
        &self.fanout
    }

    /// A UDP socket takes packets again. Answers the sinks that have waited for it; some may have left since.
    pub(super) fn take_full(&mut self, port: usize) -> BTreeSet<(usize, SinkKey)> {
        self.ports.take_full(port)
    }

    /// Receivers that are reached by state machines of their own.
    pub(super) fn peers(&mut self) -> &mut Peers {
        &mut self.peers
    }

    /// A stream is no more.
    pub(super) fn forget_stream(&mut self, stream: usize) {
        self.fanout.forget(stream);
    }

    /// How a receiver is to be reached that gets this many tracks.
    pub(super) fn out(
        &mut self,
        watch: &mut Watch,
        receiver: ReceiverId,
        delivery: Delivery,
        tracks: u8,
    ) -> Result<Out, ControlError> {
        match delivery {
            Delivery::Bytes(_, framing) => Ok(Out::Stream { connection: None, framing, unsent: Vec::new() }),
            Delivery::Peer(_, overhead, _) => Ok(Out::Peer { place: None, overhead }),
            Delivery::Datagrams(_, Ends::Negotiated(site, to)) => {
                self.ports.negotiated(watch, receiver, &site, &to)
            }
            Delivery::Datagrams(encapsulation, Ends::Configured(to)) => {
                self.ports.configured(watch, receiver, &to, (encapsulation, tracks))
            }
        }
    }

    /// A sink has joined that is reached so.
    pub(super) fn enter(&mut self, out: &Out, (stream, key): (usize, SinkKey)) {
        let Out::Udp { rtcp, .. } = out else { return };
        self.fanout.receivers_changed();
        for (track, address) in rtcp {
            if let Some(address) = address.as_socket() {
                self.ports.note_reporter(address, (stream, key, *track));
            }
        }
    }

    /// The sink that reports from an address, and what is known of the source that does.
    pub(super) fn reporter(&mut self, from: &SocketAddr) -> Option<&mut (Reporter, Pin)> {
        self.ports.reporter(from)
    }

    /// How many RTCP packets came from addresses of no sink.
    pub(super) fn strangers(&self) -> u64 {
        self.ports.strangers()
    }

    /// A sink has left that was reached so. It is told why, if there is a way to.
    pub(super) fn leave(&mut self, watch: &mut Watch, now: Time, out: Out, reason: CloseReason) {
        match out {
            Out::Udp { route, rtcp, own_socket } => {
                for address in rtcp.iter().filter_map(|(_, address)| address.as_socket()) {
                    self.ports.forget_reporter(&address);
                }
                self.fanout.forget_receiver(&mut self.uring, &route);
                if own_socket {
                    self.ports.remove(watch, route.socket);
                }
            }
            Out::Stream { connection: Some((connection, token)), .. } => {
                self.close_connection(watch, connection, token);
            }
            Out::Peer { place: Some(place), .. } => self.peers.end(watch, now, place, reason),
            Out::Stream { connection: None, .. } | Out::Peer { place: None, .. } => {}
        }
    }

    /// A connection of this sink is there, and this is to go first. Answers it, and its token.
    pub(super) fn open_connection(
        &mut self,
        watch: &mut Watch,
        (stream, sink): (usize, SinkKey),
        (write_side, unsent): (WriteSide, Vec<u8>),
    ) -> io::Result<(Connection, usize)> {
        crate::send::prepare(&write_side);
        let entry = watch.add(&write_side, EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET)?;
        let token = entry.key();
        entry.insert(Watched::Connection { stream, sink });
        Ok((Connection::new(write_side, &mut self.uring).after(unsent), token))
    }

    /// A connection is of no use any more.
    pub(super) fn close_connection(&mut self, watch: &mut Watch, connection: Connection, token: usize) {
        // Another owner of the connection keeps it in the epoll set, too.
        watch.take_out(token, &connection);
        connection.close(&mut self.uring);
    }

    /// Sends packets to sinks of the stream of this index that take datagrams.
    pub(super) fn send_datagrams(
        &mut self,
        (core, sinks): (&Stream, &[Option<LiveSink>]),
        stream: usize,
        audience: Audience<'_>,
        pieces: &[Piece<'_>],
    ) {
        let route_of = |key: SinkKey| match &sinks.get(key.0)?.as_ref()?.out {
            Out::Udp { route, .. } => Some(route),
            Out::Stream { .. } | Out::Peer { .. } => None,
        };
        let part = |sink: &Sink| Part { max_layer: sink.max_layer(), apart: sink.apart() };
        let part_of = &|key: SinkKey| core.sink(key).map_or(Part::WHOLE, part);
        let (uring, ports) = (&mut self.uring, self.ports.sockets());
        let mut means = Means { stream, uring, ports, route_of, part_of };
        self.fanout.send(audience, pieces, &mut means);
    }

    /// Sends packets to sinks that are connections or peers. Those whose connection is broken are put
    /// into `gone`.
    pub(super) fn send_to_streams(
        &mut self,
        clock: &Clock,
        flush: Flush<'_>,
        (members, sinks): (&[SinkKey], &mut Vec<Option<LiveSink>>),
        gone: &mut Vec<SinkKey>,
    ) {
        let reports = self.fanout.reports();
        self.streamer.send(&mut self.uring, flush, members, sinks, |key, outcome| match outcome {
            Outcome::Sent => {}
            Outcome::Blocked(next) => reports.push((key, Report::Blocked { next })),
            Outcome::Gone => gone.push(key),
        });
        if !self.peers.is_empty() {
            let place_of = |key: SinkKey| sinks.get(key.0)?.as_ref()?.out.peer();
            let report = |key, report| reports.push((key, report));
            self.peers.send(clock.now(), flush.pieces, members, place_of, report);
        }
    }

    /// Sends packets to one sink that is a connection.
    pub(super) fn send_to_connection(
        &mut self,
        pieces: &[Piece<'_>],
        key: SinkKey,
        sinks: &mut Vec<Option<LiveSink>>,
    ) -> Outcome {
        let flush = Flush { pieces, end: pieces.len() as u64 };
        let mut outcome = Outcome::Sent;
        self.streamer.send(&mut self.uring, flush, &[key], sinks, |_, answer| outcome = answer);
        outcome
    }

    /// Sends packets to one sink that is the peer at this place. Answers the first one that it has no room for.
    pub(super) fn send_to_peer(
        &mut self,
        now: Time,
        pieces: &[Piece<'_>],
        (key, place): (SinkKey, usize),
    ) -> Option<Seq> {
        let (reports, mut blocked) = (self.fanout.reports(), None);
        let report = |key, report: Report| match report {
            Report::Blocked { next } => blocked = Some(next),
            report => reports.push((key, report)),
        };
        self.peers.send(now, pieces, &[key], |_| Some(place), report);
        blocked
    }

    /// Tells what did not go to sinks of the stream of this index since this was asked last. Those for which a UDP
    /// socket is full wait for that.
    pub(super) fn settle(
        &mut self,
        watch: &Watch,
        (stream, sinks): (usize, &[Option<LiveSink>]),
        mut tell: impl FnMut(SinkKey, Report),
    ) {
        let Paths { fanout, ports, .. } = self;
        for (key, report) in fanout.reports().drain(..) {
            if matches!(report, Report::Blocked { .. })
                && let Some(Some(LiveSink { out: Out::Udp { route, .. }, .. })) = sinks.get(key.0)
            {
                ports.wait_for_full(watch, route.socket, (stream, key));
            }
            tell(key, report);
        }
    }

    /// Sends an RTCP packet about a track to a sink that is reached so.
    pub(super) fn send_rtcp(&mut self, watch: &Watch, now: Time, out: &mut Out, (track, bytes): (u8, &[u8])) {
        match out {
            Out::Udp { route, rtcp, .. } => {
                let socket = self.ports.report_socket(watch, route.socket);
                if let (Some(socket), Some((_, to))) = (socket, rtcp.iter().find(|(t, _)| *t == track)) {
                    send_one(socket, bytes, to);
                }
            }
            Out::Stream { connection: Some((connection, _)), framing, .. } if !connection.has_unsent() => {
                if let Some(framed) = framing.rtcp(track, bytes) {
                    // A broken connection shows itself at the next packet.
                    connection.inject(&framed);
                }
            }
            Out::Peer { place: Some(place), .. } => self.peers.write_rtcp(now, *place, track, bytes),
            Out::Stream { .. } | Out::Peer { place: None, .. } => {}
        }
    }
}
