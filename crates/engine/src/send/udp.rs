//! UDP: the packets of an order to many sinks, with as few system calls as the kernel allows.
//!
//! Packets of equal size that are owed to one sink go out as one segmented send (UDP GSO), and
//! up to [`SEND_BATCH`] such sends, whichever sinks they are for, by one `sendmmsg`. The packets' I/O
//! vectors are made once an order and shared by all its sinks; for many sinks the bytes are put
//! together before, because the kernel reads the vectors again for each.

use core::marker::PhantomData;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;

use outflow_packet::DropReason;
use outflow_relay::{Report, SinkKey};
use outflow_ring::Seq;
use outflow_socket::Segment;
use outflow_socket::limits::{GSO_BYTES_MAX, GSO_SEGMENTS_MAX};
use socket2::SockAddr;

use super::Piece;
use super::connected::OwnSockets;
use crate::limits::{GATHERED_SINKS_MIN, SEND_BATCH};
use crate::message::Destination;

/// Where a sink's packets go: an address a track.
#[derive(Debug)]
pub(crate) struct UdpRoute {
    /// The receiver's number, which is never given twice.
    pub(crate) receiver: u64,
    /// The socket that serves it.
    pub(crate) socket: usize,
    /// Addresses for RTP (or bare transport stream) packets.
    pub(crate) media: Vec<(u8, SockAddr)>,
    /// Sockets that serve no other sink.
    pub(crate) own: OwnSockets,
}

impl UdpRoute {
    /// `media`: the address of each track.
    pub(crate) fn new(receiver: u64, socket: usize, media: Vec<(u8, SockAddr)>) -> Self {
        UdpRoute { receiver, socket, media, own: OwnSockets::default() }
    }

    pub(crate) fn address(&self, track: u8) -> Option<&SockAddr> {
        self.media.iter().find(|(t, _)| *t == track).map(|(_, address)| address)
    }
}

/// A socket that serves sinks.
#[derive(Debug)]
pub(crate) struct UdpPort {
    pub(crate) socket: UdpSocket,
    /// Its own address.
    pub(crate) local: SocketAddr,
    /// Time to live of its packets, or hop limit; of those to groups, where it has one.
    pub(crate) ttl: u8,
    /// Type of service of its packets, or traffic class.
    pub(crate) tos: u8,
    /// The device that it is bound to, or by which it sends to its group.
    pub(crate) interface: Option<u32>,
    /// Under which the worker waits for it.
    pub(crate) token: usize,
    /// Under which the worker waits for the socket of RTCP beside it; without one, RTCP goes from this one.
    pub(crate) rtcp: Option<usize>,
    /// Its buffer was full: nothing more goes until the kernel says so.
    pub(crate) full: bool,
    /// The configured receiver whose own socket it is: what was asked for it.
    pub(crate) push: Option<Box<Destination>>,
}

impl UdpPort {
    /// A socket as it is set up now.
    ///
    /// # Errors
    /// What the system refused to tell.
    pub(crate) fn new(socket: UdpSocket, token: usize, push: Option<&Destination>) -> io::Result<Self> {
        let options = socket2::SockRef::from(&socket);
        let local = socket.local_addr()?;
        let is_group = push.is_some_and(|push| push.to.ip().is_multicast());
        let (ttl, tos) = match (local, is_group) {
            (SocketAddr::V4(_), false) => (options.ttl_v4()?, options.tos_v4()?),
            (SocketAddr::V4(_), true) => (options.multicast_ttl_v4()?, options.tos_v4()?),
            (SocketAddr::V6(_), false) => (options.unicast_hops_v6()?, options.tclass_v6()?),
            (SocketAddr::V6(_), true) => (options.multicast_hops_v6()?, options.tclass_v6()?),
        };
        let bound = options.device()?.map(|name| String::from_utf8_lossy(&name).into_owned());
        let by = push.filter(|_| is_group).and_then(|push| push.interface.clone());
        let interface = bound.or(by).map(|name| rustix::net::netdevice::name_to_index(&socket, &name));
        let interface = interface.transpose()?;
        let (ttl, tos, push) = (ttl as u8, tos as u8, push.cloned().map(Box::new));
        Ok(UdpPort { local, ttl, tos, interface, token, rtcp: None, full: false, push, socket })
    }

