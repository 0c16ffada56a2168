//! What comes in from a stream's source: received, understood, and put into the branches.

use outflow_graph::Message;
use outflow_media::{Content, Format, Tag, Time};
use outflow_packet::receive::TurnBy;
use outflow_packet::{DropReason, Incoming, Packet, Parsed, Parser, Receive};
use outflow_ts::{Found, PACKET_BYTES};

use super::output::Event;
use super::share::Handed;
use super::state::State;
use super::stream::Stream;

/// What makes packets out of what comes in.
#[derive(Debug)]
pub(super) struct Intake {
    pub(super) receive: Receive,
    pub(super) parser: Parser,
}

/// A packet of a stream that has `least` layers, though the others may not come: none is new when it comes.
fn with_layers(tag: &mut Tag, least: u8) {
    if tag.layers <= least && tag.layers > 0 {
        (tag.layers, tag.grown) = (least, 0);
    }
}

impl Stream {
    /// A source begins its turn, with packets of this format.
    ///
    /// If receivers cannot be served on with it, those of RTP end; the others wait for its first
    /// key frame.
    pub fn handle_source(&mut self, now: Time, declared: Format) {
        let format = Receive::effective(&declared);
        let State { intake, out, .. } = &mut self.state;
        match (intake, &mut out.origin) {
            (Some(intake), Some(origin)) if *origin.format() == format => {
                let by = if out.options.is_relayed { TurnBy::Relay } else { TurnBy::Source };
                intake.receive.restart(&declared, by);
                intake.parser.restart(&format);
                origin.restart();
                self.hand_clocks();
                self.break_off();
                self.state.out.tell_services(now, Message::Break);
            }
            (_, origin) => {
                let turn = origin.as_ref().map_or(0, |origin| origin.turn() + 1);
                let receive = Receive::new(&declared, out.options.ssrc);
                let intake = Intake { receive, parser: Parser::new(&format) };
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
        let State { intake: Some(intake), out, .. } = &mut self.state else { return };
        let Some(origin) = &mut out.origin else { return };
        let Format::Rtp(tracks) = origin.format() else { return };
        // What is encrypted cannot be told from what it says (RFC 3711, section 3.4).
        if tracks.get(usize::from(track)).is_some_and(|track| track.codec.is_srtp()) {
            return;
        }
        let delta = intake.receive.timestamp_delta(track);
        let Some(goes_by_another) = origin.source_report(now, track, (ntp, rtp, delta)) else { return };
        if goes_by_another {
            out.tell_clock(now, track);
        }
        self.hand_clock(track);
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
    pub(super) fn spread(&mut self, now: Time, understood: Parsed) {
        let State { source, out, sharing, feedback, .. } = &mut self.state;
        sharing.hand_packet(&understood);
        if out.spread(now, understood) {
            source.key_frame(now);
            feedback.key_frame_came();
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
        let least = self.state.out.options.layers;
        let (format, intake) = self.intake().ok_or(DropReason::NoFormat)?;
        let bytes = intake.receive.take(now, track, incoming)?;
        let track = if matches!(format, Format::Rtp(_)) { track } else { 0 };
        let goes_on = !is_back || intake.parser.resume(&bytes);
        let mut tag = intake.parser.tag_into(track, &bytes, found)?;
        if track == format.main_track() {
            with_layers(&mut tag, least);
        }
        let came = self.state.source.packet(now, bytes.len());
        if came {
            self.state.out.events.push_back(Event::SourceUp);
            if !goes_on {
                self.break_off();
            }
            if is_back {
                self.announce_discontinuity(now, &bytes);
            }
        }
        // Made last: its sequence number follows that of a discontinuity announced before.
        let (format, intake) = self.intake().ok_or(DropReason::NoFormat)?;
        let rtp_header = intake.receive.rtp_header(now);
        let delta = intake.receive.timestamp_delta(track);
        let preamble = if tag.key { intake.parser.preamble() } else { None };
        let header = if *format == Format::Ts { &rtp_header[..] } else { &bytes[..] };
        self.note(now, track, header, delta);
        core::mem::swap(&mut self.state.out.found, found);
        self.spread(now, Parsed { packet: Packet { bytes, tag, arrived: now }, rtp_header, preamble });
        core::mem::swap(&mut self.state.out.found, found);
        Ok(())
    }

    fn intake(&mut self) -> Option<(&Format, &mut Intake)> {
        let State { intake, out, .. } = &mut self.state;
        Some((out.origin.as_ref()?.format(), intake.as_mut()?))
    }

    fn note(&mut self, now: Time, track: u8, header: &[u8], delta: u32) {
        let out = &mut self.state.out;
        let Some(noted) = out.origin.as_mut().map(|origin| origin.note(now, track, header, delta)) else {
            return;
        };
        if noted.clock {
            out.tell_clock(now, track);
        }
        if noted.clock || noted.ssrc {
            self.hand_clock(track);
        }
    }

    /// A transport stream went on after a break: its decoders are told so.
    fn announce_discontinuity(&mut self, now: Time, next: &[u8]) {
        let Some((_, intake)) = self.intake() else { return };
        let Some(bytes) = intake.parser.discontinuity(next) else { return };
        let rtp_header = intake.receive.rtp_header(now);
        let tag = Tag { content: Content::Tables, ..Tag::default() };
        // Its reader is not told of it.
        let packets = bytes.len() / PACKET_BYTES;
        let packet = Packet { bytes, tag, arrived: now };
        self.state.out.found = vec![Found::put_in(tag.content); packets];
        self.spread(now, Parsed { packet, rtp_header, preamble: None });
    }
}
