//! Fields that several messages have: lists of addresses, and numbers.

use std::net::IpAddr;

use crate::membership::Reason;
use crate::membership::address::Family;

/// Addresses that follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Addresses<'a> {
    family: Family,
    bytes: &'a [u8],
}

impl<'a> Addresses<'a> {
    /// None.
    pub const fn none(family: Family) -> Addresses<'static> {
        Addresses { family, bytes: &[] }
    }

    /// `count` addresses at the start of `bytes`, and what is behind them.
    pub(super) fn split(family: Family, count: u16, bytes: &'a [u8]) -> Result<(Self, &'a [u8]), Reason> {
        let length = usize::from(count) * family.address_bytes();
        let (bytes, rest) = bytes.split_at_checked(length).ok_or(Reason::Truncated)?;
        Ok((Addresses { family, bytes }, rest))
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Whether this is one of them.
    pub fn contains(&self, address: IpAddr) -> bool {
        let mut addresses = *self;
        addresses.any(|one| one == address)
    }
}

impl Iterator for Addresses<'_> {
    type Item = IpAddr;

    fn next(&mut self) -> Option<IpAddr> {
        let address = self.family.read(self.bytes)?;
        self.bytes = &self.bytes[self.family.address_bytes()..];
        Some(address)
    }
}

/// The number at this place.
pub(super) fn be16(bytes: &[u8], at: usize) -> Result<u16, Reason> {
    let bytes = bytes.get(at..).and_then(|bytes| bytes.first_chunk()).ok_or(Reason::Truncated)?;
    Ok(u16::from_be_bytes(*bytes))
}
