//! A worker as control sees it: a queue of commands and a bell.

use std::io;
use std::net::Ipv4Addr;
use std::sync::{Arc, mpsc};

use outflow_udp::{Inbox, inbox};
use tokio::sync::mpsc::UnboundedSender;

use super::Worker;
use super::share::{OwnerEnd, ReplicaEnd, Upward};
use crate::bell::Bell;
use crate::calls::{Caller, Callers, calls};
use crate::clock::Clock;
use crate::limits::PEER_PARCELS_MAX;
use crate::message::{Command, ControlError, Demand, StreamId, WorkerState};
use crate::processors::Processors;
use crate::receive::bind_pair;

/// What control holds of a worker.
#[derive(Debug)]
pub struct WorkerHandle {
    commands: mpsc::Sender<Command>,
    bell: Arc<Bell>,
    callers: Callers,
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
        let (callers, calls) = calls(Arc::clone(&bell));
        let (rings, shown) = (Arc::clone(&bell), Arc::clone(&states));
        let handle = WorkerHandle { commands, bell: rings, callers, inbox, states: shown, rtp_ports: ports };
        let (told, hears) = mpsc::channel();
        let (paths, limits) = (config.fanout.clone(), config.limits.clone());
        let thread = std::thread::Builder::new()
            .name(format!("worker-{number}"))
            .spawn(move || {
                match processors.keep(number).and_then(|()| {
                    Worker::open(
                        (clock, bell),
                        (queue, calls, parcels),
                        states,
                        pair,
                        (paths, limits),
                        demands,
                    )
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

    /// A queue through which a stream of the worker is handed packets by another one, and hands up what its
    /// receivers say.
    pub fn queue(&self, stream: StreamId, upward: Upward) -> (OwnerEnd, ReplicaEnd) {
        super::share::queue(self.caller(stream), upward)
    }

    /// The way up to a stream that this worker has the source of.
    pub fn upward(&self, stream: StreamId) -> Upward {
        Upward::new(stream, self.commands.clone(), Arc::clone(&self.bell))
    }

    /// Where datagrams are put for its peers.
    pub fn inbox(&self) -> Inbox {
        self.inbox.clone()
    }

    /// What calls it to a stream for which there is something in a queue.
    pub fn caller(&self, stream: StreamId) -> Caller {
        self.callers.to(stream)
    }

    /// The newest snapshot of what it has.
    pub fn states(&self) -> Arc<WorkerState> {
        self.states.load_full()
    }
}
