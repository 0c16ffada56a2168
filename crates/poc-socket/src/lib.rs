//! The partial-order transport on real sockets: what its core, which does no I/O, is driven by.
//!
//! [`udp`] sends and receives datagrams in batches, with their ECN marks. [`noise`] encrypts connections, by a
//! shared secret or by the server's public key.
#![allow(clippy::disallowed_methods, reason = "a driver owns clock, sockets and randomness")]

mod address;
pub mod blocking;
mod driver;
pub mod limits;
pub mod noise;
mod options;
mod socket;
pub mod udp;

pub use address::{Address, AddressError};
pub use options::{Options, Security};
pub use socket::{Asking, OpenError, PocListener, PocSocket, Statistics};
