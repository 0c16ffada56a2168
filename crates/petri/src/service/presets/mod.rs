//! Flows for some media, ready to be used.
//!
//! Each is a function, and, for command lines and configurations, a [`Preset`] of a name and parameters. What
//! is wished beyond what can be is lowered to it; they fail only where a net becomes too large.
//!
//! | preset | its net says |
//! |---|---|
//! | [`datagrams`] | units one after the other, or any more than `n` apart, or in any order; what is missing holds up the rest for so long |
//! | [`few`] | a few in any order |
//! | [`mpeg`] | slices of a picture behind the pictures that it needs, and behind its header |
//! | [`audio`] | frames in order, live |
//! | [`av_sync`] | sound and pictures of an instant together |
//! | [`j2k_layers`] | each layer of an image behind the ones below |
//! | [`parts`] | a text first, the rest of its page in any order, all of it |

mod datagrams;
mod draft;
mod layers;
mod mpeg;
mod named;
mod sound;

use core::time::Duration;
use std::sync::Arc;

pub use datagrams::{Order, datagrams, few};
pub(super) use draft::Draft;
pub use layers::{j2k_layers, parts};
pub use mpeg::{Mpeg, gop, mpeg};
pub use named::{Parameter, Preset, PresetError};
pub use sound::{audio, av_sync};

use super::{Flow, ServiceClass};
use crate::limits::INTERVAL_MAX;
use crate::net::Net;

/// Bytes of units that a receiver keeps of most presets: 130 ms of 2 Gbit/s.
pub const BUFFER_BYTES: u32 = 32 << 20;

const US: Duration = Duration::from_micros(1);

/// A flow of objects that are all of one class, from no live source.
pub(super) fn uniform(net: Net, class: ServiceClass, rounds: u32, buffer_bytes: u32) -> Flow {
    let class_of = vec![0; net.objects()];
    let (net, classes) = (Arc::new(net), vec![class]);
    Flow { net, classes, class_of, rounds, buffer_bytes, period: None, is_dependent: false }
}

/// In whole microseconds, and no longer than times may be.
pub(super) fn whole(time: Duration) -> Duration {
    let time = time.min(INTERVAL_MAX);
    time - Duration::from_nanos(u64::from(time.subsec_nanos() % 1000))
}

/// The time of one of `frames` of a period, and a latency that a receiver can keep up with.
fn live(frame: Duration, latency: Duration, frames: u32) -> (Duration, Duration) {
    let frame = whole(frame.min(INTERVAL_MAX / frames)).max(US);
    (frame, whole(latency).min(frame * frames * draft::ROUNDS))
}

#[cfg(test)]
mod play;
