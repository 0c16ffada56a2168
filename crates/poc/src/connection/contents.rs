//! What was in a packet: what to do when it is acknowledged, or lost.

use crate::packet::Span;
use crate::save::{SavedContent, SavedItem, SavedPiece, Unfit};

/// A piece of a unit that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Piece {
    pub(super) unit: u64,
    pub(super) offset: u32,
    pub(super) bytes: u32,
    /// How often it was sent, this time among them.
    pub(super) attempts: u32,
}

/// A frame that matters after it was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Item {
    Fragment(Piece),
    GivenUp(Span),
    /// Units below were settled.
    Progress(u64),
    /// The largest packet that was acknowledged.
    Ack(u64),
}

/// What was in a packet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Contents {
    pub(super) items: Vec<Item>,
    /// Whether congestion control was told of it.
    pub(super) is_counted: bool,
    /// Whether it was marked as ECN-capable.
    pub(super) is_marked: bool,
    /// Bytes of the datagram, of one that was padded to see whether they get through.
    pub(super) probed: Option<u16>,
}

impl Piece {
    /// What another one needs to go on.
    pub(super) fn save(&self) -> SavedPiece {
        SavedPiece { unit: self.unit, offset: self.offset, bytes: self.bytes, attempts: self.attempts }
    }

    /// As it was.
    pub(super) fn restore(saved: &SavedPiece) -> Self {
        let SavedPiece { unit, offset, bytes, attempts } = *saved;
        Piece { unit, offset, bytes, attempts }
    }
}

impl Item {
    fn save(&self) -> SavedItem {
        match self {
            Item::Fragment(piece) => SavedItem::Fragment(piece.save()),
            Item::GivenUp(span) => SavedItem::GivenUp((*span).into()),
            Item::Progress(settled) => SavedItem::Progress(*settled),
            Item::Ack(largest) => SavedItem::Ack(*largest),
        }
    }

    fn restore(saved: &SavedItem) -> Result<Self, Unfit> {
        Ok(match saved {
            SavedItem::Fragment(piece) => Item::Fragment(Piece::restore(piece)),
            SavedItem::GivenUp(span) => Item::GivenUp(span.checked("frame in flight")?),
            SavedItem::Progress(settled) => Item::Progress(*settled),
            SavedItem::Ack(largest) => Item::Ack(*largest),
        })
    }
}

impl Contents {
    /// What another one needs to go on.
    pub(super) fn save(&self) -> SavedContent {
        SavedContent {
            items: self.items.iter().map(Item::save).collect(),
            is_counted: self.is_counted,
            is_marked: self.is_marked,
            probed: self.probed,
        }
    }

    /// As it was.
    pub(super) fn restore(saved: &SavedContent) -> Result<Self, Unfit> {
        Ok(Contents {
            items: saved.items.iter().map(Item::restore).collect::<Result<_, _>>()?,
            is_counted: saved.is_counted,
            is_marked: saved.is_marked,
            probed: saved.probed,
        })
    }
}
