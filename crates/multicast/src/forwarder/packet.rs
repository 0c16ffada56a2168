//! What only a driver does to a packet that a router forwards: what the network device was to do, and fragments. The rest
//! is [`outflow_routing::forwarding`]'s. No I/O.

use std::ops::Range;

use outflow_routing::forwarding::Head;
use outflow_routing::forwarding::fields::{
    DONT_FRAGMENT, HEADER_BYTES, HEADER_BYTES_V6, MORE_FRAGMENTS, OFFSET, UDP, UDP_HEADER_BYTES, is_v6, put,
    word,
};
use outflow_routing::membership::packet::checksum;

use crate::limits::MERGED_MAX;
use crate::sys::Offload;

/// Why nothing that can be sent was made of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unmade {
    /// What is said of its checksum or its fragments lies beyond its end.
    Malformed,
    /// It is longer than an interface allows, and not to be fragmented.
    TooLong,
    /// It was merged in a way that this does not know.
    Merged,
}

/// Writes length and checksum of an IP header.
fn finish_header(packet: &mut [u8], header_bytes: usize) {
    let total_bytes = packet.len() as u16;
    put(packet, 2, total_bytes);
    put(packet, 10, 0);
    let sum = checksum(0, &packet[..header_bytes]);
    put(packet, 10, sum);
}

/// Writes length and checksum of a datagram of UDP behind a header.
fn finish_datagram(packet: &mut [u8], header_bytes: usize) {
    let length = packet.len() - header_bytes;
    let addresses = if is_v6(packet) { 8..40 } else { 12..20 };
    let addresses = addresses.step_by(2).map(|at| u32::from(word(packet, at))).sum::<u32>();
    let datagram = &mut packet[header_bytes..];
    put(datagram, 4, length as u16);
    put(datagram, 6, 0);
    let sum = checksum(addresses + u32::from(UDP) + length as u32, datagram);
    put(datagram, 6, if sum == 0 { 0xffff } else { sum });
}

/// Does what the network device was to do: completes a checksum, or makes packets of a merged one, behind
/// what is in `made`, where they are then; without, the packet stays as and where it is.
pub(super) fn finish(
    head: &Head,
    packet: &mut [u8],
    offload: Offload,
    made: &mut Vec<u8>,
) -> Result<Vec<Range<usize>>, Unmade> {
    if let Some(bytes) = offload.merged {
        return part(head, packet, bytes, made);
    }
    if let Some((start, offset)) = offload.checksum {
        let at = start + offset;
        if start < head.header_bytes() || at + 2 > head.total_bytes() {
            return Err(Unmade::Malformed);
        }
        // The sum of the pseudo-header stands there. For UDP, zero would mean that there is none.
        let sum = checksum(0, &packet[start..head.total_bytes()]);
        put(packet, at, if sum == 0 { 0xffff } else { sum });
    }
    Ok(Vec::new())
}

/// The datagrams that a merged one is of, each with `bytes` bytes but for the last.
fn part(head: &Head, packet: &[u8], bytes: usize, made: &mut Vec<u8>) -> Result<Vec<Range<usize>>, Unmade> {
    let is_v6 = is_v6(packet);
    let payload = head.header_bytes() + UDP_HEADER_BYTES;
    let protocol = packet[if is_v6 { 6 } else { 9 }];
    if bytes == 0 || protocol != UDP || payload > head.total_bytes() {
        return Err(Unmade::Merged);
    }
    let (header, payload) = packet[..head.total_bytes()].split_at(payload);
    if payload.len().div_ceil(bytes) > MERGED_MAX {
        return Err(Unmade::Merged);
    }
    let id = word(header, 4);
    let parts = payload.chunks(bytes).zip(0..).map(|(part, number)| {
        let start = made.len();
        made.extend(header);
        made.extend(part);
        let packet = &mut made[start..];
        if is_v6 {
            let length = (packet.len() - HEADER_BYTES_V6) as u16;
            put(packet, 4, length);
        } else {
            put(packet, 4, id.wrapping_add(number));
            finish_header(packet, head.header_bytes());
        }
        finish_datagram(packet, head.header_bytes());
        start..made.len()
    });
    Ok(parts.collect())
}

/// Whether a packet may be cut into fragments: of IPv6 none. Not all options go into all of these: a host that sends any
/// must not send long packets.
pub(super) fn may_fragment(packet: &[u8]) -> bool {
    !is_v6(packet)
        && packet.len() > HEADER_BYTES
        && word(packet, 6) & DONT_FRAGMENT == 0
        && packet[0] & 0xf == 5
}

