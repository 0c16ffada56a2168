//! What a router does to a packet that it forwards. No I/O.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::Range;

use outflow_packet::gmc::Sent;
use outflow_routing::membership::packet::checksum;

use crate::forward::Pair;
use crate::limits::MERGED_MAX;
use crate::sys::Offload;

const HEADER_BYTES: usize = 20;
/// Of IPv6.
const HEADER_BYTES_V6: usize = 40;
const UDP_HEADER_BYTES: usize = 8;
const UDP: u8 = 17;
const DONT_FRAGMENT: u16 = 0x4000;
const MORE_FRAGMENTS: u16 = 0x2000;
const OFFSET: u16 = 0x1fff;

/// Why a packet is not forwarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unfit {
    /// It is no packet to a group, or has a wrong length or checksum, or a source that none can have.
    Malformed,
    /// It is not to go farther.
    Ttl,
    /// It is longer than an interface allows, and not to be fragmented.
    TooLong,
    /// It was merged in a way that this does not know.
    Merged,
}

/// A packet that may be forwarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) pair: Pair,
    header_bytes: usize,
    pub(crate) total_bytes: usize,
}

fn word(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn is_v6(packet: &[u8]) -> bool {
    packet.first().is_some_and(|first| first >> 4 == 6)
}

/// Writes length and checksum of an IP header.
fn finish_header(packet: &mut [u8], header_bytes: usize) {
    let total_bytes = packet.len() as u16;
    put(packet, 2, total_bytes);
    put(packet, 10, 0);
    let sum = checksum(0, &packet[..header_bytes]);
    put(packet, 10, sum);
}

fn put(bytes: &mut [u8], at: usize, word: u16) {
    bytes[at..at + 2].copy_from_slice(&word.to_be_bytes());
}

impl Head {
    /// Reads the header, and checks what a router checks (RFC 1812 section 5.2.2; RFC 8200 section 3).
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, Unfit> {
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

    /// Lowers the TTL or hop limit by one, and follows with the checksum, which IPv4 has (RFC 1624).
    pub(crate) fn lower_ttl(bytes: &mut [u8]) {
        if is_v6(bytes) {
            bytes[7] -= 1;
            return;
        }
        let before = word(bytes, 8);
        bytes[8] -= 1;
        let sum = followed(word(bytes, 10), &[(before, word(bytes, 8))]);
        put(bytes, 10, sum);
    }

    /// Does what the network device was to do: completes a checksum, or makes packets of a merged one, behind
    /// what is in `made`, where they are then; without, the packet stays as and where it is.
    pub(crate) fn finish(
        &self,
        packet: &mut [u8],
        offload: Offload,
        made: &mut Vec<u8>,
    ) -> Result<Vec<Range<usize>>, Unfit> {
        if let Some(bytes) = offload.merged {
            return self.part(packet, bytes, made);
        }
        if let Some((start, offset)) = offload.checksum {
            let at = start + offset;
            if start < self.header_bytes || at + 2 > self.total_bytes {
                return Err(Unfit::Malformed);
            }
            // The sum of the pseudo-header stands there. For UDP, zero would mean that there is none.
            let sum = checksum(0, &packet[start..self.total_bytes]);
            put(packet, at, if sum == 0 { 0xffff } else { sum });
        }
        Ok(Vec::new())
    }

    /// The datagrams that a merged one is of, each with `bytes` bytes but for the last.
    fn part(&self, packet: &[u8], bytes: usize, made: &mut Vec<u8>) -> Result<Vec<Range<usize>>, Unfit> {
        let payload = self.header_bytes + UDP_HEADER_BYTES;
        let protocol = packet[if self.is_v6() { 6 } else { 9 }];
        if bytes == 0 || protocol != UDP || payload > self.total_bytes {
            return Err(Unfit::Merged);
        }
        let (header, payload) = packet[..self.total_bytes].split_at(payload);
        if payload.len().div_ceil(bytes) > MERGED_MAX {
            return Err(Unfit::Merged);
        }
        let id = word(header, 4);
        let parts = payload.chunks(bytes).zip(0..).map(|(part, number)| {
            let start = made.len();
            made.extend(header);
            made.extend(part);
            let packet = &mut made[start..];
            if self.is_v6() {
                let length = (packet.len() - HEADER_BYTES_V6) as u16;
                put(packet, 4, length);
            } else {
                put(packet, 4, id.wrapping_add(number));
                finish_header(packet, self.header_bytes);
            }
            self.finish_datagram(packet);
            start..made.len()
        });
        Ok(parts.collect())
    }

    const fn is_v6(&self) -> bool {
        self.pair.group.is_ipv6()
    }

    /// Writes length and checksum of a datagram of UDP.
    fn finish_datagram(&self, packet: &mut [u8]) {
        let length = packet.len() - self.header_bytes;
        let addresses = if self.is_v6() { 8..40 } else { 12..20 };
        let addresses = addresses.step_by(2).map(|at| u32::from(word(packet, at))).sum::<u32>();
        let datagram = &mut packet[self.header_bytes..];
        put(datagram, 4, length as u16);
        put(datagram, 6, 0);
        let sum = checksum(addresses + u32::from(UDP) + length as u32, datagram);
        put(datagram, 6, if sum == 0 { 0xffff } else { sum });
    }
}

/// A checksum as words before it become others (RFC 1624).
fn followed(sum: u16, words: &[(u16, u16)]) -> u16 {
    let changed = words.iter().map(|(before, after)| u32::from(!before) + u32::from(*after));
    let sum = u32::from(!sum) + changed.sum::<u32>();
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    !(sum as u16)
}

/// The port that a packet with a whole datagram of UDP is for, and where its payload stands.
pub(super) fn datagram(packet: &[u8]) -> Option<(u16, Range<usize>)> {
    if is_v6(packet) {
        // What has other headers before is forwarded as it is.
        let payload = HEADER_BYTES_V6 + UDP_HEADER_BYTES;
        let is_one = packet.len() >= payload && packet[6] == UDP;
        return is_one.then(|| (word(packet, HEADER_BYTES_V6 + 2), payload..packet.len()));
    }
    let header_bytes = usize::from(packet.first()? & 0xf) * 4;
    let payload = header_bytes + UDP_HEADER_BYTES;
    let is_whole = header_bytes >= HEADER_BYTES && packet.len() >= payload;
    let is_one = is_whole && packet[9] == UDP && word(packet, 6) & (MORE_FRAGMENTS | OFFSET) == 0;
    is_one.then(|| (word(packet, header_bytes + 2), payload..packet.len()))
}

/// Gives the RTP packet at `rtp` another number, and an end where it has one, and follows with the checksum of UDP, if
/// there is one.
pub(super) fn renumber(packet: &mut [u8], rtp: usize, sent: Sent) {
    let words = [0, 2].map(|at| word(packet, rtp + at));
    let ends = if sent.ends { 0x0080 } else { 0 };
    let after = [words[0] | ends, sent.sequence];
    put(packet, rtp, after[0]);
    put(packet, rtp + 2, after[1]);
    let at = rtp - 2;
    let sum = word(packet, at);
    if sum != 0 {
        let sum = followed(sum, &[(words[0], after[0]), (words[1], after[1])]);
        // Zero would mean that there is none.
        put(packet, at, if sum == 0 { 0xffff } else { sum });
    }
}

/// Whether a packet may be cut into fragments: of IPv6 none. Not all options go into all of these: a host that sends any
/// must not send long packets.
pub(crate) fn may_fragment(packet: &[u8]) -> bool {
    !is_v6(packet)
        && packet.len() > HEADER_BYTES
        && word(packet, 6) & DONT_FRAGMENT == 0
        && packet[0] & 0xf == 5
}

/// Makes fragments (RFC 791 section 3.2) of a packet that is longer than an interface allows, behind what is in
/// `made`, and says where they are.
pub(crate) fn fragment(packet: &[u8], mtu: usize, made: &mut Vec<u8>) -> Result<Vec<Range<usize>>, Unfit> {
    let room = mtu.saturating_sub(HEADER_BYTES) / 8 * 8;
    if !may_fragment(packet) || room == 0 {
        return Err(Unfit::TooLong);
    }
    let flags = word(packet, 6);
    let (header, payload) = packet.split_at(HEADER_BYTES);
    if usize::from(flags & OFFSET) * 8 + payload.len() > usize::from(u16::MAX) {
        return Err(Unfit::Malformed);
    }
    let last = payload.len().div_ceil(room) - 1;
    let parts = payload.chunks(room).enumerate().map(|(number, part)| {
        let start = made.len();
        made.extend(header);
        made.extend(part);
        let packet = &mut made[start..];
        let offset = (flags & OFFSET) + (number * room / 8) as u16;
        let more = if number == last { flags & MORE_FRAGMENTS } else { MORE_FRAGMENTS };
        put(packet, 6, more | offset);
        finish_header(packet, HEADER_BYTES);
        start..made.len()
    });
    Ok(parts.collect())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    const GROUP: [u8; 4] = [239, 1, 2, 3];

    /// A datagram with all checksums, from 10.0.0.9.
    pub(in super::super) fn datagram_to(payload: &[u8], flags: u16) -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, 0, 0x12, 0x34, 0, 0, 8, UDP, 0, 0, 10, 0, 0, 9];
        packet.extend(GROUP);
        packet.extend([0x13, 0x88, 0x13, 0x8c, 0, 0, 0, 0]);
        packet.extend(payload);
        put(&mut packet, 6, flags);
        finish_header(&mut packet, HEADER_BYTES);
        Head { pair: pair(), header_bytes: HEADER_BYTES, total_bytes: packet.len() }
            .finish_datagram(&mut packet);
        packet
    }

    fn pair() -> Pair {
        Pair { group: GROUP.into(), source: [10, 0, 0, 9].into() }
    }

    pub(in super::super) fn is_good(packet: &[u8]) -> bool {
        let addresses = (12..20).step_by(2).map(|at| u32::from(word(packet, at))).sum::<u32>();
        let others = addresses + u32::from(UDP) + (packet.len() - HEADER_BYTES) as u32;
        usize::from(word(packet, 2)) == packet.len()
            && checksum(0, &packet[..HEADER_BYTES]) == 0
            && checksum(others, &packet[HEADER_BYTES..]) == 0
    }

    #[test]
    fn the_ttl_is_lowered_with_a_checksum_that_is_right_whatever_it_was() {
        for id in 0..=u16::MAX {
            let mut packet = datagram_to(b"data", DONT_FRAGMENT);
            put(&mut packet, 4, id);
            finish_header(&mut packet, HEADER_BYTES);
            Head::lower_ttl(&mut packet);
            assert_eq!((packet[8], checksum(0, &packet[..HEADER_BYTES])), (7, 0), "{id}");
        }
    }

    #[test]
    fn what_is_no_whole_packet_of_somebody_to_a_group_is_refused() {
        let good = datagram_to(b"data", 0);
        assert_eq!(Head::parse(&[&good[..], &[0; 9]].concat()).map(|head| head.pair), Ok(pair()));
        let spoiled = |at: usize, byte: u8| {
            let mut packet = good.clone();
            packet[at] = byte;
            put(&mut packet, 10, 0);
            let sum = checksum(0, &packet[..HEADER_BYTES]);
            put(&mut packet, 10, sum);
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

    const GROUP_V6: Ipv6Addr = Ipv6Addr::new(0xff1e, 0, 0, 0, 0, 0, 0, 1);
    const SOURCE_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 9);

    /// The same of IPv6.
    pub(in super::super) fn datagram_v6(payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x60, 0, 0, 0, 0, 0, UDP, 8];
        packet.extend(SOURCE_V6.octets().into_iter().chain(GROUP_V6.octets()));
        packet.extend([0x13, 0x88, 0x13, 0x8c, 0, 0, 0, 0]);
        packet.extend(payload);
        let length = (packet.len() - HEADER_BYTES_V6) as u16;
        put(&mut packet, 4, length);
        head_v6(packet.len()).finish_datagram(&mut packet);
        packet
    }

    fn head_v6(total_bytes: usize) -> Head {
        let pair = Pair { group: GROUP_V6.into(), source: SOURCE_V6.into() };
        Head { pair, header_bytes: HEADER_BYTES_V6, total_bytes }
    }

    fn is_good_v6(packet: &[u8]) -> bool {
        let addresses = (8..40).step_by(2).map(|at| u32::from(word(packet, at))).sum::<u32>();
        let others = addresses + u32::from(UDP) + (packet.len() - HEADER_BYTES_V6) as u32;
        usize::from(word(packet, 4)) == packet.len() - HEADER_BYTES_V6
            && checksum(others, &packet[HEADER_BYTES_V6..]) == 0
    }

    #[test]
    fn packets_of_ipv6_have_a_hop_limit_and_no_fragments() {
        let mut packet = datagram_v6(b"data");
        assert!(is_good_v6(&packet));
        assert_eq!(Head::parse(&[&packet[..], &[0; 9]].concat()), Ok(head_v6(packet.len())));
        Head::lower_ttl(&mut packet);
        assert!(packet[7] == 7 && is_good_v6(&packet));
        assert_eq!(datagram(&packet), Some((5004, 48..52)));
        assert_eq!(fragment(&packet, 1280, &mut Vec::new()), Err(Unfit::TooLong));
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

    #[test]
    fn a_merged_packet_of_ipv6_is_parted_again() {
        let payload = (0..2500_u32).map(|byte| byte as u8).collect::<Vec<_>>();
        let mut packet = datagram_v6(&payload);
        let head = Head::parse(&packet).expect("a packet");
        let offload = Offload { checksum: Some((40, 6)), merged: Some(1000) };
        let mut made = Vec::new();
        let parts = head.finish(&mut packet, offload, &mut made).expect("of a kind that is known");
        let parts = parts.into_iter().map(|range| &made[range]).collect::<Vec<_>>();
        assert!(parts.len() == 3 && parts.iter().all(|part| is_good_v6(part)));
        let together = parts.iter().flat_map(|part| &part[48..]).copied().collect::<Vec<_>>();
        assert_eq!(together, payload);
    }

    #[test]
    fn a_checksum_that_the_device_was_to_complete_is_completed() {
        for payload in [&b"data"[..], b"odd", b""] {
            let mut packet = datagram_to(payload, 0);
            let addresses = (12..20).step_by(2).map(|at| u32::from(word(&packet, at))).sum::<u32>();
            let length = (packet.len() - HEADER_BYTES) as u32;
            let pseudo = !checksum(addresses + u32::from(UDP) + length, &[]);
            put(&mut packet, 26, pseudo);
            let head = Head::parse(&packet).expect("a packet");
            let offload = Offload { checksum: Some((20, 6)), merged: None };
            assert_eq!(head.finish(&mut packet, offload, &mut Vec::new()), Ok(Vec::new()));
            assert!(is_good(&packet), "{payload:?}");
            let outside = Offload { checksum: Some((20, 40)), merged: None };
            assert_eq!(head.finish(&mut packet, outside, &mut Vec::new()), Err(Unfit::Malformed));
        }
    }

    #[test]
    fn a_merged_packet_is_parted_again() {
        let payload = (0..2500_u32).map(|byte| byte as u8).collect::<Vec<_>>();
        let mut packet = datagram_to(&payload, DONT_FRAGMENT);
        let head = Head::parse(&packet).expect("a packet");
        let merged = |bytes| Offload { checksum: Some((20, 6)), merged: Some(bytes) };
        let mut made = b"before".to_vec();
        let parts = head.finish(&mut packet, merged(1000), &mut made).expect("of a kind that is known");
        let parts = parts.into_iter().map(|range| &made[range]).collect::<Vec<_>>();
        assert!(parts.iter().all(|part| is_good(part)));
        assert_eq!(parts.iter().map(|part| word(part, 4)).collect::<Vec<_>>(), [0x1234, 0x1235, 0x1236]);
        let together = parts.iter().flat_map(|part| &part[28..]).copied().collect::<Vec<_>>();
        assert_eq!(together, payload);
        for bytes in [0, 10] {
            assert_eq!(head.finish(&mut packet, merged(bytes), &mut made), Err(Unfit::Merged));
        }
    }

    #[test]
    fn a_packet_that_is_too_long_becomes_fragments_if_it_may() {
        let payload = vec![7; 3000];
        let packet = datagram_to(&payload, 0);
        let mut made = Vec::new();
        let parts = fragment(&packet, 1500, &mut made).expect("it may");
        let heads = parts.iter().map(|range| (word(&made, range.start + 6), range.len()));
        let more = MORE_FRAGMENTS;
        assert_eq!(heads.collect::<Vec<_>>(), [(more, 1500), (more | 185, 1500), (370, 20 + 48)]);
        assert!(parts.iter().all(|range| checksum(0, &made[range.start..range.start + 20]) == 0));
        let together = parts.iter().flat_map(|range| &made[range.start + 20..range.end]);
        assert!(together.eq(&packet[20..]));
        // A fragment may be cut again; its last part is not the last one of all.
        let middle = made[parts[1].clone()].to_vec();
        let again = fragment(&middle, 776, &mut made).expect("it may");
        let heads = again.iter().map(|range| word(&made, range.start + 6)).collect::<Vec<_>>();
        assert_eq!(heads, [more | 185, more | 279]);
        let whole = datagram_to(&payload, DONT_FRAGMENT);
        assert_eq!(fragment(&whole, 1500, &mut made), Err(Unfit::TooLong));
        assert_eq!(fragment(&packet, 20, &mut made), Err(Unfit::TooLong));
        let beyond_the_end = datagram_to(&payload, OFFSET);
        assert_eq!(fragment(&beyond_the_end, 1500, &mut made), Err(Unfit::Malformed));
    }
}
