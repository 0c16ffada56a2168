//! UDP at one packet owed per sink, or several that the kernel cuts out of one send (UDP GSO): a
//! connected socket for each, sent to by io_uring batches.
//!
//! For a connected socket the kernel has looked up the route before, and chosen the source address,
//! which takes long by IPv6; and a batch of sends of the same bytes is one system call. Such a socket
//! shares its local address and port with the one that the sink is served from otherwise, so that
//! receivers see one sender. It only sends: what comes from the sink's media address finds a filter
//! that lets nothing in (that port is not read either way), and everything else goes to the shared
//! socket as before.
//!
//! Sockets are made when an order finds a sink without one, a few at a time. Whatever does not go
//! through a sink's own socket goes through the shared one, which also finds the reason: so both
//! ways report the same.

use std::cell::RefCell;
use std::io;
use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrayvec::ArrayVec;
use outflow_relay::SinkKey;
use outflow_socket::Cutting;
use outflow_uring::{Answers, Descriptor, NotSent, Parcel, Uring};
use rustix::process::{Resource, getrlimit};
use slab::Slab;
use socket2::{Domain, Protocol, SockAddr, SockFilter, SockRef, Socket, Type};

use super::Piece;
use super::udp::{UdpOrder, UdpPort, UdpRoute, UdpSender};
use crate::limits::{
    CONNECTED_AT_SHARED_PORTS_MAX, CONNECTED_BATCH, CONNECTED_PAUSE_ORDERS, CONNECTED_PER_ORDER,
    CONNECTED_SHARE, CONNECTED_SINKS_MIN,
};

/// The sockets that serve one sink only, per track, for the first two tracks: picture and sound.
#[derive(Debug, Default)]
pub(crate) struct OwnSockets(RefCell<ArrayVec<(u8, Own), 2>>);

#[derive(Debug, Clone, Copy)]
enum Own {
    /// In [`ConnectedSender::sockets`].
    At(usize),
    /// It failed: not again for this many orders.
    Paused(u16),
}

/// Sends single packets from sinks' own sockets.
pub(crate) struct ConnectedSender {
    sockets: Slab<OwnSocket>,
    /// How many of them share a port with others.
    at_shared_ports: usize,
    share: Share,
}

struct OwnSocket {
    /// Open as long as this is there.
    socket: UdpSocket,
    descriptor: Descriptor,
    at_shared_port: bool,
    cutting: Cutting,
}

impl OwnSocket {
    /// The ring's name for it, if what is sent from it is cut like that.
    fn fit(&mut self, (bytes, segment): (usize, usize)) -> Option<Descriptor> {
        self.cutting.fits(&self.socket, bytes, segment).then_some(self.descriptor)
    }
}

/// How many of the process's descriptors connected sockets may take. All workers draw on it.
#[derive(Clone, Copy)]
struct Share {
    taken: &'static AtomicUsize,
    max: usize,
}

impl ConnectedSender {
    pub(crate) fn new() -> Self {
        static TAKEN: AtomicUsize = AtomicUsize::new(0);
        let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let max = usize::try_from(descriptors / CONNECTED_SHARE).unwrap_or(usize::MAX);
        Self::with_share(Share { taken: &TAKEN, max })
    }

    fn with_share(share: Share) -> Self {
        ConnectedSender { sockets: Slab::new(), at_shared_ports: 0, share }
    }

