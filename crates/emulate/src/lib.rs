//! Networks in real time, with real programs at their ends.
//!
//! A network and what goes through it is a [`World`](outflow_sim::network::World) of the simulator, which asks for no
//! clock and does no I/O: the links, nodes and traffic of `outflow sim` are those here. [`live`] drives it: each end is
//! a network namespace with devices whose packets are read and written here, and a program runs there.

mod limits;
pub mod live;
mod space;
mod spec;

pub use spec::{SpecError, between, link};
