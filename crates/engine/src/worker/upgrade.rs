//! A worker hands over what it has to one of another process, or goes on with what another one had.
//!
//! It stands still meanwhile: it reads no socket, and commands wait that are not for this. Nothing that it has
//! changes by being saved, so that it can go on as if nothing had been.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::RecvTimeoutError;

use outflow_relay::save::SavedStream;
use outflow_relay::{Report, SinkKey};
use tokio::sync::mpsc;

use super::Worker;
use super::sink::LiveSink;
use super::stream::LiveStream;
use super::udp_ports::copy;
use super::watch::{Watch, Watched};
use crate::limits::{BEAT_EVERY, FINISH_WITHIN, LETS_GO_AFTER};
use crate::message::{
    Command, ControlError, Ingest, Moved, ReceiverId, SavedLive, SavedOut, SavedReceiver, SavedRole,
    SavedSocket, SavedTurn, SavedWorker, SocketRole, SourceId, StreamId, Taken, TakenReceiver,
    UpgradeCommand,
};

/// Why a worker cannot be saved.
const BUSY: &str = "a worker is busy: try again when there is less to do";

/// Why it cannot go on with a stream.
const UNFIT: &str =
    "the two versions write down a stream in different ways: drain this relay, and start the new one";

impl Worker {
    /// Does its part of an upgrade.
    pub(super) fn upgrade(&mut self, command: UpgradeCommand) {
        if let UpgradeCommand::Stand { done } = command {
            self.finish();
            // A caller that does not wait any more lets it go on.
            let _ = done.send(());
            self.stand();
        }
    }

