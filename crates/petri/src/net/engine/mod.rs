//! Runs a net: says of each object whether it may be delivered, is kept, or comes too late.

mod clocks;
mod differences;
mod fire;
mod save;
mod slots;
mod tables;
mod timers;

use std::collections::VecDeque;
use std::sync::Arc;

use outflow_media::Time;

use self::clocks::{Dates, Evidence};
use self::slots::{Slot, Slots};
use self::tables::NEVER;
pub(super) use self::tables::Tables;
use self::timers::Timers;
use super::{Net, TransitionId};
use crate::limits::WINDOW_ROUNDS_MAX;

/// What becomes of a unit that the engine is told of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It can be delivered now: [`Event::Deliver`] is among the next events.
    Deliver,
    /// It is to be kept: an event will say whether it is to be delivered or deleted. Of a unit that is
    /// absent: this is noted.
    Memorise,
    /// Its transition has fired: it is to be deleted.
    Late,
    /// It was received, or known to be absent, before.
    Duplicate,
    /// It is of a round that nothing is kept of yet: it is to be deleted, and may come again later.
    BeyondWindow,
}

/// What happens to units, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    /// This unit is to be delivered now.
    Deliver(u64),
    /// This unit, which was kept, is to be deleted: its transition fired before its interval began.
    Delete(u64),
    /// This unit was neither received nor known to be absent when its transition fired: nothing waits for
    /// it any more.
    Lost(u64),
    /// A transition fired: its round is over.
    Fired {
        /// Which one.
        transition: TransitionId,
        /// Which of its rounds.
        round: u64,
    },
}

/// Until when a unit is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// It is not: it was received, will not come, or its transition has fired.
    No,
    /// It is delivered if it comes before this time: its transition is enabled, and fires then at the
    /// latest. It may fire earlier, by the rules `or` and `master`.
    Until(Time),
    /// It is, and it is not known yet until when: its transition waits for others.
    Unknown,
    /// It is waited for without end.
    Always,
}

/// What changes of a transition.
#[derive(Debug, Clone, Copy)]
struct State {
    /// Rounds that it has fired, and so the one that it is in.
    fired: u64,
    /// Rounds there is evidence of.
    seen: u64,
    /// Input places that hold no token of this round.
    missing: u32,
    /// Objects of this round that were received or will not come.
    there: u32,
    /// Those of them that could have been delivered by now.
    ready: u32,
    /// Whether it is enabled, and `from` and `until` are known.
    is_armed: bool,
    /// Whether it is in the queue of those to be looked at.
    is_queued: bool,
    from: Time,
    until: Time,
}

/// A net that runs. The receiver's engine is told what it receives; the sender's, to know the same, what was
/// acknowledged.
///
/// What it says depends only on what it was told and when. Calls of [`handle_timeout`](Self::handle_timeout)
/// in between make no difference, except that events come earlier: what was due is done first, in the order
/// in which it was due, and with the dates at which it was. Time that goes back stands still instead.
///
/// A packet costs the same in small nets and in large ones, but for the timers of transitions (`O(log n)` a
/// firing) and of objects that wait for their own time. After the start, memory is taken for the queue of
/// events, which grows to what one call sets off, and for dates, a round at a time, of as many rounds as
/// transitions are apart. Both are limited by the window: each transition fires at most once for each of its
/// rounds.
#[derive(Debug)]
pub struct Engine {
    net: Arc<Net>,
    tables: Arc<Tables>,
    start: Time,
    now: Time,
    states: Vec<State>,
    /// Rounds that the window holds.
    window: u64,
    /// The oldest round that is not complete, and how many transitions are still in it.
    base: u64,
    behind: usize,
    slots: Slots,
    /// When transitions fired, from as many rounds before `base` on as tokens may wait. A token that waits for as many
    /// rounds as the window has, or more, is older than all evidence of its round, which is what counts then.
    dates: Dates,
    dated: u64,
    evidence: Evidence,
    /// Objects that wait for their own time, and behind them transitions.
    timers: Timers,
    /// Transitions to be looked at.
    queue: VecDeque<u32>,
    events: VecDeque<Event>,
    /// The unit that the engine is being told of, until it is delivered.
    told: Option<u64>,
    /// All units below are settled.
    settled: u64,
}