    /// Whether members on this machine are to get what goes to its group, which takes the system's own way.
    pub(crate) fn loops(&self) -> bool {
        self.push.as_ref().is_some_and(|push| push.to.ip().is_multicast() && push.loops)
    }

    /// The source address of its packets, if it is bound to one.
    pub(crate) fn own_address(&self) -> Option<IpAddr> {
        Some(self.local.ip()).filter(|own| !own.is_unspecified())
    }
}

/// Consecutive packets that can go as one segmented send.
struct Run {
    track: u8,
    first: Seq,
    packets: u64,
    /// Bytes of each packet; the last may have fewer.
    segment: usize,
    /// A few for each packet, or one for all of them.
    iovecs: core::ops::Range<usize>,
    control: Option<Segment>,
}

/// Collects messages, and sends them.
pub(crate) struct UdpSender {
    /// Whether the kernel segments; switched off when it says that it does not.
    segment: bool,
    /// The order's bytes, put together for many sinks.
    gathered: Vec<u8>,
    iovecs: Vec<libc::iovec>,
    runs: Vec<Run>,
    messages: Vec<libc::mmsghdr>,
    /// For each message: its sink, and which run.
    owners: Vec<(SinkKey, usize)>,
    /// The port that the messages are to leave from.
    port: Option<usize>,
    /// What did not go, for the core.
    pub(crate) reports: Vec<(SinkKey, Report)>,
}

impl UdpSender {
    pub(crate) fn new() -> Self {
        UdpSender {
            segment: true,
            gathered: Vec::new(),
            iovecs: Vec::new(),
            runs: Vec::new(),
            messages: Vec::with_capacity(SEND_BATCH),
            owners: Vec::with_capacity(SEND_BATCH),
            port: None,
            reports: Vec::new(),
        }
    }

