//! A transport stream that comes as bytes: cut into packets, tagged, numbered.

use bytes::Bytes;
use outflow_media::{Content, Format, Tag};
use outflow_packet::receive::RtpWrap;
use outflow_packet::{DropReason, Packet, Parser};
use outflow_ts::{PACKET_BYTES, TsFramer};

use crate::{Item, Tally};

/// Makes packets of a byte stream.
#[derive(Debug)]
pub struct TsBytes {
    framer: TsFramer,
    parser: Parser,
    wrap: Option<RtpWrap>,
    /// Packets' worth of bytes that were passed over, as far as they are counted.
    counted: u64,
    /// What comes next does not continue what was.
    is_break: bool,
}

impl Default for TsBytes {
    fn default() -> Self {
        let (framer, parser) = (TsFramer::default(), Parser::new(&Format::Ts));
        TsBytes { framer, parser, wrap: None, counted: 0, is_break: false }
    }
}

impl TsBytes {
    /// The next bytes. Packets that are complete by them are added to `out`; they come in the place of
    /// `like`, a packet that the stream was made from.
    pub fn push(&mut self, chunk: Bytes, like: &Item, out: &mut Vec<Item>, tally: &mut Tally) {
        self.framer.push(chunk);
        while let Some(bytes) = self.framer.next_datagram() {
            match self.parser.tag(0, &bytes) {
                Ok(tag) => {
                    if core::mem::take(&mut self.is_break)
                        && let Some(words) = self.parser.discontinuity(&bytes)
                    {
                        let tag = Tag { content: Content::Tables, ..Tag::default() };
                        out.push(self.made(words, tag, like));
                    }
                    out.push(self.made(bytes, tag, like));
                }
                Err(reason) => tally.drop(reason),
            }
        }
        let skipped = self.framer.skipped().div_ceil(PACKET_BYTES as u64);
        tally.drops.add(DropReason::Malformed, skipped - self.counted);
        self.counted = skipped;
    }

    /// What comes does not continue what was: its decoders will be told so. What is not complete is let
    /// go.
    pub fn restart(&mut self) {
        (self.framer, self.counted, self.is_break) = (TsFramer::default(), 0, true);
        self.parser.restart(&Format::Ts);
        self.wrap.iter_mut().for_each(RtpWrap::mark_break);
    }

    fn made(&mut self, bytes: Bytes, tag: Tag, like: &Item) -> Item {
        let ssrc = like.header().map_or(0, |[.., a, b, c, d]| u32::from_be_bytes([*a, *b, *c, *d]));
        let wrap = self.wrap.get_or_insert_with(|| RtpWrap::new(ssrc));
        let mut made = like.made(Packet { bytes, tag, arrived: like.packet.arrived });
        made.rtp_header = wrap.next(like.packet.arrived);
        made.preamble = if tag.key { self.parser.preamble() } else { None };
        made
    }
}

#[cfg(test)]
mod tests {
    use outflow_rtp::PlainHeader;
    use outflow_ts::packet;

    use super::*;

    const CLIP: &[u8] = include_bytes!("../../../../assets/demo.ts");

    fn like() -> Item {
        let mut like = Item::empty();
        let header = PlainHeader { marker: false, payload_type: 33, sequence: 7, timestamp: 0, ssrc: 9 };
        like.rtp_header = header.emit();
        like
    }

    fn null(packets: usize) -> Vec<u8> {
        let mut null = [0xff; 188];
        null[..4].copy_from_slice(&[0x47, 0x1f, 0xff, 0x10]);
        null.repeat(packets)
    }

    #[test]
    fn bytes_become_tagged_packets_with_headers_in_a_row() {
        let (mut bytes, mut out, mut tally) = (TsBytes::default(), Vec::new(), Tally::default());
        for chunk in null(30).chunks(1000) {
            bytes.push(Bytes::copy_from_slice(chunk), &like(), &mut out, &mut tally);
        }
        assert_eq!(out.iter().map(Item::len).sum::<usize>(), 30 * 188);
        let sequence = |item: &Item| u16::from_be_bytes([item.rtp_header[2], item.rtp_header[3]]);
        assert!(out.windows(2).all(|pair| sequence(&pair[1]) == sequence(&pair[0]).wrapping_add(1)));
        assert!(out.iter().all(|item| item.rtp_header[8..] == [0, 0, 0, 9]));
        assert_eq!(tally.drops.total(), 0);
    }

    #[test]
    fn what_is_no_transport_stream_is_counted_by_packets() {
        let (mut bytes, mut out, mut tally) = (TsBytes::default(), Vec::new(), Tally::default());
        let garbage = [vec![b'x'; 300], null(7)].concat();
        bytes.push(garbage.into(), &like(), &mut out, &mut tally);
        assert_eq!(out.iter().map(Item::len).sum::<usize>(), 7 * 188);
        assert_eq!(tally.drops.get(DropReason::Malformed), 2);
    }
    #[test]
    fn decoders_are_told_of_a_restart_however_often_there_was_one() {
        let (mut bytes, mut out, mut tally) = (TsBytes::default(), Vec::new(), Tally::default());
        let mut push = |bytes: &mut TsBytes, chunk: &'static [u8]| {
            out.clear();
            bytes.push(Bytes::from_static(chunk), &like(), &mut out, &mut tally);
            let first = packet::Packet::new_checked(&out[0].packet.bytes[..188]).expect("a packet");
            (first.adaptation().discontinuity(), out[0].rtp_header[1] >> 7 == 1)
        };
        assert_eq!(push(&mut bytes, &CLIP[..100_000]), (false, false));
        bytes.restart();
        bytes.restart();
        assert_eq!(push(&mut bytes, CLIP), (true, true));
        assert!(!push(&mut bytes, CLIP).1);
        assert_eq!(tally.drops.total(), 0);
    }
}
