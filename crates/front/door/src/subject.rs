//! What counts as one peer where peers are counted.

use std::net::{IpAddr, Ipv6Addr};

/// What counts as one address: of IPv6, the network of 64 bits that one host may have all of.
pub fn subject(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V4(peer) => peer.into(),
        IpAddr::V6(peer) => Ipv6Addr::from_bits(peer.to_bits() & !u128::from(u64::MAX)).into(),
    }
}
