//! The kernel's side: a raw socket of IGMP or ICMPv6 that is a multicast routing table's, and packet sockets for what
//! has no place in that.
//!
//! The only place with `unsafe`: options, ioctls and calls that no crate wraps, each behind one safe function.
#![allow(unsafe_code, reason = "MRT_*, SIOCGETSGCNT, and many packets a call, have no safe wrapper")]

mod changes;
mod filter;
mod packets;
mod types;

use std::io::{self, IoSlice, IoSliceMut};
use std::net::{IpAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

pub use self::changes::Changes;
pub use self::packets::Listener;
pub(crate) use self::packets::{Batch, Ethernet, Frame, Offload, READ_AT_ONCE, Sender, Tap};
pub use self::types::{FlowCounts, Upcall, UpcallKind, VIFS_MAX, Vif, Vifs};
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, SockaddrIn, SockaddrIn6, recvmsg, sendmsg, setsockopt,
    sockopt,
};
use nix::sys::time::TimeSpec;
use outflow_routing::membership::Family;
use socket2::{Domain, InterfaceIndexOrAddress, Protocol, Socket, Type};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use self::types::{
    MRT_ADD_MFC, MRT_ADD_VIF, MRT_ASSERT, MRT_DEL_MFC, MRT_DEL_VIF, MRT_DONE, MRT_INIT, MRT_PIM, MRT_TABLE,
    Mf6cCtl, MfcCtl, Mif6Ctl, Place6, SIOCGETSGCNT, SgReq, SgReq6, Value, VifCtl,
};
use crate::error::{Error, Step};
use crate::limits::SOCKET_BUFFER_BYTES;

/// A packet or upcall that was read.
#[derive(Debug, Clone, Copy)]
pub struct Received {
    /// Bytes of it, from the IP header on.
    pub length: usize,
    /// The index of the interface that it came in by; 0 if the kernel did not say.
    pub interface: u32,
    /// When it came in: nanoseconds of the wall clock.
    pub came_ns: u64,
}

/// What a runtime can wait for.
///
/// # Safety
///
/// It has one open descriptor as long as it lives, and always gives that one.
pub unsafe trait Watchable: AsRawFd {
    /// It as a runtime waits for it to be readable. To be called within one.
    ///
    /// # Errors
    ///
    /// As the system says.
    fn watched(self) -> io::Result<AsyncFd<Self>>
    where
        Self: Sized,
    {
        // SAFETY: the trait asks of its implementations what this needs.
        let watched = unsafe { AsyncFd::register_with_interest(self, Interest::READABLE) };
        watched.map_err(io::Error::from)
    }
}

/// A raw socket to which a multicast routing table of this network namespace belongs.
///
/// Of IPv4, packets of IGMP come by it with their IP header, in network order, and upcalls look like them
/// ([`Upcall::parse`]). Of IPv6, only upcalls come: messages of MLD, which come without their headers here, are heard
/// otherwise.
#[derive(Debug)]
pub struct Routing {
    socket: Socket,
    family: Family,
}

impl Routing {
    /// Takes a routing table: the usual one, or that of a number. To the latter packets are led by rules
    /// (`ip mrule add iif NAME table NUMBER`; `ip -6 mrule`).
    ///
    /// # Errors
    ///
    /// If privileges lack, another program has the table, or the kernel has none; it says what to do.
    pub fn open(family: Family, table: Option<u32>) -> Result<Self, Error> {
        let failed = |step| move |error| Error::open(step, (family, table), error);
        let (domain, protocol) = match family {
            Family::V4 => (Domain::IPV4, libc::IPPROTO_IGMP),
            Family::V6 => (Domain::IPV6, libc::IPPROTO_ICMPV6),
        };
        let kind = Type::RAW.nonblocking().cloexec();
        let socket =
            Socket::new(domain, kind, Some(Protocol::from(protocol))).map_err(failed(Step::Socket))?;
        let routing = Routing { socket, family };
        if let Some(table) = table {
            // If this may not, the helper may.
            let chosen = routing.set(MRT_TABLE, &table);
            let helped = |error| match outflow_privilege::choose_table(routing.socket.as_fd(), table) {
                Err(none) if none.kind() == io::ErrorKind::PermissionDenied => Err(error),
                chosen => chosen,
            };
            chosen.or_else(helped).map_err(failed(Step::Table))?;
        }
        routing.set(MRT_INIT, &1_i32).map_err(failed(Step::Init))?;
        routing.prepare().map_err(failed(Step::Options))?;
        Ok(routing)
    }

