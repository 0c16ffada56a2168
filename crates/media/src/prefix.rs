//! Ranges of IPv4 addresses: those that begin alike.

use core::fmt;
use core::net::Ipv4Addr;
use core::str::FromStr;

/// A network: an address and how many bits of it count; the others are 0. Shorter ones are before longer ones.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prefix {
    length: u8,
    address: u32,
}

/// A text that is no [`Prefix`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no range of IPv4 addresses")]
pub struct NoPrefix(String);

impl Prefix {
    /// Of all addresses. No other one contains it, and it is before all others.
    pub const ALL: Prefix = Prefix { length: 0, address: 0 };

    /// Behind all others.
    pub const LAST: Prefix = Prefix { length: 32, address: u32::MAX };

    /// The network that an address is in, of `length` bits; of more than 32, 32.
    pub const fn of(address: Ipv4Addr, length: u8) -> Prefix {
        let length = if length > 32 { 32 } else { length };
        Prefix { length, address: address.to_bits() & mask(length) }
    }

    /// Its lowest address.
    pub const fn network(self) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.address)
    }

    /// How many bits count, 32 at most.
    pub const fn length(self) -> u8 {
        self.length
    }

    /// The bits that count, set.
    pub const fn mask(self) -> u32 {
        mask(self.length)
    }

    /// Whether an address is in it.
    pub const fn contains(self, address: Ipv4Addr) -> bool {
        address.to_bits() & self.mask() == self.address
    }

    /// How many addresses are in it.
    pub const fn count(self) -> u64 {
        1 << (32 - self.length)
    }

    /// One of its addresses, counted from 0; behind the last one come the first ones again.
    pub const fn nth(self, index: u64) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.address + (index % self.count()) as u32)
    }
}

const fn mask(length: u8) -> u32 {
    if length == 0 { 0 } else { u32::MAX << (32 - length) }
}

impl FromStr for Prefix {
    type Err = NoPrefix;

    /// An address and how many bits of it count, as `10.9.0.0/16`; without that, all.
    fn from_str(text: &str) -> Result<Self, NoPrefix> {
        let (address, length) = text.split_once('/').unwrap_or((text, "32"));
        match (address.parse(), length.parse()) {
            (Ok(address), Ok(length)) if length <= 32 => Ok(Prefix::of(address, length)),
            _ => Err(NoPrefix(text.to_owned())),
        }
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.network(), self.length)
    }
}

impl fmt::Debug for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_has_its_addresses_and_no_others() {
        let address = |text: &str| text.parse::<Ipv4Addr>().expect("an address");
        let prefix = Prefix::of(address("10.1.2.3"), 24);
        assert!(prefix.contains(address("10.1.2.255")) && !prefix.contains(address("10.1.3.0")));
        assert_eq!((prefix.network(), prefix.mask()), (address("10.1.2.0"), 0xffff_ff00));
        assert!(
            Prefix::of(address("10.1.2.3"), 0) == Prefix::ALL && Prefix::ALL.contains(address("192.0.2.1"))
        );
        assert!(!Prefix::of(address("10.1.2.3"), 200).contains(address("10.1.2.4")));
    }

    #[test]
    fn shorter_ones_are_first() {
        let all = ["0.0.0.0/0", "200.0.0.0/8", "10.0.0.0/16", "10.1.0.0/16", "255.255.255.255/32"];
        let read: Vec<Prefix> = all.iter().map(|text| text.parse().expect("a prefix")).collect();
        assert!(read.is_sorted() && (read[0], read[4]) == (Prefix::ALL, Prefix::LAST));
        assert!(read.iter().map(Prefix::to_string).eq(all));
    }
}
