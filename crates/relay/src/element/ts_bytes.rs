//! A transport stream that comes as bytes: cut into packets, tagged, numbered.

use bytes::Bytes;
use outflow_media::ts::{TsFramer, TsReader};

use crate::buffer::Packet;
use crate::graph::Item;
use crate::receive::RtpWrap;

/// Makes packets of a byte stream.
#[derive(Debug, Default)]
pub struct TsBytes {
    framer: TsFramer,
    reader: TsReader,
    wrap: Option<RtpWrap>,
}

impl TsBytes {
    /// The next bytes. Packets that are complete by them are added to `out`; they come in the place of
    /// `like`, a packet that the stream was made from.
    pub fn push(&mut self, chunk: Bytes, like: &Item, out: &mut Vec<Item>) {
        let TsBytes { framer, reader, wrap } = self;
        let ssrc = like.header().map_or(0, |[.., a, b, c, d]| u32::from_be_bytes([*a, *b, *c, *d]));
        let wrap = wrap.get_or_insert_with(|| RtpWrap::new(ssrc));
        framer.push(chunk);
        while let Some(bytes) = framer.next_datagram() {
            // What the framer cuts out begins with sync bytes; the reader may still see more in it.
            let Ok(tag) = reader.read(&bytes) else { continue };
            let mut made = like.made(Packet { bytes, tag, arrived: like.packet.arrived });
            made.rtp_header = wrap.next(like.packet.arrived);
            made.preamble = if tag.key { reader.preamble() } else { None };
            out.push(made);
        }
    }
}

#[cfg(test)]
mod tests {
    use outflow_media::rtp::PlainHeader;

    use super::*;

    #[test]
    fn bytes_become_tagged_packets_with_headers_in_a_row() {
        let mut null = [0xff; 188];
        null[..4].copy_from_slice(&[0x47, 0x1f, 0xff, 0x10]);
        let stream = null.repeat(30);
        let (mut bytes, mut out) = (TsBytes::default(), Vec::new());
        let mut like = Item::empty();
        let header = PlainHeader { marker: false, payload_type: 33, sequence: 7, timestamp: 0, ssrc: 9 };
        like.rtp_header = header.emit();
        for chunk in stream.chunks(1000) {
            bytes.push(Bytes::copy_from_slice(chunk), &like, &mut out);
        }
        assert_eq!(out.iter().map(Item::len).sum::<usize>(), 30 * 188);
        let sequence = |item: &Item| u16::from_be_bytes([item.rtp_header[2], item.rtp_header[3]]);
        assert!(out.windows(2).all(|pair| sequence(&pair[1]) == sequence(&pair[0]).wrapping_add(1)));
        assert!(out.iter().all(|item| item.rtp_header[8..] == [0, 0, 0, 9]));
    }
}
