//! Compound packets (RFC 3550 section 6.1) as they are written: a report, the name, and what follows.

use rtcp_types::prelude::{RtcpPacketWriter as _, RtcpPacketWriterExt as _};
use rtcp_types::{Compound, CompoundBuilder, ReceiverReport, RtcpWriteError, Sdes, SdesChunk, SdesItem};

/// Bytes of a canonical name.
const MAX_CNAME: usize = 255;

/// What stands before other packets: an empty report, and the name.
pub(super) fn empty(ssrc: u32, cname: &str) -> CompoundBuilder<'_> {
    named(Compound::builder().add_packet(ReceiverReport::builder(ssrc)), ssrc, cname)
}

/// Puts the canonical name of a source behind its report (section 6.5.1).
pub(super) fn named<'a>(compound: CompoundBuilder<'a>, ssrc: u32, cname: &'a str) -> CompoundBuilder<'a> {
    let cname = &cname[..cname.floor_char_boundary(MAX_CNAME)];
    let item = SdesItem::builder(SdesItem::CNAME, cname);
    compound.add_packet(Sdes::builder().add_chunk(SdesChunk::builder(ssrc).add_item(item)))
}

/// The bytes of a packet.
pub(super) fn written(compound: CompoundBuilder<'_>) -> Vec<u8> {
    let write = || -> Result<Vec<u8>, RtcpWriteError> {
        let mut bytes = vec![0; compound.calculate_size()?];
        let length = compound.write_into(&mut bytes)?;
        bytes.truncate(length);
        Ok(bytes)
    };
    write().expect("counts, names and losses were brought within their limits")
}
