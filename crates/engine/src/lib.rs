//! The core on real sockets: threads that own streams ([`WorkerHandle`]), what is received and sent
//! there. It knows streams, sinks and packets, and
//! none of the protocols by which peers ask for them.
//!
//! What control and the workers say to each other are the values of [`message`].

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "this crate owns time, threads and I/O"
)]

mod bell;
mod calls;
mod clock;
pub mod limits;
pub mod message;
mod processors;
mod receive;

mod send;
pub mod system;
mod worker;

pub use calls::Caller;
pub use clock::Clock;
pub use processors::Processors;
pub use receive::{PortPair, bind_pair, bind_source};
pub use send::{PacketHead, Packets, Recent, Worth, open_push};
pub use worker::{OwnerEnd, ReplicaEnd, StartingWorker, Upward, WorkerHandle};
