//! Receivers that measure: thousands of them in one thread.

mod crowd;
mod meter;
mod open;
mod rtsp;
mod stamped;
mod wire;

pub use crowd::{Crowd, Period};
pub use meter::Meter;
pub use open::{How, Receiver, Target};
