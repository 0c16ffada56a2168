//! What is asked of [`Routes`](super::Routes), and what it answers.

use std::io;
use std::net::IpAddr;

/// A MAC address.
pub type Mac = [u8; 6];

/// How a receiver is reached on the link layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hop {
    /// The device that its packets leave by. With a VLAN, bridge or bond that is the upper device,
    /// which adds what the lower ones need.
    pub ifindex: u32,
    /// That device's address.
    pub source_mac: Mac,
    /// The next hop's address: a gateway's, or the receiver's own; or a group's.
    pub target_mac: Mac,
    /// The source address that the kernel would choose, or the one that was asked for.
    pub source: IpAddr,
    /// Bytes of the largest IP packet: the device's, the route's or the path's MTU, whichever is
    /// the least.
    pub mtu: u32,
    /// Whether the device takes XDP frames to transmit (`NETDEV_XDP_ACT_NDO_XMIT`); false where
    /// the kernel cannot say.
    pub xdp_transmit: bool,
}

/// Why a receiver cannot be reached past the kernel's own IP layer.
#[derive(Debug, thiserror::Error)]
pub enum NoHop {
    /// The next hop's MAC address has not been asked for yet. A packet sent through a socket makes
    /// the kernel ask; the answer is an event.
    #[error("the MAC address of {0} is not known yet")]
    Unresolved(IpAddr),
    /// The next hop did not answer when it was asked for its MAC address.
    #[error("{0} does not answer on its link")]
    Unreachable(IpAddr),
    /// The receiver is on this machine.
    #[error("its address is one of this machine")]
    Local,
    /// The address is a broadcast one, which has no next hop.
    #[error("its address is a broadcast one")]
    Broadcast,
    /// The address is one of IPv4 within IPv6 (RFC 4291, section 2.5.5.2): a socket sends IPv4 there, if
    /// anything.
    #[error("its address is one of IPv4, written as one of IPv6")]
    Mapped,
    /// The device (named) is a tunnel or the like: there are no MAC addresses.
    #[error("the device {0} is not an Ethernet one")]
    NotEthernet(String),
    /// The route puts packets into others (MPLS, SRv6, light-weight tunnels).
    #[error("its route encapsulates packets")]
    Encapsulated,
    /// The device (named) is down or has no carrier.
    #[error("the device {0} is down")]
    Down(String),
    /// There is no route, or one that forbids (blackhole, unreachable, prohibit).
    #[error("there is no route to it: {0}")]
    NoRoute(io::Error),
    /// The kernel could not be asked.
    #[error("asking the kernel for its route: {0}")]
    System(#[from] io::Error),
}

/// What a route is asked for: destination, source if it is given, and the device that it is bound
/// to. Receivers that share these share their hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Flow {
    pub(super) to: IpAddr,
    pub(super) from: Option<IpAddr>,
    pub(super) interface: Option<u32>,
}

/// The flows for which [`Routes::resolve`](super::Routes::resolve) may answer otherwise than before.
#[derive(Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Changes {
    pub(super) all: bool,
    /// Sorted.
    pub(super) flows: Vec<Flow>,
}

impl Changes {
    /// Nothing has changed for any flow.
    pub fn is_empty(&self) -> bool {
        !self.all && self.flows.is_empty()
    }

    /// Whether what was resolved for these may be different now.
    pub fn concern(&self, to: IpAddr, from: Option<IpAddr>, interface: Option<u32>) -> bool {
        self.all || self.flows.binary_search(&Flow { to, from, interface }).is_ok()
    }
}
