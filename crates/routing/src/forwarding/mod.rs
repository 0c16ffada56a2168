//! What a multicast router does to a packet that it forwards, whatever brings packets in and takes them out.
//!
//! [`Head::parse`] checks a packet and says of which [`Pair`] it is, [`Head::lower_ttl`] makes it one that has gone a
//! hop farther, and [`thin`] says for each way down whether it goes there, and as what. Packets are of IPv4 or IPv6,
//! and begin with that header. Bytes behind a packet's end, as of Ethernet's padding, may follow.
//!
//! This crate is built for size. What is done for each packet is `inline` or generic, so that it is built as the crate
//! that forwards is.

pub mod fields;
mod head;
mod pair;
#[cfg(test)]
mod testing;
mod thinning;
mod udp;

pub use head::{Head, Unfit};
pub use pair::Pair;
pub use thinning::{Output, thin};
pub use udp::{datagram, renumber};
