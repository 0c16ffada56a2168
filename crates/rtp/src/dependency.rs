//! The dependency descriptor: what a frame is and needs, in a header extension (AV1 RTP specification,
//! appendix A).
//!
//! The first packet of a coded video sequence carries a [`Structure`] with templates; a [`Descriptor`]
//! names one of them, and says what is otherwise with its frame. Frames are those of one spatial layer:
//! a temporal unit with three spatial layers has three frames with a number each.

mod read;
mod write;

use arrayvec::ArrayVec;

/// Spatial layers that AV1 has room for.
pub const SPATIAL_LAYERS_MAX: u8 = 4;
/// Temporal layers that AV1 has room for.
pub const TEMPORAL_LAYERS_MAX: u8 = 8;
/// Templates, as many as there are numbers for them.
pub const TEMPLATES_MAX: usize = 64;
/// Decode targets, at most.
pub const TARGETS_MAX: usize = 32;
/// Frames that one refers to, at most; AV1 itself has eight places for them. One with more is malformed.
pub const REFERENCES_MAX: usize = 16;

/// What a frame is for a decode target (section A.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Indication {
    /// It does not belong to it.
    #[default]
    NotPresent,
    /// No other frame of the target refers to it.
    Discardable,
    /// A receiver that can decode it can decode all of the target from here on.
    Switch,
    /// Others may refer to it.
    Required,
}

/// What a frame is and needs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Frame {
    /// Spatial layer, 0 to 3.
    pub spatial: u8,
    /// Temporal layer, 0 to 7.
    pub temporal: u8,
    /// What it is for each decode target.
    pub indications: ArrayVec<Indication, TARGETS_MAX>,
    /// By how much the numbers of the frames that it refers to are smaller: 1 to 4096, in a template 16.
    pub references: ArrayVec<u16, REFERENCES_MAX>,
    /// The same of the last frame of each chain; 0 if the chain begins here. In a template, 15 at most.
    pub chains: ArrayVec<u8, TARGETS_MAX>,
}

/// What is common to the frames of a coded video sequence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Structure {
    /// The number of the first template; 6 bits.
    pub first_template: u8,
    /// Decode targets, 1 to 32.
    pub targets: u8,
    /// What protects each target: the number of its chain. Empty if there are no chains.
    pub protected_by: ArrayVec<u8, TARGETS_MAX>,
    /// Chains, at most as many as targets.
    pub chains: u8,
    /// The templates, by spatial and then by temporal layer; at least one, at most 64.
    pub templates: Vec<Frame>,
    /// Width and height of each spatial layer, in pixels from 1 on; empty if it is not said.
    pub resolutions: ArrayVec<(u32, u32), { SPATIAL_LAYERS_MAX as usize }>,
}

/// What a packet says of its frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Descriptor {
    /// The packet is the first of its frame.
    pub first: bool,
    /// The packet is the last of its frame.
    pub last: bool,
    /// Number of the template; 6 bits.
    pub template: u8,
    /// Number of the frame, wrapping.
    pub number: u16,
    /// A structure that counts from here on.
    pub structure: Option<Box<Structure>>,
    /// A bit for each decode target that is still sent, if that is said.
    pub active_targets: Option<u32>,
    /// What the frame is: as its template, or as said otherwise.
    pub frame: Frame,
}

impl Structure {
    /// The template of this number.
    pub fn template(&self, number: u8) -> Option<&Frame> {
        let index = number.wrapping_sub(self.first_template) & 63;
        self.templates.get(usize::from(index))
    }

    /// The highest spatial and temporal layers of a decode target.
    pub fn layers_of(&self, target: usize) -> (u8, u8) {
        let present = self.templates.iter().filter(|template| {
            template.indications.get(target).is_some_and(|is| *is != Indication::NotPresent)
        });
        present.fold((0, 0), |(s, t), template| (s.max(template.spatial), t.max(template.temporal)))
    }

    /// How many spatial and temporal layers there are.
    pub fn layers(&self) -> (u8, u8) {
        let layers = self.templates.iter().map(|template| (template.spatial, template.temporal));
        let (spatial, temporal) = layers.fold((0, 0), |(s, t), (a, b)| (a.max(s), b.max(t)));
        (spatial + 1, temporal + 1)
    }
}

#[cfg(test)]
mod tests;
