//! Uncompressed video in RTP (RFC 4175): each packet holds parts of lines.

use core::ops::Range;

use outflow_media::Malformed;
use outflow_media::image::Shape;

/// The high bits of the sequence number.
const EXTENDED_BYTES: usize = 2;
/// Length, field and line, continuation and offset of one part.
const LINE_HEADER_BYTES: usize = 6;
/// Bytes of a payload in front of the pixels, if it has one part.
pub const HEADER_BYTES: usize = EXTENDED_BYTES + LINE_HEADER_BYTES;
/// Parts of a packet that are taken; more would be more headers than pixels.
const PARTS_MAX: usize = 64;

/// The payload of a packet, checked.
#[derive(Debug, Clone, Copy)]
pub struct RawVideo<'a> {
    payload: &'a [u8],
    parts: usize,
}

/// A part of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Of the second field of an interlaced frame.
    pub second_field: bool,
    /// The line, counted from 0 at the top of the field or frame.
    pub line: u16,
    /// Pixels of the line before it.
    pub offset: u16,
    /// Where in the payload its pixels are.
    pub bytes: Range<usize>,
}

impl<'a> RawVideo<'a> {
    /// Checks a payload: behind the RTP header, without padding.
    ///
    /// # Errors
    /// It ends in the middle of a header, or its parts hold more than there is.
    pub fn new_checked(payload: &'a [u8]) -> Result<Self, Malformed> {
        let wrong = |offset, reason| Malformed { format: "raw video", offset, reason };
        let (mut parts, mut bytes) = (0, 0);
        loop {
            let at = EXTENDED_BYTES + parts * LINE_HEADER_BYTES;
            let header: [u8; LINE_HEADER_BYTES] = payload
                .get(at..)
                .and_then(|rest| rest.first_chunk())
                .copied()
                .ok_or(wrong(payload.len(), "it ends in the middle of a line header"))?;
            bytes += usize::from(u16::from_be_bytes([header[0], header[1]]));
            parts += 1;
            if header[4] & 0x80 == 0 {
                break;
            }
            if parts == PARTS_MAX {
                return Err(wrong(at, "parts of more lines than a packet may have"));
            }
        }
        let data = EXTENDED_BYTES + parts * LINE_HEADER_BYTES;
        if payload.len() - data < bytes {
            return Err(wrong(payload.len(), "less pixels than its line headers say"));
        }
        Ok(RawVideo { payload, parts })
    }

    /// Bits 16 to 31 of the sequence number, of which the RTP header has the others.
    pub fn extended_sequence(&self) -> u16 {
        self.u16(0)
    }

    /// The parts of lines, in the order of their bytes.
    pub fn parts(&self) -> impl Iterator<Item = Part> {
        let this = *self;
        let mut next = EXTENDED_BYTES + self.parts * LINE_HEADER_BYTES;
        (0..self.parts).map(move |index| {
            let at = EXTENDED_BYTES + index * LINE_HEADER_BYTES;
            let begin = next;
            next += usize::from(this.u16(at));
            let (line, offset) = (this.u16(at + 2), this.u16(at + 4));
            Part {
                second_field: line & 0x8000 != 0,
                line: line & 0x7fff,
                offset: offset & 0x7fff,
                bytes: begin..next,
            }
        })
    }

    fn u16(&self, at: usize) -> u16 {
        u16::from_be_bytes([self.payload[at], self.payload[at + 1]])
    }
}

/// What stands in front of the bytes of one part of a line, where a packet has no other: the part's
/// length in bytes, its line, and the pixels of the line before it. `sequence` is the packet's sequence
/// number, with all its bits.
pub fn header(sequence: u32, bytes: u16, line: u16, offset: u16) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    let values = [(sequence >> 16) as u16, bytes, line & 0x7fff, offset & 0x7fff];
    for (field, value) in header.as_chunks_mut::<2>().0.iter_mut().zip(values) {
        *field = value.to_be_bytes();
    }
    header
}

