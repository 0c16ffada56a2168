//! Packets that an order asks to be sent to sinks behind a link.

use bytes::Bytes;
use outflow_media::{Kind, Tag};
use outflow_relay::{Order, Share, SinkKey, Stream};

use crate::send::Piece;

/// The packets of an order, and whose they are.
pub(in super::super) struct Offered<'a> {
    /// The stream, and its index at the worker.
    pub(in super::super) stream: (&'a Stream, usize),
    pub(in super::super) order: &'a Order,
    pub(in super::super) share: Share,
    /// As they would go on the wire.
    pub(in super::super) pieces: &'a [Piece<'a>],
    pub(in super::super) members: &'a [SinkKey],
}

impl Offered<'_> {
    /// Each packet, with what it means and the bytes behind its header.
    pub(super) fn each(&self, mut offer: impl FnMut(&Piece<'_>, Tag, &Bytes)) {
        let (stream, _) = self.stream;
        let mut packets = stream.packets(self.order, self.share).peekable();
        for piece in self.pieces {
            if piece.is_preamble {
                let Some((bytes, _)) = stream.preamble(self.order) else { continue };
                let before = packets.peek().map_or(Tag::default(), |(_, entry, _)| entry.packet.tag);
                let tag = Tag { kind: Kind::Header, first: false, last: false, ..before };
                offer(piece, tag, &bytes.slice_ref(piece.body));
            } else if let Some((_, entry, _)) = packets.next() {
                offer(piece, entry.packet.tag, &entry.packet.bytes.slice_ref(piece.body));
            }
        }
    }
}