impl Engine {
    /// An engine at the beginning of round 0, that keeps units of `rounds` rounds: the oldest that is not
    /// complete and those behind it. Two or more are needed for rounds to overlap. The tokens that places
    /// hold at the start are of the date `start`.
    pub fn new(net: Arc<Net>, rounds: usize, start: Time) -> Self {
        let window = rounds.clamp(1, WINDOW_ROUNDS_MAX);
        let ring = window.next_power_of_two();
        let tables = Arc::clone(&net.tables);
        let (transitions, objects) = (net.transitions().len(), net.objects());
        let state = |transition: usize| {
            let empty = |place: &&u32| tables.arcs[**place as usize].initial == 0;
            let missing = net.inputs.of(transition).iter().filter(empty).count() as u32;
            State { missing, ..State::idle() }
        };
        let states = (0..transitions).map(state).collect();
        let waits = tables.arcs.iter().map(|arc| u64::from(arc.initial));
        let dated = waits.filter(|rounds| *rounds < window as u64).max().unwrap_or(0);
        Engine {
            evidence: Evidence::new(&net),
            states,
            tables,
            start,
            now: start,
            window: window as u64,
            base: 0,
            behind: transitions,
            slots: Slots::new(ring, objects),
            dated,
            dates: Dates::new(transitions),
            timers: Timers::new(objects + transitions),
            queue: VecDeque::with_capacity(transitions),
            events: VecDeque::with_capacity(2 * objects + transitions),
            told: None,
            settled: 0,
            net,
        }
    }

    /// The net that runs.
    pub fn net(&self) -> &Arc<Net> {
        &self.net
    }

    /// A unit was received. To be followed by [`poll`](Self::poll) until it answers nothing.
    pub fn handle_received(&mut self, now: Time, unit: u64) -> Verdict {
        self.handle(now, unit, Slot::Held)
    }

    /// A unit will not come: its sender gave it up, or never had it. If it comes all the same before its
    /// transition fires, it is delivered. To be followed by [`poll`](Self::poll) until it answers nothing.
    ///
    /// Answers [`Verdict::Memorise`] if this is news, [`Verdict::BeyondWindow`] if it has to be said again
    /// later, and else that it made no difference.
    pub fn handle_absent(&mut self, now: Time, unit: u64) -> Verdict {
        self.handle(now, unit, Slot::Absent)
    }

    /// The sender has sent all units up to this one: evidence for all that begins with it or before, as if
    /// it had been received. To be followed by [`poll`](Self::poll) until it answers nothing.
    ///
    /// Of a unit beyond the window, only what it says of rounds of the window is used; it has to be said
    /// again later.
    pub fn handle_announced(&mut self, now: Time, unit: u64) {
        self.advance(now);
        self.note_evidence(unit);
        self.run();
        self.settle();
    }

    /// Time has passed. To be followed by [`poll`](Self::poll) until it answers nothing.
    pub fn handle_timeout(&mut self, now: Time) {
        self.advance(now);
        self.settle();
    }

