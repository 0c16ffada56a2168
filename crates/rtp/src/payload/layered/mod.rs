//! Codecs whose packets say of themselves what they are: of which temporal and spatial layer, and what
//! their frame refers to. What they say differs ([`Describe`]), what comes of it does not ([`Layered`]).
//!
//! A frame is that of one spatial layer, so a picture of three of them is three frames. Its quality layer
//! is the temporal layer in the lowest spatial one, and one for each further spatial layer, of all
//! temporal ones: sets of layers must be a chain, and a picture of full rate in the lowest resolution is
//! worth more than one of half the rate in a higher one.

mod av1;
mod marked;
mod vp8;
mod vp9;

pub(super) use av1::Av1;
pub(super) use marked::Marked;
pub(super) use vp8::Vp8;
pub(super) use vp9::Vp9;

use core::fmt::Debug;

use outflow_media::frames::{Frame, References, TEMPORAL_LAYERS};
use outflow_media::{Kind, Malformed, Needs};

use crate::RtpHeader;
use crate::limits::REMEMBERED_FRAMES;

/// Spatial layers that are told apart; those above are of the highest.
const SPATIAL_LAYERS: usize = 8;
/// Quality layers, at most: those of [`Grid`].
const QUALITY_LAYERS: usize = TEMPORAL_LAYERS + SPATIAL_LAYERS;
/// More than there can be of quality layers.
const LAYERS_MAX: u8 = 126;
/// Frames kept in mind, as far back as needs can tell.
const HISTORY: usize = 32;
/// Frames that may be missing between two that have numbers of their own. Where more are, a source began
/// again.
const MISSING_FRAMES_MAX: u16 = 1000;

/// Reads what the packets of a codec say of their frames.
pub(super) trait Describe: Debug + Send + Sync {
    /// Whether it can say anything of this packet.
    fn describes(&self, _packet: &RtpHeader<'_>) -> bool {
        true
    }

    /// What the next packet says. One that came late changes nothing that holds for others.
    fn read(&mut self, packet: &RtpHeader<'_>, late: bool) -> Result<PacketFields, Malformed>;
}

/// What a packet says of its frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct PacketFields {
    /// What tells it from other frames with its timestamp.
    frame: Identity,
    /// It holds the first bytes of its frame.
    first: bool,
    /// It holds the last bytes of its frame.
    last: bool,
    picture: Picture,
}

/// Which frame of those with one timestamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Identity {
    /// The one that other packets are of, whichever that is.
    Same,
    /// That of a spatial layer.
    Spatial(u8),
    /// That of a number which the stream itself counts up.
    Number(u16),
}

/// What a frame is.
#[derive(Debug, Clone, Copy)]
struct Picture {
    temporal: u8,
    spatial: u8,
    /// Decoding can start at it.
    key: bool,
    /// No other frame refers to it.
    discardable: bool,
    refers: Refers,
    /// Later frames of its layer do not refer to earlier ones than it.
    resets: bool,
    /// Layers, a bit each, of which no later frame refers to one before this frame, but for what this one
    /// refers to itself.
    above: u128,
    /// Layers that there are at least, as far as the packet tells.
    grid: Grid,
    /// Number of its picture, if the stream tells that.
    number: Option<u16>,
}

/// What a frame refers to.
#[derive(Debug, Clone, Copy)]
enum Refers {
    /// No other frame.
    Nothing,
    /// Those so far back.
    To(Needs),
    /// Those of its spatial layer in pictures of these numbers, and perhaps the layer below.
    Pictures { numbers: [Option<u16>; 3], below: bool },
    /// The newest of its spatial layer that it may refer to, and perhaps the layer below.
    Newest { below: bool },
    /// The newest of the lowest temporal layer.
    Base,
    /// The layer below of the same picture, and no other.
    Below,
}

/// How many layers there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Grid {
    temporal: u8,
    spatial: u8,
    /// Frames that may be left out have a layer of their own, above all others.
    discardable: bool,
}

impl Grid {
    const ONE: Grid = Grid { temporal: 1, spatial: 1, discardable: false };

    fn and(self, other: Grid) -> Grid {
        Grid {
            temporal: self.temporal.max(other.temporal).min(TEMPORAL_LAYERS as u8),
            spatial: self.spatial.max(other.spatial).min(SPATIAL_LAYERS as u8),
            discardable: self.discardable | other.discardable,
        }
    }

    /// Whether layers have other numbers with `next`.
    fn is_shifted_by(self, next: Grid) -> bool {
        let grown = (next.temporal > self.temporal, next.spatial > self.spatial);
        match grown {
            (true, _) if self.spatial > 1 => true,
            (true, _) | (_, true) => self.discardable,
            _ => false,
        }
    }

