//! Packets from sockets.

mod bind;
mod datagrams;

pub(crate) use bind::{
    PortPair, bind_pair, bind_pair_at, bind_pair_beside, bind_source, set_buffer, set_int, set_option,
};
pub(crate) use datagrams::{Arena, Receiver};
