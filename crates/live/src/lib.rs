//! The core on real sockets.
//!
//! [`Relay::start`] makes workers (threads that own streams, see [`worker`]), the control plane
//! that talks to them (see [`control`]), and what the configuration names: streams, sources,
//! receivers, the RTSP and HTTP servers. Packets never pass through the control plane.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "this crate owns time, threads and I/O"
)]

mod clock;
mod context;
pub mod control;
mod external;
pub mod http;
pub mod limits;
mod message;
mod multicast;
mod poc;
mod processors;
mod receive;
mod relay;
mod routes;
mod rtsp;
mod rules;
mod send;
mod services;
mod source;
mod supervise;
mod system;
pub mod tree;
mod worker;

pub use relay::{Relay, load};
