//! A clip that is played endlessly.

mod clip;

use core::time::Duration;

use bytes::{Bytes, BytesMut};
use outflow_media::Malformed;

use self::clip::Clip;
use super::clock::{PCR_HZ, PTS_MODULUS, pcr_after, pts_after};
use super::packet::{PACKET_BYTES, PIDS, Packet, set_continuity, set_pcr};
use super::pes::rewrite_time_stamps;
use super::{DATAGRAM_PACKETS, resync};

/// Plays a clip over and over, without a seam: time stamps, clock references and continuity
/// counters run on over its end.
///
/// A round lasts a whole number of frames of the main stream, so that its time stamps stay
/// regular. Where sound does not fill that time exactly, there is a gap at the edge, or the last
/// frames of a round last into the next one. Each round begins with a datagram of its own.
#[derive(Debug)]
pub struct TsLoop {
    /// Whole packets.
    bytes: Bytes,
    clip: Clip,
    /// The next packet.
    at: usize,
    /// Rounds that are complete.
    rounds: u64,
    /// What is added to the counters of each PID in this round.
    shifts: Box<[u8; PIDS]>,
}

impl TsLoop {
    /// Takes a clip as it stands in a file. What is before its first packet, or behind its last
    /// whole one, is left out.
    ///
    /// # Errors
    /// It has no time stamps to tell how long it is, or they are such that it cannot be played in
    /// a loop.
    pub fn new(clip: Bytes) -> Result<Self, Malformed> {
        let start = resync(&clip);
        let behind = clip.len() - start;
        let bytes = clip.slice(start..clip.len() - behind % PACKET_BYTES);
        let clip = Clip::analyse(&bytes)?;
        Ok(TsLoop { bytes, clip, at: 0, rounds: 0, shifts: Box::new([0; PIDS]) })
    }

    /// How long a round lasts.
    pub fn round(&self) -> Duration {
        ticks(self.clip.ticks() * 300)
    }

    /// Where it is: rounds that are complete, packets of this one that are played.
    pub fn place(&self) -> (u64, usize) {
        (self.rounds, self.at)
    }

    /// Goes on at a place where another one of the same clip was; `false` if the clip has no such place.
    #[must_use]
    pub fn go_on_at(&mut self, (rounds, at): (u64, usize)) -> bool {
        if at >= self.bytes.len() / PACKET_BYTES {
            return false;
        }
        (self.rounds, self.at) = (rounds, at);
        for (pid, step) in self.clip.counter_steps() {
            // A counter has four bits.
            self.shifts[usize::from(pid) % PIDS] = step.wrapping_mul((rounds & 0x0f) as u8) & 0x0f;
        }
        true
    }

    /// Appends the next datagram, one to seven packets, and tells when it is due, from the start.
    pub fn next(&mut self, out: &mut BytesMut) -> Duration {
        let due = ticks(self.clip.due(self.rounds, self.at));
        let left = self.bytes.len() / PACKET_BYTES - self.at;
        for index in self.at..self.at + left.min(DATAGRAM_PACKETS) {
            let start = index * PACKET_BYTES;
            out.extend_from_slice(&self.bytes[start..start + PACKET_BYTES]);
            let written = out.len() - PACKET_BYTES;
            self.rewrite(&mut out[written..]);
        }
        self.at += left.min(DATAGRAM_PACKETS);
        if self.at == self.bytes.len() / PACKET_BYTES {
            self.at = 0;
            self.rounds += 1;
            for (pid, step) in self.clip.counter_steps() {
                let shift = &mut self.shifts[usize::from(pid) % PIDS];
                *shift = (*shift + step) & 0x0f;
            }
        }
        due
    }

    /// Moves a packet of the clip into the current round.
    fn rewrite(&self, bytes: &mut [u8]) {
        let Ok(packet) = Packet::new_checked(bytes) else { return };
        let shift = self.shifts[usize::from(packet.pid()) % PIDS];
        let (continuity, pcr) = (packet.continuity() + shift, packet.adaptation().pcr());
        let pes =
            (packet.unit_start() && self.clip.is_elementary(packet.pid())).then(|| packet.payload_offset());
        // What overflows is a multiple of the modulus.
        let passed = self.rounds.wrapping_mul(self.clip.ticks()) % PTS_MODULUS;
        if let Some(start) = pes {
            // The clip was checked: where there is a whole header, it can be rewritten.
            let _ = rewrite_time_stamps(&mut bytes[start..], |stamp| pts_after(stamp, passed));
        }
        let Some(bytes) = bytes.first_chunk_mut() else { return };
        set_continuity(bytes, continuity);
        if let Some(pcr) = pcr {
            set_pcr(bytes, pcr_after(pcr, passed * 300));
        }
    }
}

/// `ticks` ticks of 27 MHz.
fn ticks(ticks: u64) -> Duration {
    let nanos = ticks % PCR_HZ * 1_000 / (PCR_HZ / 1_000_000);
    Duration::from_secs(ticks / PCR_HZ) + Duration::from_nanos(nanos)
}

#[cfg(test)]
mod tests;
