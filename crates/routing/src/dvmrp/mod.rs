//! DVMRP version 3, a router of it (draft-ietf-idmr-dvmrp-v3-11; sections are of it), and levels over it.
//!
//! [`Router`] is fed packets of IP with their interface, what data of which source comes from where, and
//! which host is a member of which group at which level. It says what is to be sent, and of each pair of
//! source network and group where its data is to come from, where it is to go, and at which level.
//!
//! | module | section | what |
//! |---|---|---|
//! | [`packet`] | 3.1 to 3.6, appendix B | messages on the wire |
//! | [`neighbour`] | 3.2 | which neighbours are on a link |
//! | [`routes`] | 3.3.1, 3.4 | where sources are, which router forwards onto a link, and which depend on it |
//! | [`forwarding`] | 3.3, 3.5, 3.6 | trees: prunes, grafts, and levels |
//! | [`limits`] | appendix A | times and limits |
//!
//! **Levels.** A router that understands them says so by a bit of its probes. It tells the neighbour it
//! depends on which level it wants of a pair, the best one that is wanted below ([`packet::Demand`]), and
//! says it again as long as data comes. A demand takes back a prune as a graft does. A neighbour that depends
//! on a router and says nothing, or does not understand levels, is served the best one: no host is worse off
//! for what a neighbour does not know.
//!
//! **Where we differ.** Neighbours without prunes or generations (appendix C) are refused, as mrouted refuses
//! them. A router forwards onto a link only if it is the designated forwarder there, also for dependents;
//! section 3.3.3 read by the letter would make two copies. Routes over a neighbour that was restarted are held
//! down until it tells them again: it forwards nothing before it knows that we depend on it, and is told that
//! again then. Prunes are only of networks, not of hosts, so
//! that we do not say that we understand masks.

mod counters;
mod event;
pub mod forwarding;
mod interface;
pub mod limits;
pub mod neighbour;
mod outbox;
pub mod packet;
mod router;
pub mod routes;

use core::fmt;
use core::net::Ipv4Addr;

use outflow_media::Time;

pub use counters::{Counters, Refusal};
pub use event::Event;
pub use interface::{InterfaceSettings, Link};
pub use outbox::Transmit;
pub use router::{Router, Settings};

/// How the driver calls an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InterfaceId(pub u32);

/// A router on a link of ours.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Peer {
    /// Which link.
    pub interface: InterfaceId,
    /// Its address there.
    pub address: Ipv4Addr,
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {}", self.address, self.interface.0)
    }
}

/// The first of some times, of which some may not be.
fn earliest<const N: usize>(times: [Option<Time>; N]) -> Option<Time> {
    times.into_iter().flatten().min()
}

#[cfg(test)]
mod tests;
