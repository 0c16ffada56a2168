//! IPv4 around messages of protocol 2, which IGMP and DVMRP both are, and the checksum of both.

use core::net::Ipv4Addr;

const IGMP: u8 = 2;
/// Internetwork control (RFC 3376 section 4, DVMRP's draft section 3.1).
const TOS: u8 = 0xc0;
/// The Router Alert option (RFC 2113).
const ROUTER_ALERT: [u8; 4] = [0x94, 4, 0, 0];

/// Bytes of a header that is written.
pub const HEADER_BYTES: usize = 24;

/// Why what should be a packet is none that can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// Shorter than it says, or than a header.
    Truncated,
    /// Another version, or a header that is too short for this one.
    NotIpv4,
    /// The header's checksum is wrong.
    Checksum,
    /// Not protocol 2.
    OtherProtocol,
    /// A part of a packet.
    Fragment,
}

/// A packet of protocol 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ip<'a> {
    pub(crate) source: Ipv4Addr,
    pub(crate) destination: Ipv4Addr,
    pub(crate) ttl: u8,
    pub(crate) options: &'a [u8],
    pub(crate) payload: &'a [u8],
}

impl<'a> Ip<'a> {
    /// Reads the header. Bytes behind the packet's end, as of Ethernet's padding, are left out.
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Self, Unreadable> {
        let fixed = bytes.first_chunk::<20>().ok_or(Unreadable::Truncated)?;
        let header_bytes = usize::from(fixed[0] & 0x0f) * 4;
        if fixed[0] >> 4 != 4 || header_bytes < 20 {
            return Err(Unreadable::NotIpv4);
        }
        let total_bytes = usize::from(u16::from_be_bytes([fixed[2], fixed[3]]));
        let bytes = bytes.get(..total_bytes).ok_or(Unreadable::Truncated)?;
        let (header, payload) = bytes.split_at_checked(header_bytes).ok_or(Unreadable::Truncated)?;
        if fixed[9] != IGMP {
            return Err(Unreadable::OtherProtocol);
        }
        // More fragments, or not the first one.
        if u16::from_be_bytes([fixed[6], fixed[7]]) & 0x3fff != 0 {
            return Err(Unreadable::Fragment);
        }
        if checksum(0, header) != 0 {
            return Err(Unreadable::Checksum);
        }
        let address = |at: usize| Ipv4Addr::new(fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]);
        let (source, destination) = (address(12), address(16));
        Ok(Ip { source, destination, ttl: fixed[8], options: &header[20..], payload })
    }
}

/// Writes a header behind what is in `out`: with the Router Alert option, and a TTL of one, since no host
/// farther away is meant. What depends on the length of the message is for [`finish_header`].
pub(crate) fn put_header(source: Ipv4Addr, destination: Ipv4Addr, out: &mut Vec<u8>) {
    out.extend([0x46, TOS, 0, 0, 0, 0, 0, 0, 1, IGMP, 0, 0]);
    out.extend(source.octets());
    out.extend(destination.octets());
    out.extend(ROUTER_ALERT);
}

/// Writes length and checksum into the header that `packet` begins with, which ends with the message.
pub(crate) fn finish_header(packet: &mut [u8], total_bytes: usize) {
    debug_assert!(total_bytes <= usize::from(u16::MAX), "messages are short");
    packet[2..4].copy_from_slice(&(total_bytes as u16).to_be_bytes());
    let sum = checksum(0, &packet[..HEADER_BYTES]).to_be_bytes();
    packet[10..12].copy_from_slice(&sum);
}

/// Writes the whole header of a message of `message_bytes` behind what is in `out`.
pub fn emit_header(source: Ipv4Addr, destination: Ipv4Addr, message_bytes: usize, out: &mut Vec<u8>) {
    let start = out.len();
    put_header(source, destination, out);
    finish_header(&mut out[start..], HEADER_BYTES + message_bytes);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(message: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        put_header(Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(224, 0, 0, 4), &mut out);
        out.extend(message);
        let total_bytes = out.len();
        finish_header(&mut out, total_bytes);
        out
    }

    #[test]
    fn what_is_written_is_read_without_padding() {
        let mut bytes = packet(b"abc");
        bytes.extend([0; 9]);
        let ip = Ip::parse(&bytes).expect("a packet");
        assert_eq!((ip.payload, ip.options, ip.ttl), (&b"abc"[..], &ROUTER_ALERT[..], 1));
        assert_eq!((ip.source, ip.destination), (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(224, 0, 0, 4)));
    }

    #[test]
    fn each_fault_has_its_name() {
        let spoiled = |at: usize, byte: u8| {
            let mut bytes = packet(b"abc");
            bytes[at] = byte;
            bytes[10..12].fill(0);
            let sum = checksum(0, &bytes[..HEADER_BYTES]).to_be_bytes();
            bytes[10..12].copy_from_slice(&sum);
            Ip::parse(&bytes).err()
        };
        assert_eq!(spoiled(0, 0x66), Some(Unreadable::NotIpv4));
        assert_eq!(spoiled(0, 0x44), Some(Unreadable::NotIpv4));
        assert_eq!(spoiled(3, 28), Some(Unreadable::Truncated));
        assert_eq!(spoiled(3, 23), Some(Unreadable::Truncated));
        assert_eq!(spoiled(9, 17), Some(Unreadable::OtherProtocol));
        assert_eq!(spoiled(6, 0x20), Some(Unreadable::Fragment));
        assert_eq!(Ip::parse(&packet(b"abc")[..19]), Err(Unreadable::Truncated));
        let mut bytes = packet(b"abc");
        bytes[11] ^= 1;
        assert_eq!(Ip::parse(&bytes), Err(Unreadable::Checksum));
    }
}
