//! Which frame refers to which: full scalability as libwebrtc has it (L1T3, L3T3), but for pictures now and
//! then whose higher spatial layers refer to nothing but the one below, so that they can be taken from there.

/// Pictures from one key picture to the next.
const KEYS_EVERY: usize = 64;
/// The same for those from which on higher spatial layers can be taken.
const SYNCS_EVERY: usize = 16;

/// How large pictures are, and how much they are coded and sent with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Width and height of the highest spatial layer.
    pub size: (usize, usize),
    /// Kilobits a second of each spatial layer.
    pub kbps: [u32; 3],
    /// Bytes of a packet, at most.
    pub packet_bytes: usize,
}

impl Default for Shape {
    /// Packets are small enough for frames to be of several.
    fn default() -> Self {
        Shape { size: (320, 240), kbps: [150, 400, 900], packet_bytes: 500 }
    }
}

impl Shape {
    /// Width and height of this one, of this number of spatial layers.
    pub(super) const fn size_of(&self, spatial: u8, spatial_layers: u8) -> (usize, usize) {
        let shrunk = spatial_layers - 1 - spatial;
        (self.size.0 >> shrunk, self.size.1 >> shrunk)
    }
}

/// A frame that another one refers to, and the slot of the decoder in which it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reference {
    /// The slot, 0 to 7.
    pub slot: u8,
    /// Its place among all frames.
    pub frame: usize,
}

/// A frame of one spatial layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LayerFrame {
    /// Number of its picture.
    pub picture: usize,
    /// Spatial layer, 0 to 2.
    pub spatial: u8,
    /// Temporal layer, 0 to 2.
    pub temporal: u8,
    /// Of a key picture.
    pub key: bool,
    /// Of a picture whose higher spatial layers refer to no other one; key pictures are such.
    pub syncs: bool,
    /// The frame of its own spatial layer that it refers to.
    pub own: Option<Reference>,
    /// The frame of the layer below in the same picture.
    pub below: Option<Reference>,
    /// Where it is kept.
    pub store: Option<u8>,
}

impl LayerFrame {
    /// What it refers to.
    pub fn references(&self) -> impl Iterator<Item = Reference> {
        self.own.into_iter().chain(self.below)
    }
}

/// The frames of some pictures in the order in which they are coded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Spatial layers.
    pub spatial: u8,
    /// Temporal layers.
    pub temporal: u8,
    /// How large pictures are.
    pub shape: Shape,
    /// The frames; of each picture one of each spatial layer, the lowest first.
    pub frames: Vec<LayerFrame>,
}

impl Plan {
    /// Up to three spatial and three temporal layers.
    pub fn new(spatial: u8, temporal: u8, pictures: usize) -> Self {
        let mut plan = Plan { spatial, temporal, shape: Shape::default(), frames: Vec::new() };
        let mut slots = [0; 8];
        for picture in 0..pictures {
            for spatial in 0..spatial {
                let frame = plan.frame(picture, spatial, &slots);
                let number = plan.frames.len();
                if frame.key && spatial == 0 {
                    slots = [number; 8];
                }
                if let Some(slot) = frame.store {
                    slots[usize::from(slot)] = number;
                }
                plan.frames.push(frame);
            }
        }
        plan
    }

    /// The same of another shape.
    pub fn shaped(self, shape: Shape) -> Self {
        Plan { shape, ..self }
    }

    /// Each spatial layer has a slot for its last frame of the lowest temporal layer, and one for that of the
    /// middle one. Frames of the highest are kept only for the spatial layer above.
    fn frame(&self, picture: usize, spatial: u8, slots: &[usize; 8]) -> LayerFrame {
        let pattern: &[u8] = match self.temporal {
            1 => &[0],
            2 => &[0, 1],
            _ => &[0, 2, 1, 2],
        };
        let at = picture % pattern.len();
        let temporal = pattern[at];
        let (key, syncs) = (picture.is_multiple_of(KEYS_EVERY), picture.is_multiple_of(SYNCS_EVERY));
        let slot = |temporal: u8, spatial: u8| temporal * self.spatial + spatial;
        let alone = key || syncs && spatial > 0;
        let refers_to = if self.temporal == 3 && at == 3 { 1 } else { 0 };
        let reference = |slot: u8| Reference { slot, frame: slots[usize::from(slot)] };
        let is_kept = temporal + 1 < self.temporal || temporal == 0 || spatial + 1 < self.spatial;
        LayerFrame {
            picture,
            spatial,
            temporal,
            key,
            syncs,
            own: (!alone).then(|| reference(slot(refers_to, spatial))),
            below: spatial.checked_sub(1).map(|below| reference(slot(temporal, below))),
            store: is_kept.then(|| slot(temporal, spatial)),
        }
    }

    /// How many levels there are: temporal layers of the lowest spatial one, and each higher spatial one.
    pub const fn levels(&self) -> u8 {
        self.spatial + self.temporal - 1
    }

    /// Whether a frame belongs to a level, 1 being the best.
    pub const fn is_in(&self, level: u8, frame: &LayerFrame) -> bool {
        let layer = if frame.spatial == 0 { frame.temporal } else { self.temporal - 1 + frame.spatial };
        layer <= self.levels() - level
    }

    /// The numbers of the frames of a level.
    pub fn frames_of(&self, level: u8) -> Vec<usize> {
        (0..self.frames.len()).filter(|number| self.is_in(level, &self.frames[*number])).collect()
    }

    /// As the encoders read it (`labs/svc/svc.h`).
    pub fn text(&self) -> String {
        let slot = |reference: Option<Reference>| reference.map_or(-1, |reference| i16::from(reference.slot));
        let line = |frame: &LayerFrame| {
            let (own, below) = (slot(frame.own), slot(frame.below));
            let (key, store) = (u8::from(frame.key), frame.store.map_or(-1, i16::from));
            format!("{key} {} {} {own} {below} {store}\n", frame.spatial, frame.temporal)
        };
        self.frames.iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_refers_to_a_higher_layer_and_all_fits_into_the_slots() {
        for (spatial, temporal) in [(1, 1), (1, 3), (2, 2), (3, 1), (3, 3)] {
            let plan = Plan::new(spatial, temporal, 100);
            for (number, frame) in plan.frames.iter().enumerate() {
                assert!(frame.store.is_none_or(|slot| slot < 8), "{frame:?}");
                let level = (1..=plan.levels()).rfind(|level| plan.is_in(*level, frame)).unwrap_or(0);
                for reference in frame.references() {
                    let of = &plan.frames[reference.frame];
                    assert!(reference.frame < number && plan.is_in(level, of), "{frame:?} refers to {of:?}");
                }
                assert_eq!(frame.references().count() == 0, frame.key && frame.spatial == 0, "{frame:?}");
            }
        }
    }

    #[test]
    fn levels_are_temporal_layers_and_then_spatial_ones() {
        let plan = Plan::new(3, 3, 64);
        let counts: Vec<_> = (1..=plan.levels()).map(|level| plan.frames_of(level).len()).collect();
        assert_eq!(counts, [192, 128, 64, 32, 16]);
        assert!(plan.text().starts_with("1 0 0 -1 -1 0\n1 1 0 -1 0 1\n1 2 0 -1 1 2\n0 0 2 0 -1 6\n"));
    }
}
