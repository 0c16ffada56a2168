//! Renditions: several sources that carry the same in different quality (simulcast). Each is a stream of its
//! own, with a home, where its packets are received and understood; the stream that has it as a rendition is
//! handed them, as a replica is.
//!
//! Each rendition has a branch, and is a level: 1 is the first. All that is told of a receiver's RTP session
//! (SSRC, payload type, timestamps) is the same in all of them, so that a receiver goes from one to another
//! between two pictures, at a key frame: see [`switch`]. Sound, and whatever else there is beside the main
//! track, is that of one rendition, the *reference*: the first that had a format.

mod simulcast;
mod switch;
#[cfg(test)]
mod tests;
mod timeline;

use core::mem::discriminant;

use bytes::Bytes;
use outflow_media::{Format, Kind, Tag, Time, Track};
use outflow_packet::receive::RtpWrap;
use outflow_packet::{DropReason, Level, Parsed};
use outflow_rtp::payload::parameter_sets;
use outflow_rtp::{HEADER, set_payload_type, set_ssrc, set_timestamp};

use super::branches::ORIGINAL;
use super::distribution::Distribution;
use super::output::Event;
use super::share::{Handed, TrackClock};
use super::state::State;
use super::stream::{Stream, StreamOptions};
use crate::limits::RENDITION_AWAITED;
pub(in crate::control) use simulcast::Simulcast;
pub(in crate::control) use switch::Pushed;
use switch::Switch;
use timeline::{Stamp, Timeline};

/// The renditions of a stream.
#[derive(Debug)]
pub(in crate::control) struct Renditions {
    each: Vec<Rendition>,
    /// The one whose format and clocks are the stream's.
    reference: usize,
    timeline: Timeline,
    /// What the clock of its main track was last told to be.
    clock: Option<TrackClock>,
    switch: Switch,
    /// When the first packet of any came.
    began: Option<Time>,
}

/// One of them.
#[derive(Debug, Default)]
struct Rendition {
    /// What it carries; `None` before it ever had a source.
    format: Option<Format>,
    /// Its packets come in.
    is_up: bool,
    /// It is not waited for: it went away, or did not come with the others.
    is_missed: bool,
    /// How its packets become the stream's.
    fit: Option<Fit>,
}

/// What is changed in the packets of a rendition.
#[derive(Debug)]
enum Fit {
    /// RTP: its main track is the stream's.
    Rtp {
        /// Its number in the rendition.
        main: u8,
        /// Parameter sets that a receiver needs which was told those of another rendition.
        preamble: Option<Bytes>,
    },
    /// MPEG-TS, with the RTP headers that it has where it goes by RTP.
    Ts(RtpWrap),
}

impl Renditions {
    pub(in crate::control) fn new(count: usize) -> Self {
        Renditions {
            each: core::iter::repeat_with(Rendition::default).take(count).collect(),
            reference: 0,
            timeline: Timeline::default(),
            clock: None,
            switch: Switch::default(),
            began: None,
        }
    }

    /// Some have come or gone: all sinks are checked.
    fn changed(&mut self) {
        self.switch.look_at_all();
    }

    /// Those that have not come are not waited for any longer.
    fn miss(&mut self, now: Time) {
        if self.began.is_none_or(|began| now.since(began) < RENDITION_AWAITED) {
            return;
        }
        let mut late = self.each.iter_mut().filter(|each| !each.is_up && !each.is_missed).peekable();
        let is_any = late.peek().is_some();
        late.for_each(|rendition| rendition.is_missed = true);
        if is_any {
            self.changed();
        }
    }

    /// How many there are.
    pub(in crate::control) fn count(&self) -> usize {
        self.each.len()
    }

    /// The rendition for a sink that asks for a level: that of this number, or, as long as its source is
    /// away, the next lower one, or else the next better.
    pub(in crate::control) fn of_level(&self, level: Level) -> usize {
        let own = usize::from(level.number() - 1).min(self.each.len().saturating_sub(1));
        let serves = |index: &usize| !self.each[*index].is_passed_over();
        let lower = (own..self.each.len()).find(serves);
        lower.or_else(|| (0..own).rev().find(serves)).unwrap_or(own)
    }

    /// What is wrong with those that cannot be used, and how many are there, in words.
    pub(in crate::control) fn describe(&self) -> String {
        let up = self.each.iter().filter(|rendition| rendition.is_up).count();
        let unfit = (1..).zip(&self.each).filter(|(_, each)| each.format.is_some() && each.fit.is_none());
        let unfit: Vec<String> =
            unfit.map(|(number, _)| format!("number {number} has another codec")).collect();
        let all = self.each.len();
        let there = format!("{up} of {all} renditions");
        if unfit.is_empty() { there } else { format!("{there}; {}", unfit.join(", ")) }
    }
}

impl Rendition {
    /// The stream's format for a sink that receives this rendition: what a decoder of its main track has to
    /// know is its own.
    fn as_of(&self, stream: &Format) -> Option<Format> {
        let (Some(Fit::Rtp { main, .. }), Format::Rtp(tracks)) = (&self.fit, stream) else { return None };
        let own = self.format.as_ref()?.track(*main)?;
        let mut tracks = tracks.clone();
        let track = tracks.get_mut(usize::from(stream.main_track()))?;
        *track = Track { payload_type: track.payload_type, ..own.clone() };
        Some(Format::Rtp(tracks))
    }

