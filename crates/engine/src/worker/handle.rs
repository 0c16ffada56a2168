//! A worker as control sees it: a queue of commands and a bell.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, mpsc};

use outflow_config::Switch;
use outflow_media::Time;
use outflow_relay::Priority;
use outflow_socket::set_buffer;
use outflow_udp::{Inbox, Parcels, inbox};
use rustix::event::epoll;
use slab::Slab;
use tokio::sync::mpsc::UnboundedSender;

use super::feedback::Upward;
use super::links::Links;
use super::peers::Peers;
use super::serve::Shares;
use super::share::{Inlet, Outlet};
use super::snapshot::Snapshot;
use super::tasks::Tasks;
use super::wait::Poll;
use super::{Watched, Worker};
use crate::bell::Bell;
use crate::clock::Clock;
use crate::limits::{PEER_PARCELS_MAX, UDP_SEND_BUFFER_BYTES};
use crate::message::{Command, ControlError, Demand, Destination, StreamId, WorkerState};
use crate::processors::Processors;
use crate::receive::{PortPair, Receiver, bind_pair, bind_pair_at};
use crate::send::fanout::Fanout;
use crate::send::stream::StreamSender;
use crate::send::udp::UdpPort;
use crate::send::uring::Uring;

/// What control holds of a worker.
#[derive(Debug)]
pub struct WorkerHandle {
    commands: mpsc::Sender<Command>,
    bell: Arc<Bell>,
    /// Where datagrams are put for its peers.
    inbox: Inbox,
    states: Arc<arc_swap::ArcSwap<WorkerState>>,
    /// Ports from which receivers that were told them are served: RTP, RTCP.
    pub rtp_ports: (u16, u16),
}

impl WorkerHandle {
    /// Starts a worker on a thread of its own, and on a processor of its own if it is to have one.
    ///
    /// # Errors
    /// No free RTP port pair, or what the system refused.
    pub fn start(
        (number, processors): (usize, Processors),
        clock: Clock,
        config: &outflow_config::Config,
        demands: UnboundedSender<Demand>,
    ) -> Result<(Self, std::thread::JoinHandle<()>), ControlError> {
        let failed = |e: &io::Error| ControlError::system("starting a worker", e);
        let bell = Arc::new(Bell::new().map_err(|e| failed(&e))?);
        let states = Arc::new(arc_swap::ArcSwap::default());
        let (commands, queue) = mpsc::channel();
        let pair = bind_pair(Ipv4Addr::UNSPECIFIED.into(), &config.listen.rtp_ports)?;
        let ports = pair.ports;
        let ringing = Arc::clone(&bell);
        let (inbox, parcels) = inbox(PEER_PARCELS_MAX, Arc::new(move || ringing.ring()));
        let (rings, shown) = (Arc::clone(&bell), Arc::clone(&states));
        let handle = WorkerHandle { commands, bell: rings, inbox, states: shown, rtp_ports: ports };
        let (told, hears) = mpsc::channel();
        let (ways, limits) = (config.fanout.clone(), config.limits.clone());
        let thread = std::thread::Builder::new()
            .name(format!("worker-{number}"))
            .spawn(move || {
                match processors.keep(number).and_then(|()| {
                    worker(clock, bell, (queue, parcels), states, pair, (ways, limits), demands)
                }) {
                    Ok(mut worker) => {
                        let _ = told.send(Ok(()));
                        crate::system::take_short_turns();
                        if let Err(error) = worker.run() {
                            tracing::error!(%error, "a worker had to stop: it cannot wait for events");
                        }
                    }
                    Err(error) => drop(told.send(Err(error))),
                }
            })
            .map_err(|e| failed(&e))?;
        match hears.recv() {
            Ok(Ok(())) => Ok((handle, thread)),
            Ok(Err(error)) => Err(failed(&error)),
            Err(_) => Err(ControlError::ShuttingDown),
        }
    }

    /// Gives a command. If the worker has ended, there is nothing left to do it to.
    pub fn send(&self, command: Command) {
        if self.commands.send(command).is_ok() {
            self.bell.ring();
        }
    }

