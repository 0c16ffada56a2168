//! Commands carried out.

use std::net::{IpAddr, SocketAddr};

use outflow_packet::limits::TRACKS_MAX;
use outflow_relay::schedule::StartPoint;
use outflow_relay::{Carriage, Priority, Report, SinkKey};
use rustix::event::epoll::EventFlags;

use super::ingest::Sender;
use super::services::unsupported;
use super::stream::{LiveSink, LiveSource, LiveStream, Out, Rate};
use super::{Watched, Worker};
use crate::message::{
    CloseReason, Command, ControlError, Delivery, Destination, Ends, Feed, JoinSpec, Joined, Receiver,
    ReceiverId, SourceId, SourceSpec, StreamId, TrackAddress, WriteSide,
};
use crate::receive::Arena;
use crate::send::udp::UdpRoute;

impl Worker {
    /// Carries out all commands that have come.
    pub(super) fn obey(&mut self) {
        while let Ok(command) = self.commands.try_recv() {
            self.command(command);
        }
    }

    fn command(&mut self, command: Command) {
        match command {
            Command::AddStream { stream, name, url, options, inlets } => {
                let told = self.told.clone();
                self.streams.insert(LiveStream::new((stream, stream), name, url, options, inlets, told));
            }
            Command::Replicate { stream, home, name, options, inlets } => {
                self.replicate((stream, home), name, options, inlets);
            }
            Command::Share { stream, outlet } => self.with(stream, |stream| stream.share(outlet)),
            Command::Rest { stream } => self.rest(stream),
            Command::RemoveStream { stream, reason } => self.remove_stream(stream, reason),
            Command::SetOptions { stream, options } => {
                self.with(stream, |stream| stream.core.set_options(options))
            }
            Command::SetBounds { stream, bounds } => {
                self.with(stream, |stream| stream.core.set_bounds(bounds))
            }
            Command::OpenSource { stream, source, spec, reply } => {
                // The caller that asked may have gone; the source then ends by its own CloseSource.
                let _ = reply.send(self.open_source(stream, source, spec));
            }
            Command::CloseSource { stream, source } => self.close_source(stream, source),
            Command::NameSource { stream, source, peer } => self.name_source(stream, source, peer),
            Command::Describe { stream, wanted, reply } => drop(reply.send(self.describe(stream, &wanted))),
            Command::Services(command) => self.obey_services(command),
            Command::Join { stream, receiver, spec, reply } => {
                let joined = self.join(stream, receiver, *spec);
                let _ = reply.send(joined);
            }
            Command::Start { stream, receiver, connection } => self.start(stream, receiver, connection),
            Command::StartPeer { stream, receiver, peer, path } => {
                self.start_peer(stream, receiver, peer, path);
            }
            Command::Pause { stream, receiver } => {
                self.with_sink(stream, receiver, |stream, key| stream.core.handle_pause(key));
            }
            Command::Resume { stream, receiver, reply } => {
                let _ = reply.send(self.resume(stream, receiver));
            }
            Command::Leave { stream, receiver, reason } => {
                if let Some((index, key)) = self.find_sink(stream, receiver) {
                    self.end(index, key, reason);
                }
            }
            Command::SetPriority { stream, receiver, priority } => {
                self.set_priority(stream, receiver, priority);
            }
            Command::Inject { stream, receiver, bytes } => self.inject(stream, receiver, &bytes),
            Command::ReceiverRtcp { stream, receiver, bytes } => {
                if let Some((index, key)) = self.find_sink(stream, receiver) {
                    self.receiver_report(index, key, None, &bytes);
                }
            }
            Command::Feedback { stream, feedback } => self.handle_feedback(stream, feedback),
            Command::PutLink { link, name, config } => self.put_link(link, name, &config),
            Command::RemoveLink { link } => self.remove_link(link),
            // If nothing waits for it any more, there is nothing to tell.
            Command::Settle { done } => drop(done.send(())),
            Command::Shutdown => self.shut_down(),
        }
    }

    fn set_priority(&mut self, stream: StreamId, receiver: ReceiverId, priority: Priority) {
        let mut place = None;
        self.with_sink(stream, receiver, |stream, key| {
            stream.core.set_priority(key, priority);
            place = stream.sink_mut(key).and_then(|sink| sink.out.peer());
        });
        place.into_iter().for_each(|place| self.peers.set_class(place, priority));
    }

    fn resume(&mut self, stream: StreamId, receiver: ReceiverId) -> Result<Vec<StartPoint>, ControlError> {
        let now = self.clock.now();
        let mut starts = Err(ControlError::UnknownReceiver(receiver));
        self.with_sink(stream, receiver, |stream, key| {
            stream.core.handle_resume(now, key);
            starts = Ok(stream.core.start_points(key));
        });
        starts
    }

