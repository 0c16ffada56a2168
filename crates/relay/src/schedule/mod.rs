//! Which sink is owed what, and which is served next.
//!
//! A [`Branch`] is one distinct output of a stream: a ring and the sinks that read it. Sinks that
//! are up with the newest packet stand in *cohorts*, which share one cursor, so that a packet
//! costs the core the same for one receiver and for thousands. Only those that lag have a cursor
//! of their own.

mod branch;
mod change;
mod cohort;
mod counters;
mod gather;
mod hop;
mod ids;
mod pace;
mod room;
mod save;
mod share;
mod sink;
mod slow;
mod spec;
mod splice;
mod start_point;
mod stride;
#[cfg(test)]
mod tests;

pub use branch::Branch;
pub use counters::Counters;
pub use ids::{BranchId, LinkId, SinkKey};
pub use room::Room;
pub use share::Share;
pub(crate) use sink::Stop;
pub use sink::{Place, Sink, Sinks, Wish};
pub use spec::{Encapsulation, LinkClaim, Priority, SinkSpec, Timing, Transport};
pub(crate) use splice::{Entered, Splice};
pub use start_point::{StartPoint, align};
