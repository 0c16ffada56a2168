//! The partial-order transport on real sockets: what its core, which does no I/O, is driven by.
//!
//! [`outflow_udp`] sends and receives datagrams in batches, with their ECN marks. [`noise`] encrypts connections, by a
//! shared secret or by the server's public key. [`media`] is how relays and players carry streams.
#![allow(clippy::disallowed_methods, reason = "a driver owns clock, sockets and randomness")]

pub mod blocking;
mod detached;
mod driver;
pub mod limits;
pub mod media;
pub mod noise;
mod options;
pub mod save;
mod socket;

pub use detached::{Detached, NetworkPath};
pub use options::{Options, Security};
pub use outflow_poc::address::{Address, AddressError};
pub use socket::{Asking, OpenError, PocListener, PocSocket, Statistics, look_up};
