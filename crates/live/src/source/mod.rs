//! Configured sources: what brings packets in without being pushed.

mod demo;
mod pull;

pub(crate) use demo::play_clip;
pub(crate) use pull::{Backoff, Failure, hand_on, pull};
