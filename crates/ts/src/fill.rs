//! Packets that add nothing to a video stream but let its continuity counter go on.

use bytes::{Bytes, BytesMut};

use super::packet::{Header, PACKET_BYTES};

/// Packets of video on `pid` that change nothing of what is decoded, to go between two access units: `count`
/// of them, behind a packet with this continuity counter. A receiver that changes to a version of a stream
/// with another counter sees no gap behind them.
///
/// Each is a PES packet without a time of its own, and its payload a zero byte, which may stand behind
/// every access unit (`trailing_zero_8bits`, ITU-T H.264 and H.265 annex B; zero stuffing before start
/// codes, ISO/IEC 13818-2 section 5.2.3). `stream_id` is that of the stream's PES packets.
pub(super) fn fill(pid: u16, stream_id: u8, counter: u8, count: u8) -> Bytes {
    let mut out = BytesMut::with_capacity(usize::from(count) * PACKET_BYTES);
    for step in 1..=count {
        let continuity = counter.wrapping_add(step) & 0x0f;
        // Of length 4: no flags, no header data, one byte.
        let pes = [0, 0, 1, stream_id, 0, 4, 0x80, 0, 0, 0];
        Header { pid, unit_start: true, continuity, ..Header::default() }.emit(&mut out, &mut &pes[..]);
    }
    out.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Packet;
    use crate::pes::{PesHeader, VIDEO_ID};

    #[test]
    fn counters_go_on_and_nothing_but_zeros_is_carried() {
        let filled = fill(0x100, VIDEO_ID, 14, 5);
        let packets: Vec<_> =
            filled.chunks(PACKET_BYTES).map(|packet| Packet::new_checked(packet).unwrap()).collect();
        let counters: Vec<_> = packets.iter().map(Packet::continuity).collect();
        assert_eq!(counters, [15, 0, 1, 2, 3]);
        for packet in packets {
            let header = PesHeader::parse(packet.payload()).unwrap();
            assert_eq!((packet.pid(), header.stream_id, header.pts), (0x100, VIDEO_ID, None));
            assert_eq!(header.packet_bytes, Some(packet.payload().len()));
            assert_eq!(packet.payload()[header.header_bytes..], [0]);
        }
        assert!(fill(0x100, VIDEO_ID, 14, 0).is_empty());
    }
}
