//! Route reports (sections 3.4.2, 3.4.3 and 3.4.10).

use core::net::Ipv4Addr;

use outflow_media::{Malformed, Prefix};

use super::FORMAT;
use crate::dvmrp::limits::REPORT_BYTES_MAX;

/// Set in the metric of the last route of a mask.
const LAST: u8 = 0x80;

/// A route as a neighbour tells of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Advertised {
    /// Where to.
    pub network: Prefix,
    /// From 1 to 31 how far it is, 32 not reachable, 33 to 63 the neighbour depends on the router that reads
    /// this. Others are illegal, but may come.
    pub metric: u8,
}

/// The routes of a report, in the order they came. An illegal one does not end it: those behind it are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Routes<'a> {
    bytes: &'a [u8],
    at: usize,
    /// The three octets on the wire, and how many octets each network has; none if a mask comes next.
    mask: Option<([u8; 3], usize)>,
}

/// How many octets networks of this mask have on the wire.
fn width(mask: [u8; 3]) -> usize {
    1 + mask.iter().rposition(|octet| *octet != 0).map_or(0, |last| last + 1)
}

impl<'a> Routes<'a> {
    /// Of the bytes behind the header. An error if they end within a route.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let routes = Routes { bytes, at: 0, mask: None };
        let mut walk = routes;
        while walk.step().is_some() {}
        if walk.at == bytes.len() && walk.mask.is_none() {
            Ok(routes)
        } else {
            Err(Malformed { format: FORMAT, offset: walk.at, reason: "a report ends early" })
        }
    }

    /// All of them, as they are on the wire.
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Mask, octets of the network, metric.
    fn step(&mut self) -> Option<([u8; 3], &'a [u8], u8)> {
        let mut at = self.at;
        let (mask, width) = match self.mask {
            Some(mask) => mask,
            None => {
                let mask = *self.bytes.get(at..)?.first_chunk::<3>()?;
                at += 3;
                (mask, width(mask))
            }
        };
        let network = self.bytes.get(at..at + width)?;
        let metric = *self.bytes.get(at + width)?;
        self.at = at + width + 1;
        self.mask = (metric & LAST == 0).then_some((mask, width));
        Some((mask, network, metric & !LAST))
    }
}

impl Iterator for Routes<'_> {
    type Item = Result<Advertised, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        let offset = self.at;
        let (mask, octets, metric) = self.step()?;
        let illegal = |reason| Some(Err(Malformed { format: FORMAT, offset, reason }));
        let mut network = [0; 4];
        network[..octets.len()].copy_from_slice(octets);
        let network = u32::from_be_bytes(network);
        if mask == [0; 3] && network == 0 {
            return Some(Ok(Advertised { network: Prefix::ALL, metric }));
        }
        let mask = u32::from_be_bytes([0xff, mask[0], mask[1], mask[2]]);
        if mask.leading_ones() + mask.trailing_zeros() != 32 {
            return illegal("a mask with gaps");
        }
        if network & !mask != 0 {
            return illegal("a network with bits behind its mask");
        }
        let network = Prefix::of(Ipv4Addr::from_bits(network), mask.leading_ones() as u8);
        if is_told(network) { Some(Ok(Advertised { network, metric })) } else { illegal("not of sources") }
    }
}

/// Whether routes to a network may be told: sources have addresses in it, and reports have room for its mask, the
/// first octet of which is always full, but for the default route (section 3.4.2).
pub(in crate::dvmrp) const fn is_told(network: Prefix) -> bool {
    let [first, ..] = network.network().octets();
    match network.length() {
        0 => true,
        1..=7 => false,
        _ => first != 0 && first != 127 && first < 224,
    }
}

/// Packs routes into reports. They are to come sorted, since each mask is written once for those in a row.
#[derive(Debug)]
pub struct ReportWriter {
    bytes: Vec<u8>,
    mask: Option<[u8; 3]>,
}

impl Default for ReportWriter {
    fn default() -> Self {
        ReportWriter { bytes: Vec::with_capacity(REPORT_BYTES_MAX), mask: None }
    }
}

impl ReportWriter {
    /// Adds a route; not if it does not fit any more, or may not be told (section 3.4.2). Of the metric seven
    /// bits are written.
    pub fn push(&mut self, route: Advertised) -> bool {
        let [_, mask @ ..] = route.network.mask().to_be_bytes();
        let is_new = self.mask != Some(mask);
        let bytes = if is_new { 3 } else { 0 } + width(mask) + 1;
        if self.bytes.len() + bytes > REPORT_BYTES_MAX || !is_told(route.network) {
            return false;
        }
        match self.bytes.last_mut() {
            Some(metric) if !is_new => *metric &= !LAST,
            _ => self.bytes.extend(mask),
        }
        self.bytes.extend(&route.network.network().octets()[..width(mask)]);
        self.bytes.push(route.metric & !LAST | LAST);
        self.mask = Some(mask);
        true
    }

    /// What was written so far.
    pub fn routes(&self) -> Routes<'_> {
        Routes { bytes: &self.bytes, at: 0, mask: None }
    }
}
