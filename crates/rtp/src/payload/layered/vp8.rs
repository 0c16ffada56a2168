//! Frames of VP8.

use outflow_media::Malformed;

use super::{Describe, Grid, Identity, PacketFields, Picture, Refers};
use crate::RtpHeader;
use crate::payload::vp8::{Descriptor, is_key};

/// Reads what packets of VP8 say of their frames.
///
/// Without temporal layers, frames that are no references are a layer of their own.
#[derive(Debug)]
pub(in crate::payload) struct Vp8;

impl Describe for Vp8 {
    fn read(&mut self, packet: &RtpHeader<'_>, _: bool) -> Result<PacketFields, Malformed> {
        let (descriptor, data) = Descriptor::parse(packet.payload())?;
        let first = descriptor.starts_frame();
        let discardable = descriptor.is_no_reference;
        let (temporal, syncs) = descriptor.temporal.unwrap_or_default();
        let syncs = syncs && temporal > 0;
        let apart = discardable && descriptor.temporal.is_none();
        let key = first && is_key(data);
        let refers = match (key, syncs) {
            (true, _) => Refers::Nothing,
            (_, true) => Refers::Base,
            _ => Refers::Newest { below: false },
        };
        let grid = Grid { discardable: apart, ..Grid::ONE };
        let resets = syncs || apart;
        let picture = Picture { key, discardable, refers, resets, grid, ..Picture::plain(temporal, 0) };
        Ok(PacketFields { frame: Identity::Spatial(0), first, last: packet.marker(), picture })
    }
}
