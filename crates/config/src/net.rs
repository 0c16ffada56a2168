//! Interfaces and ranges of addresses.

use std::net::Ipv4Addr;
use std::str::FromStr;

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

/// Addresses that begin alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prefix {
    /// One of them.
    pub address: Ipv4Addr,
    /// How many bits are alike, 32 at most.
    pub bits: u8,
}

impl Prefix {
    /// How many addresses begin so, and the first of them.
    fn span(self) -> (u64, u32) {
        let count = 1 << (32 - u32::from(self.bits));
        (count, (u64::from(u32::from(self.address)) & !(count - 1)) as u32)
    }

    /// Whether an address begins so.
    pub fn has(self, address: Ipv4Addr) -> bool {
        let (count, first) = self.span();
        address.to_bits().checked_sub(first).is_some_and(|above| u64::from(above) < count)
    }

    /// How many addresses begin so.
    pub fn count(self) -> u64 {
        self.span().0
    }

    /// One of these, counted from 0; behind the last one come the first ones again.
    pub fn nth(self, index: u64) -> Ipv4Addr {
        let (count, first) = self.span();
        Ipv4Addr::from_bits(first + (index % count) as u32)
    }
}

impl FromStr for Prefix {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let (address, bits) = text.split_once('/').unwrap_or((text, "32"));
        match (address.parse(), bits.parse()) {
            (Ok(address), Ok(bits)) if bits <= 32 => Ok(Prefix { address, bits }),
            _ => {
                let what = format!("'{text}' is no range of IPv4 addresses");
                Err(Invalid::new(what, "write it like \"10.9.0.0/16\""))
            }
        }
    }
}

impl Text for Prefix {
    const KIND: &'static str = "a range of addresses";
    const EXAMPLE: &'static str = "10.9.0.0/16";

    fn from_text(text: &str) -> Result<Self, Invalid> {
        text.parse()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_addresses_have_bits() {
        let prefix = |text: &str| text.parse::<Prefix>();
        assert_eq!(prefix("10.9.0.0/16"), Ok(Prefix { address: Ipv4Addr::new(10, 9, 0, 0), bits: 16 }));
        assert_eq!(prefix("10.9.0.7").map(|one| one.bits), Ok(32));
        let groups = prefix("232.1.2.9/30").expect("a range");
        let all: Vec<_> = (0..5).map(|n| groups.nth(n).octets()[3]).collect();
        assert_eq!((groups.count(), all), (4, vec![8, 9, 10, 11, 8]));
        let has = |last| groups.has(Ipv4Addr::new(232, 1, 2, last));
        assert_eq!([7, 8, 11, 12].map(has), [false, true, true, false]);
        let all = prefix("0.0.0.0/0").expect("a range");
        assert!(all.has(Ipv4Addr::BROADCAST) && all.nth(u64::from(u32::MAX)) == Ipv4Addr::BROADCAST);
        for bad in ["10.9.0.0/33", "10.9/16", "::/0", ""] {
            assert!(prefix(bad).is_err(), "{bad}");
        }
    }
}
