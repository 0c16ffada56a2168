//! From the units of access units to frames: their numbers, kinds and needs.
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
//! - An intra frame that is not key is taken to need the reference before it, because those
//!   behind it may refer past it.
//! - In H.265, a non-reference frame of a layer below the highest one seen may still be referred
//!   to from higher layers, and counts as a reference.

use crate::codec::{Entry, Leading, Prediction, Slice, Unit};
use crate::{Kind, Needs};

/// Temporal layers that H.264 and H.265 have room for.
const LAYERS: usize = 8;

/// What is known of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// Its number within its track.
    pub number: u32,
    /// Its kind; [`Kind::Header`] as long as no slice of it was seen.
    pub kind: Kind,
    /// Decoding can start here.
    pub key: bool,
    /// Temporal layer.
    pub layer: u8,
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
    /// The last reference in front of it.
    before: u32,
    time: Option<u32>,
    /// A forward predicted frame came behind it.
    passed: bool,
}

/// Numbers the frames of one track and works out what they need.
#[derive(Debug, Clone, Default)]
pub struct Frames {
    number: u32,
    seen: Seen,
    /// The last reference of each temporal layer since the newest key frame.
    references: [Option<u32>; LAYERS],
    /// The last leading reference behind the newest key frame: decodable, skipped.
    leading: [Option<u32>; 2],
    open: Option<OpenKey>,
    highest_layer: u8,
}

impl Frames {
    /// Before the first access unit. What is seen before [`begin`](Self::begin) is frame 0.
    pub fn new() -> Self {
        Frames::default()
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
            Unit::Parameters => self.seen.parameters = true,
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
                | Unit::Parameters
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

    /// What is known of the current frame.
    pub fn current(&self) -> Frame {
        let mut frame =
            Frame { number: self.number, kind: Kind::Header, key: false, layer: 0, needs: Needs::NOTHING };
        let Some(slice) = self.seen.slice else { return frame };
        frame.layer = self.layer(&slice);
        frame.kind = match slice.prediction {
            Prediction::Intra => Kind::Intra,
            _ if self.is_reference(&slice) => Kind::Predicted,
            _ => Kind::Bidirectional,
        };
        frame.key = self.entry(&slice) > Entry::No;
        if !frame.key {
            frame.needs = self.needs(&slice);
        }
        frame
    }

    fn slice(&mut self, slice: Slice) {
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

    fn layer(&self, slice: &Slice) -> u8 {
        self.seen.layer.unwrap_or(slice.layer).min(LAYERS as u8 - 1)
    }

    fn is_reference(&self, slice: &Slice) -> bool {
        slice.reference || self.layer(slice) < self.highest_layer
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
        let layer = usize::from(self.layer(slice));
        let references = self.references.iter().take(layer + 1).flatten();
        let [decodable, skipped] = &self.leading;
        let back = |number: u32| self.number.wrapping_sub(number);
        let nearest = |numbers: &mut dyn Iterator<Item = &u32>| {
            numbers.map(|n| back(*n)).min().map_or(Needs::NOTHING, Needs::back)
        };
        match self.leading(slice) {
            Leading::No => nearest(&mut references.into_iter()),
            Leading::Decodable => nearest(&mut references.chain(decodable)),
            Leading::Skipped => {
                let needs = nearest(&mut references.chain(skipped));
                self.open.map_or(needs, |open| needs.and(Needs::back(back(open.before))))
            }
        }
    }

    /// Enters the frame that ends among those that others may need.
    fn finish(&mut self) {
        let Some(slice) = self.seen.slice else { return };
        let layer = self.layer(&slice);
        self.highest_layer = self.highest_layer.max(layer);
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
        if self.is_reference(&slice) {
            match leading {
                Leading::No => self.references[usize::from(layer)] = Some(self.number),
                Leading::Decodable => self.leading[0] = Some(self.number),
                Leading::Skipped => self.leading[1] = Some(self.number),
            }
        }
    }

    fn finish_key(&mut self, entry: Entry) {
        let nearest = self.references.iter().flatten().min_by_key(|n| self.number.wrapping_sub(**n));
        // What was in front of the first frame is not there, and cannot be decoded.
        let before = nearest.copied().unwrap_or(self.number.wrapping_sub(1));
        self.open = (entry == Entry::Open).then_some(OpenKey { before, time: self.seen.time, passed: false });
        self.references = [None; LAYERS];
        self.leading = [None; 2];
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
mod tests;
