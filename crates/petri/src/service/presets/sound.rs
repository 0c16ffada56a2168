//! Sound, alone and with pictures.

use core::time::Duration;

use super::datagrams::chain;
use super::draft::{Draft, ROUNDS};
use super::{BUFFER_BYTES, live, uniform};
use crate::limits::PLACES_MAX;
use crate::net::{Name, NetError};
use crate::service::{Class, Flow, ServiceClass};

/// Frames of a period: with all rounds of the window, 10 s of 20 ms each.
const FRAMES: u32 = 16;

/// Bytes that a receiver keeps of sound: 10 s of 800 kbit/s.
const SOUND_BYTES: u32 = 1 << 20;

/// Frames of sound, one unit each, one every `frame`. They come out in order; `latency` after a later one
/// came, at most, a missing one is a gap, and sent again as long as it is not.
///
/// `latency` is at most 32 periods of 16 frames, a longer one is lowered to that.
pub fn audio(frame: Duration, latency: Duration) -> Result<Flow, NetError> {
    let (frame, latency) = live(frame, latency, FRAMES);
    let net = chain((FRAMES, ROUNDS), Some(0), Some(latency), frame)?;
    let class = ServiceClass { repair: Class::Partial, validity: Some(latency) };
    Ok(Flow { period: Some(frame * FRAMES), ..uniform(net, class, ROUNDS, SOUND_BYTES) })
}

/// Pictures of `slices` units each, one every `frame`, and in front of each the unit of the sound that belongs
/// to it. Neither runs ahead of the other by more than `skew`; `latency` after something of a picture or its
/// sound came, at most, what is missing of both is gone without. `latency` is at most 32 pictures, a longer one
/// is lowered to that, and `skew` less than that.
///
/// Sound and pictures are a transition each, completed by all that belongs to one, and until its clock runs out
/// (`and-master`). Places lead from either to the other, with a token for each picture that one may be ahead:
/// so what is missing of one holds up the other only when it is `skew` behind, and no longer than `latency`.
pub fn av_sync(frame: Duration, slices: u32, skew: Duration, latency: Duration) -> Result<Flow, NetError> {
    let (frame, latency) = live(frame, latency, 1);
    let ahead = skew.as_micros() / frame.as_micros();
    let tokens = 1 + u32::try_from(ahead).unwrap_or(u32::MAX).min(ROUNDS - 1);
    let mut draft = Draft::new(frame, ROUNDS);
    let [sound, picture] = ["sound", "picture"].map(|name| draft.transition(name, Some(latency)));
    draft.object(Name::new("sound"), picture, sound, tokens);
    let slice = Name::new("slice");
    (0..slices.clamp(1, PLACES_MAX as u32))
        .for_each(|i| draft.object(slice.numbered(i), sound, picture, tokens));
    let class = |repair| ServiceClass { repair, validity: Some(latency) };
    let flow = uniform(draft.build()?, class(Class::Reliable), ROUNDS, BUFFER_BYTES);
    let class_of = (0..flow.class_of.len()).map(|object| u8::from(object > 0)).collect();
    let classes = vec![class(Class::Reliable), class(Class::Partial)];
    Ok(Flow { classes, class_of, period: Some(frame), ..flow })
}

#[cfg(test)]
mod tests;
