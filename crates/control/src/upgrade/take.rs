//! The new process: it gets ready, goes on with what the old one has, and tells fronts of their connections.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use outflow_engine::Clock;
use outflow_engine::message::{
    ControlError, Moved, ReceiverId, SavedLive, SavedOut, SavedReceiver, SavedSocket, SourceSocket, Taken,
    TakenReceiver, UpgradeCommand,
};
use outflow_handover::{Line, Message};
use outflow_media::Time;

use super::give::{answer, ask, ask_all, at, expect, run, say};
use super::kept::{KeptReceiver, KeptTurn};
use super::recoveries::Recoveries;
use super::saved::{
    Base, FORMAT, Hello, SavedAt, SavedConnections, SavedEntry, SavedPart, SavedPublisher, SavedRelay,
    decode, encode, kind,
};
use super::{PULLED, Part, Upgrade, pipe};
use crate::control::{Control, skip_ids};
use crate::placing::Replication;
use crate::receiver::Playing;
use crate::registry::Entered;
use crate::session::SessionToken;
use crate::turn::Turn;
use crate::workers::Owner;

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

    /// Streams that are not in the file, and their sources.
    pub(crate) fn adopted(&self) -> &[(String, String)] {
        &self.base.adopted
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
        let upgrade = control.shared::<Upgrade>();
        upgrade.kept().places = places.collect();
        upgrade.kept().adopted = self.base.adopted.iter().map(|(stream, _)| stream.clone()).collect();
        let last = self.base.recovered_ns.map(Time::from_nanos);
        upgrade.set_recoveries(Recoveries { count: self.base.recoveries, last });
        Ok(())
    }

    /// Goes on with all that the old process has, which is told so and ends, but for what goes on through it.
    ///
    /// # Errors
    /// Something does not fit, which the old process is told: it goes on.
    pub(crate) async fn go_on(&self, control: &Control) -> Result<(), ControlError> {
        say(&self.line, kind::READY, Vec::new(), Vec::new()).await?;
        let parts = match self.take(control).await {
            Ok(parts) => parts,
            Err(error) => {
                self.refuse(&error).await;
                return Err(error);
            }
        };
        say(&self.line, kind::RESTORED, Vec::new(), Vec::new()).await?;
        expect(&self.line, kind::GO, WITHIN).await?;
        // Those that workers have all of are served while fronts take up the others.
        run(control);
        let began = Instant::now();
        hand_on(control, parts);
        tracing::debug!(after = ?began.elapsed(), "fronts have their connections");
        // This one goes on, whatever has become of the other.
        let _ = say(&self.line, kind::ON, Vec::new(), Vec::new()).await;
        Ok(())
    }

    async fn take(&self, control: &Control) -> Result<Vec<FrontPart>, ControlError> {
        // Receivers are written down where they were, whatever workers are told of them meanwhile.
        ask_all(control, |done| UpgradeCommand::Stand { done }).await?;
        let Message { value, descriptors, .. } = expect(&self.line, kind::CONNECTIONS, WITHIN).await?;
        let (mut parts, mut entering) = take_connections(control, decode(&value)?, descriptors)?;
        say(&self.line, kind::CONNECTED, Vec::new(), Vec::new()).await?;
        let Message { value, descriptors, .. } = expect(&self.line, kind::STATE, WITHIN).await?;
        let began = Instant::now();
        let saved = decode(&value)?;
        tracing::debug!(after = ?began.elapsed(), bytes = value.len(), "what the other process has is read");
        parts.extend(take_rest(control, saved, descriptors, &mut entering).await?);
        tracing::debug!(after = ?began.elapsed(), "workers have it");
        Ok(parts)
    }
}

/// A part, with the name of those that its front takes.
type FrontPart = (String, Part);

/// Receivers that are written down, until their workers take them.
#[derive(Default)]
struct Entering(BTreeMap<ReceiverId, (Owner, TakenReceiver)>);

