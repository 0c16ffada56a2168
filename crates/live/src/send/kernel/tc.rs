//! Orders by way of the classifier: one packet is sent to the anchor, the classifier sends a clone
//! to each target (`bpf/fanout.c`). Several packets of equal size go as one segmented packet
//! (UDP GSO), which is cloned whole.

use std::io::{self, IoSlice};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsRawFd, OwnedFd};

use arrayvec::ArrayVec;
use rustix::net::{AddressFamily, SendAncillaryBuffer, SendFlags, SocketFlags, SocketType, sendmsg};

use super::anchor::{self, Anchor};
use super::layout::{self, HEADER_BYTES, Target, UDP};
use crate::limits::{GSO_BYTES_MAX, GSO_SEGMENTS_MAX, KERNEL_BURST};

/// By which the classifier knows our packets (SO_MARK). Nobody else sends to the anchor, by intent.
pub(super) const MARK: u32 = 0x0f_10_0d_ed;

/// An RTP header and a body for each packet.
const PIECES_MAX: usize = 2 * GSO_SEGMENTS_MAX;

/// Payload of one packet; the anchor takes no larger ones.
const PAYLOAD_MAX: usize = anchor::MTU as usize - (HEADER_BYTES - 14);

/// `struct virtio_net_hdr` (include/uapi/linux/virtio_net.h): what the kernel is to do with a packet
/// besides sending it.
const VNET_BYTES: usize = 10;
const VIRTIO_NET_HDR_F_NEEDS_CSUM: u8 = 1;
/// Since Linux 6.2.
const VIRTIO_NET_HDR_GSO_UDP_L4: u8 = 5;

/// The socket through which packets get to the anchor.
#[derive(Debug)]
pub(super) struct Injector {
    socket: OwnedFd,
    /// The system's and our own headers before each packet. The classifier writes its own ones.
    prefix: [u8; VNET_BYTES + HEADER_BYTES],
    /// Packets that may be sent by one call.
    burst: u32,
}

/// Packets that go together.
pub(super) struct Injection<'a> {
    pub(super) bytes: usize,
    pub(super) packets: u32,
    segment: usize,
    pieces: ArrayVec<IoSlice<'a>, PIECES_MAX>,
}

impl Injector {
    pub(super) fn open(anchor: &Anchor) -> io::Result<Self> {
        // Protocol 0: it receives nothing.
        let socket =
            rustix::net::socket_with(AddressFamily::PACKET, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
        bind(&socket, anchor.ifindex)?;
        crate::receive::set_int(&socket, libc::SOL_PACKET, libc::PACKET_VNET_HDR, 1)?;
        crate::receive::set_int(&socket, libc::SOL_SOCKET, libc::SO_MARK, MARK.cast_signed())?;
        let mut prefix = [0; VNET_BYTES + HEADER_BYTES];
        let nowhere = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0);
        prefix[VNET_BYTES..].copy_from_slice(&layout::header(&Target {
            ifindex: anchor.ifindex,
            source_mac: [0; 6],
            target_mac: [0; 6],
            from: nowhere,
            to: nowhere,
            ttl: 1,
            tos: 0,
        }));
        Ok(Injector { socket, prefix, burst: burst() })
    }

    /// To how many targets `injection` may go at once. `whole`: their devices take it in one piece.
    pub(super) fn burst(&self, injection: &Injection<'_>, whole: bool) -> u32 {
        if whole { self.burst } else { (self.burst / injection.packets.max(1)).max(1) }
    }

    /// Hands `injection` to the classifier.
    pub(super) fn send(&self, injection: &Injection<'_>) -> io::Result<()> {
        let mut prefix = self.prefix;
        write_vnet(&mut prefix, injection);
        let mut vectors = ArrayVec::<IoSlice<'_>, { PIECES_MAX + 1 }>::new();
        vectors.push(IoSlice::new(&prefix));
        vectors.extend(injection.pieces.iter().copied());
        sendmsg(&self.socket, &vectors, &mut SendAncillaryBuffer::default(), SendFlags::DONTWAIT)?;
        Ok(())
    }

    /// From now on it sends as anybody would.
    #[cfg(test)]
    pub(super) fn unmark(&self) {
        crate::receive::set_int(&self.socket, libc::SOL_SOCKET, libc::SO_MARK, 0).expect("of a socket");
    }

