//! Multicast routing on the interfaces of a Linux machine: what drives the state machines of
//! [`outflow_routing`], which do no I/O.
//!
//! [`Multicast`] is a task: the querier of IGMP on interfaces with hosts ([`Downstream`]), which says who
//! wants what ([`Event`]), has the kernel forward what is wanted at its best level, and joins it on an
//! interface upstream. What is wanted at a lower level the kernel cannot make; that is for the relay
//! ([`Flow::by_relay`]).
//!
//! [`sys`] is the kernel's side of it, and [`limits`] has what is bounded.
#![allow(clippy::disallowed_methods, reason = "a driver owns clock, sockets and files")]

mod control;
mod driver;
mod error;
mod event;
mod forward;
mod interfaces;
pub mod limits;
mod querier;
pub mod sys;
mod upstream;
mod wanted;

pub use control::{Multicast, Options};
pub use error::Error;
pub use event::{Counts, Event, Flow, InterfaceState, Name, Snapshot};
pub use interfaces::{Interface, Warning};
pub use querier::Downstream;
pub use wanted::Wanted;
