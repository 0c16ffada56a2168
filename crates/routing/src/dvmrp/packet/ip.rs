//! The IP header around a message.

use core::net::Ipv4Addr;

use super::{FORMAT, Unreadable, malformed};

const IGMP: u8 = 2;
/// Internetwork control (section 3.1).
const TOS: u8 = 0xc0;
/// The router alert option (RFC 2113), as mrouted sends it.
const ROUTER_ALERT: [u8; 4] = [0x94, 4, 0, 0];

/// Bytes of the header that [`emit`] writes.
pub const HEADER_BYTES: usize = 24;

/// A packet of IP with IGMP inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ip<'a> {
    pub(super) source: Ipv4Addr,
    pub(super) destination: Ipv4Addr,
    pub(super) ttl: u8,
    pub(super) payload: &'a [u8],
}

/// The checksum of the internet (RFC 1071): zero over what contains a right one.
pub(crate) fn checksum(bytes: &[u8]) -> u16 {
    let (pairs, rest) = bytes.as_chunks::<2>();
    let sum: u64 = pairs.iter().map(|pair| u64::from(u16::from_be_bytes(*pair))).sum();
    let mut sum = sum + rest.first().map_or(0, |last| u64::from(*last) << 8);
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    !(sum as u16)
}

impl<'a> Ip<'a> {
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self, Unreadable> {
        let Some(fixed) = bytes.first_chunk::<20>() else { return Err(malformed(bytes.len(), "ends early")) };
        let header_bytes = usize::from(fixed[0] & 0x0f) * 4;
        let total_bytes = usize::from(u16::from_be_bytes([fixed[2], fixed[3]]));
        if fixed[0] >> 4 != 4 {
            return Err(malformed(0, "not IP version 4"));
        }
        if header_bytes < 20 || header_bytes > total_bytes || total_bytes > bytes.len() {
            return Err(malformed(2, "lengths that cannot be"));
        }
        if u16::from_be_bytes([fixed[6], fixed[7]]) & 0x3fff != 0 {
            return Err(malformed(6, "a fragment"));
        }
        if fixed[9] != IGMP {
            return Err(Unreadable::NotDvmrp);
        }
        let (header, payload) = bytes[..total_bytes].split_at(header_bytes);
        if checksum(header) != 0 {
            return Err(Unreadable::Checksum);
        }
        let address = |at: usize| Ipv4Addr::new(fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]);
        Ok(Ip { source: address(12), destination: address(16), ttl: fixed[8], payload })
    }
}

/// Writes the header of a message of so many bytes behind what is in `out`: with the router alert option, as
/// mrouted does, and a TTL of one, since nobody farther away is meant.
pub fn emit(source: Ipv4Addr, destination: Ipv4Addr, message_bytes: usize, out: &mut Vec<u8>) {
    debug_assert!(message_bytes + HEADER_BYTES <= usize::from(u16::MAX), "{FORMAT} is short");
    let start = out.len();
    let total = ((HEADER_BYTES + message_bytes) as u16).to_be_bytes();
    out.extend([0x46, TOS, total[0], total[1], 0, 0, 0, 0, 1, IGMP, 0, 0]);
    out.extend(source.octets());
    out.extend(destination.octets());
    out.extend(ROUTER_ALERT);
    let sum = checksum(&out[start..]).to_be_bytes();
    out[start + 10..start + 12].copy_from_slice(&sum);
}
