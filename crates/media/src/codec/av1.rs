//! Open bitstream units of AV1 (AV1 bitstream specification, section 5.3).

use super::bits::BitReader;

/// What a unit is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObuKind {
    /// `OBU_SEQUENCE_HEADER`.
    SequenceHeader,
    /// `OBU_FRAME_HEADER` or `OBU_FRAME`: the header of a frame stands in front.
    Frame,
    /// Tiles, or a header that was there before: of a frame as well.
    FramePart,
    /// Anything else.
    Other,
}

/// A unit, from its header on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Obu<'a> {
    /// What it is.
    pub kind: ObuKind,
    /// Temporal and spatial layer, if its header has the extension that names them.
    pub layer: Option<(u8, u8)>,
    /// What stands behind the header; perhaps only the first bytes of it.
    pub payload: &'a [u8],
}

impl<'a> Obu<'a> {
    /// Reads the header of a unit (section 5.3.2); `None` if it is cut off.
    pub fn parse(data: &'a [u8]) -> Option<Self> {
        let (&header, mut rest) = data.split_first()?;
        let kind = match header >> 3 & 15 {
            1 => ObuKind::SequenceHeader,
            3 | 6 => ObuKind::Frame,
            4 | 7 => ObuKind::FramePart,
            _ => ObuKind::Other,
        };
        let mut layer = None;
        if header & 4 != 0 {
            let (&extension, behind) = rest.split_first()?;
            layer = Some((extension >> 5, extension >> 3 & 3));
            rest = behind;
        }
        if header & 2 != 0 {
            (_, rest) = leb128(rest)?;
        }
        Some(Obu { kind, layer, payload: rest })
    }
}

/// How many temporal and spatial layers a sequence header announces by its first operating point, which
/// is that of all layers (section 5.5.1); given what stands behind the header of its unit.
pub fn layers(sequence_header: &[u8]) -> Option<(u8, u8)> {
    let mut bits = BitReader::new(sequence_header);
    bits.skip(4)?;
    if bits.bit()? {
        // `reduced_still_picture_header`: one picture, one operating point.
        return Some((1, 1));
    }
    if bits.bit()? {
        // `timing_info`, and a decoder model perhaps.
        bits.skip(64)?;
        if bits.bit()? {
            uvlc(&mut bits)?;
        }
        if bits.bit()? {
            bits.skip(47)?;
        }
    }
    bits.skip(1 + 5)?;
    let (spatial, temporal) = (bits.bits(4)?, bits.bits(8)?);
    let count = |mask: u32| (u32::BITS - mask.leading_zeros()).max(1) as u8;
    Some((count(temporal), count(spatial)))
}

/// Whether a frame header is that of a frame which refers to no other, and of a key frame (section 5.9.2);
/// given what stands behind the header of its unit.
pub fn frame_type(frame_header: &[u8]) -> Option<FrameType> {
    let first = *frame_header.first()?;
    let is_shown_again = first & 0x80 != 0;
    Some(match first >> 5 & 3 {
        _ if is_shown_again => FrameType::Inter,
        0 => FrameType::Key,
        2 => FrameType::IntraOnly,
        _ => FrameType::Inter,
    })
}

/// What a frame refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameType {
    /// Nothing, and nothing behind it to what was before.
    Key,
    /// Nothing.
    IntraOnly,
    /// Other frames.
    Inter,
}

/// A number of one to eight bytes, seven bits in each (section 4.10.5), and what stands behind it.
pub fn leb128(data: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0;
    for (index, byte) in data.iter().take(8).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Some((value, &data[index + 1..]));
        }
    }
    None
}

/// Section 4.10.3.
fn uvlc(bits: &mut BitReader<'_>) -> Option<()> {
    let mut zeros = 0;
    while !bits.bit()? {
        zeros += 1;
    }
    if zeros >= 32 { Some(()) } else { bits.skip(zeros) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_tell_what_they_are_and_of_which_layer() {
        let frame = Obu::parse(&[6 << 3 | 4, 0b0100_1000, 0x10]).unwrap();
        assert_eq!((frame.kind, frame.layer, frame.payload), (ObuKind::Frame, Some((2, 1)), &[0x10][..]));
        let sized = Obu::parse(&[1 << 3 | 2, 0x81, 0x00, 7]).unwrap();
        assert_eq!((sized.kind, sized.layer, sized.payload), (ObuKind::SequenceHeader, None, &[7][..]));
        assert_eq!(Obu::parse(&[4 << 3]).unwrap().kind, ObuKind::FramePart);
        assert_eq!(Obu::parse(&[2 << 3]).unwrap().kind, ObuKind::Other);
        for cut_off in [&[][..], &[6 << 3 | 4], &[1 << 3 | 2], &[1 << 3 | 2, 0x80]] {
            assert_eq!(Obu::parse(cut_off), None, "{cut_off:?}");
        }
    }

    /// Bits as text, with blanks, as bytes.
    fn bytes(text: &str) -> Vec<u8> {
        let bits: Vec<u8> = text.bytes().filter(|b| *b != b' ').map(|b| b - b'0').collect();
        bits.chunks(8)
            .map(|c| c.iter().enumerate().fold(0, |byte, (at, bit)| byte | bit << (7 - at)))
            .collect()
    }

    #[test]
    fn sequence_headers_tell_their_layers() {
        // Profile 0, no still picture; no timing, no delays, 3 operating points; the first is of all.
        let scalable = bytes("000 0 0 0 0 00010 0011 00000111 0000");
        assert_eq!(layers(&scalable), Some((3, 2)));
        assert_eq!(layers(&bytes("000 0 0 0 0 00000 0000 00000000")), Some((1, 1)), "not scalable");
        assert_eq!(layers(&bytes("000 1 1 000")), Some((1, 1)), "a still picture");
        let zeros = "0".repeat(64);
        let model = "1".repeat(47);
        let timing = bytes(&format!("000 0 0 1 {zeros} 1 001 01 1 {model} 0 00000 0001 00000011"));
        assert_eq!(layers(&timing), Some((2, 1)));
        for length in 0..timing.len() - 1 {
            assert_eq!(layers(&timing[..length]), None);
        }
    }

    #[test]
    fn frame_headers_tell_what_is_referred_to() {
        use FrameType::{Inter, IntraOnly, Key};
        let read = [0x10, 0x30, 0x50, 0x70, 0x80].map(|byte| frame_type(&[byte]));
        assert_eq!(read, [Some(Key), Some(Inter), Some(IntraOnly), Some(Inter), Some(Inter)]);
        assert_eq!(frame_type(&[]), None);
    }

    #[test]
    fn numbers_end_within_eight_bytes() {
        assert_eq!(leb128(&[0xe5, 0x8e, 0x26, 9]), Some((624_485, &[9][..])));
        assert_eq!(leb128(&[0x80; 9]), None);
        assert_eq!(leb128(&[0x80]), None);
    }
}
