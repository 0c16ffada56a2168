//! Has the kernel make sure of neighbours: packets that pass its neighbour code do not keep them fresh.

use std::io;
use std::net::IpAddr;

use crate::limits::NETLINK_MESSAGE_BYTES;
use crate::socket::Netlink;
use crate::tables::NextHop;
use crate::wire;

/// A socket of its own, as refusals may come as answers by the hundred. Needs `CAP_NET_ADMIN`.
pub struct Confirmer {
    netlink: Netlink,
}

impl Confirmer {
    /// Opens the socket, in the network namespace of this thread.
    ///
    /// # Errors
    /// What the system refused.
    pub fn open() -> io::Result<Self> {
        Ok(Confirmer { netlink: Netlink::open(libc::NETLINK_ROUTE, &[])? })
    }

    /// Has these confirmed: the index of the device that each is behind, and its address.
    ///
    /// # Errors
    /// This is not permitted, or not now.
    pub fn confirm(&mut self, neighbours: &[(u32, IpAddr)]) -> io::Result<()> {
        for &(ifindex, address) in neighbours {
            self.netlink.add(0, wire::use_request(&NextHop { ifindex, address }));
            if self.netlink.waiting_bytes() >= NETLINK_MESSAGE_BYTES / 2 {
                self.send()?;
            }
        }
        if self.netlink.waiting_bytes() > 0 { self.send() } else { Ok(()) }
    }

    fn send(&mut self) -> io::Result<()> {
        let sent = self.netlink.send();
        // Answers are only refusals: of a neighbour that is gone by now, which events tell; or all.
        let mut refused = None;
        while let Ok(true) = self.netlink.receive(|message| {
            refused = message.error().err().filter(|e| e.raw_os_error() == Some(libc::EPERM));
            Ok(())
        }) {}
        refused.map_or(sent, Err)
    }
}
