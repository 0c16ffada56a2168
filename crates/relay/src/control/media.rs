//! What comes in from a stream's source goes into the branches, and is put down for replicas.

use outflow_graph::Message;
use outflow_media::{Format, Time};
use outflow_packet::receive::TurnBy;
use outflow_packet::{DropReason, Incoming, Packet, Parsed, Receive};
use outflow_ts::{Found, PACKET_BYTES};

use super::handed::Handed;
use super::intake::Intake;
use super::output::Event;
use super::state::State;
use super::stream::Stream;

impl Stream {
    /// A source begins its turn, with packets of this format.
    ///
    /// If receivers cannot be served on with it, those of RTP end; the others wait for its first
    /// key frame.
    pub fn handle_source(&mut self, now: Time, declared: Format) {
        let format = Receive::effective(&declared);
        let State { intake, out, sharing, .. } = &mut self.state;
        match (intake, &mut out.origin) {
            (Some(intake), Some(origin)) if *origin.format() == format => {
                let by = if out.options.is_relayed { TurnBy::Relay } else { TurnBy::Source };
                intake.restart(&declared, &format, by);
                origin.restart();
                (0..origin.tracks()).for_each(|track| sharing.hand_clock(out.clock(track)));
                self.break_off();
                self.state.out.tell_services(now, Message::Break);
            }
            (_, origin) => {
                let turn = origin.as_ref().map_or(0, |origin| origin.turn() + 1);
                let intake = Intake::new(&declared, &format, out.options.ssrc);
                self.change_format(now, format, turn, Some(intake));
            }
        }
    }

    /// The packets from now on are of this format, and made by this, if they are not handed over.
    pub(super) fn change_format(&mut self, now: Time, format: Format, turn: u64, intake: Option<Intake>) {
        self.state.intake = intake;
        self.state.out.change_format(now, format.clone(), turn);
        self.state.sharing.hand(Handed::Format { format, turn });
    }

    /// The source's turn is over.
    pub fn handle_source_end(&mut self, now: Time) {
        if self.state.source.is_up() {
            self.source_went_away(now);
        }
    }

    /// A packet came in: RTP with its header, or whole transport stream packets. Returns whether it
    /// was taken; if not, it is counted.
    pub fn handle_media(&mut self, now: Time, track: u8, incoming: Incoming) -> bool {
        let mut found = core::mem::take(&mut self.state.out.found);
        let taken = self.take(now, track, incoming, &mut found);
        found.clear();
        self.state.out.found = found;
        if let Err(reason) = taken {
            self.count_drop(reason, 1);
        }
        taken.is_ok()
    }

    /// The source's RTCP sender report of a track came in.
    pub fn handle_sender_report(&mut self, now: Time, track: u8, ntp: u64, rtp: u32) {
        let State { intake: Some(intake), out, sharing, .. } = &mut self.state else { return };
        let Some(origin) = &mut out.origin else { return };
        let Format::Rtp(tracks) = origin.format() else { return };
        // What is encrypted cannot be told from what it says (RFC 3711, section 3.4).
        if tracks.get(usize::from(track)).is_some_and(|track| track.codec.is_srtp()) {
            return;
        }
        let delta = intake.timestamp_delta(track);
        let Some(goes_by_another) = origin.source_report(now, track, (ntp, rtp, delta)) else { return };
        if goes_by_another {
            out.tell_clock(now, track);
        }
        sharing.hand_clock(out.clock(track));
    }

    /// Counts packets that the driver dropped before they came here.
    pub fn count_drop(&mut self, reason: DropReason, packets: u64) {
        self.state.source.drop(reason, packets);
    }

    pub(super) fn source_went_away(&mut self, now: Time) {
        let State { source, out, sharing, .. } = &mut self.state;
        let silent = now.since(source.last_packet());
        source.went_away(now);
        out.events.push_back(Event::SourceAway { silent });
        sharing.hand(Handed::Away);
    }

    /// What comes from now on does not go on from what came.
    pub(super) fn break_off(&mut self) {
        self.state.out.branches.break_off();
        self.state.sharing.hand(Handed::Break);
    }

    /// Puts a packet into the branches, and down for replicas.
    pub(super) fn spread(&mut self, now: Time, parsed: Parsed) {
        let State { source, out, sharing, feedback, .. } = &mut self.state;
        sharing.hand_packet(&parsed, &out.found);
        if out.spread(now, parsed) {
            source.key_frame(now);
            feedback.key_frame_came(0);
        }
    }

    fn take(
        &mut self,
        now: Time,
        track: u8,
        incoming: Incoming,
        found: &mut Vec<Found>,
    ) -> Result<(), DropReason> {
        let is_back = self.state.source.is_away();
        let State { intake, out, .. } = &mut self.state;
        let (Some(origin), Some(intake)) = (&out.origin, intake) else { return Err(DropReason::NoFormat) };
        let (format, least) = (origin.format(), out.options.layers);
        let is_ts = *format == Format::Ts;
        let came = intake.take(now, (track, incoming), (format, is_back, least), found)?;
        if self.state.source.packet(now, came.bytes.len()) {
            self.state.out.events.push_back(Event::SourceUp);
            if !came.goes_on {
                self.break_off();
            }
            if is_back {
                self.announce_discontinuity(now, &came.bytes);
            }
        }
        let Some(intake) = &mut self.state.intake else { return Err(DropReason::NoFormat) };
        let track = came.track;
        let parsed = intake.finish(now, came);
        let delta = intake.timestamp_delta(track);
        let Parsed { packet, rtp_header, .. } = &parsed;
        self.note(now, track, if is_ts { rtp_header } else { &packet.bytes }, delta);
        core::mem::swap(&mut self.state.out.found, found);
        self.spread(now, parsed);
        core::mem::swap(&mut self.state.out.found, found);
        Ok(())
    }

    fn note(&mut self, now: Time, track: u8, header: &[u8], delta: u32) {
        let State { out, sharing, .. } = &mut self.state;
        let Some(noted) = out.origin.as_mut().map(|origin| origin.note(now, track, header, delta)) else {
            return;
        };
        if noted.clock {
            out.tell_clock(now, track);
        }
        if noted.clock || noted.ssrc {
            sharing.hand_clock(out.clock(track));
        }
    }

    /// A transport stream went on after a break: its decoders are told so.
    fn announce_discontinuity(&mut self, now: Time, next: &[u8]) {
        let announced = self.state.intake.as_mut().and_then(|intake| intake.discontinuity(now, next));
        let Some(announced) = announced else { return };
        // Its reader is not told of it.
        let Packet { bytes, tag, .. } = &announced.packet;
        self.state.out.found = vec![Found::put_in(tag.content); bytes.len() / PACKET_BYTES];
        self.spread(now, announced);
    }
}
