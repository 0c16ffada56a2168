//! Networks in real time, with real programs at their ends.
//!
//! A [`Network`] is links, ends, and the paths between them. An [`Emulation`] has its packets: it is asked and
//! answers, without I/O and without a clock, and its links are those of `outflow sim` ([`outflow_sim::network`]), so
//! that both do the same. [`live`] drives it: each end is a network namespace with a device whose packets are read
//! and written here, and a program runs there.

mod emulation;
mod flows;
mod key;
mod limits;
pub mod live;
mod network;
mod report;
mod space;
mod spec;

pub use emulation::{Arrived, Emulation};
pub use network::Network;
pub use report::{LinkReport, Report};
pub use spec::{SpecError, link};
