//! Quality layers of JPEG 2000, by the priorities of its packets (RFC 5372 section 3).

use crate::Malformed;
use crate::fmtp::get as parameter;
use crate::jpeg2000;
use crate::payload::jpeg2000::{Header, NO_PRIORITY, Priorities};

/// The highest layer that is told: those above it are of it. 33 layers, as many as are in use, fit well.
const LAYER_MAX: u8 = 126;

/// Tells of which quality layer each packet of a track is.
///
/// The packets of one frame are of different layers. All of a codec without such packets are of layer 0.
#[derive(Debug, Clone, Copy)]
pub(super) struct Quality {
    /// Priorities are an order of layers: said so, or of an order that is not told.
    by_layer: bool,
    layer: u8,
    layers: u8,
}

impl Quality {
    /// Before the first packet of a track with these parameters.
    pub(super) fn of(fmtp: &str) -> Self {
        let by_layer = parameter(fmtp, "pt").is_none_or(|pt| Priorities::of(pt) == Priorities::Layer);
        Quality { by_layer, layer: 0, layers: 1 }
    }

    /// Reads the payload of the next packet.
    pub(super) fn read(&mut self, payload: &[u8]) -> Result<(), Malformed> {
        let (header, bytes) = Header::parse(payload)?;
        self.layer = 0;
        if !self.by_layer || header.priority == NO_PRIORITY {
            return Ok(());
        }
        // Headers have 0, and the lowest layer has 1.
        self.layer = header.priority.saturating_sub(1).min(LAYER_MAX);
        let told = if header.offset == 0 { jpeg2000::Header::layers_of(bytes) } else { None };
        let told = told.map_or(0, |layers| layers.min(u16::from(LAYER_MAX) + 1) as u8);
        self.layers = self.layers.max(self.layer + 1).max(told);
        Ok(())
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
