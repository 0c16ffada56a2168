//! Where packets wait: the session ring.

mod policy;
mod ring;

pub use policy::{Verdict, WhenFull};
pub use ring::{Entry, Ring, Seq};
