//! The listener, the players and the publishers go on in another process, and receivers that are connected to ([`sinks`]).
//! Connections of all others, and those that are being opened, end: what they are for begins again.

mod sinks;

use std::io;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};

use outflow_control::{Control, Member, Part, Playing, Upgrade};
use outflow_engine::message::{ControlError, PeerPath};
use outflow_poc_socket::media::Form;
use outflow_poc_socket::save::{PocEnd, Restored, Restorer, Returning, SavedDriven, SavedEnd};
use outflow_poc_socket::{Detached, NetworkPath, PocListener};

use crate::codes::ENDED;
use crate::options::options;
use crate::peer::PocPeer;
use crate::publish::Publication;
use crate::saved::{SavedPeer, SavedPublication};
use crate::settings::Poc;
pub(super) use sinks::{PARTS as SINKS, Taken as TakenSinks, take as take_sinks};

/// What the parts of listeners are called.
pub(super) const PARTS: &str = "poc";

/// Fewer players than this are not worth a thread.
const PLAYERS_OF_THREAD: usize = 8;

/// What clients are told whose connections do not go on.
const AGAIN: &str = "another process of the relay has taken over; connect again";

/// The listener of the process before, until it is asked for.
#[derive(Default)]
pub(super) struct Taken(Mutex<Option<PocListener>>);

impl Taken {
    /// The listener, if it is to be at this address. One that is not to be there any more ends with its connections.
    pub(super) fn of(&self, at: Option<SocketAddr>) -> Option<PocListener> {
        let listener = self.0.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        let (own, at) = (listener.local_addr(), at?);
        let is_it = own == at || (at.port() == 0 && own.ip() == at.ip());
        is_it.then_some(listener)
    }

    fn put(&self, listener: PocListener) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(listener);
    }
}

/// Gives what has a socket to another process, if that goes on. Answers whether it does. `value` is what the front there
/// has to know.
pub(super) async fn give(
    end: &PocEnd,
    control: &Control,
    member: &mut Member,
    value: impl FnOnce(SavedEnd) -> Vec<u8>,
) -> bool {
    let part = match end.stand(control.epoch()).await {
        Ok((saved, socket)) => {
            Some(Part { value: value(saved), descriptors: vec![socket], ..Part::default() })
        }
        Err(error) => {
            tracing::warn!(%error, "connections of the partial-order transport have to begin again");
            None
        }
    };
    let is_given = part.is_some();
    let is_gone = member.give(part).await;
    match is_gone && is_given {
        true => end.vanish(),
        false => end.go_on(),
    }
    is_gone
}

/// Goes on with what another process has given: the listener, and publishers of its.
pub(super) fn take(control: &Control, parts: Vec<Part>) {
    let (publishers, listeners): (Vec<_>, Vec<_>) = parts.into_iter().partition(|part| part.turn.is_some());
    let taken = listeners.into_iter().next().map(|part| take_listener(control, part, publishers));
    if let Some(Err(error)) = taken {
        tracing::warn!(%error, "clients of the partial-order transport have to connect again");
    }
}

fn take_listener(
    control: &Control,
    Part { value, descriptors, .. }: Part,
    publishers: Vec<Part>,
) -> Result<(), ControlError> {
    let wrong = |error| ControlError::system("going on with the listener of another process", &error);
    let saved = minicbor::decode(&value).map_err(|error| wrong(io::Error::other(error)));
    let saved: SavedEnd = saved?;
    let socket = descriptors.into_iter().next();
    let socket = socket.ok_or_else(|| wrong(io::Error::other("its socket is missing")))?;
    let options = options(&control.config().section::<Poc>(), None)?;
    let returning = Returning::listener(options, (&saved, socket), control.epoch());
    let mut returning = returning.map_err(|error| wrong(io::Error::other(error)))?;
    for part in publishers {
        if publish_on(control, &mut returning, &part).is_none() {
            tracing::info!("a publisher of the partial-order transport does not go on");
        }
    }
    let upgrade = control.shared::<Upgrade>();
    let player = |SavedDriven { number, .. }| Some((upgrade.playing(number)?, upgrade.peer(number)?));
    let mut lost = saved.driven.len();
    let players = saved.driven.into_iter().filter_map(player).collect();
    for player in restore(returning.restorer(), players) {
        lost -= usize::from(go_on(control, &mut returning, player).is_some());
    }
    if lost > 0 {
        tracing::info!(lost, "receivers of the partial-order transport do not go on");
    }
    control.shared::<Taken>().put(returning.begin(ENDED, AGAIN));
    Ok(())
}

