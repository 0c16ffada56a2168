//! Connections that leave their driver: another thread drives them, sends through the same socket, and is handed
//! the datagrams that come for them.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use outflow_media::Time;
use outflow_poc::connection::{Connection, Event, Wake};
use outflow_poc::endpoint::Handle;
use outflow_udp::{Dispatch, HandedOver, Inbox, Udp};

use crate::driver::User;

/// A connection that was taken out of its driver ([`PocSocket::detach`](crate::PocSocket::detach)). It is put back
/// when this is dropped: the driver ends it, and tells the peer.
///
/// What is handed over is for [`deliver`](outflow_poc::endpoint::deliver).
pub struct Detached {
    pub(crate) user: Arc<User>,
    handle: Handle,
    /// By how many nanoseconds its own time is ahead of that of its new driver.
    ahead: i64,
    /// There until this is dropped.
    connection: Option<Box<Connection>>,
}

/// Where datagrams of a connection go out, as far as that is known when it leaves its driver.
#[derive(Debug, Clone)]
pub struct NetworkPath {
    /// The socket.
    pub udp: Arc<Udp>,
    /// Where the peer is.
    pub peer: SocketAddr,
    /// The own address that it sends to, if answers have to come from there.
    pub own: Option<IpAddr>,
}

impl Detached {
    pub(crate) fn new(user: Arc<User>, (handle, ahead): (Handle, i64), connection: Box<Connection>) -> Self {
        Detached { user, handle, ahead, connection: Some(connection) }
    }

    /// The connection.
    pub fn connection(&self) -> &Connection {
        self.connection.as_ref().expect("it is only taken out by dropping this")
    }

    /// The same, to be driven: what it is then by its own time.
    pub fn at(&mut self, now: Time) -> (Time, &mut Connection) {
        let own = Time::from_nanos(now.as_nanos().saturating_add_signed(self.ahead));
        (own, self.connection.as_mut().expect("it is only taken out by dropping this"))
    }

    /// When to come back, and why, as [`Connection::next_timeout`].
    pub fn next_timeout(&self) -> Option<(Time, Wake)> {
        let (own, why) = self.connection().next_timeout()?;
        Some((Time::from_nanos(own.as_nanos().saturating_add_signed(-self.ahead)), why))
    }

    /// What happened, as [`Connection::poll`].
    pub fn poll(&mut self) -> Option<Event> {
        self.connection.as_mut()?.poll()
    }
}

impl Drop for Detached {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            self.user.0.put_back(self.handle, connection);
        }
    }
}

impl fmt::Debug for Detached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Detached").field("handle", &self.handle).finish_non_exhaustive()
    }
}

/// Where datagrams go whose connections are elsewhere.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    /// Where a connection is, and its number there.
    by_handle: BTreeMap<Handle, (Inbox, u64)>,
    dispatch: Dispatch,
}

impl Routes {
    pub(crate) fn add(&mut self, handle: Handle, inbox: Inbox, number: u64) {
        self.by_handle.insert(handle, (inbox, number));
    }

    pub(crate) fn remove(&mut self, handle: Handle) {
        self.by_handle.remove(&handle);
        if self.by_handle.is_empty() {
            self.dispatch.clear();
        }
    }

    /// All connections that are elsewhere, and their numbers there.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = (Handle, u64)> {
        self.by_handle.iter().map(|(handle, (_, number))| (*handle, *number))
    }

    /// Puts a datagram down for a connection; its number is filled in.
    pub(crate) fn put(&mut self, handle: Handle, datagram: HandedOver<'_>) {
        let Some((inbox, peer)) = self.by_handle.get(&handle) else { return };
        self.dispatch.put(inbox, &HandedOver { peer: *peer, ..datagram });
    }

    /// Hands over what was put down. Answers how many datagrams found no room.
    pub(crate) fn hand_over(&mut self) -> u64 {
        self.dispatch.hand_over()
    }
}
