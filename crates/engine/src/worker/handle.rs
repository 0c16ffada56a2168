//! A worker as control sees it: a queue of commands and a bell.

use std::convert::Infallible;
use std::io;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use outflow_privilege::{Part, keep};
use outflow_udp::{Inbox, inbox};
use outflow_vital::{Beat, Vital};

use super::Worker;
use super::share::{OwnerEnd, ReplicaEnd, Upward};
use super::upgrade::hand_over_alone;
use crate::bell::Bell;
use crate::calls::{Caller, Callers, calls};
use crate::clock::Clock;
use crate::limits::PEER_PARCELS_MAX;
use crate::message::{Command, ControlError, Demanders, StreamId, UpgradeCommand, WorkerState};
use crate::processors::Processors;
use crate::receive::bind_pair;

/// What control holds of a worker.
#[derive(Debug)]
pub struct WorkerHandle {
    /// The name of its thread.
    name: String,
    beat: Arc<Beat>,
    vital: Vital,
    /// It was told to end: it takes no further commands.
    is_to_end: AtomicBool,
    commands: mpsc::Sender<Command>,
    bell: Arc<Bell>,
    callers: Callers,
    /// Where datagrams are put for its peers.
    inbox: Inbox,
    states: Arc<arc_swap::ArcSwap<WorkerState>>,
    /// Ports from which receivers that were told them are served: RTP, and in the lower half RTCP.
    rtp_ports: AtomicU32,
}

/// A worker whose thread gets it ready.
#[derive(Debug)]
pub struct StartingWorker {
    handle: WorkerHandle,
    thread: JoinHandle<()>,
    hears: mpsc::Receiver<io::Result<()>>,
}

impl StartingWorker {
    /// Waits until it runs.
    ///
    /// # Errors
    /// What the system refused.
    pub fn ready(self) -> Result<(WorkerHandle, JoinHandle<()>), ControlError> {
        match self.hears.recv() {
            Ok(Ok(())) => Ok((self.handle, self.thread)),
            Ok(Err(error)) => Err(failed(&error)),
            Err(_) => Err(ControlError::ShuttingDown),
        }
    }
}

fn failed(error: &io::Error) -> ControlError {
    ControlError::system("starting a worker", error)
}

impl WorkerHandle {
    /// Starts a worker on a thread of its own, and on a processor of its own if it is to have one. If it ends without
    /// being told to, `vital` learns why.
    ///
    /// # Errors
    /// No free RTP port pair, or what the system refused.
    pub fn start(
        (number, processors): (usize, Processors),
        (clock, vital): (Clock, Vital),
        config: &outflow_config::Config,
        demands: Demanders,
    ) -> Result<StartingWorker, ControlError> {
        let bell = Arc::new(Bell::new().map_err(|e| failed(&e))?);
        let states = Arc::new(arc_swap::ArcSwap::default());
        // bounded: receivers and publishers are counted, and each adds what its front lets pass, which is paced, and few
        // reports at once (`RTCP_WAITING_MAX`); replicas add what their cores have gathered.
        let (commands, queue) = mpsc::channel();
        let pair = bind_pair(Ipv4Addr::UNSPECIFIED.into(), &config.listen.rtp_ports)?;
        let ports = pair.ports;
        let ringing = Arc::clone(&bell);
        let (inbox, parcels) = inbox(PEER_PARCELS_MAX, Arc::new(move || ringing.ring()));
        let (callers, calls) = calls(Arc::clone(&bell));
        let beat = Arc::new(Beat::default());
        let handle = WorkerHandle {
            name: format!("worker-{number}"),
            beat: Arc::clone(&beat),
            vital: vital.clone(),
            is_to_end: AtomicBool::new(false),
            commands,
            bell: Arc::clone(&bell),
            callers,
            inbox,
            states: Arc::clone(&states),
            rtp_ports: AtomicU32::new(packed(ports)),
        };
        let name = handle.name.clone();
        let (told, hears) = mpsc::sync_channel(1);
        let (paths, limits) = (config.fanout.clone(), config.limits.clone());
        let thread = std::thread::Builder::new()
            .name(name.clone())
            .spawn(move || {
                let (time, queues) = ((clock, beat), (queue, calls, parcels));
                match processors
                    .keep(number)
                    .and_then(|()| Worker::open(time, bell, queues, states, pair, (paths, limits), demands))
                    .and_then(|worker| keep(Part::Worker).map(|()| worker))
                {
                    Ok(mut worker) => {
                        let _ = told.send(Ok(()));
                        crate::system::take_short_turns();
                        let cannot = |error: io::Error| format!("it cannot wait for events: {error}");
                        if !vital.keep(&name, || worker.run().map_err(cannot)) {
                            vital.keep(&name, || {
                                hand_over_alone(&mut worker);
                                Ok::<_, Infallible>(())
                            });
                        }
                    }
                    Err(error) => drop(told.send(Err(error))),
                }
            })
            .map_err(|e| failed(&e))?;
        Ok(StartingWorker { handle, thread, hears })
    }

