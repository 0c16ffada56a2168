//! What packets that are forwarded alike have in common.

use core::net::{IpAddr, Ipv4Addr};

/// A source and its group, both of the same family. Pairs are in the order of their groups, and of the sources of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pair {
    /// The group that packets are sent to.
    pub group: IpAddr,
    /// The host that they come from.
    pub source: IpAddr,
}

impl Pair {
    /// Source and group, in this order, if they are of IPv4.
    pub const fn v4(self) -> Option<(Ipv4Addr, Ipv4Addr)> {
        match (self.source, self.group) {
            (IpAddr::V4(source), IpAddr::V4(group)) => Some((source, group)),
            _ => None,
        }
    }
}
