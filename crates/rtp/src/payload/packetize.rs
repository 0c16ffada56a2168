//! Access units into the RTP packets of one track.

use bytes::{Bytes, BytesMut};
use outflow_media::codec::annex_b::Units;
use outflow_media::codec::{h264, h265};
use outflow_media::format::{Codec, Track};

use super::{NalHeader, fragment_flags, h264 as nal_h264, h265 as nal_h265};
use crate::limits::PAYLOAD_BYTES_MAX;
use crate::{HEADER, MARKER, PlainHeader};

/// Memory is taken in blocks, so that small packets share them.
const BLOCK_BYTES: usize = 64 << 10;
/// Bytes of the size that stands in front of each unit of an aggregate.
const SIZE: usize = 2;

/// Puts access units into packets whose payloads have at most [`PAYLOAD_BYTES_MAX`] bytes.
///
/// Of H.264 and H.265, NAL units go together while they fit into one packet (STAP-A, RFC 6184, section 5.7.1; aggregation
/// packets, RFC 7798, section 4.4.2), and one that does not fit goes as fragments (5.8; 4.4.3). Delimiters, fillers and ends of
/// sequences are left out: RTP says what they say. A unit of another codec is one packet.
#[derive(Debug)]
pub struct Packetizer {
    payload: Payload,
    payload_type: u8,
    ssrc: u32,
    /// The number of the next packet.
    sequence: u16,
    /// Packets are written here, and cut off.
    space: BytesMut,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Payload {
    H264,
    H265,
    /// An access unit is a payload.
    Whole,
}

impl Packetizer {
    /// For a track whose packets come from `ssrc`; the first one has this number. `None` for a codec that it does not know.
    pub fn new(track: &Track, ssrc: u32, sequence: u16) -> Option<Self> {
        let payload = match track.codec {
            Codec::H264 { .. } => Payload::H264,
            Codec::H265 { .. } => Payload::H265,
            Codec::Opus => Payload::Whole,
            _ => return None,
        };
        let (payload_type, space) = (track.payload_type, BytesMut::new());
        Some(Packetizer { payload, payload_type, ssrc, sequence, space })
    }

    /// Something is missing in front of the next packet: a number is left out.
    pub fn skip(&mut self) {
        self.sequence = self.sequence.wrapping_add(1);
    }

    /// Takes one access unit, as [`AccessUnit`](outflow_media::AccessUnit) has it, and gives its packets; the last one has the
    /// marker. Nothing comes of one that has nothing to be sent.
    pub fn push(&mut self, unit: &[u8], timestamp: u32, out: &mut impl FnMut(Bytes)) {
        let mut packets = Packets { of: self, timestamp, begun: false };
        match packets.of.payload {
            Payload::Whole if unit.is_empty() => {}
            Payload::Whole => packets.begin(unit.len(), out).extend_from_slice(unit),
            Payload::H264 | Payload::H265 => packets.nal_units(unit, out),
        }
        packets.end(out);
    }
}

/// The packets of one access unit, while they are written.
struct Packets<'p> {
    of: &'p mut Packetizer,
    timestamp: u32,
    /// The last one stands in the space, whole.
    begun: bool,
}

