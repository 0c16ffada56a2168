//! Interfaces and ranges of addresses.

use outflow_media::{Network, NoNetwork};

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
        // One is a list, too.
        match given.get_ref().as_str() {
            Some(_) => Network::read(given).map(|network| vec![network]),
            None => list(given, "a list of ranges of addresses", "[\"10.0.0.0/8\", \"2001:db8::/32\"]"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