    /// Sends all `pieces` to all `sinks`, of which there are about `count`. What did not go stands in
    /// [`UdpSender::reports`].
    pub(crate) fn send<'a>(
        &mut self,
        pieces: &[Piece<'_>],
        ports: &mut slab::Slab<UdpPort>,
        sinks: impl Iterator<Item = (SinkKey, &'a UdpRoute)>,
        count: usize,
    ) {
        let mut order = self.begin(pieces, ports, count);
        sinks.for_each(|(key, route)| order.add(key, route));
    }

    /// Whether these are one packet, or can go as one segmented send.
    pub(crate) fn is_one_send(&self, pieces: &[Piece<'_>]) -> bool {
        pieces.len() == 1 || self.segment && !pieces.is_empty() && run_length(pieces) == pieces.len()
    }

    /// Begins to send all `pieces` to sinks that are named one by one, about `count` of them.
    pub(crate) fn begin<'a>(
        &'a mut self,
        pieces: &'a [Piece<'a>],
        ports: &'a mut slab::Slab<UdpPort>,
        count: usize,
    ) -> UdpOrder<'a> {
        self.prepare(pieces, count >= GATHERED_SINKS_MIN);
        UdpOrder { sender: self, ports, routes: PhantomData }
    }

    /// Makes the I/O vectors and finds the runs. With `gather` each run gets one vector.
    fn prepare(&mut self, pieces: &[Piece<'_>], gather: bool) {
        self.clear();
        if gather {
            // What vectors point at must not move.
            self.gathered.reserve(pieces.iter().map(Piece::len).sum());
        }
        let mut rest = pieces;
        while let Some(first) = rest.first() {
            let count = if self.segment { run_length(rest) } else { 1 };
            let (run, behind) = rest.split_at(count);
            rest = behind;
            let parts = run.iter().flat_map(|piece| [piece.header, piece.body]);
            let start = self.iovecs.len();
            if gather {
                let at = self.gathered.len();
                parts.for_each(|part| self.gathered.extend_from_slice(part));
                self.iovecs.push(vector(&self.gathered[at..]));
            } else {
                self.iovecs.extend(parts.filter(|part| !part.is_empty()).map(vector));
            }
            self.runs.push(Run {
                track: first.track,
                first: first.seq,
                packets: count as u64,
                segment: first.len(),
                iovecs: start..self.iovecs.len(),
                control: (count > 1).then(|| Segment::of(first.len())),
            });
        }
    }

    /// Forgets everything that points elsewhere.
    fn clear(&mut self) {
        self.messages.clear();
        self.owners.clear();
        self.iovecs.clear();
        self.gathered.clear();
        self.runs.clear();
        self.port = None;
    }

    fn message(&mut self, run: usize, address: &SockAddr) -> libc::mmsghdr {
        let run = &mut self.runs[run];
        // SAFETY: zeros are a valid mmsghdr.
        let mut message: libc::mmsghdr = unsafe { core::mem::zeroed() };
        let header = &mut message.msg_hdr;
        header.msg_name = address.as_ptr().cast_mut().cast();
        header.msg_namelen = address.len();
        header.msg_iov = self.iovecs[run.iovecs.clone()].as_mut_ptr();
        header.msg_iovlen = run.iovecs.len() as _;
        if let Some(control) = &mut run.control {
            control.attach(header);
        }
        message
    }

    fn flush(&mut self, ports: &mut slab::Slab<UdpPort>) {
        let Some(port) = self.port.and_then(|port| ports.get_mut(port)) else { return };
        let mut done = 0;
        while done < self.messages.len() && !port.full {
            match send_messages(&port.socket, &mut self.messages[done..]) {
                Ok(sent) => done += sent,
                Err(error) => match error.raw_os_error() {
                    Some(libc::EINTR) => {}
                    Some(libc::EAGAIN) => port.full = true,
                    Some(libc::EINVAL | libc::EIO | libc::EMSGSIZE | libc::EOPNOTSUPP)
                        if self.runs[self.owners[done].1].packets > 1 =>
                    {
                        self.without_segmentation(&error);
                        self.send_singly(&port.socket, done);
                        done += 1;
                    }
                    _ => {
                        let packets = self.runs[self.owners[done].1].packets;
                        self.lost(done, &error, packets);
                        done += 1;
                    }
                },
            }
        }
        self.report_blocked(done);
        self.messages.clear();
        self.owners.clear();
    }

    /// The kernel or the device does not segment: from now on each packet goes for itself. (A
    /// segment larger than the path's MTU is that packet's fault alone.)
    fn without_segmentation(&mut self, error: &io::Error) {
        if self.segment && error.raw_os_error() != Some(libc::EMSGSIZE) {
            self.segment = false;
            tracing::warn!(%error, "no UDP segmentation (GSO) here: packets are sent one by one");
        }
    }

    fn send_singly(&mut self, socket: &UdpSocket, index: usize) {
        let run = &self.runs[self.owners[index].1];
        let mut packets = packets(&self.iovecs[run.iovecs.clone()], run);
        for packet in &mut packets {
            let mut single = self.messages[index];
            single.msg_hdr.msg_iov = packet.as_mut_ptr();
            single.msg_hdr.msg_iovlen = packet.len() as _;
            single.msg_hdr.msg_control = core::ptr::null_mut();
            single.msg_hdr.msg_controllen = 0;
            if let Err(error) = send_messages(socket, core::slice::from_mut(&mut single)) {
                self.lost(index, &error, 1);
            }
        }
    }

    fn lost(&mut self, index: usize, error: &io::Error, packets: u64) {
        let reason = match error.raw_os_error() {
            Some(libc::ECONNREFUSED) => DropReason::Refused,
            Some(libc::ENETUNREACH | libc::EHOSTUNREACH | libc::ENETDOWN | libc::EADDRNOTAVAIL) => {
                DropReason::Unreachable
            }
            _ => DropReason::System,
        };
        self.reports.push((self.owners[index].0, Report::Lost { reason, packets }));
    }

    /// Every sink whose messages did not go is blocked, from its first such packet on.
    fn report_blocked(&mut self, from: usize) {
        let mut last = None;
        for &(key, run) in &self.owners[from..] {
            if last.replace(key) != Some(key) {
                self.reports.push((key, Report::Blocked { next: self.runs[run].first }));
            }
        }
    }
}

