//! What is handed over of an engine to the process that goes on with it ([`Engine::save`]): what is known of units,
//! and when transitions fired. All else follows from that and the net.
//!
//! Numbers of fields are never given to something else: a reader passes over those that it does not know.
//!
//! [`Engine::save`]: crate::net::Engine::save

use minicbor::{Decode, Encode};

/// What was saved does not fit: another net, a damaged file, or a writer that counts in another way. What it was
/// of has to begin again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the saved {what} cannot be restored: {why}; it has to begin again")]
pub struct Unfit {
    /// What it is.
    pub what: &'static str,
    /// What is wrong with it.
    pub why: &'static str,
}

/// An engine.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct SavedEngine {
    /// When it began, in nanoseconds.
    #[n(0)]
    pub start: u64,
    /// Until when all that was due is done.
    #[n(1)]
    pub now: u64,
    /// All units below are settled.
    #[n(2)]
    pub settled: u64,
    /// The transitions of the net, in its order, as numbers ([`leb128`](crate::leb128)). First how many in a row have
    /// fired how many rounds, until all are said. Then those with evidence of further rounds: how many there are, and
    /// of each how many transitions lie between it and the one before, the number of rounds, and since when there is
    /// evidence of them. Then, in the same way, those of which tokens are left for a round that there is evidence of,
    /// and when they fired the last rounds, those of these tokens at least. Rounds that were fired, and times, are
    /// differences to what was said before of either: twice that, or less by one if it is below zero.
    #[cbor(n(3), with = "minicbor::bytes")]
    pub transitions: Vec<u8>,
    /// What is known of units that are not over, ascending.
    #[n(4)]
    pub units: Vec<SavedUnits>,
}

/// Units of which the same is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct SavedUnits {
    /// The first one.
    #[n(0)]
    pub first: u64,
    /// The last one.
    #[n(1)]
    pub last: u64,
    /// What is known.
    #[n(2)]
    pub known: SavedKnown,
}

/// What is known of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum SavedKnown {
    /// It is here and waits for its turn.
    #[n(0)]
    Held,
    /// It was delivered.
    #[n(1)]
    Delivered,
    /// It will not come.
    #[n(2)]
    Absent,
    /// It will not come, and could have been delivered by now.
    #[n(3)]
    Missed,
}
