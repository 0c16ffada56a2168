//! The IP packets that carry messages: IPv4 with the Router Alert option (RFC 2113), IPv6 with a hop-by-hop
//! header that has it (RFC 2711).

use std::net::IpAddr;

use super::{Family, Reason, address, be16};

const IGMP: u8 = 2;
const ICMPV6: u8 = 58;
const HOP_BY_HOP: u8 = 0;
const IPV6_FRAGMENT: u8 = 44;

/// What is known of a packet before its message is read.
pub(super) struct Opened<'a> {
    pub(super) source: IpAddr,
    pub(super) destination: IpAddr,
    /// TTL or hop limit.
    pub(super) hops: u8,
    pub(super) router_alert: bool,
    pub(super) payload: &'a [u8],
}

pub(super) fn open(family: Family, bytes: &[u8]) -> Result<Opened<'_>, Reason> {
    match family {
        Family::V4 => open_v4(bytes),
        Family::V6 => open_v6(bytes),
    }
}

fn open_v4(bytes: &[u8]) -> Result<Opened<'_>, Reason> {
    let fixed: &[u8; 20] = bytes.first_chunk().ok_or(Reason::Truncated)?;
    let header = usize::from(fixed[0] & 0x0f) * 4;
    if fixed[0] >> 4 != 4 || header < 20 {
        return Err(Reason::NotIp);
    }
    let total = usize::from(be16(fixed, 2)?);
    let bytes = bytes.get(..total).ok_or(Reason::Truncated)?;
    let (header, payload) = bytes.split_at_checked(header).ok_or(Reason::Truncated)?;
    if checksum(0, header) != 0 {
        return Err(Reason::HeaderChecksum);
    }
    if fixed[9] != IGMP {
        return Err(Reason::OtherType);
    }
    // More fragments, or not the first one.
    if be16(fixed, 6)? & 0x3fff != 0 {
        return Err(Reason::Fragment);
    }
    Ok(Opened {
        source: Family::V4.read(&fixed[12..]).ok_or(Reason::Truncated)?,
        destination: Family::V4.read(&fixed[16..]).ok_or(Reason::Truncated)?,
        hops: fixed[8],
        router_alert: has_option(&header[20..], 0x94, 1, 2),
        payload,
    })
}

fn open_v6(bytes: &[u8]) -> Result<Opened<'_>, Reason> {
    let fixed: &[u8; 40] = bytes.first_chunk().ok_or(Reason::Truncated)?;
    if fixed[0] >> 4 != 6 {
        return Err(Reason::NotIp);
    }
    let length = usize::from(be16(fixed, 4)?);
    let mut payload = bytes[40..].get(..length).ok_or(Reason::Truncated)?;
    let (mut next, mut router_alert) = (fixed[6], false);
    if next == HOP_BY_HOP {
        let [following, eights, ..] = *payload else { return Err(Reason::Truncated) };
        let header = (usize::from(eights) + 1) * 8;
        let (options, rest) = payload.split_at_checked(header).ok_or(Reason::Truncated)?;
        router_alert = has_option(&options[2..], 5, 0, 0);
        (next, payload) = (following, rest);
    }
    match next {
        ICMPV6 => (),
        IPV6_FRAGMENT => return Err(Reason::Fragment),
        _ => return Err(Reason::OtherType),
    }
    Ok(Opened {
        source: Family::V6.read(&fixed[8..]).ok_or(Reason::Truncated)?,
        destination: Family::V6.read(&fixed[24..]).ok_or(Reason::Truncated)?,
        hops: fixed[7],
        router_alert,
        payload,
    })
}

