//! Networks in real time, with real programs at their ends.
//!
//! A network and what goes through it is a [`World`](outflow_sim::network::World) of the simulator, which asks for no
//! clock and does no I/O: the links, nodes and traffic of `outflow sim` are those here. [`drive`] drives it, or some of
//! them at once ([`drive::Carry`]): packets of devices are read and written. [`live`] has all that goes with one: each
//! end is a network namespace with devices, and a program runs there.

pub mod drive;
mod limits;
pub mod live;
mod space;
mod spec;

pub use spec::{SpecError, between, link};
