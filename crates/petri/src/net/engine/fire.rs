//! What follows from what: places open, transitions are armed and fire, others are enabled by that.

use outflow_media::Time;

use super::super::{Driver, Upper};
use super::slots::Slot;
use super::tables::{Arc, NEVER, NO_OBJECT, after};
use super::{Engine, Event, State, TransitionId};

impl Engine {
    /// Does all that was due until now, each at its time.
    pub(super) fn advance(&mut self, now: Time) {
        while let Some((due, number)) = self.timers.first().filter(|(due, _)| *due <= now) {
            self.now = due;
            match number.checked_sub(self.tables.places.len()) {
                Some(transition) => self.look_at(transition),
                None => self.open_due(number),
            }
            self.run();
        }
        self.now = self.now.max(now);
    }

    /// Looks at all transitions in the queue, and at those that come into it meanwhile.
    pub(super) fn run(&mut self) {
        while let Some(transition) = self.queue.pop_front() {
            self.states[transition as usize].is_queued = false;
            self.look_at(transition as usize);
        }
    }

    /// A unit is evidence that everything up to it was sent.
    pub(super) fn note_evidence(&mut self, unit: u64) {
        let (end, objects) = (self.base.saturating_add(self.window), self.tables.places.len() as u64);
        while let Some((transition, round)) = self.evidence.next(unit, end, objects, self.now) {
            let state = &mut self.states[transition];
            state.seen = round + 1;
            if state.fired == round && state.missing == 0 {
                self.enqueue(transition);
            }
        }
    }

    /// Something is known of a unit for the first time, and stands in its slot.
    pub(super) fn arrive(&mut self, round: u64, object: usize) {
        let place = self.tables.places[object] as usize;
        let arc = self.tables.arcs[place];
        let consumer = arc.consumer as usize;
        if self.states[consumer].fired != round {
            return;
        }
        self.states[consumer].there += 1;
        if self.holds(&arc, round) {
            self.open(&arc, round);
        }
        self.enqueue(consumer);
    }

    pub(super) fn enqueue(&mut self, transition: usize) {
        let state = &mut self.states[transition];
        if !state.is_queued {
            state.is_queued = true;
            self.queue.push_back(transition as u32);
        }
    }

    /// Whether a place holds the token of a round that its consumer has not fired.
    pub(super) fn holds(&self, arc: &Arc, round: u64) -> bool {
        round < self.states[arc.producer as usize].fired + u64::from(arc.initial)
    }

    /// The date of the token of the consumer's round.
    fn date(&self, arc: &Arc, round: u64) -> Time {
        let put = match round.checked_sub(u64::from(arc.initial)) {
            Some(fired) => self.dates.of(arc.producer as usize, fired),
            None => self.start,
        };
        put.max(self.evidence.since(arc.consumer as usize, round))
    }

    /// Delivers what has come for a token, or waits until its time.
    pub(super) fn open(&mut self, arc: &Arc, round: u64) {
        let (object, opens) = (arc.object as usize, after(self.date(arc, round), arc.earliest));
        if opens <= self.now {
            self.make_ready(arc, round);
        } else {
            self.timers.set(object, opens);
        }
    }

    fn open_due(&mut self, object: usize) {
        self.timers.cancel(object);
        let arc = self.tables.arcs[self.tables.places[object] as usize];
        let consumer = arc.consumer as usize;
        self.make_ready(&arc, self.states[consumer].fired);
        self.enqueue(consumer);
    }

    fn make_ready(&mut self, arc: &Arc, round: u64) {
        let object = arc.object as usize;
        let slot = self.slots.of(round, object);
        let is_held = *slot == Slot::Held;
        *slot = if is_held { Slot::Delivered } else { Slot::Missed };
        if is_held {
            self.deliver(round, object);
        }
        self.states[arc.consumer as usize].ready += 1;
    }

    /// Fires a transition if it is time, or notes when it will be.
    fn look_at(&mut self, transition: usize) {
        let state = self.states[transition];
        if state.missing > 0 || state.seen <= state.fired {
            return;
        }
        if !state.is_armed {
            self.arm(transition);
        }
        let State { from, until, .. } = self.states[transition];
        let due = if self.is_completed(transition) { from.min(until) } else { until };
        if due <= self.now {
            self.fire(transition);
        } else if due < NEVER {
            self.timers.set(self.tables.places.len() + transition, due);
        }
    }

