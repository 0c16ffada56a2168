//! A stream whose packets say what they are.

use outflow_media::Format;
use outflow_rtp::HEADER;

use super::mark::Mark;
use crate::{Openings, Packet, Parsed};

/// Writes marks into the packets of a stream's main track.
#[derive(Debug, Clone)]
pub struct Marks {
    /// Nothing of what is encrypted: its headers are signed (RFC 3711, section 3.1).
    main_track: Option<u8>,
    openings: Openings,
    /// A packet had no place for it. Where some say what they are and others do not, routers would let through the
    /// others, which are of no use without the rest of their frames: so none says it.
    is_unfit: bool,
}

impl Marks {
    /// For packets of this format.
    pub fn new(format: &Format) -> Self {
        let main_track = format.main_track();
        let is_open = match format {
            Format::Rtp(tracks) => {
                tracks.get(usize::from(main_track)).is_some_and(|one| !one.codec.is_srtp())
            }
            Format::Ts | Format::Images | Format::Data => false,
        };
        Marks { main_track: is_open.then_some(main_track), openings: Openings::default(), is_unfit: false }
    }

    /// What comes now does not go on from what came.
    pub fn break_off(&mut self) {
        (self.openings, self.is_unfit) = (Openings::default(), false);
    }

    /// The same packet with its mark, if there is something to say, and a place for it in all packets up to now.
    pub fn mark(&mut self, parsed: Parsed) -> Parsed {
        let tag = parsed.packet.tag;
        if self.main_track != Some(tag.track) || self.is_unfit {
            return parsed;
        }
        let opens_all = self.openings.comes(&tag);
        let Some(mark) = Mark::of(&tag, opens_all) else { return parsed };
        let marked = parsed.packet.rtp_header(&parsed.rtp_header).and_then(|header| {
            let bytes = &parsed.packet.bytes[..];
            let is_apart = parsed.rtp_header[0] != 0;
            mark.write(header, if is_apart { bytes } else { bytes.get(HEADER..)? })
        });
        let Some(bytes) = marked else {
            self.is_unfit = true;
            return parsed;
        };
        let packet = Packet { bytes: bytes.into(), ..parsed.packet };
        Parsed { packet, rtp_header: [0; HEADER], ..parsed }
    }
}
