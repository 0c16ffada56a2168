//! The times that a change of a group is made with.

use core::time::Duration;

use outflow_media::Time;

/// What happens where the tables say that a query is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asks {
    /// Nothing: this router is not the querier, or its version knows no such queries.
    Nothing,
    /// Queries of groups are sent, of sources not, which IGMPv2 does not know.
    Groups,
    /// Queries are sent.
    All,
    /// The answer is known: there is no other host.
    AtOnce,
}

/// Times that a change is made with.
#[derive(Debug, Clone, Copy)]
pub(super) struct Timing {
    pub(super) now: Time,
    /// Group Membership Interval (RFC 3376 section 8.4).
    pub(super) membership: Duration,
    /// Last Member Query Interval (section 8.8).
    pub(super) last_member: Duration,
    /// Last Member Query Count (section 8.9).
    pub(super) count: u8,
    pub(super) asks: Asks,
}

impl Timing {
    /// The end of the Last Member Query Time (section 8.10) if it began now.
    pub(super) fn last_chance(&self) -> Time {
        self.now + self.last_member * u32::from(self.count)
    }
}
