//! Access units into RTP packets, a source a track.

use bytes::Bytes;
use outflow_media::{AccessUnit, Track};
use outflow_rtp::payload::Packetizer;

use crate::clock::TICKS;

/// Puts access units into RTP packets. Tracks that it cannot carry are passed over.
#[derive(Debug)]
pub struct ToRtp {
    /// By track; `None` for what is passed over.
    tracks: Vec<Option<Output>>,
}

#[derive(Debug)]
struct Output {
    packetizer: Packetizer,
    clock_rate: u32,
    /// The timestamp of time 0.
    begins: u32,
}

impl ToRtp {
    /// For these tracks: the first has packets from `ssrc`, the others from the numbers behind it.
    pub fn new(tracks: &[Track], ssrc: u32) -> Self {
        let output = |(ssrc, track): (u32, &Track)| {
            // RFC 3550, section 5.1: neither first number should be guessable.
            let (sequence, begins) = ((ssrc >> 7) as u16, ssrc.rotate_left(9));
            let packetizer = Packetizer::new(track, ssrc, sequence)?;
            Some(Output { packetizer, clock_rate: track.clock_rate, begins })
        };
        let numbers = (0..).map(|at| ssrc.wrapping_add(at));
        ToRtp { tracks: numbers.zip(tracks).map(output).collect() }
    }

    /// The RTP timestamp that a track has at a time of the timeline.
    pub fn timestamp(&self, track: usize, ticks: i64) -> Option<u32> {
        self.tracks.get(track)?.as_ref().map(|output| output.timestamp(ticks))
    }

    /// Something is missing in front of the next unit of a track: receivers see a gap.
    pub fn skip(&mut self, track: usize) {
        if let Some(Some(output)) = self.tracks.get_mut(track) {
            output.packetizer.skip();
        }
    }

    /// Takes one access unit, and gives its packets.
    pub fn push(&mut self, unit: &AccessUnit, out: &mut impl FnMut(Bytes)) {
        let Some(Some(output)) = self.tracks.get_mut(unit.track) else { return };
        let timestamp = output.timestamp(unit.pts);
        output.packetizer.push(&unit.data, timestamp, out);
    }
}

impl Output {
    fn timestamp(&self, ticks: i64) -> u32 {
        let own = i128::from(ticks) * i128::from(self.clock_rate) / i128::from(TICKS);
        // Its lower bits, as timestamps wrap.
        (own as u32).wrapping_add(self.begins)
    }
}
