//! The IP packets that carry messages: IPv4 with the Router Alert option (RFC 2113), IPv6 with a hop-by-hop
//! header that has it (RFC 2711).

use std::net::IpAddr;

use super::fields::be16;
use crate::ip::{Ip, Unreadable, finish_header, put_header};
use crate::membership::Reason;
use crate::membership::address::{self, Family};

pub use crate::ip::checksum;

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
    let ip = Ip::parse(bytes).map_err(|unreadable| match unreadable {
        Unreadable::Truncated => Reason::Truncated,
        Unreadable::NotIpv4 => Reason::NotIp,
        Unreadable::Checksum => Reason::HeaderChecksum,
        Unreadable::OtherProtocol => Reason::OtherType,
        Unreadable::Fragment => Reason::Fragment,
    })?;
    Ok(Opened {
        source: ip.source.into(),
        destination: ip.destination.into(),
        hops: ip.ttl,
        router_alert: has_option(ip.options, 0x94, 1, 2),
        payload: ip.payload,
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
        match (source, destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => put_header(source, destination, out),
            _ => {
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
                let total_bytes = self.out.len();
                finish_header(self.out, total_bytes);
            }
            IpAddr::V6(_) => {
                let length = (self.out.len() - 40) as u16;
                self.out[4..6].copy_from_slice(&length.to_be_bytes());
            }
        }
    }
}
