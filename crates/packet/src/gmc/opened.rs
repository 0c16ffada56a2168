//! Where those that take less can take all layers of a track.

use outflow_media::Tag;

use super::mark::Mark;
use crate::Openings;

/// Follows a track from its begin. All layers open where [`Openings`] says so, and where the first ones show above the
/// only one that there was: up to then no packet said anything, and so all went everywhere.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Opened {
    openings: Openings,
    shown: Shown,
}

/// What a track has shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Shown {
    #[default]
    Nothing,
    /// One layer, from a frame on at which decoding can begin.
    OneLayer,
    Layers,
}

impl Opened {
    /// What the next packet says of itself.
    pub(super) fn mark(&mut self, tag: &Tag) -> Option<Mark> {
        let opens_all = self.openings.comes(tag);
        let before = self.shown;
        self.shown = match before {
            _ if tag.layers > 1 => Shown::Layers,
            Shown::Nothing if opens_all => Shown::OneLayer,
            _ => before,
        };
        let are_first = (before, self.shown) == (Shown::OneLayer, Shown::Layers);
        Mark::of(tag, opens_all || are_first)
    }
}
