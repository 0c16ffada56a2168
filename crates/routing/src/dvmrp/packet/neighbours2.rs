//! The answer to a router or host that asks for neighbours (appendix B, 11.2).

use core::net::Ipv4Addr;

use outflow_media::Malformed;

use super::{Addresses, FORMAT};

/// One interface of the router that answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Section<'a> {
    /// Its address there.
    pub local: Ipv4Addr,
    /// What a hop over it counts.
    pub metric: u8,
    /// TTL that packets have to have more of.
    pub threshold: u8,
    /// 1 tunnel, 0x10 down, 0x20 disabled, 0x40 querier, 0x80 leaf.
    pub flags: u8,
    /// The neighbours that are there.
    pub neighbours: Addresses<'a>,
}

/// The interfaces, in the order they came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Neighbours2<'a> {
    bytes: &'a [u8],
}

impl<'a> Neighbours2<'a> {
    /// Of the bytes behind the header. An error if they end within an interface.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let all = Neighbours2 { bytes };
        let mut walk = all;
        while walk.next().is_some() {}
        let offset = bytes.len() - walk.bytes.len();
        let error = Malformed { format: FORMAT, offset, reason: "an interface ends early" };
        if walk.bytes.is_empty() { Ok(all) } else { Err(error) }
    }

    /// All of them, as they are on the wire.
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }
}

impl<'a> Iterator for Neighbours2<'a> {
    type Item = Section<'a>;

    fn next(&mut self) -> Option<Section<'a>> {
        let (local, rest) = self.bytes.split_first_chunk()?;
        let ([metric, threshold, flags, count], rest) = rest.split_first_chunk()?;
        let (neighbours, rest) = rest.split_at_checked(usize::from(*count) * 4)?;
        self.bytes = rest;
        let (neighbours, _) = neighbours.as_chunks();
        let (local, neighbours) = (Ipv4Addr::from_octets(*local), Addresses(neighbours));
        Some(Section { local, metric: *metric, threshold: *threshold, flags: *flags, neighbours })
    }
}
