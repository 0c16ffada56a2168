//! Interfaces and ranges of addresses.

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
}
