//! Receivers that measure: thousands of them in one thread.

mod crowd;
mod flood;
mod meter;
mod open;
mod rtsp;
mod stamped;
mod wire;

pub use crowd::{Crowd, Period};
pub use flood::{Connection, Flood, Records};
pub use meter::Meter;
pub(crate) use open::allow_many_files;
pub use open::{How, Receiver, Target};
