//! What tells decoders that a stream broke off and begins again.

use bytes::{Bytes, BytesMut};

use super::DATAGRAM_PACKETS;
use super::packet::{Header, PACKET_BYTES, Packet};
use super::programme::Programme;
use super::psi::PAT_PID;

/// The datagram that goes between the last one of a stream that broke off and `next`, the first
/// one of what came in its place: for every PID of `programme`, which was carried before, a packet
/// without payload whose `discontinuity_indicator` is set (ISO/IEC 13818-1 section 2.4.3.4).
///
/// The continuity counters are those that packets in `next` go on from; for PIDs that `next` does
/// not have, those that a multiplexer goes on from that has just begun, with 0. There are at most seven packets: in a programme with many streams, the
/// last ones are not told.
pub fn announce_discontinuity(programme: &Programme, next: &[u8]) -> Bytes {
    let mut pids: Vec<u16> = Vec::new();
    let streams = programme.streams.iter().map(|stream| stream.pid);
    let first = [programme.pcr_pid, PAT_PID, programme.pmt_pid];
    for pid in programme.main().map(|main| main.pid).into_iter().chain(first).chain(streams) {
        if !pids.contains(&pid) && pid != super::packet::NULL_PID {
            pids.push(pid);
        }
    }
    let mut out = BytesMut::with_capacity(DATAGRAM_PACKETS * PACKET_BYTES);
    for pid in pids.into_iter().take(DATAGRAM_PACKETS) {
        let continuity = counter_before(next, pid).unwrap_or(0x0f);
        Header { pid, continuity, discontinuity: true, ..Header::default() }.emit(&mut out, &mut &[][..]);
    }
    out.freeze()
}

/// The counter of a packet without payload that may stand before the first one of `pid`.
fn counter_before(datagram: &[u8], pid: u16) -> Option<u8> {
    let mut packets = datagram.chunks_exact(PACKET_BYTES).filter_map(|bytes| Packet::new_checked(bytes).ok());
    let packet = packets.find(|packet| packet.pid() == pid)?;
    Some(packet.continuity().wrapping_sub(u8::from(packet.has_payload())) & 0x0f)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::continuity::{Continuity, Step};
    use crate::psi::{Pmt, emit_pmt};

    fn programme(streams: u16) -> Programme {
        let streams: Vec<_> = (0..streams).map(|i| (0x0f, 0x100 + i, vec![])).collect();
        let section = emit_pmt(1, 0, 0x100, &streams).unwrap();
        Programme::new(&Pmt::new_checked(&section).unwrap(), 0x1000)
    }

    fn packet(pid: u16, continuity: u8, payload: &[u8]) -> BytesMut {
        let mut out = BytesMut::new();
        Header { pid, continuity, ..Header::default() }.emit(&mut out, &mut &payload[..]);
        out
    }

    #[test]
    fn what_follows_the_announcement_is_no_error() {
        let mut continuity = Continuity::new();
        let mut steps = |bytes: &[u8]| -> Vec<Step> {
            let packets = bytes.chunks_exact(PACKET_BYTES);
            packets.map(|p| continuity.step(&Packet::new_checked(p).unwrap())).collect()
        };
        for pid in [0, 0x1000, 0x100, 0x101] {
            steps(&packet(pid, 9, &[1]));
        }
        let next = [&packet(0, 0, &[1])[..], &packet(0x1000, 5, &[1]), &packet(0x100, 3, &[])].concat();
        let announced = announce_discontinuity(&programme(2), &next);
        assert_eq!(steps(&announced), [Step::Break; 4]);
        assert_eq!(steps(&next), [Step::Next; 3]);
        assert_eq!(steps(&packet(0x101, 0, &[1])), [Step::Next], "it was not in there");
    }

    #[test]
    fn it_is_one_datagram_and_begins_with_the_clock() {
        let announced = announce_discontinuity(&programme(30), &[]);
        assert_eq!(announced.len(), super::super::DATAGRAM_BYTES);
        let pids: Vec<_> =
            announced.chunks(PACKET_BYTES).map(|p| Packet::new_checked(p).unwrap().pid()).collect();
        assert_eq!(pids[..4], [0x100, 0, 0x1000, 0x101]);
    }
}
