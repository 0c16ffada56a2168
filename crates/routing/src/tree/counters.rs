//! What happened at a node.

/// What happened, since the node was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Messages to other relays.
    pub sent: u64,
    /// Parents that were taken.
    pub taken: u64,
    /// Parents that were lost.
    pub lost: u64,
    /// Of those, the ones from which no beat came any more.
    pub dry: u64,
    /// Of those, the ones from which the stream did not come, though they were there.
    pub failed: u64,
    /// Children that were let go for want of a parent that could be taken with them.
    pub cut: u64,
    /// Children that did not say again what they want.
    pub expired: u64,
    /// Children that were refused.
    pub refused: u64,
    /// Questions to the directory.
    pub lookups: u64,
    /// What was said to the directory.
    pub registered: u64,
    /// What was about a stream beyond [`super::limits::STREAMS_MAX`].
    pub streams_refused: u64,
}
