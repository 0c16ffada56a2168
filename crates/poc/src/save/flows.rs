//! Units that are sent and received, with what the net says of them.

use minicbor::{Decode, Encode};
use outflow_petri::save::SavedEngine;

use super::{SavedBytes, SavedIncomingCounts, SavedOutgoingCounts, SavedPiece, SavedRepairCounts, SavedSpan};

/// What is sent.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct SavedOutgoing {
    /// The net, as far as the receiver's is known.
    #[n(0)]
    pub engine: SavedEngine,
    /// The receiver is done with all units below.
    #[n(1)]
    pub base: u64,
    /// The unit that comes next.
    #[n(2)]
    pub next: u64,
    /// The net was told of all below.
    #[n(3)]
    pub told: u64,
    /// The first unit that the receiver has no room for.
    #[n(4)]
    pub window_end: u64,
    /// From the one on that the receiver is not done with.
    #[n(5)]
    pub units: Vec<SavedUnit>,
    /// Pieces to be sent again, in this order.
    #[n(6)]
    pub again: Vec<SavedCopy>,
    /// Of pieces with several copies: those under way and to come.
    #[n(7)]
    pub copies: Vec<SavedCopy>,
    /// Units that were given up, and what is to be said of.
    #[n(8)]
    pub news: Vec<SavedSpan>,
    /// Units that may be left out together, ascending.
    #[n(9)]
    pub groups: Vec<SavedGroup>,
    /// The group behind them, which may still grow.
    #[n(10)]
    pub newest: Option<SavedGroup>,
    /// What misses what it needs.
    #[n(11)]
    pub orphans: Vec<SavedOrphans>,
    /// Hundredths of bytes that copies may still take.
    #[n(12)]
    pub budget: u64,
    /// What became of units.
    #[n(13)]
    #[cbor(default)]
    pub counts: SavedOutgoingCounts,
    /// What was sent again.
    #[n(14)]
    #[cbor(default)]
    pub repairs: SavedRepairCounts,
}

/// A unit that is sent.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct SavedUnit {
    /// How long it is.
    #[n(0)]
    pub bytes: u32,
    /// What it is; nothing if its fate is known.
    #[n(1)]
    pub data: Option<SavedBytes>,
    /// What was sent of it.
    #[n(2)]
    pub sent: u32,
    /// Whether anything was.
    #[n(3)]
    pub is_begun: bool,
    /// What is known to have come: from, and to before.
    #[n(4)]
    pub acked: Vec<(u32, u32)>,
    /// Until when it is of use.
    #[n(5)]
    pub until: Option<u64>,
    /// How it is sent again: 0 reliable, 1 partial, 2 unreliable.
    #[n(6)]
    pub class: u8,
    /// Whether it is not sent (again). One without data that is not came.
    #[n(7)]
    pub is_given_up: bool,
}

/// A piece that is sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct SavedCopy {
    /// Which piece.
    #[n(0)]
    pub piece: SavedPiece,
    /// How often.
    #[n(1)]
    pub count: u32,
    /// Not before.
    #[n(2)]
    pub due: Option<u64>,
}

/// Units in a row that one transition completes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct SavedGroup {
    /// The first one.
    #[n(0)]
    pub first: u64,
    /// The last one.
    #[n(1)]
    pub last: u64,
    /// The strongest class of them.
    #[n(2)]
    pub class: u8,
    /// The highest rank.
    #[n(3)]
    pub rank: u8,
}

/// Transitions of a round that miss what they need.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct SavedOrphans {
    /// The round.
    #[n(0)]
    pub round: u64,
    /// Which ones.
    #[n(1)]
    pub transitions: Vec<u32>,
}

/// What is received.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct SavedIncoming {
    /// The net.
    #[n(0)]
    pub engine: SavedEngine,
    /// Units of which a part came.
    #[n(1)]
    pub assembling: Vec<SavedAssembly>,
    /// Units that are complete and wait for their turn, ascending.
    #[n(2)]
    pub held: Vec<SavedWhole>,
    /// What the application has not read, in this order; those that were missed have no data.
    #[n(3)]
    pub unread: Vec<SavedWhole>,
    /// Units that were not delivered, of what the peer may not know of.
    #[n(4)]
    pub lost: Vec<SavedSpan>,
    /// The peer knows of all below.
    #[n(5)]
    pub known_below: u64,
    /// The first unit that the peer was not given room for.
    #[n(6)]
    pub window_end: u64,
    /// What it was told last, if that may still come to it: what is settled, and the end of the window.
    #[n(7)]
    pub told: Option<SavedSpan>,
    /// What became of units.
    #[n(8)]
    #[cbor(default)]
    pub counts: SavedIncomingCounts,
}

/// A unit of which a part came.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct SavedAssembly {
    /// Which one.
    #[n(0)]
    pub unit: u64,
    /// All of its bytes, zeros where nothing came.
    #[n(1)]
    pub data: SavedBytes,
    /// What came: from, and to before.
    #[n(2)]
    pub there: Vec<(u32, u32)>,
}

/// A unit.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct SavedWhole {
    /// Which one.
    #[n(0)]
    pub unit: u64,
    /// What it is.
    #[n(1)]
    pub data: Option<SavedBytes>,
}
