//! Multicast routing without I/O: what is wanted below of each group or stream, at which level, and what is
//! to be asked for above because of it.
//!
//! Hosts say what they want by IGMP and MLD ([`membership`]), routers to each other by DVMRP ([`dvmrp`]). A
//! table ([`demand`]) keeps what each child wants of what, and what follows from it for those above.
//!
//! What a router does to a packet that it forwards is [`forwarding`]. Relays make trees over unicast ([`tree`]).
//!
//! There is no I/O here, no clock, and nothing allocates by a length that the network claims.

pub mod demand;
pub mod dvmrp;
pub mod forwarding;
mod ip;
mod level;
pub mod membership;
mod random;
pub mod tree;

pub use level::{Level, NoLevel};
pub use random::Random;