fn take_connections(
    control: &Control,
    saved: SavedConnections,
    descriptors: Vec<OwnedFd>,
) -> Result<(Vec<FrontPart>, Entering), ControlError> {
    let mut descriptors = Descriptors(descriptors.into_iter());
    let upgrade = control.shared::<Upgrade>();
    skip_ids(control, saved.next_id);
    let mut entering = Entering::default();
    entering.enter(control, saved.receivers)?;
    let parts = take_parts(saved.parts, &mut descriptors)?;
    for (protocol, address) in saved.listeners {
        let address = address.parse().map_err(|_| unfit("a listener's address cannot be read"))?;
        upgrade.listens(&protocol, address, descriptors.next()?);
    }
    Ok((parts, entering))
}

async fn take_rest(
    control: &Control,
    saved: SavedRelay,
    descriptors: Vec<OwnedFd>,
    entering: &mut Entering,
) -> Result<Vec<FrontPart>, ControlError> {
    let mut descriptors = Descriptors(descriptors.into_iter());
    let upgrade = control.shared::<Upgrade>();
    entering.enter(control, saved.receivers)?;
    for (worker, pairs) in saved.ports.into_iter().enumerate() {
        let own = descriptors.some(2 * pairs.len())?;
        let ports = Moved { value: pairs, descriptors: own };
        let numbers = ask(control, &at(worker), |reply| UpgradeCommand::TakePorts { ports, reply });
        let numbers = answer(numbers).await??;
        numbers.into_iter().for_each(|numbers| control.workers().get(worker).set_rtp_ports(numbers));
    }
    let streams = streams(saved.streams, &mut descriptors)?;
    let sockets = take_streams(control, &upgrade, streams, entering).await?;
    // What is left of them has left since it was written down.
    entering.0.keys().for_each(|id| drop(upgrade.playing(*id)));
    take_turns(control, &upgrade, (saved.turns, sockets), &mut descriptors)?;
    take_parts(saved.parts, &mut descriptors)
}

fn take_parts(saved: Vec<SavedPart>, descriptors: &mut Descriptors) -> Result<Vec<FrontPart>, ControlError> {
    let part = |SavedPart { front, value, descriptors: count, turn }| {
        let descriptors = descriptors.some(count as usize)?;
        Ok((front, Part { value, descriptors, turn }))
    };
    saved.into_iter().map(part).collect()
}

impl Entering {
    /// Receivers are written down. Where the stream was served by another worker than its owner, it is again.
    fn enter(&mut self, control: &Control, entries: Vec<SavedEntry>) -> Result<(), ControlError> {
        let upgrade = control.shared::<Upgrade>();
        for SavedEntry { id, stream, worker, session, grant } in entries {
            if control.registry().get(&stream).is_none() {
                return Err(unfit(&format!(
                    "the file says nothing of stream '{stream}', which the relay has"
                )));
            }
            let grant = grant.and_then(|grant| control.door().restore(grant));
            let session = session.map(SessionToken::of);
            let entered = Entered { id, stream: stream.clone(), worker: worker as usize, session, grant };
            let replicate =
                |replication: Replication| replication.carry_out(&stream, control.workers(), true);
            let owner = control.registry().enter(entered, || control.new_id(), replicate)?;
            let (playing, taken) = Playing::go_on(control, owner, id, &stream);
            upgrade.kept().add_receiver(KeptReceiver::new(playing, stream));
            self.0.insert(id, (owner, taken));
        }
        Ok(())
    }
}

/// A stream at a worker, with its descriptors.
type At = (usize, Moved<SavedLive>);

fn streams(saved: Vec<SavedAt>, descriptors: &mut Descriptors) -> Result<Vec<At>, ControlError> {
    let mut streams = Vec::with_capacity(saved.len());
    for SavedAt { worker, live, descriptors: count } in saved {
        let own = descriptors.some(count as usize)?;
        streams.push((worker as usize, Moved { value: live, descriptors: own }));
    }
    Ok(streams)
}

/// Sockets of sources, by the numbers of their turns.
type Sockets = BTreeMap<u64, Vec<SourceSocket>>;