impl Packets<'_> {
    /// Begins another packet, for a payload of this many bytes; the one before is complete.
    fn begin(&mut self, bytes: usize, out: &mut impl FnMut(Bytes)) -> &mut BytesMut {
        if core::mem::replace(&mut self.begun, true) {
            out(self.of.space.split().freeze());
        }
        let &mut Packetizer { payload_type, ssrc, sequence, .. } = &mut *self.of;
        let header = PlainHeader { marker: false, payload_type, sequence, timestamp: self.timestamp, ssrc };
        self.of.sequence = sequence.wrapping_add(1);
        let space = &mut self.of.space;
        if space.capacity() < HEADER + bytes {
            space.reserve((HEADER + bytes).max(BLOCK_BYTES));
        }
        space.extend_from_slice(&header.emit());
        space
    }

    /// The last packet is complete, and with it the access unit.
    fn end(self, out: &mut impl FnMut(Bytes)) {
        if self.begun {
            let mut packet = self.of.space.split();
            packet[1] |= MARKER;
            out(packet.freeze());
        }
    }

    fn nal_units(&mut self, data: &[u8], out: &mut impl FnMut(Bytes)) {
        let mut units = Sent { units: Units::of(data), payload: self.of.payload };
        loop {
            // How many of the next go together, and how long that is.
            let (mut count, mut bytes) = (0, self.of.payload.header_bytes());
            for unit in units.clone() {
                if bytes + SIZE + unit.len() > PAYLOAD_BYTES_MAX {
                    break;
                }
                (count, bytes) = (count + 1, bytes + SIZE + unit.len());
            }
            if count > 1 {
                self.aggregate((&mut units).take(count), bytes, out);
            } else if let Some(unit) = units.next() {
                self.single(unit, out);
            } else {
                return;
            }
        }
    }

    /// NAL units in one packet. Its header says what the most important of them says (RFC 6184, section 5.7), or the lowest
    /// layer and sub-layer (RFC 7798, section 4.4.2).
    fn aggregate<'a>(
        &mut self,
        units: impl Iterator<Item = &'a [u8]>,
        bytes: usize,
        out: &mut impl FnMut(Bytes),
    ) {
        let payload = self.of.payload;
        let packet = self.begin(bytes, out);
        let at = packet.len();
        packet.resize(at + payload.header_bytes(), 0);
        let mut header = None;
        for unit in units {
            packet.extend_from_slice(&(unit.len() as u16).to_be_bytes());
            packet.extend_from_slice(unit);
            header = Some(payload.of_aggregate(header, unit));
        }
        let header = header.unwrap_or_default();
        packet[at..at + payload.header_bytes()].copy_from_slice(&header[..payload.header_bytes()]);
    }

    /// A NAL unit alone: a packet, or as many fragments as it takes, about as long as each other.
    fn single(&mut self, unit: &[u8], out: &mut impl FnMut(Bytes)) {
        if unit.len() <= PAYLOAD_BYTES_MAX {
            return self.begin(unit.len(), out).extend_from_slice(unit);
        }
        let payload = self.of.payload;
        let (header, data) = unit.split_at(payload.header_bytes());
        let Some(header) = NalHeader::of(header) else { return };
        let room = PAYLOAD_BYTES_MAX - payload.header_bytes() - 1;
        let each = data.len().div_ceil(data.len().div_ceil(room));
        let last = data.len().div_ceil(each) - 1;
        for (number, part) in data.chunks(each).enumerate() {
            let flags = fragment_flags(number == 0, number == last);
            let packet = self.begin(header.length + 1 + part.len(), out);
            match payload {
                Payload::H265 => packet.extend_from_slice(&nal_h265::fragment(header, flags)),
                _ => packet.extend_from_slice(&nal_h264::fragment(header, flags)),
            }
            packet.extend_from_slice(part);
        }
    }
}

/// The NAL units of an access unit that are sent.
#[derive(Debug, Clone)]
struct Sent<'a> {
    units: Units<'a>,
    payload: Payload,
}

impl<'a> Iterator for Sent<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let payload = self.payload;
        self.units.find(|unit| payload.sends(unit))
    }
}

impl Payload {
    /// Bytes of the header of a NAL unit, and of an aggregate.
    const fn header_bytes(self) -> usize {
        if matches!(self, Payload::H265) { 2 } else { 1 }
    }

    /// Whether a NAL unit is sent.
    fn sends(self, unit: &[u8]) -> bool {
        // Delimiters, ends of sequences and of streams, fillers (table 7-1 of both).
        let left_out = match self {
            Payload::H265 => 35..=38,
            _ => 9..=12,
        };
        let kind = |header: &u8| match self {
            Payload::H265 => h265::nal_type(*header),
            _ => h264::nal_type(*header),
        };
        unit.len() >= self.header_bytes()
            && unit.first().is_some_and(|header| !left_out.contains(&kind(header)))
    }

