//! Packets from sockets.

mod bind;
mod datagrams;

pub use bind::{PortPair, bind_pair, bind_source};
pub(crate) use bind::{bind_pair_at, bind_pair_beside};
pub(crate) use datagrams::{Arena, Receiver};
