//! Configured sources: what brings packets in without being pushed.

mod demo;
mod rtsp_pull;

pub(crate) use demo::play_clip;
pub(crate) use rtsp_pull::pull;