/// Cuts a frame that is not interlaced into payloads of at most `payload_max` bytes, and hands them on
/// with their number and whether it is the last. `sequence` is the sequence number of the first, with
/// all its bits.
///
/// A part of a line in each: what is left of a packet at a line's end is not worth another header to
/// most receivers, which work line by line. Lines and offsets have 15 bits: `None` if the frame is
/// larger, or if not even one group of pixels fits a payload.
pub fn emit(
    shape: Shape,
    image: &[u8],
    payload_max: usize,
    sequence: u32,
    mut each: impl FnMut(&[u8], bool),
) -> Option<()> {
    let (group_pixels, group_bytes) = shape.pixels.group();
    let room = payload_max.checked_sub(HEADER_BYTES)? / group_bytes * group_bytes;
    let addressable = shape.width <= 0x8000 && shape.height <= 0x8000;
    if room == 0 || room > usize::from(u16::MAX) || !addressable || image.len() != shape.bytes() {
        return None;
    }
    let lines = image.chunks_exact(shape.row_bytes());
    let parts = lines.zip(0_u16..).flat_map(|(row, line)| {
        row.chunks(room)
            .enumerate()
            .map(move |(index, part)| (line, (index * room / group_bytes * group_pixels) as u16, part))
    });
    let mut payload = Vec::with_capacity(payload_max);
    let mut parts = parts.zip(0_u32..).peekable();
    while let Some(((line, offset, part), number)) = parts.next() {
        payload.clear();
        payload.extend_from_slice(&header(sequence.wrapping_add(number), part.len() as u16, line, offset));
        payload.extend_from_slice(part);
        each(&payload, parts.peek().is_none());
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use outflow_media::image::Pixels;
    use proptest::prelude::*;

    use super::*;

    /// RFC 4175, section 4.3: two lines, of which the first is continued by the second.
    #[test]
    fn parts_of_several_lines_lie_one_behind_the_other() {
        let mut payload = vec![0x12, 0x34, 0, 4, 0x80, 7, 0x80, 2, 0, 8, 0x00, 8, 0x00, 0];
        payload.extend(0..12);
        let raw = RawVideo::new_checked(&payload).expect("valid");
        assert_eq!(raw.extended_sequence(), 0x1234);
        let parts: Vec<_> = raw.parts().collect();
        assert_eq!(parts[0], Part { second_field: true, line: 7, offset: 2, bytes: 14..18 });
        assert_eq!(parts[1], Part { second_field: false, line: 8, offset: 0, bytes: 18..26 });
        assert_eq!(parts.len(), 2);
    }

    #[test]
    fn what_does_not_hold_what_it_says_is_malformed() {
        for bytes in [&[][..], &[0; 7], &[0, 0, 0, 1, 0, 0, 0, 0], &[0, 0, 0, 0, 0, 0, 0x80, 0, 1]] {
            RawVideo::new_checked(bytes).expect_err("malformed");
        }
        let endless = [&[0, 0][..], &[0, 0, 0, 0, 0x80, 0].repeat(PARTS_MAX + 1)].concat();
        RawVideo::new_checked(&endless).expect_err("too many parts");
    }

    proptest! {
        #[test]
        fn a_frame_comes_together_from_its_packets(
            pixels in prop::sample::select(&Pixels::ALL[..]),
            (width, height) in (1..300_usize, 1..6_usize),
            payload_max in 12..200_usize,
            sequence in any::<u32>(),
        ) {
            let shape = Shape { pixels, width, height };
            let image: Vec<u8> = (0..shape.bytes()).map(|at| (at * 31 % 253) as u8).collect();
            let (mut again, mut payloads, mut ends) = (vec![0; image.len()], 0_u32, 0);
            emit(shape, &image, payload_max, sequence, |payload, last| {
                assert!(payload.len() <= payload_max);
                let raw = RawVideo::new_checked(payload).expect("it was just written");
                assert_eq!(u32::from(raw.extended_sequence()), sequence.wrapping_add(payloads) >> 16);
                payloads += 1;
                ends += u32::from(last);
                for part in raw.parts() {
                    let offset = pixels.row_bytes(part.offset.into());
                    let at = usize::from(part.line) * shape.row_bytes() + offset;
                    again[at..at + part.bytes.len()].copy_from_slice(&payload[part.bytes.clone()]);
                }
            }).expect("it fits");
            prop_assert_eq!((again == image, ends), (true, 1));
        }
    }

    #[test]
    fn frames_that_cannot_be_addressed_are_refused() {
        let shape = Shape { pixels: Pixels::Rgb, width: 2, height: 1 };
        let refused = |shape: Shape, bytes: usize, payload_max| {
            emit(shape, &vec![0; bytes], payload_max, 0, |_, _| ()).is_none()
        };
        assert!(refused(shape, 6, 10), "no group fits");
        assert!(refused(shape, 5, 100), "no whole image");
        assert!(refused(Shape { height: 0x8001, ..shape }, 6 * 0x8001, 1000), "lines have 15 bits");
        assert!(!refused(shape, 6, 11));
    }
}
