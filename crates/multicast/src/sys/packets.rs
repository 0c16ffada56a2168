//! Packet sockets: for interfaces without a number in the kernel's table of multicast routing.
//!
//! What comes in there is read before the kernel's IP has seen it, and what is sent goes past it: it neither
//! comes back nor is forwarded a second time.

use std::io;
use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv6Addr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::Arc;

use nix::sys::socket::{ControlMessageOwned, LinkAddr, MsgFlags, recvmsg, setsockopt, sockopt};
use outflow_media::group_mac;
use outflow_privilege::Buffer;
use outflow_routing::membership::Family;
use socket2::{Domain, Protocol, Socket, Type};

use super::types::Value;
use super::{Received, Watchable, filter};
use crate::limits::{SENT_AT_ONCE, SOCKET_BUFFER_BYTES, TAP_BUFFER_BYTES};

/// The protocol of a link that carries a family.
const fn protocol(family: Family) -> u16 {
    match family {
        Family::V4 => (libc::ETH_P_IP as u16).to_be(),
        Family::V6 => (libc::ETH_P_IPV6 as u16).to_be(),
    }
}

/// Hears packets of IGMP on interfaces where the kernel's table does not bring them to a router, and those of MLD, which
/// the kernel gives to no program whole.
#[derive(Debug)]
pub struct Listener {
    socket: Socket,
    family: Family,
}

impl Listener {
    /// One that hears nothing yet.
    ///
    /// # Errors
    ///
    /// As the kernel says: without CAP_NET_RAW there is none.
    pub fn open(family: Family) -> io::Result<Self> {
        let socket = packet_socket(Type::DGRAM)?;
        socket.attach_filter(&filter::membership(family))?;
        socket.set_recv_buffer_size(SOCKET_BUFFER_BYTES)?;
        setsockopt(&socket, sockopt::ReceiveTimestampns, &true)?;
        Ok(Listener { socket, family })
    }

    /// Hears an interface, too: what is sent there to any group.
    ///
    /// # Errors
    ///
    /// As the kernel says.
    pub fn add(&self, interface: u32) -> io::Result<()> {
        set(&self.socket, libc::PACKET_ADD_MEMBERSHIP, &all_groups(interface))?;
        bind(&self.socket, self.family, 0)
    }

    /// Whether an interface is to be asked for all groups no more. It may be gone already.
    pub fn remove(&self, interface: u32) {
        let _gone_already = set(&self.socket, libc::PACKET_DROP_MEMBERSHIP, &all_groups(interface));
    }

    /// Reads the next packet from its IP header on, of any interface.
    ///
    /// # Errors
    ///
    /// As the kernel says: `WouldBlock` if there is none.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Received> {
        let mut control = nix::cmsg_space!(libc::timespec);
        let mut parts = [io::IoSliceMut::new(buffer)];
        let fd = self.socket.as_raw_fd();
        let message = recvmsg::<LinkAddr>(fd, &mut parts, Some(&mut control), MsgFlags::empty())?;
        let interface = message.address.map_or(0, |from| from.ifindex() as u32);
        let mut received = Received { length: message.bytes, interface, came_ns: 0 };
        for part in message.cmsgs()? {
            if let ControlMessageOwned::ScmTimestampns(time) = part {
                received.came_ns = super::nanoseconds(&time);
            }
        }
        Ok(received)
    }
}

impl AsRawFd for Listener {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

// SAFETY: the descriptor is that of its socket, which it never exchanges, and which lives as long as any of these.
unsafe impl Watchable for Arc<Listener> {}

/// What is left to do of a packet that came from this machine, or was merged from several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Offload {
    /// Where a checksum begins, behind the IP header's begin, and where in that part it belongs.
    pub(crate) checksum: Option<(usize, usize)>,
    /// Bytes of each part of a merged packet; zero if it is of a kind that cannot be parted.
    pub(crate) merged: Option<usize>,
}

/// A packet that was read: where it is, from its IP header on.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Frame {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) offload: Offload,
}

/// `struct virtio_net_hdr`.
const OFFLOAD_BYTES: usize = 10;
/// The longest IP packet, a link's header before it, and that.
const FRAME_BYTES: usize = 65_792;
/// Room for what the kernel says beside a packet, aligned as that is.
type Control = [u64; 8];
/// `VIRTIO_NET_HDR_F_NEEDS_CSUM`, `VIRTIO_NET_HDR_GSO_UDP_L4`.
const NEEDS_CHECKSUM: u8 = 1;
const MERGED_UDP: u8 = 5;

/// Room for packets that are read at once.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) bytes: Vec<u8>,
    pub(crate) frames: Vec<Frame>,
}