    /// How many temporal layers `next` has more, and nothing else.
    fn grown_to(self, next: Grid) -> u8 {
        let is_same = Grid { temporal: next.temporal, ..self } == next && !next.discardable;
        if is_same { next.temporal - self.temporal } else { 0 }
    }

    const fn layer(self, temporal: u8, spatial: u8) -> u8 {
        match spatial {
            0 => temporal,
            spatial => self.temporal - 1 + spatial,
        }
    }

    /// The temporal and spatial layer up to which a quality layer goes.
    const fn reach(self, layer: u8) -> (u8, u8) {
        match layer.checked_sub(self.temporal) {
            None => (layer, 0),
            Some(above) => (self.temporal - 1, above + 1),
        }
    }

    const fn layers(self) -> u8 {
        self.temporal + self.spatial - 1 + self.discardable as u8
    }

    /// Every layer of the lowest spatial one above a temporal one.
    fn above(self, temporal: u8) -> u128 {
        let below = |layers: u8| (1_u128 << layers) - 1;
        below(self.temporal) & !below(temporal + 1)
    }
}

/// A frame that was there.
#[derive(Debug, Clone, Copy)]
struct Past {
    timestamp: u32,
    said: Identity,
    picture: Option<u16>,
    spatial: u8,
    frame: Frame,
    /// [`Tag::adds`](outflow_media::Tag::adds).
    adds: bool,
}

/// Tells the frames of a track whose packets describe themselves.
#[derive(Debug)]
pub(super) struct Layered {
    describe: Box<dyn Describe>,
    grid: Grid,
    /// Layers had other numbers at the last key frame: what was refused before is not of the same ones.
    is_shifted: bool,
    /// The newest frames, each at the place of its number.
    history: [Option<Past>; HISTORY],
    current: Option<Past>,
    /// The last frames of each spatial layer since the newest key frame.
    references: [References; SPATIAL_LAYERS],
    /// Layers, a bit each, that can be taken from their next frame on.
    open: u128,
    /// The newest frame of each layer from which on it could be taken, since the newest key frame.
    opened: [Option<u32>; QUALITY_LAYERS],
}

/// The frame of a packet.
#[derive(Debug, Clone, Copy)]
pub(super) struct PacketFrame {
    pub(super) frame: Frame,
    pub(super) first: bool,
    pub(super) last: bool,
    /// [`Tag::ends`](outflow_media::Tag::ends).
    pub(super) ends: Option<u8>,
    /// [`Tag::grown`](outflow_media::Tag::grown).
    pub(super) grown: u8,
    /// [`Tag::adds`](outflow_media::Tag::adds).
    pub(super) adds: bool,
}

impl Layered {
    pub(super) fn new(describe: impl Describe + 'static) -> Self {
        Layered {
            describe: Box::new(describe),
            grid: Grid::ONE,
            is_shifted: false,
            history: [None; HISTORY],
            current: None,
            references: [References::default(); SPATIAL_LAYERS],
            open: 0,
            opened: [None; QUALITY_LAYERS],
        }
    }

    /// How many temporal and spatial layers packets have shown, and whether there are frames that may be left out.
    pub(super) fn shown(&self) -> (u8, u8, bool) {
        (self.grid.temporal, self.grid.spatial, self.grid.discardable)
    }

    /// Packets before the first one have shown at least these.
    pub(super) fn show(&mut self, (temporal, spatial, discardable): (u8, u8, bool)) {
        self.grid = self.grid.and(Grid { temporal, spatial, discardable });
    }

    /// Whether packets have begun to describe themselves, with this one at the latest.
    pub(super) fn describes(&self, packet: &RtpHeader<'_>) -> bool {
        self.describe.describes(packet)
    }

    /// Reads the next packet; `late` if one behind it came before it. The first frame is that behind the
    /// one numbered `behind`.
    pub(super) fn read(
        &mut self,
        packet: &RtpHeader<'_>,
        late: bool,
        behind: u32,
    ) -> Result<PacketFrame, Malformed> {
        let said = self.describe.read(packet, late)?;
        let timestamp = packet.timestamp();
        if let Some(current) = self.current.filter(|current| current.is_of(timestamp, said.frame)) {
            return Ok(self.told(&current, false, said.last));
        }
        if late && let Some(past) = self.past(timestamp, said.frame) {
            return Ok(self.told(&past, false, said.last));
        }
        let (begun, grown) = self.begin(timestamp, &said, behind);
        Ok(PacketFrame { grown, ..self.told(&begun, said.first, said.last) })
    }

    /// The last packet of a spatial layer is the last of the picture for receivers that take none above.
    fn told(&self, past: &Past, first: bool, last: bool) -> PacketFrame {
        let above = (past.spatial + 1 < self.grid.spatial).then(|| self.grid.layer(0, past.spatial + 1));
        let ends = above.filter(|above| last && past.frame.layer < *above).map(|above| above - 1);
        PacketFrame { frame: past.frame, first, last, ends, grown: 0, adds: past.adds }
    }