    /// Whether the kernel takes segmented packets from such a socket. The classifier must have no
    /// order.
    pub(super) fn can_segment(&self) -> bool {
        let bytes = [0; 2];
        let pieces = ArrayVec::from_iter([IoSlice::new(&bytes)]);
        // Without an order the classifier drops the packet, which is an error to it, but not EINVAL.
        let result = self.send(&Injection { bytes: 2, packets: 2, segment: 1, pieces });
        !matches!(result, Err(error) if error.raw_os_error() == Some(libc::EINVAL))
    }
}

/// Fills in what the prefix says of the packet.
fn write_vnet(prefix: &mut [u8; VNET_BYTES + HEADER_BYTES], injection: &Injection<'_>) {
    let segmented = injection.packets > 1;
    let (vnet, header) = prefix.split_at_mut(VNET_BYTES);
    // All but the headers lie in pages, which clones share.
    let fields = [HEADER_BYTES, if segmented { injection.segment } else { 0 }, UDP, 6];
    vnet[0] = VIRTIO_NET_HDR_F_NEEDS_CSUM;
    vnet[1] = if segmented { VIRTIO_NET_HDR_GSO_UDP_L4 } else { 0 };
    for (bytes, field) in vnet[2..].chunks_exact_mut(2).zip(fields) {
        bytes.copy_from_slice(&(field as u16).to_ne_bytes());
    }
    let lengths =
        [(16, HEADER_BYTES - 14 + injection.bytes), (UDP + 4, HEADER_BYTES - UDP + injection.bytes)];
    for (at, length) in lengths {
        header[at..at + 2].copy_from_slice(&(length as u16).to_be_bytes());
    }
}

/// What is still to go of packets of `segment` bytes, of which the last may be shorter.
#[derive(Clone, Copy)]
pub(super) struct Rest<'a> {
    pieces: &'a [IoSlice<'a>],
    /// Bytes of the first piece that have gone.
    gone: usize,
    segment: usize,
}

impl<'a> Rest<'a> {
    pub(super) fn new(pieces: &'a [IoSlice<'a>], segment: usize) -> io::Result<Self> {
        if segment == 0 || segment > PAYLOAD_MAX {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "no size of a UDP packet"));
        }
        Ok(Rest { pieces, gone: 0, segment })
    }

    /// The next packets, as many as can go together.
    pub(super) fn next(&mut self, segmented: bool) -> io::Result<Option<Injection<'a>>> {
        let together = if segmented { (GSO_BYTES_MAX / self.segment).clamp(1, GSO_SEGMENTS_MAX) } else { 1 };
        let mut injection =
            Injection { bytes: 0, packets: 0, segment: self.segment, pieces: ArrayVec::new() };
        while injection.packets < together as u32 && injection.bytes.is_multiple_of(self.segment) {
            let (before, known) = (*self, injection.pieces.len());
            match self.packet(&mut injection.pieces) {
                Ok(0) => break,
                Ok(bytes) => injection.bytes += bytes,
                Err(error) if injection.packets == 0 => return Err(error),
                Err(_) => {
                    *self = before;
                    injection.pieces.truncate(known);
                    break;
                }
            }
            injection.packets += 1;
        }
        Ok((injection.packets > 0).then_some(injection))
    }

    /// Adds the pieces of one packet. Returns its length.
    fn packet(&mut self, pieces: &mut ArrayVec<IoSlice<'a>, PIECES_MAX>) -> io::Result<usize> {
        let mut bytes = 0;
        while let Some(piece) = self.pieces.first() {
            let left = &piece[self.gone..];
            if left.is_empty() {
                (self.pieces, self.gone) = (&self.pieces[1..], 0);
                continue;
            }
            if bytes == self.segment {
                break;
            }
            let taken = left.len().min(self.segment - bytes);
            pieces
                .try_push(IoSlice::new(&left[..taken]))
                .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "a packet in too many pieces"))?;
            (bytes, self.gone) = (bytes + taken, self.gone + taken);
        }
        Ok(bytes)
    }
}

/// How many clones may be sent at once. A virtual device hands them to the backlog of this core, and
/// that is only worked on when all are sent.
fn burst() -> u32 {
    let backlog = std::fs::read_to_string("/proc/sys/net/core/netdev_max_backlog").unwrap_or_default();
    // Hidden in network namespaces of older kernels; the limit holds there all the same.
    let backlog = backlog.trim().parse().unwrap_or(1000);
    (backlog / 2).clamp(1, KERNEL_BURST)
}

fn bind(socket: &OwnedFd, ifindex: u32) -> io::Result<()> {
    let address = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: 0,
        sll_ifindex: ifindex.cast_signed(),
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    let length = size_of_val(&address) as libc::socklen_t;
    // SAFETY: the kernel reads one `sockaddr_ll`, which `address` is.
    let result = unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
