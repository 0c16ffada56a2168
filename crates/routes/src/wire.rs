//! Messages of NETLINK_ROUTE, as far as they matter here: requests made, answers and events read.
//!
//! Attributes are read one by one, and those that the parser does not understand are passed over:
//! a kernel that says something new must not hide what it said before.

#[cfg(test)]
mod tests;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use netlink_packet_core::{DecodeError, NlaBuffer, NlasIterator, Parseable, ParseableParametrized};
use netlink_packet_route::address::{AddressAttribute, AddressFlags, AddressMessage};
use netlink_packet_route::link::{
    LinkAttribute, LinkExtentMask, LinkFlags, LinkHeader, LinkLayerType, LinkMessage,
};
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourFlags, NeighbourHeader, NeighbourMessage, NeighbourState,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteMetric, RouteType, RouteVia,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use super::hop::{Flow, Mac};
use super::tables::{Link, LinkKind, LocalAddress, NextHop, Path, Reach};

/// Bytes before the attributes: `struct ifinfomsg`, `struct ndmsg` (linux/rtnetlink.h,
/// linux/neighbour.h).
const LINK_HEADER_BYTES: usize = 16;
const NEIGHBOUR_HEADER_BYTES: usize = 12;
/// Bytes before the value of an attribute: `struct nlattr` (linux/netlink.h).
const ATTRIBUTE_HEADER_BYTES: usize = 4;

/// `RTM_NEWNEXTHOP` and `RTM_DELNEXTHOP` (linux/rtnetlink.h).
const NEW_NEXT_HOP: u16 = 104;
const DELETE_NEXT_HOP: u16 = 105;

/// What an event, or a part of a dump, says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Heard {
    /// A device is as it says, or gone.
    Link { index: u32, link: Option<Link> },
    /// A device's MTU for packets of IPv6.
    MtuV6 { index: u32, mtu: u32 },
    /// A neighbour is as it says, or forgotten.
    Neighbour { at: NextHop, reach: Option<Reach> },
    /// An address of this machine has come or gone.
    Address { address: LocalAddress, there: bool },
    /// Something about the routes to this prefix.
    Route { to: IpAddr, length: u8 },
    /// Something about the rules, which may change every route.
    Rules,
    /// Something about next hop objects. What routes gain by them has events of its own; those
    /// that go with one do not.
    NextHops,
}

/// Reads an event or a part of a dump; nothing if it does not matter here.
///
/// # Errors
/// The message is not what its type says.
pub(super) fn read(kind: u16, payload: &[u8]) -> Result<Option<Heard>, DecodeError> {
    match kind {
        libc::RTM_NEWLINK | libc::RTM_DELLINK => read_link(payload, kind == libc::RTM_NEWLINK),
        libc::RTM_NEWNEIGH | libc::RTM_DELNEIGH => read_neighbour(payload, kind == libc::RTM_NEWNEIGH),
        libc::RTM_NEWADDR | libc::RTM_DELADDR => read_address(payload, kind == libc::RTM_NEWADDR),
        libc::RTM_NEWROUTE | libc::RTM_DELROUTE => {
            let message = RouteMessage::parse(payload)?;
            let to = message.attributes.iter().find_map(|attribute| match attribute {
                RouteAttribute::Destination(to) => ip(to),
                _ => None,
            });
            let any: IpAddr = match message.header.address_family {
                AddressFamily::Inet6 => Ipv6Addr::UNSPECIFIED.into(),
                _ => Ipv4Addr::UNSPECIFIED.into(),
            };
            let length = message.header.destination_prefix_length;
            Ok(Some(Heard::Route { to: to.unwrap_or(any), length }))
        }
        libc::RTM_NEWRULE | libc::RTM_DELRULE => Ok(Some(Heard::Rules)),
        NEW_NEXT_HOP | DELETE_NEXT_HOP => Ok(Some(Heard::NextHops)),
        _ => Ok(None),
    }
}

