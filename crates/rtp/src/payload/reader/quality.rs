//! Quality layers of JPEG 2000, by the priorities of its packets (RFC 5372 section 3).

use outflow_media::{Malformed, jpeg2000};

use crate::fmtp::get as parameter;
use crate::payload::jpeg2000::{Header, NO_PRIORITY, Priorities};

/// The highest layer that is told: those above it are of it. 33 layers, as many as are in use, fit well.
const LAYER_MAX: u8 = 126;

/// What the header of a tile-part says (ITU-T T.800, A.4.2).
#[derive(Debug, Clone, Copy)]
struct TilePart {
    bytes: u32,
    index: u8,
    /// 0 if it does not say.
    count: u8,
}

impl TilePart {
    /// The one that these bytes begin with.
    fn at_start(bytes: &[u8]) -> Option<Self> {
        let &[0xff, 0x90, 0, 10, _, _, b0, b1, b2, b3, index, count, ..] = bytes else { return None };
        Some(TilePart { bytes: u32::from_be_bytes([b0, b1, b2, b3]), index, count })
    }
}

/// Whether the priorities of a track with these parameters are an order of layers: said so, or of an order that is not
/// told.
pub(super) fn has_layers(fmtp: &str) -> bool {
    parameter(fmtp, "pt").is_none_or(|pt| Priorities::of(pt) == Priorities::Layer)
}

/// How far a track was read whose priorities are an order of layers, by what is no [`RtpReader`](super::RtpReader).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrioritiesRead {
    /// The highest sequence number, and its timestamp.
    pub newest: Option<(u16, u32)>,
    /// Layers, as far as is known: 1 at least.
    pub layers: u8,
    /// Each layer is one tile-part, as far as the main header tells.
    pub by_tile_part: bool,
    /// Where the tile-part ends in the codestream whose packets came last.
    pub part_end: Option<u32>,
}

/// Tells of which quality layer each packet of a track is.
///
/// The packets of one frame are of different layers. All of a codec without such packets are of layer 0.
#[derive(Debug, Clone, Copy)]
pub(super) struct Quality {
    /// See [`has_layers`].
    by_layer: bool,
    layer: u8,
    layers: u8,
    /// Each layer is one tile-part, as far as the main header tells.
    by_tile_part: bool,
    /// Where the tile-part ends of which packets came last.
    part_end: Option<u32>,
    /// The packet that was read last ends its layer.
    ends: bool,
}

impl Quality {
    /// Before the first packet of a track with these parameters.
    pub(super) fn of(fmtp: &str) -> Self {
        let by_layer = has_layers(fmtp);
        Quality { by_layer, layer: 0, layers: 1, by_tile_part: false, part_end: None, ends: false }
    }

    /// Behind what was read.
    pub(super) const fn resume(read: &PrioritiesRead) -> Self {
        let PrioritiesRead { layers, by_tile_part, part_end, .. } = *read;
        Quality { by_layer: true, layer: 0, layers, by_tile_part, part_end, ends: false }
    }

    /// Reads the payload of the next packet.
    pub(super) fn read(&mut self, payload: &[u8]) -> Result<(), Malformed> {
        let (header, bytes) = Header::parse(payload)?;
        (self.layer, self.ends) = (0, false);
        if !self.by_layer || header.priority == NO_PRIORITY {
            return Ok(());
        }
        // Headers have 0, and the lowest layer has 1.
        self.layer = header.priority.saturating_sub(1).min(LAYER_MAX);
        if header.offset == 0 {
            self.part_end = None;
            let told = jpeg2000::Header::layers_of(bytes);
            self.by_tile_part = told.is_some_and(|told| told.one_tile);
            let count = told.map_or(0, |told| told.count.min(u16::from(LAYER_MAX) + 1) as u8);
            self.layers = self.layers.max(count);
        }
        self.layers = self.layers.max(self.layer + 1);
        self.look_for_end(header.offset, bytes);
        Ok(())
    }

    /// Where each layer is one tile-part, of one tile, the last packet of that is the last of its layer.
    fn look_for_end(&mut self, offset: u32, bytes: &[u8]) {
        if let Some(part) = TilePart::at_start(bytes) {
            let is_layer = self.by_tile_part && part.index == self.layer && part.count == self.layers;
            self.part_end = is_layer.then(|| offset.saturating_add(part.bytes));
        }
        self.ends = self.part_end == Some(offset.saturating_add(bytes.len() as u32));
    }

    /// The layer of which the packet that was read last is the last one.
    pub(super) fn ends(&self) -> Option<u8> {
        self.ends.then_some(self.layer)
    }

    /// The layer of the packet that was read last.
    pub(super) const fn layer(&self) -> u8 {
        self.layer
    }

    /// How many there are, as far as is known: those that the codestream tells, or that were seen.
    pub(super) const fn layers(&self) -> u8 {
        self.layers
    }
}
