//! When the machine's interfaces change: a netlink socket that says that they do, not how.

use std::io::{self, Read};
use std::os::fd::{AsRawFd, RawFd};

use nix::sys::socket::{NetlinkAddr, bind};
use socket2::{Domain, Protocol, Socket, Type};

use super::Watchable;
use crate::limits::CHANGES_AT_ONCE;

/// `RTMGRP_LINK` and `RTMGRP_IPV4_IFADDR`.
const GROUPS: u32 = 0x1 | 0x10;

/// What says that interfaces come, go, or have other addresses.
#[derive(Debug)]
pub struct Changes {
    socket: Socket,
}

impl Changes {
    /// Those of this network namespace.
    ///
    /// # Errors
    ///
    /// As the kernel says.
    pub fn open() -> io::Result<Self> {
        let kind = Type::RAW.nonblocking().cloexec();
        let protocol = Protocol::from(libc::NETLINK_ROUTE);
        let socket = Socket::new(Domain::from(libc::AF_NETLINK), kind, Some(protocol))?;
        bind(socket.as_raw_fd(), &NetlinkAddr::new(0, GROUPS))?;
        Ok(Changes { socket })
    }

    /// Forgets changes that were told. True if those were all.
    pub fn take(&self) -> bool {
        let mut message = [0; 64];
        for _ in 0..CHANGES_AT_ONCE {
            match (&self.socket).read(&mut message) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
                // Some were lost, or one was longer: that something changed is all that matters.
                _ => (),
            }
        }
        false
    }
}

impl AsRawFd for Changes {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

// SAFETY: the descriptor is that of its socket, which it never exchanges.
unsafe impl Watchable for Changes {}
