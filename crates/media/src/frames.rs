//! From the units of access units to frames: their numbers, kinds, layers and needs.
//!
//! The readers of transport streams and of RTP tell [`Frames`] when a new access unit begins and
//! which units they see in it. The rules, for all codecs:
//!
//! - A frame needs the last reference frame before it in decoding order, of its own temporal
//!   layer or a lower one. That is its direct need; the chain leads back to the key frame.
//! - A *key* frame needs nothing. It is closed (IDR and BLA pictures, an MPEG intra picture in a
//!   closed group) or open (CRA pictures, other MPEG intra pictures, H.264 intra pictures in an
//!   access unit with parameter sets, and any picture with a recovery point).
//! - *Leading* frames, which are decoded after an open key frame and shown before it, need the
//!   last reference before that key frame too, and frames behind them do not need them. H.265
//!   names them in its unit type. Otherwise they are told by their presentation time, and where
//!   that is not known they are the bidirectional frames between the key frame and the next
//!   frame that is predicted forward.
//! - An intra frame that is not key needs the intra frame before it, so that a receiver of nothing but
//!   intra frames can decode it. Those behind it may refer past it: the next one needs both it and
//!   the last reference before it.
//! - In H.265, a non-reference frame of a layer below the highest one may still be referred to
//!   from higher layers, and counts as a reference.
//!
//! The quality layers that come of this are those of [`Tag::layer`](crate::Tag::layer). In H.264, B
//! frames that are references are of the same layer as P frames: later P frames refer to them, and
//! without them `frame_num` has gaps, which decoders take for losses. Temporal layers of its scalable
//! extension (annex F) are followed for the needs, and make no further layers.

mod references;

pub use references::{References, TEMPORAL_LAYERS};

use crate::codec::{Entry, Leading, Prediction, Slice, Switch, Unit};
use crate::{Kind, Needs};

/// Layers of codecs whose slices name no sub-layer: intra, other references, no references.
const LAYERS_BY_KIND: u8 = 3;

/// What is known of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// Its number within its track.
    pub number: u32,
    /// Its kind; [`Kind::Header`] as long as no slice of it was seen.
    pub kind: Kind,
    /// Decoding can start here.
    pub key: bool,
    /// Its quality layer, as in [`Tag::layer`](crate::Tag::layer).
    pub layer: u8,
    /// How many layers there are, as far as is known; 0 before there was a frame.
    pub layers: u8,
    /// Its layer can be taken from here on, as in [`Tag::opens`](crate::Tag::opens).
    pub opens: bool,
    /// The frames it needs; nothing as long as no slice of it was seen.
    pub needs: Needs,
}

/// What was seen of the current access unit.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    /// What the slices of its first picture said; later pictures are second fields.
    slice: Option<Slice>,
    pictures: u8,
    layer: Option<u8>,
    parameters: bool,
    recovery: bool,
    closed_group: bool,
    time: Option<u32>,
}

/// The newest key frame, as far as leading frames are concerned.
#[derive(Debug, Clone, Copy)]
struct OpenKey {
    number: u32,
    /// The last references in front of it.
    before: References,
    time: Option<u32>,
    /// A forward predicted frame came behind it.
    passed: bool,
}

/// Numbers the frames of one track and works out what they need.
#[derive(Debug, Clone, Default)]
pub struct Frames {
    number: u32,
    seen: Seen,
    /// The last references since the newest key frame.
    references: References,
    /// The last leading references behind the newest key frame: decodable, skipped.
    leading: [References; 2],
    open: Option<OpenKey>,
    /// Temporal sub-layers, as far as was announced or seen.
    sub_layers: u8,
    are_announced: bool,
    layers: u8,
    /// The lowest sub-layer that was opened by itself since all of it could be taken: a taker from there
    /// lacks earlier frames of it, which those of higher sub-layers may refer to.
    opened_alone: Option<u8>,
}

impl Frames {
    /// Before the first access unit. What is seen before [`begin`](Self::begin) is frame 0.
    pub fn new() -> Self {
        Frames::default()
    }

    /// How many layers and temporal sub-layers were seen, and whether the latter were announced.
    pub fn shown(&self) -> (u8, u8, bool) {
        (self.layers, self.sub_layers, self.are_announced)
    }

    /// Frames before the first one have shown at least these.
    pub fn show(&mut self, (layers, sub_layers, are_announced): (u8, u8, bool)) {
        self.layers = self.layers.max(layers.min(TEMPORAL_LAYERS as u8 + 2));
        self.sub_layers = self.sub_layers.max(sub_layers.min(TEMPORAL_LAYERS as u8));
        self.are_announced |= are_announced;
    }

