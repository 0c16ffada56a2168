//! Frames that are marked, of codecs of which no more can be read (RFC 9626).

use outflow_media::Malformed;

use super::{Describe, Grid, Identity, PacketFields, Picture, Refers};
use crate::RtpHeader;
use crate::frame_marking::{FrameMarking, Layer};

/// Reads how packets are marked.
///
/// Frames that can be left out are a layer of their own, above all others.
#[derive(Debug)]
pub(in crate::payload) struct Marked {
    /// The identifier of the extension.
    id: u8,
    /// Packets are marked: not all that is described comes.
    are_marked: bool,
}

impl Marked {
    pub(in crate::payload) const fn new(id: u8) -> Self {
        Marked { id, are_marked: false }
    }

    fn marking(&self, packet: &RtpHeader<'_>) -> Option<Result<FrameMarking, Malformed>> {
        packet.extension(self.id).map(FrameMarking::parse)
    }
}

impl Describe for Marked {
    fn describes(&self, packet: &RtpHeader<'_>) -> bool {
        self.are_marked || matches!(self.marking(packet), Some(Ok(_)))
    }

    fn read(&mut self, packet: &RtpHeader<'_>, _: bool) -> Result<PacketFields, Malformed> {
        let Some(marking) = self.marking(packet).transpose()? else {
            // Of the frame that others with its timestamp are of.
            let (frame, picture) = (Identity::Same, Picture::plain(0, 0));
            return Ok(PacketFields { frame, first: false, last: packet.marker(), picture });
        };
        self.are_marked = true;
        let base = Layer { syncs_with_base: false, temporal: 0, id: 0, base_picture: None };
        let Layer { syncs_with_base, temporal, id, .. } = marking.layer.unwrap_or(base);
        let (independent, discardable) = (marking.is_independent, marking.is_discardable);
        let syncs = syncs_with_base && temporal > 0;
        let refers = match (independent, id) {
            (true, 0) => Refers::Nothing,
            (true, _) => Refers::Below,
            _ if syncs => Refers::Base,
            _ => Refers::Newest { below: true },
        };
        let picture = Picture {
            key: independent && id == 0 && temporal == 0,
            discardable,
            refers,
            resets: discardable || syncs || (independent && id > 0),
            grid: Grid { discardable, ..Grid::ONE },
            ..Picture::plain(temporal, id)
        };
        let frame = Identity::Spatial(id);
        Ok(PacketFields { frame, first: marking.first, last: marking.last, picture })
    }
}