    /// Whether sinks that want it are served by others.
    fn is_passed_over(&self) -> bool {
        self.is_missed || (self.format.is_some() && self.fit.is_none())
    }
}

impl Fit {
    /// How packets of a rendition become packets of the stream; `None` if they cannot.
    fn new(format: &Format, stream: &Format, ssrc: u32) -> Option<Self> {
        match (format, stream) {
            (Format::Ts, Format::Ts) => Some(Fit::Ts(RtpWrap::new(ssrc))),
            (Format::Rtp(_), Format::Rtp(_)) => {
                let main = format.main_track();
                let (own, theirs) = (format.track(main)?, stream.track(stream.main_track())?);
                let is_same = |a: &Track, b: &Track| {
                    discriminant(&a.codec) == discriminant(&b.codec)
                        && a.clock_rate == b.clock_rate
                        && a.extensions == b.extensions
                };
                let fits = is_same(own, theirs) && !own.codec.is_srtp();
                let preamble = parameter_sets(&own.codec).map(Bytes::from);
                fits.then_some(Fit::Rtp { main, preamble })
            }
            _ => None,
        }
    }
}

impl Distribution {
    /// How many renditions there are; 0 if the stream has a source of its own.
    pub(in crate::control) fn rendition_count(&self) -> usize {
        self.renditions.as_ref().map_or(0, |renditions| renditions.count())
    }
}

impl Stream {
    /// A stream whose levels are `count` renditions, which are handed to it: see
    /// [`Stream::handle_rendition`].
    pub fn of_renditions(options: StreamOptions, count: usize) -> Self {
        let mut stream = Stream::new(options);
        stream.state.out.renditions = Some(Box::new(Renditions::new(count)));
        stream
    }

    /// Takes what the home of a rendition hands over. It begins with that stream's
    /// [`Stream::introduction`].
    pub fn handle_rendition(&mut self, now: Time, index: usize, handed: Handed) {
        let State { out, .. } = &mut self.state;
        let Some(renditions) = out.renditions.as_mut().filter(|all| index < all.count()) else { return };
        match handed {
            Handed::Format { format, .. } => self.fit(now, index, format),
            Handed::Clock(clock) if index == renditions.reference => self.take_reference_clock(now, clock),
            Handed::Clock(_) => {}
            Handed::Packet(understood) => self.take_of_rendition(now, index, understood),
            Handed::Away => self.rendition_went_away(now, index),
            Handed::Break => {
                out.branches.get_mut(index).into_iter().for_each(|branch| branch.ring_mut().break_off());
            }
            // Receivers see by its sequence numbers that something is missing.
            Handed::Missed { packets, .. } => self.count_drop(DropReason::HandOverFull, packets),
        }
    }

    /// A rendition carries this from now on.
    fn fit(&mut self, now: Time, index: usize, format: Format) {
        let out = &mut self.state.out;
        let Some(renditions) = &mut out.renditions else { return };
        renditions.each[index].format = Some(format.clone());
        let known = out.origin.as_ref();
        let is_known = known.is_some_and(|known| *known.format() == format);
        if known.is_none() || (index == renditions.reference && !is_known) {
            renditions.reference = index;
            let rate = format.clock_rate(format.main_track());
            renditions.timeline = Timeline::new(rate, renditions.count());
            let turn = known.map_or(0, |known| known.turn() + 1);
            self.change_format(now, format, turn, None);
        }
        let out = &mut self.state.out;
        let Distribution { renditions: Some(renditions), origin: Some(origin), options, .. } = out else {
            return;
        };
        origin.set_ssrcs(options.ssrc);
        for rendition in &mut renditions.each {
            let fit = |format: &Format| Fit::new(format, origin.format(), options.ssrc);
            rendition.fit = rendition.format.as_ref().and_then(fit);
        }
        let formats = renditions.each.iter().map(|rendition| rendition.as_of(origin.format()));
        let formats: Vec<_> = formats.collect();
        for (index, format) in formats.into_iter().enumerate() {
            out.set_branch_format(now, index, format);
        }
        out.renditions.iter_mut().for_each(|all| all.changed());
    }

    /// The clocks of the reference are the stream's.
    fn take_reference_clock(&mut self, now: Time, told: TrackClock) {
        let out = &mut self.state.out;
        let (Some(renditions), Some(origin)) = (&mut out.renditions, &mut out.origin) else { return };
        let Renditions { timeline, reference, clock: kept, .. } = &mut **renditions;
        let mut clock = told.clock;
        if told.track == origin.format().main_track() {
            *kept = Some(told);
            // It is told again when packets have shown how far it is from the others.
            let Some(shift) = timeline.shift_of(*reference) else { return };
            clock = clock.later(shift);
        }
        if origin.set_clock(told.track, clock) {
            switch::tell_clock(out, now, told.track);
        }
    }

