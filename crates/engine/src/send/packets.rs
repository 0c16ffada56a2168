//! Packets of an order for receivers that keep them until they have come ([`Peer`](crate::message::Peer)).

use arrayvec::ArrayVec;
use bytes::{Bytes, BytesMut};
use outflow_relay::limits::ORDER_PACKETS_MAX;

use super::{Piece, Worth};
use crate::limits::PEER_BLOCK_BYTES;

/// The packets of an order. Their bytes are put together once for all that want the same in front of them.
#[derive(Debug)]
pub struct Packets<'a> {
    pieces: &'a [Piece<'a>],
    joined: ArrayVec<Bytes, { ORDER_PACKETS_MAX + 1 }>,
    block: &'a mut BytesMut,
}

/// What is known of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketHead {
    /// Its track.
    pub track: u8,
    /// How much it is missed.
    pub worth: Worth,
    /// Its bytes, with its RTP header.
    pub bytes: usize,
    /// Whether it was put in front of what the receiver begins with, and counts as no packet of the stream.
    pub is_preamble: bool,
}

impl<'a> Packets<'a> {
    /// These packets; `block` is where their bytes are put together.
    pub(crate) fn new(pieces: &'a [Piece<'a>], block: &'a mut BytesMut) -> Self {
        Packets { pieces, joined: ArrayVec::new(), block }
    }

    /// All of them, in order.
    pub fn heads(&self) -> impl ExactSizeIterator<Item = PacketHead> + use<'a> {
        let head = |piece: &Piece<'_>| {
            let (track, worth, is_preamble) = (piece.track, piece.worth, piece.is_preamble);
            PacketHead { track, worth, bytes: piece.len(), is_preamble }
        };
        self.pieces.iter().map(head)
    }

    /// The bytes of a packet, behind these.
    ///
    /// # Panics
    /// `index` is not below the number of packets.
    pub fn joined(&mut self, index: usize, prefix: &[u8]) -> Bytes {
        while self.joined.len() <= index {
            self.joined.push(Bytes::new());
        }
        let (piece, known) = (&self.pieces[index], &mut self.joined[index]);
        let length = prefix.len() + piece.len();
        if known.len() != length || !known.starts_with(prefix) {
            *known = join(self.block, [prefix, piece.header, piece.body], length);
        }
        known.clone()
    }
}

fn join(block: &mut BytesMut, parts: [&[u8]; 3], length: usize) -> Bytes {
    if block.capacity() < length {
        *block = BytesMut::with_capacity(PEER_BLOCK_BYTES.max(length));
    }
    parts.into_iter().for_each(|part| block.extend_from_slice(part));
    block.split().freeze()
}

#[cfg(test)]
mod tests {
    use outflow_media::Time;

    use super::*;

    fn piece<'a>(track: u8, header: &'a [u8], body: &'a [u8]) -> Piece<'a> {
        let (seq, layer, ends, is_preamble) = (0, None, None, false);
        Piece { seq, track, layer, ends, header, body, is_preamble, worth: Worth::most(Time::ZERO) }
    }

    #[test]
    fn bytes_are_put_together_once_for_all_that_want_the_same() {
        let pieces = [piece(0, b"", b"body"), piece(1, b"head", b"body")];
        let mut block = BytesMut::new();
        let mut packets = Packets::new(&pieces, &mut block);
        let one = packets.joined(1, &[2]);
        assert_eq!(&one[..], b"\x02headbody");
        assert_eq!(packets.joined(1, &[2]).as_ptr(), one.as_ptr(), "the same bytes");
        assert_eq!(&packets.joined(1, &[3])[..], b"\x03headbody");
        assert_eq!(&packets.joined(0, &[])[..], b"body");
        assert_eq!(&one[..], b"\x02headbody", "they stay");
        let heads: Vec<_> = packets.heads().map(|head| (head.track, head.bytes)).collect();
        assert_eq!(heads, [(0, 4), (1, 8)]);
    }

    #[test]
    fn blocks_are_exchanged_when_they_are_full() {
        let body = vec![7; PEER_BLOCK_BYTES / 2 + 1];
        let pieces = [piece(0, b"", &body), piece(0, b"", &body)];
        let mut block = BytesMut::new();
        let mut packets = Packets::new(&pieces, &mut block);
        let both = [packets.joined(0, &[]), packets.joined(1, &[])];
        assert!(both.iter().all(|bytes| bytes[..] == body[..]));
    }
}
