//! RTP packets (RFC 3550 section 5): reading, changing in place, writing.

mod arrivals;
pub mod dependency;
mod extensions;
pub mod flexfec;
pub mod fmtp;
pub mod frame_marking;
pub mod limits;
pub mod payload;
mod reception;
pub mod rtcp;
pub mod save;
pub mod sdp;

pub use arrivals::Arrivals;
pub use extensions::{Extension, Extensions};
pub use reception::{Placement, Reception};

use rtp_types::{RtpPacket, RtpParseError};

use outflow_media::Malformed;

/// Bytes of a header without CSRCs and extension.
pub const HEADER: usize = 12;

/// The padding bit, in the first byte.
const PADDING: u8 = 0x20;

/// The marker bit, in the second.
const MARKER: u8 = 0x80;

/// The distance from `earlier` to `later` of sequence numbers that wrap: negative if `later` is
/// the older one.
pub const fn sequence_distance(earlier: u16, later: u16) -> i16 {
    later.wrapping_sub(earlier).cast_signed()
}

/// Whether a datagram on a port shared by RTP and RTCP is RTCP (RFC 5761 section 4).
pub fn is_rtcp(datagram: &[u8]) -> bool {
    datagram.get(1).is_some_and(|kind| (192..=223).contains(kind))
}

/// A packet whose header, extension and padding were found to lie within its bytes.
#[derive(Debug)]
pub struct RtpHeader<'a> {
    data: &'a [u8],
    payload_start: usize,
    payload_end: usize,
}

impl<'a> RtpHeader<'a> {
    /// Checks that `data` holds what its header announces.
    pub fn new_checked(data: &'a [u8]) -> Result<Self, Malformed> {
        let packet = RtpPacket::parse(data).map_err(|error| malformed(&error))?;
        let payload_start = packet.payload_offset();
        Ok(RtpHeader { data, payload_start, payload_end: payload_start + packet.payload_len() })
    }

    /// The same for an encrypted packet (RFC 3711): what its padding bit announces stands in the
    /// encrypted part, and the payload is all that is behind the header.
    pub fn new_encrypted(data: &'a [u8]) -> Result<Self, Malformed> {
        let Some(first) = data.first().filter(|first| *first & PADDING != 0) else {
            return Self::new_checked(data);
        };
        let short =
            Malformed { format: "RTP", offset: data.len(), reason: "shorter than its header announces" };
        let mut start = HEADER + usize::from(first & 0x0f) * 4;
        if first & 0x10 != 0 {
            let words = data.get(start + 2..start + 4).ok_or(short)?;
            start += 4 + usize::from(u16::from_be_bytes([words[0], words[1]])) * 4;
        }
        match first >> 6 {
            2 if start <= data.len() => Ok(RtpHeader { data, payload_start: start, payload_end: data.len() }),
            2 => Err(short),
            _ => Err(Malformed { format: "RTP", offset: 0, reason: "version is not 2" }),
        }
    }

    /// Payload type, 7 bits.
    pub fn payload_type(&self) -> u8 {
        self.data[1] & 0x7f
    }

    /// The marker bit.
    pub fn marker(&self) -> bool {
        self.data[1] & 0x80 != 0
    }

    /// Sequence number.
    pub fn sequence(&self) -> u16 {
        u16::from_be_bytes([self.data[2], self.data[3]])
    }

    /// Timestamp, in ticks of the track's clock.
    pub fn timestamp(&self) -> u32 {
        self.word(4)
    }

    /// Synchronization source.
    pub fn ssrc(&self) -> u32 {
        self.word(8)
    }

    /// The payload, without padding.
    pub fn payload(&self) -> &'a [u8] {
        &self.data[self.payload_start..self.payload_end]
    }

    /// Where the payload starts within the packet.
    pub fn payload_offset(&self) -> usize {
        self.payload_start
    }

    /// The elements of the header extension (RFC 8285); none if it is of another form.
    pub fn extensions(&self) -> Extensions<'a> {
        if self.data[0] & 0x10 == 0 {
            return Extensions::none();
        }
        let start = HEADER + usize::from(self.data[0] & 0x0f) * 4;
        let profile = u16::from_be_bytes([self.data[start], self.data[start + 1]]);
        Extensions::new(profile, &self.data[start + 4..self.payload_start])
    }

    /// The value of the first element with this identifier.
    pub fn extension(&self, id: u8) -> Option<&'a [u8]> {
        self.extensions().find(|extension| extension.id == id).map(|extension| extension.data)
    }

    fn word(&self, at: usize) -> u32 {
        u32::from_be_bytes([self.data[at], self.data[at + 1], self.data[at + 2], self.data[at + 3]])
    }
}