fn read_link(payload: &[u8], there: bool) -> Result<Option<Heard>, DecodeError> {
    let header = LinkHeader::parse(payload)?;
    let said = &payload[LINK_HEADER_BYTES..];
    if header.interface_family == AddressFamily::Inet6 {
        let mtu = mtu_v6(said, &[libc::IFLA_PROTINFO]);
        return Ok(mtu.map(|mtu| Heard::MtuV6 { index: header.index, mtu }));
    }
    // A bridge speaks of its ports here, too: one that it lets go is no device that is gone.
    if header.interface_family != AddressFamily::Unspec {
        return Ok(None);
    }
    let flags = header.flags;
    let mut link = Link {
        name: String::new(),
        kind: match header.link_layer_type {
            LinkLayerType::Ether => LinkKind::Ethernet,
            LinkLayerType::Loopback => LinkKind::Loopback,
            _ => LinkKind::Other,
        },
        mac: None,
        broadcast: None,
        mtu: 0,
        mtu_v6: mtu_v6(said, &[libc::IFLA_AF_SPEC, libc::AF_INET6 as u16]),
        up: flags.contains(LinkFlags::Up | LinkFlags::LowerUp),
        no_arp: flags.contains(LinkFlags::Noarp),
        point_to_point: flags.contains(LinkFlags::Pointopoint),
    };
    for attribute in attributes(said, header.interface_family) {
        match attribute {
            LinkAttribute::IfName(name) => link.name = name,
            LinkAttribute::Address(bytes) => link.mac = mac(&bytes),
            LinkAttribute::Broadcast(bytes) => link.broadcast = mac(&bytes),
            LinkAttribute::Mtu(mtu) => link.mtu = mtu,
            _ => {}
        }
    }
    Ok(Some(Heard::Link { index: header.index, link: there.then_some(link) }))
}

/// The MTU that IPv6 has for a device, in attributes within others: of all that is said of it, or where IPv6 speaks by
/// itself, as when a router has told one.
fn mtu_v6(bytes: &[u8], within: &[u16]) -> Option<u32> {
    // IFLA_INET6_CONF and DEVCONF_MTU6 of linux/if_link.h and linux/ipv6.h.
    const SETTINGS: u16 = 2;
    const MTU: usize = 2;
    let settings = within.iter().chain(&[SETTINGS]).try_fold(bytes, |bytes, kind| {
        let found = NlasIterator::new(bytes).flatten().find(|nla| nla.kind() == *kind)?;
        let length = found.length().into();
        found.into_inner().get(ATTRIBUTE_HEADER_BYTES..length)
    })?;
    let (words, _) = settings.as_chunks::<4>();
    words.get(MTU).map(|word| u32::from_ne_bytes(*word)).filter(|mtu| *mtu > 0)
}

fn read_neighbour(payload: &[u8], there: bool) -> Result<Option<Heard>, DecodeError> {
    let header = NeighbourHeader::parse(payload)?;
    // Bridges' forwarding tables come here, too; and addresses that this machine answers for.
    let is_ip = matches!(header.family, AddressFamily::Inet | AddressFamily::Inet6);
    if !is_ip || header.flags.contains(NeighbourFlags::Proxy) {
        return Ok(None);
    }
    let (mut address, mut target) = (None, None);
    for attribute in attributes(&payload[NEIGHBOUR_HEADER_BYTES..], header.family) {
        match attribute {
            NeighbourAttribute::Destination(NeighbourAddress::Inet(ip)) => address = Some(IpAddr::V4(ip)),
            NeighbourAttribute::Destination(NeighbourAddress::Inet6(ip)) => address = Some(IpAddr::V6(ip)),
            NeighbourAttribute::LinkLayerAddress(bytes) => target = mac(&bytes),
            _ => {}
        }
    }
    let Some(address) = address else { return Ok(None) };
    let fixed = matches!(header.state, NeighbourState::Permanent | NeighbourState::Noarp)
        || header.flags.contains(NeighbourFlags::ExtLearned);
    let reach = match (header.state, target) {
        (NeighbourState::Failed, _) => Reach::Failed,
        (NeighbourState::None | NeighbourState::Incomplete, _) | (_, None) => Reach::Asked,
        (_, Some(mac)) => Reach::Known { mac, fixed },
    };
    let at = NextHop { ifindex: header.ifindex, address };
    Ok(Some(Heard::Neighbour { at, reach: there.then_some(reach) }))
}

fn read_address(payload: &[u8], there: bool) -> Result<Option<Heard>, DecodeError> {
    let message = AddressMessage::parse(payload)?;
    let (mut local, mut address, mut is_tried) = (None, None, false);
    for attribute in message.attributes {
        match attribute {
            AddressAttribute::Local(ip) => local = Some(ip),
            AddressAttribute::Address(ip) => address = Some(ip),
            AddressAttribute::Flags(flags) => {
                is_tried =
                    flags.contains(AddressFlags::Tentative) && !flags.contains(AddressFlags::Optimistic);
            }
            _ => {}
        }
    }
    // Of IPv4, the other one is that of a network or of a peer. An address of IPv6 is used when no other host has it,
    // which another event tells (RFC 4862, section 5.4).
    let own = local.or(address.filter(IpAddr::is_ipv6)).filter(|_| !(there && is_tried));
    Ok(own.map(|ip| {
        let (ifindex, length) = (message.header.index, message.header.prefix_len);
        Heard::Address { address: LocalAddress { ifindex, ip, length }, there }
    }))
}