    /// Gives a command. If the worker was told to end, there is nothing left to do it to; if it has ended unasked,
    /// that is told, and the process ends.
    pub fn send(&self, command: Command) {
        if matches!(command, Command::Shutdown | Command::Upgrade(UpgradeCommand::Vanish { .. })) {
            self.is_to_end.store(true, Ordering::Relaxed);
        }
        if self.commands.send(command).is_ok() {
            self.bell.ring();
        } else if !self.is_to_end.load(Ordering::Relaxed) {
            self.vital.ended(&self.name, "it takes no commands any more");
        }
    }

    /// The name of its thread.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Ports from which receivers that were told them are served: RTP, RTCP.
    pub fn rtp_ports(&self) -> (u16, u16) {
        let packed = self.rtp_ports.load(Ordering::Relaxed);
        ((packed >> 16) as u16, packed as u16)
    }

    /// It serves from these ports now.
    pub fn set_rtp_ports(&self, ports: (u16, u16)) {
        self.rtp_ports.store(packed(ports), Ordering::Relaxed);
    }

    /// What it says that it goes on by.
    pub fn beat(&self) -> Arc<Beat> {
        Arc::clone(&self.beat)
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

fn packed((rtp, rtcp): (u16, u16)) -> u32 {
    u32::from(rtp) << 16 | u32::from(rtcp)
}

#[cfg(test)]
mod tests {
    use outflow_config::{Config, Protocols};

    use super::*;

    fn worker(vital: &Vital) -> (WorkerHandle, JoinHandle<()>) {
        let text = "[listen]\nrtp_ports = \"47200-47299\"\n[limits]\nworkers = 1\n[fanout]\nudp = \"user\"\n";
        let config = Config::parse(text, "test", &Protocols::default()).expect("valid");
        let processors = Processors::of(&config.limits).expect("there is one");
        let (demands, _) = crate::message::demands(0);
        let time = (Clock::start(), vital.clone());
        WorkerHandle::start((0, processors), time, &config, demands)
            .and_then(StartingWorker::ready)
            .expect("started")
    }

    #[tokio::test]
    async fn a_command_to_a_worker_that_has_ended_unasked_is_told() {
        let vital = Vital::default();
        let (handle, thread) = worker(&vital);
        // As if it had ended by itself.
        handle.commands.send(Command::Shutdown).expect("it runs");
        handle.bell.ring();
        thread.join().expect("it ends well");
        handle.send(Command::Rest { stream: 1 });
        let fatal = vital.fatal().await;
        assert_eq!((&*fatal.what, &*fatal.why), ("worker-0", "it takes no commands any more"));
    }

    #[tokio::test]
    async fn a_worker_that_was_told_to_end_needs_no_commands() {
        let vital = Vital::default();
        let (handle, thread) = worker(&vital);
        handle.send(Command::Shutdown);
        thread.join().expect("it ends well");
        handle.send(Command::Rest { stream: 1 });
        vital.ended("something else", "later");
        assert_eq!(vital.fatal().await.what, "something else");
    }
}
