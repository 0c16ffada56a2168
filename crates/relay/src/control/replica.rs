//! A stream as a replica: it takes what its owner hands over, instead of what a source sends.

use outflow_media::Time;
use outflow_packet::Parsed;

use super::branches::ORIGINAL;
use super::distribution::Distribution;
use super::handed::{Handed, TrackClock};
use super::state::State;
use super::stream::Stream;

impl Stream {
    /// Takes what the stream's owner hands over. It begins with [`Stream::introduction`].
    pub fn handle_handed(&mut self, now: Time, handed: Handed) {
        match handed {
            Handed::Format { format, turn } => {
                let known = self.state.out.origin.as_ref();
                if known.is_none_or(|known| known.turn() != turn || *known.format() != format) {
                    self.state.sharing.settle_gap(&mut self.state.out.sinks);
                    self.change_format(now, format, turn, None);
                }
            }
            Handed::Clock(clock) => take_clock(&mut self.state.out, now, clock),
            Handed::Packet(parsed) if self.state.sharing.has_gap() => {
                let State { out, sharing, .. } = &mut self.state;
                let passes = sharing.take_after_gap(&mut out.sinks, parsed);
                passes.into_iter().for_each(|parsed| self.take_parsed(now, parsed));
            }
            Handed::Packet(parsed) => self.take_parsed(now, parsed),
            Handed::Away => self.state.source.went_away(now),
            Handed::Break => self.break_off(),
            Handed::Missed { track, packets } => {
                self.state.sharing.miss(track, packets);
                self.state.out.miss();
            }
        }
    }

    /// It has no sinks and will be handed nothing until it is introduced again: it forgets the
    /// source and its packets, but not what it has sent.
    pub fn handle_rest(&mut self, now: Time) {
        let State { source, intake, out, sharing, .. } = &mut self.state;
        sharing.settle_gap(&mut out.sinks);
        out.rest(now);
        *intake = None;
        source.went_away(now);
    }

    fn take_parsed(&mut self, now: Time, parsed: Parsed) {
        // By its arrival: those of an introduction come all at once, and make no rate.
        self.state.source.packet(parsed.packet.arrived, parsed.packet.bytes.len());
        self.spread(now, parsed);
    }
}

/// Takes what another stream says of a track's sender.
pub(super) fn take_clock(out: &mut Distribution, now: Time, told: TrackClock) {
    let (Some(origin), Some(original)) = (&mut out.origin, out.branches.get_mut(ORIGINAL)) else {
        return;
    };
    if origin.set_sender(&told) {
        original.set_passed(told.track, told.passed);
        out.tell_clock(now, told.track);
    }
}
