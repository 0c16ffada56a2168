//! What goes from element to element.

use core::ops::Range;

use bytes::{Bytes, BytesMut};

use outflow_rtp::HEADER;

use outflow_packet::{DropReason, Packet, Parsed};
use outflow_ts::Findings;

/// A packet between elements.
#[derive(Debug, Clone)]
pub struct Item {
    /// The packet. Of RTP whose header stands in `rtp_header`, what comes behind those 12 bytes.
    pub packet: Packet,
    /// The fixed RTP header in front of the packet's bytes: of a transport stream, for sinks that get
    /// it by RTP; of RTP, once it was rewritten. Zeros where the packet's bytes are all there is.
    pub rtp_header: [u8; HEADER],
    /// What a receiver that begins with this packet's frame needs first.
    pub preamble: Option<Bytes>,
    /// What the element that made it found in it, if it is a datagram of a transport stream. It goes along to a
    /// branch from that element alone: others may leave datagrams out.
    pub found: Option<Findings>,
    /// By which of its outputs it leaves the element that has it.
    pub port: u8,
    /// What it is counted as if nothing takes it from there.
    pub otherwise: DropReason,
    /// Position among all packets that came into the graph, wrapping. What elements make has that of
    /// what it was made from: merged flows come together in this order.
    pub ordinal: u32,
    /// How many packets of its track came into the graph before it, wrapping; `None` if an element
    /// has made it and numbered it itself.
    pub(super) of_track: Option<u16>,
    /// It came late or once more: others came before it that stand behind it or at its place.
    pub(super) again: bool,
}

impl Item {
    /// A packet as it comes into a graph.
    pub(super) fn entering(parsed: Parsed, ordinal: u32) -> Self {
        let Parsed { packet, rtp_header, preamble, .. } = parsed;
        Item { packet, rtp_header, preamble, ordinal, ..Item::empty() }
    }

    /// A packet that an element has made from this one and numbers itself.
    pub fn made(&self, packet: Packet) -> Self {
        Item { packet, ordinal: self.ordinal, ..Item::empty() }
    }

    /// The same packet once more, to stand at the same place of its flow: it keeps the sequence number
    /// that the first one gets.
    pub fn once_more(&self) -> Self {
        Item { again: true, ..self.clone() }
    }

    /// Lets it leave by this output; if nothing takes it there, it is counted under this reason.
    pub fn leave_by(&mut self, port: u8, otherwise: DropReason) {
        (self.port, self.otherwise) = (port, otherwise);
    }

    /// Its sequence number is final: gaps before it are not closed any more.
    pub fn keep_number(&mut self) {
        self.of_track = None;
    }

    /// An empty packet, for a caller that needs one to begin with.
    pub fn empty() -> Self {
        let packet = Packet {
            bytes: Bytes::new(),
            tag: outflow_media::Tag::default(),
            arrived: outflow_media::Time::ZERO,
        };
        Item {
            packet,
            rtp_header: [0; HEADER],
            preamble: None,
            found: None,
            port: 0,
            otherwise: DropReason::Filtered,
            ordinal: 0,
            of_track: None,
            again: false,
        }
    }

    /// The fixed part of its RTP header, wherever it stands; `None` if it has none.
    pub fn header(&self) -> Option<&[u8; HEADER]> {
        self.packet.rtp_header(&self.rtp_header)
    }

    /// Its fixed RTP header to be changed, without touching bytes that others may hold.
    pub fn header_mut(&mut self) -> Option<&mut [u8; HEADER]> {
        self.packet.own_rtp_header(&mut self.rtp_header)
    }

    /// The packet in one piece, to be changed: in place if nothing else holds its bytes, else a copy.
    /// A transport stream's RTP header is left out of it.
    pub fn own(&mut self, is_rtp: bool) -> BytesMut {
        let bytes = core::mem::take(&mut self.packet.bytes);
        if is_rtp && self.rtp_header[0] != 0 {
            let mut whole = BytesMut::with_capacity(HEADER + bytes.len());
            whole.extend_from_slice(&self.rtp_header);
            whole.extend_from_slice(&bytes);
            self.rtp_header = [0; HEADER];
            return whole;
        }
        bytes.try_into_mut().unwrap_or_else(|shared| BytesMut::from(&shared[..]))
    }

    /// An RTP packet in one piece, to be read: a reference, or a copy if its header stands apart.
    pub fn whole(&self) -> Bytes {
        if self.rtp_header[0] == 0 {
            return self.packet.bytes.clone();
        }
        Bytes::from([&self.rtp_header[..], &self.packet.bytes].concat())
    }

    /// How many packets of its track came into the graph before it, wrapping; `None` if an element has
    /// made it. Where sequence numbers leave out more than these do, packets got lost on their way here.
    pub fn entered_before(&self) -> Option<u16> {
        self.of_track
    }

    /// Where in the packet's bytes its RTP payload is, without padding; `None` if it is no RTP, or
    /// holds less than its header says.
    pub fn payload(&self) -> Option<Range<usize>> {
        let bytes = &self.packet.bytes[..];
        let flags = self.header()?[0];
        let fixed = if self.rtp_header[0] == 0 { HEADER } else { 0 };
        let mut begin = fixed + usize::from(flags & 0x0f) * 4;
        if flags & 0x10 != 0 {
            let extension: &[u8; 4] = bytes.get(begin..)?.first_chunk()?;
            begin += 4 + usize::from(u16::from_be_bytes([extension[2], extension[3]])) * 4;
        }
        let padding = if flags & 0x20 == 0 { 0 } else { usize::from(*bytes.last()?) };
        let end = bytes.len().checked_sub(padding)?;
        (begin <= end).then_some(begin..end)
    }

    /// Bytes of the packet, its RTP header not counted where that stands apart.
    pub fn len(&self) -> usize {
        self.packet.bytes.len()
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.packet.bytes.is_empty()
    }

    /// Moves its RTP sequence number back by `back`.
    pub(super) fn renumber(&mut self, back: u16) {
        if back == 0 {
            return;
        }
        if let Some(header) = self.header_mut() {
            let sequence = u16::from_be_bytes([header[2], header[3]]).wrapping_sub(back);
            outflow_rtp::set_sequence(header, sequence);
        }
    }

    /// As a branch takes it.
    pub(crate) fn parsed(self) -> Parsed {
        let Item { packet, rtp_header, preamble, found, .. } = self;
        Parsed { packet, rtp_header, preamble, found }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(bytes: &[u8]) -> Item {
        let mut item = Item::empty();
        item.packet.bytes = Bytes::copy_from_slice(bytes);
        item
    }

    #[test]
    fn a_payload_is_found_wherever_the_header_stands() {
        let header = [0xb1, 96, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3];
        // A contributing source, an extension of one word, the payload, three bytes of padding.
        let behind = [9, 9, 9, 9, 0xbe, 0xde, 0, 1, 1, 2, 3, 4, b'a', b'b', 0, 0, 3];
        let mut whole = item(&[&header[..], &behind].concat());
        assert_eq!(whole.payload(), Some(24..26));
        whole.header_mut();
        assert_eq!(whole.payload().map(|range| &whole.packet.bytes[range]), Some(&b"ab"[..]));
        for length in 0..12 {
            assert_eq!(item(&header[..length]).payload(), None, "{length}");
        }
        let all = [&header[..], &behind].concat();
        assert_eq!(item(&all[..22]).payload(), None, "the extension is cut off");
        assert_eq!(item(b"P6 1 1 255\n...").payload(), None);
    }
}
