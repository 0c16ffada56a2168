//! The kernel's side: a raw IGMP socket that is a multicast routing table's, and packet sockets for what has no
//! place in that.
//!
//! The only place with `unsafe`: options, ioctls and calls that no crate wraps, each behind one safe function.
#![allow(unsafe_code, reason = "MRT_*, SIOCGETSGCNT, and many packets a call, have no safe wrapper")]

mod changes;
mod filter;
mod packets;
mod types;

use std::io::{self, IoSlice, IoSliceMut};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

pub use self::changes::Changes;
pub(crate) use self::packets::{Batch, Ethernet, Frame, Listener, Offload, READ_AT_ONCE, Sender, Tap};
pub use self::types::{FlowCounts, Upcall, UpcallKind, VIFS_MAX, Vif, Vifs};
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, SockaddrIn, recvmsg, sendmsg, setsockopt, sockopt,
};
use nix::sys::time::TimeSpec;
use socket2::{Domain, InterfaceIndexOrAddress, Protocol, Socket, Type};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use self::types::{
    MRT_ADD_MFC, MRT_ADD_VIF, MRT_ASSERT, MRT_DEL_MFC, MRT_DEL_VIF, MRT_DONE, MRT_INIT, MRT_PIM, MRT_TABLE,
    MfcCtl, SIOCGETSGCNT, SgReq, Value, VifCtl,
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

/// A raw IGMP socket to which a multicast routing table of this network namespace belongs. Packets of IGMP
/// come with their IP header, in network order; upcalls look like them ([`Upcall::parse`]).
#[derive(Debug)]
pub struct Routing {
    socket: Socket,
}

impl Routing {
    /// Takes a routing table: the usual one, or that of a number. To the latter packets are led by rules
    /// (`ip mrule add iif NAME table NUMBER`).
    ///
    /// # Errors
    ///
    /// If privileges lack, another program has the table, or the kernel has none; it says what to do.
    pub fn open(table: Option<u32>) -> Result<Self, Error> {
        let failed = |step| move |error| Error::open(step, table, error);
        let protocol = Protocol::from(libc::IPPROTO_IGMP);
        let kind = Type::RAW.nonblocking().cloexec();
        let socket = Socket::new(Domain::IPV4, kind, Some(protocol)).map_err(failed(Step::Socket))?;
        if let Some(table) = table {
            // If this may not, the helper may.
            let chosen = set(&socket, MRT_TABLE, &table);
            let chosen =
                chosen.or_else(|error| match outflow_privilege::choose_table(socket.as_fd(), table) {
                    Err(none) if none.kind() == io::ErrorKind::PermissionDenied => Err(error),
                    chosen => chosen,
                });
            chosen.map_err(failed(Step::Table))?;
        }
        set(&socket, MRT_INIT, &1_i32).map_err(failed(Step::Init))?;
        let routing = Routing { socket };
        routing.prepare().map_err(failed(Step::Options))?;
        Ok(routing)
    }

    fn prepare(&self) -> io::Result<()> {
        // Upcalls of packets that come in by another interface: by any, or at least by one they go out of.
        set(&self.socket, MRT_PIM, &1_i32).or_else(|_| set(&self.socket, MRT_ASSERT, &1_i32))?;
        self.socket.set_header_included_v4(true)?;
        self.socket.set_multicast_loop_v4(false)?;
        self.socket.set_recv_buffer_size(SOCKET_BUFFER_BYTES)?;
        setsockopt(&self.socket, sockopt::Ipv4PacketInfo, &true)?;
        setsockopt(&self.socket, sockopt::ReceiveTimestampns, &true)?;
        Ok(())
    }

    /// Adds an interface, by its index, under a number that is free.
    ///
    /// # Errors
    ///
    /// As the kernel says.
    pub fn add_vif(&self, vif: Vif, index: u32) -> io::Result<()> {
        set(&self.socket, MRT_ADD_VIF, &VifCtl::new(vif, index))
    }

    /// Removes an interface.
    ///
    /// # Errors
    ///
    /// As the kernel says: EADDRNOTAVAIL if it is gone, as it is with its device.
    pub fn remove_vif(&self, vif: Vif) -> io::Result<()> {
        set(&self.socket, MRT_DEL_VIF, &VifCtl::new(vif, 0))
    }

    /// Sets where packets of a source and a group come from, and where they go. Packets that wait for it
    /// go there, too.
    ///
    /// # Errors
    ///
    /// As the kernel says: ENFILE if `parent` is no interface of the table.
    pub fn set_flow(&self, source: Ipv4Addr, group: Ipv4Addr, parent: Vif, to: Vifs) -> io::Result<()> {
        set(&self.socket, MRT_ADD_MFC, &MfcCtl::new(source, group, parent, to))
    }

    /// Removes what was set for a source and a group.
    ///
    /// # Errors
    ///
    /// As the kernel says: ENOENT if there is nothing.
    pub fn remove_flow(&self, source: Ipv4Addr, group: Ipv4Addr, parent: Vif) -> io::Result<()> {
        set(&self.socket, MRT_DEL_MFC, &MfcCtl::new(source, group, parent, Vifs::default()))
    }

    /// What was counted of a source and a group.
    ///
    /// # Errors
    ///
    /// As the kernel says: EADDRNOTAVAIL if nothing is set for them.
    pub fn flow_counts(&self, source: Ipv4Addr, group: Ipv4Addr) -> io::Result<FlowCounts> {
        let (source, group) = (source.octets(), group.octets());
        let mut request = SgReq { source, group, packets: 0, bytes: 0, wrong: 0 };
        // SAFETY: the ioctl reads and writes one `sioc_sg_req`, which this is, and keeps no pointer.
        let result = unsafe { libc::ioctl(self.socket.as_raw_fd(), SIOCGETSGCNT, &raw mut request) };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        let SgReq { packets, bytes, wrong, .. } = request;
        Ok(FlowCounts { packets, bytes, wrong_interface: wrong })
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
    pub fn send(&self, packet: &[u8], to: Ipv4Addr, interface: u32) -> io::Result<()> {
        let out = libc::in_pktinfo {
            ipi_ifindex: interface.cast_signed(),
            ipi_spec_dst: libc::in_addr { s_addr: 0 },
            ipi_addr: libc::in_addr { s_addr: 0 },
        };
        let control = [ControlMessage::Ipv4PacketInfo(&out)];
        let to = SockaddrIn::from(SocketAddrV4::new(to, 0));
        let fd = self.socket.as_raw_fd();
        sendmsg(fd, &[IoSlice::new(packet)], &control, MsgFlags::empty(), Some(&to))?;
        Ok(())
    }
}

impl Drop for Routing {
    fn drop(&mut self) {
        // Closing would do it, but only once no other process has the socket, as a child process may.
        let _gone_already = set(&self.socket, MRT_DONE, &0_i32);
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
    pub fn new(groups: &[Ipv4Addr], interface: u32) -> io::Result<Self> {
        let socket = Socket::new(Domain::IPV4, Type::DGRAM.cloexec(), None)?;
        for group in groups {
            socket.join_multicast_v4_n(group, &InterfaceIndexOrAddress::Index(interface))?;
        }
        Ok(Membership { _socket: socket })
    }
}

/// Of the wall clock.
const fn nanoseconds(time: &TimeSpec) -> u64 {
    time.tv_sec().cast_unsigned() * 1_000_000_000 + time.tv_nsec().cast_unsigned()
}

/// Sets an option of the level of IP.
fn set<T: Value>(socket: &Socket, option: libc::c_int, value: &T) -> io::Result<()> {
    set_at(socket, libc::IPPROTO_IP, option, value)
}

fn set_at<T: Value>(socket: &Socket, level: libc::c_int, option: libc::c_int, value: &T) -> io::Result<()> {
    let length = size_of::<T>() as libc::socklen_t;
    let value = std::ptr::from_ref(value).cast::<libc::c_void>();
    // SAFETY: the kernel reads `length` bytes of `value`, which it has, and keeps no pointer.
    let result = unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, value, length) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
