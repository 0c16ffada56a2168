//! The new process: it gets ready, goes on with what the old one has, and tells fronts of their connections.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use outflow_engine::Clock;
use outflow_engine::message::{
    Command, ControlError, Moved, ReceiverId, Reply, SavedLive, SavedOut, SavedReceiver, SavedSocket,
    SourceSocket, Taken, TakenReceiver, UpgradeCommand,
};
use outflow_handover::Line;
use outflow_media::Time;
use tokio::sync::oneshot;

use super::give::{at, expect, say};
use super::kept::{KeptReceiver, KeptTurn};
use super::saved::{
    Base, FORMAT, Hello, SavedAt, SavedEntry, SavedPart, SavedPublisher, SavedRelay, decode, encode, kind,
};
use super::{Part, Upgrade, pipe};
use crate::control::{Control, skip_ids};
use crate::placing::Replication;
use crate::receiver::Playing;
use crate::registry::Entered;
use crate::session::SessionToken;
use crate::turn::Turn;

/// How long the old process may take to say something.
const WITHIN: Duration = Duration::from_secs(10);

/// The process before.
#[derive(Debug)]
pub(crate) struct Old {
    line: Arc<Line>,
    base: Base,
}

/// Descriptors that have come, in their order.
struct Descriptors(std::vec::IntoIter<OwnedFd>);

impl Descriptors {
    fn next(&mut self) -> Result<OwnedFd, ControlError> {
        self.0.next().ok_or_else(|| unfit("descriptors are missing"))
    }

    fn some(&mut self, count: usize) -> Result<Vec<OwnedFd>, ControlError> {
        (0..count).map(|_| self.next()).collect()
    }
}

fn unfit(what: &str) -> ControlError {
    ControlError::NotUpgraded(format!("{what}: restart the relay instead"))
}

impl Old {
    /// Greets the old process, which says what this one begins with.
    ///
    /// # Errors
    /// The two do not understand each other, or the old one has ended.
    pub(crate) async fn greet(line: Line) -> Result<Self, ControlError> {
        let line = Arc::new(line);
        let (version, pid) = (env!("CARGO_PKG_VERSION").to_owned(), std::process::id());
        let hello = Hello { format: FORMAT, version, pid };
        say(&line, kind::HELLO, encode(&hello), Vec::new()).await?;
        let base = decode(&expect(&line, kind::BASE, WITHIN).await?.value)?;
        Ok(Old { line, base })
    }

    /// The old process's clock.
    pub(crate) fn clock(&self) -> Clock {
        Clock::of(self.base.zero_ns, self.base.ntp_at_zero)
    }

    /// Numbers below this one were given.
    pub(crate) fn next_id(&self) -> u64 {
        self.base.next_id
    }

    /// This process cannot go on with the relay.
    pub(crate) async fn refuse(&self, why: &ControlError) {
        // An old process that has ended needs to know nothing.
        let _ = say(&self.line, kind::REFUSED, why.to_string().into_bytes(), Vec::new()).await;
    }

    /// Checks that there are as many workers, and takes note of where streams are to be.
    pub(crate) fn begin(&self, control: &Control) -> Result<(), ControlError> {
        let (here, there) = (control.workers().count() as u64, self.base.workers);
        if here != there {
            return Err(unfit(&format!("there are {there} workers, and would be {here}")));
        }
        let places = self.base.places.iter().map(|(name, worker)| (name.clone(), *worker as usize));
        control.shared::<Upgrade>().kept().places = places.collect();
        Ok(())
    }

    /// Goes on with all that the old process has. When this returns it has ended, but for what goes on through it, and
    /// workers here stand still until [`run`](super::run).
    ///
    /// # Errors
    /// Something does not fit, which the old process is told: it goes on.
    pub(crate) async fn go_on(&self, control: &Control) -> Result<(), ControlError> {
        say(&self.line, kind::READY, Vec::new(), Vec::new()).await?;
        let state = expect(&self.line, kind::STATE, WITHIN).await?;
        let taken = match take(control, &state.value, state.descriptors).await {
            Ok(taken) => taken,
            Err(error) => {
                self.refuse(&error).await;
                return Err(error);
            }
        };
        say(&self.line, kind::RESTORED, Vec::new(), Vec::new()).await?;
        expect(&self.line, kind::GO, WITHIN).await?;
        hand_on(control, taken);
        Ok(())
    }
}

/// What fronts are told, once it is this process's: parts, each with the name of those that its front takes.
type Connections = Vec<(String, Part)>;

