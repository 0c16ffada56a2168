//! Datagrams in batches: several a system call, with their ECN marks, in both directions.
//!
//! What is equally long goes to one receiver as one piece, which the kernel or the network card cuts (GSO), and
//! comes in as one piece where the kernel joined it (GRO). Where that is not to be had, datagrams go one by one.
//! They are never fragmented.
//!
//! A socket serves many peers, so what one of them causes does not end it: a destination that refuses, cannot
//! be reached or is not allowed, or a datagram that is too long for the way there, is counted ([`Counts`]) and
//! forgotten, as if the network had lost it.

#![allow(clippy::disallowed_methods, reason = "sockets are what this is for")]

mod batch;
mod counts;
mod dispatch;
pub mod limits;
mod outbox;
mod own;
mod parcel;

use std::io;
use std::net::{IpAddr, SocketAddr, SocketAddrV6, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;
use outflow_media::ecn::Mark;
use quinn_udp::{EcnCodepoint, Transmit, UdpSocketState};
use rustix::io::Errno;
use rustix::net::sockopt;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::limits::{ERRORS_IN_A_ROW_MAX, PIECE_BYTES_MAX};

pub use batch::{Batch, Received};
pub use counts::Counts;
pub use dispatch::Dispatch;
pub use outbox::{Outbox, Outgoing};
pub use own::{OwnAddresses, OwnOfPeer};
pub use parcel::{HandedOver, Inbox, Parcel, Parcels, inbox};

use counts::{Counters, Failure};

/// How a socket is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Bytes that wait in the kernel until they are received. Those of 50 ms at full rate are a good wish.
    pub recv_buffer_bytes: usize,
    /// Bytes that wait in the kernel until they are on their way.
    pub send_buffer_bytes: usize,
    /// Whether equal datagrams are given to the kernel in one piece, if it can cut them.
    pub segmentation: bool,
}

impl Default for Options {
    /// Four mebibytes each way, in pieces.
    fn default() -> Self {
        Options { recv_buffer_bytes: 4 << 20, send_buffer_bytes: 4 << 20, segmentation: true }
    }
}

/// Buffers that a socket got. The kernel gives less than was asked for if `net.core.rmem_max` and
/// `net.core.wmem_max` say so and the process lacks CAP_NET_ADMIN.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Buffers {
    /// Bytes for what was received; of long datagrams they hold about half as many.
    pub recv_bytes: usize,
    /// Bytes for what is to be sent.
    pub send_bytes: usize,
}

/// Datagrams to one receiver, one behind the other in memory, all equally long but for the last, which may be
/// shorter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segments<'a> {
    /// Where they go.
    pub to: SocketAddr,
    /// The own address that they come from: the one that the peer sent to ([`Received::to`]), so that an
    /// answer comes from where it is waited for. The kernel chooses if there is none.
    pub from: Option<IpAddr>,
    /// How they are marked.
    pub mark: Mark,
    /// Bytes of each, at least one.
    pub segment_bytes: usize,
    /// What is in them.
    pub bytes: &'a [u8],
}

impl Segments<'_> {
    /// How many datagrams they are.
    pub fn len(&self) -> usize {
        self.bytes.len().div_ceil(self.segment_bytes.max(1))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}

/// A socket of UDP, not connected: for one peer or for many.
#[derive(Debug)]
pub struct Udp {
    /// Waited for to be readable only: each datagram that leaves makes room, which no task has to be told.
    io: AsyncFd<UdpSocket>,
    local: SocketAddr,
    buffers: Buffers,
    /// Exchanged after the kernel has called something invalid: it has given up ECN marks for good then.
    state: ArcSwap<UdpSocketState>,
    /// Datagrams that a piece may have.
    segments_at_first: usize,
    segmentation: AtomicBool,
    counters: Counters,
}

impl Udp {
    /// Binds a socket; to `[::]`, for IPv4 as well. It has to be called where tokio runs.
    pub fn bind(address: SocketAddr, options: &Options) -> io::Result<Udp> {
        let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
        outflow_socket::choose_families(&socket, address)?;
        ask_for_buffers(&socket, options)?;
        socket.bind(&address.into())?;
        Udp::of(socket, options)
    }

