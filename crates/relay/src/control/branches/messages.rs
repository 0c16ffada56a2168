//! What the source tells goes through the services, and to the branches; what branches say of their
//! senders.

use outflow_graph::{Graph, Message, Target, TrackTime};
use outflow_media::Time;
use outflow_packet::limits::TRACKS_MAX;
use outflow_packet::{Anchor, ReportClock};

use super::senders::Sender;
use super::slot::{Made, What};
use super::table::ORIGINAL;
use crate::control::distribution::Distribution;
use crate::control::levels::Levels;

impl Distribution {
    /// Tells all services what the source tells.
    pub(in crate::control) fn tell_services(&mut self, now: Time, message: Message) {
        self.serve(now);
        self.tell_graph(now, |graph, further, each| graph.tell(now, message, further, each));
        self.tell_branch(now, ORIGINAL, message);
    }

    /// See [`Stream::hear_near`](crate::Stream::hear_near).
    pub(in crate::control) fn hear_near(&mut self, now: Time, messages: Vec<(Target, Message)>) {
        self.tell_graph(now, |graph, further, each| graph.tell_on(now, messages, further, each));
    }

    fn tell_graph(
        &mut self,
        now: Time,
        tell: impl FnOnce(&mut Graph, &mut dyn FnMut(Target, Message), &mut dyn FnMut(usize, Message)),
    ) {
        let mut made = Vec::new();
        self.services.tell(now, tell, &mut |exit, message| made.push((exit, message)));
        made.into_iter().for_each(|(exit, message)| self.tell_exit(now, exit, message));
    }

    /// Tells the clocks once more, to services or branches that are new.
    pub(super) fn repeat_clocks(&mut self, now: Time) {
        self.clocks_of(ORIGINAL).into_iter().for_each(|clock| self.tell_services(now, clock));
    }

    /// Tells what the clock of a track is now.
    pub(in crate::control) fn tell_clock(&mut self, now: Time, track: u8) {
        if let Some(clock) = self.clock_of(ORIGINAL, track) {
            self.tell_services(now, clock);
        }
    }

    /// The clocks of a branch, to be told.
    pub(super) fn clocks_of(&self, index: usize) -> Vec<Message> {
        (0..TRACKS_MAX as u8).filter_map(|track| self.clock_of(index, track)).collect()
    }

    pub(in crate::control) fn clock_of(&self, index: usize, track: u8) -> Option<Message> {
        let (clock, _) = self.branch_sender(index, track)?;
        let (Anchor { ntp, rtp, at }, told) = clock.anchor()?;
        Some(Message::Clock(TrackTime { track, ntp, rtp, at, told }))
    }

    fn tell_exit(&mut self, now: Time, exit: usize, message: Message) {
        if let Some(slot) = self.services.branch_at(exit) {
            self.tell_branch(now, slot, message);
        }
    }

    /// Tells a branch, and those that are derived from it.
    pub(in crate::control) fn tell_branch(&mut self, now: Time, index: usize, message: Message) {
        let ntp_at_zero = self.options.ntp_at_zero;
        let mut further = Vec::new();
        for (at, slot) in self.branches.slots_mut() {
            match &mut slot.made {
                Made::Derived { base, chain, .. } if *base == index => {
                    chain.tell(now, message, &mut |_, _| {}, &mut |_, message| further.push((at, message)));
                }
                Made::Marked { base, marks } if *base == index => {
                    if let Message::Break = message {
                        marks.break_off();
                    }
                    further.push((at, message));
                }
                Made::Level { base, .. } if *base == index => further.push((at, message)),
                Made::Joined { base, .. } => {
                    let from = match message {
                        Message::Clock(clock) => slot.joins(clock.track),
                        Message::Break => Some(*base),
                    };
                    further.extend((from == Some(index)).then_some((at, message)));
                }
                _ => {}
            }
        }
        if let Message::Break = message {
            self.levels_at(index).restart(self);
            self.branches.slot_mut(index).into_iter().for_each(|slot| slot.showing.restart());
        }
        if let Some(slot) = self.branches.slot_mut(index).filter(|_| index != ORIGINAL) {
            slot.senders.told(message, slot.format.as_ref(), ntp_at_zero);
        }
        further.into_iter().for_each(|(at, message)| self.tell_branch(now, at, message));
    }

    /// The clock of a track in a branch, and its SSRC. Before its first packet, they are those of what the
    /// branch is made of, as far as that can be known.
    pub(in crate::control) fn branch_sender(&self, index: usize, track: u8) -> Option<(ReportClock, u32)> {
        let slot = self.branches.slot(index)?;
        let made_of = match slot.made {
            Made::Original | Made::Rendition => {
                return self.origin.as_ref()?.sender(track);
            }
            Made::Declared(_) => Some(ORIGINAL),
            Made::Derived { base, what: What::View(_) | What::Opus, .. }
            | Made::Marked { base, .. }
            | Made::Level { base, .. } => Some(base),
            Made::Joined { .. } => slot.joins(track),
            Made::Derived { what: What::Ts | What::Tracks(_), .. } => None,
        };
        let sender = slot.senders.get(track);
        if let Some(Sender { clock, ssrc }) = sender.filter(|sender| sender.ssrc != 0) {
            return Some((clock, ssrc));
        }
        let (clock, ssrc) = self.branch_sender(made_of?, track)?;
        let told = sender.map(|sender| sender.clock).filter(|clock| clock.anchor().is_some());
        Some((told.unwrap_or(clock), ssrc))
    }
}
