//! The listener and the players go on in another process. Connections of all others, and those that are being opened,
//! end: what they are for begins again.

use std::io;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};

use outflow_control::{Control, Member, Part, Upgrade};
use outflow_engine::message::{ControlError, PeerPath};
use outflow_poc_socket::save::{Returning, SavedDriven, SavedListener};
use outflow_poc_socket::{NetworkPath, PocListener};

use crate::codes::ENDED;
use crate::options::options;
use crate::peer::PocPeer;
use crate::saved::SavedPeer;
use crate::settings::Poc;

/// What the parts of listeners are called.
pub(super) const PARTS: &str = "poc";

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

/// Gives a listener to another process, if that goes on. Answers whether it does.
pub(super) async fn give(listener: &PocListener, control: &Control, member: &mut Member) -> bool {
    let part = match listener.stand(control.epoch()).await {
        Ok((saved, socket)) => {
            let value = minicbor::to_vec(saved).unwrap_or_default();
            Some(Part { value, descriptors: vec![socket], ..Part::default() })
        }
        Err(error) => {
            tracing::warn!(%error, "clients of the partial-order transport have to connect again");
            None
        }
    };
    let is_given = part.is_some();
    let is_gone = member.give(part).await;
    match is_gone && is_given {
        true => listener.vanish(),
        false => listener.go_on(),
    }
    is_gone
}

/// Goes on with what another process has given.
pub(super) fn take(control: &Control, parts: Vec<Part>) {
    for part in parts {
        if let Err(error) = take_listener(control, part) {
            tracing::warn!(%error, "clients of the partial-order transport have to connect again");
        }
    }
}

fn take_listener(control: &Control, Part { value, descriptors, .. }: Part) -> Result<(), ControlError> {
    let wrong = |error| ControlError::system("going on with the listener of another process", &error);
    let saved = minicbor::decode(&value).map_err(|error| wrong(io::Error::other(error)));
    let saved: SavedListener = saved?;
    let socket = descriptors.into_iter().next();
    let socket = socket.ok_or_else(|| wrong(io::Error::other("its socket is missing")))?;
    let options = options(&control.config().section::<Poc>(), None)?;
    let returning = Returning::new(options, &saved, socket, control.epoch());
    let mut returning = returning.map_err(|error| wrong(io::Error::other(error)))?;
    for SavedDriven { number, .. } in saved.driven {
        if go_on(control, &mut returning, number).is_none() {
            tracing::info!(receiver = number, "a receiver of the partial-order transport does not go on");
        }
    }
    control.shared::<Taken>().put(returning.begin(ENDED, AGAIN));
    Ok(())
}

/// Goes on with a player; none if it has left, or cannot go on.
fn go_on(control: &Control, returning: &mut Returning, receiver: u64) -> Option<()> {
    let upgrade = control.shared::<Upgrade>();
    let (mut playing, value) = (upgrade.playing(receiver)?, upgrade.peer(receiver)?);
    let saved: SavedPeer = minicbor::decode(&value).ok()?;
    let returned = returning.detached(receiver, &saved.connection, playing.inbox());
    let (detached, NetworkPath { udp, peer, own }) = returned.ok()?;
    let permit = control.door().admit(peer.ip());
    playing.start_peer(Box::new(PocPeer::restore(detached, &saved)), PeerPath { udp, peer, own });
    tokio::spawn(async move {
        playing.closed().await;
        drop(permit);
    });
    Some(())
}

#[cfg(test)]
mod tests;