fn malformed(error: &RtpParseError) -> Malformed {
    let (offset, reason) = match error {
        RtpParseError::UnsupportedVersion(_) => (0, "version is not 2"),
        RtpParseError::Truncated { actual, .. } => (*actual, "shorter than its header announces"),
        RtpParseError::PaddingInvalid(_) => (0, "padding of no bytes"),
    };
    Malformed { format: "RTP", offset, reason }
}

/// The header of a packet without CSRCs and extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlainHeader {
    /// The marker bit.
    pub marker: bool,
    /// Payload type; 7 bits are used.
    pub payload_type: u8,
    /// Sequence number.
    pub sequence: u16,
    /// Timestamp.
    pub timestamp: u32,
    /// Synchronization source.
    pub ssrc: u32,
}

impl PlainHeader {
    /// The header as it goes on the wire.
    pub fn emit(&self) -> [u8; HEADER] {
        let mut header = [0; HEADER];
        header[0] = 0x80;
        header[1] = u8::from(self.marker) << 7 | self.payload_type & 0x7f;
        header[2..4].copy_from_slice(&self.sequence.to_be_bytes());
        header[4..8].copy_from_slice(&self.timestamp.to_be_bytes());
        header[8..].copy_from_slice(&self.ssrc.to_be_bytes());
        header
    }
}

/// Writes another payload type into a packet; the marker stays. Like all setters here it does
/// nothing to bytes that are too short to be a packet.
pub fn set_payload_type(packet: &mut [u8], payload_type: u8) {
    if let Some(byte) = packet.get_mut(1) {
        *byte = *byte & 0x80 | payload_type & 0x7f;
    }
}

/// The SSRC of a packet (RFC 3550, section 5.1), which is not looked at otherwise; nothing if it ends before that.
pub fn ssrc(packet: &[u8]) -> Option<u32> {
    packet.get(8..12)?.try_into().ok().map(u32::from_be_bytes)
}

/// The sequence number of a header (RFC 3550, section 5.1).
pub const fn sequence(header: &[u8; HEADER]) -> u16 {
    u16::from_be_bytes([header[2], header[3]])
}

/// The timestamp of a header (RFC 3550, section 5.1).
pub const fn timestamp(header: &[u8; HEADER]) -> u32 {
    u32::from_be_bytes([header[4], header[5], header[6], header[7]])
}

/// Says in a packet that no padding stands at its end, and whether it has the marker.
pub fn set_flags(header: &mut [u8; HEADER], has_marker: bool) {
    header[0] &= !PADDING;
    header[1] = header[1] & !MARKER | if has_marker { MARKER } else { 0 };
}

/// Writes another sequence number into a packet.
pub fn set_sequence(packet: &mut [u8], sequence: u16) {
    set(packet, 2, sequence.to_be_bytes());
}

/// Writes another timestamp into a packet.
pub fn set_timestamp(packet: &mut [u8], timestamp: u32) {
    set(packet, 4, timestamp.to_be_bytes());
}

/// Writes another synchronization source into a packet.
pub fn set_ssrc(packet: &mut [u8], ssrc: u32) {
    set(packet, 8, ssrc.to_be_bytes());
}

