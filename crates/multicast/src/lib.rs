//! Multicast routing on the interfaces of a Linux machine: what drives the state machines of
//! [`outflow_routing`], which do no I/O.
//!
//! [`Multicast`] is a task: the querier of IGMP on interfaces with hosts ([`Downstream`]), which says what
//! they want ([`Event`]), has the kernel forward it, and joins it on an interface upstream, or, as a router
//! of DVMRP among others ([`Neighbours`]), has the trees of its sources grow and prunes them. The kernel
//! cannot make a lower level of anything; that is for the relay ([`Flow::by_relay`]), of the groups that it
//! says it sends ([`Relayed`]), and else for the forwarder in user space ([`Flow::thinned`]), of packets that say what
//! they are. Where neighbours want what the relay sends, it is told ([`OwnFlow`]).
//!
//! The kernel's table has room for 32 interfaces. Packets from and to further ones are forwarded in user space.
//!
//! [`sys`] is the kernel's side of it, and [`limits`] has what is bounded.
#![allow(clippy::disallowed_methods, reason = "a driver owns clock, sockets and files")]

mod clock;
mod control;
mod driver;
mod error;
mod event;
mod forward;
mod forwarder;
mod interfaces;
pub mod limits;
mod neighbours;
mod options;
mod ports;
mod querier;
pub mod sys;
mod timing;
mod upstream;

pub use control::Multicast;
pub use error::Error;
pub use event::{
    Counts, Event, Flow, InterfaceState, LevelReported, Name, NeighbourState, Neighbourhood, OwnFlow,
    RouteState, Snapshot,
};
pub use forward::Relayed;
#[cfg(feature = "testing")]
pub use forwarder::testing;
pub use forwarder::{UserCounts, open_filter};
pub use interfaces::{Addresses, Interface, Warning};
pub use neighbours::Neighbours;
pub use options::Options;
pub use outflow_kernel::thin::{Counts as FilterCounts, Filter, Version};
pub use outflow_routing::membership::Wants;
pub use querier::Downstream;
pub use timing::Timing;
