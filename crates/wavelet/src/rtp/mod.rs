//! Wavelet video in RTP: codestreams by RFC 5371, their layers as priorities by RFC 5372.

mod assemble;
mod describe;
mod marker;
mod packetize;
#[cfg(test)]
mod tests;
mod timeline;

pub use assemble::{Assembled, Assembler, Counts};
pub use describe::{CLOCK_RATE, PAYLOAD_TYPE, description, track};
pub use marker::Marker;
pub use packetize::{PACKET_BYTES, Packetizer, TooLong};
pub use timeline::Timeline;
