//! Orders by way of the classifier: one packet is sent to the anchor, the classifier sends a clone
//! to each target (`bpf/fanout.c`). Several packets of equal size go as one segmented packet
//! (UDP GSO), which is cloned whole.
//!
//! A plain UDP socket takes them there. A packet socket would do, too, but what it sends counts as
//! untrusted: the kernel looks each clone of a segmented packet through again (SKB_GSO_DODGY), which
//! takes a sixth of all the time.

use std::io;
use std::io::IoSlice;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::AsRawFd;

use arrayvec::ArrayVec;
use socket2::{SockAddr, SockRef};

use outflow_socket::Segment;
use outflow_socket::limits::{GSO_BYTES_MAX, GSO_SEGMENTS_MAX};

use super::anchor;
use super::anchor::Anchor;
use super::layout::HEADER_BYTES;
use crate::limits::KERNEL_BURST;

/// By which the classifier knows our packets (SO_MARK). No other program sends to the anchor, by intent.
pub(super) const MARK: u32 = 0x0f_10_0d_ed;

/// Where packets to the anchor are addressed, until the classifier writes its own headers: an address
/// that no host has (TEST-NET-1, RFC 5737), and the discard port (RFC 863).
const NO_HOST: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 1), 9);

/// An RTP header and a body for each packet.
const PIECES_MAX: usize = 2 * GSO_SEGMENTS_MAX;

/// Payload of one packet; the anchor takes no larger ones.
const PAYLOAD_MAX: usize = anchor::MTU as usize - (HEADER_BYTES - 14);

/// The socket through which packets get to the anchor.
#[derive(Debug)]
pub(super) struct Injector {
    socket: UdpSocket,
    to: SockAddr,
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
    /// # Errors
    /// What the system refuses; also what a filter of the system's does not let through.
    pub(super) fn open(anchor: &Anchor) -> io::Result<Self> {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        let name = rustix::net::netdevice::index_to_name(&socket, anchor.ifindex)?;
        SockRef::from(&socket).bind_device(Some(name.as_bytes()))?;
        outflow_socket::set_int(&socket, libc::SOL_SOCKET, libc::SO_MARK, MARK.cast_signed())?;
        // Not connected: all clones would have the hash of this socket, and be one flow to queues that
        // treat flows fairly.
        let injector = Injector { socket, to: NO_HOST.into(), burst: burst() };
        // There is no order yet: the classifier ends this one.
        let bytes = [0; 2];
        let pieces = ArrayVec::from_iter([IoSlice::new(&bytes)]);
        injector.send(&Injection { bytes: 2, packets: 2, segment: 1, pieces })?;
        Ok(injector)
    }

    /// To how many targets `injection` may go at once. `whole`: their devices take it in one piece.
    pub(super) fn burst(&self, injection: &Injection<'_>, whole: bool) -> u32 {
        if whole { self.burst } else { (self.burst / injection.packets.max(1)).max(1) }
    }

    /// Hands `injection` to the classifier.
    pub(super) fn send(&self, injection: &Injection<'_>) -> io::Result<()> {
        // A single packet has a segment size, too: so all but its headers lie in pages, which clones
        // share.
        let mut control = Segment::of(injection.segment);
        // SAFETY: zeros are a valid msghdr.
        let mut header: libc::msghdr = unsafe { core::mem::zeroed() };
        header.msg_name = self.to.as_ptr().cast_mut().cast();
        header.msg_namelen = self.to.len();
        header.msg_iov = injection.pieces.as_ptr().cast_mut().cast();
        header.msg_iovlen = injection.pieces.len() as _;
        control.attach(&mut header);
        let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
        // SAFETY: the message points at an address, at vectors (of which `IoSlice` has the layout) and
        // at a control message, all of which outlive the call.
        let sent = unsafe { libc::sendmsg(self.socket.as_raw_fd(), &raw const header, flags) };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// From now on it sends as any other program would.
    #[cfg(test)]
    pub(super) fn unmark(&self) {
        outflow_socket::set_int(&self.socket, libc::SOL_SOCKET, libc::SO_MARK, 0).expect("of a socket");
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
    pub(super) fn next(&mut self) -> io::Result<Option<Injection<'a>>> {
        let together = (GSO_BYTES_MAX / self.segment).clamp(1, GSO_SEGMENTS_MAX);
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
