//! Commands carried out.

use outflow_packet::limits::TRACKS_MAX;
use outflow_relay::schedule::StartPoint;
use outflow_relay::{Priority, Report, SinkKey};
use rustix::event::epoll::EventFlags;

use super::Worker;
use super::sender::Sender;
use super::sink::{LiveSink, Out};
use super::source::LiveSource;
use super::watch::Watched;
use crate::limits::{COMMANDS_A_ROUND, WORK_ROUND};
use crate::message::{
    CloseReason, Command, ControlError, Feed, JoinSpec, Joined, Receiver, ReceiverId, SocketHeard, SourceId,
    SourceSpec, StreamId, WriteSide,
};
use crate::receive::Arena;

impl Worker {
    /// Carries out commands that have come, for a round at most: packets are looked at between two rounds.
    pub(super) fn obey(&mut self) {
        let until = self.clock.now() + WORK_ROUND;
        for _ in 0..COMMANDS_A_ROUND {
            let Ok(command) = self.commands.try_recv() else { return };
            self.command(command);
            // What another process has is not touched any more.
            if !self.running {
                return;
            }
            if self.clock.now() >= until {
                break;
            }
        }
        // There may be more, and what put it down has rung already.
        self.bell.ring();
    }

    pub(super) fn command(&mut self, command: Command) {
        let streams = &mut self.streams;
        match command {
            Command::AddStream { stream, name, url, options, replica_ends } => {
                streams.add((stream, stream), (name, url), (options, &mut self.tasks), replica_ends);
                self.look_again(stream);
            }
            Command::Replicate { stream, owner, name, options, replica_ends } => {
                streams.replicate((stream, owner), name, (options, &mut self.tasks), replica_ends);
                self.look_again(stream);
            }
            Command::Share { stream, owner_end, knows } => streams.share(stream, owner_end, knows),
            Command::Rest { stream } => streams.rest(self.clock.now(), stream),
            Command::RemoveStream { stream, reason } => self.remove_stream(stream, reason),
            Command::SetOptions { stream, options } => {
                streams.set_options(stream, options, &mut self.tasks);
            }
            Command::SetBounds { stream, bounds } => streams.with(stream, |it| it.core.set_bounds(bounds)),
            // The caller that asked may have gone; the source then ends by its own CloseSource.
            Command::OpenSource { stream, source, spec, reply } => {
                drop(reply.send(self.open_source(stream, source, spec)));
            }
            Command::CloseSource { stream, source } => self.close_source(stream, source),
            Command::NameSource { stream, source, peer } => self.name_source(stream, source, peer),
            Command::Describe { stream, wanted, reply } => {
                drop(reply.send(streams.describe(stream, &wanted)))
            }
            Command::Services(command) => streams.obey(&self.clock, &mut self.links, command),
            Command::Join { stream, receiver, spec, reply } => {
                drop(reply.send(self.join(stream, receiver, *spec)));
            }
            Command::Start { stream, receiver, connection } => self.start(stream, receiver, connection),
            Command::StartPeer { stream, receiver, peer, path } => {
                self.start_peer((stream, receiver), peer, path);
            }
            Command::Pause { stream, receiver } => {
                streams.with_sink(stream, receiver, |stream, key| stream.core.handle_pause(key));
            }
            Command::Resume { stream, receiver, reply } => drop(reply.send(self.resume(stream, receiver))),
            Command::Leave { stream, receiver, reason } => self.leave(stream, receiver, reason),
            Command::SetPriority { stream, receiver, priority } => {
                self.set_priority(stream, receiver, priority);
            }
            Command::Inject { stream, receiver, bytes } => self.inject(stream, receiver, &bytes),
            Command::ReceiverRtcp { stream, receiver, rtcp } => {
                if let Some((index, key)) = streams.find_sink(stream, receiver) {
                    self.receiver_report(index, key, None, &rtcp.bytes);
                }
            }
            Command::Feedback { stream, feedback } => {
                streams.with(stream, |it| it.core.handle_feedback(feedback))
            }
            Command::PutLink { link, name, config } => self.put_link(link, name, &config),
            Command::RemoveLink { link } => self.remove_link(link),
            Command::Snapshots { every } => self.snapshot.set_every(every),
            // If nothing waits for it any more, there is nothing to tell.
            Command::Settle { done } => drop(done.send(())),
            Command::Upgrade(command) => self.upgrade(command),
            Command::Shutdown => self.shut_down(),
        }
    }

    fn leave(&mut self, stream: StreamId, receiver: ReceiverId, reason: CloseReason) {
        if let Some((index, key)) = self.streams.find_sink(stream, receiver) {
            self.end(index, key, reason);
        }
    }

