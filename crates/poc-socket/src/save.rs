//! What a socket carries goes on in another process, at the same socket: a listener with its connections, those that left
//! it included, or the connection of a client. Peers see no other one. Connections that nothing takes up there end:
//! what they are for begins again.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use minicbor::{Decode, Encode};
use outflow_poc::connection::{Connection, Settings};
use outflow_poc::endpoint::{Endpoint, Handle, Handshakes};
use outflow_poc::packet::Code;
use outflow_poc::protection::{Plain, Protection};
use outflow_poc::save::{SavedBytes, SavedConnection, SavedEndpoint, SavedId, Services, Unfit};
use outflow_udp::{Inbox, Udp};

use crate::detached::{Detached, NetworkPath};
use crate::driver::{End, Shared, User};
use crate::noise;
use crate::options::Options;
use crate::socket::{OpenError, PocListener, PocSocket};

/// All that has one socket, but for that and its options. Numbers of fields are never given to something else.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct SavedEnd {
    /// Its endpoint.
    #[n(0)]
    pub endpoint: SavedEndpoint,
    /// By how many nanoseconds its time is ahead of that which both processes share.
    #[n(1)]
    pub ahead: i64,
    /// Connections that are driven elsewhere.
    #[n(2)]
    pub driven: Vec<SavedDriven>,
    /// Peers of which it is known by which own address they reach this host: theirs, and that.
    #[n(3)]
    #[cbor(default)]
    pub owns: Vec<(String, String)>,
}

/// A connection that is driven elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct SavedDriven {
    /// How the endpoint calls it.
    #[n(0)]
    pub handle: u64,
    /// Its number there ([`PocSocket::detach`](crate::PocSocket::detach)).
    #[n(1)]
    pub number: u64,
}

impl Shared {
    /// Stands still, and says what another process needs to go on with it. Answers a copy of the socket, too.
    async fn stand_saved(&self, epoch: Instant) -> std::io::Result<(SavedEnd, OwnedFd)> {
        let stands = self.stand().await;
        let inner = self.lock();
        if let Some(error) = inner.error().filter(|_| !stands) {
            return Err(error);
        }
        let driven = |(handle, number): (Handle, u64)| SavedDriven { handle: handle.number(), number };
        let own = |(peer, own): (SocketAddr, IpAddr)| (peer.to_string(), own.to_string());
        let saved = SavedEnd {
            endpoint: inner.endpoint.save().map_err(std::io::Error::other)?,
            ahead: self.ahead_of(epoch),
            driven: inner.routes.numbers().map(driven).collect(),
            owns: inner.owns.iter().map(own).collect(),
        };
        Ok((saved, self.udp.as_fd().try_clone_to_owned()?))
    }
}

/// All that has one socket, whatever drives its connections. Another process can go on with it.
pub struct PocEnd(Arc<User>);

impl PocEnd {
    /// Stands still, and says what another process needs to go on with it: to be followed by [`go_on`](Self::go_on), or
    /// by [`vanish`](Self::vanish). Answers a copy of the socket, too. `epoch` is when the time began that both
    /// processes share. Connections that are driven elsewhere are saved by their drivers; what others have received
    /// and was not read is saved, and can be read here no more until it goes on.
    ///
    /// # Errors
    /// The socket has failed, or there are no descriptors left.
    pub async fn stand(&self, epoch: Instant) -> std::io::Result<(SavedEnd, OwnedFd)> {
        self.0.0.stand_saved(epoch).await
    }

    /// Goes on as if it had not stood still.
    pub fn go_on(&self) {
        self.0.0.go_on();
    }

    /// Another process goes on with it: nothing is read or sent here any more, and peers are told nothing.
    pub fn vanish(&self) {
        self.0.0.vanish();
    }
}

impl PocListener {
    /// What has its socket: the connections of its clients, too.
    pub fn end(&self) -> PocEnd {
        PocEnd(Arc::clone(&self.user))
    }
}

impl PocSocket {
    /// What has its socket: it alone, if it has [connected](PocSocket::connect), or else its listener.
    pub fn end(&self) -> PocEnd {
        PocEnd(Arc::clone(&self.user))
    }
}

