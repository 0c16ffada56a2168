//! Where all layers of a track can be taken.

use outflow_media::{Kind, Tag};

/// Follows a track's key frames: a receiver that took fewer layers can take all from some packets on.
#[derive(Debug, Clone, Copy, Default)]
pub struct Openings {
    /// The frame of the newest key, if that is of an open group and only frames that reach past it came since.
    open_key: Option<u32>,
}

impl Openings {
    /// Whether all layers can be taken from this packet of the track on, which is about to come: it shows that its
    /// frame is a key frame of a closed group, or it is the first of a frame behind one of an open group that does
    /// not need what was before that.
    pub fn opens_all(&self, tag: &Tag) -> bool {
        let is_behind = self.open_key.is_some_and(|key| {
            let since = tag.frame.wrapping_sub(key);
            // What a frame needs is known with its first slice; what comes before that is for all.
            since > 0 && tag.kind != Kind::Header && tag.needs.distances().all(|back| back <= since)
        });
        is_behind || (tag.key && tag.opens)
    }

    /// A packet comes. Returns [`Openings::opens_all`] of it.
    pub fn comes(&mut self, tag: &Tag) -> bool {
        let opens_all = self.opens_all(tag);
        if tag.key {
            self.key(tag);
        } else if opens_all {
            self.open_key = None;
        }
        opens_all
    }

    /// All layers were opened by what is no key frame.
    pub fn opened(&mut self) {
        self.open_key = None;
    }

    /// A packet makes known that its frame is a key frame.
    pub fn key(&mut self, tag: &Tag) {
        self.open_key = (!tag.opens).then_some(tag.frame);
    }

    /// Packets of this frame were left out: nothing begins with it.
    pub fn torn(&mut self, tag: &Tag) {
        self.open_key = self.open_key.filter(|key| *key != tag.frame);
    }
}
