//! A packet of a stream as a viewer gets it: with a header of its own.

use arrayvec::ArrayVec;
use bytes::{Buf, Bytes};
use outflow_packet::DropReason;
use outflow_rtp::RtpHeader;

use crate::offered::TRANSPORT_NUMBER;

/// What a packet carries, and its place at a viewer.
#[derive(Debug, Clone)]
pub(super) struct Media {
    /// Its sequence number, counted on beyond 16 bits.
    pub(super) number: u32,
    pub(super) timestamp: u32,
    pub(super) marker: bool,
    pub(super) payload: Bytes,
}

/// What stands in front of a payload.
#[derive(Debug, Clone, Copy)]
pub(super) struct Head {
    pub(super) payload_type: u8,
    pub(super) ssrc: u32,
    pub(super) sequence: u16,
    /// It is sent once more: its first number (RFC 4588, section 4).
    pub(super) original: Option<u16>,
    /// Its number among all packets to the viewer, where it tells which of them came.
    pub(super) transport: Option<u16>,
}

/// Header extensions that a viewer has offered, by the numbers that it gave them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Elements {
    /// How long pictures wait to be shown (`playout-delay`).
    pub(crate) delay: Option<u8>,
    /// Numbers that all packets to the viewer share (`transport-wide-cc-extensions`).
    pub(crate) transport: Option<u8>,
}

/// A packet of a stream, read.
pub(super) struct Read {
    pub(super) sequence: u16,
    pub(super) ssrc: u32,
    pub(super) timestamp: u32,
    pub(super) marker: bool,
    pub(super) payload: Bytes,
}

impl Read {
    /// # Errors
    /// It is no packet of RTP.
    pub(super) fn new(mut packet: Bytes) -> Result<Self, DropReason> {
        let header = RtpHeader::new_checked(&packet).map_err(|_| DropReason::Malformed)?;
        let (sequence, ssrc) = (header.sequence(), header.ssrc());
        let (timestamp, marker) = (header.timestamp(), header.marker());
        let (start, length) = (header.payload_offset(), header.payload().len());
        // As it is its own, there is no other owner of the bytes to count.
        packet.advance(start);
        packet.truncate(length);
        Ok(Read { sequence, ssrc, timestamp, marker, payload: packet })
    }
}

/// Identifiers of one-byte elements (RFC 8285, section 4.2).
const ONE_BYTE: core::ops::RangeInclusive<u8> = 1..=14;

impl Elements {
    /// By the URIs that these numbers were offered for; the one for numbers of the transport only if what becomes of
    /// packets is told.
    pub(crate) fn of<'a>(offered: impl Iterator<Item = (u8, &'a str)>, transport: Option<u8>) -> Self {
        let mut elements = Elements { delay: None, transport: transport.filter(|id| ONE_BYTE.contains(id)) };
        for (id, uri) in offered.filter(|(id, _)| ONE_BYTE.contains(id)) {
            if uri == DELAY {
                elements.delay = Some(id);
            }
        }
        elements
    }

    /// The numbers and URIs, as an answer has them.
    pub(crate) fn accepted(self) -> impl Iterator<Item = (u8, &'static str)> {
        let (delay, transport) =
            (self.delay.map(|id| (id, DELAY)), self.transport.map(|id| (id, TRANSPORT_NUMBER)));
        delay.into_iter().chain(transport)
    }

    /// Writes the header extension, a whole number of words: the number of the transport, and whether pictures are to be
    /// shown at once: the least time that they wait and the most, in hundredths of a second, of 12 bits each.
    fn write(self, number: Option<u16>, at_once: bool, out: &mut Vec<u8>) {
        let mut elements = ArrayVec::<u8, 8>::new();
        if let Some(id) = self.delay {
            let [one, two, three] = if at_once { [0; 3] } else { [0, 0x0f, 0xff] };
            elements.extend([id << 4 | 2, one, two, three]);
        }
        if let Some((id, number)) = self.transport.zip(number) {
            let [high, low] = number.to_be_bytes();
            // The last byte fills it up.
            elements.extend([id << 4 | 1, high, low, 0]);
        }
        out.extend_from_slice(&[0xbe, 0xde, 0, (elements.len() / 4) as u8]);
        out.extend_from_slice(&elements);
    }

    fn is_none(self) -> bool {
        self == Elements::default()
    }
}

const DELAY: &str = "http://www.webrtc.org/experiments/rtp-hdrext/playout-delay";

impl Media {
    /// Writes the packet behind what is in `out`, as it is before it is sealed.
    pub(super) fn write(&self, head: Head, elements: Elements, at_once: bool, out: &mut Vec<u8>) {
        let first = if elements.is_none() { 0x80 } else { 0x90 };
        out.extend_from_slice(&[first, u8::from(self.marker) << 7 | head.payload_type]);
        out.extend_from_slice(&head.sequence.to_be_bytes());
        out.extend_from_slice(&self.timestamp.to_be_bytes());
        out.extend_from_slice(&head.ssrc.to_be_bytes());
        if !elements.is_none() {
            elements.write(head.transport, at_once, out);
        }
        if let Some(original) = head.original {
            out.extend_from_slice(&original.to_be_bytes());
        }
        out.extend_from_slice(&self.payload);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn media() -> Media {
        let packet = Bytes::from_static(&[0x80, 0x80 | 96, 0, 9, 0, 0, 1, 0, 0, 0, 0, 5, b'a', b'b']);
        let Read { sequence: 9, ssrc: 5, timestamp, marker, payload } = Read::new(packet).expect("RTP")
        else {
            panic!("another packet")
        };
        Media { number: 0x1_0003, timestamp, marker, payload }
    }

    fn head(original: Option<u16>) -> Head {
        Head { payload_type: 100, ssrc: 77, sequence: 3, original, transport: Some(0x0102) }
    }

    #[test]
    fn the_header_is_the_viewers_own_and_the_payload_the_streams() {
        let mut out = vec![1, 2, 3];
        media().write(head(None), Elements::default(), true, &mut out);
        assert_eq!(out.drain(..3).as_slice(), [1, 2, 3]);
        assert_eq!(out, [0x80, 0x80 | 100, 0, 3, 0, 0, 1, 0, 0, 0, 0, 77, b'a', b'b']);
        out.clear();
        media().write(head(Some(3)), Elements::default(), true, &mut out);
        assert_eq!(out[12..], [0, 3, b'a', b'b']);
    }

    #[test]
    fn elements_stand_under_the_numbers_that_were_offered() {
        let offered = [(5, "urn:other"), (12, DELAY), (15, DELAY), (0, DELAY)];
        let elements = Elements::of(offered.into_iter(), Some(3));
        assert_eq!(elements, Elements { delay: Some(12), transport: Some(3) });
        assert_eq!(elements.accepted().collect::<Vec<_>>(), [(12, DELAY), (3, TRANSPORT_NUMBER)]);
        let mut out = Vec::new();
        // None at all, or from none to 40.95 seconds.
        for (at_once, says) in [(true, [0; 3]), (false, [0, 0x0f, 0xff])] {
            out.clear();
            media().write(head(None), elements, at_once, &mut out);
            let read = RtpHeader::new_checked(&out).expect("RTP");
            assert_eq!((read.extension(12), read.payload()), (Some(&says[..]), &b"ab"[..]));
            assert_eq!(read.extension(3), Some(&[1, 2][..]));
        }
    }
}