    /// Stands still until it is told to go on, or to end.
    fn stand(&mut self) {
        let mut put_off = Vec::new();
        loop {
            let now = self.clock.now();
            self.beat.strike(now);
            self.beat.is_through(now);
            match self.commands.recv_timeout(BEAT_EVERY) {
                Ok(Command::Upgrade(UpgradeCommand::GoOn)) => break,
                Ok(Command::Upgrade(UpgradeCommand::Vanish { queues })) => {
                    let _ = queues.send(vanish(self));
                    std::thread::sleep(LETS_GO_AFTER);
                    return;
                }
                Ok(Command::Upgrade(command)) => self.upgrade_standing(command),
                // Where streams are, and what they hand to each other, is known before they go on.
                Ok(command @ (Command::Replicate { .. } | Command::Share { .. })) => self.command(command),
                Ok(command @ Command::Shutdown) => {
                    put_off.push(command);
                    break;
                }
                Ok(command) => put_off.push(command),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    self.running = false;
                    return;
                }
            }
        }
        put_off.into_iter().for_each(|command| self.command(command));
        self.bell.ring();
    }

    fn upgrade_standing(&mut self, command: UpgradeCommand) {
        // Callers that have gone need no answer.
        match command {
            UpgradeCommand::Save { reply } => {
                let busy = || ControlError::NotUpgraded(BUSY.to_owned());
                drop(reply.send(if self.finish() { save(self) } else { Err(busy()) }));
            }
            UpgradeCommand::TakePorts { ports, reply } => {
                let failed = |error| ControlError::system("taking over the UDP ports", &error);
                drop(reply.send(self.paths.take_ports(&mut self.watch, ports).map_err(failed)));
            }
            UpgradeCommand::Take { stream, taken, reply } => drop(reply.send(self.take(stream, *taken))),
            UpgradeCommand::Stand { done } => drop(done.send(())),
            UpgradeCommand::GoOn | UpgradeCommand::Vanish { .. } => {}
        }
    }

    /// Does all that is to be done with what has come. Answers whether that is all.
    fn finish(&mut self) -> bool {
        let until = self.clock.now() + FINISH_WITHIN;
        while self.clock.now() < until {
            self.calls.take(&mut self.called);
            let is_more = self.streams.take_put_down(&self.clock, &mut self.called);
            self.plan();
            self.work();
            if !is_more && self.tasks.is_empty() {
                return true;
            }
        }
        false
    }

    /// Goes on with a stream of another process: nothing is sent before the worker goes on.
    fn take(&mut self, id: StreamId, taken: Taken) -> Result<(), ControlError> {
        let index = self.streams.find(id)?;
        let now = self.clock.now();
        let Taken { live: Moved { value, descriptors }, receivers } = taken;
        let mut descriptors: Vec<_> = descriptors.into_iter().map(Some).collect();
        let stream = &mut self.streams[index];
        let mut core = decode(&value.core)?;
        if stream.core.rendition_count() > 0 {
            // What it carries is what its renditions hand to it, from now on.
            core.carried = None;
        }
        let to_come = value.receivers.iter().filter(|receiver| is_to_come(&receiver.out));
        let to_come: BTreeSet<_> = to_come.map(|receiver| receiver.id).collect();
        core.sinks.iter_mut().for_each(|sink| sink.blocked |= to_come.contains(&sink.id));
        let keys = stream.core.restore(now, core).map_err(|unfit| stream.unsupported(&unfit))?;
        stream.touched = true;
        let saved = value.receivers.into_iter().zip(receivers);
        let mut saved: BTreeMap<ReceiverId, _> =
            saved.map(|(saved, more)| (saved.id, (saved, more))).collect();
        for (receiver, key) in keys {
            match saved.remove(&receiver) {
                Some(receiver) => self.take_receiver((index, key), receiver, &mut descriptors)?,
                None => self.streams[index].core.handle_leave(now, key),
            }
        }
        Ok(())
    }

    fn take_receiver(
        &mut self,
        (index, key): (usize, SinkKey),
        (saved, more): (SavedReceiver, TakenReceiver),
        descriptors: &mut [Option<OwnedFd>],
    ) -> Result<(), ControlError> {
        let failed = |error| ControlError::system("taking over a receiver", &error);
        let SavedReceiver { id, to, name, token, out, .. } = saved;
        let TakenReceiver { kind, rtcp, closed } = more;
        let is_to_come = is_to_come(&out);
        let (out, connection) = self.paths.take_out(&mut self.watch, id, out, descriptors).map_err(failed)?;
        let link = self.streams[index].core.spec(key).and_then(|spec| spec.link);
        let behind = link.and_then(|link| self.links.behind(link, &out, &to));
        self.paths.enter(&out, (index, key));
        let sink = LiveSink::new((id, kind, to), (name, token), (out, behind), (rtcp, closed));
        let stream = &mut self.streams[index];
        stream.put(key, sink);
        // What it has waited for may have come meanwhile.
        if !is_to_come {
            stream.core.handle_report(key, Report::Writable);
        }
        if let Some(connection) = connection {
            self.connect(index, key, connection).map_err(failed)?;
        }
        Ok(())
    }
}

/// Of a worker that cannot go on, as something has failed in it: says what it has, as that was left, so that another
/// process goes on with it. All else that it is told is dropped, as those see that ask.
pub(super) fn hand_over_alone(worker: &mut Worker) {
    while let Ok(command) = worker.commands.recv() {
        match command {
            // It stands; others wait for what it has received for them.
            Command::Upgrade(UpgradeCommand::Stand { done }) => {
                finish_if_that_works(worker);
                let _ = done.send(());
            }
            Command::Upgrade(UpgradeCommand::Save { reply }) => {
                finish_if_that_works(worker);
                let _ = reply.send(save(worker));
            }
            Command::Upgrade(UpgradeCommand::Vanish { queues }) => {
                drop(queues.send(vanish(worker)));
                std::thread::sleep(LETS_GO_AFTER);
                return;
            }
            Command::Shutdown => return,
            _ => {}
        }
    }
}

/// Does what is left to be done. What fails again is left as it is: the other process goes on from there.
fn finish_if_that_works(worker: &mut Worker) {
    let _ = catch_unwind(AssertUnwindSafe(|| worker.finish()));
}

