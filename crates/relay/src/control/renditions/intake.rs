//! A stream that has renditions takes what their owners hand over.

use outflow_media::{Format, Time};
use outflow_packet::{DropReason, Parsed};

use super::rendition::{Renditions, Taken};
use super::simulcast::Simulcast;
use crate::control::branches::ORIGINAL;
use crate::control::distribution::Distribution;
use crate::control::handed::{Handed, TrackClock};
use crate::control::options::StreamOptions;
use crate::control::origin::Origin;
use crate::control::output::Event;
use crate::control::state::State;
use crate::control::stream::Stream;

impl Stream {
    /// A stream whose levels are `count` renditions, which are handed to it: see
    /// [`Stream::handle_rendition`].
    pub fn of_renditions(options: StreamOptions, count: usize) -> Self {
        let mut stream = Stream::new(options);
        stream.state.out.renditions = Some(Box::new(Renditions::new(count)));
        stream
    }

    /// Takes what the owner of a rendition hands over. It begins with that stream's
    /// [`Stream::introduction`].
    pub fn handle_rendition(&mut self, now: Time, index: usize, handed: Handed) {
        let State { out, .. } = &mut self.state;
        let Some(renditions) = out.renditions.as_mut().filter(|all| index < all.count()) else { return };
        match handed {
            Handed::Format { format, .. } => self.take_rendition_format(now, index, format),
            Handed::Clock(clock) if index == renditions.reference() => take_reference_clock(out, now, clock),
            Handed::Clock(_) => {}
            Handed::Packet(parsed) => self.take_of_rendition(now, index, parsed),
            Handed::Away => self.rendition_went_away(now, index),
            Handed::Break => {
                out.branches.get_mut(index).into_iter().for_each(|branch| branch.ring_mut().break_off());
            }
            // Receivers see by its sequence numbers that something is missing.
            Handed::Missed { packets, .. } => self.count_drop(DropReason::HandOverFull, packets),
        }
    }

    /// A rendition carries this from now on.
    fn take_rendition_format(&mut self, now: Time, index: usize, format: Format) {
        let out = &mut self.state.out;
        let Some(renditions) = &mut out.renditions else { return };
        let known = out.origin.as_ref();
        if renditions.declare(index, &format, known.map(Origin::format)) {
            let turn = known.map_or(0, |known| known.turn() + 1);
            self.change_format(now, format, turn, None);
        }
        let out = &mut self.state.out;
        let Distribution { renditions: Some(renditions), origin: Some(origin), options, .. } = out else {
            return;
        };
        origin.set_ssrcs(options.ssrc);
        let formats = renditions.fit(origin.format(), options.ssrc);
        for (index, format) in formats.into_iter().enumerate() {
            out.set_branch_format(now, index, format);
        }
        out.renditions.iter_mut().for_each(|all| all.changed());
    }

    fn rendition_went_away(&mut self, now: Time, index: usize) {
        let out = &mut self.state.out;
        let Some(renditions) = &mut out.renditions else { return };
        let is_last = renditions.went_away(index);
        Simulcast::at(index).pauses(out, index);
        out.renditions.iter_mut().for_each(|all| all.changed());
        if is_last && self.state.source.is_up() {
            self.source_went_away(now);
        }
    }

    fn take_of_rendition(&mut self, now: Time, index: usize, parsed: Parsed) {
        let State { source, out, feedback, .. } = &mut self.state;
        let (Some(renditions), Some(origin)) = (&mut out.renditions, &out.origin) else {
            return self.count_drop(DropReason::NoFormat, 1);
        };
        let Taken { parsed, is_main, clock } = match renditions.take(now, index, origin, parsed) {
            Ok(Some(taken)) => taken,
            Ok(None) => return,
            Err(reason) => return self.count_drop(reason, 1),
        };
        let Parsed { packet, .. } = &parsed;
        if source.packet(packet.arrived, packet.bytes.len()) {
            out.events.push_back(Event::SourceUp);
        }
        clock.into_iter().for_each(|clock| take_reference_clock(out, now, clock));
        if !is_main {
            for index in 0..out.rendition_count() {
                out.push_to(now, index, parsed.clone());
            }
            return;
        }
        let before = out.branches.newest_key(index);
        out.push_to(now, index, parsed);
        if out.branches.newest_key(index) > before {
            let source_timeout = out.options.source_timeout;
            out.renditions.iter_mut().for_each(|all| all.miss(now, source_timeout));
            feedback.key_frame_came(index);
            if index == ORIGINAL {
                source.key_frame(now);
            }
        }
    }
}

/// The clocks of the reference are the stream's.
fn take_reference_clock(out: &mut Distribution, now: Time, told: TrackClock) {
    let Distribution { renditions: Some(renditions), origin: Some(origin), .. } = out else { return };
    let Some(clock) = renditions.clock(told, origin.format().main_track()) else { return };
    if origin.set_clock(told.track, clock) {
        tell_clock(out, now, told.track);
    }
}

/// Tells all renditions, and what is made of them, what the clock of a track is now.
fn tell_clock(out: &mut Distribution, now: Time, track: u8) {
    if let Some(clock) = out.clock_of(ORIGINAL, track) {
        (0..out.rendition_count()).for_each(|index| out.tell_branch(now, index, clock));
    }
}
