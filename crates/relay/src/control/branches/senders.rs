//! The senders of a branch: of each track, the SSRC and the clock.

use outflow_graph::{Message, TrackTime};
use outflow_media::{Format, Time, Track};
use outflow_packet::limits::TRACKS_MAX;
use outflow_packet::{Anchor, Parsed, ReportClock};

/// The sender of a track of a branch, and its clock.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sender {
    pub(super) clock: ReportClock,
    /// SSRC of the newest packet; 0 before the first.
    pub(super) ssrc: u32,
}

/// Those of all tracks, as far as anything was said of them.
#[derive(Debug, Default)]
pub(super) struct Senders {
    tracks: Vec<Sender>,
}

impl Senders {
    /// That of a track.
    pub(super) fn get(&self, track: u8) -> Option<Sender> {
        self.tracks.get(usize::from(track)).copied()
    }

    /// Notes what a packet says of its sender, in a branch that carries this.
    pub(super) fn note(&mut self, parsed: &Parsed, format: Option<&Format>, ntp_at_zero: u64) {
        let Parsed { packet, rtp_header, .. } = parsed;
        let Some([_, _, _, _, t0, t1, t2, t3, s0, s1, s2, s3]) = packet.rtp_header(rtp_header).copied()
        else {
            return;
        };
        let sender = self.sender(packet.tag.track, format, ntp_at_zero);
        sender.ssrc = u32::from_be_bytes([s0, s1, s2, s3]);
        // It has a clock of its own only where none was told: that of a transport stream.
        if sender.clock.anchor().is_none() {
            sender.clock.packet(packet.arrived, u32::from_be_bytes([t0, t1, t2, t3]), 0);
        }
    }

    /// Takes what makes the tracks knows of their clocks, if it does: a moment, and the timestamp of a track then.
    pub(super) fn agree(
        &mut self,
        clock: impl Fn(u8) -> Option<(Time, u32)>,
        format: Option<&Format>,
        ntp_at_zero: u64,
    ) {
        for track in 0..format.map_or(0, Format::tracks).min(TRACKS_MAX) as u8 {
            let Some((at, rtp)) = clock(track) else { continue };
            self.sender(track, format, ntp_at_zero).clock.agree(at, rtp);
        }
    }

    /// Takes what the source tells.
    pub(super) fn told(&mut self, message: Message, format: Option<&Format>, ntp_at_zero: u64) {
        match message {
            Message::Clock(TrackTime { track, ntp, rtp, at, told }) => {
                self.sender(track, format, ntp_at_zero).clock.set(Anchor { at, ntp, rtp }, told);
            }
            Message::Break => self.tracks.iter_mut().for_each(|sender| sender.clock.restart()),
        }
    }

    fn sender(&mut self, track: u8, format: Option<&Format>, ntp_at_zero: u64) -> &mut Sender {
        let at = usize::from(track);
        while self.tracks.len() <= at {
            let track = self.tracks.len() as u8;
            let rate = format.map_or(Track::mp2t().clock_rate, |format| format.clock_rate(track));
            let clock = ReportClock::new(rate, ntp_at_zero);
            self.tracks.push(Sender { clock, ssrc: 0 });
        }
        &mut self.tracks[at]
    }
}
