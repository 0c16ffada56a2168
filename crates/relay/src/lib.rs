//! A stream with all its receivers, without I/O, clock, threads or locks.
//!
//! ```text
//! (packet) → services (graph) → buffer → schedule → send
//!            control: what the driver asks, what it is told
//! ```
//!
//! The folders of this crate are the stations of that way, but for the buffer (`outflow-ring`). A [`Stream`] is one live source with
//! all its receivers: the driver gives it packets and requests by its `handle_…` methods, then
//! calls [`Stream::poll`] until it answers [`Output::Wait`], which [`drive`] does for it. What is to be sent comes out as
//! [`Order`]s, "these packets to these sinks", which the driver carries out as it sees fit; it
//! reports what did not go.

pub mod control;
mod drive;
pub mod feedback;
pub mod limits;
pub mod requests;
pub mod save;
pub mod schedule;
mod selection;
pub mod send;

pub use control::{Event, Handed, LevelBounds, Output, Stream, StreamOptions, Wake};
pub use drive::{Driven, Driver, drive};
pub use feedback::Feedback;
pub use outflow_ring::WhenFull;
pub use schedule::{
    BranchId, Encapsulation, LinkClaim, LinkId, Priority, Room, Share, SinkKey, SinkSpec, Timing, Transport,
    Wish,
};
pub use selection::Selection;
pub use send::{Order, Recipients, Report};
