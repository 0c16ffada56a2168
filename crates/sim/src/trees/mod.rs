//! Trees of relays in virtual time: thousands of [`Node`](outflow_routing::tree::Node)s that run the very code
//! of the relay, on a map, with a directory, while relays, paths, messages and the directory fail.
//!
//! | module | what |
//! |---|---|
//! | `relay` | a relay, dead or alive, and what it has of each stream |
//! | `relays` | all of them: where they are, which reach each other, along which edges a stream flows |
//! | `timetable` | what is under way: messages, timeouts, changes |
//! | `network` | what happens: messages, timeouts, deaths, partitions |
//! | `directory` | which relay has which stream, as a place knows it that can be unreachable |
//! | `media` | which relays have a stream, and what must never be |
//! | `crowd` | receivers that come, go and change their levels |
//! | `count` | what is sent |
//! | `check` | what must be true in the end |
//!
//! Receivers are counted, not made: by level and relay. A stream *flows* from a relay to another that
//! takes it from there, if both name the edge by the same number and can reach each other; a relay joined
//! to a source by such edges has it at that moment. What packets do on their way, and where a key frame
//! is, is not in here.
//!
//! What must be true at any time is looked at whenever something changes, where it changes: a new edge closes
//! no loop, no relay asks for less than is wanted below, nor for more for longer than the hold, and none is
//! sent a stream by two for longer than a child lives that says nothing. What is not so is kept
//! ([`Network::faults`]). The same seed gives the same run.

mod check;
mod count;
mod crowd;
mod directory;
mod media;
mod network;
mod relay;
mod relays;
mod timetable;

pub use count::Traffic;
pub use crowd::Crowd;
pub(crate) use directory::Directory;
pub use media::Dark;
pub use network::{Network, Settings};
