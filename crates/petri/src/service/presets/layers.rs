//! Images in layers, and files of parts.

use core::time::Duration;

use super::draft::{Draft, ROUNDS};
use super::{BUFFER_BYTES, live, uniform, whole};
use crate::limits::{CLASSES_MAX, PLACES_MAX};
use crate::net::{Name, NetError};
use crate::service::{Class, Flow, ServiceClass};

/// Images whose layers may still come while later ones begin.
const OVERLAP: u32 = 4;

/// Layers of an image at most, as many as there can be classes; a wish for more is lowered to that.
const LAYERS_MAX: u32 = CLASSES_MAX as u32;

/// Rounds that a receiver keeps of what is reliable, and as large as it likes.
const PARTS_ROUNDS: u32 = 4;

/// Images in quality layers, one unit each, an image every `frame`: JPEG 2000, say. A layer improves what
/// the layers below it make, so it is delivered behind them, and is waited for no longer than they are.
///
/// The lowest layer is reliable and waited for up to `latency`; the higher a layer, the shorter (the highest
/// of four, a quarter of that), and the highest is sent once. The lowest layers of images come in order; they
/// wait for no higher ones, unless those are four images behind. `latency` is at most 32 images,
/// a longer one is lowered to that.
pub fn j2k_layers(layers: u32, frame: Duration, latency: Duration) -> Result<Flow, NetError> {
    let layers = layers.clamp(1, LAYERS_MAX);
    let (frame, latency) = live(frame, latency, 1);
    let wait = |layer: u32| whole(latency * (layers - layer) / layers);
    let mut draft = Draft::new(frame, ROUNDS);
    let name = Name::new("layer");
    let ids: Vec<_> =
        (0..layers).map(|layer| draft.transition(name.numbered(layer), Some(wait(layer)))).collect();
    let last = ids[ids.len() - 1];
    draft.object(name.numbered(0), last, ids[0], OVERLAP);
    for (pair, layer) in ids.windows(2).zip(1..) {
        draft.object(name.numbered(layer), pair[0], pair[1], 0);
    }
    let class = |layer: u32| {
        let repair = match layer {
            0 => Class::Reliable,
            _ if layer + 1 == layers => Class::Unreliable,
            _ => Class::Partial,
        };
        ServiceClass { repair, validity: Some(wait(layer)) }
    };
    let flow = uniform(draft.build()?, class(0), ROUNDS, BUFFER_BYTES);
    let (classes, class_of) = ((0..layers).map(class).collect(), (0..layers as u8).collect());
    Ok(Flow { classes, class_of, period: Some(frame), is_dependent: true, ..flow })
}

/// A page in parts: its text, and `others` others, pictures say, one unit each. The text is delivered first,
/// the others behind it as they come, the next page when all of this one is there. Everything is reliable
/// and waited for without end.
pub fn parts(others: u32) -> Result<Flow, NetError> {
    let mut draft = Draft::new(Duration::ZERO, PARTS_ROUNDS);
    let (text, page) = (draft.transition("text", None), draft.transition("page", None));
    draft.object(Name::new("text"), page, text, 1);
    let part = Name::new("part");
    (0..others.min(PLACES_MAX as u32)).for_each(|i| draft.object(part.numbered(i), text, page, 0));
    if others == 0 {
        draft.order(part, text, page, 0);
    }
    let class = ServiceClass { repair: Class::Reliable, validity: None };
    Ok(uniform(draft.build()?, class, PARTS_ROUNDS, BUFFER_BYTES))
}

#[cfg(test)]
mod tests;
