//! The line between a process and the one that goes on with what it did: messages of a value and of descriptors.
//!
//! Calls wait, for a time that is stated: they are for threads that may. What a value means is not known here.

#![allow(clippy::disallowed_methods, reason = "a driver owns sockets and clock")]

mod error;
pub mod limits;
mod line;
mod memfd;
#[cfg(test)]
mod tests;

pub use error::LineError;
pub use line::{Line, Message};
