//! Packets go through the services, and into the branches.

use outflow_graph::Tracks;
use outflow_media::Time;
use outflow_packet::Parsed;

use super::slot::{Made, Slot, What};
use super::table::ORIGINAL;
use crate::control::SinkEnd;
use crate::control::distribution::Distribution;
use crate::control::levels::{Levels, order_shown};
use crate::limits::SERVICE_BATCH;

/// Ticks a second of all video in RTP that has an order of its own (RFC 6184, section 8.2.1; RFC 7798, section 7.1).
const VIDEO_CLOCK_RATE: u32 = 90_000;

impl Distribution {
    /// Puts what came out of the services into the branches.
    pub(super) fn push_out(&mut self, now: Time, made: &mut Vec<(usize, Parsed)>) {
        for (exit, parsed) in made.drain(..) {
            if let Some(slot) = self.services.branch_at(exit) {
                self.push_to(now, slot, parsed);
            }
        }
    }

    /// The services work on all that waits for them.
    pub(in crate::control) fn serve(&mut self, now: Time) {
        if self.services.take_waiting() == 0 {
            return;
        }
        let mut made = self.services.take_room();
        self.services.run(now, &mut made);
        self.push_out(now, &mut made);
        // What is derived from a derived branch may stand before it.
        loop {
            self.services.take_waiting();
            for index in 0..self.branches.end() {
                self.serve_chain(now, index, &mut made);
            }
            if self.services.waiting() == 0 {
                break;
            }
        }
        self.services.keep_room(made);
    }

    fn serve_chain(&mut self, now: Time, index: usize, made: &mut Vec<(usize, Parsed)>) {
        let ntp_at_zero = self.options.ntp_at_zero;
        let Some(Slot { made: Made::Derived { chain, .. }, senders, format, .. }) =
            self.branches.slot_mut(index)
        else {
            return;
        };
        let probe = self.services.probe();
        chain.run(now, probe, &mut |_, _| {}, &mut |_, parsed| made.push((index, parsed)));
        senders.agree(|track| chain.clock(track), format.as_ref(), ntp_at_zero);
        for (slot, parsed) in made.drain(..) {
            self.push_to(now, slot, parsed);
        }
    }

    /// Puts a packet of the source into the branches. Returns whether a key frame begins with it.
    pub(in crate::control) fn spread(&mut self, now: Time, parsed: Parsed) -> bool {
        self.services.enter(&parsed);
        let before = self.branches.newest_key(ORIGINAL);
        self.push_to(now, ORIGINAL, parsed);
        let is_key = self.branches.newest_key(ORIGINAL) > before;
        if is_key && self.audience.is_awaiting() {
            // What a transport stream carries is known by now.
            self.house(now);
        }
        if self.services.waiting() >= SERVICE_BATCH {
            self.serve(now);
        }
        is_key
    }

    /// Puts a packet into a branch, before those that are made of it, and behind them those that are levels of it.
    pub(in crate::control) fn push_to(&mut self, now: Time, index: usize, parsed: Parsed) {
        let (mut marked, mut changed, mut joined) = (None, None, Vec::new());
        for (at, slot) in self.branches.slots_mut() {
            if slot.joins(parsed.packet.tag.track) == Some(index) {
                joined.push((at, parsed.clone()));
            }
            match &mut slot.made {
                Made::Derived { base, what: What::Tracks(tracks), .. }
                    if *base == index && carries_others(&parsed, *tracks) =>
                {
                    changed = Some(at);
                }
                Made::Derived { base, chain, .. } if *base == index => {
                    chain.enter(parsed.clone());
                    self.services.chain_waits();
                }
                Made::Marked { base, marks } if *base == index => {
                    marked = Some((at, marks.mark(parsed.clone())));
                }
                _ => {}
            }
        }
        into_branch(self, now, index, parsed, true);
        joined.into_iter().for_each(|(at, parsed)| self.push_to(now, at, parsed));
        if let Some(at) = changed {
            self.end_branch(now, at, SinkEnd::FormatChanged);
        }
        if let Some((at, parts)) = marked {
            parts.for_each(|parsed| self.push_to(now, at, parsed));
        }
    }
}

/// Whether a key frame of a transport stream comes with tables that say other codecs.
fn carries_others(parsed: &Parsed, tracks: Tracks) -> bool {
    parsed.preamble.as_ref().is_some_and(|preamble| Tracks::said_by(preamble).ok() != Some(tracks))
}

/// Puts a packet that another process has taken into the stream as it comes in, whose sinks are not there yet.
pub(in crate::control) fn put(out: &mut Distribution, now: Time, parsed: Parsed) {
    into_branch(out, now, ORIGINAL, parsed, false);
}

/// Puts a packet that is new, or was there before, into a branch, and behind it those that are levels of it.
fn into_branch(out: &mut Distribution, now: Time, index: usize, mut parsed: Parsed, is_new: bool) {
    let ntp_at_zero = out.options.ntp_at_zero;
    let Some(slot) = out.branches.slot_mut(index) else { return };
    let mut has_shown = false;
    if parsed.packet.tag.track == slot.branch.ring().main_track() {
        slot.goes_on.iter_mut().for_each(|goes_on| goes_on.number(&mut parsed));
        let Parsed { packet, rtp_header, .. } = &parsed;
        if let Some(header) = packet.rtp_header(rtp_header) {
            let numbers = (outflow_rtp::sequence(header), outflow_rtp::timestamp(header));
            has_shown = slot.showing.packet(&packet.tag, numbers, VIDEO_CLOCK_RATE);
        }
    }
    if index != ORIGINAL {
        slot.senders.note(&parsed, slot.format.as_ref(), ntp_at_zero);
    }
    let levels = out.levels_at(index);
    let coming = levels.comes(out, index, &parsed);
    let Some(branch) = out.branches.get_mut(index) else { return };
    let Parsed { packet, rtp_header, preamble, .. } = parsed;
    let at = branch.ring().head();
    match is_new {
        true => branch.push(now, &mut out.sinks, packet, rtp_header, || preamble),
        false => branch.put(&mut out.sinks, packet, rtp_header, || preamble),
    }
    let is_there = branch.ring().head() > at;
    if has_shown {
        order_shown(out, index);
    }
    levels.came(out, now, (index, at, is_there), coming);
}
