//! What comes in from a stream's source: received, understood, and put into the branches.

use outflow_media::{Content, Format, Tag, Time};

use super::output::Event;
use super::share::Understood;
use super::stream::Stream;
use crate::buffer::Packet;
use crate::drops::DropReason;
use crate::graph::Message;
use crate::receive::{Incoming, Receive, TurnBy};
use crate::send::ReportClock;
use crate::understand::Understand;

/// What the stream knows of what it carries.
#[derive(Debug)]
pub(super) struct Input {
    /// What receivers get.
    pub(super) format: Format,
    /// How often the format has changed: one that was in force before is still another one.
    pub(super) turn: u64,
    /// `None` in a replica, which is handed what came out of its home's.
    pub(super) intake: Option<Intake>,
    pub(super) clocks: Vec<ReportClock>,
    pub(super) ssrcs: Vec<u32>,
}

/// What makes packets out of what comes in.
#[derive(Debug)]
pub(super) struct Intake {
    pub(super) receive: Receive,
    pub(super) understand: Understand,
}

impl Input {
    /// Everything from its beginning. Clocks and SSRCs are known with the first packets.
    pub(super) fn new(
        format: Format,
        turn: u64,
        intake: Option<Intake>,
        (ssrc, ntp_at_zero): (u32, u64),
    ) -> Self {
        let tracks = format.tracks();
        let clock = |track: usize| ReportClock::new(format.clock_rate(track as u8), ntp_at_zero);
        let clocks = (0..tracks).map(clock).collect();
        Input { format, turn, intake, clocks, ssrcs: vec![ssrc; tracks] }
    }

    /// Notes what a packet says of its track's clock. Returns whether that goes by something else now.
    fn note(&mut self, now: Time, track: u8, header: &[u8], delta: u32) -> bool {
        let [_, _, _, _, t0, t1, t2, t3, s0, s1, s2, s3, ..] = *header else { return false };
        self.ssrcs[usize::from(track)] = u32::from_be_bytes([s0, s1, s2, s3]);
        self.clocks[usize::from(track)].packet(now, u32::from_be_bytes([t0, t1, t2, t3]), delta)
    }
}

/// A packet of a stream that has so many layers, though the others may not come: none is new when it comes.
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
        match &mut self.input {
            Some(Input { format: known, intake: Some(intake), clocks, .. }) if *known == format => {
                let by = if self.options.is_relayed { TurnBy::Relay } else { TurnBy::Source };
                intake.receive.restart(&declared, by);
                intake.understand.restart(&format);
                clocks.iter_mut().for_each(ReportClock::restart);
                self.hand_clocks();
                self.break_off();
                self.tell_services(now, Message::Break);
            }
            input => {
                let turn = input.as_ref().map_or(0, |input| input.turn + 1);
                let receive = Receive::new(&declared, self.options.ssrc);
                let intake = Intake { receive, understand: Understand::new(&format) };
                self.change_format(now, format, turn, Some(intake));
            }
        }
    }

    /// The source's turn is over.
    pub fn handle_source_end(&mut self, now: Time) {
        if self.source.up {
            self.source_went_away(now);
        }
    }

    /// A packet came in: RTP with its header, or whole transport stream packets. Returns whether it
    /// was taken; if not, it is counted.
    pub fn handle_media(&mut self, now: Time, track: u8, incoming: Incoming) -> bool {
        let taken = self.take(now, track, incoming);
        if let Err(reason) = taken {
            self.count_drop(reason, 1);
        }
        taken.is_ok()
    }

    /// The source's RTCP sender report of a track came in.
    pub fn handle_sender_report(&mut self, now: Time, track: u8, ntp: u64, rtp: u32) {
        let Some(Input { format: Format::Rtp(tracks), intake: Some(intake), clocks, .. }) = &mut self.input
        else {
            return;
        };
        // What is encrypted cannot be told from what it says (RFC 3711, section 3.4).
        if tracks.get(usize::from(track)).is_some_and(|track| track.codec.is_srtp()) {
            return;
        }
        let delta = intake.receive.timestamp_delta(track);
        let Some(clock) = clocks.get_mut(usize::from(track)) else { return };
        if clock.source_report(now, ntp, rtp, delta).is_some() {
            self.tell_clock(now, track);
        }
        self.hand_clock(track);
    }

    /// Counts packets that the driver dropped before they came here.
    pub fn count_drop(&mut self, reason: DropReason, packets: u64) {
        self.source.counters.drops.add(reason, packets);
    }

    pub(super) fn source_went_away(&mut self, now: Time) {
        let silent = now.since(self.source.last_packet);
        self.source.went_away(now);
        self.events.push_back(Event::SourceAway { silent });
        self.hand_away();
    }

    /// What comes from now on does not go on from what came.
    pub(super) fn break_off(&mut self) {
        self.branches.iter_mut().for_each(|branch| branch.ring_mut().break_off());
        self.hand_break();
    }

    fn take(&mut self, now: Time, track: u8, incoming: Incoming) -> Result<(), DropReason> {
        let is_back = !self.source.up && self.source.counters.starts > 0;
        let least = self.options.layers;
        let (format, intake) = self.intake().ok_or(DropReason::NoFormat)?;
        let bytes = intake.receive.take(now, track, incoming)?;
        let track = if matches!(format, Format::Rtp(_)) { track } else { 0 };
        let goes_on = !is_back || intake.understand.resume(&bytes);
        let mut tag = intake.understand.tag(track, &bytes)?;
        if track == format.main_track() {
            with_layers(&mut tag, least);
        }
        let came = self.source.packet(now, bytes.len());
        if came {
            self.events.push_back(Event::SourceUp);
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
        let preamble = if tag.key { intake.understand.preamble() } else { None };
        let header = if *format == Format::Ts { &rtp_header[..] } else { &bytes[..] };
        self.note(now, track, header, delta);
        self.spread(now, Understood { packet: Packet { bytes, tag, arrived: now }, rtp_header, preamble });
        Ok(())
    }

    fn intake(&mut self) -> Option<(&Format, &mut Intake)> {
        let input = self.input.as_mut()?;
        Some((&input.format, input.intake.as_mut()?))
    }

    fn note(&mut self, now: Time, track: u8, header: &[u8], delta: u32) {
        let Some(input) = &mut self.input else { return };
        let at = usize::from(track);
        let ssrc = input.ssrcs[at];
        let goes_by_another = input.note(now, track, header, delta);
        let is_another = input.ssrcs[at] != ssrc;
        if goes_by_another {
            self.tell_clock(now, track);
        }
        if goes_by_another || is_another {
            self.hand_clock(track);
        }
    }

    /// A transport stream went on after a break: its decoders are told so.
    fn announce_discontinuity(&mut self, now: Time, next: &[u8]) {
        let Some((_, intake)) = self.intake() else { return };
        let Some(bytes) = intake.understand.discontinuity(next) else { return };
        let rtp_header = intake.receive.rtp_header(now);
        let tag = Tag { content: Content::Tables, ..Tag::default() };
        let packet = Packet { bytes, tag, arrived: now };
        self.spread(now, Understood { packet, rtp_header, preamble: None });
    }
}
