//! Orders carried out: the one place where packets leave user space.
//!
//! The core says which packets go to which sinks; here that becomes system calls: one for many
//! sinks where the kernel has one ([`kernel`], [`outflow_uring`], `sendmmsg`), behind the same orders.
//! [`fanout`] chooses among them.

pub(crate) mod connected;
pub(crate) mod fanout;

mod packets;
mod recent;
pub(crate) mod stream;
pub(crate) mod udp;
mod worth;

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};

use arrayvec::ArrayVec;
use bytes::Bytes;
use outflow_media::Time;
use outflow_relay::limits::ORDER_PACKETS_MAX;
use outflow_relay::{Encapsulation, Order, Share, Stream};
use outflow_ring::{Entry, Seq};
use outflow_rtp::HEADER;
use socket2::{Domain, Protocol, Socket, Type};

use crate::limits::TCP_SEND_BUFFER_BYTES;
use crate::message::{ControlError, Destination, WriteSide};
pub use packets::{PacketHead, Packets};
pub use recent::Recent;
pub use worth::Worth;

/// No RTP header: none begins with a zero.
const NO_HEADER: [u8; HEADER] = [0; HEADER];

/// One packet of an order, as it goes on the wire.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Piece<'a> {
    /// Its position in the branch. A preamble has the position of the packet it precedes.
    pub(crate) seq: Seq,
    pub(crate) track: u8,
    /// Its layer, if it is of the track of which sinks may take fewer layers.
    pub(crate) layer: Option<u8>,
    /// [`Tag::ends`](outflow_media::Tag::ends), of such a one.
    pub(crate) ends: Option<u8>,
    /// An RTP header that is not part of the body; empty if there is none.
    pub(crate) header: &'a [u8],
    pub(crate) body: &'a [u8],
    /// What the body is a part of, if it may be held longer than this.
    pub(crate) bytes: Option<&'a Bytes>,
    pub(crate) is_preamble: bool,
    pub(crate) worth: Worth,
}

/// RTP headers that are made for an order: those of a preamble, and of packets before which others were left
/// out.
pub(crate) type Headers = ArrayVec<[u8; HEADER], { ORDER_PACKETS_MAX + 1 }>;

/// All packets of an order, which are at most [`ORDER_PACKETS_MAX`], and its preamble.
pub(crate) type Pieces<'a> = ArrayVec<Piece<'a>, { ORDER_PACKETS_MAX + 1 }>;

/// What goes on the wire for an order to sinks of this encapsulation that get this share of it. `headers` is only
/// the place where RTP headers are put that are made for it.
pub(crate) fn pieces<'a>(
    stream: &'a Stream,
    order: &Order,
    share: Share,
    encapsulation: Encapsulation,
    headers: &'a mut Headers,
) -> Pieces<'a> {
    headers.clear();
    let main_track = stream.main_track(order.branch).filter(|_| encapsulation.is_rtp());
    let packets = || stream.packets(order, share).take(ORDER_PACKETS_MAX);
    let preamble = stream.preamble(order);
    let arrived = packets().next().map_or(Time::ZERO, |(_, entry, _)| entry.packet.arrived);
    headers.extend(preamble.map(|(_, header)| match encapsulation.is_rtp() && header[0] != 0 {
        true => lower(header, share.sequence_offset),
        false => NO_HEADER,
    }));
    let ends = |entry: &Entry| entry.packet.tag.ends.filter(|_| main_track == Some(entry.packet.tag.track));
    headers.extend(packets().map(|(_, entry, sequence_offset)| match encapsulation.is_rtp() {
        true => header(entry, sequence_offset, share.max_layer.is_up_to(ends(entry))),
        false => NO_HEADER,
    }));
    let mut made = headers.iter().map(|made| if *made == NO_HEADER { &[][..] } else { &made[..] });
    let mut pieces = Pieces::new();
    if let Some(((body, _), header)) = preamble.and_then(|preamble| Some((preamble, made.next()?))) {
        pieces.push(Piece {
            seq: order.from,
            track: main_track.unwrap_or(0),
            layer: None,
            ends: None,
            header,
            body,
            bytes: Some(body),
            is_preamble: true,
            worth: Worth::most(arrived),
        });
    }
    for ((seq, entry, _), header) in packets().zip(made) {
        let (track, bytes) = (entry.packet.tag.track, &entry.packet.bytes);
        let layer = (main_track == Some(track)).then_some(entry.packet.tag.layer);
        let is_replaced = !header.is_empty() && entry.rtp_header == NO_HEADER;
        let body = if is_replaced { &bytes[HEADER..] } else { &bytes[..] };
        let (bytes, ends) = (Some(bytes), ends(entry));
        let worth = Worth { is_left: order.leaves && layer.is_some(), ..Worth::of(&entry.packet) };
        pieces.push(Piece { seq, track, layer, ends, header, body, bytes, is_preamble: false, worth });
    }
    pieces
}

