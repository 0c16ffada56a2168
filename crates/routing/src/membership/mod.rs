//! Group membership of one link: IGMPv1, v2 and v3 (RFC 1112, 2236, 3376 = 9776) and MLDv1 and v2
//! (RFC 2710, 3810) by the same state machines.
//!
//! [`packet`] reads and writes messages, [`Router`] is the querier's side of an interface and says which
//! groups are wanted on it, [`Host`] is the members' side, by which a relay joins upstream.
//!
//! IGMP's versions are meant where versions are said: MLDv1 is the counterpart of IGMPv2, MLDv2 that of v3.
//!
//! # Levels
//!
//! A host may say for a group which [`Level`] of quality it wants, in an extension (RFC 9279) of its IGMPv3
//! and MLDv2 reports that others ignore ([`packet::Levels`] has the layout). A host that says nothing wants
//! the best, so plain hosts and plain routers get what they always got. IGMPv1, v2 and MLDv1 cannot say it,
//! and their hosts are not known one by one, as one report stands for all: such a group is wanted at best.
//!
//! Two of a host may report: its kernel, which says no levels, and a program that does. The level is the host's,
//! and holds for both. When one of them leaves, members are asked as ever; until the Last Member Query Time is over
//! the other one's report keeps the host a member, and only a level that is said again is kept beyond it.

mod address;
mod counters;
mod host;
pub mod limits;
pub mod packet;
mod router;
mod wants;

pub use address::{Family, Link};
pub use counters::{Counters, Reason};
pub use host::{Host, HostSettings, Interest, Refused};
pub use router::{Event, Router, RouterSettings, Wanted};
pub use wants::Wants;

pub use crate::{Level, Random};

/// Versions, oldest first. MLDv1 counts as [`Version::V2`], MLDv2 as [`Version::V3`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// IGMPv1 (RFC 1112): hosts leave without a word.
    V1,
    /// IGMPv2 (RFC 2236) or MLDv1 (RFC 2710): hosts say that they leave.
    V2,
    /// IGMPv3 (RFC 3376) or MLDv2 (RFC 3810): hosts choose sources, too.
    V3,
}

/// What a list of sources means (RFC 3376 section 2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// Only these are wanted.
    Include,
    /// All others are wanted.
    Exclude,
}

#[cfg(test)]
mod tests;