/// An order under way. What is left of it goes when this is dropped.
pub(crate) struct UdpOrder<'a> {
    sender: &'a mut UdpSender,
    ports: &'a mut slab::Slab<UdpPort>,
    /// The messages point at the sinks' addresses.
    routes: PhantomData<&'a UdpRoute>,
}

impl<'a> UdpOrder<'a> {
    /// Sends to this sink, too.
    pub(crate) fn add(&mut self, key: SinkKey, route: &'a UdpRoute) {
        let sender = &mut *self.sender;
        if sender.port != Some(route.socket) || sender.messages.len() + sender.runs.len() > SEND_BATCH {
            sender.flush(self.ports);
            sender.port = Some(route.socket);
        }
        for index in 0..sender.runs.len() {
            if let Some(address) = route.address(sender.runs[index].track) {
                if sender.messages.len() == SEND_BATCH {
                    sender.flush(self.ports);
                }
                let message = sender.message(index, address);
                sender.messages.push(message);
                sender.owners.push((key, index));
            }
        }
    }

    /// A socket that serves sinks.
    pub(crate) fn port(&self, port: usize) -> Option<&UdpPort> {
        self.ports.get(port)
    }
}

impl Drop for UdpOrder<'_> {
    fn drop(&mut self) {
        self.sender.flush(self.ports);
        // The vectors point into the ring, which may change as soon as the order is done.
        self.sender.clear();
    }
}

fn vector(bytes: &[u8]) -> libc::iovec {
    libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() }
}

/// The vectors of a run, packet by packet.
fn packets(vectors: &[libc::iovec], run: &Run) -> Vec<Vec<libc::iovec>> {
    let count = run.packets as usize;
    let [all] = vectors else { return vectors.chunks(vectors.len() / count).map(<[_]>::to_vec).collect() };
    let one = |at: usize| libc::iovec {
        iov_base: all.iov_base.wrapping_byte_add(at),
        iov_len: run.segment.min(all.iov_len - at),
    };
    (0..count).map(|index| vec![one(index * run.segment)]).collect()
}

/// How many of the first pieces can go as one segmented send: of one track and one size, of which
/// only the last may be smaller.
pub(crate) fn run_length(pieces: &[Piece<'_>]) -> usize {
    let first = &pieces[0];
    let size = first.len();
    let mut count = 1;
    for piece in &pieces[1..] {
        let fits = count < GSO_SEGMENTS_MAX && (count + 1) * size <= GSO_BYTES_MAX;
        let like = piece.track == first.track && piece.header.len() == first.header.len();
        if !fits || !like || piece.len() > size || piece.body.is_empty() || first.body.is_empty() {
            break;
        }
        count += 1;
        if piece.len() < size {
            break;
        }
    }
    count
}

fn send_messages(socket: &UdpSocket, messages: &mut [libc::mmsghdr]) -> io::Result<usize> {
    // SAFETY: every message points at a name, vectors and a control message that outlive the call:
    // the sinks' addresses, and `iovecs` and `runs` of the sender, whose vectors point into the ring
    // or into `gathered`.
    let sent = unsafe {
        libc::sendmmsg(
            socket.as_raw_fd(),
            messages.as_mut_ptr(),
            messages.len() as u32,
            libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL,
        )
    };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(sent as usize) }
}

/// Sends one datagram outside the media's way (a sender report). What does not go is not missed:
/// the next one says more.
pub(crate) fn send_one(socket: &UdpSocket, bytes: &[u8], to: &SockAddr) {
    let _ = socket2::SockRef::from(socket).send_to(bytes, to);
}

#[cfg(test)]
mod tests;
