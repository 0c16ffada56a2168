//! From codestreams to packets.

use outflow_packet::limits::MARKED_BYTES_MAX;
use outflow_rtp::payload::jpeg2000;
use outflow_rtp::payload::jpeg2000::{Header, Priorities};
use outflow_rtp::{HEADER, PlainHeader};

use super::PAYLOAD_TYPE;
use crate::codestream::Codestream;

/// Bytes of a packet, at most, that pass everywhere: what is left of 1500 with the headers of IPv6 and UDP.
pub const PACKET_BYTES: usize = 1500 - 48;
const _: () = assert!(PACKET_BYTES <= MARKED_BYTES_MAX, "there is a place for a mark");

/// The largest number of a main header (RFC 5371, section 4.1). 0 tells nothing.
const MAIN_HEADER_ID_MAX: u8 = 7;
/// One in this many frames tells no number. GStreamer's `rtpj2kdepay` (1.22, and later ones) lets no other
/// frame be its first.
const UNNUMBERED: u64 = 4;

/// A codestream is longer than offsets in packets can say, or packets are to be shorter than their headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a codestream of {0} bytes cannot be sent: make it smaller, or packets longer")]
pub struct TooLong(pub usize);

/// Makes packets of frames.
///
/// A packet holds bytes of one layer, or of the main header; its priority is the layer's number and one
/// more, that of the main header 0 (RFC 5372, section 3.3). Main headers that are equal have the same
/// number, so that one that got lost is that of a frame before (RFC 5372, section 2); but in one of four
/// frames, the first included, they have none.
#[derive(Debug, Clone)]
pub struct Packetizer {
    ssrc: u32,
    sequence: u16,
    frames: u64,
    packet_bytes: usize,
    main_header: Vec<u8>,
    main_header_id: u8,
    packet: Vec<u8>,
}

impl Packetizer {
    /// From `ssrc`, beginning with this sequence number (both drawn at random: RFC 3550, section 5.1);
    /// packets have at most `packet_bytes` bytes, RTP header included.
    pub fn new(ssrc: u32, sequence: u16, packet_bytes: usize) -> Self {
        Packetizer {
            ssrc,
            sequence,
            frames: 0,
            packet_bytes,
            main_header: Vec::new(),
            main_header_id: 0,
            packet: Vec::new(),
        }
    }

    /// Tells the packets of a frame, in their order.
    ///
    /// # Errors
    /// It cannot be sent; then none is told.
    pub fn packets(
        &mut self,
        codestream: &Codestream,
        timestamp: u32,
        mut each: impl FnMut(&[u8]),
    ) -> Result<(), TooLong> {
        if self.main_header != codestream.main_header() {
            self.main_header = codestream.main_header().to_vec();
            self.main_header_id = self.main_header_id % MAIN_HEADER_ID_MAX + 1;
        }
        let bytes = codestream.to_bytes();
        let payload_max = self.packet_bytes.saturating_sub(HEADER);
        let main_header_id = if self.frames.is_multiple_of(UNNUMBERED) { 0 } else { self.main_header_id };
        self.frames += 1;
        let Packetizer { ssrc, sequence, packet, .. } = self;
        let made = jpeg2000::packets(
            &codestream.pieces(),
            bytes.len(),
            payload_max,
            Priorities::Layer,
            |header, range, marker| {
                let rtp = PlainHeader {
                    marker,
                    payload_type: PAYLOAD_TYPE,
                    sequence: *sequence,
                    timestamp,
                    ssrc: *ssrc,
                };
                let header = Header { main_header_id, ..header };
                packet.clear();
                packet.extend_from_slice(&rtp.emit());
                packet.extend_from_slice(&header.emit());
                packet.extend_from_slice(&bytes[range]);
                *sequence = sequence.wrapping_add(1);
                each(packet);
            },
        );
        made.ok_or(TooLong(bytes.len()))
    }
}