    fn set_priority(&mut self, stream: StreamId, receiver: ReceiverId, priority: Priority) {
        let mut place = None;
        self.streams.with_sink(stream, receiver, |stream, key| {
            stream.core.set_priority(key, priority);
            place = stream.sink_mut(key).and_then(|sink| sink.out.peer());
        });
        place.into_iter().for_each(|place| self.paths.peers().set_class(place, priority));
    }

    fn resume(&mut self, stream: StreamId, receiver: ReceiverId) -> Result<Vec<StartPoint>, ControlError> {
        let now = self.clock.now();
        let mut starts = Err(ControlError::UnknownReceiver(receiver));
        self.streams.with_sink(stream, receiver, |stream, key| {
            stream.core.handle_resume(now, key);
            starts = Ok(stream.core.start_points(key));
        });
        starts
    }

    fn remove_stream(&mut self, id: StreamId, reason: CloseReason) {
        let Ok(index) = self.streams.find(id) else { return };
        let keys: Vec<SinkKey> = self.streams[index].receivers.values().copied().collect();
        for key in keys {
            self.end(index, key, reason);
        }
        if let Some(source) = self.streams[index].source.take() {
            self.close_sockets(&source);
        }
        self.streams.remove(index);
        self.tasks.forget(index);
        self.paths.forget_stream(index);
    }

    fn open_source(&mut self, id: StreamId, source: SourceId, spec: SourceSpec) -> Result<(), ControlError> {
        let index = self.streams.find(id)?;
        let now = self.clock.now();
        let (queue, sockets) = match spec.feed {
            Feed::Queue(queue) => (queue, Vec::new()),
            Feed::Sockets(sockets, queue) => (queue, sockets),
        };
        let mut tokens = Vec::new();
        for mut socket in sockets {
            let entry = self
                .watch
                .add(&socket.socket, EventFlags::IN)
                .map_err(|e| ControlError::system("waiting for a source's socket", &e))?;
            tokens.push(entry.key());
            let SocketHeard { sender, overflows } = core::mem::take(&mut socket.heard);
            let (arena, sender) = (Box::new(Arena::after(overflows)), Sender::restore(sender));
            entry.insert(Watched::Source { stream: index, socket, arena, sender });
        }
        let opened = LiveSource::new(source, spec.peer, queue, tokens, (spec.feedback, spec.media));
        let stream = &mut self.streams[index];
        if let Some(format) = spec.format {
            stream.core.handle_source(now, format);
        }
        stream.touched = true;
        if let Some(before) = stream.source.replace(opened) {
            self.close_sockets(&before);
        }
        self.look_again(id);
        Ok(())
    }

    fn name_source(&mut self, id: StreamId, source: SourceId, peer: String) {
        self.streams.with(id, |stream| {
            if let Some(current) = stream.source.as_mut().filter(|current| current.id() == source) {
                current.set_peer(peer);
            }
        });
    }

    fn close_source(&mut self, id: StreamId, source: SourceId) {
        let Ok(index) = self.streams.find(id) else { return };
        let stream = &mut self.streams[index];
        // What the publisher had queued before it left still counts.
        stream.drain_queue(&self.clock);
        let now = self.clock.now();
        if stream.source.as_ref().is_some_and(|current| current.id() == source) {
            let closed = stream.source.take();
            stream.core.handle_source_end(now);
            stream.touched = true;
            closed.into_iter().for_each(|source| self.close_sockets(&source));
        }
    }

    fn close_sockets(&mut self, source: &LiveSource) {
        source.sockets().iter().for_each(|token| self.watch.forget(*token));
    }

