//! A worker: a thread that owns streams, their sockets and their receivers' connections.
//!
//! It waits for packets, commands and the streams' own deadlines; nothing it owns is shared. Of a
//! stream that is too large for one, others hold replicas (see [`share`]).

mod commands;
mod demand;
mod feedback;
mod handle;
mod ingest;
mod links;
mod near;
mod negotiation;
mod peers;
mod rtcp;
mod serve;
mod services;
mod share;
mod snapshot;
mod stream;
mod tasks;
mod wait;

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::Receiver as CommandReceiver;

use outflow_media::Time;
use outflow_relay::{Priority, SinkKey};
use rustix::event::epoll;
use slab::Slab;
use tokio::sync::mpsc::UnboundedSender;

pub use feedback::Upward;
pub use handle::WorkerHandle;
use ingest::Sender;
use links::Links;
use peers::Peers;
use serve::Shares;
pub use share::{Inlet, Outlet};
use snapshot::Snapshot;
use stream::LiveStream;
use tasks::{Task, Tasks};
use wait::Poll;

use crate::bell::Bell;
use crate::clock::Clock;
use crate::limits::{EVENTS, PARTS_BELOW, ROUTES_REFRESH, WORK_ROUND};
use crate::message::{Command, Demand, SourceSocket};
use crate::receive::{Arena, Receiver};
use crate::send::fanout::Fanout;
use crate::send::stream::StreamSender;
use crate::send::udp::UdpPort;
use crate::send::uring::Uring;

/// What a file descriptor that the worker waits for belongs to.
#[derive(Debug)]
enum Watched {
    /// The worker's own bell: there are commands, or packets in a queue.
    Bell,
    /// A source's socket.
    Source { stream: usize, socket: SourceSocket, arena: Box<Arena>, sender: Sender },
    /// A socket that serves sinks.
    Port { port: usize },
    /// What tells of changed routes and neighbours.
    Routes,
    /// The RTCP side of the worker's own port pair.
    Rtcp { socket: std::net::UdpSocket },
    /// A socket that peers send through.
    PeerPort { port: usize },
    /// A receiver's connection.
    Connection { stream: usize, sink: SinkKey },
}

/// Everything that one thread owns.
struct Worker {
    clock: Clock,
    epoll: OwnedFd,
    bell: Arc<Bell>,
    commands: CommandReceiver<Command>,
    /// What receivers want, to the task that fetches streams.
    told: UnboundedSender<Demand>,
    watched: Slab<Watched>,
    streams: Slab<LiveStream>,
    /// The worker's own RTP sockets and those of configured receivers.
    ports: Slab<UdpPort>,
    /// The worker's own RTP sockets, of IPv4 and of IPv6.
    rtp_ports: [Option<usize>; 2],
    /// Those from single addresses of the machine.
    near_ports: BTreeMap<IpAddr, usize>,
    /// Which sink reports from which address.
    rtcp_peers: BTreeMap<SocketAddr, (usize, SinkKey, u8)>,
    receiver: Receiver,
    fanout: Fanout,
    next_refresh: Time,
    tasks: Tasks,
    poll: Poll,
    /// The highest class of any receiver here.
    highest: Priority,
    snapshot: Snapshot,
    streamer: StreamSender,
    uring: Uring,
    shares: Shares,
    links: Links,
    /// Receivers that are reached by state machines of their own.
    peers: Peers,
    running: bool,
}

impl Worker {
    /// Serves until told to stop.
    fn run(&mut self) -> io::Result<()> {
        let mut events = Vec::with_capacity(EVENTS);
        while self.running {
            let due = self.due();
            self.wait(due, &mut events)?;
            // What comes to sources is served when it has been read: nothing else is to be looked for.
            let mut anything = self.clock.now() >= due;
            for event in &events {
                let token = event.data.u64() as usize;
                anything |= !matches!(self.watched.get(token), Some(Watched::Source { .. }));
                self.event(token, event.flags);
            }
            if anything {
                self.plan();
            }
            self.work();
        }
        Ok(())
    }