async fn take(
    control: &Control,
    value: &[u8],
    descriptors: Vec<OwnedFd>,
) -> Result<Connections, ControlError> {
    let saved: SavedRelay = decode(value)?;
    let mut descriptors = Descriptors(descriptors.into_iter());
    let upgrade = control.shared::<Upgrade>();
    skip_ids(control, saved.next_id);
    for worker in 0..control.workers().count() {
        ask(control, worker, |done| UpgradeCommand::Stand { done }).await?;
    }
    for (worker, pairs) in saved.ports.into_iter().enumerate() {
        let own = descriptors.some(2 * pairs.len())?;
        let ports = Moved { value: pairs, descriptors: own };
        let numbers = ask(control, worker, |reply| UpgradeCommand::TakePorts { ports, reply }).await??;
        numbers.into_iter().for_each(|numbers| control.workers().get(worker).set_rtp_ports(numbers));
    }
    let streams = streams(saved.streams, &mut descriptors)?;
    let sockets = take_streams(control, &upgrade, streams, saved.receivers).await?;
    take_turns(control, &upgrade, (saved.turns, sockets), &mut descriptors)?;
    let part = |SavedPart { front, value, descriptors: count, turn }| {
        let descriptors = descriptors.some(count as usize)?;
        Ok((front, Part { value, descriptors, turn }))
    };
    let parts = saved.parts.into_iter().map(part).collect::<Result<_, ControlError>>()?;
    for (protocol, address) in saved.listeners {
        let address = address.parse().map_err(|_| unfit("a listener's address cannot be read"))?;
        upgrade.listens(&protocol, address, descriptors.next()?);
    }
    Ok(parts)
}

/// A worker's answer.
async fn ask<T>(
    control: &Control,
    worker: usize,
    command: impl FnOnce(oneshot::Sender<T>) -> UpgradeCommand,
) -> Result<T, ControlError> {
    let (reply, answer) = oneshot::channel();
    control.workers().tell(&at(worker), Command::Upgrade(command(reply)));
    answer.await.map_err(|_| ControlError::ShuttingDown)
}

/// A stream at a worker, with its descriptors.
type At = (usize, Moved<SavedLive>);

/// Owners first: replicas are handed what they have.
fn streams(saved: Vec<SavedAt>, descriptors: &mut Descriptors) -> Result<Vec<At>, ControlError> {
    let mut streams = Vec::with_capacity(saved.len());
    for SavedAt { worker, live, descriptors: count } in saved {
        let own = descriptors.some(count as usize)?;
        streams.push((worker as usize, Moved { value: live, descriptors: own }));
    }
    streams.sort_by_key(|(_, live)| !live.value.is_owner);
    Ok(streams)
}

/// Sockets of sources, by the numbers of their turns.
type Sockets = BTreeMap<u64, Vec<SourceSocket>>;

async fn take_streams(
    control: &Control,
    upgrade: &Upgrade,
    streams: Vec<At>,
    receivers: Vec<SavedEntry>,
) -> Result<Sockets, ControlError> {
    let mut sockets = Sockets::new();
    let mut by_place: BTreeMap<(String, usize), Vec<SavedEntry>> = BTreeMap::new();
    for entry in receivers {
        by_place.entry((entry.stream.clone(), entry.worker as usize)).or_default().push(entry);
    }
    for (worker, mut live) in streams {
        let name = live.value.name.clone();
        if live.value.receivers.is_empty() && !live.value.is_owner {
            continue;
        }
        let Some(entry) = control.registry().get(&name) else {
            if live.value.receivers.is_empty() {
                continue;
            }
            return Err(unfit(&format!("the file says nothing of stream '{name}', which the relay has")));
        };
        if let Some(turn) = live.value.source.take() {
            let of_turn = turn.sockets.into_iter().map(|socket| source_socket(socket, &mut live.descriptors));
            sockets.insert(turn.id, of_turn.collect::<Result<_, _>>()?);
        }
        let entries = by_place.remove(&(name.clone(), worker)).unwrap_or_default();
        let mut playings = enter(control, &name, entries)?;
        let there = match playings.values().next() {
            Some((playing, _)) => playing.owner(),
            None => entry.owner,
        };
        if there.worker != worker {
            return Err(unfit(&format!("stream '{name}' is with another worker")));
        }
        let mut receivers = Vec::new();
        let known: Vec<SavedReceiver> = std::mem::take(&mut live.value.receivers);
        for receiver in known {
            // One that has left since is not written down any more.
            let Some((playing, taken)) = playings.remove(&receiver.id) else { continue };
            receivers.push(TakenReceiver { kind: interned(&receiver.kind), ..taken });
            keep(upgrade, playing, &name, &receiver);
            live.value.receivers.push(receiver);
        }
        let taken = Box::new(Taken { live, receivers });
        let command = |reply: Reply<()>| UpgradeCommand::Take { stream: there.stream, taken, reply };
        ask(control, worker, command).await??;
    }
    Ok(sockets)
}