    /// What happened next. All calls that begin with `handle` may add events.
    pub fn poll(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// When something happens if no unit comes. All calls that begin with `handle` may change it.
    pub fn next_timeout(&self) -> Option<Time> {
        self.timers.first().map(|(time, _)| time)
    }

    /// Until when a unit is needed: what to know before it is asked for, or sent, again. All calls that
    /// begin with `handle` may change it; but once [`Need::No`] is the answer, it remains so.
    pub fn need(&self, unit: u64) -> Need {
        let (round, object) = self.net.split(unit);
        let state = &self.states[self.consumer(object)];
        if round < state.fired || (self.is_within(round) && self.slots.get(round, object) != Slot::Unknown) {
            return Need::No;
        }
        match (round == state.fired && state.is_armed, state.until) {
            (true, NEVER) => Need::Always,
            (true, until) => Need::Until(until),
            (false, _) => Need::Unknown,
        }
    }

    /// Whether nothing waits for a unit any more: it was delivered, will not come, or its transition has
    /// fired. Once it is, it remains so.
    pub fn is_settled(&self, unit: u64) -> bool {
        let (round, object) = self.net.split(unit);
        self.is_settled_at(round, object)
    }

    /// All units below this one are settled, and this one is not. Never goes back; all calls that begin with
    /// `handle` may raise it.
    pub fn settled_below(&self) -> u64 {
        self.settled
    }

    /// The first unit beyond the window: credit for the sender. Never goes back; all calls that begin with
    /// `handle` may raise it.
    pub fn window_end(&self) -> u64 {
        self.net.unit(self.base.saturating_add(self.window), 0)
    }

    /// Up to which round a transition has fired: the one that it is in.
    ///
    /// # Panics
    ///
    /// If it is of another net, a larger one.
    pub fn round_of(&self, transition: TransitionId) -> u64 {
        self.states[transition.index()].fired
    }

    /// Does what was due, notes the unit, and does what follows.
    fn handle(&mut self, now: Time, unit: u64, slot: Slot) -> Verdict {
        self.advance(now);
        self.told = Some(unit);
        let (round, object) = self.net.split(unit);
        let verdict = self.note(round, object, slot);
        // Before anything fires: a transition that does not wait at all must find its first unit.
        self.note_evidence(unit);
        if verdict.is_none() {
            self.arrive(round, object);
        }
        self.run();
        self.settle();
        // What the unit itself sets off may be what it waited for.
        let is_delivered = self.told.take().is_none();
        if is_delivered { Verdict::Deliver } else { verdict.unwrap_or(Verdict::Memorise) }
    }

    /// Puts what is known of a unit in its slot. Answers nothing if that is the first that is known of it.
    fn note(&mut self, round: u64, object: usize, slot: Slot) -> Option<Verdict> {
        if round < self.states[self.consumer(object)].fired {
            return Some(Verdict::Late);
        }
        if !self.is_within(round) {
            return Some(Verdict::BeyondWindow);
        }
        let known = self.slots.of(round, object);
        match (*known, slot) {
            (Slot::Unknown, _) => {
                *known = slot;
                None
            }
            // It counts as there already: what is left is to deliver it, in its time or at once.
            (Slot::Absent, Slot::Held) => {
                *known = Slot::Held;
                Some(Verdict::Memorise)
            }
            (Slot::Missed, Slot::Held) => {
                *known = Slot::Delivered;
                self.deliver(round, object);
                Some(Verdict::Deliver)
            }
            _ => Some(Verdict::Duplicate),
        }
    }

    fn deliver(&mut self, round: u64, object: usize) {
        let unit = self.net.unit(round, object);
        self.told = self.told.filter(|told| *told != unit);
        self.events.push_back(Event::Deliver(unit));
    }

    fn is_within(&self, round: u64) -> bool {
        round < self.base.saturating_add(self.window)
    }

    fn consumer(&self, object: usize) -> usize {
        self.tables.arcs[self.tables.places[object] as usize].consumer as usize
    }

    fn is_settled_at(&self, round: u64, object: usize) -> bool {
        let is_over = round < self.states[self.consumer(object)].fired;
        let is_settled = || !matches!(self.slots.get(round, object), Slot::Unknown | Slot::Held);
        is_over || (self.is_within(round) && is_settled())
    }

    fn settle(&mut self) {
        let (mut round, mut object) = self.net.split(self.settled);
        while self.is_settled_at(round, object) {
            object += 1;
            self.settled += 1;
            if object == self.net.objects() {
                (object, round) = (0, round + 1);
            }
        }
    }
}

#[cfg(test)]
mod model;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
