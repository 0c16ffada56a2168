//! The header that a packet begins with.

use core::net::{Ipv4Addr, Ipv6Addr};

use super::Pair;
use super::fields::{HEADER_BYTES, HEADER_BYTES_V6, followed, is_v6, put, word};
use crate::ip::checksum;

/// Why a packet is not forwarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// It is no packet to a group, or has a wrong length or checksum, or a source that none can have.
    #[error("it is no whole packet of a host to a group")]
    Malformed,
    /// It is not to go farther.
    #[error("its TTL or hop limit lets it go no farther")]
    Ttl,
}

/// A packet that may be forwarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    pair: Pair,
    header_bytes: usize,
    total_bytes: usize,
}

impl Head {
    /// Reads the header, and checks what a router checks (RFC 1812 section 5.2.2; RFC 8200 section 3).
    ///
    /// # Errors
    /// The packet is not to be forwarded. What is both is [`Unfit::Malformed`].
    #[inline]
    pub fn parse(bytes: &[u8]) -> Result<Self, Unfit> {
        if is_v6(bytes) {
            return Head::parse_v6(bytes);
        }
        let fixed = bytes.first_chunk::<HEADER_BYTES>().ok_or(Unfit::Malformed)?;
        let (header_bytes, total_bytes) = (usize::from(fixed[0] & 0xf) * 4, usize::from(word(fixed, 2)));
        let is_whole = fixed[0] >> 4 == 4
            && (HEADER_BYTES..=total_bytes).contains(&header_bytes)
            && total_bytes <= bytes.len()
            && checksum(0, &bytes[..header_bytes]) == 0;
        let address = |at: usize| Ipv4Addr::new(fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]);
        let (group, source) = (address(16), address(12));
        let is_nobody = source.is_multicast() || source.is_broadcast() || source.is_loopback();
        if !is_whole || !group.is_multicast() || is_nobody || source.octets()[0] == 0 {
            return Err(Unfit::Malformed);
        }
        if fixed[8] <= 1 {
            return Err(Unfit::Ttl);
        }
        Ok(Head { pair: Pair { group: group.into(), source: source.into() }, header_bytes, total_bytes })
    }

    /// Packets from link-local addresses stay on their link (RFC 4291, section 2.5.6).
    #[inline]
    fn parse_v6(bytes: &[u8]) -> Result<Self, Unfit> {
        let fixed = bytes.first_chunk::<HEADER_BYTES_V6>().ok_or(Unfit::Malformed)?;
        let (header_bytes, total_bytes) = (HEADER_BYTES_V6, HEADER_BYTES_V6 + usize::from(word(fixed, 4)));
        let (addresses, _) = fixed[8..].as_chunks::<16>();
        let [source, group] = [addresses[0], addresses[1]].map(Ipv6Addr::from);
        let is_nobody = source.is_multicast()
            || source.is_loopback()
            || source.is_unspecified()
            || source.is_unicast_link_local();
        if total_bytes > bytes.len() || !group.is_multicast() || is_nobody {
            return Err(Unfit::Malformed);
        }
        if fixed[7] <= 1 {
            return Err(Unfit::Ttl);
        }
        Ok(Head { pair: Pair { group: group.into(), source: source.into() }, header_bytes, total_bytes })
    }

    /// Its source and its group.
    pub const fn pair(&self) -> Pair {
        self.pair
    }

    /// Bytes of the header, with IPv4's options, without IPv6's headers behind the fixed one.
    pub const fn header_bytes(&self) -> usize {
        self.header_bytes
    }

    /// Bytes of the packet, with the header. What is behind does not belong to it.
    pub const fn total_bytes(&self) -> usize {
        self.total_bytes
    }

    /// Lowers the TTL or hop limit by one, and follows with the checksum, which IPv4 has (RFC 1624). The packet is one
    /// that [`Head::parse`] has taken.
    ///
    /// # Panics
    /// It is shorter than a header, or, where overflow is checked, has a TTL of zero.
    #[inline]
    pub fn lower_ttl(bytes: &mut [u8]) {
        if is_v6(bytes) {
            bytes[7] -= 1;
            return;
        }
        let before = word(bytes, 8);
        bytes[8] -= 1;
        let sum = followed(word(bytes, 10), &[(before, word(bytes, 8))]);
        put(bytes, 10, sum);
    }
}

