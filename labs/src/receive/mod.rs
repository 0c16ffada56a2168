//! Receivers that measure: thousands of them in one thread.

mod crowd;
mod flood;
mod meter;
mod numbered;
mod open;
mod poc;
mod rtsp;
mod stamped;
mod webrtc;
mod wire;

pub use crowd::{Crowd, Period};
pub use flood::{Connection, Flood, Records};
pub use meter::Meter;
pub use numbered::{Account, Arrived, Numbered};
pub use open::{How, Receiver, Target};
pub(crate) use open::{allow_many_files, pair_of_ports};
pub use poc::PocCrowd;
pub(crate) use rtsp::Client;
pub use stamped::Stamped;
pub(crate) use webrtc::{Opened, Told, Viewer, description};
