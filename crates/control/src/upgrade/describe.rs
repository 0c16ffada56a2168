//! What the old process has, as it is said: first what does not change with media, then all else.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use outflow_engine::message::{ControlError, LastMedia, Moved, ReceiverId, SavedLive, SavedWorker, SourceId};

use super::saved::{SavedAt, SavedConnections, SavedEntry, SavedPart, SavedPublisher, SavedRelay};
use super::{Part, Upgrade, pipe};
use crate::control::Control;
use crate::registry::{Entered, Written};

/// How many numbers this process may give until it stands still.
const NUMBERS_MEANWHILE: u64 = 1 << 16;

/// What goes on through this process: the source's turn, where its packets are written, and where it is said that they
/// have come.
pub(super) type Piped = BTreeMap<SourceId, (UnixStream, LastMedia)>;

/// Parts, by the names of those that their fronts take.
pub(super) type Parts = Vec<(&'static str, Part)>;

/// What was said first, as far as it matters for the rest: turns that have parts, and receivers.
pub(super) struct Said {
    turns: BTreeSet<SourceId>,
    receivers: BTreeSet<ReceiverId>,
}

/// What is said last.
pub(super) struct Rest {
    pub(super) relay: SavedRelay,
    pub(super) descriptors: Vec<OwnedFd>,
    pub(super) piped: Piped,
}

fn failed(error: std::io::Error) -> ControlError {
    ControlError::system("copying descriptors for the new process", &error)
}

/// What is said first, with its descriptors.
pub(super) fn connections(
    control: &Control,
    upgrade: &Upgrade,
    parts: Parts,
) -> Result<(SavedConnections, Vec<OwnedFd>, Said), ControlError> {
    let mut descriptors = Vec::new();
    let turns = turns_of(&parts);
    let parts = saved_parts(parts, &mut descriptors);
    let mut listeners = Vec::new();
    for ((protocol, address), listener) in upgrade.listeners().iter() {
        listeners.push((protocol.clone(), address.to_string()));
        descriptors.push(listener.try_clone().map_err(failed)?);
    }
    let next_id = control.new_id() + NUMBERS_MEANWHILE;
    let receivers: Vec<_> = control.registry().entered().into_iter().map(entry).collect();
    let said = Said { turns, receivers: receivers.iter().map(|receiver| receiver.id).collect() };
    Ok((SavedConnections { next_id, receivers, parts, listeners }, descriptors, said))
}

/// All else, with its descriptors, and what goes on through this process.
pub(super) fn rest(
    control: &Control,
    workers: Vec<SavedWorker>,
    parts: Parts,
    Said { mut turns, receivers: known }: Said,
) -> Result<Rest, ControlError> {
    let (mut ports, mut streams, mut descriptors) = (Vec::new(), Vec::new(), Vec::new());
    let mut lives = Vec::new();
    for (worker, saved) in (0_u64..).zip(workers) {
        ports.push(saved.ports.value);
        descriptors.extend(saved.ports.descriptors);
        lives.extend(saved.streams.into_iter().map(|live| (worker, live)));
    }
    turns.extend(turns_of(&parts));
    let (turns, piped, pipes) = publishers(control, &lives, &turns)?;
    for (worker, Moved { value: live, descriptors: own }) in lives {
        streams.push(SavedAt { worker, live, descriptors: own.len() as u32 });
        descriptors.extend(own);
    }
    descriptors.extend(pipes);
    let parts = saved_parts(parts, &mut descriptors);
    let entered = control.registry().entered().into_iter();
    let receivers = entered.filter(|entered| !known.contains(&entered.id)).map(entry).collect();
    let relay = SavedRelay { ports, streams, turns, receivers, parts };
    Ok(Rest { relay, descriptors, piped })
}

/// Turns of publishers that go on, those of them that do through this process, and the other ends of their pipes.
fn publishers(
    control: &Control,
    lives: &[(u64, Moved<SavedLive>)],
    taken: &BTreeSet<SourceId>,
) -> Result<(Vec<SavedPublisher>, Piped, Vec<OwnedFd>), ControlError> {
    let (mut turns, mut piped, mut pipes) = (Vec::new(), Piped::new(), Vec::new());
    for Written { stream, turn, is_pushed } in control.registry().written() {
        let read_by_worker = lives.iter().any(|(_, live)| is_read(live, turn.source));
        let is_taken = taken.contains(&turn.source);
        let is_piped = is_pushed && !read_by_worker && !is_taken;
        // What else is pulled begins again, and so does a publisher whose session ends.
        if !(is_taken || is_piped || (read_by_worker && !is_pushed)) {
            continue;
        }
        if is_piped {
            let (ours, theirs) = pipe::pair().map_err(failed)?;
            piped.insert(turn.source, (ours, turn.media()));
            pipes.push(theirs);
        }
        turns.push(SavedPublisher {
            stream,
            source: turn.source,
            peer: turn.peer.clone(),
            begun_ns: turn.begun().as_nanos(),
            media_ns: turn.media().at().map(outflow_media::Time::as_nanos),
            grant: turn.grant.as_ref().map(outflow_door::Grant::save),
            is_piped,
        });
    }
    Ok((turns, piped, pipes))
}

fn turns_of(parts: &Parts) -> BTreeSet<SourceId> {
    parts.iter().filter_map(|(_, part)| part.turn).collect()
}

fn saved_parts(parts: Parts, descriptors: &mut Vec<OwnedFd>) -> Vec<SavedPart> {
    let saved = parts.into_iter().map(|(front, Part { value, descriptors: own, turn })| {
        let count = own.len() as u32;
        descriptors.extend(own);
        SavedPart { front: front.to_owned(), value, descriptors: count, turn }
    });
    saved.collect()
}

/// Whether a worker reads a source from sockets.
fn is_read(live: &Moved<SavedLive>, source: SourceId) -> bool {
    let turn = live.value.source.as_ref();
    turn.is_some_and(|turn| turn.id == source && !turn.sockets.is_empty())
}

fn entry(Entered { id, stream, worker, session, grant }: Entered) -> SavedEntry {
    let session = session.map(crate::session::SessionToken::halves);
    SavedEntry { id, stream, worker: worker as u64, session, grant: grant.map(|grant| grant.save()) }
}
