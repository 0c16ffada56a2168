//! What was in a packet: what to do when it is acknowledged, or lost.

use crate::packet::Span;

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