    /// One that goes on with a socket of another process: it is bound, and its buffers stay as they are. It has to be
    /// called where tokio runs.
    ///
    /// # Errors
    /// It is no socket of UDP, or the system's fault.
    pub fn taken(socket: OwnedFd, options: &Options) -> io::Result<Udp> {
        let socket = Socket::from(socket);
        if socket.protocol()? != Some(Protocol::UDP) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no socket of UDP"));
        }
        Udp::of(socket, options)
    }

    fn of(socket: Socket, options: &Options) -> io::Result<Udp> {
        socket.set_nonblocking(true)?;
        let buffers = buffers(&socket)?;
        let state = UdpSocketState::new((&socket).into())?;
        let segments_at_first = state.max_gso_segments();
        let io = watched(socket.into(), Interest::READABLE)?;
        Ok(Udp {
            local: io.get_ref().local_addr()?,
            io,
            buffers,
            state: ArcSwap::from_pointee(state),
            segments_at_first,
            segmentation: AtomicBool::new(options.segmentation && segments_at_first > 1),
            counters: Counters::default(),
        })
    }

    /// Where it is bound, with the port that the kernel chose.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// The buffers that it got.
    pub fn buffers(&self) -> Buffers {
        self.buffers
    }

    /// What has happened so far.
    pub fn counts(&self) -> Counts {
        self.counters.read()
    }

    /// Whether equal datagrams go to the kernel in pieces. No longer, once it refused one.
    pub fn segmentation(&self) -> bool {
        self.segmentation.load(Ordering::Relaxed)
    }

    /// How many datagrams of this length go in one piece.
    pub fn segments_max(&self, segment_bytes: usize) -> usize {
        if !self.segmentation() {
            return 1;
        }
        (PIECE_BYTES_MAX / segment_bytes.max(1)).clamp(1, self.state.load().max_gso_segments())
    }

    /// Datagrams that were received, but for which there was no room where they are read.
    pub fn count_unread(&self, datagrams: u64) {
        self.counters.unread(datagrams);
    }

    /// Waits until there may be something to receive.
    pub async fn readable(&self) -> io::Result<()> {
        self.io.readable().await.map(drop)
    }

    /// Waits until there may be room to send.
    pub async fn writable(&self) -> io::Result<()> {
        let io = watched(self.io.get_ref().try_clone()?, Interest::WRITABLE)?;
        io.writable().await.map(drop)
    }

    /// Receives what has come, as much as fits, in place of what was in the batch, and says how many datagrams
    /// that is. `WouldBlock` if there is nothing; other errors are the end of the socket.
    pub fn try_recv(&self, batch: &mut Batch) -> io::Result<usize> {
        for _ in 0..ERRORS_IN_A_ROW_MAX {
            let mut filled = false;
            let result = self.io.try_io(Interest::READABLE, |io| {
                batch.fill(&self.state.load(), io)?;
                filled = true;
                // What is not full has taken all there was: to be told so costs no call of its own.
                if batch.is_full() { Ok(()) } else { Err(io::ErrorKind::WouldBlock.into()) }
            });
            match result.or_else(|error| if filled { Ok(()) } else { Err(error) }) {
                Ok(()) => {
                    let (taken, left_out) = batch.count();
                    self.counters.received(taken, left_out);
                    return Ok(taken as usize);
                }
                Err(error) => self.counters.failed(Failure::of(error)?, 1),
            }
        }
        // Each of them was another peer's. There may be more, and something else waits for its turn.
        Err(io::ErrorKind::WouldBlock.into())
    }

    /// Receives as [`Udp::try_recv`] does, and waits until there is something. Nothing is lost if it is dropped.
    pub async fn recv(&self, batch: &mut Batch) -> io::Result<usize> {
        loop {
            match self.try_recv(batch) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.readable().await?,
                result => return result,
            }
        }
    }

    /// Sends datagrams, from the first on as many as there is room for, and says how many. Those that could not be
    /// sent for another reason are among them, and counted. `WouldBlock` if there is no room for a single
    /// one; other errors are the end of the socket.
    pub fn try_send(&self, segments: &Segments<'_>) -> io::Result<usize> {
        let segment_bytes = segments.segment_bytes.max(1);
        let (mut sent, mut is_refused) = (0, false);
        while sent < segments.len() {
            let most = if is_refused { 1 } else { self.segments_max(segment_bytes) };
            let count = most.min(segments.len() - sent);
            let end = segments.bytes.len().min((sent + count) * segment_bytes);
            let piece =
                Segments { segment_bytes, bytes: &segments.bytes[sent * segment_bytes..end], ..*segments };
            match self.send_piece(&piece, count) {
                Ok(()) => {
                    sent += count;
                    self.counters.sent(count as u64);
                    if is_refused {
                        self.segmentation.store(false, Ordering::Relaxed);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && sent > 0 => break,
                Err(error) => match Failure::of(error)? {
                    // It may be because it is a piece: the same once more, one by one.
                    Failure::Invalid if count > 1 => is_refused = true,
                    failure => {
                        // It was not because of the piece, so the rest will be no better.
                        let is_hopeless = is_refused && failure == Failure::Invalid;
                        let lost = if is_hopeless { segments.len() - sent } else { count };
                        sent += lost;
                        self.counters.failed(failure, lost as u64);
                    }
                },
            }
        }
        Ok(sent)
    }

    /// Sends as [`Udp::try_send`] does, and waits until all have gone.
    pub async fn send(&self, segments: &Segments<'_>) -> io::Result<()> {
        let mut rest = *segments;
        while !rest.is_empty() {
            match self.try_send(&rest) {
                Ok(sent) => rest.bytes = rest.bytes.get(sent * rest.segment_bytes.max(1)..).unwrap_or(&[]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.writable().await?,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn send_piece(&self, piece: &Segments<'_>, count: usize) -> io::Result<()> {
        let destination = self.destination(piece.to).ok_or(Errno::HOSTUNREACH)?;
        let from = piece.from.map(|from| from.to_canonical());
        let is_v4 = destination.ip().to_canonical().is_ipv4();
        let transmit = Transmit {
            destination,
            ecn: codepoint(piece.mark),
            contents: piece.bytes,
            segment_size: (count > 1).then_some(piece.segment_bytes),
            src_ip: from.filter(|from| from.is_ipv4() == is_v4 && !from.is_unspecified()),
        };
        let state = self.state.load();
        let result = state.try_send(self.io.get_ref().into(), &transmit);
        if result.is_err() && state.max_gso_segments() < self.segments_at_first {
            self.state.store(Arc::new(UdpSocketState::new(self.io.get_ref().into())?));
        }
        result
    }

    /// How the kernel wants this address for this socket; `None` for one that nothing can be sent to, of which
    /// the kernel would say "invalid argument", as it does of pieces.
    fn destination(&self, to: SocketAddr) -> Option<SocketAddr> {
        if to.port() == 0 || to.ip().is_unspecified() {
            return None;
        }
        match (self.local, to) {
            (SocketAddr::V4(_), SocketAddr::V6(_)) => None,
            (SocketAddr::V6(_), SocketAddr::V4(to)) => {
                Some(SocketAddrV6::new(to.ip().to_ipv6_mapped(), to.port(), 0, 0).into())
            }
            (_, SocketAddr::V6(to)) if to.ip().is_unicast_link_local() && to.scope_id() == 0 => None,
            _ => Some(to),
        }
    }
}

impl AsFd for Udp {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.io.get_ref().as_fd()
    }
}

/// A socket that is waited for.
#[allow(
    deprecated,
    reason = "the ways that are not are unsafe; it owns its socket, so that nothing else closes it"
)]
fn watched(socket: UdpSocket, interest: Interest) -> io::Result<AsyncFd<UdpSocket>> {
    AsyncFd::with_interest(socket, interest)
}

fn ask_for_buffers(socket: &Socket, options: &Options) -> io::Result<()> {
    // Beyond the administrator's bounds if we may, else up to them.
    if sockopt::set_socket_recv_buffer_size_force(socket, options.recv_buffer_bytes).is_err() {
        socket.set_recv_buffer_size(options.recv_buffer_bytes)?;
    }
    if sockopt::set_socket_send_buffer_size_force(socket, options.send_buffer_bytes).is_err() {
        socket.set_send_buffer_size(options.send_buffer_bytes)?;
    }
    Ok(())
}

fn buffers(socket: &Socket) -> io::Result<Buffers> {
    // The kernel doubles what is asked for, for its own use, and says so.
    Ok(Buffers { recv_bytes: socket.recv_buffer_size()? / 2, send_bytes: socket.send_buffer_size()? / 2 })
}

const fn codepoint(mark: Mark) -> Option<EcnCodepoint> {
    match mark {
        Mark::None => None,
        Mark::Ect0 => Some(EcnCodepoint::Ect0),
        Mark::Ect1 => Some(EcnCodepoint::Ect1),
        Mark::Ce => Some(EcnCodepoint::Ce),
    }
}

#[cfg(test)]
mod tests;