    /// Sends all `pieces` to all `sinks`, of which there are `count`: one packet, or several of one
    /// size, from their own sockets, as far as there are such, everything else through `udp`, where
    /// also stands what did not go ([`UdpSender::reports`]).
    pub(crate) fn send<'a>(
        &mut self,
        uring: &mut Uring,
        udp: &mut UdpSender,
        pieces: &[Piece<'_>],
        ports: &mut Slab<UdpPort>,
        sinks: impl Iterator<Item = (SinkKey, &'a UdpRoute)>,
        count: usize,
    ) {
        uring.begin();
        let bytes = pieces.iter().map(Piece::len).sum();
        let parcel = match count >= CONNECTED_SINKS_MIN && udp.is_one_send(pieces) {
            true => uring.compose(bytes, false, &|part| {
                for piece in pieces {
                    part(piece.header);
                    part(piece.body);
                }
            }),
            false => None,
        };
        let (Some(parcel), [piece, ..]) = (parcel, pieces) else {
            return udp.send(pieces, ports, sinks, count);
        };
        let segment = if pieces.len() > 1 { piece.len() } else { 0 };
        // Of single packets few, if any, go this way; of those that are cut another way than before, all.
        let order = udp.begin(pieces, ports, if segment > 0 { count } else { 1 });
        let owners = ArrayVec::new();
        let (track, size) = (piece.track, (bytes, segment));
        let mut batch = Batch { sender: self, uring, order, parcel, size, track, owners };
        batch.send(sinks);
    }

    /// A sink leaves: its sockets are closed.
    pub(crate) fn forget(&mut self, uring: &mut Uring, route: &UdpRoute) {
        for (_, own) in route.own.0.take() {
            if let Own::At(index) = own {
                self.close(uring, index);
            }
        }
    }

    /// Makes a socket that sends to `to` alone, from the address of `port`.
    fn open(&mut self, uring: &mut Uring, port: &UdpPort, to: &SockAddr) -> io::Result<usize> {
        let at_shared_port = port.push.is_none();
        if at_shared_port && self.at_shared_ports >= CONNECTED_AT_SHARED_PORTS_MAX {
            return Err(io::Error::from(io::ErrorKind::QuotaExceeded));
        }
        self.share.take()?;
        let opened = connect(port, to).and_then(|socket| {
            let descriptor = uring.add(socket.as_fd(), false).ok_or(io::ErrorKind::Unsupported)?;
            Ok(self.sockets.insert(OwnSocket {
                socket,
                descriptor,
                at_shared_port,
                cutting: Cutting::default(),
            }))
        });
        match opened {
            Ok(_) => self.at_shared_ports += usize::from(at_shared_port),
            Err(_) => self.share.give_back(),
        }
        opened
    }

    fn close(&mut self, uring: &mut Uring, index: usize) {
        if let Some(own) = self.sockets.try_remove(index) {
            uring.remove(own.descriptor);
            self.at_shared_ports -= usize::from(own.at_shared_port);
            self.share.give_back();
        }
    }
}

impl Drop for ConnectedSender {
    fn drop(&mut self) {
        self.sockets.iter().for_each(|_| self.share.give_back());
    }
}

/// One packet on its way to many, or several.
struct Batch<'s, 'a> {
    sender: &'s mut ConnectedSender,
    uring: &'s mut Uring,
    /// For sinks that are not reached from a socket of their own.
    order: UdpOrder<'a>,
    parcel: Parcel,
    /// Its bytes, and those of each packet that it is cut into.
    size: (usize, usize),
    track: u8,
    owners: ArrayVec<(SinkKey, &'a UdpRoute), CONNECTED_BATCH>,
}

impl<'a> Batch<'_, 'a> {
    fn send<'r: 'a>(&mut self, sinks: impl Iterator<Item = (SinkKey, &'r UdpRoute)>) {
        let mut to_make = CONNECTED_PER_ORDER;
        for (key, route) in sinks {
            match self.descriptor(route, &mut to_make) {
                Some(descriptor) => {
                    self.uring.push(descriptor, self.parcel);
                    self.owners.push((key, route));
                }
                None => self.order.add(key, route),
            }
            if self.owners.is_full() {
                self.submit();
            }
        }
        self.submit();
    }

    /// The socket that serves this sink alone; makes one if it has none.
    fn descriptor(&mut self, route: &UdpRoute, to_make: &mut usize) -> Option<Descriptor> {
        let own = &mut *route.own.0.borrow_mut();
        let known = own.iter().position(|(track, _)| *track == self.track);
        match known.map(|index| &mut own[index].1) {
            Some(Own::At(index)) => return self.sender.sockets.get_mut(*index)?.fit(self.size),
            Some(Own::Paused(orders)) if *orders > 0 => {
                *orders -= 1;
                return None;
            }
            _ => {}
        }
        if *to_make == 0 || (known.is_none() && own.is_full()) {
            return None;
        }
        let (port, to) = (self.order.port(route.socket)?, route.address(self.track)?);
        *to_make -= 1;
        let opened = self.sender.open(self.uring, port, to);
        let state = opened.as_ref().map_or(Own::Paused(CONNECTED_PAUSE_ORDERS), |index| Own::At(*index));
        match known {
            Some(index) => own[index].1 = state,
            None => own.push((self.track, state)),
        }
        self.sender.sockets.get_mut(opened.ok()?)?.fit(self.size)
    }

    fn submit(&mut self) {
        let mut failed = ArrayVec::<_, CONNECTED_BATCH>::new();
        let result = self.uring.submit(Answers::Failures, |index, result| {
            if let Err(error) = result {
                failed.push((index, error.raw_os_error()));
            }
        });
        for (index, errno) in failed {
            let Some(&(key, route)) = self.owners.get(index) else { continue };
            // Its buffer is full, the packet is too large, or the error is of an earlier one: the
            // next may go.
            if !matches!(errno, Some(libc::EAGAIN | libc::EMSGSIZE | libc::ECONNREFUSED)) {
                self.pause(route);
            }
            self.order.add(key, route);
        }
        if let Err(NotSent { from }) = result {
            self.owners[from..].iter().for_each(|(key, route)| self.order.add(*key, route));
        }
        self.owners.clear();
    }

    /// A sink's own socket does not work (its local address may have gone).
    fn pause(&mut self, route: &UdpRoute) {
        let own = &mut *route.own.0.borrow_mut();
        if let Some((_, state)) = own.iter_mut().find(|(track, _)| *track == self.track)
            && let Own::At(index) = core::mem::replace(state, Own::Paused(CONNECTED_PAUSE_ORDERS))
        {
            self.sender.close(self.uring, index);
        }
    }
}

impl Share {
    fn take(&self) -> io::Result<()> {
        let more = |taken| (taken < self.max).then_some(taken + 1);
        if self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok() {
            return Ok(());
        }
        static SAID: Once = Once::new();
        SAID.call_once(|| {
            tracing::warn!(
                sockets = self.max,
                "no descriptors for more UDP receivers' own sockets: the others cost more; raise the limit of \
                 open files (ulimit -n, LimitNOFILE=)"
            );
        });
        Err(io::Error::from_raw_os_error(libc::EMFILE))
    }

    fn give_back(&self) {
        self.taken.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A socket that sends to `to`, from the address of `port` and in its manner.
fn connect(port: &UdpPort, to: &SockAddr) -> io::Result<UdpSocket> {
    // Classic BPF: "return 0" keeps nothing of any packet (linux/filter.h).
    const NOTHING: SockFilter = SockFilter::new((libc::BPF_RET | libc::BPF_K) as u16, 0, 0, 0);
    let shared = SockRef::from(&port.socket);
    let local = shared.local_addr()?;
    let socket = Socket::new(Domain::from(i32::from(local.family())), Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_nonblocking(true)?;
    socket.attach_filter(&[NOTHING])?;
    if local.is_ipv6() {
        socket.set_only_v6(shared.only_v6()?)?;
    }
    if let Some(push) = &port.push {
        super::configure_push(&socket, push)?;
    }
    // Both sockets must agree to share the port. The shared one agrees only as long as this takes,
    // so that no other socket can bind beside it.
    socket.set_reuse_address(true)?;
    shared.set_reuse_address(true)?;
    let connected = socket.bind(&local).and_then(|()| socket.connect(to));
    shared.set_reuse_address(false)?;
    connected?;
    Ok(socket.into())
}

#[cfg(test)]
mod tests;