/// The attributes that the parser understands.
fn attributes<A>(bytes: &[u8], family: AddressFamily) -> impl Iterator<Item = A>
where
    A: for<'a> ParseableParametrized<NlaBuffer<&'a [u8]>, AddressFamily>,
{
    NlasIterator::new(bytes).filter_map(move |attribute| A::parse_with_param(&attribute.ok()?, family).ok())
}

fn mac(bytes: &[u8]) -> Option<Mac> {
    bytes.try_into().ok()
}

fn ip(address: &RouteAddress) -> Option<IpAddr> {
    match address {
        RouteAddress::Inet(ip) => Some(IpAddr::V4(*ip)),
        RouteAddress::Inet6(ip) => Some(IpAddr::V6(*ip)),
        _ => None,
    }
}

fn family(address: IpAddr) -> AddressFamily {
    if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 }
}

/// The dumps that fill the tables again.
pub(super) fn dumps() -> [RouteNetlinkMessage; 3] {
    let mut link = LinkMessage::default();
    link.attributes.push(LinkAttribute::ExtMask(vec![LinkExtentMask::SkipStats]));
    [
        RouteNetlinkMessage::GetLink(link),
        RouteNetlinkMessage::GetNeighbour(NeighbourMessage::default()),
        RouteNetlinkMessage::GetAddress(AddressMessage::default()),
    ]
}

/// Asks for the route of a flow.
pub(super) fn route_request(flow: &Flow) -> RouteNetlinkMessage {
    let mut message = RouteMessage::default();
    let bits = if flow.to.is_ipv4() { 32 } else { 128 };
    message.header = RouteHeader {
        address_family: family(flow.to),
        destination_prefix_length: bits,
        source_prefix_length: if flow.from.is_some() { bits } else { 0 },
        ..RouteHeader::default()
    };
    message.attributes.push(RouteAttribute::Destination(flow.to.into()));
    message.attributes.extend(flow.from.map(|from| RouteAttribute::Source(from.into())));
    message.attributes.extend(flow.interface.map(RouteAttribute::Oif));
    RouteNetlinkMessage::GetRoute(message)
}

/// The answer to [`route_request`].
///
/// # Errors
/// The message is not one of a route.
pub(super) fn read_path(flow: &Flow, kind: u16, payload: &[u8]) -> io::Result<Path> {
    if kind != libc::RTM_NEWROUTE {
        return Err(unexpected("an answer that is no route"));
    }
    let message = RouteMessage::parse(payload).map_err(unexpected)?;
    match message.header.kind {
        RouteType::Unicast => {}
        RouteType::Multicast if flow.to.is_multicast() => {}
        RouteType::Local => return Ok(Path::Local),
        RouteType::Broadcast | RouteType::Multicast | RouteType::Anycast => return Ok(Path::Broadcast),
        _ => return Ok(Path::Nowhere(libc::ENETUNREACH)),
    }
    let (mut ifindex, mut address, mut source, mut mtu) = (None, flow.to, flow.from, None);
    for attribute in &message.attributes {
        match attribute {
            RouteAttribute::Oif(index) => ifindex = Some(*index),
            RouteAttribute::Gateway(gateway) => address = ip(gateway).unwrap_or(address),
            RouteAttribute::Via(RouteVia::Inet(ip)) => address = IpAddr::V4(*ip),
            RouteAttribute::Via(RouteVia::Inet6(ip)) => address = IpAddr::V6(*ip),
            RouteAttribute::PrefSource(preferred) => source = source.or(ip(preferred)),
            RouteAttribute::Metrics(metrics) => {
                mtu = metrics.iter().find_map(|metric| match metric {
                    RouteMetric::Mtu(mtu) => Some(*mtu),
                    _ => None,
                });
            }
            RouteAttribute::EncapType(_) => return Ok(Path::Encapsulated),
            _ => {}
        }
    }
    let ifindex = ifindex.ok_or_else(|| unexpected("a route without a device"))?;
    // This machine has no address from which to send there, or is not sure of it yet (RFC 4862, section 5.4).
    let Some(source) = source else { return Ok(Path::Nowhere(libc::EADDRNOTAVAIL)) };
    Ok(Path::Via { next: NextHop { ifindex, address }, source, mtu })
}

/// Asks the kernel to make sure of a neighbour as if a packet had just been sent to it
/// (`neigh_add` with `NTF_USE`, net/core/neighbour.c).
pub(super) fn use_request(at: &NextHop) -> RouteNetlinkMessage {
    let mut message = NeighbourMessage::default();
    message.header = NeighbourHeader {
        family: family(at.address),
        ifindex: at.ifindex,
        flags: NeighbourFlags::Use,
        ..NeighbourHeader::default()
    };
    message.attributes.push(NeighbourAttribute::Destination(at.address.into()));
    RouteNetlinkMessage::NewNeighbour(message)
}

fn unexpected(what: impl Into<Box<dyn core::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}
