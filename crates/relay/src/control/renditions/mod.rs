//! Renditions: several sources that carry the same in different quality (simulcast). Each is a stream of its
//! own, with an owner, where its packets are received and parsed; the stream that has it as a rendition is
//! handed them, as a replica is.
//!
//! Each rendition has a branch, and is a level: 1 is the first. All that is told of a receiver's RTP session
//! (SSRC, payload type, timestamps) is the same in all of them, so that a receiver goes from one to another
//! between two pictures, at a key frame: see [`hop`]. Sound, and whatever else there is beside the main
//! track, is that of one rendition, the *reference*: the first that had a format.

mod fit;
mod hop;
mod intake;
mod rendition;
mod simulcast;
mod switch;
#[cfg(test)]
mod tests;
mod wanted;

pub(in crate::control) use rendition::Renditions;
pub(in crate::control) use simulcast::Simulcast;
pub(in crate::control) use switch::Pushed;
pub(in crate::control) use wanted::{awaited_key_frames, origin_of};
