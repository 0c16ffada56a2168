//! Hosts and routers of multicast: the state machines of [`outflow_routing`], by which relays join, ask and forward.

mod forwarding;
mod host;
mod router;

#[cfg(test)]
mod tests;

pub use host::{GroupWant, HostModel};
pub use router::RouterModel;

pub(super) use host::Host;
pub(super) use router::Router;

use core::net::IpAddr;

use outflow_routing::membership::Link;

use super::Port;

/// Bits of an address of IPv4 that all on a segment have in common.
const NETWORK_BITS: u8 = 24;

/// An interface for IGMP, and one for MLD, whose messages come from addresses of the link.
fn links(port: &Port) -> [Link; 2] {
    let six = port.v6.segments();
    let local = [0xfe80, 0, 0, 0, six[3], 0, 0, six[7]];
    [Link::new(IpAddr::V4(port.v4), NETWORK_BITS), Link::new(IpAddr::from(local), 64)]
}