    /// A queue through which the worker is handed a stream's packets by another one, and hands up what its
    /// receivers say.
    pub fn queue(&self, upward: Upward) -> (Outlet, Inlet) {
        super::share::queue(Arc::clone(&self.bell), upward)
    }

    /// The way up to a stream that this worker has the source of.
    pub fn upward(&self, stream: StreamId) -> Upward {
        Upward { stream, commands: self.commands.clone(), bell: Arc::clone(&self.bell) }
    }

    /// Where datagrams are put for its peers.
    pub fn inbox(&self) -> Inbox {
        self.inbox.clone()
    }

    /// What wakes it.
    pub fn bell(&self) -> Arc<Bell> {
        Arc::clone(&self.bell)
    }

    /// There are packets in a queue.
    pub fn wake(&self) {
        self.bell.ring();
    }

    /// The newest snapshot of what it has.
    pub fn states(&self) -> Arc<WorkerState> {
        self.states.load_full()
    }
}

fn worker(
    clock: Clock,
    bell: Arc<Bell>,
    (commands, parcels): (mpsc::Receiver<Command>, Parcels),
    published: Arc<arc_swap::ArcSwap<WorkerState>>,
    pair: PortPair,
    (ways, limits): (outflow_config::Fanout, outflow_config::Limits),
    told: UnboundedSender<Demand>,
) -> io::Result<Worker> {
    let uring = match ways.io_uring {
        Switch::Auto => Uring::open(),
        Switch::Off => Uring::without(),
    };
    let mut worker = Worker {
        clock,
        epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
        bell: Arc::clone(&bell),
        commands,
        told,
        watched: Slab::new(),
        streams: Slab::new(),
        ports: Slab::new(),
        rtp_ports: [None; 2],
        near_ports: BTreeMap::new(),
        rtcp_peers: Default::default(),
        receiver: Receiver::new(),
        fanout: Fanout::open(ways.udp, limits.receivers),
        next_refresh: Time::ZERO,
        tasks: Tasks::default(),
        poll: Poll::new(limits.poll),
        highest: Priority::default(),
        snapshot: Snapshot::new(published),
        streamer: StreamSender::default(),
        uring,
        shares: Shares::default(),
        links: Links::default(),
        peers: Peers::new(parcels),
        running: true,
    };
    worker.register(&*bell, epoll::EventFlags::IN)?;
    worker.watched.insert(Watched::Bell);
    if let Some(routes) = worker.fanout.descriptor() {
        worker.register(routes, epoll::EventFlags::IN)?;
        worker.watched.insert(Watched::Routes);
    }
    // IPv6 is served from the same ports where the machine has it.
    let v6 = bind_pair_at(IpAddr::from(Ipv6Addr::UNSPECIFIED), pair.ports.0);
    worker.rtp_ports[0] = Some(worker.add_pair(pair)?);
    if let Ok(v6) = v6 {
        worker.rtp_ports[1] = Some(worker.add_pair(v6)?);
    }
    Ok(worker)
}

impl Worker {
    /// Sockets that serve sinks from a port of their own, with RTCP beside it.
    pub(super) fn add_pair(&mut self, pair: PortPair) -> io::Result<usize> {
        let port = self.add_port(pair.rtp, None)?;
        self.register(&pair.rtcp, epoll::EventFlags::IN)?;
        self.ports[port].rtcp = Some(self.watched.insert(Watched::Rtcp { socket: pair.rtcp }));
        Ok(port)
    }

    /// A socket that serves sinks, or this configured receiver. It is waited for only where its
    /// buffer fills up.
    pub(super) fn add_port(
        &mut self,
        socket: std::net::UdpSocket,
        push: Option<&Destination>,
    ) -> io::Result<usize> {
        set_buffer(&socket, libc::SO_SNDBUFFORCE, libc::SO_SNDBUF, UDP_SEND_BUFFER_BYTES);
        let port = self.ports.vacant_key();
        self.register(&socket, epoll::EventFlags::OUT | epoll::EventFlags::ONESHOT)?;
        let token = self.watched.insert(Watched::Port { port });
        self.ports.insert(UdpPort::new(socket, token, push)?);
        Ok(port)
    }
}
