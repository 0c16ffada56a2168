//! Images that come as bytes, one behind the other: taken apart by their headers, tagged.

use bytes::{Buf, Bytes, BytesMut};
use outflow_media::image::ppm::Header;
use outflow_packet::{DropReason, Packet, image_tag};

use crate::limits::FRAME_BYTES_MAX;
use crate::{Item, Tally};

/// Makes packets of a row of PPM and PGM images.
#[derive(Debug, Default)]
pub struct PpmBytes {
    /// What is not complete: an image, or the beginning of a header.
    held: BytesMut,
    /// Bytes of the image that is held, once its header is known.
    wanted: Option<usize>,
    /// What was passed over last belonged to no image. That is counted once, until the next header.
    is_lost: bool,
    frame: u32,
}

impl PpmBytes {
    /// The next bytes. Images that are complete by them are added to `out`; they come in the place of
    /// `like`, a packet that they were made from.
    pub fn push(&mut self, chunk: &[u8], like: &Item, out: &mut Vec<Item>, tally: &mut Tally) {
        self.held.extend_from_slice(chunk);
        while let Some(bytes) = self.next(tally) {
            let tag = image_tag(self.frame);
            self.frame = self.frame.wrapping_add(1);
            out.push(like.made(Packet { bytes, tag, arrived: like.packet.arrived }));
        }
    }

    /// What comes does not continue what was. An image that is not complete is let go.
    pub fn restart(&mut self, tally: &mut Tally) {
        if !self.held.is_empty() {
            tally.drop(DropReason::Incomplete);
        }
        *self = PpmBytes { frame: self.frame, ..PpmBytes::default() };
    }

    fn next(&mut self, tally: &mut Tally) -> Option<Bytes> {
        if self.wanted.is_none() {
            self.wanted = self.find(tally);
        }
        let bytes = self.wanted.filter(|bytes| self.held.len() >= *bytes)?;
        self.wanted = None;
        Some(self.held.split_to(bytes).freeze())
    }

    /// Bytes of the image that stands next. What is no image, or too large, is passed over up to where
    /// another header may begin.
    fn find(&mut self, tally: &mut Tally) -> Option<usize> {
        loop {
            let reason = match Header::parse(&self.held) {
                Ok(None) => return None,
                Ok(Some(header)) => {
                    let bytes = header.bytes + header.shape.bytes();
                    if bytes <= FRAME_BYTES_MAX {
                        self.is_lost = false;
                        return Some(bytes);
                    }
                    DropReason::Oversized
                }
                Err(_) => DropReason::Malformed,
            };
            if !core::mem::replace(&mut self.is_lost, true) {
                tally.drop(reason);
            }
            let next = self.held.iter().skip(1).position(|byte| *byte == b'P');
            self.held.advance(next.map_or(self.held.len(), |at| at + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An image of one line with pixels of this value.
    fn image(kind: &str, width: usize, value: u8) -> Vec<u8> {
        let mut image = format!("{kind}\n{width} 1\n255\n").into_bytes();
        let pixels = if kind == "P6" { 3 * width } else { width };
        image.resize(image.len() + pixels, value);
        image
    }

    fn apart<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Item>, Tally) {
        let (mut bytes, mut out, mut tally) = (PpmBytes::default(), Vec::new(), Tally::default());
        chunks.into_iter().for_each(|chunk| bytes.push(chunk, &Item::empty(), &mut out, &mut tally));
        (out, tally)
    }

    fn bytes(items: &[Item]) -> Vec<&[u8]> {
        items.iter().map(|item| &item.packet.bytes[..]).collect()
    }

    #[test]
    fn each_image_is_a_packet_wherever_the_bytes_are_cut() {
        let images = [image("P6", 5, 1), image("P5", 7, b'P'), image("P6", 1, 255)];
        let row = images.concat();
        for cut in 0..=row.len() {
            let (out, tally) = apart([&row[..cut], &row[cut..]]);
            assert_eq!((bytes(&out), tally.drops.total()), (images.each_ref().map(|i| &i[..]).to_vec(), 0));
        }
        let (out, _) = apart(row.chunks(1));
        assert_eq!(out.len(), images.len());
        let tags = out.iter().map(|item| (item.packet.tag.frame, item.packet.tag.key));
        assert!(tags.eq([(0, true), (1, true), (2, true)]));
    }

    #[test]
    fn what_is_no_image_is_counted_once_and_the_next_image_is_found() {
        let good = image("P6", 5, 1);
        let garbage = [&b"Progress: P5 no"[..], b"P6 1 1 256 ", b"PP"].concat();
        let row = [&good[..], &garbage, &good, b"P7", &good].concat();
        for cut in 0..=row.len() {
            let (out, tally) = apart([&row[..cut], &row[cut..]]);
            assert_eq!(bytes(&out), [&good[..]; 3], "cut at {cut}");
            assert_eq!((tally.drops.get(DropReason::Malformed), tally.drops.total()), (2, 2), "at {cut}");
        }
    }

    #[test]
    fn what_is_too_large_is_passed_over_and_never_asked_for() {
        let good = image("P5", 3, 9);
        let row = [b"P6\n32768 32768\n255\n", &[7; 5000][..], &good].concat();
        let (out, tally) = apart(row.chunks(100));
        assert_eq!(bytes(&out), [&good[..]]);
        assert_eq!((tally.drops.get(DropReason::Oversized), tally.drops.total()), (1, 1));
    }

    #[test]
    fn after_a_restart_an_image_begins() {
        let good = image("P6", 5, 1);
        let (mut bytes, mut out, mut tally) = (PpmBytes::default(), Vec::new(), Tally::default());
        for chunk in [&good[..], &good[..20]] {
            bytes.push(chunk, &Item::empty(), &mut out, &mut tally);
        }
        bytes.restart(&mut tally);
        assert_eq!(tally.drops.get(DropReason::Incomplete), 1);
        bytes.restart(&mut tally);
        bytes.push(&good, &Item::empty(), &mut out, &mut tally);
        assert_eq!((out.len(), out[1].packet.tag.frame, tally.drops.total()), (2, 1, 1));
    }
}