impl Detached {
    /// What has its socket, as [`PocSocket::end`].
    pub fn end(&self) -> PocEnd {
        PocEnd(Arc::clone(&self.user))
    }
}

/// What has one socket, of another process. It goes on here as soon as its connections are there.
pub struct Returning {
    end: End,
    is_server: bool,
    options: Options,
    epoch: Instant,
    services: Services,
    /// All connections that have no driver yet.
    handles: BTreeMap<u64, Handle>,
    /// Those of them that are driven elsewhere, by their numbers there, and how they are called in packets.
    driven: BTreeMap<u64, (Handle, SavedId)>,
}

impl Returning {
    /// What was saved of a listener, with the copy of its socket. `epoch` is when the time began that both processes
    /// share.
    ///
    /// # Errors
    /// The keys cannot be used, that is no socket of UDP, or what was saved cannot be.
    pub fn listener(
        options: Options,
        saved: (&SavedEnd, OwnedFd),
        epoch: Instant,
    ) -> Result<Self, OpenError> {
        let handshakes = options.server()?;
        Self::new(options, Some(handshakes), saved, epoch)
    }

    /// The connection of a client, in the same way.
    ///
    /// # Errors
    /// That is no socket of UDP, or what was saved cannot be, or is no client's.
    pub fn client(
        options: Options,
        saved: (&SavedEnd, OwnedFd),
        epoch: Instant,
    ) -> Result<PocSocket, OpenError> {
        let mut returning = Self::new(options, None, saved, epoch)?;
        let number = returning.handles.keys().next().copied();
        let socket = number.and_then(|number| returning.socket(number));
        let socket = socket.ok_or(unfit("it has no connection"))?;
        returning.end.begin();
        Ok(socket)
    }

    /// The connection of a client that is driven elsewhere, and that its driver has saved. Its number there is the same
    /// as before; what comes for it is put into `inbox`.
    ///
    /// # Errors
    /// That is no socket of UDP, or what was saved cannot be, or is no such client's.
    pub fn detached_client(
        options: Options,
        saved: (&SavedEnd, OwnedFd),
        epoch: Instant,
        (connection, inbox): (&SavedConnection, Inbox),
    ) -> Result<(Detached, NetworkPath), OpenError> {
        let mut returning = Self::new(options, None, saved, epoch)?;
        let number = returning.driven.keys().next().copied().ok_or(unfit("it has no connection"))?;
        let restored = returning.restorer().restore(connection)?;
        let detached = returning.detached(number, restored, inbox)?;
        returning.end.begin();
        Ok(detached)
    }

    fn new(
        options: Options,
        handshakes: Option<Handshakes>,
        (saved, socket): (&SavedEnd, OwnedFd),
        epoch: Instant,
    ) -> Result<Self, OpenError> {
        let (settings, is_server) = (options.settings, handshakes.is_some());
        let mut services = Services::new();
        let restored =
            Endpoint::restore(settings, handshakes, &saved.endpoint, &mut services, &mut protection)?;
        let (endpoint, handles) = restored;
        let handles: BTreeMap<_, _> = handles.into_iter().map(|handle| (handle.number(), handle)).collect();
        let udp = Udp::taken(socket, &options.udp)?;
        let start = start(epoch, saved.ahead).ok_or(unfit("its time began before this host's"))?;
        let end = End::new(udp, endpoint, start, (settings.connection.datagram_bytes_max, is_server));
        for (peer, own) in &saved.owns {
            // One that cannot be read is known again with the peer's next datagram.
            if let (Ok(peer), Ok(own)) = (peer.parse(), own.parse()) {
                end.user.0.lock().owns.note(peer, own);
            }
        }
        let away = saved.endpoint.places.iter().filter(|place| place.connection.is_none());
        let away: BTreeMap<_, _> = away.map(|place| (place.handle, place.local)).collect();
        let driven = saved.driven.iter().filter_map(|SavedDriven { handle, number }| {
            Some((*number, (*handles.get(handle)?, *away.get(handle)?)))
        });
        let driven = driven.collect();
        Ok(Returning { end, is_server, options, epoch, services, handles, driven })
    }

    /// What connections are restored with.
    pub fn restorer(&self) -> Restorer {
        Restorer { settings: self.options.settings.connection, services: self.services.clone() }
    }

