//! RTP tracks into one transport stream.

use bytes::Bytes;
use outflow_media::remux::RtpToTs;
use outflow_media::ts::TsReader;
use outflow_media::{Time, Track};

use crate::buffer::Packet;
use crate::drops::Drops;

/// Puts the tracks' access units into transport stream packets, and tags those.
#[derive(Debug)]
pub struct Remux {
    mux: RtpToTs,
    reader: TsReader,
}

impl Remux {
    /// For these tracks; `None` if not one of them can be carried in a transport stream.
    pub fn new(tracks: &[Track]) -> Option<Self> {
        Some(Remux { mux: RtpToTs::new(tracks).ok()?, reader: TsReader::default() })
    }

    /// Takes one RTP packet, and hands on the packets that are complete by it.
    pub fn push(&mut self, packet: &Packet, mut out: impl FnMut(Packet, &TsReader)) {
        let Remux { mux, reader } = self;
        mux.push(packet.tag.track, &packet.bytes, packet.arrived, &mut |bytes: Bytes| {
            // What the multiplexer makes is well-formed; were it not, it would not be sent.
            if let Ok(tag) = reader.read(&bytes) {
                out(Packet { bytes, tag, arrived: packet.arrived }, reader);
            }
        });
    }

    /// The source's clocks, from its RTCP sender report.
    pub fn sender_report(&mut self, track: u8, ntp: u64, rtp: u32, now: Time) {
        self.mux.sender_report(track, ntp, rtp, now);
    }

    /// What could not be put into the transport stream, and why.
    pub fn drops(&self) -> Drops {
        use crate::DropReason::{Incomplete, Late, Malformed, Oversized};
        let mut drops = Drops::default();
        let counted = self.mux.dropped();
        drops.add(Late, counted.late);
        drops.add(Incomplete, counted.incomplete);
        drops.add(Malformed, counted.malformed);
        drops.add(Oversized, counted.too_large);
        drops
    }
}
