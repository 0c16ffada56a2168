//! Networks that sources are in.

use core::fmt;
use core::net::Ipv4Addr;

/// A network: an address and how many bits of it count. Shorter ones are before longer ones, as reports are
/// best packed; the default route (0.0.0.0/0) is the first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prefix {
    length: u8,
    address: u32,
}

impl Prefix {
    /// The network of all that no other one contains.
    pub const DEFAULT: Prefix = Prefix { length: 0, address: 0 };

    /// Behind all others.
    pub(crate) const LAST: Prefix = Prefix { length: 32, address: u32::MAX };

    /// The network that an address is in, of `length` bits; of more than 32, 32.
    pub const fn of(address: Ipv4Addr, length: u8) -> Prefix {
        let length = if length > 32 { 32 } else { length };
        Prefix { length, address: address.to_bits() & mask(length) }
    }

    /// Its lowest address.
    pub const fn network(self) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.address)
    }

    /// How many bits count.
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

    /// Whether routes to it may be told: sources have addresses in it, and reports have room for its mask,
    /// the first octet of which is always full, but for the default route (section 3.4.2).
    pub const fn is_told(self) -> bool {
        let first = (self.address >> 24) as u8;
        match self.length {
            0 => true,
            1..=7 => false,
            _ => first != 0 && first != 127 && first < 224,
        }
    }
}

const fn mask(length: u8) -> u32 {
    if length == 0 { 0 } else { u32::MAX << (32 - length) }
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
