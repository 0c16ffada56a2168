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

    /// How many addresses are in it, or the largest number if that is not enough.
    pub fn count(&self) -> u64 {
        match self {
            Network::V4(prefix) => prefix.count(),
            Network::V6(_, length) => 1_u64.checked_shl(128 - u32::from(*length)).unwrap_or(u64::MAX),
        }
    }

    /// One of its addresses, counted from 0; behind the last that is counted come the first ones again.
    pub fn nth(&self, index: u64) -> IpAddr {
        match self {
            Network::V4(prefix) => prefix.nth(index).into(),
            Network::V6(network, _) => {
                Ipv6Addr::from_bits(network.to_bits() + u128::from(index % self.count())).into()
            }
        }
    }

    /// Its last address.
    pub fn last(&self) -> IpAddr {
        match self {
            Network::V4(prefix) => prefix.nth(prefix.count() - 1).into(),
            Network::V6(network, length) => {
                let rest = u128::MAX.checked_shr(u32::from(*length)).unwrap_or(0);
                Ipv6Addr::from_bits(network.to_bits() | rest).into()
            }
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

/// The address of a group on a link of Ethernet (RFC 1112, section 6.4; RFC 2464, section 7).
pub const fn group_mac(group: IpAddr) -> [u8; 6] {
    match group {
        IpAddr::V4(group) => {
            let [_, a, b, c] = group.octets();
            [0x01, 0x00, 0x5e, a & 0x7f, b, c]
        }
        IpAddr::V6(group) => {
            let [.., a, b, c, d] = group.octets();
            [0x33, 0x33, a, b, c, d]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(text: &str) -> Network {
        text.parse().unwrap_or_else(|no| panic!("{no}"))
    }

    #[test]
    fn ranges_of_addresses_have_bits() {
        assert_eq!(network("10.9.0.0/16"), Network::of([10, 9, 3, 1].into(), 16));
        assert_eq!(network("10.9.0.7").to_string(), "10.9.0.7/32");
        assert_eq!(network("2001:db8::7:1/112").to_string(), "2001:db8::7:0/112");
        for bad in ["10.9.0.0/33", "10.9/16", "::/129", "2001:db8", ""] {
            assert!(bad.parse::<Network>().is_err(), "{bad}");
        }
    }

    #[test]
    fn addresses_are_counted() {
        for (text, first, last, count) in [
            ("232.1.2.9/30", "232.1.2.8", "232.1.2.11", 4),
            ("0.0.0.0/0", "0.0.0.0", "255.255.255.255", 1 << 32),
            ("ff35::8000:0/126", "ff35::8000:0", "ff35::8000:3", 4),
            ("ff35::7", "ff35::7", "ff35::7", 1),
            ("ff35::/64", "ff35::", "ff35::ffff:ffff:ffff:ffff", u64::MAX),
            ("::/0", "::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", u64::MAX),
        ] {
            let (network, address) = (network(text), |text: &str| text.parse::<IpAddr>().expect("one"));
            assert_eq!((network.nth(0), network.last()), (address(first), address(last)), "{text}");
            assert_eq!((network.count(), network.nth(count)), (count, network.nth(0)), "{text}");
            assert!(network.contains(network.nth(3)) && network.contains(network.last()), "{text}");
            assert!(!network.contains(address("10.0.0.1")) || text == "0.0.0.0/0", "{text}");
        }
        assert!(network("10.0.0.0/8").contains("::ffff:10.1.1.1".parse().expect("one")), "written as IPv6");
    }
}