    /// A new access unit begins. `time` is its presentation time in ticks of any clock, the low
    /// 32 bits of it, wrapping: an RTP timestamp, or a PTS.
    pub fn begin(&mut self, time: Option<u32>) {
        self.finish();
        self.number = self.number.wrapping_add(1);
        self.seen = Seen { time, ..Seen::default() };
    }

    /// A unit of the current access unit was seen, whole or in part. The same one may be told
    /// again, as with each of its fragments.
    pub fn unit(&mut self, unit: Unit) {
        match unit {
            Unit::Parameters { sub_layers } => {
                self.seen.parameters = true;
                if sub_layers > 0 {
                    self.are_announced = true;
                    self.has_sub_layers(sub_layers);
                }
            }
            Unit::Sei { recovery } => self.seen.recovery |= recovery,
            Unit::Group { closed } => self.seen.closed_group = closed,
            Unit::Layer(layer) => self.seen.layer = Some(layer),
            Unit::Slice(slice) => self.slice(slice),
            Unit::Delimiter | Unit::Other => {}
        }
    }

    /// Whether `unit` can only belong to the access unit behind the current one: for streams that
    /// do not mark access units otherwise. A second field counts as an access unit then
    /// (ITU-T H.264 section 7.4.1.2.3, H.265 section 7.4.2.4.4).
    pub fn ends_before(&self, unit: Unit) -> bool {
        self.seen.slice.is_some()
            && match unit {
                Unit::Slice(slice) => slice.starts_picture,
                Unit::Delimiter
                | Unit::Parameters { .. }
                | Unit::Group { .. }
                | Unit::Sei { .. }
                | Unit::Layer(_) => true,
                Unit::Other => false,
            }
    }

    /// Whether a slice of the current access unit was seen, so that its kind and needs are known.
    pub fn is_known(&self) -> bool {
        self.seen.slice.is_some()
    }

    /// The number of the current frame.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// What is known of the current frame.
    pub fn current(&self) -> Frame {
        let mut frame = Frame {
            number: self.number,
            kind: Kind::Header,
            key: false,
            layer: 0,
            layers: self.layers,
            opens: false,
            needs: Needs::NOTHING,
        };
        let Some(slice) = self.seen.slice else { return frame };
        frame.kind = match slice.prediction {
            Prediction::Intra => Kind::Intra,
            _ if self.is_reference(&slice) => Kind::Predicted,
            _ => Kind::Bidirectional,
        };
        frame.layer = self.layer(&slice, frame.kind);
        let entry = self.entry(&slice);
        frame.key = entry > Entry::No;
        frame.opens = entry == Entry::Closed || (!frame.key && self.opens(&slice, frame.kind));
        if !frame.key {
            frame.needs = self.needs(&slice);
        }
        frame
    }

    fn slice(&mut self, slice: Slice) {
        match slice.sub_layer {
            Some(sub_layer) => self.has_sub_layers(sub_layer + 1),
            None => self.layers = self.layers.max(LAYERS_BY_KIND),
        }
        if slice.starts_picture {
            self.seen.pictures = self.seen.pictures.saturating_add(1);
        }
        match &mut self.seen.slice {
            None => self.seen.slice = Some(slice),
            Some(known) => {
                known.reference |= slice.reference;
                if self.seen.pictures < 2 {
                    known.prediction = merged(known.prediction, slice.prediction);
                    known.entry = known.entry.max(slice.entry);
                }
            }
        }
    }

    /// At least `sub_layers` temporal sub-layers exist: a layer each, one of entry points, and one of what
    /// nothing refers to.
    fn has_sub_layers(&mut self, sub_layers: u8) {
        self.sub_layers = self.sub_layers.max(sub_layers);
        self.layers = self.layers.max(self.sub_layers + 2);
    }

    fn layer(&self, slice: &Slice, kind: Kind) -> u8 {
        match (kind, slice.sub_layer) {
            (Kind::Bidirectional, _) => self.layers - 1,
            (Kind::Predicted, Some(sub_layer)) => sub_layer + 1,
            (Kind::Predicted, None) => 1,
            _ => 0,
        }
    }

    /// Whether the layer of a frame that is no key frame can be taken from there on.
    fn opens(&self, slice: &Slice, kind: Kind) -> bool {
        // A leading frame needs more than what came since the key frame.
        if kind == Kind::Intra || self.leading(slice) == Leading::Skipped {
            return false;
        }
        // Nothing refers to frames of the highest layer, if that is known to be the highest.
        let is_unneeded = kind == Kind::Bidirectional && (slice.sub_layer.is_none() || self.are_announced);
        let alone = is_unneeded || slice.switch != Switch::No;
        alone && self.opened_alone.is_none_or(|opened| opened >= self.temporal(slice))
    }

