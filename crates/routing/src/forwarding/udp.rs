//! Datagrams of UDP in packets, and the RTP packets in these.

use core::ops::Range;

use outflow_packet::gmc::Sent;

use super::fields::{
    HEADER_BYTES, HEADER_BYTES_V6, MORE_FRAGMENTS, OFFSET, UDP, UDP_HEADER_BYTES, followed, is_v6, put, word,
};

/// The port that a packet with a whole datagram of UDP is for, and where its payload stands, in bytes from the packet's
/// first. None if the packet is a fragment, or has anything else in it. The packet ends where its header says.
#[inline]
pub fn datagram(packet: &[u8]) -> Option<(u16, Range<usize>)> {
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

/// Gives the RTP packet at byte `rtp`, where [`datagram`] says the payload begins, another number, and an end where it
/// has one, and follows with the checksum of UDP, if there is one.
///
/// # Panics
/// The packet has fewer than 4 bytes there, or fewer than 2 before.
#[inline]
pub fn renumber(packet: &mut [u8], rtp: usize, sent: Sent) {
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