fn source_socket(saved: SavedSocket, descriptors: &mut [OwnedFd]) -> Result<SourceSocket, ControlError> {
    let failed = |error| ControlError::system("taking over a source's socket", &error);
    let own = descriptors.get(saved.descriptor as usize).ok_or_else(|| unfit("descriptors are missing"))?;
    // The worker that has the stream lets its own go.
    let copy = own.try_clone().map_err(failed)?;
    SourceSocket::taken(saved, copy).map_err(|_| unfit("a source's address cannot be read"))
}

/// Receivers are written down. Where the stream was served by another worker than its owner, it is again.
fn enter(
    control: &Control,
    stream: &str,
    entries: Vec<SavedEntry>,
) -> Result<BTreeMap<ReceiverId, (Playing, TakenReceiver)>, ControlError> {
    let mut playings = BTreeMap::new();
    for SavedEntry { id, worker, session, grant, .. } in entries {
        let grant = grant.and_then(|grant| control.door().restore(grant));
        let session = session.map(SessionToken::of);
        let entered = Entered { id, stream: stream.to_owned(), worker: worker as usize, session, grant };
        let replicate = |replication: Replication| replication.carry_out(stream, control.workers(), true);
        let owner = control.registry().enter(entered, || control.new_id(), replicate)?;
        playings.insert(id, Playing::go_on(control, owner, id, stream));
    }
    Ok(playings)
}

fn keep(upgrade: &Upgrade, playing: Playing, stream: &str, receiver: &SavedReceiver) {
    let mut is_alone = false;
    match &receiver.out {
        SavedOut::Stream { descriptor, .. } => is_alone = descriptor.is_some(),
        SavedOut::Peer { value: Some(value), .. } => upgrade.kept().add_peer(receiver.id, value.clone()),
        SavedOut::Peer { value: None, .. } | SavedOut::Udp { .. } => {}
    }
    let (stream, name, to) = (stream.to_owned(), receiver.name.clone(), receiver.to.clone());
    upgrade.kept().add_receiver(KeptReceiver { playing, stream, name, to, is_alone });
}

fn take_turns(
    control: &Control,
    upgrade: &Upgrade,
    (turns, mut sockets): (Vec<SavedPublisher>, Sockets),
    descriptors: &mut Descriptors,
) -> Result<(), ControlError> {
    for SavedPublisher { stream, source, peer, begun_ns, media_ns, grant, is_piped } in turns {
        let grant = grant.and_then(|grant| control.door().restore(grant));
        let turn = Turn::new(source, &peer, Time::from_nanos(begun_ns)).of(grant.as_ref());
        media_ns.into_iter().for_each(|at| turn.media().came(Time::from_nanos(at)));
        let pipe = if is_piped { Some(descriptors.next()?) } else { None };
        let is_pushed = control.registry().get(&stream).is_some_and(|entry| entry.is_pushed);
        control.registry().write(&stream, turn.clone());
        let sockets = sockets.remove(&source).unwrap_or_default();
        upgrade.kept().add_turn(KeptTurn { stream, turn, sockets, pipe, is_pushed });
    }
    Ok(())
}

/// Fronts, and whatever else has waited for it, go on with connections.
fn hand_on(control: &Control, parts: Connections) {
    let upgrade = control.shared::<Upgrade>();
    let mut by_front: BTreeMap<String, Vec<Part>> = BTreeMap::new();
    for (front, part) in parts {
        by_front.entry(front).or_default().push(part);
    }
    let pipes = upgrade.kept().take_pipes();
    for (source, from) in pipes {
        pipe::begin(control, &upgrade, source, from);
    }
    for part in by_front.remove(pipe::FRONT).unwrap_or_default() {
        pipe::take(control, &upgrade, part);
    }
    for front in control.fronts().iter() {
        if let Some(parts) = front.parts().and_then(|name| by_front.remove(name)) {
            front.take(control.clone(), parts);
        }
    }
    upgrade.open_configured(control);
    upgrade.keep_alone(control);
}

/// A word of the API, of which there are few: each is kept for as long as the process is there.
fn interned(word: &str) -> &'static str {
    static WORDS: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut words = WORDS.lock().unwrap_or_else(PoisonError::into_inner);
    match words.get(word) {
        Some(known) => known,
        None => {
            let kept: &'static str = Box::leak(Box::from(word));
            words.insert(kept);
            kept
        }
    }
}