    fn join(&mut self, id: StreamId, receiver: ReceiverId, spec: JoinSpec) -> Result<Joined, ControlError> {
        let index = self.streams.find(id)?;
        let stream = &mut self.streams[index];
        let JoinSpec { receiver: asked, delivery, mut sink, rtcp, closed } = spec;
        let branch = asked.selection.branch.as_deref().map(|name| stream.core.branch_named(name)).transpose();
        sink.branch = branch.map_err(|unfit| stream.unsupported(&unfit))?;
        (sink.view, sink.level) = (asked.selection.view, asked.selection.level);
        let offer = stream.core.offer(&sink);
        let offer = offer.map_err(|unfit| stream.unsupported(&unfit))?;
        let tracks = match (sink.encapsulation.is_rtp(), offer) {
            (false, _) => 1,
            (true, Some(format)) => format.tracks().min(TRACKS_MAX) as u8,
            (true, None) => TRACKS_MAX as u8,
        };
        let out = self.paths.out(&mut self.watch, receiver, delivery, tracks)?;
        let behind = sink.link.and_then(|link| self.links.behind(link, &out, &asked.address));
        let now = self.clock.now();
        let stream = &mut self.streams[index];
        let key = stream.core.handle_join(now, receiver, sink);
        if let Some(behind) = &behind
            && let Err(error) = self.links.admit(now, &mut stream.core, (key, receiver, behind), None)
        {
            stream.core.handle_leave(now, key);
            self.paths.leave(&mut self.watch, now, out, CloseReason::PeerGone);
            return Err(error);
        }
        self.paths.enter(&out, (index, key));
        let Receiver { kind, address: to, name, token, .. } = asked;
        tracing::info!(stream = stream.name, receiver, kind, to, token, "a receiver has joined");
        let left_out = stream.core.left_out(key);
        stream.warn_of_left_out(&left_out, 1);
        let sink = LiveSink::new((receiver, kind, to), (name, token), (out, behind), (rtcp, closed));
        stream.put(key, sink);
        stream.touched = true;
        Ok(Joined { starts: stream.core.start_points(key), left_out })
    }

    fn start(&mut self, id: StreamId, receiver: ReceiverId, connection: Option<WriteSide>) {
        let Some((index, key)) = self.streams.find_sink(id, receiver) else { return };
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
        let Some((index, key)) = self.streams.find_sink(id, receiver) else { return };
        if let Some(sink) = self.streams[index].sink_mut(key)
            && let Out::Stream { connection: Some((connection, _)), .. } = &mut sink.out
            && !connection.inject(bytes)
        {
            self.end(index, key, CloseReason::PeerGone);
        }
    }

    fn shut_down(&mut self) {
        let ids: Vec<StreamId> = self.streams.iter().map(|stream| stream.id).collect();
        for id in ids {
            self.remove_stream(id, CloseReason::ShuttingDown);
        }
        self.running = false;
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::sync::{Arc, mpsc};
    use std::time::Duration;

    use outflow_config::{Fanout, Limits, Switch, UdpPath};
    use tokio::sync::oneshot;

    use super::*;
    use crate::bell::Bell;
    use crate::clock::Clock;
    use crate::receive::bind_pair;

    /// Longer than anything here takes, so that a failure is one and no hang.
    const PATIENCE: Duration = Duration::from_secs(30);

    /// A worker without streams, and what it is told by.
    fn worker() -> (Worker, mpsc::Sender<Command>, Arc<Bell>) {
        let bell = Arc::new(Bell::new().expect("an eventfd"));
        let (commands, queue) = mpsc::channel();
        let (_, parcels) = outflow_udp::inbox(1, Arc::new(|| ()));
        let calls = crate::calls::calls(Arc::clone(&bell)).1;
        let pair = bind_pair(Ipv4Addr::LOCALHOST.into(), &(33_000..=33_999)).expect("ports");
        let paths = Fanout { udp: UdpPath::User, io_uring: Switch::Off };
        let (told, _) = crate::message::demands(0);
        let worker = Worker::open(
            (Clock::start(), Arc::default()),
            Arc::clone(&bell),
            (queue, calls, parcels),
            Arc::default(),
            pair,
            (paths, Limits::default()),
            told,
        );
        (worker.expect("a worker"), commands, bell)
    }

    /// Gives a worker this many commands at once. Returns how many it carries out in one round, and how many before
    /// it ends as the last command says.
    fn obeyed(count: usize) -> (usize, usize) {
        let (mut worker, commands, bell) = worker();
        let settle = || {
            let (done, settled) = oneshot::channel();
            commands.send(Command::Settle { done }).expect("a worker");
            settled
        };
        let mut settled: Vec<_> = (0..count).map(|_| settle()).collect();
        let mut done = || settled.iter_mut().filter_map(|settled| settled.try_recv().ok()).count();
        commands.send(Command::Shutdown).expect("a worker");
        bell.ring();
        // As when it hears the bell.
        bell.clear();
        worker.obey();
        let first = done();
        worker.run().expect("it waits");
        (first, first + done())
    }

    #[test]
    fn commands_are_carried_out_a_round_at_a_time_and_none_is_forgotten() {
        let (told, heard) = mpsc::channel();
        std::thread::spawn(move || told.send(obeyed(10_000)));
        let (first, all) = heard.recv_timeout(PATIENCE).expect("it goes on by itself");
        assert!((1..=COMMANDS_A_ROUND).contains(&first), "{first} in a round");
        assert_eq!(all, 10_000);
    }
}
