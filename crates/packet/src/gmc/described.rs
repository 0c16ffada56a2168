//! Tracks of plain sources: their packets say what they are by their format, which a session description tells.

use outflow_media::Track;
use outflow_rtp::payload::{PrioritiesRead, RtpReader, has_priorities};

use super::mark::Mark;
use super::opened::Opened;
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

    /// Its tracks of video, if the packets of all say their layer by their priority, at a fixed place. Sound has none.
    pub fn prioritized(&self) -> Option<Vec<Prioritized>> {
        let video = self.0.iter().filter(|(_, track)| track.codec.is_video());
        let prioritized = |(port, track): &(u16, Track)| {
            has_priorities(track).then_some(Prioritized { port: *port, payload_type: track.payload_type })
        };
        video.map(prioritized).collect()
    }

    /// What reads the packets of this payload type that go to a port.
    pub(super) fn reader(&self, port: u16, payload_type: u8) -> Option<Box<Reader>> {
        let is_it = |(at, track): &&(u16, Track)| (*at, track.payload_type) == (port, payload_type);
        let (_, track) = self.0.iter().find(is_it)?;
        let reader = RtpReader::new(0, track);
        Some(Box::new(Reader { payload_type, reader, opened: Opened::default() }))
    }
}

/// Packets that say their layer by their priority (RFC 5372, section 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prioritized {
    /// The port that they go to.
    pub port: u16,
    /// Their payload type.
    pub payload_type: u8,
}

/// Reads the packets of a track.
#[derive(Debug)]
pub(super) struct Reader {
    payload_type: u8,
    reader: RtpReader,
    opened: Opened,
}

impl Reader {
    /// Goes on with packets of this payload type, which say their layer by their priority.
    pub(super) fn resume(payload_type: u8, read: PrioritiesRead) -> Self {
        Reader { payload_type, reader: RtpReader::resume(read), opened: Opened::default() }
    }

    /// What a packet would say of itself: nothing if it is of another payload type, or broken.
    pub(super) fn read(&mut self, packet: &[u8]) -> Option<Mark> {
        packet.get(1).filter(|byte| *byte & 0x7f == self.payload_type)?;
        let tag = self.reader.read(packet).ok()?;
        self.opened.mark(&tag)
    }
}

#[cfg(test)]
mod tests;