fn decode(core: &[u8]) -> Result<SavedStream, ControlError> {
    minicbor::decode(core).map_err(|error| ControlError::NotUpgraded(format!("{UNFIT} ({error})")))
}

/// Whether the way to a receiver comes later, from its front: it waits for that.
fn is_to_come(out: &SavedOut) -> bool {
    match out {
        SavedOut::Udp { .. } => false,
        SavedOut::Stream { descriptor, .. } => descriptor.is_none(),
        SavedOut::Peer { .. } => true,
    }
}

/// Ends, and lets all sockets go that another process has, too.
fn vanish(worker: &mut Worker) -> Vec<(SourceId, mpsc::Receiver<Ingest>)> {
    (worker.running, worker.has_vanished) = (false, true);
    let mut queues = Vec::new();
    let mut next = 0;
    while let Some(index) = worker.streams.next_from(next) {
        next = index + 1;
        let Some(source) = worker.streams[index].source.take() else { continue };
        if source.sockets().is_empty() {
            queues.push((source.id(), source.into_queue()));
        }
    }
    queues
}

fn save(worker: &Worker) -> Result<SavedWorker, ControlError> {
    save_all(worker).map_err(|error| ControlError::system("copying descriptors for the new process", &error))
}

fn save_all(worker: &Worker) -> io::Result<SavedWorker> {
    let mut saved = SavedWorker { ports: worker.paths.save_ports(&worker.watch)?, streams: Vec::new() };
    let mut next = 0;
    while let Some(index) = worker.streams.next_from(next) {
        next = index + 1;
        saved.streams.push(save_stream(worker, &worker.streams[index])?);
    }
    Ok(saved)
}

fn save_stream(worker: &Worker, stream: &LiveStream) -> io::Result<Moved<SavedLive>> {
    let mut descriptors = Vec::new();
    let mut receivers = Vec::new();
    for sink in stream.sinks.iter().flatten() {
        receivers.push(SavedReceiver {
            id: sink.id,
            kind: sink.kind.to_owned(),
            to: sink.to.clone(),
            name: sink.name.clone(),
            token: sink.token.clone(),
            out: worker.paths.save_out(&sink.out, &mut descriptors)?,
        });
    }
    let source = stream.source.as_ref().map(|source| {
        let tokens = source.sockets().iter();
        let sockets = tokens.filter_map(|token| save_socket(&worker.watch, *token, &mut descriptors));
        let sockets = sockets.collect::<io::Result<Vec<_>>>()?;
        Ok::<_, io::Error>(SavedTurn { id: source.id(), peer: source.peer().to_owned(), sockets })
    });
    let value = SavedLive {
        name: stream.name.clone(),
        is_owner: stream.owner == stream.id,
        // Nothing that is written to memory fails.
        core: minicbor::to_vec(stream.core.save()).unwrap_or_default(),
        receivers,
        source: source.transpose()?,
    };
    Ok(Moved { value, descriptors })
}

fn save_socket(
    watch: &Watch,
    token: usize,
    descriptors: &mut Vec<OwnedFd>,
) -> Option<io::Result<SavedSocket>> {
    let Watched::Source { socket, arena, sender, .. } = watch.get(token)? else { return None };
    let descriptor = descriptors.len() as u32;
    match copy(&socket.socket) {
        Ok(copied) => descriptors.push(copied),
        Err(error) => return Some(Err(error)),
    }
    Some(Ok(SavedSocket {
        descriptor,
        track: socket.track,
        role: match socket.role {
            SocketRole::Ts => SavedRole::Ts,
            SocketRole::Rtp => SavedRole::Rtp,
            SocketRole::Rtcp => SavedRole::Rtcp,
        },
        from: socket.from.map(|from| from.to_string()),
        sender: sender.save(),
        overflows: arena.overflows(),
    }))
}