    /// The frame of a late packet: the one it names, or else the oldest one in mind.
    fn past(&self, timestamp: u32, said: Identity) -> Option<Past> {
        let newest = self.current?.frame.number;
        let age = |past: &&Past| newest.wrapping_sub(past.frame.number);
        let known = || self.history.iter().flatten().filter(|p| age(p) < REMEMBERED_FRAMES as u32);
        known().find(|past| past.is_of(timestamp, said)).or_else(|| known().max_by_key(age)).copied()
    }

    /// The next frame, and [`Tag::grown`](outflow_media::Tag::grown).
    fn begin(&mut self, timestamp: u32, said: &PacketFields, behind: u32) -> (Past, u8) {
        let picture = said.picture.within(SPATIAL_LAYERS as u8 - 1);
        let grown = self.grow(&picture);
        let adds = self.current.is_some_and(|current| current.timestamp == timestamp);
        if picture.key {
            self.references = [References::default(); SPATIAL_LAYERS];
        }
        let number = self.number(said.frame, behind);
        let layer = self.layer(&picture);
        let needs = if picture.key { Needs::NOTHING } else { self.needs(number, timestamp, &picture) };
        let alone = picture.resets && !self.is_far(number, &picture) && self.are_lower(number, needs, layer);
        let opens = picture.key || !self.is_shifted && (alone || self.open >> layer & 1 == 1);
        self.note_openings(&picture, layer, alone);
        match picture.key {
            true => self.opened = [None; QUALITY_LAYERS],
            false if opens => self.opened[usize::from(layer)] = Some(number),
            false => {}
        }
        let frame = Frame {
            number,
            kind: picture.kind(),
            key: picture.key,
            layer,
            layers: self.grid.layers(),
            opens,
            needs,
        };
        if !picture.discardable {
            let temporal = (!picture.is_intra()).then_some(picture.temporal);
            self.references[usize::from(picture.spatial)].enter(number, temporal);
        }
        let spatial = picture.spatial;
        let past = Past { timestamp, said: said.frame, picture: picture.number, spatial, frame, adds };
        self.history[number as usize % HISTORY] = Some(past);
        self.current = Some(past);
        (past, grown)
    }

    /// Makes room for what the picture shows; [`Tag::grown`](outflow_media::Tag::grown).
    fn grow(&mut self, picture: &Picture) -> u8 {
        let (temporal, spatial) = (picture.temporal + 1, picture.spatial + 1);
        let before = self.grid;
        self.grid = before.and(picture.grid).and(Grid { temporal, spatial, discardable: false });
        let is_highest = spatial == 1 && temporal == self.grid.temporal;
        let grown = if is_highest && !picture.key { before.grown_to(self.grid) } else { 0 };
        if grown > 0 {
            self.renumber(before.temporal, grown);
        }
        let is_shifted = self.is_shifted || (grown == 0 && before.is_shifted_by(self.grid));
        self.is_shifted = !picture.key && is_shifted;
        grown
    }

    /// Layers from one on have higher numbers now.
    fn renumber(&mut self, from: u8, by: u8) {
        let layers = self.grid.layers();
        for past in self.history.iter_mut().chain([&mut self.current]).flatten() {
            past.frame.layers = layers;
            if past.frame.layer >= from {
                past.frame.layer += by;
            }
        }
        self.open = 0;
        let opened = core::mem::replace(&mut self.opened, [None; QUALITY_LAYERS]);
        for (layer, at) in (0..).zip(opened) {
            let now = if layer >= from { layer + by } else { layer };
            if let Some(place) = self.opened.get_mut(usize::from(now)) {
                *place = at;
            }
        }
    }

    /// The number of the frame that begins: one more than the last one, or as many more as the stream
    /// itself counts.
    fn number(&self, said: Identity, behind: u32) -> u32 {
        let Some(last) = self.current else { return behind.wrapping_add(1) };
        let step = match (last.said, said) {
            (Identity::Number(before), Identity::Number(number)) => number.wrapping_sub(before),
            _ => 1,
        };
        let step = if (1..=MISSING_FRAMES_MAX).contains(&step) { step } else { 1 };
        last.frame.number.wrapping_add(u32::from(step))
    }

    fn layer(&self, picture: &Picture) -> u8 {
        if picture.discardable && self.grid.discardable {
            return self.grid.layers() - 1;
        }
        self.grid.layer(picture.temporal, picture.spatial)
    }