    /// The header of an aggregate of units that had this one, once there is this unit, too.
    fn of_aggregate(self, before: Option<[u8; 2]>, unit: &[u8]) -> [u8; 2] {
        match (self, unit) {
            (Payload::H265, &[first, second, ..]) => {
                let of = |first: u8, second: u8| (first & 1, second >> 3, second & 7);
                let (high, low, sub_layer) = of(first, second);
                let before = before.map_or((high, low, sub_layer), |[first, second]| of(first, second));
                let ((high, low), sub_layer) =
                    ((high, low).min((before.0, before.1)), sub_layer.min(before.2));
                [nal_h265::AGGREGATION << 1 | high, low << 3 | sub_layer]
            }
            (_, unit) => {
                let own = unit.first().map_or(0, |header| header & 0x60);
                let most = before.map_or(0, |[header, _]| header & 0x60).max(own);
                [most | nal_h264::STAP_A, 0]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Buf;

    use super::*;
    use crate::RtpHeader;
    use crate::payload::depacketize::Depacketizer;

    fn h265() -> Track {
        let (vps, sps, pps) = (None, None, None);
        Track { codec: Codec::H265 { vps, sps, pps }, ..Track::h264() }
    }

    fn packets(track: &Track, unit: &[u8]) -> Vec<Bytes> {
        let mut packets = Vec::new();
        let mut packetizer = Packetizer::new(track, 7, 65_535).expect("it is known");
        packetizer.push(unit, 99, &mut |packet| packets.push(packet));
        packets
    }

    /// A byte stream of these units, with start codes of three and of four bytes.
    fn stream(units: &[&[u8]]) -> Vec<u8> {
        let code = |at: usize| if at.is_multiple_of(2) { &[0, 0, 0, 1][..] } else { &[0, 0, 1] };
        units.iter().enumerate().flat_map(|(at, unit)| [code(at), unit].concat()).collect()
    }

    fn long(header: &[u8], bytes: usize) -> Vec<u8> {
        let body: Vec<u8> = (0..bytes).map(|at| (at % 250) as u8 + 2).collect();
        [header, &body].concat()
    }

    /// What a receiver makes of the packets.
    fn received(track: &Track, packets: &[Bytes]) -> Vec<Vec<u8>> {
        let mut depacketizer = Depacketizer::new(track).expect("it is known");
        let mut units = Vec::new();
        for packet in packets {
            depacketizer.handle(packet.clone(), |unit| units.push(unit.data.to_vec()));
        }
        units
    }

    #[test]
    fn a_receiver_gets_the_units_that_are_of_use_to_it() {
        let (sps, pps) = (&[0x67, 1, 2][..], &[0x68, 3][..]);
        for bytes in [10, 1_197, 1_198, 1_199, 5_000, 100_000] {
            let idr = long(&[0x65, 0x88], bytes);
            let unit = stream(&[&[9, 0xf0], sps, pps, &idr, &[12, 0xff, 0x80]]);
            let packets = packets(&Track::h264(), &unit);
            let expected = [&[0, 0, 0, 1][..], sps, &[0, 0, 0, 1], pps, &[0, 0, 0, 1], &idr].concat();
            assert_eq!(received(&Track::h264(), &packets), [expected], "{bytes}");
            let (vps, sps, idr) = (&[0x40, 1, 2][..], &[0x42, 1, 2][..], long(&[0x26, 1, 0x80], bytes));
            let unit = stream(&[&[0x46, 1, 0x50], vps, sps, &idr]);
            let packets = self::packets(&h265(), &unit);
            let expected = [&[0, 0, 0, 1][..], vps, &[0, 0, 0, 1], sps, &[0, 0, 0, 1], &idr].concat();
            assert_eq!(received(&h265(), &packets), [expected], "{bytes}");
        }
    }

    #[test]
    fn packets_are_as_long_as_a_path_carries_and_the_last_has_the_marker() {
        let unit = stream(&[&[0x67, 1, 2], &[0x68, 3], &long(&[0x65], 3_000)]);
        let packets = packets(&Track::h264(), &unit);
        let headers: Vec<_> =
            packets.iter().map(|packet| RtpHeader::new_checked(packet).expect("RTP")).collect();
        let said: Vec<_> =
            headers.iter().map(|it| (it.sequence(), it.marker(), it.payload().len())).collect();
        assert_eq!(
            said,
            [(65_535, false, 10), (0, false, 1_002), (1, false, 1_002), (2, true, 1_002)],
            "parameter sets together, fragments alike"
        );
        assert!(headers.iter().all(|it| (it.timestamp(), it.ssrc(), it.payload_type()) == (99, 7, 96)));
        assert_eq!(headers[0].payload()[..4], [0x78, 0, 3, 0x67]);
    }

    #[test]
    fn an_aggregate_says_the_most_important_and_the_lowest_of_its_units() {
        let first = |track: &Track, units: &[&[u8]]| {
            let mut packet = packets(track, &stream(units)).remove(0);
            packet.advance(HEADER);
            packet
        };
        assert_eq!(first(&Track::h264(), &[&[0x06, 5], &[0x41, 9]])[0], 0x40 | 24);
        assert_eq!(first(&h265(), &[&[0x02, 3, 1], &[0x02, 2, 1]])[..2], [0x60, 2]);
    }

    #[test]
    fn sound_is_a_packet_a_frame_and_numbers_are_left_out_where_something_is_missing() {
        let track = Track { codec: Codec::Opus, ..Track::mp2t() };
        let mut packetizer = Packetizer::new(&track, 7, 5).expect("it is known");
        let mut packets = Vec::new();
        packetizer.push(b"abc", 1, &mut |packet| packets.push(packet));
        packetizer.skip();
        packetizer.push(b"", 2, &mut |packet| packets.push(packet));
        packetizer.push(b"d", 2, &mut |packet| packets.push(packet));
        let said = packets.iter().map(|packet| {
            let header = RtpHeader::new_checked(packet).expect("RTP");
            (header.sequence(), header.marker(), header.payload().to_vec())
        });
        assert_eq!(said.collect::<Vec<_>>(), [(5, true, b"abc".to_vec()), (7, true, b"d".to_vec())]);
        assert!(Packetizer::new(&Track::mp2t(), 7, 5).is_none());
    }

    #[test]
    fn of_what_has_no_unit_that_is_sent_nothing_comes() {
        for unit in [&[][..], &[0x65, 1], &[0, 0, 1], &[0, 0, 1, 9, 0xf0], &[0, 0, 1, 0]] {
            assert_eq!(packets(&Track::h264(), unit).len(), 0, "{unit:?}");
        }
        assert_eq!(packets(&h265(), &[0, 0, 1, 0x26]).len(), 0, "shorter than its header");
    }
}