    fn temporal(&self, slice: &Slice) -> u8 {
        let layer = self.seen.layer.or(slice.sub_layer).unwrap_or(0);
        layer.min(TEMPORAL_LAYERS as u8 - 1)
    }

    fn is_reference(&self, slice: &Slice) -> bool {
        slice.reference || slice.sub_layer.is_some_and(|sub_layer| sub_layer + 1 < self.sub_layers)
    }

    fn entry(&self, slice: &Slice) -> Entry {
        let marked = slice.prediction == Prediction::Intra && self.seen.parameters;
        match slice.entry {
            Entry::Open if self.seen.closed_group => Entry::Closed,
            Entry::No if marked || self.seen.recovery => Entry::Open,
            entry => entry,
        }
    }

    fn leading(&self, slice: &Slice) -> Leading {
        if let Some(leading) = slice.leading {
            return leading;
        }
        let Some(open) = self.open else { return Leading::No };
        let before = match (self.seen.time, open.time) {
            (Some(time), Some(key)) => time.wrapping_sub(key).cast_signed() < 0,
            _ => slice.prediction == Prediction::Both && !open.passed,
        };
        if before { Leading::Skipped } else { Leading::No }
    }

    fn needs(&self, slice: &Slice) -> Needs {
        if slice.prediction == Prediction::Intra {
            return self.references.of_intra(self.number);
        }
        let temporal = self.temporal(slice);
        let [decodable, skipped] = &self.leading;
        let with =
            |leading: &References| self.references.newer(leading, self.number).of(self.number, temporal);
        match self.leading(slice) {
            Leading::No => self.references.of(self.number, temporal),
            Leading::Decodable => with(decodable),
            Leading::Skipped => with(skipped).and(self.needs_before_key(temporal)),
        }
    }

    /// What a leading frame needs of what was in front of the open key frame.
    fn needs_before_key(&self, temporal: u8) -> Needs {
        let Some(open) = &self.open else { return Needs::NOTHING };
        let before = open.before.of(self.number, temporal);
        // What was in front of the first frame is not there, and cannot be decoded.
        let missing = || Needs::reaching(self.number.wrapping_sub(open.number) + 1);
        if before.is_nothing() { missing() } else { before }
    }

    /// Enters the frame that ends among those that others may need.
    fn finish(&mut self) {
        let Some(slice) = self.seen.slice else { return };
        let leading = match self.entry(&slice) {
            Entry::No => self.leading(&slice),
            entry => {
                self.finish_key(entry);
                Leading::No
            }
        };
        if leading == Leading::No
            && slice.prediction == Prediction::Forward
            && let Some(open) = &mut self.open
        {
            open.passed = true;
        }
        self.finish_switch(&slice);
        if self.is_reference(&slice) {
            let temporal = (slice.prediction != Prediction::Intra).then_some(self.temporal(&slice));
            match leading {
                Leading::No => self.references.enter(self.number, temporal),
                Leading::Decodable => self.leading[0].enter(self.number, temporal),
                Leading::Skipped => self.leading[1].enter(self.number, temporal),
            }
        }
    }

    fn finish_key(&mut self, entry: Entry) {
        let before = self.references;
        let (number, time) = (self.number, self.seen.time);
        self.open = (entry == Entry::Open).then_some(OpenKey { number, before, time, passed: false });
        self.references = References::default();
        self.leading = [References::default(); 2];
        self.opened_alone = None;
    }

    fn finish_switch(&mut self, slice: &Slice) {
        let temporal = self.temporal(slice);
        match slice.switch {
            Switch::No => {}
            Switch::Own => {
                let lowest = self.opened_alone.map_or(temporal, |opened| opened.min(temporal));
                self.opened_alone = Some(lowest);
            }
            // What comes behind refers to nothing of these sub-layers that was before it.
            Switch::Above => self.opened_alone = self.opened_alone.filter(|opened| *opened < temporal),
        }
    }
}

/// What two slices of one picture make of it.
fn merged(a: Prediction, b: Prediction) -> Prediction {
    match (a, b) {
        (known, Prediction::Unknown) | (Prediction::Unknown, known) => known,
        (Prediction::Both, _) | (_, Prediction::Both) => Prediction::Both,
        (Prediction::Forward, _) | (_, Prediction::Forward) => Prediction::Forward,
        (Prediction::Intra, Prediction::Intra) => Prediction::Intra,
    }
}

#[cfg(test)]
mod levels;
#[cfg(test)]
mod tests;
