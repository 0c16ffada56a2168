//! Ranges of addresses of either family.

use core::fmt;
use core::net::{IpAddr, Ipv6Addr};
use core::str::FromStr;

use super::Prefix;

/// A range of addresses of either kind: those that begin alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Network {
    /// Of IPv4.
    V4(Prefix),
    /// Of IPv6: the lowest address, and how many of its bits count, 128 at most.
    V6(Ipv6Addr, u8),
}

/// A text that is no [`Network`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no range of addresses")]
pub struct NoNetwork(String);

impl Network {
    /// The network that an address is in, of `length` bits, or of all.
    pub fn of(address: IpAddr, length: u8) -> Self {
        match address {
            IpAddr::V4(address) => Network::V4(Prefix::of(address, length)),
            IpAddr::V6(address) => {
                let length = length.min(128);
                Network::V6(cut(address, length), length)
            }
        }
    }

    /// Whether an address is in it. One of IPv4 that is written as one of IPv6 is one of IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self, address.to_canonical()) {
            (Network::V4(prefix), IpAddr::V4(address)) => prefix.contains(address),
            (Network::V6(network, length), IpAddr::V6(address)) => cut(address, *length) == *network,
            _ => false,
        }
    }

    /// It, if it is one of IPv4.
    pub const fn v4(&self) -> Option<Prefix> {
        match self {
            Network::V4(prefix) => Some(*prefix),
            Network::V6(..) => None,
        }
    }
}

/// The bits of an address that count.
fn cut(address: Ipv6Addr, length: u8) -> Ipv6Addr {
    let mask = u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0);
    Ipv6Addr::from_bits(address.to_bits() & mask)
}

impl FromStr for Network {
    type Err = NoNetwork;

    /// An address and how many bits of it count, as `10.9.0.0/16` or `2001:db8::/32`; without that, all.
    fn from_str(text: &str) -> Result<Self, NoNetwork> {
        if let Ok(prefix) = text.parse() {
            return Ok(Network::V4(prefix));
        }
        let (address, length) = text.split_once('/').unwrap_or((text, "128"));
        match (address.parse(), length.parse()) {
            (Ok(address), Ok(length)) if length <= 128 => Ok(Network::V6(cut(address, length), length)),
            _ => Err(NoNetwork(text.to_owned())),
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Network::V4(prefix) => write!(f, "{prefix}"),
            Network::V6(network, length) => write!(f, "{network}/{length}"),
        }
    }
}
