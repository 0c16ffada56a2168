//! Interfaces and ranges of addresses.

use outflow_media::{Network, NoNetwork, NoPrefix, Prefix};

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

impl Text for Network {
    const KIND: &'static str = "a range of addresses";
    const EXAMPLE: &'static str = "10.0.0.0/8";

    fn from_text(text: &str) -> Result<Self, Invalid> {
        let how = "write it like \"10.0.0.0/8\" or \"2001:db8::/32\"";
        text.parse().map_err(|no: NoNetwork| Invalid::new(no.to_string(), how))
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
