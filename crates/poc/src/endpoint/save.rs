//! An endpoint is handed over with its connections: cookies that clients have stay valid, and packets find their
//! connections. Handshakes that are under way begin again.

use core::net::SocketAddr;

use outflow_petri::leb128::TooLong;

use super::answers::Answers;
use super::cookie::Cookies;
use super::elsewhere::Elsewhere;
use super::{Counts, Endpoint, Handle, Handshakes, Joined, Settings, Slot, State};
use crate::connection::Connection;
use crate::limits::HELLO_BYTES_MIN;
use crate::packet::ConnectionId;
use crate::protection::Protection;
use crate::save::{NUMBER_MOST, SavedBytes, SavedEndpoint, SavedPlace, Services, Unfit, check};

const WHAT: &str = "endpoint";

/// Makes the protection of a connection of what that has saved; none if it is of another kind.
pub type Protect<'a> = &'a mut dyn FnMut(&SavedBytes) -> Option<Box<dyn Protection>>;

impl Endpoint {
    /// What another process needs to go on with it. To be asked for when [`poll`](Self::poll) and
    /// [`poll_transmit`](Self::poll_transmit) answer nothing. Those that are elsewhere are saved by their drivers.
    ///
    /// An error says that flows of a connection are none that ends could have agreed on.
    pub fn save(&self) -> Result<SavedEndpoint, TooLong> {
        let places =
            self.slots.iter().filter_map(|(handle, slot)| save_place(*handle, &slot.state).transpose());
        Ok(SavedEndpoint {
            secret: self.secret.save(),
            cookies: self.cookies.secret().save(),
            next: self.next,
            places: places.collect::<Result<_, _>>()?,
            counts: self.counts().into(),
        })
    }

    /// One that goes on, and what its connections are called; `protect` makes their protections. To be followed by
    /// [`poll`](Self::poll) and [`poll_transmit`](Self::poll_transmit) until they answer nothing.
    pub fn restore(
        settings: Settings,
        handshakes: Option<Handshakes>,
        saved: &SavedEndpoint,
        services: &mut Services,
        protect: Protect<'_>,
    ) -> Result<(Self, Vec<Handle>), Unfit> {
        check(saved.next < NUMBER_MOST, WHAT, "too many handles")?;
        let mut endpoint = Endpoint::new(settings, saved.secret.checked()?, handshakes);
        // The new one has derived a secret, and would not make the same ids as the one before.
        endpoint.secret = saved.secret.checked()?;
        endpoint.cookies = Cookies::new(saved.cookies.checked()?);
        endpoint.next = saved.next;
        endpoint.counts = Counts { answers_left_out: 0, ..Counts::from(saved.counts) };
        endpoint.answers = Answers::that_left_out(saved.counts.answers_left_out.min(NUMBER_MOST));
        let mut handles = Vec::new();
        for place in &saved.places {
            let handle = Handle(place.handle);
            let is_next = handles.last().is_none_or(|last| *last < handle) && place.handle < saved.next;
            check(is_next, WHAT, "handles in another order")?;
            let state = restore_place(place, &settings, services, protect)?;
            endpoint.put_back(handle, place, state)?;
            handles.push(handle);
        }
        Ok((endpoint, handles))
    }

    fn put_back(&mut self, handle: Handle, place: &SavedPlace, state: State) -> Result<(), Unfit> {
        let (local, remote) = (place.local.into(), place.remote.into());
        check(self.by_id.insert(local, handle).is_none(), WHAT, "two connections of one id")?;
        self.by_remote.insert(remote, handle);
        if let Some(asked) = asked(place)? {
            check(self.by_hello.insert(asked, handle).is_none(), WHAT, "two connections of one hello")?;
        }
        self.slots.insert(handle, Slot { state, timer: None, is_ready: false, is_noticed: false });
        self.touch(handle);
        Ok(())
    }
}

/// The place of a connection; none of a handshake.
fn save_place(handle: Handle, state: &State) -> Result<Option<SavedPlace>, TooLong> {
    type Ids = (ConnectionId, ConnectionId);
    let place = |ids: Ids, asked: Option<(SocketAddr, ConnectionId)>, accept: &[u8]| SavedPlace {
        handle: handle.0,
        local: ids.0.into(),
        remote: ids.1.into(),
        asked_from: asked.map(|(from, _)| from.into()),
        asked_as: asked.map(|(_, client)| client.into()),
        accept: SavedBytes(accept.to_vec().into()),
        is_released: false,
        connection: None,
    };
    Ok(match state {
        State::Connecting(_) | State::Asking(_) => None,
        State::Joined(joined) => {
            let ids = (joined.connection.local(), joined.connection.remote());
            let connection = Some(joined.connection.save()?);
            let is_released = joined.is_released;
            Some(SavedPlace { connection, is_released, ..place(ids, joined.asked, &joined.accept) })
        }
        State::Elsewhere(away) => Some(place((away.local, away.remote), away.asked, &away.accept)),
    })
}

fn asked(place: &SavedPlace) -> Result<Option<(SocketAddr, ConnectionId)>, Unfit> {
    let address = place.asked_from.map(|address| address.checked()).transpose()?;
    Ok(address.zip(place.asked_as.map(ConnectionId::from)))
}

fn restore_place(
    place: &SavedPlace,
    settings: &Settings,
    services: &mut Services,
    protect: Protect<'_>,
) -> Result<State, Unfit> {
    check(place.accept.0.len() <= HELLO_BYTES_MIN, WHAT, "an answer that is too long")?;
    let (asked, accept) = (asked(place)?, place.accept.0.to_vec());
    let Some(saved) = &place.connection else {
        let (local, remote) = (place.local.into(), place.remote.into());
        return Ok(State::Elsewhere(Elsewhere { local, remote, asked, accept }));
    };
    let is_its = (saved.local, saved.remote) == (place.local, place.remote);
    check(is_its, WHAT, "a place of another one")?;
    let protection = protect(&saved.keys).ok_or(Unfit { what: WHAT, why: "keys of another kind" })?;
    let connection = Connection::restore(saved, protection, settings.connection, services)?;
    Ok(State::Joined(Box::new(Joined { connection, asked, accept, is_released: place.is_released })))
}

#[cfg(test)]
mod tests;