/// The RTP header that goes before a packet's bytes, or instead of their first.
///
/// A transport stream in RTP: it was made when the packet came in. One of RTP: when a service wrote another
/// than came in, or packets before or behind it are left out; else it is part of the bytes.
fn header(entry: &Entry, sequence_offset: u16, ends: bool) -> [u8; HEADER] {
    match entry.packet.rtp_header(&entry.rtp_header) {
        Some(header) if ends => mark(lower(*header, sequence_offset)),
        Some(header) if sequence_offset != 0 => lower(*header, sequence_offset),
        _ => entry.rtp_header,
    }
}

/// The header with a sequence number that is so much lower.
pub(crate) fn lower(mut header: [u8; HEADER], sequence_offset: u16) -> [u8; HEADER] {
    let sequence = u16::from_be_bytes([header[2], header[3]]).wrapping_sub(sequence_offset);
    outflow_rtp::set_sequence(&mut header, sequence);
    header
}

/// The header with its marker set: the packet is the last of a picture.
pub(crate) fn mark(mut header: [u8; HEADER]) -> [u8; HEADER] {
    header[1] |= 0x80;
    header
}

impl Piece<'_> {
    /// Bytes on the wire, without what the transport adds.
    pub(crate) fn len(&self) -> usize {
        self.header.len() + self.body.len()
    }

    /// Its RTP header, and what stands behind that.
    pub(crate) fn split_header(&self) -> Option<([u8; HEADER], &[u8])> {
        match self.header.first_chunk() {
            Some(header) => Some((*header, self.body)),
            None => self.body.split_first_chunk().map(|(header, body)| (*header, body)),
        }
    }
}

/// Makes a connection ready for media: small writes at once, a bounded send queue, no time
/// limit of the kernel's. What a socket of another kind does not know, it does without.
pub(crate) fn prepare(fd: &WriteSide) {
    use outflow_socket::set_int;
    let _ = rustix::io::ioctl_fionbio(fd, true);
    let _ = set_int(fd, libc::IPPROTO_TCP, libc::TCP_NODELAY, 1);
    // A receiver that does not read is judged by `hopeless_after`, with a reason. The kernel's own
    // limit counts zero windows, too: it would end a player that pauses.
    let _ = set_int(fd, libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT, 0);
    let _ = set_int(fd, libc::SOL_SOCKET, libc::SO_SNDBUF, TCP_SEND_BUFFER_BYTES as i32);
}

/// A socket for one configured receiver, with its TTL and interface.
///
/// # Errors
/// What the system refused.
pub fn open_push(push: &Destination) -> Result<UdpSocket, ControlError> {
    let failed = |e: io::Error| ControlError::system(format!("opening a socket for {}", push.to), &e);
    let socket =
        Socket::new(Domain::for_address(push.to), Type::DGRAM, Some(Protocol::UDP)).map_err(failed)?;
    let any = match push.from {
        _ if push.to.is_ipv6() => SocketAddr::from(([0; 16], 0)),
        from => SocketAddr::from((from.unwrap_or(Ipv4Addr::UNSPECIFIED), 0)),
    };
    let ready = || {
        socket.set_nonblocking(true)?;
        configure_push(&socket, push)?;
        socket.bind(&any.into())
    };
    ready().map_err(failed)?;
    Ok(socket.into())
}

/// Sets the TTL and the interface that a configured receiver is to be reached by.
fn configure_push(socket: &Socket, push: &Destination) -> io::Result<()> {
    let interface = match &push.interface {
        Some(name) => Some(rustix::net::netdevice::name_to_index(socket, name)?),
        None => None,
    };
    let ttl = push.ttl.map(u32::from);
    match (push.to.ip(), push.to.ip().is_multicast()) {
        (IpAddr::V4(_), true) => {
            socket.set_multicast_ttl_v4(ttl.unwrap_or(1))?;
            socket.set_multicast_loop_v4(push.loops)?;
            if let Some(index) = interface {
                let request = libc::ip_mreqn {
                    imr_multiaddr: libc::in_addr { s_addr: 0 },
                    imr_address: libc::in_addr { s_addr: 0 },
                    imr_ifindex: index as i32,
                };
                outflow_socket::set_option(socket, libc::IPPROTO_IP, libc::IP_MULTICAST_IF, &request)?;
            }
        }
        (IpAddr::V6(_), true) => {
            socket.set_multicast_hops_v6(ttl.unwrap_or(1))?;
            socket.set_multicast_loop_v6(push.loops)?;
            if let Some(index) = interface {
                socket.set_multicast_if_v6(index)?;
            }
        }
        (IpAddr::V4(_), false) => ttl.map_or(Ok(()), |ttl| socket.set_ttl_v4(ttl))?,
        (IpAddr::V6(_), false) => ttl.map_or(Ok(()), |ttl| socket.set_unicast_hops_v6(ttl))?,
    }
    if let (Some(name), false) = (&push.interface, push.to.ip().is_multicast()) {
        socket.bind_device(Some(name.as_bytes()))?;
    }
    Ok(())
}
