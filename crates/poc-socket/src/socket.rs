//! Sockets like those of UDP, with the service given once.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use outflow_petri::service::{Flow, Refusal, Request, Service};
use outflow_poc::address::Address;
use outflow_poc::connection::{
    Closed, DatagramCounts, Event, IncomingCounts, OutgoingCounts, SendError, Worth,
};
use outflow_poc::endpoint::{AcceptError, ConnectError, Endpoint, Handle};
use outflow_poc::packet::Code;
use outflow_poc::save::Unfit;
use outflow_udp::{Inbox, Udp};

use crate::detached::{Detached, NetworkPath};
use crate::driver::{self, Shared, User, Waits};
use crate::noise::KeyError;
use crate::options::Options;

/// Why there is no socket.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The system's fault.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A key is missing.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// There is no connection.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// A client could not be answered.
    #[error(transparent)]
    Accept(#[from] AcceptError),
    /// A client asked for what is not to be had; it was told so.
    #[error("a client was refused: {0}")]
    Refused(Refusal),
    /// What another process has said of itself cannot be.
    #[error(transparent)]
    Unfit(#[from] Unfit),
}

/// What became of a connection so far.
#[derive(Debug, Clone)]
pub struct Statistics {
    /// What became of units that were sent.
    pub outgoing: OutgoingCounts,
    /// What became of units that were received.
    pub incoming: IncomingCounts,
    /// What became of datagrams.
    pub datagrams: DatagramCounts,
    /// Packets that were lost on the way there.
    pub packets_lost: u64,
    /// Of them, those that came after all.
    pub packets_spurious: u64,
    /// The round trip, smoothed.
    pub rtt: core::time::Duration,
    /// What it would send at most, in bits a second.
    pub rate_bps: u64,
    /// How often the peer was found at another address.
    pub path_changes: u64,
}

/// Where an address leads: the first place that the system knows.
pub async fn look_up(address: &Address) -> io::Result<SocketAddr> {
    let unknown = || io::Error::new(io::ErrorKind::NotFound, format!("{} is not known", address.place));
    tokio::net::lookup_host(&address.place).await?.next().ok_or_else(unknown)
}

/// Waits for clients.
pub struct PocListener {
    pub(crate) user: Arc<User>,
    pub(crate) options: Options,
}

impl PocListener {
    /// Binds to an address. To be called where tokio runs, as everything here.
    pub fn bind(address: SocketAddr, options: Options) -> Result<Self, OpenError> {
        let handshakes = options.server()?;
        let udp = Udp::bind(address, &options.udp)?;
        let make = |secret| Endpoint::new(options.settings, secret, Some(handshakes));
        let user = driver::begin(udp, make, (options.settings.connection.datagram_bytes_max, true))?;
        Ok(PocListener { user, options })
    }

    /// Where it is bound.
    pub fn local_addr(&self) -> SocketAddr {
        self.user.0.udp.local_addr()
    }

    /// The next client that asks for something.
    pub async fn accept(&self) -> io::Result<Asking> {
        loop {
            {
                let mut inner = self.user.0.lock();
                if let Some((handle, from, request)) = inner.asking.pop_front() {
                    let user = Arc::clone(&self.user);
                    return Ok(Asking { user, handle, from, request, options: self.options.clone() });
                }
                if let Some(error) = inner.error() {
                    return Err(error);
                }
            }
            self.user.0.asked.notified().await;
        }
    }
}

/// A client that waits for an answer. It is refused after some seconds if it gets none.
pub struct Asking {
    user: Arc<User>,
    handle: Handle,
    from: SocketAddr,
    request: Request,
    options: Options,
}

impl Asking {
    /// From where it asks.
    pub fn from(&self) -> SocketAddr {
        self.from
    }

    /// For what.
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// Gives it this service, which has to be what it asked for, or less.
    pub fn accept(self, service: Service) -> Result<PocSocket, OpenError> {
        let shared = &self.user.0;
        let waits = Arc::new(Waits::default());
        {
            let mut inner = shared.lock();
            inner.endpoint.accept(shared.now(), self.handle, &service)?;
            inner.waits.insert(self.handle, Arc::clone(&waits));
            shared.act(inner);
        }
        Ok(PocSocket { user: Arc::clone(&self.user), handle: self.handle, waits, service })
    }

    /// Gives it as much of what it asks for as the terms allow, or refuses. `source` is what there is to
    /// send, if it wants to be sent something.
    pub fn answer(self, source: Option<&Flow>) -> Result<PocSocket, OpenError> {
        match self.options.terms.answer(&self.request, source) {
            Ok(service) => self.accept(service),
            Err(refusal) => {
                self.refuse(Code::SERVICE, &refusal.text);
                Err(OpenError::Refused(refusal))
            }
        }
    }

    /// Gives it nothing.
    pub fn refuse(self, code: Code, text: &str) {
        let mut inner = self.user.0.lock();
        inner.endpoint.refuse(self.handle, code, text);
        self.user.0.act(inner);
    }
}

/// One end of a connection.
pub struct PocSocket {
    pub(crate) user: Arc<User>,
    handle: Handle,
    waits: Arc<Waits>,
    service: Service,
}

impl PocSocket {
    /// Connects to a server, from a port of its own.
    pub async fn connect(server: SocketAddr, request: Request, options: &Options) -> Result<Self, OpenError> {
        let any = if server.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        let any: SocketAddr = any.parse().expect("an address");
        let handshake = options.client()?;
        let udp = Udp::bind(any, &options.udp)?;
        let make = |secret| Endpoint::new(options.settings, secret, None);
        let user = driver::begin(udp, make, (options.settings.connection.datagram_bytes_max, false))?;
        let shared = Arc::clone(&user.0);
        let waits = Arc::new(Waits::default());
        let handle = {
            let mut inner = shared.lock();
            let handle = inner.endpoint.connect(shared.now(), server, request, handshake)?;
            inner.waits.insert(handle, Arc::clone(&waits));
            shared.act(inner);
            handle
        };
        // A caller that does not wait to the end is not connected.
        let mut socket =
            PocSocket { user, handle, waits, service: Service { to_server: None, to_client: None } };
        socket.service = socket.connected().await?;
        Ok(socket)
    }

    /// One that goes on with what another process has saved, if there is a connection.
    pub(crate) fn returned(user: &Arc<User>, handle: Handle, is_server: bool) -> Option<Self> {
        let (user, waits) = (Arc::clone(user), Arc::new(Waits::default()));
        let mut inner = user.0.lock();
        let connection = inner.endpoint.connection(handle)?;
        let (to_peer, to_us) = (connection.outgoing().cloned(), connection.incoming().cloned());
        let (to_server, to_client) = if is_server { (to_us, to_peer) } else { (to_peer, to_us) };
        inner.waits.insert(handle, Arc::clone(&waits));
        drop(inner);
        Some(PocSocket { user, handle, waits, service: Service { to_server, to_client } })
    }

    async fn connected(&self) -> Result<Service, OpenError> {
        loop {
            {
                let mut inner = self.shared().lock();
                if let Some(connected) = inner.connected.remove(&self.handle) {
                    return Ok(connected?);
                }
                if let Some(error) = inner.error() {
                    return Err(error.into());
                }
            }
            self.waits.readable.notified().await;
        }
    }

    /// Binds to an address, and waits for the first client that is to be had within the terms: what a socket
    /// of UDP does that is for one peer. `source` is what is sent to it, if it wants to be sent something.
    pub async fn bind(
        address: SocketAddr,
        source: Option<&Flow>,
        options: Options,
    ) -> Result<Self, OpenError> {
        let listener = PocListener::bind(address, options)?;
        loop {
            match listener.accept().await?.answer(source) {
                // Others may still come.
                Err(OpenError::Refused(_) | OpenError::Accept(_)) => (),
                other => return other,
            }
        }
    }

    /// What both ends agreed on.
    pub fn service(&self) -> &Service {
        &self.service
    }

    /// How its end calls it ([`Returning::socket`](crate::save::Returning::socket)).
    pub fn number(&self) -> u64 {
        self.handle.number()
    }

    /// Where the peer is; none if the connection is gone.
    pub fn peer_addr(&self) -> Option<SocketAddr> {
        Some(self.shared().lock().endpoint.connection(self.handle)?.address())
    }

    /// The address of this end.
    pub fn local_addr(&self) -> SocketAddr {
        self.shared().udp.local_addr()
    }

    /// Sends the next unit, when there is room for it. Answers its number.
    pub async fn send(&self, data: impl Into<Bytes>) -> Result<u64, SendError> {
        self.send_unit(None, data.into(), Worth::default()).await
    }

    /// Sends a unit by its number in the net, so that those that are left out do not exist, and by what it is
    /// worth.
    pub async fn send_unit(&self, unit: Option<u64>, data: Bytes, worth: Worth) -> Result<u64, SendError> {
        loop {
            match self.try_send_unit(unit, data.clone(), worth) {
                Err(SendError::Full) => self.waits.writable.notified().await,
                other => return other,
            }
        }
    }

    /// The same, but [`SendError::Full`] if there is no room now.
    pub fn try_send_unit(&self, unit: Option<u64>, data: Bytes, worth: Worth) -> Result<u64, SendError> {
        let (shared, now) = (self.shared(), self.shared().now());
        let mut inner = shared.lock();
        let sent = inner.endpoint.send(now, self.handle, unit, data, worth);
        shared.act(inner);
        sent
    }

    /// Bytes of units that can be given to it now and sent within a time, beside those that wait.
    pub fn room_within(&self, time: core::time::Duration) -> u64 {
        let inner = self.shared().lock();
        inner.endpoint.connection(self.handle).map_or(0, |connection| connection.room_within(time))
    }

    /// Units below this one that were not sent do not exist.
    pub fn skip_to(&self, unit: u64) -> Result<(), SendError> {
        let (shared, now) = (self.shared(), self.shared().now());
        let mut inner = shared.lock();
        let skipped = inner.endpoint.with(self.handle, |connection| connection.skip_to(now, unit));
        shared.act(inner);
        skipped.unwrap_or(Err(SendError::Closed))
    }

    /// The next unit that is delivered. An error tells how the connection ended.
    pub async fn recv(&self) -> Result<(u64, Bytes), Closed> {
        loop {
            match self.event().await {
                Event::Delivered { unit, data } => return Ok((unit, data)),
                Event::Closed(closed) => return Err(closed),
                _ => (),
            }
        }
    }

    /// The next thing that happens: units that come, or are missed, or were given up. The last is
    /// [`Event::Closed`], and it comes again and again.
    pub async fn event(&self) -> Event {
        loop {
            if let Some(event) = self.try_event() {
                return event;
            }
            self.waits.readable.notified().await;
        }
    }

    /// The same, if there is something now. There is nothing while its end stands still: what was saved is not read.
    pub fn try_event(&self) -> Option<Event> {
        let shared = self.shared();
        let mut inner = shared.lock();
        if inner.stands() {
            return None;
        }
        let event = inner.endpoint.read(self.handle);
        let closed = || inner.endpoint.connection(self.handle)?.closed().cloned().map(Event::Closed);
        let failed = || {
            let text = inner.error()?.to_string();
            let by = outflow_poc::connection::By::Here;
            Some(Event::Closed(Closed { by, code: Code::IDLE, text }))
        };
        let event = event.or_else(closed).or_else(failed);
        // What was read makes room, of which the other end is told.
        if event.is_some() {
            shared.act(inner);
        }
        event
    }

    /// Waits until the peer is done with all that was sent, and closes.
    pub async fn finish(self) -> Closed {
        self.begin_finish();
        loop {
            if let Event::Closed(closed) = self.event().await {
                return closed;
            }
        }
    }

    /// Closes it as soon as the peer is done with all that was sent; [`Event::Closed`] tells when.
    pub fn begin_finish(&self) {
        let (shared, now) = (self.shared(), self.shared().now());
        let mut inner = shared.lock();
        inner.endpoint.with(self.handle, |connection| connection.finish(now));
        shared.act(inner);
    }

    /// Closes it now, and tells the peer why.
    pub fn close(self, code: Code, text: &str) {
        let (shared, now) = (self.shared(), self.shared().now());
        let mut inner = shared.lock();
        inner.endpoint.with(self.handle, |connection| connection.close(now, code, text));
        shared.act(inner);
    }

    /// Takes the connection out, for another driver that sends through the same socket. What comes for it
    /// is put into `inbox` with this number, and its time counts from `epoch` on. `None` if it is gone, or if its end
    /// stands still for another process, which knows nothing of its leaving.
    pub fn detach(self, inbox: Inbox, number: u64, epoch: Instant) -> Option<(Detached, NetworkPath)> {
        let mut inner = self.shared().lock();
        let is_still = inner.is_still();
        let connection = if is_still { None } else { inner.endpoint.detach(self.handle) }?;
        inner.routes.add(self.handle, inbox, number);
        let peer = connection.address();
        let way = NetworkPath { udp: Arc::clone(&self.shared().udp), peer, own: inner.owns.of(peer) };
        drop(inner);
        let ahead = self.shared().ahead_of(epoch);
        Some((Detached::new(Arc::clone(&self.user), (self.handle, ahead), connection), way))
    }

    /// What became of everything so far.
    pub fn statistics(&self) -> Option<Statistics> {
        let inner = self.shared().lock();
        let connection = inner.endpoint.connection(self.handle)?;
        let sent = connection.sent_counts();
        Some(Statistics {
            outgoing: connection.outgoing_counts(),
            incoming: connection.incoming_counts(),
            datagrams: connection.counts(),
            packets_lost: sent.lost_by_packets + sent.lost_by_time + sent.lost_by_silence,
            packets_spurious: sent.spurious,
            rtt: connection.rtt().smoothed(),
            rate_bps: connection.congestion().rate_bps(),
            path_changes: connection.path_changes(),
        })
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.user.0
    }
}

impl Drop for PocSocket {
    fn drop(&mut self) {
        let shared = self.shared();
        let mut inner = shared.lock();
        inner.waits.remove(&self.handle);
        inner.connected.remove(&self.handle);
        inner.endpoint.release(shared.now(), self.handle);
        shared.act(inner);
    }
}

impl fmt::Debug for PocSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PocSocket").field("handle", &self.handle).finish_non_exhaustive()
    }
}