    /// A connection goes on that is driven elsewhere. Its number there is the same as before; what comes for it is put
    /// into `inbox`.
    ///
    /// # Errors
    /// The endpoint does not know it.
    pub fn detached(
        &mut self,
        number: u64,
        Restored { connection, local }: Restored,
        inbox: Inbox,
    ) -> Result<(Detached, NetworkPath), Unfit> {
        let known = self.driven.remove(&number).filter(|(_, known)| *known == local);
        let (handle, _) = known.ok_or(unfit("it has no such connection"))?;
        self.handles.remove(&handle.number());
        let (user, peer) = (&self.end.user, connection.address());
        let mut inner = user.0.lock();
        inner.routes.add(handle, inbox, number);
        let way = NetworkPath { udp: Arc::clone(&user.0.udp), peer, own: inner.owns.of(peer) };
        drop(inner);
        let its = (handle, user.0.ahead_of(self.epoch));
        Ok((Detached::new(Arc::clone(user), its, connection), way))
    }

    /// A connection goes on that was not driven elsewhere, and that its end has called so
    /// ([`PocSocket::number`]); none if there is no such one.
    pub fn socket(&mut self, number: u64) -> Option<PocSocket> {
        // The endpoint has no connection of one that is driven elsewhere.
        let socket = PocSocket::returned(&self.end.user, *self.handles.get(&number)?, self.is_server)?;
        self.handles.remove(&number);
        Some(socket)
    }

    /// Goes on. Connections that nothing has taken up end; those that were not driven elsewhere are told why.
    pub fn begin(self, code: Code, why: &str) -> PocListener {
        let Returning { end, options, handles, .. } = self;
        let shared = &end.user.0;
        let now = shared.now();
        let mut inner = shared.lock();
        for handle in handles.into_values() {
            inner.endpoint.with(handle, |connection| connection.close(now, code, why));
            inner.endpoint.release(now, handle);
            inner.endpoint.lose(handle);
        }
        drop(inner);
        PocListener { user: end.begin(), options }
    }
}

/// Restores connections that are driven elsewhere. Several threads may do it, each with its own; copies know what the
/// one knew that they were made of.
#[derive(Clone)]
pub struct Restorer {
    settings: Settings,
    services: Services,
}

/// A connection that was saved by its driver.
pub struct Restored {
    connection: Box<Connection>,
    local: SavedId,
}

impl Restorer {
    /// A connection as its driver has saved it.
    ///
    /// # Errors
    /// What was saved cannot be.
    pub fn restore(&mut self, saved: &SavedConnection) -> Result<Restored, Unfit> {
        let protection = protection(&saved.keys).ok_or(unfit("keys of another kind"))?;
        let connection = Connection::restore(saved, protection, self.settings, &mut self.services)?;
        Ok(Restored { connection: Box::new(connection), local: saved.local })
    }
}

/// When a time began that is ahead of another one by so much ([`SavedEnd::ahead`]).
fn start(epoch: Instant, ahead: i64) -> Option<Instant> {
    // A millisecond is added to the clock.
    let ahead = ahead.checked_sub(1_000_000)?;
    let by = Duration::from_nanos(ahead.unsigned_abs());
    if ahead < 0 { epoch.checked_add(by) } else { epoch.checked_sub(by) }
}

/// What a connection is protected by, which says what it is itself.
fn protection(saved: &SavedBytes) -> Option<Box<dyn Protection>> {
    if saved.0.is_empty() { Some(Box::new(Plain)) } else { noise::restore(saved) }
}

const fn unfit(why: &'static str) -> Unfit {
    Unfit { what: "listener", why }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_time_goes_on() {
        let epoch = Instant::now();
        for ahead in [-5_000_000_000, 0, 1_000_000, 3_000_000] {
            let start = start(epoch, ahead).expect("it is near");
            let later = start.checked_duration_since(epoch).map_or(0, |time| time.as_nanos() as i64);
            let sooner = epoch.checked_duration_since(start).map_or(0, |time| time.as_nanos() as i64);
            assert_eq!(sooner - later + 1_000_000, ahead);
        }
    }
}
