//! The partial-order transport on real sockets: what its core, which does no I/O, is driven by.
//!
//! [`udp`] sends and receives datagrams in batches, with their ECN marks. [`noise`] encrypts connections, by a
//! shared secret or by the server's public key.
#![allow(clippy::disallowed_methods, reason = "a driver owns clock, sockets and randomness")]

pub mod limits;
pub mod noise;
pub mod udp;
