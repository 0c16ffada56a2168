//! Interfaces and ranges of addresses.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

use outflow_media::{NoPrefix, Prefix};

use crate::Invalid;
use crate::address::interface;
use crate::value::{Fault, Given, Text, Value, list};

/// The name of an interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface(pub String);

impl Text for Interface {
    const KIND: &'static str = "an interface";
    const EXAMPLE: &'static str = "eth1";

    fn from_text(text: &str) -> Result<Self, Invalid> {
        interface(text).map(Interface)
    }
}

/// Names of interfaces.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Interfaces(pub Vec<Interface>);

impl Value for Interfaces {
    fn read(given: &Given<'_>) -> Result<Self, Fault> {
        list(given, "a list of interfaces", "[\"eth1\"]").map(Interfaces)
    }
}

impl Text for Prefix {
    const KIND: &'static str = "a range of addresses";
    const EXAMPLE: &'static str = "10.9.0.0/16";

    fn from_text(text: &str) -> Result<Self, Invalid> {
        let invalid = |no: NoPrefix| Invalid::new(no.to_string(), "write it like \"10.9.0.0/16\"");
        text.parse().map_err(invalid)
    }
}

/// Ranges of addresses.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Prefixes(pub Vec<Prefix>);

impl Value for Prefixes {
    fn read(given: &Given<'_>) -> Result<Self, Fault> {
        list(given, "a list of addresses", "[\"10.9.0.0/16\"]").map(Prefixes)
    }
}

/// A range of addresses of either kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// Of IPv4.
    V4(Prefix),
    /// Of IPv6: the lowest address, and how many of its bits count.
    V6(Ipv6Addr, u8),
}

impl Network {
    /// Whether an address is in it. One of IPv4 that is written as one of IPv6 is one of IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self, address.to_canonical()) {
            (Network::V4(prefix), IpAddr::V4(address)) => prefix.contains(address),
            (Network::V6(network, length), IpAddr::V6(address)) => cut(address, *length) == *network,
            _ => false,
        }
    }
}

/// The bits of an address that count.
fn cut(address: Ipv6Addr, length: u8) -> Ipv6Addr {
    let mask = u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0);
    Ipv6Addr::from_bits(address.to_bits() & mask)
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Network::V4(prefix) => write!(f, "{prefix}"),
            Network::V6(network, length) => write!(f, "{network}/{length}"),
        }
    }
}

impl Text for Network {
    const KIND: &'static str = "a range of addresses";
    const EXAMPLE: &'static str = "10.0.0.0/8";

    fn from_text(text: &str) -> Result<Self, Invalid> {
        if let Ok(prefix) = text.parse() {
            return Ok(Network::V4(prefix));
        }
        let (address, length) = text.split_once('/').unwrap_or((text, "128"));
        match (address.parse(), length.parse()) {
            (Ok(address), Ok(length)) if length <= 128 => Ok(Network::V6(cut(address, length), length)),
            _ => {
                let what = format!("'{text}' is no range of addresses");
                Err(Invalid::new(what, "write it like \"10.0.0.0/8\" or \"2001:db8::/32\""))
            }
        }
    }
}

impl Value for Vec<Network> {
    fn read(given: &Given<'_>) -> Result<Self, Fault> {
        list(given, "a list of ranges of addresses", "[\"10.0.0.0/8\", \"2001:db8::/32\"]")
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn ranges_of_addresses_have_bits() {
        let prefix = Prefix::from_text;
        assert_eq!(prefix("10.9.0.0/16"), Ok(Prefix::of(Ipv4Addr::new(10, 9, 0, 0), 16)));
        assert_eq!(prefix("10.9.0.7").map(Prefix::length), Ok(32));
        let groups = prefix("232.1.2.9/30").expect("a range");
        let all: Vec<_> = (0..5).map(|n| groups.nth(n).octets()[3]).collect();
        assert_eq!((groups.count(), all), (4, vec![8, 9, 10, 11, 8]));
        let has = |last| groups.contains(Ipv4Addr::new(232, 1, 2, last));
        assert_eq!([7, 8, 11, 12].map(has), [false, true, true, false]);
        let all = prefix("0.0.0.0/0").expect("a range");
        assert!(all.contains(Ipv4Addr::BROADCAST) && all.nth(u64::from(u32::MAX)) == Ipv4Addr::BROADCAST);
        for bad in ["10.9.0.0/33", "10.9/16", "::/0", ""] {
            assert!(prefix(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn networks_of_either_kind_have_their_addresses() {
        let has = |network: &str, address: &str| {
            let network = Network::from_text(network).unwrap_or_else(|invalid| panic!("{invalid}"));
            network.contains(address.parse().expect("an address"))
        };
        assert!(has("10.0.0.0/8", "10.9.9.9") && has("10.0.0.0/8", "::ffff:10.9.9.9"));
        assert!(!has("10.0.0.0/8", "11.0.0.0") && !has("0.0.0.0/0", "2001:db8::1"));
        assert!(has("2001:db8::7/32", "2001:db8:ffff::1") && !has("2001:db8::/32", "2001:db9::1"));
        assert!(has("::/0", "2001:db8::1") && has("::1", "::1") && !has("::1", "::2"));
        for bad in ["10.0.0.0/33", "::/129", "::/x", "here", ""] {
            assert!(Network::from_text(bad).is_err(), "{bad}");
        }
        let shown = |text| Network::from_text(text).expect("a network").to_string();
        assert_eq!([shown("10.1.2.3/8"), shown("2001:db8::7/32")], ["10.0.0.0/8", "2001:db8::/32"]);
    }
}
