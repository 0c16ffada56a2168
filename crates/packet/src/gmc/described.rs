//! Tracks of plain sources: their packets say what they are by their format, which a session description tells.

use outflow_media::Track;
use outflow_rtp::payload::RtpReader;

use super::mark::Mark;
use crate::Openings;
use crate::limits::TRACKS_MAX;

/// Tracks of a group, by the ports that they go to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Described(Vec<(u16, Track)>);

impl Described {
    /// A track goes to this port. Of one that is encrypted no packet can be left out: numbers are signed (RFC 3711,
    /// section 3.1). Nor is there room for more than [`TRACKS_MAX`].
    pub fn add(&mut self, port: u16, track: Track) {
        if !track.codec.is_srtp() && self.0.len() < TRACKS_MAX {
            self.0.push((port, track));
        }
    }

    /// Whether it tells of no track.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What reads the packets of this payload type that go to a port.
    pub(super) fn reader(&self, port: u16, payload_type: u8) -> Option<Box<Reader>> {
        let is_it = |(at, track): &&(u16, Track)| (*at, track.payload_type) == (port, payload_type);
        let (_, track) = self.0.iter().find(is_it)?;
        let reader = RtpReader::new(0, track);
        Some(Box::new(Reader { payload_type, reader, openings: Openings::default() }))
    }
}

/// Reads the packets of a track.
#[derive(Debug)]
pub(super) struct Reader {
    payload_type: u8,
    reader: RtpReader,
    openings: Openings,
}

impl Reader {
    /// What a packet would say of itself: nothing if it is of another payload type, or broken.
    ///
    /// While the track has shown one layer alone, its packets are of that: a way that has the key frame then has all that
    /// shows later.
    pub(super) fn read(&mut self, packet: &[u8]) -> Option<Mark> {
        packet.get(1).filter(|byte| *byte & 0x7f == self.payload_type)?;
        let tag = self.reader.read(packet).ok()?;
        let opens_all = self.openings.comes(&tag);
        if tag.layers > 1 {
            Mark::of(&tag, opens_all)
        } else {
            Some(Mark::of_the_only_layer(&tag, opens_all))
        }
    }
}

#[cfg(test)]
mod tests;