fn set<const N: usize>(packet: &mut [u8], at: usize, bytes: [u8; N]) {
    if let Some(field) = packet.get_mut(at..at + N) {
        field.copy_from_slice(&bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: PlainHeader = PlainHeader {
        marker: true,
        payload_type: 96,
        sequence: 0xfffe,
        timestamp: 0x0102_0304,
        ssrc: 0xdead_beef,
    };

    fn packet(payload: &[u8]) -> Vec<u8> {
        [&PLAIN.emit()[..], payload].concat()
    }

    #[test]
    fn a_plain_header_reads_as_it_was_written() {
        let packet = packet(b"abc");
        let read = RtpHeader::new_checked(&packet).unwrap();
        let fields = (read.marker(), read.payload_type(), read.sequence(), read.timestamp(), read.ssrc());
        assert_eq!(fields, (true, 96, 0xfffe, 0x0102_0304, 0xdead_beef));
        assert_eq!((read.payload(), read.payload_offset()), (&b"abc"[..], 12));
        assert_eq!(read.extensions().count(), 0);
    }

    #[test]
    fn sources_extension_and_padding_are_left_out_of_the_payload() {
        let mut data = packet(&[0, 0, 0, 7, 0xbe, 0xde, 0, 1, 0x10, 0x55, 0, 0, b'x', b'y', 0, 2]);
        data[0] = 0x80 | 0x20 | 0x10 | 1;
        let read = RtpHeader::new_checked(&data).unwrap();
        assert_eq!(read.payload(), b"xy");
        let extensions: Vec<_> = read.extensions().collect();
        assert_eq!(extensions, [Extension { id: 1, data: &[0x55] }]);
    }

    #[test]
    fn truncated_packets_are_refused_at_every_length() {
        let mut data = packet(&[0, 0, 0, 7, 0xbe, 0xde, 0, 1, 0x10, 0x55, 0, 0]);
        data[0] = 0x80 | 0x10 | 1;
        assert!(RtpHeader::new_checked(&data).is_ok());
        for len in 0..data.len() {
            assert!(RtpHeader::new_checked(&data[..len]).is_err(), "{len}");
        }
    }

    #[test]
    fn versions_and_paddings_that_cannot_be_are_refused() {
        let mut data = packet(&[1, 2, 3, 0]);
        data[0] = 0x40;
        assert_eq!(RtpHeader::new_checked(&data).unwrap_err().reason, "version is not 2");
        data[0] = 0xa0;
        assert_eq!(RtpHeader::new_checked(&data).unwrap_err().reason, "padding of no bytes");
        *data.last_mut().unwrap() = 5;
        assert!(RtpHeader::new_checked(&data).is_err());
        *data.last_mut().unwrap() = 4;
        assert_eq!(RtpHeader::new_checked(&data).unwrap().payload(), b"");
    }

    #[test]
    fn padding_of_encrypted_packets_cannot_be_read_and_is_not() {
        let mut data = packet(&[0, 0, 0, 7, 0xbe, 0xde, 0, 1, 0x10, 0x55, 0, 0, b'x', b'y', 0, 0]);
        data[0] = 0x80 | 0x20 | 0x10 | 1;
        assert!(RtpHeader::new_checked(&data).is_err());
        assert_eq!(RtpHeader::new_encrypted(&data).unwrap().payload(), b"xy\0\0");
        for len in 0..24 {
            assert!(RtpHeader::new_encrypted(&data[..len]).is_err(), "{len}");
        }
        data[0] = 0x60;
        assert!(RtpHeader::new_encrypted(&data).is_err());
    }

    #[test]
    fn fields_are_changed_in_place() {
        let mut data = packet(b"abc");
        set_payload_type(&mut data, 33);
        set_sequence(&mut data, 5);
        set_timestamp(&mut data, 6);
        set_ssrc(&mut data, 7);
        let expected = PlainHeader { marker: true, payload_type: 33, sequence: 5, timestamp: 6, ssrc: 7 };
        assert_eq!(data[..12], expected.emit());
        assert_eq!(&data[12..], b"abc");
        let mut short = [1, 2, 3];
        set_sequence(&mut short, 9);
        assert_eq!(short, [1, 2, 3]);
    }

    #[test]
    fn rtcp_is_told_from_rtp() {
        assert!(is_rtcp(&[0x80, 200]));
        assert!(is_rtcp(&[0x81, 201]));
        assert!(!is_rtcp(&packet(b"")));
        assert!(!is_rtcp(&[0x80]));
    }

    #[test]
    fn sequence_distances_wrap() {
        assert_eq!(sequence_distance(65_535, 0), 1);
        assert_eq!(sequence_distance(0, 65_535), -1);
    }
}