/// Owners first, since replicas are handed what they have; all of a kind at once.
async fn take_streams(
    control: &Control,
    upgrade: &Upgrade,
    streams: Vec<At>,
    entering: &mut Entering,
) -> Result<Sockets, ControlError> {
    let mut sockets = Sockets::new();
    let (owners, replicas): (Vec<_>, Vec<_>) = streams.into_iter().partition(|(_, live)| live.value.is_owner);
    for some in [owners, replicas] {
        let mut asked = Vec::new();
        for at in some {
            let Some((owner, mut taken)) = take_stream(control, upgrade, at, entering)? else { continue };
            let live = &mut taken.live;
            if let Some(turn) = live.value.source.take() {
                let of_turn =
                    turn.sockets.into_iter().map(|socket| source_socket(socket, &mut live.descriptors));
                sockets.insert(turn.id, of_turn.collect::<Result<_, _>>()?);
            }
            asked.push(ask(control, &owner, |reply| {
                let stream = owner.stream;
                UpgradeCommand::Take { stream, taken: Box::new(taken), reply }
            }));
        }
        for asked in asked {
            answer(asked).await??;
        }
    }
    Ok(sockets)
}

/// A stream as its worker takes it; none if nothing of it is needed.
fn take_stream(
    control: &Control,
    upgrade: &Upgrade,
    (worker, mut live): At,
    entering: &mut Entering,
) -> Result<Option<(Owner, Taken)>, ControlError> {
    let (name, known) = (live.value.name.clone(), std::mem::take(&mut live.value.receivers));
    if known.is_empty() && !live.value.is_owner {
        return Ok(None);
    }
    // A stream without receivers need not be in the file.
    let Some(entry) = control.registry().get(&name) else { return Ok(None) };
    let mut there = entry.owner;
    let mut receivers = Vec::new();
    for receiver in known {
        // One that has left since is not written down any more.
        let Some((owner, taken)) = entering.0.remove(&receiver.id) else { continue };
        there = owner;
        receivers.push(TakenReceiver { kind: interned(&receiver.kind), ..taken });
        live.value.receivers.push(keep(upgrade, receiver));
    }
    if there.worker != worker {
        // A replica whose receivers have all left.
        if receivers.is_empty() && !live.value.is_owner {
            return Ok(None);
        }
        return Err(unfit(&format!("stream '{name}' is with another worker")));
    }
    Ok(Some((there, Taken { live, receivers })))
}

fn source_socket(saved: SavedSocket, descriptors: &mut [OwnedFd]) -> Result<SourceSocket, ControlError> {
    let failed = |error| ControlError::system("taking over a source's socket", &error);
    let own = descriptors.get(saved.descriptor as usize).ok_or_else(|| unfit("descriptors are missing"))?;
    // The worker that has the stream lets its own go.
    let copy = own.try_clone().map_err(failed)?;
    SourceSocket::taken(saved, copy).map_err(|_| unfit("a source's address cannot be read"))
}

/// What its worker knows of a receiver is kept, too; what its front goes on with is not the worker's.
fn keep(upgrade: &Upgrade, mut receiver: SavedReceiver) -> SavedReceiver {
    let mut kept = upgrade.kept();
    let mut is_alone = false;
    match &mut receiver.out {
        // In what is interleaved a front reads, too.
        SavedOut::Stream { descriptor, channels, .. } => {
            is_alone = descriptor.is_some() && channels.is_none()
        }
        SavedOut::Peer { value, .. } => {
            value.take().into_iter().for_each(|value| kept.add_peer(receiver.id, value));
        }
        SavedOut::Udp { .. } => {}
    }
    kept.know(receiver.id, (receiver.name.clone(), receiver.to.clone()), is_alone);
    receiver
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
fn hand_on(control: &Control, parts: Vec<FrontPart>) {
    let upgrade = control.shared::<Upgrade>();
    let mut by_front: BTreeMap<String, Vec<Part>> = BTreeMap::new();
    // What media comes from goes first.
    let (sources, others): (Vec<_>, Vec<_>) = parts.into_iter().partition(|(_, part)| part.turn.is_some());
    for (front, part) in sources.into_iter().chain(others) {
        by_front.entry(front).or_default().push(part);
    }
    let pipes = upgrade.kept().take_pipes();
    for (source, from) in pipes {
        pipe::begin(control, &upgrade, source, from);
    }
    for part in by_front.remove(pipe::FRONT).unwrap_or_default() {
        pipe::take(control, &upgrade, part);
    }
    for part in by_front.remove(PULLED).unwrap_or_default() {
        upgrade.kept().add_pulled(part);
    }
    for front in control.fronts().iter() {
        for name in front.parts() {
            if let Some(parts) = by_front.remove(*name) {
                front.take(control.clone(), name, parts);
            }
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