/// Packets that are read from an interface before others have their turn.
pub(crate) const READ_AT_ONCE: usize = 64;

impl Batch {
    pub(crate) fn new() -> Self {
        Batch { bytes: vec![0; READ_AT_ONCE * FRAME_BYTES], frames: Vec::with_capacity(READ_AT_ONCE) }
    }
}

/// An interface of Ethernet: its address, and bytes of an IP packet that goes there whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ethernet {
    pub(crate) address: [u8; 6],
    pub(crate) mtu: u32,
}

/// Hears packets to groups that may be forwarded, on one interface.
#[derive(Debug)]
pub(crate) struct Tap {
    socket: Socket,
    family: Family,
}

impl Tap {
    /// One of an interface: of all, or of those (source, group) that it is told then.
    pub(crate) fn open(family: Family, interface: u32, hears_all: bool) -> io::Result<Self> {
        // Only raw ones tell what is left to do of a packet.
        let socket = packet_socket(Type::RAW)?;
        let pairs = (!hears_all).then_some(&[][..]);
        socket.attach_filter(&filter::data(family, pairs))?;
        set(&socket, libc::PACKET_VNET_HDR, &1_i32)?;
        set(&socket, libc::PACKET_AUXDATA, &1_i32)?;
        setsockopt(&socket, sockopt::RcvBufForce, &TAP_BUFFER_BYTES)
            .or_else(|_| setsockopt(&socket, sockopt::RcvBuf, &TAP_BUFFER_BYTES))?;
        // If this may not, the helper may; else it stays as it is.
        let _ = outflow_privilege::enlarge(socket.as_fd(), Buffer::Receive, TAP_BUFFER_BYTES);
        bind(&socket, family, interface)?;
        Ok(Tap { socket, family })
    }

    /// Hears only these sources to these groups from now on.
    pub(crate) fn hear(&self, pairs: &[(IpAddr, IpAddr)]) -> io::Result<()> {
        self.socket.attach_filter(&filter::data(self.family, Some(pairs)))
    }

    /// Hears from now on what a program of the extended BPF takes.
    pub(crate) fn hear_what_is_given(&self, program: BorrowedFd<'_>) -> io::Result<()> {
        super::set_at(&self.socket, libc::SOL_SOCKET, libc::SO_ATTACH_BPF, &program.as_raw_fd())
    }

    /// What is to be known of an interface, if it is one of Ethernet.
    pub(crate) fn ethernet(&self, interface: u32) -> Option<Ethernet> {
        let said = ask(&self.socket, interface, libc::SIOCGIFHWADDR).ok()?;
        // SAFETY: the kernel has answered with an address.
        let address = unsafe { said.ifr_ifru.ifru_hwaddr };
        if address.sa_family != libc::ARPHRD_ETHER {
            return None;
        }
        let address = address.sa_data.first_chunk::<6>()?.map(|byte| byte as u8);
        let mtu = u32::try_from(mtu(&self.socket, interface).ok()?).ok()?;
        Some(Ethernet { address, mtu })
    }

    /// Reads what is there, as far as there is room; `WouldBlock` if there is nothing.
    pub(crate) fn receive(&self, batch: &mut Batch) -> io::Result<()> {
        batch.frames.clear();
        let mut controls = [MaybeUninit::<Control>::uninit(); READ_AT_ONCE];
        let mut parts = [MaybeUninit::<libc::iovec>::uninit(); READ_AT_ONCE];
        let mut messages = [MaybeUninit::<libc::mmsghdr>::uninit(); READ_AT_ONCE];
        let buffers = batch.bytes.chunks_exact_mut(FRAME_BYTES);
        for (((buffer, part), control), message) in
            buffers.zip(&mut parts).zip(&mut controls).zip(&mut messages)
        {
            let base = buffer.as_mut_ptr().cast::<libc::c_void>();
            let part = part.write(libc::iovec { iov_base: base, iov_len: buffer.len() });
            message.write(header(part, Some(control)));
        }
        // SAFETY: each message is written above, with pointers to a buffer, an `iovec` and room for control
        // messages of its own, of the lengths that it says; all outlive the call, which keeps none.
        let count = unsafe {
            let (fd, first) = (self.socket.as_raw_fd(), messages.as_mut_ptr().cast());
            libc::recvmmsg(fd, first, READ_AT_ONCE as libc::c_uint, libc::MSG_DONTWAIT, std::ptr::null_mut())
        };
        let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
        for (index, message) in messages.iter().take(count).enumerate() {
            // SAFETY: it is written above, and the kernel has filled it in; its control messages are within
            // `controls`, of the length that it now says.
            let (length, network) = unsafe {
                let message = message.assume_init_ref();
                (message.msg_len as usize, network_offset(&message.msg_hdr))
            };
            let base = index * FRAME_BYTES;
            batch.frames.push(frame(&batch.bytes[base..base + length.min(FRAME_BYTES)], base, network));
        }
        Ok(())
    }

