//! Addresses of a link, and what they are for.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use outflow_media::Prefix;

/// IPv4 with IGMP, or IPv6 with MLD.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// IPv4, IGMP.
    V4,
    /// IPv6, MLD.
    V6,
}

impl Family {
    /// The family of an address.
    pub const fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(_) => Family::V4,
            IpAddr::V6(_) => Family::V6,
        }
    }

    /// Bytes before the message in packets that are written: the IP header with the Router Alert option.
    pub const fn header_bytes(self) -> usize {
        match self {
            Family::V4 => 24,
            Family::V6 => 48,
        }
    }

    /// Bytes of an address.
    pub const fn address_bytes(self) -> usize {
        match self {
            Family::V4 => 4,
            Family::V6 => 16,
        }
    }

    /// Both.
    pub const ALL: [Family; 2] = [Family::V4, Family::V6];

    /// Where general queries are sent: 224.0.0.1, ff02::1.
    pub const fn all_nodes(self) -> IpAddr {
        match self {
            Family::V4 => IpAddr::V4(Ipv4Addr::new(224, 0, 0, 1)),
            Family::V6 => IpAddr::V6(Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1)),
        }
    }

    /// Where a host says that it leaves a group: 224.0.0.2, ff02::2.
    pub const fn all_routers(self) -> IpAddr {
        match self {
            Family::V4 => IpAddr::V4(Ipv4Addr::new(224, 0, 0, 2)),
            Family::V6 => IpAddr::V6(Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2)),
        }
    }

    /// Where reports of the newest version are sent: 224.0.0.22, ff02::16.
    pub const fn all_reports(self) -> IpAddr {
        match self {
            Family::V4 => IpAddr::V4(Ipv4Addr::new(224, 0, 0, 22)),
            Family::V6 => IpAddr::V6(Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0x16)),
        }
    }

    /// The address at the start of `bytes`, if there are enough.
    pub(super) fn read(self, bytes: &[u8]) -> Option<IpAddr> {
        match self {
            Family::V4 => bytes.first_chunk::<4>().map(|bytes| IpAddr::from(*bytes)),
            Family::V6 => bytes.first_chunk::<16>().map(|bytes| IpAddr::from(*bytes)),
        }
    }
}

/// Writes an address.
pub(super) fn put(address: IpAddr, out: &mut Vec<u8>) {
    match address {
        IpAddr::V4(address) => out.extend_from_slice(&address.octets()),
        IpAddr::V6(address) => out.extend_from_slice(&address.octets()),
    }
}

/// Whether a group is never forwarded beyond a link: 224.0.0.0/24 (RFC 5771 section 4), and scopes up to the
/// link's (RFC 4291 section 2.7).
pub(super) const fn is_local(group: IpAddr) -> bool {
    match group {
        IpAddr::V4(group) => matches!(group.octets(), [224, 0, 0, _]),
        IpAddr::V6(group) => group.octets()[1] & 0x0f <= 2,
    }
}

/// Whether hosts never report a group: 224.0.0.1 (RFC 3376 section 5), ff02::1 and scopes up to the node's
/// (RFC 3810 section 6).
pub(super) fn is_never_reported(group: IpAddr) -> bool {
    group == Family::of(group).all_nodes()
        || matches!(group, IpAddr::V6(group) if group.octets()[1] & 0x0f <= 1)
}

/// Whether a group is of the source-specific range: 232.0.0.0/8 and ff3x::/32 (RFC 4607 section 1).
pub(super) const fn is_source_specific(group: IpAddr) -> bool {
    match group {
        IpAddr::V4(group) => group.octets()[0] == 232,
        IpAddr::V6(group) => matches!(group.segments(), [0xff30..=0xff3f, 0, ..]),
    }
}

/// An interface as its messages are checked by.
#[derive(Debug, Clone)]
pub struct Link {
    /// The address that messages are sent from: with IPv6 it is link-local.
    pub address: IpAddr,
    /// The IPv4 networks on the link; messages from elsewhere are refused. With IPv6, link-local sources
    /// alone are taken.
    pub prefixes: Vec<Prefix>,
    /// Whether messages without the Router Alert option are refused. IGMPv1 has none.
    pub needs_router_alert: bool,
}

impl Link {
    /// A link with this address, and this many bits of it the same for all on the link.
    pub fn new(address: IpAddr, bits: u8) -> Self {
        let prefixes = match address {
            IpAddr::V4(address) => vec![Prefix::of(address, bits)],
            IpAddr::V6(_) => Vec::new(),
        };
        Link { address, prefixes, needs_router_alert: true }
    }

    /// Its family.
    pub const fn family(&self) -> Family {
        Family::of(self.address)
    }

    /// Whether a message that is no query may come from there: 0.0.0.0 is a host without an address yet
    /// (RFC 3376 section 4.2.13); MLD has no such (RFC 3810 section 5.2.13).
    pub(super) fn reaches(&self, source: IpAddr) -> bool {
        match source {
            IpAddr::V4(v4) => v4.is_unspecified() || self.prefixes.iter().any(|prefix| prefix.contains(v4)),
            IpAddr::V6(v6) => v6.is_unicast_link_local(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn the_source_specific_range_is_that_of_rfc_4607() {
        let is = |group: &str| is_source_specific(address(group));
        assert!(is("232.1.2.3") && is("ff3e::1:2") && is("ff35::"));
        assert!(!is("233.1.2.3") && !is("ff0e::1") && !is("ff3e:20::1"));
    }

    #[test]
    fn groups_of_the_link_are_local() {
        assert!(is_local(address("224.0.0.251")) && is_local(address("ff02::fb")));
        assert!(!is_local(address("224.0.1.1")) && !is_local(address("ff05::2")));
        assert!(is_never_reported(address("ff02::1")) && is_never_reported(address("ff01::5")));
        assert!(is_never_reported(address("224.0.0.1")) && !is_never_reported(address("ff02::2")));
    }
}
