//! Packets that routers on their way may leave out.

use bytes::Bytes;
use outflow_media::{Format, Time};
use outflow_packet::gmc::Marks;
use outflow_packet::{Packet, Parsed, Parser};

use super::track;

/// Writes into packets what they are ([`outflow_packet::gmc`]): a router cannot know what their priority means.
#[derive(Debug)]
pub struct Marker {
    parser: Parser,
    marks: Marks,
}

impl Default for Marker {
    fn default() -> Self {
        let format = Format::Rtp(vec![track(None)]);
        Marker { parser: Parser::new(&format), marks: Marks::new(&format) }
    }
}

impl Marker {
    /// The packet that is sent next, with its mark. It is longer by [`Mark::BYTES`](outflow_packet::gmc::Mark::BYTES).
    pub fn mark(&mut self, packet: &[u8]) -> Bytes {
        let bytes = Bytes::copy_from_slice(packet);
        let Ok(tag) = self.parser.tag(0, packet) else { return bytes };
        let packet = Packet { bytes: bytes.clone(), tag, arrived: Time::ZERO };
        // No packet of this codec is split.
        let mut marked = self.marks.mark(Parsed { packet, rtp_header: [0; 12], preamble: None, found: None });
        marked.next().map_or(bytes, |marked| marked.packet.bytes)
    }
}