    /// Puts down what has to be done for streams to which something has happened or whose time has
    /// come, and for the snapshot.
    fn plan(&mut self) {
        let now = self.clock.now();
        for (index, stream) in &mut self.streams {
            plan_stream(&mut self.tasks, now, index, stream);
        }
        if now >= self.next_refresh {
            self.next_refresh = now + ROUTES_REFRESH;
            self.fanout.refresh(now);
        }
        for link in self.links.are_due(now) {
            self.tasks.add(Priority::High, Task::Depart(link));
        }
        self.peers.wake(now);
        self.plan_peers();
        if self.snapshot.is_due(now) {
            self.tasks.add(self.snapshot.class(now), Task::Snapshot);
        }
    }

    /// Works until nothing is left to do, or it is time to look for new packets.
    fn work(&mut self) {
        let began = self.clock.now();
        while let Some((class, task)) = self.tasks.next() {
            match task {
                Task::Receive(token) => self.receive(token, class),
                Task::Serve(stream) => self.serve(stream, class),
                Task::Depart(link) => self.depart(link),
                Task::Transmit => self.transmit(class),
                Task::Report(stream) => self.go_on_with_reports(stream),
                Task::Snapshot => self.go_on_with_snapshot(),
            }
            if self.clock.now() >= began + WORK_ROUND / self.parts(class) {
                return;
            }
            // What was received is to be served before anything of a lower class.
            if let Task::Receive(token) = task
                && let Some(&Watched::Source { stream: index, .. }) = self.watched.get(token)
                && let Some(stream) = self.streams.get_mut(index)
            {
                plan_stream(&mut self.tasks, self.clock.now(), index, stream);
            }
        }
    }

    /// Of what is owed in a class one in this many parts is done at once: all, if there is none above it.
    fn parts(&self, class: Priority) -> u32 {
        if class > self.highest { PARTS_BELOW } else { 1 }
    }

    fn event(&mut self, token: usize, flags: epoll::EventFlags) {
        match self.watched.get(token) {
            Some(Watched::Bell) => {
                self.bell.clear();
                self.obey();
                self.drain_queues();
                self.take_handed();
                self.take_near();
                self.take_parcels();
            }
            Some(Watched::Source { stream, .. }) => {
                let class = self.streams.get(*stream).map_or(Priority::Normal, LiveStream::class);
                self.tasks.add(class, Task::Receive(token));
            }
            Some(Watched::Port { port }) => {
                let port = *port;
                if flags.contains(epoll::EventFlags::OUT) {
                    self.port_writable(port);
                }
            }
            Some(&Watched::PeerPort { port }) => self.peer_port_writable(port),
            Some(Watched::Routes) => self.fanout.routes_changed(),
            Some(Watched::Rtcp { .. }) => self.receive_rtcp(token),
            Some(&Watched::Connection { stream, sink }) => self.connection_event(stream, sink, flags),
            None => {}
        }
    }

    /// Waits for a descriptor from now on. Returns the token at which the caller puts down in
    /// `watched`, right away, what the descriptor belongs to.
    fn register(&self, fd: impl AsFd, flags: epoll::EventFlags) -> io::Result<usize> {
        let token = self.watched.vacant_key();
        epoll::add(&self.epoll, fd, epoll::EventData::new_u64(token as u64), flags)?;
        Ok(token)
    }
}

/// Puts down what has to be done for a stream, if something has happened to it or its time has come.
fn plan_stream(tasks: &mut Tasks, now: Time, index: usize, stream: &mut LiveStream) {
    if !core::mem::take(&mut stream.touched) && stream.wake.is_none_or(|wake| wake > now) {
        return;
    }
    // First of all, so that other workers can begin.
    stream.hand_over();
    stream.tell_class();
    // One task sees to what is of no class: deadlines and events.
    stream.wake = None;
    tasks.add(stream.core.classes().next().unwrap_or_default(), Task::Serve(index));
    for class in stream.core.classes().skip(1) {
        tasks.add(class, Task::Serve(index));
    }
}