    fn needs(&self, number: u32, timestamp: u32, picture: &Picture) -> Needs {
        let references = &self.references[usize::from(picture.spatial)];
        let newest = || references.of(number, picture.temporal);
        let below =
            |is: bool| if is { self.below(number, timestamp, picture.spatial) } else { Needs::NOTHING };
        match picture.refers {
            Refers::Nothing => Needs::NOTHING,
            Refers::To(needs) => needs,
            Refers::Newest { below: is } => newest().and(below(is)),
            Refers::Base => references.of(number, 0),
            Refers::Below => below(true),
            Refers::Pictures { numbers, below: is } => {
                let pictures = numbers.into_iter().flatten();
                let named = pictures.map(|named| self.picture(number, named, picture.spatial));
                // One that is not in mind is further back: what came since leads there.
                let all = named.map(|needs| needs.unwrap_or_else(newest));
                all.fold(below(is), Needs::and)
            }
        }
    }

    /// The frame of the spatial layer below, in the same picture.
    fn below(&self, number: u32, timestamp: u32, spatial: u8) -> Needs {
        let frames = self.history.iter().flatten();
        let below = frames.filter(|past| past.timestamp == timestamp && past.spatial < spatial);
        let nearest = below.map(|past| number.wrapping_sub(past.frame.number)).min();
        nearest.map_or(Needs::NOTHING, Needs::reaching)
    }

    /// The frame of a spatial layer in the picture of this number.
    fn picture(&self, number: u32, picture: u16, spatial: u8) -> Option<Needs> {
        let frames = self.history.iter().flatten();
        let found = frames.filter(|past| past.picture == Some(picture) && past.spatial == spatial);
        let distance = found.map(|past| number.wrapping_sub(past.frame.number)).min()?;
        (distance <= HISTORY as u32).then_some(Needs::back(distance))
    }

    /// Whether it refers to a frame of its spatial layer that is too far back to be told.
    fn is_far(&self, number: u32, picture: &Picture) -> bool {
        let references = &self.references[usize::from(picture.spatial)];
        match picture.refers {
            Refers::Newest { .. } => references.of(number, picture.temporal).is_nothing(),
            Refers::Base => references.of(number, 0).is_nothing(),
            _ => false,
        }
    }

    /// Whether all that is needed is known to be of lower layers, and there for all that take those: a taker
    /// of one where it opened last has nothing of it from before.
    fn are_lower(&self, number: u32, needs: Needs, layer: u8) -> bool {
        needs.distances().all(|distance| {
            let needed = number.wrapping_sub(distance);
            let past = self.history[needed as usize % HISTORY];
            let is_there = |past: Past| {
                let since = self.opened[usize::from(past.frame.layer)];
                since.is_none_or(|since| needed.wrapping_sub(since).cast_signed() >= 0)
            };
            past.is_some_and(|past| past.frame.number == needed && past.frame.layer < layer && is_there(past))
        })
    }

    /// Keeps in mind which layers can be taken behind a frame, at which its own can perhaps be taken
    /// (`alone`).
    fn note_openings(&mut self, picture: &Picture, layer: u8, alone: bool) {
        let below = |layer: u32| (1_u128 << layer) - 1;
        if picture.key {
            self.open = 0;
        } else if !picture.discardable {
            self.open &= !(1 << layer);
        }
        let above = picture.above & !below(u32::from(layer) + 1);
        let lowest = if alone { u32::from(layer) } else { above.trailing_zeros().min(u32::from(LAYERS_MAX)) };
        // A receiver that takes a layer here lacks what was of it before; higher ones opened earlier may
        // refer to that.
        self.open = self.open & below(lowest) | above;
    }
}

impl Past {
    fn is_of(&self, timestamp: u32, said: Identity) -> bool {
        self.timestamp == timestamp && (said == Identity::Same || said == self.said)
    }
}

impl Picture {
    /// One of which no more is known than its layer.
    const fn plain(temporal: u8, spatial: u8) -> Self {
        Picture {
            temporal,
            spatial,
            key: false,
            discardable: false,
            refers: Refers::Newest { below: true },
            resets: false,
            above: 0,
            grid: Grid::ONE,
            number: None,
        }
    }

    /// Those above the highest layers that are told apart are of these.
    fn within(&self, spatial: u8) -> Self {
        let temporal = self.temporal.min(TEMPORAL_LAYERS as u8 - 1);
        Picture { temporal, spatial: self.spatial.min(spatial), ..*self }
    }

    const fn is_intra(&self) -> bool {
        self.key || matches!(self.refers, Refers::Nothing)
    }

    fn kind(&self) -> Kind {
        match self {
            _ if self.is_intra() => Kind::Intra,
            Picture { discardable: true, .. } => Kind::Bidirectional,
            Picture { spatial: 1.., .. } => Kind::Enhancement,
            _ => Kind::Predicted,
        }
    }
}

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
