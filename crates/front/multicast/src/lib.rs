//! Multicast by IGMP and DVMRP: hosts that join the group of a stream, and routers that lead to some, are sent
//! it, where and at the level that they want it.
//!
//! One task ([`task`]) has the driver (`outflow-multicast`) and turns what it tells into receivers, as those
//! that the configuration names: what is wanted where ([`demand`]) and which stream is what group ([`plan`])
//! say which there are to be. What the kernel forwards the relay does not send, and the other way round: the
//! plan says for each group whose it is, and the driver is told.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the control plane owns time, tasks and I/O"
)]

mod demand;
mod described;
mod drivers;
mod filtering;
mod front;
mod handle;
mod interfaces;
mod limits;
mod metrics;
mod pages;
mod plan;
mod received;
mod settings;
mod state;
mod task;

pub use self::front::front;
pub use self::state::{
    MulticastDvmrp, MulticastFlow, MulticastGroup, MulticastInterface, MulticastLevel, MulticastNeighbour,
    MulticastNeighbours, MulticastReported, MulticastRoute, MulticastSent, MulticastState, MulticastUpstream,
};