    fn remove_stream(&mut self, id: StreamId, reason: CloseReason) {
        let Ok(index) = self.find(id) else { return };
        let keys: Vec<SinkKey> = self.streams[index].receivers.values().copied().collect();
        for key in keys {
            self.end(index, key, reason);
        }
        if let Some(source) = self.streams[index].source.take() {
            self.close_sockets(source);
        }
        self.streams.remove(index);
        self.fanout.forget(index);
    }

    fn open_source(&mut self, id: StreamId, source: SourceId, spec: SourceSpec) -> Result<(), ControlError> {
        let index = self.find(id)?;
        let now = self.clock.now();
        let mut opened = LiveSource {
            id: source,
            peer: spec.peer,
            queue: None,
            sockets: Vec::new(),
            feedback: spec.feedback,
            requests: 0,
        };
        match spec.feed {
            Feed::Queue(queue) => opened.queue = Some(queue),
            Feed::Sockets(sockets, queue) => {
                opened.queue = Some(queue);
                for socket in sockets {
                    let token = self
                        .register(&socket.socket, EventFlags::IN)
                        .map_err(|e| ControlError::system("waiting for a source's socket", &e))?;
                    let arena = Box::new(Arena::default());
                    self.watched.insert(Watched::Source {
                        stream: index,
                        socket,
                        arena,
                        sender: Sender::default(),
                    });
                    opened.sockets.push(token);
                }
            }
        }
        let stream = &mut self.streams[index];
        stream.core.handle_source(now, spec.format);
        stream.touched = true;
        if let Some(before) = stream.source.replace(opened) {
            self.close_sockets(before);
        }
        Ok(())
    }

    fn name_source(&mut self, id: StreamId, source: SourceId, peer: String) {
        self.with(id, |stream| {
            if let Some(current) = stream.source.as_mut().filter(|current| current.id == source) {
                current.peer = peer;
            }
        });
    }

    fn close_source(&mut self, id: StreamId, source: SourceId) {
        // What the publisher had queued before it left still counts.
        self.drain_queues();
        let now = self.clock.now();
        let Ok(index) = self.find(id) else { return };
        let stream = &mut self.streams[index];
        if stream.source.as_ref().is_some_and(|current| current.id == source) {
            let closed = stream.source.take();
            stream.core.handle_source_end(now);
            stream.touched = true;
            closed.into_iter().for_each(|source| self.close_sockets(source));
        }
    }

    fn close_sockets(&mut self, source: LiveSource) {
        for token in source.sockets {
            // Dropping the socket closes it, which also ends the waiting for it.
            self.watched.try_remove(token);
        }
    }

    fn join(&mut self, id: StreamId, receiver: ReceiverId, spec: JoinSpec) -> Result<Joined, ControlError> {
        let index = self.find(id)?;
        let stream = &mut self.streams[index];
        let JoinSpec { receiver: asked, delivery, mut sink, closed } = spec;
        let branch = asked.selection.branch.as_deref().map(|name| stream.core.branch_named(name)).transpose();
        sink.branch = branch.map_err(|unfit| unsupported(&stream.name, &unfit))?;
        (sink.view, sink.level) = (asked.selection.view, asked.selection.level);
        let offer = stream.core.offer(&sink);
        let offer = offer.map_err(|unfit| unsupported(&stream.name, &unfit))?;
        let tracks = match (sink.carriage, offer) {
            (Carriage::Ts, _) => 1,
            (Carriage::Rtp, Some(format)) => format.tracks().min(TRACKS_MAX) as u8,
            (Carriage::Rtp, None) => TRACKS_MAX as u8,
        };
        let out = self.out(receiver, delivery, tracks)?;
        let behind = sink.link.and_then(|link| self.links.behind(link, &out, &asked.address));
        let now = self.clock.now();
        let stream = &mut self.streams[index];
        let key = stream.core.handle_join(now, receiver, sink);
        if let Out::Udp { rtcp, .. } = &out {
            self.fanout.receivers_changed();
            for (track, address) in rtcp {
                if let Some(address) = address.as_socket() {
                    self.rtcp_peers.insert(address, (index, key, *track));
                }
            }
        }
        let Receiver { kind, address: to, name, .. } = asked;
        tracing::info!(stream = stream.name, receiver, kind, to, "a receiver has joined");
        let left_out = stream.core.left_out(key);
        stream.warn_of_left_out(&left_out, 1);
        let sent_bytes = Rate::default();
        stream.put(
            key,
            LiveSink {
                id: receiver,
                kind,
                to,
                name,
                closed,
                out,
                behind,
                reports: Vec::new(),
                sent_bytes,
                wants: None,
            },
        );
        stream.touched = true;
        Ok(Joined { starts: stream.core.start_points(key), left_out })
    }

