//! A packet of a stream as a viewer gets it: with a header of its own.

use arrayvec::ArrayVec;
use bytes::{Buf, Bytes};
use outflow_media::format::DEPENDENCY_DESCRIPTOR;
use outflow_packet::DropReason;
use outflow_rtp::RtpHeader;

use super::described::Described;
use crate::offered::TRANSPORT_NUMBER;

/// What a packet carries, and its place at a viewer.
#[derive(Debug, Clone)]
pub(super) struct Media {
    /// Its sequence number, counted on beyond 16 bits.
    pub(super) number: u32,
    pub(super) timestamp: u32,
    pub(super) marker: bool,
    pub(super) payload: Bytes,
    pub(super) described: Option<Described>,
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
    /// What a packet says of its frame (the dependency descriptor): the stream's number of it, and the viewer's.
    pub(crate) descriptor: Option<(u8, u8)>,
}

/// A packet of a stream, read.
pub(super) struct Read {
    pub(super) sequence: u16,
    pub(super) ssrc: u32,
    pub(super) timestamp: u32,
    pub(super) marker: bool,
    pub(super) payload: Bytes,
    /// The dependency descriptor, if it has one.
    pub(super) descriptor: Option<Bytes>,
}

impl Read {
    /// With the header extension of the descriptor, if that has a number.
    ///
    /// # Errors
    /// It is no packet of RTP.
    pub(super) fn new(mut packet: Bytes, descriptor: Option<u8>) -> Result<Self, DropReason> {
        let header = RtpHeader::new_checked(&packet).map_err(|_| DropReason::Malformed)?;
        let descriptor = descriptor.and_then(|id| header.extension(id)).map(|value| packet.slice_ref(value));
        let (sequence, ssrc) = (header.sequence(), header.ssrc());
        let (timestamp, marker) = (header.timestamp(), header.marker());
        let (start, length) = (header.payload_offset(), header.payload().len());
        // As it is its own, there is no other owner of the bytes to count.
        packet.advance(start);
        packet.truncate(length);
        Ok(Read { sequence, ssrc, timestamp, marker, payload: packet, descriptor })
    }
}

/// Identifiers of one-byte elements (RFC 8285, section 4.2).
const ONE_BYTE: core::ops::RangeInclusive<u8> = 1..=14;

impl Elements {
    /// By the URIs that these numbers were offered for; the one for numbers of the transport only if what becomes of
    /// packets is told.
    pub(crate) fn of<'a>(offered: impl Iterator<Item = (u8, &'a str)>, transport: Option<u8>) -> Self {
        let transport = transport.filter(|id| ONE_BYTE.contains(id));
        let mut elements = Elements { transport, ..Elements::default() };
        for (id, uri) in offered.filter(|(id, _)| ONE_BYTE.contains(id)) {
            if uri == DELAY {
                elements.delay = Some(id);
            }
        }
        elements
    }

    /// And the one that a packet of the stream says of its frame by, which has this number in the stream.
    pub(crate) fn describing(self, stream: Option<u8>, viewer: Option<u8>) -> Self {
        let viewer = viewer.filter(|id| ONE_BYTE.contains(id));
        Elements { descriptor: stream.zip(viewer), ..self }
    }

    /// The numbers and URIs, as an answer has them.
    pub(crate) fn accepted(self) -> impl Iterator<Item = (u8, &'static str)> {
        let (delay, transport) =
            (self.delay.map(|id| (id, DELAY)), self.transport.map(|id| (id, TRANSPORT_NUMBER)));
        let descriptor = self.descriptor.map(|(_, id)| (id, DEPENDENCY_DESCRIPTOR));
        delay.into_iter().chain(transport).chain(descriptor)
    }

    /// Writes the header extension, a whole number of words: the number of the transport, and whether pictures are to be
    /// shown at once: the least time that they wait and the most, in hundredths of a second, of 12 bits each.
    fn write(self, number: Option<u16>, at_once: bool, described: Option<&Described>, out: &mut Vec<u8>) {
        if let Some((described, (_, id))) = described.zip(self.descriptor) {
            return self.write_with((id, described), number, at_once, out);
        }
        let mut elements = ArrayVec::<u8, 8>::new();
        if let Some(id) = self.delay {
            let [one, two, three] = waits(at_once);
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

    /// The same with a descriptor, which may be too long for elements with one byte in front.
    fn write_with(
        self,
        (id, described): (u8, &Described),
        number: Option<u16>,
        at_once: bool,
        out: &mut Vec<u8>,
    ) {
        let is_long = described.len() > ONE_BYTE_MOST;
        let head = |out: &mut Vec<u8>, id: u8, length: usize| match is_long {
            true => out.extend([id, length as u8]),
            false => out.push(id << 4 | (length - 1) as u8),
        };
        let (profile, start) = (if is_long { [0x10, 0] } else { [0xbe, 0xde] }, out.len() + 4);
        out.extend([profile[0], profile[1], 0, 0]);
        if let Some(id) = self.delay {
            head(out, id, 3);
            out.extend(waits(at_once));
        }
        if let Some((id, number)) = self.transport.zip(number) {
            head(out, id, 2);
            out.extend(number.to_be_bytes());
        }
        head(out, id, described.len());
        described.write(out);
        while !(out.len() - start).is_multiple_of(4) {
            out.push(0);
        }
        out[start - 1] = ((out.len() - start) / 4) as u8;
    }

    fn is_none(self) -> bool {
        self == Elements::default()
    }
}

/// How long pictures wait at least and at most.
const fn waits(at_once: bool) -> [u8; 3] {
    if at_once { [0; 3] } else { [0, 0x0f, 0xff] }
}

/// Bytes of an element with one byte in front of it, at most (RFC 8285, section 4.2).
const ONE_BYTE_MOST: usize = 16;

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
            elements.write(head.transport, at_once, self.described.as_ref(), out);
        }
        if let Some(original) = head.original {
            out.extend_from_slice(&original.to_be_bytes());
        }
        out.extend_from_slice(&self.payload);
    }
}

#[cfg(test)]
mod tests {
    use super::super::described::Frames;
    use super::*;

    fn media() -> Media {
        let packet = Bytes::from_static(&[0x80, 0x80 | 96, 0, 9, 0, 0, 1, 0, 0, 0, 0, 5, b'a', b'b']);
        let Read { sequence: 9, ssrc: 5, timestamp, marker, payload, descriptor: None } =
            Read::new(packet, Some(1)).expect("RTP")
        else {
            panic!("another packet")
        };
        Media { number: 0x1_0003, timestamp, marker, payload, described: None }
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
        assert_eq!(elements, Elements { delay: Some(12), transport: Some(3), descriptor: None });
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
    #[test]
    fn a_descriptor_that_is_long_stands_among_longer_elements() {
        let elements = Elements { delay: Some(12), transport: Some(3), descriptor: Some((7, 9)) };
        for length in [3, 16, 17, 64, 255] {
            let value: Vec<u8> = [0x80, 0, 1].into_iter().chain(3..).take(length).collect();
            let described = Frames::default().take(value.clone().into(), 5, true);
            let mut out = vec![1];
            Media { described, ..media() }.write(head(Some(3)), elements, true, &mut out);
            let read = RtpHeader::new_checked(&out[1..]).expect("RTP");
            assert_eq!([read.extension(9), read.extension(12)], [Some(&value[..]), Some(&[0; 3][..])]);
            assert_eq!((read.extension(3), read.payload()), (Some(&[1, 2][..]), &[0, 3, b'a', b'b'][..]));
        }
        assert_eq!(Elements::default().describing(Some(7), Some(15)).descriptor, None, "no such element");
    }
}