    /// Works out when an enabled transition may fire, and when it must.
    fn arm(&mut self, transition: usize) {
        let (shape, round) = (self.tables.shapes[transition], self.states[transition].fired);
        let (mut first_from, mut last_from, mut master_from) = (NEVER, Time::ZERO, Time::ZERO);
        let (mut first_until, mut last_until, mut master_until) = (NEVER, Time::ZERO, NEVER);
        for place in self.net.inputs.of(transition) {
            let arc = &self.tables.arcs[*place as usize];
            let date = self.date(arc, round);
            let (from, until) = (after(date, arc.earliest), after(date, arc.latest));
            (first_from, last_from) = (first_from.min(from), last_from.max(from));
            (first_until, last_until) = (first_until.min(until), last_until.max(until));
            if *place == shape.master {
                (master_from, master_until) = (from, until);
            }
        }
        let state = &mut self.states[transition];
        state.from = match shape.driver {
            // Its first object is there when its time has come, not before.
            Driver::Any if shape.objects > 0 => Time::ZERO,
            Driver::Any => first_from,
            Driver::All => last_from,
            Driver::Master => master_from,
        };
        state.until = match shape.upper {
            Upper::Strong => first_until,
            Upper::Weak => last_until,
            Upper::Master => master_until,
        };
        state.is_armed = true;
    }

    fn is_completed(&self, transition: usize) -> bool {
        let (shape, state) = (&self.tables.shapes[transition], &self.states[transition]);
        match shape.driver {
            Driver::Any => shape.objects == 0 || state.ready > 0,
            Driver::All => state.there == shape.objects,
            Driver::Master => match self.tables.arcs[shape.master as usize].object {
                NO_OBJECT => true,
                object => self.slots.get(state.fired, object as usize) != Slot::Unknown,
            },
        }
    }

    fn fire(&mut self, transition: usize) {
        let round = self.states[transition].fired;
        for at in self.net.inputs.range(transition) {
            let arc = self.tables.arcs[self.net.inputs.item(at)];
            if arc.object != NO_OBJECT {
                self.close(&arc, round);
            }
        }
        self.timers.cancel(self.tables.places.len() + transition);
        self.dates.set(transition, round, self.now);
        self.events.push_back(Event::Fired { transition: TransitionId(transition as u32), round });
        let State { seen, is_queued, .. } = self.states[transition];
        self.states[transition] = State { fired: round + 1, seen, is_queued, ..State::idle() };
        self.slide(round);
        self.feed(transition, round);
        self.begin(transition, round + 1);
    }

    /// The end of a place's round: says what becomes of its unit if nothing was said yet.
    fn close(&mut self, arc: &Arc, round: u64) {
        let object = arc.object as usize;
        let slot = core::mem::take(self.slots.of(round, object));
        match slot {
            Slot::Delivered | Slot::Missed => return,
            Slot::Absent => {}
            Slot::Unknown => self.events.push_back(Event::Lost(self.net.unit(round, object))),
            Slot::Held if after(self.date(arc, round), arc.earliest) <= self.now => {
                self.deliver(round, object)
            }
            Slot::Held => self.events.push_back(Event::Delete(self.net.unit(round, object))),
        }
        if arc.earliest > 0 {
            self.timers.cancel(object);
        }
    }

    /// Moves the window on when the last transition has left its oldest round.
    fn slide(&mut self, round: u64) {
        if round > self.base {
            return;
        }
        self.behind -= 1;
        while self.behind == 0 {
            self.base += 1;
            self.behind = self.states.iter().filter(|state| state.fired == self.base).count();
            self.forget();
        }
    }

    /// Dates are not kept for longer than they may be asked for.
    pub(super) fn forget(&mut self) {
        self.dates.forget_below(self.base.saturating_sub(self.dated));
        self.evidence.forget_below(self.base);
    }

    /// Puts a token into each output place, of which consumers may have waited.
    fn feed(&mut self, transition: usize, round: u64) {
        for at in self.net.outputs.range(transition) {
            let arc = self.tables.arcs[self.net.outputs.item(at)];
            let (consumer, token) = (arc.consumer as usize, round + u64::from(arc.initial));
            // Its own places are looked at when its next round begins.
            if consumer == transition || self.states[consumer].fired != token {
                continue;
            }
            self.states[consumer].missing -= 1;
            if arc.object != NO_OBJECT && self.slots.get(token, arc.object as usize) != Slot::Unknown {
                self.open(&arc, token);
            }
            if self.states[consumer].missing == 0 {
                self.enqueue(consumer);
            }
        }
    }

    /// Looks at what a transition has for its next round already.
    fn begin(&mut self, transition: usize, round: u64) {
        for at in self.net.inputs.range(transition) {
            let arc = self.tables.arcs[self.net.inputs.item(at)];
            let is_marked = self.holds(&arc, round);
            self.states[transition].missing += u32::from(!is_marked);
            if arc.object != NO_OBJECT && self.slots.get(round, arc.object as usize) != Slot::Unknown {
                self.states[transition].there += 1;
                if is_marked {
                    self.open(&arc, round);
                }
            }
        }
        if self.states[transition].missing == 0 {
            self.enqueue(transition);
        }
    }
}

impl State {
    /// In no round yet.
    pub(super) const fn idle() -> Self {
        State {
            fired: 0,
            seen: 0,
            missing: 0,
            there: 0,
            ready: 0,
            is_armed: false,
            is_queued: false,
            from: Time::ZERO,
            until: Time::ZERO,
        }
    }
}