    /// How many packets found no room since this was last asked.
    pub(crate) fn lost(&self) -> u64 {
        let mut counts = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
        let mut length = size_of_val(&counts) as libc::socklen_t;
        // SAFETY: the kernel writes `length` bytes to `counts` at most, which has them, and keeps no pointer.
        let result = unsafe {
            let (fd, at) = (self.socket.as_raw_fd(), (&raw mut counts).cast());
            libc::getsockopt(fd, libc::SOL_PACKET, libc::PACKET_STATISTICS, at, &raw mut length)
        };
        if result == 0 { counts.tp_drops.into() } else { 0 }
    }
}

impl AsFd for Tap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Where the IP header is, behind the link's, as the kernel says beside a packet.
///
/// # Safety
///
/// The header is one that the kernel has filled in, with its control messages.
unsafe fn network_offset(header: &libc::msghdr) -> usize {
    // SAFETY: the caller's; what is read of it is within the message, as its length is checked.
    unsafe {
        let first = libc::CMSG_FIRSTHDR(header);
        let is_it = !first.is_null()
            && ((*first).cmsg_level, (*first).cmsg_type) == (libc::SOL_PACKET, libc::PACKET_AUXDATA)
            && (*first).cmsg_len >= libc::CMSG_LEN(size_of::<libc::tpacket_auxdata>() as u32) as usize;
        if !is_it {
            return 0;
        }
        let said = libc::CMSG_DATA(first).cast::<libc::tpacket_auxdata>().read_unaligned();
        usize::from(said.tp_net)
    }
}

/// A packet whose bytes begin at `base`: what is left to do of it, a link's header, and it.
fn frame(bytes: &[u8], base: usize, network: usize) -> Frame {
    let Some(said) = bytes.first_chunk::<OFFLOAD_BYTES>() else { return Frame::default() };
    let number = |at: usize| usize::from(u16::from_ne_bytes([said[at], said[at + 1]]));
    let (flags, merged, size) = (said[0], said[1], number(4));
    let begins = number(6).checked_sub(network).filter(|_| flags & NEEDS_CHECKSUM != 0);
    let offload = Offload {
        checksum: begins.map(|begins| (begins, number(8))),
        merged: match merged {
            0 => None,
            MERGED_UDP => Some(size),
            _ => Some(0),
        },
    };
    let start = (OFFLOAD_BYTES + network).min(bytes.len());
    Frame { start: base + start, end: base + bytes.len(), offload }
}

/// Sends whole IP packets out of interfaces, to the group that they are for.
#[derive(Debug)]
pub(crate) struct Sender {
    socket: Socket,
}

impl Sender {
    pub(crate) fn open() -> io::Result<Self> {
        let socket = packet_socket(Type::DGRAM)?;
        setsockopt(&socket, sockopt::SndBufForce, &TAP_BUFFER_BYTES)
            .or_else(|_| setsockopt(&socket, sockopt::SndBuf, &TAP_BUFFER_BYTES))?;
        let _ = outflow_privilege::enlarge(socket.as_fd(), Buffer::Send, TAP_BUFFER_BYTES);
        Ok(Sender { socket })
    }

    /// Sends the first of these, each by the interface of this index, and says how many: at most
    /// [`SENT_AT_ONCE`]. Packets are to groups.
    ///
    /// # Errors
    ///
    /// As the kernel says of the very first one: EMSGSIZE if it is too long for the interface, EAGAIN and
    /// ENOBUFS if there is no room.
    pub(crate) fn send<'a>(&self, packets: impl Iterator<Item = (&'a [u8], u32)>) -> io::Result<usize> {
        let mut places = [MaybeUninit::<libc::sockaddr_ll>::uninit(); SENT_AT_ONCE];
        let mut parts = [MaybeUninit::<libc::iovec>::uninit(); SENT_AT_ONCE];
        let mut messages = [MaybeUninit::<libc::mmsghdr>::uninit(); SENT_AT_ONCE];
        let mut count = 0;
        for ((((packet, interface), place), part), message) in
            packets.zip(&mut places).zip(&mut parts).zip(&mut messages)
        {
            let place = place.write(link_address(interface, group_of(packet)));
            // Sending reads from it only.
            let base = packet.as_ptr().cast_mut().cast::<libc::c_void>();
            let part = part.write(libc::iovec { iov_base: base, iov_len: packet.len() });
            let mut header = header(part, None);
            header.msg_hdr.msg_name = std::ptr::from_mut(place).cast();
            header.msg_hdr.msg_namelen = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
            message.write(header);
            count += 1;
        }
        // SAFETY: the first `count` messages are written above, with pointers to a packet, an `iovec` and an
        // address that outlive the call, which writes to the messages alone and keeps no pointer.
        let sent = unsafe {
            let (fd, first) = (self.socket.as_raw_fd(), messages.as_mut_ptr().cast());
            libc::sendmmsg(fd, first, count, libc::MSG_DONTWAIT)
        };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }

    /// How long a packet may be on an interface.
    pub(crate) fn mtu(&self, interface: u32) -> io::Result<usize> {
        mtu(&self.socket, interface)
    }
}

