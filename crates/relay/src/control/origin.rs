//! What a stream knows of what it carries, and of its senders.

use outflow_media::{Format, Time};
use outflow_packet::ReportClock;

use super::handed::TrackClock;

/// The format of a stream, and the senders of its tracks.
#[derive(Debug)]
pub(super) struct Origin {
    /// What receivers get.
    format: Format,
    /// How often the format has changed: one that was in force before is still another one.
    turn: u64,
    clocks: Vec<ReportClock>,
    ssrcs: Vec<u32>,
}

/// What a packet changes of what is known of its sender.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Noted {
    /// Its clock goes by something else now.
    pub(super) clock: bool,
    /// It has another SSRC.
    pub(super) ssrc: bool,
}

impl Origin {
    /// Everything from its beginning. Clocks and SSRCs are known with the first packets.
    pub(super) fn new(format: Format, turn: u64, (ssrc, ntp_at_zero): (u32, u64)) -> Self {
        let tracks = format.tracks();
        let clock = |track: usize| ReportClock::new(format.clock_rate(track as u8), ntp_at_zero);
        let clocks = (0..tracks).map(clock).collect();
        Origin { format, turn, clocks, ssrcs: vec![ssrc; tracks] }
    }

    pub(super) fn format(&self) -> &Format {
        &self.format
    }

    pub(super) fn turn(&self) -> u64 {
        self.turn
    }

    pub(super) fn tracks(&self) -> u8 {
        self.clocks.len() as u8
    }

    pub(super) fn ssrc(&self, track: u8) -> Option<u32> {
        self.ssrcs.get(usize::from(track)).copied()
    }

    /// The clock of a track's sender, and its SSRC.
    pub(super) fn sender(&self, track: u8) -> Option<(ReportClock, u32)> {
        Some((*self.clocks.get(usize::from(track))?, self.ssrc(track)?))
    }

    /// Notes what a packet says of its track's clock.
    pub(super) fn note(&mut self, now: Time, track: u8, header: &[u8], delta: u32) -> Noted {
        let [_, _, _, _, t0, t1, t2, t3, s0, s1, s2, s3, ..] = *header else { return Noted::default() };
        let ssrc = u32::from_be_bytes([s0, s1, s2, s3]);
        let before = core::mem::replace(&mut self.ssrcs[usize::from(track)], ssrc);
        let timestamp = u32::from_be_bytes([t0, t1, t2, t3]);
        let clock = self.clocks[usize::from(track)].packet(now, timestamp, delta);
        Noted { clock, ssrc: before != ssrc }
    }

    /// The sender report of a track came in. Returns whether there is such a track, and whether its clock goes
    /// by something else now.
    pub(super) fn source_report(
        &mut self,
        now: Time,
        track: u8,
        (ntp, rtp, delta): (u64, u32, u32),
    ) -> Option<bool> {
        let clock = self.clocks.get_mut(usize::from(track))?;
        Some(clock.source_report(now, ntp, rtp, delta).is_some())
    }

    /// The source begins again.
    pub(super) fn restart(&mut self) {
        self.clocks.iter_mut().for_each(ReportClock::restart);
    }

    /// Sets the SSRC of each track, from the first on.
    pub(super) fn set_ssrcs(&mut self, first: u32) {
        for (track, ssrc) in (0..).zip(&mut self.ssrcs) {
            *ssrc = first.wrapping_add(track);
        }
    }

    /// Sets the clock of a track. Returns whether there is one.
    pub(super) fn set_clock(&mut self, track: u8, clock: ReportClock) -> bool {
        let known = self.clocks.get_mut(usize::from(track));
        known.map(|known| *known = clock).is_some()
    }

    /// Takes what the stream's owner says of a sender. Returns whether there is such a track.
    pub(super) fn set_sender(&mut self, told: &TrackClock) -> bool {
        let is_track = self.set_clock(told.track, told.clock);
        self.ssrcs.get_mut(usize::from(told.track)).into_iter().for_each(|ssrc| *ssrc = told.ssrc);
        is_track
    }
}
