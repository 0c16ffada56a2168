//! Datagrams for tests.

use core::net::{Ipv4Addr, Ipv6Addr};

use super::fields::{HEADER_BYTES, HEADER_BYTES_V6, UDP, put, word};
use crate::ip::checksum;

pub(super) const GROUP: Ipv4Addr = Ipv4Addr::new(239, 1, 2, 3);
pub(super) const GROUP_V6: Ipv6Addr = Ipv6Addr::new(0xff1e, 0, 0, 0, 0, 0, 0, 1);
pub(super) const SOURCE_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 9);

/// Behind a header with addresses from byte `addresses` on.
fn push_datagram(packet: &mut Vec<u8>, addresses: usize, payload: &[u8]) {
    let header_bytes = packet.len();
    packet.extend([0x13, 0x88, 0x13, 0x8c, 0, 0, 0, 0]);
    packet.extend(payload);
    let length = packet.len() - header_bytes;
    put(packet, header_bytes + 4, length as u16);
    let sum = datagram_sum(packet, addresses, header_bytes);
    put(packet, header_bytes + 6, sum);
}

fn datagram_sum(packet: &[u8], addresses: usize, header_bytes: usize) -> u16 {
    let sum = (addresses..header_bytes).step_by(2).map(|at| u32::from(word(packet, at))).sum::<u32>();
    checksum(sum + u32::from(UDP) + (packet.len() - header_bytes) as u32, &packet[header_bytes..])
}

/// A datagram with all checksums, from 10.0.0.9.
pub(super) fn datagram_to(payload: &[u8], flags: u16) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 0, 0x12, 0x34, 0, 0, 8, UDP, 0, 0, 10, 0, 0, 9];
    packet.extend(GROUP.octets());
    push_datagram(&mut packet, 12, payload);
    let total_bytes = packet.len() as u16;
    put(&mut packet, 2, total_bytes);
    put(&mut packet, 6, flags);
    let sum = checksum(0, &packet[..HEADER_BYTES]);
    put(&mut packet, 10, sum);
    packet
}

/// The same of IPv6.
pub(super) fn datagram_v6(payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0, 0, 0, UDP, 8];
    packet.extend(SOURCE_V6.octets().into_iter().chain(GROUP_V6.octets()));
    push_datagram(&mut packet, 8, payload);
    let length = (packet.len() - HEADER_BYTES_V6) as u16;
    put(&mut packet, 4, length);
    packet
}

pub(super) fn is_good(packet: &[u8]) -> bool {
    usize::from(word(packet, 2)) == packet.len()
        && checksum(0, &packet[..HEADER_BYTES]) == 0
        && datagram_sum(packet, 12, HEADER_BYTES) == 0
}

pub(super) fn is_good_v6(packet: &[u8]) -> bool {
    usize::from(word(packet, 4)) == packet.len() - HEADER_BYTES_V6
        && datagram_sum(packet, 8, HEADER_BYTES_V6) == 0
}