    fn prepare(&self) -> io::Result<()> {
        // Upcalls of packets that come in by another interface: by any, or at least by one they go out of.
        self.set(MRT_PIM, &1_i32).or_else(|_| self.set(MRT_ASSERT, &1_i32))?;
        self.socket.set_recv_buffer_size(SOCKET_BUFFER_BYTES)?;
        match self.family {
            Family::V4 => {
                self.socket.set_header_included_v4(true)?;
                self.socket.set_multicast_loop_v4(false)?;
                setsockopt(&self.socket, sockopt::Ipv4PacketInfo, &true)?;
                setsockopt(&self.socket, sockopt::ReceiveTimestampns, &true)?;
            }
            Family::V6 => {
                self.socket.set_header_included_v6(true)?;
                self.socket.set_multicast_loop_v6(false)?;
                // A bit each for types of messages: none comes. Upcalls are none.
                const ICMPV6_FILTER: libc::c_int = 1;
                set_at(&self.socket, libc::IPPROTO_ICMPV6, ICMPV6_FILTER, &[u32::MAX; 8])?;
            }
        }
        Ok(())
    }

    /// Adds an interface, by its index, under a number that is free.
    ///
    /// # Errors
    ///
    /// As the kernel says; an index that is larger than 65,535 has no room in what that takes of IPv6.
    pub fn add_vif(&self, vif: Vif, index: u32) -> io::Result<()> {
        match self.family {
            Family::V4 => self.set(MRT_ADD_VIF, &VifCtl::new(vif, index)),
            Family::V6 => {
                let mif = Mif6Ctl::new(vif, index).ok_or(io::ErrorKind::InvalidInput)?;
                self.set(MRT_ADD_VIF, &mif)
            }
        }
    }

    /// Removes an interface.
    ///
    /// # Errors
    ///
    /// As the kernel says: EADDRNOTAVAIL if it is gone, as it is with its device.
    pub fn remove_vif(&self, vif: Vif) -> io::Result<()> {
        match self.family {
            Family::V4 => self.set(MRT_DEL_VIF, &VifCtl::new(vif, 0)),
            Family::V6 => self.set(MRT_DEL_VIF, &libc::c_int::from(vif)),
        }
    }

    /// Sets where packets of a source and a group come from, and where they go. Packets that wait for it
    /// go there, too.
    ///
    /// # Errors
    ///
    /// As the kernel says: ENFILE if `parent` is no interface of the table.
    pub fn set_flow(&self, source: IpAddr, group: IpAddr, parent: Vif, to: Vifs) -> io::Result<()> {
        self.change_flow(MRT_ADD_MFC, (source, group), parent, to)
    }

    /// Removes what was set for a source and a group.
    ///
    /// # Errors
    ///
    /// As the kernel says: ENOENT if there is nothing.
    pub fn remove_flow(&self, source: IpAddr, group: IpAddr, parent: Vif) -> io::Result<()> {
        self.change_flow(MRT_DEL_MFC, (source, group), parent, Vifs::default())
    }