/// Makes fragments (RFC 791 section 3.2) of a packet that is longer than an interface allows, behind what is in
/// `made`, and says where they are.
pub(super) fn fragment(packet: &[u8], mtu: usize, made: &mut Vec<u8>) -> Result<Vec<Range<usize>>, Unmade> {
    let room = mtu.saturating_sub(HEADER_BYTES) / 8 * 8;
    if !may_fragment(packet) || room == 0 {
        return Err(Unmade::TooLong);
    }
    let flags = word(packet, 6);
    let (header, payload) = packet.split_at(HEADER_BYTES);
    if usize::from(flags & OFFSET) * 8 + payload.len() > usize::from(u16::MAX) {
        return Err(Unmade::Malformed);
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
mod tests {
    use super::*;

    /// A datagram with all checksums, from 10.0.0.9.
    fn datagram_to(payload: &[u8], flags: u16) -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, 0, 0x12, 0x34, 0, 0, 8, UDP, 0, 0, 10, 0, 0, 9, 239, 1, 2, 3];
        packet.extend([0x13, 0x88, 0x13, 0x8c, 0, 0, 0, 0]);
        packet.extend(payload);
        put(&mut packet, 6, flags);
        finish_header(&mut packet, HEADER_BYTES);
        finish_datagram(&mut packet, HEADER_BYTES);
        packet
    }

    fn is_good(packet: &[u8]) -> bool {
        let addresses = (12..20).step_by(2).map(|at| u32::from(word(packet, at))).sum::<u32>();
        let others = addresses + u32::from(UDP) + (packet.len() - HEADER_BYTES) as u32;
        usize::from(word(packet, 2)) == packet.len()
            && checksum(0, &packet[..HEADER_BYTES]) == 0
            && checksum(others, &packet[HEADER_BYTES..]) == 0
    }

    /// The same of IPv6.
    fn datagram_v6(payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x60, 0, 0, 0, 0, 0, UDP, 8];
        packet.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9]);
        packet.extend([0xff, 0x1e, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        packet.extend([0x13, 0x88, 0x13, 0x8c, 0, 0, 0, 0]);
        packet.extend(payload);
        let length = (packet.len() - HEADER_BYTES_V6) as u16;
        put(&mut packet, 4, length);
        finish_datagram(&mut packet, HEADER_BYTES_V6);
        packet
    }

    fn is_good_v6(packet: &[u8]) -> bool {
        let addresses = (8..40).step_by(2).map(|at| u32::from(word(packet, at))).sum::<u32>();
        let others = addresses + u32::from(UDP) + (packet.len() - HEADER_BYTES_V6) as u32;
        usize::from(word(packet, 4)) == packet.len() - HEADER_BYTES_V6
            && checksum(others, &packet[HEADER_BYTES_V6..]) == 0
    }

    #[test]
    fn packets_of_ipv6_are_not_cut() {
        let packet = datagram_v6(b"data");
        assert!(is_good_v6(&packet));
        assert_eq!(fragment(&packet, 1280, &mut Vec::new()), Err(Unmade::TooLong));
    }

    #[test]
    fn a_merged_packet_of_ipv6_is_parted_again() {
        let payload = (0..2500_u32).map(|byte| byte as u8).collect::<Vec<_>>();
        let mut packet = datagram_v6(&payload);
        let head = Head::parse(&packet).expect("a packet");
        let offload = Offload { checksum: Some((40, 6)), merged: Some(1000) };
        let mut made = Vec::new();
        let parts = finish(&head, &mut packet, offload, &mut made).expect("of a kind that is known");
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
            assert_eq!(finish(&head, &mut packet, offload, &mut Vec::new()), Ok(Vec::new()));
            assert!(is_good(&packet), "{payload:?}");
            let outside = Offload { checksum: Some((20, 40)), merged: None };
            assert_eq!(finish(&head, &mut packet, outside, &mut Vec::new()), Err(Unmade::Malformed));
        }
    }

    #[test]
    fn a_merged_packet_is_parted_again() {
        let payload = (0..2500_u32).map(|byte| byte as u8).collect::<Vec<_>>();
        let mut packet = datagram_to(&payload, DONT_FRAGMENT);
        let head = Head::parse(&packet).expect("a packet");
        let merged = |bytes| Offload { checksum: Some((20, 6)), merged: Some(bytes) };
        let mut made = b"before".to_vec();
        let parts = finish(&head, &mut packet, merged(1000), &mut made).expect("of a kind that is known");
        let parts = parts.into_iter().map(|range| &made[range]).collect::<Vec<_>>();
        assert!(parts.iter().all(|part| is_good(part)));
        assert_eq!(parts.iter().map(|part| word(part, 4)).collect::<Vec<_>>(), [0x1234, 0x1235, 0x1236]);
        let together = parts.iter().flat_map(|part| &part[28..]).copied().collect::<Vec<_>>();
        assert_eq!(together, payload);
        for bytes in [0, 10] {
            assert_eq!(finish(&head, &mut packet, merged(bytes), &mut made), Err(Unmade::Merged));
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
        assert_eq!(fragment(&whole, 1500, &mut made), Err(Unmade::TooLong));
        assert_eq!(fragment(&packet, 20, &mut made), Err(Unmade::TooLong));
        let beyond_the_end = datagram_to(&payload, OFFSET);
        assert_eq!(fragment(&beyond_the_end, 1500, &mut made), Err(Unmade::Malformed));
    }
}