fn mtu(socket: &Socket, interface: u32) -> io::Result<usize> {
    let said = ask(socket, interface, libc::SIOCGIFMTU)?;
    // SAFETY: the kernel has answered with a number.
    Ok(usize::try_from(unsafe { said.ifr_ifru.ifru_mtu }).unwrap_or(0))
}

/// Asks about an interface.
fn ask(socket: &Socket, interface: u32, what: libc::Ioctl) -> io::Result<libc::ifreq> {
    let name = nix::net::if_::if_indextoname(interface)?;
    // SAFETY: all fields of it are numbers, or unions and arrays of such, for which zeros are values.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (at, byte) in request.ifr_name.iter_mut().zip(name.to_bytes()) {
        *at = byte.cast_signed();
    }
    // SAFETY: the ioctl reads and writes one `ifreq`, which this is, with a name that ends with a zero, as
    // names are shorter than the field.
    let answered = unsafe { libc::ioctl(socket.as_raw_fd(), what, &raw mut request) };
    if answered < 0 { Err(io::Error::last_os_error()) } else { Ok(request) }
}

/// The group that a packet is for.
fn group_of(packet: &[u8]) -> IpAddr {
    let is_v6 = packet.first().is_some_and(|first| first >> 4 == 6);
    if is_v6 {
        let group: Option<[u8; 16]> = packet.get(24..40).and_then(|bytes| bytes.try_into().ok());
        return group.map_or(Ipv6Addr::UNSPECIFIED.into(), IpAddr::from);
    }
    let group: Option<[u8; 4]> = packet.get(16..20).and_then(|bytes| bytes.try_into().ok());
    group.unwrap_or_default().into()
}

fn header(part: &mut libc::iovec, control: Option<&mut MaybeUninit<Control>>) -> libc::mmsghdr {
    // SAFETY: all fields of it are numbers and pointers, for which zeros are values.
    let mut message: libc::mmsghdr = unsafe { std::mem::zeroed() };
    message.msg_hdr.msg_iov = part;
    message.msg_hdr.msg_iovlen = 1;
    if let Some(control) = control {
        message.msg_hdr.msg_control = control.as_mut_ptr().cast();
        message.msg_hdr.msg_controllen = size_of::<Control>();
    }
    message
}

/// An interface, and the address of a group on its link.
fn link_address(interface: u32, group: IpAddr) -> libc::sockaddr_ll {
    let [a, b, c, d, e, f] = group_mac(group);
    libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as libc::c_ushort,
        sll_protocol: protocol(Family::of(group)),
        sll_ifindex: interface.cast_signed(),
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 6,
        sll_addr: [a, b, c, d, e, f, 0, 0],
    }
}

/// One that hears nothing until it is bound.
fn packet_socket(kind: Type) -> io::Result<Socket> {
    Socket::new(Domain::PACKET, kind.nonblocking().cloexec(), Some(Protocol::from(0)))
}

/// Hears packets of a family on an interface; on all for 0.
fn bind(socket: &Socket, family: Family, interface: u32) -> io::Result<()> {
    let place = link_address(interface, family.all_nodes());
    let length = size_of_val(&place) as libc::socklen_t;
    // SAFETY: the kernel reads `length` bytes of `place`, which it has, and keeps no pointer.
    let result = unsafe { libc::bind(socket.as_raw_fd(), (&raw const place).cast(), length) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

const fn all_groups(interface: u32) -> libc::packet_mreq {
    libc::packet_mreq {
        mr_ifindex: interface.cast_signed(),
        mr_type: libc::PACKET_MR_ALLMULTI as libc::c_ushort,
        mr_alen: 0,
        mr_address: [0; 8],
    }
}

fn set<T: Value>(socket: &Socket, option: libc::c_int, value: &T) -> io::Result<()> {
    super::set_at(socket, libc::SOL_PACKET, option, value)
}
