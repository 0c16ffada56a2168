//! What a router in user space makes of packets of IPv4 and IPv6.

use outflow_multicast::testing::{Beside, forwarded, is_whole};
use outflow_packet::Level;
use outflow_packet::gmc::Ways;

use crate::packets::packets;

/// Behind one byte that says what the kernel left to do, and two numbers of two bytes for that, come packets. Each that
/// goes on is a whole one, none is longer than the interface allows, and all of them together are bounded.
pub(crate) fn forwarded_packets(data: &[u8]) {
    let Some((&[how, a, b, c, d], rest)) = data.split_first_chunk::<5>() else { return };
    let [one, other] = [[a, b], [c, d]].map(|bytes| usize::from(u16::from_be_bytes(bytes)));
    let beside = Beside {
        checksum: (how & 1 != 0).then_some((one, other)),
        merged: (how & 2 != 0).then_some(one),
        mtu: if how & 4 == 0 { 1500 } else { 68 },
    };
    let mut ways = Ways::default();
    ways.set([(1, Level::BEST), (2, Level::new(2).unwrap_or_default())], |_| false);
    for packet in packets(rest) {
        let mut packet = packet.to_vec();
        for out in forwarded(&mut packet, beside, &mut ways) {
            assert!(out.len() <= beside.mtu && is_whole(&out));
        }
    }
}
