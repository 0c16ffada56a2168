//! Steps that make packets of their own for a branch.
//!
//! A branch without such a step carries the stream's packets as they are. The one there is today
//! turns RTP tracks into a transport stream, for receivers that want that.

mod remux;

pub use remux::Remux;