#[cfg(test)]
mod tests {
    use super::super::datagram;
    use super::super::fields::DONT_FRAGMENT;
    use super::super::testing::{GROUP, GROUP_V6, SOURCE_V6, datagram_to, datagram_v6, is_good_v6};
    use super::*;

    fn pair() -> Pair {
        Pair { group: GROUP.into(), source: [10, 0, 0, 9].into() }
    }

    fn finish_header(packet: &mut [u8]) {
        put(packet, 10, 0);
        let sum = checksum(0, &packet[..HEADER_BYTES]);
        put(packet, 10, sum);
    }

    #[test]
    fn the_ttl_is_lowered_with_a_checksum_that_is_right_whatever_it_was() {
        for id in 0..=u16::MAX {
            let mut packet = datagram_to(b"data", DONT_FRAGMENT);
            put(&mut packet, 4, id);
            finish_header(&mut packet);
            Head::lower_ttl(&mut packet);
            assert_eq!((packet[8], checksum(0, &packet[..HEADER_BYTES])), (7, 0), "{id}");
        }
    }

    #[test]
    fn what_is_no_whole_packet_of_somebody_to_a_group_is_refused() {
        let good = datagram_to(b"data", 0);
        let head = Head { pair: pair(), header_bytes: HEADER_BYTES, total_bytes: good.len() };
        assert_eq!(Head::parse(&[&good[..], &[0; 9]].concat()), Ok(head));
        let spoiled = |at: usize, byte: u8| {
            let mut packet = good.clone();
            packet[at] = byte;
            finish_header(&mut packet);
            Head::parse(&packet).err()
        };
        for (at, byte) in [(0, 0x65), (0, 0x44), (3, 33), (3, 19), (12, 224), (12, 127), (12, 0), (16, 10)] {
            assert_eq!(spoiled(at, byte), Some(Unfit::Malformed), "{at} {byte}");
        }
        assert_eq!(spoiled(8, 1), Some(Unfit::Ttl));
        assert_eq!(Head::parse(&good[..19]), Err(Unfit::Malformed));
        let mut wrong = good.clone();
        wrong[10] ^= 1;
        assert_eq!(Head::parse(&wrong), Err(Unfit::Malformed));
    }

    #[test]
    fn packets_of_ipv6_have_a_hop_limit() {
        let mut packet = datagram_v6(b"data");
        assert!(is_good_v6(&packet));
        let pair = Pair { group: GROUP_V6.into(), source: SOURCE_V6.into() };
        let head = Head { pair, header_bytes: HEADER_BYTES_V6, total_bytes: packet.len() };
        assert_eq!(Head::parse(&[&packet[..], &[0; 9]].concat()), Ok(head));
        Head::lower_ttl(&mut packet);
        assert!(packet[7] == 7 && is_good_v6(&packet));
        assert_eq!(datagram(&packet), Some((5004, 48..52)));
        let spoiled = |at: usize, byte: u8| {
            let mut packet = packet.clone();
            packet[at] = byte;
            Head::parse(&packet).err()
        };
        // Longer than it is; from a group, from a link, to no group.
        for (at, byte) in [(5, 13), (8, 0xff), (8, 0xfe), (24, 0x20)] {
            let expected = if (at, byte) == (8, 0xfe) { None } else { Some(Unfit::Malformed) };
            assert_eq!(spoiled(at, byte), expected, "{at} {byte}");
        }
        let link_local = [&packet[..8], &[0xfe, 0x80], &packet[10..]].concat();
        assert_eq!(Head::parse(&link_local), Err(Unfit::Malformed));
        assert_eq!(spoiled(7, 1), Some(Unfit::Ttl));
        assert_eq!(Head::parse(&packet[..39]), Err(Unfit::Malformed));
        assert_eq!(datagram(&[&packet[..6], &[0], &packet[7..]].concat()), None, "other headers are before");
    }
}