/// A player, and what its state machine has said of itself.
type Saved = (Playing, Vec<u8>);

/// A player, its connection, and what it has beside that.
type Player = (Playing, Restored, SavedPeer);

/// Restores players on all processors that control has: their viewers wait. Those that cannot go on are left out.
fn restore(mut restorer: Restorer, mut players: Vec<Saved>) -> Vec<Player> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    // What the first one needs is what the others need.
    let first = players.pop().and_then(|player| restore_player(&mut restorer, player));
    let each = players.len().div_ceil(threads).max(PLAYERS_OF_THREAD);
    let mut restored: Vec<_> = first.into_iter().collect();
    std::thread::scope(|scope| {
        let mut helpers = Vec::new();
        while players.len() > each {
            let (mut restorer, some) = (restorer.clone(), players.split_off(players.len() - each));
            let help = move || -> Vec<_> {
                some.into_iter().filter_map(|player| restore_player(&mut restorer, player)).collect()
            };
            helpers.extend(std::thread::Builder::new().spawn_scoped(scope, help));
        }
        restored.extend(players.into_iter().filter_map(|player| restore_player(&mut restorer, player)));
        // Players of one that panicked, which stands in the log then, do not go on.
        restored.extend(helpers.into_iter().filter_map(|helper| helper.join().ok()).flatten());
    });
    restored
}

/// None if it cannot go on.
fn restore_player(restorer: &mut Restorer, (playing, value): Saved) -> Option<Player> {
    let saved: SavedPeer = minicbor::decode(&value).ok()?;
    let restored = restorer.restore(&saved.connection).ok()?;
    Some((playing, restored, saved))
}

/// Goes on with a publisher; none if its turn is over, or the listener does not know it.
fn publish_on(control: &Control, returning: &mut Returning, part: &Part) -> Option<()> {
    let SavedPublication { number, is_rtp } = minicbor::decode(&part.value).ok()?;
    let publisher = control.shared::<Upgrade>().publisher(control, part.turn?)?;
    let socket = returning.socket(number)?;
    let (peer, form) = (socket.peer_addr()?, if is_rtp { Form::Rtp } else { Form::Ts });
    let (control, permit) = (control.clone(), control.door().admit(peer.ip()));
    tokio::spawn(async move {
        let ended = Publication { publisher, socket, form }.run(&control).await;
        drop(permit);
        ended.inspect_err(
            |why| tracing::info!(%peer, why, "a client of the partial-order transport was sent away"),
        )
    });
    Some(())
}

/// Goes on with a player; none if the listener does not know it.
fn go_on(control: &Control, returning: &mut Returning, (mut playing, restored, saved): Player) -> Option<()> {
    let (detached, way) = returning.detached(playing.id(), restored, playing.inbox()).ok()?;
    let permit = control.door().admit(way.peer.ip());
    start(&playing, (detached, way), &saved);
    tokio::spawn(async move {
        playing.closed().await;
        drop(permit);
    });
    Some(())
}

/// A receiver is sent to, as its state machine has said.
fn start(playing: &Playing, (detached, way): (Detached, NetworkPath), saved: &SavedPeer) {
    let NetworkPath { udp, peer, own } = way;
    playing.start_peer(Box::new(PocPeer::restore(detached, saved)), PeerPath { udp, peer, own });
}

#[cfg(test)]
mod tests;