    fn out(&mut self, receiver: ReceiverId, delivery: Delivery, tracks: u8) -> Result<Out, ControlError> {
        match delivery {
            Delivery::Bytes(_, framing) => Ok(Out::Stream { connection: None, framing }),
            Delivery::Peer(_, overhead) => Ok(Out::Peer { place: None, overhead }),
            Delivery::Datagrams(_, Ends::Negotiated(site, to)) => self.negotiated(receiver, site.from, &to),
            Delivery::Datagrams(carriage, Ends::Configured(to)) => {
                self.configured(receiver, &to, carriage, tracks)
            }
        }
    }

    fn negotiated(
        &mut self,
        receiver: ReceiverId,
        from: IpAddr,
        addresses: &[TrackAddress],
    ) -> Result<Out, ControlError> {
        let v6 = addresses.first().is_some_and(|address| address.rtp.is_ipv6());
        let shared = self.rtp_ports[usize::from(v6)].ok_or_else(|| {
            ControlError::Unsupported("this machine has no IPv6: use an IPv4 address".to_owned())
        })?;
        let socket = match addresses.first() {
            Some(address) => self.port_from(from, address.rtp, shared),
            None => shared,
        };
        let media = addresses.iter().map(|a| (a.track, a.rtp.into())).collect();
        let rtcp = addresses.iter().map(|a| (a.track, a.rtcp.into())).collect();
        Ok(Out::Udp { route: UdpRoute::new(receiver, socket, media), rtcp, own_socket: false })
    }

    /// The way to a configured receiver: from the worker's own ports, unless it asks for something
    /// that a socket has to be set up for.
    fn configured(
        &mut self,
        receiver: ReceiverId,
        push: &Destination,
        carriage: Carriage,
        tracks: u8,
    ) -> Result<Out, ControlError> {
        let shared = self.rtp_ports[usize::from(push.to.is_ipv6())].filter(|_| push.is_plain());
        let socket = match shared {
            Some(socket) => socket,
            None => {
                let socket = crate::send::open_push(push)?;
                let added = self.add_port(socket, Some(push));
                added.map_err(|e| ControlError::system("waiting for a receiver's socket", &e))?
            }
        };
        let media = (0..tracks).map(|track| (track, push.track(track).into())).collect();
        let above = |address: SocketAddr| SocketAddr::new(address.ip(), address.port().saturating_add(1));
        let rtcp = match carriage {
            Carriage::Rtp => (0..tracks).map(|track| (track, above(push.track(track)).into())).collect(),
            Carriage::Ts => Vec::new(),
        };
        let route = UdpRoute::new(receiver, socket, media);
        Ok(Out::Udp { route, rtcp, own_socket: shared.is_none() })
    }

    fn start(&mut self, id: StreamId, receiver: ReceiverId, connection: Option<WriteSide>) {
        let Some((index, key)) = self.find_sink(id, receiver) else { return };
        if let Some(connection) = connection
            && let Err(error) = self.connect(index, key, connection)
        {
            tracing::warn!(receiver, %error, "a receiver's connection cannot be waited for");
            self.end(index, key, CloseReason::PeerGone);
            return;
        }
        let stream = &mut self.streams[index];
        stream.core.handle_report(key, Report::Writable);
        stream.touched = true;
    }

    fn inject(&mut self, id: StreamId, receiver: ReceiverId, bytes: &[u8]) {
        let Some((index, key)) = self.find_sink(id, receiver) else { return };
        if let Some(sink) = self.streams[index].sink_mut(key)
            && let Out::Stream { connection: Some((connection, _)), .. } = &mut sink.out
            && !connection.inject(bytes)
        {
            self.end(index, key, CloseReason::PeerGone);
        }
    }

    fn shut_down(&mut self) {
        let ids: Vec<StreamId> = self.streams.iter().map(|(_, stream)| stream.id).collect();
        for id in ids {
            self.remove_stream(id, CloseReason::ShuttingDown);
        }
        self.running = false;
    }

    pub(super) fn find(&self, id: StreamId) -> Result<usize, ControlError> {
        let found = self.streams.iter().find(|(_, stream)| stream.id == id);
        found.map(|(index, _)| index).ok_or(ControlError::StreamGone)
    }

    pub(super) fn find_sink(&self, id: StreamId, receiver: ReceiverId) -> Option<(usize, SinkKey)> {
        let index = self.find(id).ok()?;
        Some((index, *self.streams[index].receivers.get(&receiver)?))
    }

    pub(super) fn with(&mut self, id: StreamId, change: impl FnOnce(&mut LiveStream)) {
        if let Ok(index) = self.find(id) {
            change(&mut self.streams[index]);
            self.streams[index].touched = true;
        }
    }

    pub(super) fn with_sink(
        &mut self,
        id: StreamId,
        receiver: ReceiverId,
        change: impl FnOnce(&mut LiveStream, SinkKey),
    ) {
        if let Some((index, key)) = self.find_sink(id, receiver) {
            change(&mut self.streams[index], key);
            self.streams[index].touched = true;
        }
    }
}