    fn change_flow(
        &self,
        change: libc::c_int,
        (source, group): (IpAddr, IpAddr),
        parent: Vif,
        to: Vifs,
    ) -> io::Result<()> {
        match (source, group) {
            (IpAddr::V4(source), IpAddr::V4(group)) => {
                self.set(change, &MfcCtl::new(source, group, parent, to))
            }
            (IpAddr::V6(source), IpAddr::V6(group)) => {
                self.set(change, &Mf6cCtl::new(source, group, parent, to))
            }
            _ => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    /// What was counted of a source and a group.
    ///
    /// # Errors
    ///
    /// As the kernel says: EADDRNOTAVAIL if nothing is set for them.
    pub fn flow_counts(&self, source: IpAddr, group: IpAddr) -> io::Result<FlowCounts> {
        match (source, group) {
            (IpAddr::V4(source), IpAddr::V4(group)) => {
                let (source, group) = (source.octets(), group.octets());
                let mut request = SgReq { source, group, packets: 0, bytes: 0, wrong: 0 };
                // SAFETY: the ioctl reads and writes one `sioc_sg_req`, which this is, and keeps no pointer.
                let result = unsafe { libc::ioctl(self.socket.as_raw_fd(), SIOCGETSGCNT, &raw mut request) };
                let SgReq { packets, bytes, wrong, .. } = request;
                counted(result, FlowCounts { packets, bytes, wrong_interface: wrong })
            }
            (IpAddr::V6(source), IpAddr::V6(group)) => {
                let (source, group) = (Place6::new(source), Place6::new(group));
                let mut request = SgReq6 { source, group, packets: 0, bytes: 0, wrong: 0 };
                // SAFETY: as above, of a `sioc_sg_req6`.
                let result = unsafe { libc::ioctl(self.socket.as_raw_fd(), SIOCGETSGCNT, &raw mut request) };
                let SgReq6 { packets, bytes, wrong, .. } = request;
                counted(result, FlowCounts { packets, bytes, wrong_interface: wrong })
            }
            _ => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    /// Reads the next packet or upcall; what is longer than `buffer` is cut off.
    ///
    /// # Errors
    ///
    /// As the kernel says: `WouldBlock` if there is none.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Received> {
        let mut control = nix::cmsg_space!(libc::in_pktinfo, libc::timespec);
        let mut parts = [IoSliceMut::new(buffer)];
        let fd = self.socket.as_raw_fd();
        let message = recvmsg::<()>(fd, &mut parts, Some(&mut control), MsgFlags::empty())?;
        let mut received = Received { length: message.bytes, interface: 0, came_ns: 0 };
        for part in message.cmsgs()? {
            match part {
                ControlMessageOwned::Ipv4PacketInfo(info) => {
                    received.interface = info.ipi_ifindex.cast_unsigned();
                }
                ControlMessageOwned::ScmTimestampns(time) => {
                    received.came_ns = nanoseconds(&time);
                }
                _ => (),
            }
        }
        Ok(received)
    }

    /// Sends a whole IP packet out of an interface.
    ///
    /// # Errors
    ///
    /// As the kernel says.
    pub fn send(&self, packet: &[u8], to: IpAddr, interface: u32) -> io::Result<()> {
        let (fd, parts) = (self.socket.as_raw_fd(), [IoSlice::new(packet)]);
        match to {
            IpAddr::V4(to) => {
                let none = libc::in_addr { s_addr: 0 };
                let index = interface.cast_signed();
                let out = libc::in_pktinfo { ipi_ifindex: index, ipi_spec_dst: none, ipi_addr: none };
                let control = [ControlMessage::Ipv4PacketInfo(&out)];
                let to = SockaddrIn::from(SocketAddrV4::new(to, 0));
                sendmsg(fd, &parts, &control, MsgFlags::empty(), Some(&to))?;
            }
            IpAddr::V6(to) => {
                let none = libc::in6_addr { s6_addr: [0; 16] };
                let out = libc::in6_pktinfo { ipi6_addr: none, ipi6_ifindex: interface };
                let control = [ControlMessage::Ipv6PacketInfo(&out)];
                let to = SockaddrIn6::from(SocketAddrV6::new(to, 0, 0, interface));
                sendmsg(fd, &parts, &control, MsgFlags::empty(), Some(&to))?;
            }
        }
        Ok(())
    }

    /// Sets an option of multicast routing.
    fn set<T: Value>(&self, option: libc::c_int, value: &T) -> io::Result<()> {
        let level = match self.family {
            Family::V4 => libc::IPPROTO_IP,
            Family::V6 => libc::IPPROTO_IPV6,
        };
        set_at(&self.socket, level, option, value)
    }
}

fn counted(result: libc::c_int, counts: FlowCounts) -> io::Result<FlowCounts> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(counts) }
}

impl Drop for Routing {
    fn drop(&mut self) {
        // Closing would do it, but only once no other process has the socket, as a child process may.
        let _gone_already = self.set(MRT_DONE, &0_i32);
    }
}

impl AsRawFd for Routing {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

// SAFETY: the descriptor is that of its socket, which it never exchanges.
unsafe impl Watchable for Routing {}

impl AsFd for Routing {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Membership in groups of an interface, as long as this lives. It has a socket of its own, so that
/// `igmp_max_memberships`, which is counted by socket, is never reached by many interfaces.
#[derive(Debug)]
pub struct Membership {
    _socket: Socket,
}

impl Membership {
    /// Joins these groups.
    ///
    /// # Errors
    ///
    /// As the kernel says: ENOBUFS if they are more than `net.ipv4.igmp_max_memberships`.
    pub fn new(groups: &[IpAddr], interface: u32) -> io::Result<Self> {
        let is_v6 = groups.iter().any(IpAddr::is_ipv6);
        let domain = if is_v6 { Domain::IPV6 } else { Domain::IPV4 };
        let socket = Socket::new(domain, Type::DGRAM.cloexec(), None)?;
        for group in groups {
            match group {
                IpAddr::V4(group) => {
                    socket.join_multicast_v4_n(group, &InterfaceIndexOrAddress::Index(interface))?;
                }
                IpAddr::V6(group) => socket.join_multicast_v6(group, interface)?,
            }
        }
        Ok(Membership { _socket: socket })
    }
}

/// Of the wall clock.
const fn nanoseconds(time: &TimeSpec) -> u64 {
    time.tv_sec().cast_unsigned() * 1_000_000_000 + time.tv_nsec().cast_unsigned()
}

fn set_at<T: Value>(socket: &Socket, level: libc::c_int, option: libc::c_int, value: &T) -> io::Result<()> {
    let length = size_of::<T>() as libc::socklen_t;
    let value = std::ptr::from_ref(value).cast::<libc::c_void>();
    // SAFETY: the kernel reads `length` bytes of `value`, which it has, and keeps no pointer.
    let result = unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, value, length) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
