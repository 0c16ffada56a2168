//! What is forwarded, and where to.

use core::net::Ipv4Addr;

use outflow_media::Prefix;

use crate::demand::Level;
use crate::dvmrp::InterfaceId;

/// Data of the sources in a network to a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Flow {
    /// Where the sources are: a route.
    pub source: Prefix,
    /// The group that they send to.
    pub group: Ipv4Addr,
}

/// Where data goes, and how good it is wanted there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outgoing {
    /// Onto which link.
    pub interface: InterfaceId,
    /// The best level that a host or neighbour there wants.
    pub level: Level,
}
