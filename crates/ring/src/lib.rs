//! Where packets wait: the ring of a branch, bounded in bytes, and what becomes of those for which it has no room.

pub mod limits;
mod policy;
mod ring;

pub use policy::{Verdict, WhenFull};
pub use ring::{Entry, Ring, Seq};
