//! Packets of an order for receivers that keep them until they have come ([`Peer`](crate::message::Peer)).

use arrayvec::ArrayVec;
use bytes::{Bytes, BytesMut};
use outflow_media::Time;
use outflow_relay::limits::ORDER_PACKETS_MAX;

use super::{Piece, Recent, Worth};
use crate::limits::PEER_BLOCK_BYTES;

/// The packets of an order. Their bytes are put together once for all that want the same in front of them; where that is
/// nothing, they are those of the ring.
#[derive(Debug)]
pub struct Packets<'a> {
    pieces: &'a [Piece<'a>],
    joined: ArrayVec<Joined, { ORDER_PACKETS_MAX + 1 }>,
    block: &'a mut BytesMut,
    recent: &'a mut Recent,
    now: Time,
}

/// The bytes of a packet.
#[derive(Debug, Default)]
struct Joined {
    bytes: Bytes,
    /// Its number among the recent ones, if it is one.
    number: Option<u32>,
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
    /// Of a picture of several layers, it is the last packet for receivers of layers up to this
    /// ([`Tag::ends`](outflow_media::Tag::ends)).
    pub ends: Option<u8>,
    /// Whether it was put in front of what the receiver begins with, and counts as no packet of the stream.
    pub is_preamble: bool,
}

impl<'a> Packets<'a> {
    /// These packets; `block` is where their bytes are put together, `recent` where those go that are kept.
    pub(crate) fn new(
        now: Time,
        pieces: &'a [Piece<'a>],
        block: &'a mut BytesMut,
        recent: &'a mut Recent,
    ) -> Self {
        Packets { pieces, joined: ArrayVec::new(), block, recent, now }
    }

    /// All of them, in order.
    pub fn heads(&self) -> impl ExactSizeIterator<Item = PacketHead> + use<'a> {
        let head = |piece: &Piece<'_>| {
            let (track, worth, is_preamble) = (piece.track, piece.worth, piece.is_preamble);
            PacketHead { track, worth, bytes: piece.len(), ends: piece.ends, is_preamble }
        };
        self.pieces.iter().map(head)
    }

    /// The bytes of a packet, behind these.
    ///
    /// # Panics
    /// `index` is not below the number of packets.
    pub fn joined(&mut self, index: usize, prefix: &[u8]) -> Bytes {
        self.join(index, prefix).bytes.clone()
    }

    /// The bytes of a packet, and the number by which [`Recent`] has them from now on.
    ///
    /// # Panics
    /// `index` is not below the number of packets.
    pub fn kept(&mut self, index: usize) -> (Bytes, u32) {
        let Joined { bytes, number } = self.join(index, &[]);
        let (bytes, known) = (bytes.clone(), *number);
        let number = known.unwrap_or_else(|| self.recent.add(self.now, bytes.clone()));
        self.joined[index].number = Some(number);
        (bytes, number)
    }

    fn join(&mut self, index: usize, prefix: &[u8]) -> &Joined {
        while self.joined.len() <= index {
            self.joined.push(Joined::default());
        }
        let (piece, known) = (&self.pieces[index], &mut self.joined[index]);
        let length = prefix.len() + piece.len();
        if known.bytes.len() != length || !known.bytes.starts_with(prefix) {
            let bytes = match piece.bytes.filter(|_| length == piece.body.len()) {
                Some(bytes) => bytes.slice_ref(piece.body),
                None => join(self.block, [prefix, piece.header, piece.body], length),
            };
            *known = Joined { bytes, number: None };
        }
        known
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
    use super::*;

    fn piece<'a>(track: u8, header: &'a [u8], body: &'a [u8]) -> Piece<'a> {
        let (seq, layer, ends, is_preamble) = (0, None, None, false);
        Piece {
            seq,
            track,
            layer,
            ends,
            header,
            body,
            bytes: None,
            is_preamble,
            worth: Worth::most(Time::ZERO),
        }
    }

    #[test]
    fn bytes_are_put_together_once_for_all_that_want_the_same() {
        let pieces = [piece(0, b"", b"body"), piece(1, b"head", b"body")];
        let (mut block, mut recent) = (BytesMut::new(), Recent::default());
        let mut packets = Packets::new(Time::ZERO, &pieces, &mut block, &mut recent);
        let one = packets.joined(1, &[2]);
        assert_eq!(&one[..], b"\x02headbody");
        assert_eq!(packets.joined(1, &[2]).as_ptr(), one.as_ptr(), "the same bytes");
        assert_eq!(&packets.joined(1, &[3])[..], b"\x03headbody");
        assert_eq!(&packets.joined(0, &[])[..], b"body");
        assert_eq!(&one[..], b"\x02headbody", "they stay");
        let [kept, again] = [packets.kept(1), packets.kept(1)];
        assert_eq!((&kept.0[..], kept.1), (&b"headbody"[..], again.1), "it is kept once");
        assert_ne!(packets.kept(0).1, kept.1);
        let heads: Vec<_> = packets.heads().map(|head| (head.track, head.bytes)).collect();
        assert_eq!(heads, [(0, 4), (1, 8)]);
        assert_eq!(recent.get(kept.1), Some(&kept.0));
    }

    #[test]
    fn what_is_whole_in_the_ring_is_not_copied() {
        let bytes = Bytes::from(vec![7; 30]);
        let whole = Piece { bytes: Some(&bytes), ..piece(0, b"", &bytes) };
        let pieces = [whole, Piece { header: b"head", ..whole }];
        let (mut block, mut recent) = (BytesMut::new(), Recent::default());
        let mut packets = Packets::new(Time::ZERO, &pieces, &mut block, &mut recent);
        let [(kept, number), (behind, _)] = [0, 1].map(|index| packets.kept(index));
        assert_eq!((kept.as_ptr(), behind.len()), (bytes.as_ptr(), 34));
        assert_ne!(packets.joined(0, &[1]).as_ptr(), bytes.as_ptr());
        assert_eq!(recent.get(number).map(|packet| packet.as_ptr()), Some(bytes.as_ptr()));
    }

    #[test]
    fn blocks_are_exchanged_when_they_are_full() {
        let body = vec![7; PEER_BLOCK_BYTES / 2 + 1];
        let pieces = [piece(0, b"", &body), piece(0, b"", &body)];
        let (mut block, mut recent) = (BytesMut::new(), Recent::default());
        let mut packets = Packets::new(Time::ZERO, &pieces, &mut block, &mut recent);
        let both = [packets.joined(0, &[]), packets.joined(1, &[])];
        assert!(both.iter().all(|bytes| bytes[..] == body[..]));
    }
}
