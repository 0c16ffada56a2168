//! Options of multicast routing.

use outflow_routing::membership::Family;

/// What is the same for all interfaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Whether multicast of IPv4 is routed, with IGMP and DVMRP, or of IPv6, with MLD.
    pub family: Family,
    /// The number of a multicast routing table of our own; the usual one without. Packets are led to it by
    /// rules: `ip mrule add iif NAME table NUMBER` (`ip -6 mrule`).
    pub table: Option<u32>,
    /// Whether the kernel is to forward. Without, it is only told which interface wants what.
    pub forward: bool,
    /// Whether to note how long things take, for [`Snapshot::timings`](crate::Snapshot::timings).
    pub timings: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options { family: Family::V4, table: None, forward: true, timings: false }
    }
}
