//! Sound that browsers do not have into sound that they have.
//!
//! Browsers play Opus by WebRTC, and no AAC and no MPEG audio. [`ToOpus`] takes the frames of such a track and gives
//! packets of Opus on the same timeline, so that lips stay with what they say: each packet has the time at which what
//! is decoded from it is heard, with the delay of the coder, and that of the filter between different sampling
//! frequencies, taken off. What is done in between is left to libraries; here is where each sample belongs.
//!
//! There is no I/O here, no clock, no thread and no lock. Nothing allocates per frame but the library that decodes
//! AAC; packets are cut from blocks. What a frame can cost is bounded by [`limits`].

mod coding;
mod decode;
mod encode;
pub mod limits;
mod mix;
mod resample;
#[cfg(test)]
mod tests;
mod timeline;
mod to_opus;

pub use coding::{Coding, Unsupported};
pub use to_opus::{Counts, ToOpus};