/// Whether there is an option of this type with a value of zero in two bytes. `padding` is the type of one
/// byte of padding; `counted` is how many bytes of type and length the length counts.
fn has_option(mut options: &[u8], wanted: u8, padding: u8, counted: usize) -> bool {
    while let [kind, rest @ ..] = options {
        if *kind == padding {
            options = rest;
            continue;
        }
        let [length, rest @ ..] = rest else { return false };
        let Some(length) = usize::from(*length).checked_sub(counted) else { return false };
        let Some((value, rest)) = rest.split_at_checked(length) else { return false };
        if *kind == wanted {
            return value == [0, 0];
        }
        options = rest;
    }
    false
}

/// The Internet checksum (RFC 1071) of bytes, with a sum of others: zero for those that contain theirs.
pub fn checksum(others: u32, bytes: &[u8]) -> u16 {
    let (pairs, odd) = bytes.as_chunks::<2>();
    let odd = odd.first().map_or(0, |byte| u32::from(*byte) << 8);
    let mut sum = u64::from(others) + u64::from(odd);
    sum += pairs.iter().map(|pair| u64::from(u16::from_be_bytes(*pair))).sum::<u64>();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// The checksum of a message: with IPv6 it is of a pseudo-header, too (RFC 8200 section 8.1).
pub(super) fn message_checksum(source: IpAddr, destination: IpAddr, payload: &[u8]) -> u16 {
    let (IpAddr::V6(source), IpAddr::V6(destination)) = (source, destination) else {
        return checksum(0, payload);
    };
    let words = source.segments().into_iter().chain(destination.segments());
    let others = words.map(u32::from).sum::<u32>() + payload.len() as u32 + u32::from(ICMPV6);
    checksum(others, payload)
}

/// A packet that is being written: headers at once, then the message, then what depends on its length.
#[derive(Debug)]
pub struct Writer<'a> {
    source: IpAddr,
    destination: IpAddr,
    out: &'a mut Vec<u8>,
}

impl<'a> Writer<'a> {
    /// Writes the headers in place of what is in `out`. Both addresses are of one family.
    pub fn new(source: IpAddr, destination: IpAddr, out: &'a mut Vec<u8>) -> Self {
        out.clear();
        match Family::of(source) {
            // Precedence internetwork control (RFC 3376 section 4), TTL 1, Router Alert.
            Family::V4 => {
                out.extend_from_slice(&[0x46, 0xc0, 0, 0, 0, 0, 0, 0, 1, IGMP, 0, 0]);
                address::put(source, out);
                address::put(destination, out);
                out.extend_from_slice(&[0x94, 4, 0, 0]);
            }
            Family::V6 => {
                out.extend_from_slice(&[0x60, 0, 0, 0, 0, 0, HOP_BY_HOP, 1]);
                address::put(source, out);
                address::put(destination, out);
                out.extend_from_slice(&[ICMPV6, 0, 5, 2, 0, 0, 1, 0]);
            }
        }
        Writer { source, destination, out }
    }

    /// Where the message is written. It may only be added to, and corrected behind the headers.
    pub const fn out(&mut self) -> &mut Vec<u8> {
        self.out
    }

    /// Bytes that are written, with the headers.
    pub(super) const fn len(&self) -> usize {
        self.out.len()
    }

    /// Writes lengths and checksums. The checksum of the message is to be zero before; one that is shorter
    /// than 4 bytes is left as it is.
    pub fn finish(self) {
        let start = Family::of(self.source).header_bytes();
        if let Some(at) = self.out.get(start..).filter(|message| message.len() >= 4) {
            let sum = message_checksum(self.source, self.destination, at).to_be_bytes();
            self.out[start + 2..start + 4].copy_from_slice(&sum);
        }
        match self.source {
            IpAddr::V4(_) => {
                let total = self.out.len() as u16;
                self.out[2..4].copy_from_slice(&total.to_be_bytes());
                let sum = checksum(0, &self.out[..start]).to_be_bytes();
                self.out[10..12].copy_from_slice(&sum);
            }
            IpAddr::V6(_) => {
                let length = (self.out.len() - 40) as u16;
                self.out[4..6].copy_from_slice(&length.to_be_bytes());
            }
        }
    }
}
