//! Devices that this process has made: switched on, with addresses and a route.

use std::io;
use std::net::IpAddr;

use netlink_packet_core::{NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::address::{AddressAttribute, AddressFlags, AddressMessage};
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkMessage};
use netlink_packet_route::route::{
    RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use crate::socket::Netlink;

/// Sets devices up in the network namespace in which it was opened.
pub struct Setup {
    netlink: Netlink,
}

impl Setup {
    /// Opens a socket of NETLINK_ROUTE.
    ///
    /// # Errors
    /// What the system refused.
    pub fn open() -> io::Result<Self> {
        Ok(Setup { netlink: Netlink::open(libc::NETLINK_ROUTE, &[])? })
    }

    /// Switches a device on, with a queue of this many packets.
    ///
    /// # Errors
    /// What the kernel refused; `CAP_NET_ADMIN` is missing.
    pub fn switch_on(&mut self, ifindex: u32, queue: Option<u32>) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = ifindex;
        message.header.flags = LinkFlags::Up;
        message.header.change_mask = LinkFlags::Up;
        message.attributes.extend(queue.map(LinkAttribute::TxQueueLen));
        self.netlink.tell(NLM_F_ACK, RouteNetlinkMessage::SetLink(message))
    }

    /// Gives a device an address, and says which one is at its other end.
    ///
    /// # Errors
    /// As [`Self::switch_on`].
    pub fn add_address(&mut self, ifindex: u32, (here, there): (IpAddr, IpAddr)) -> io::Result<()> {
        self.add(ifindex, (here, there), bits(there))
    }

    /// Gives a device an address of a network of this many bits, all of which the device leads to.
    ///
    /// # Errors
    /// As [`Self::switch_on`].
    pub fn add_network(&mut self, ifindex: u32, here: IpAddr, bits: u8) -> io::Result<()> {
        self.add(ifindex, (here, here), bits)
    }

    fn add(&mut self, ifindex: u32, (here, there): (IpAddr, IpAddr), bits: u8) -> io::Result<()> {
        let mut message = AddressMessage::default();
        message.header.family = family(here);
        message.header.prefix_len = bits;
        message.header.index = ifindex;
        // Nothing else is there that could have the address.
        let no_detection = AddressFlags::Nodad;
        message.attributes.extend([AddressAttribute::Local(here), AddressAttribute::Address(there)]);
        message.attributes.push(AddressAttribute::Flags(no_detection));
        self.netlink.tell(NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, RouteNetlinkMessage::NewAddress(message))
    }

    /// Has a device lead to all addresses of a family, that of `like`.
    ///
    /// # Errors
    /// As [`Self::switch_on`].
    pub fn lead_everywhere(&mut self, ifindex: u32, like: IpAddr) -> io::Result<()> {
        let mut message = RouteMessage::default();
        message.header.address_family = family(like);
        message.header.table = RouteHeader::RT_TABLE_MAIN;
        message.header.protocol = RouteProtocol::Static;
        message.header.scope = RouteScope::Link;
        message.header.kind = RouteType::Unicast;
        message.attributes.push(RouteAttribute::Oif(ifindex));
        self.netlink.tell(NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, RouteNetlinkMessage::NewRoute(message))
    }
}

fn family(ip: IpAddr) -> AddressFamily {
    match ip {
        IpAddr::V4(_) => AddressFamily::Inet,
        IpAddr::V6(_) => AddressFamily::Inet6,
    }
}

fn bits(ip: IpAddr) -> u8 {
    if ip.is_ipv4() { 32 } else { 128 }
}