    fn rendition_went_away(&mut self, now: Time, index: usize) {
        let out = &mut self.state.out;
        let Some(renditions) = &mut out.renditions else { return };
        (renditions.each[index].is_up, renditions.each[index].is_missed) = (false, true);
        let is_last = renditions.each.iter().all(|rendition| !rendition.is_up);
        Simulcast::at(index).pauses(out, index);
        out.renditions.iter_mut().for_each(|all| all.changed());
        if is_last && self.state.source.is_up() {
            self.source_went_away(now);
        }
    }

    fn take_of_rendition(&mut self, now: Time, index: usize, understood: Parsed) {
        let State { source, out, .. } = &mut self.state;
        let (Some(renditions), Some(origin)) = (&mut out.renditions, &out.origin) else {
            return self.count_drop(DropReason::NoFormat, 1);
        };
        let Renditions { each, timeline, reference, began, .. } = &mut **renditions;
        let (rendition, is_reference) = (&mut each[index], index == *reference);
        let Some(fit) = &mut rendition.fit else { return self.count_drop(DropReason::Unfit, 1) };
        let main_track = origin.format().main_track();
        let (understood, is_main) = match fit {
            Fit::Ts(wrap) => {
                let rtp_header = wrap.next(understood.packet.arrived);
                (Some(Parsed { rtp_header, ..understood }), true)
            }
            Fit::Rtp { main, preamble } if understood.packet.tag.track == *main => {
                let Some(track) = origin.format().track(main_track) else { return };
                let ssrc = origin.ssrc(main_track).unwrap_or_default();
                let shift = timeline.shift(index, stamp(&understood));
                let preamble = preamble.clone().filter(|_| understood.packet.tag.key);
                let taken = (main_track, track.payload_type, ssrc, shift);
                (relabel(Parsed { preamble, ..understood }, taken), true)
            }
            Fit::Rtp { .. } if is_reference => {
                let track = understood.packet.tag.track;
                let ssrc = origin.ssrc(track).unwrap_or_default();
                let payload_type = origin.format().track(track).map_or(0, |track| track.payload_type);
                (relabel(understood, (track, payload_type, ssrc, 0)), false)
            }
            Fit::Rtp { .. } => return,
        };
        let has_come = !core::mem::replace(&mut rendition.is_up, true);
        rendition.is_missed = false;
        began.get_or_insert(now);
        let Some(understood) = understood else { return self.count_drop(DropReason::Malformed, 1) };
        let Parsed { packet, .. } = &understood;
        if source.packet(packet.arrived, packet.bytes.len()) {
            out.events.push_back(Event::SourceUp);
        }
        if has_come {
            out.renditions.iter_mut().for_each(|all| all.changed());
            let clock = out.renditions.as_ref().and_then(|all| all.clock).filter(|_| is_reference && is_main);
            clock.into_iter().for_each(|clock| self.take_reference_clock(now, clock));
        }
        if is_main {
            self.push_rendition(now, index, understood);
        } else {
            let out = &mut self.state.out;
            for index in 0..out.rendition_count() {
                out.push_to(now, index, understood.clone());
            }
        }
    }

    fn push_rendition(&mut self, now: Time, index: usize, understood: Parsed) {
        let State { source, out, .. } = &mut self.state;
        let before = out.branches.newest_key(index);
        out.push_to(now, index, understood);
        if out.branches.newest_key(index) > before {
            out.renditions.iter_mut().for_each(|all| all.miss(now));
            if index == ORIGINAL {
                source.key_frame(now);
            }
        }
    }
}

/// What timestamps go by.
fn stamp(understood: &Parsed) -> Stamp {
    let Parsed { packet, rtp_header, .. } = understood;
    let tag = &packet.tag;
    let timestamp = packet.rtp_header(rtp_header).map_or(0, |header| {
        let [_, _, _, _, t0, t1, t2, t3, ..] = *header;
        u32::from_be_bytes([t0, t1, t2, t3])
    });
    // What a frame is may show behind its parameter sets.
    let opens = tag.key || tag.kind == Kind::Header;
    Stamp { arrived: packet.arrived, timestamp, first: tag.first, opens }
}

/// The packet as one of the stream's: of this track, with this payload type and SSRC, and so much later. Its
/// layers are not told: a rendition is taken whole. `None` if it is no RTP.
fn relabel(understood: Parsed, (track, payload_type, ssrc, shift): (u8, u8, u32, u32)) -> Option<Parsed> {
    let Parsed { mut packet, rtp_header, preamble } = understood;
    let mut header: [u8; HEADER] = *packet.rtp_header(&rtp_header)?;
    if rtp_header[0] == 0 {
        packet.bytes = packet.bytes.slice(HEADER..);
    }
    let timestamp = u32::from_be_bytes([header[4], header[5], header[6], header[7]]);
    set_payload_type(&mut header, payload_type);
    set_timestamp(&mut header, timestamp.wrapping_add(shift));
    set_ssrc(&mut header, ssrc);
    packet.tag = Tag { track, layer: 0, layers: 1, grown: 0, adds: false, ends: None, ..packet.tag };
    Some(Parsed { packet, rtp_header: header, preamble })
}
