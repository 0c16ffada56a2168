//! An engine is handed over, and goes on elsewhere.

use core::ops::Range;
use std::sync::Arc;

use outflow_media::Time;

use super::differences::{Differences, Writer};
use super::slots::Slot;
use super::tables::NO_OBJECT;
use super::{Engine, Net, State};
use crate::limits::NUMBER_MAX;
use crate::save::{SavedEngine, SavedKnown, SavedUnits, Unfit};

const fn unfit(why: &'static str) -> Unfit {
    Unfit { what: "net", why }
}

fn check(is_right: bool, why: &'static str) -> Result<(), Unfit> {
    if is_right { Ok(()) } else { Err(unfit(why)) }
}

impl Engine {
    /// What another one needs to go on. To be asked for when [`poll`](Self::poll) answers nothing.
    pub fn save(&self) -> SavedEngine {
        SavedEngine {
            start: self.start.as_nanos(),
            now: self.now.as_nanos(),
            settled: self.settled,
            transitions: self.save_transitions(),
            units: self.save_units(),
        }
    }

    /// One that goes on with this net and this window. To be followed by [`poll`](Self::poll) until it answers
    /// nothing.
    pub fn restore(net: Arc<Net>, rounds: usize, saved: &SavedEngine) -> Result<Self, Unfit> {
        let mut engine = Engine::new(net, rounds, Time::from_nanos(saved.start));
        engine.now = Time::from_nanos(saved.now);
        let mut transitions = Differences::new(&saved.transitions);
        engine.restore_fired(&mut transitions)?;
        engine.restore_evidence(&mut transitions)?;
        engine.restore_dates(&mut transitions)?;
        check(transitions.is_over(), "it has other transitions")?;
        engine.restore_units(&saved.units)?;
        let least = engine.net.unit(engine.base, 0);
        check((least..=engine.window_end()).contains(&saved.settled), "it is further than its window")?;
        engine.settled = saved.settled;
        (0..engine.states.len()).for_each(|transition| engine.resume(transition));
        engine.run();
        engine.settle();
        Ok(engine)
    }

    fn save_transitions(&self) -> Vec<u8> {
        let mut out = Writer::default();
        for alike in self.states.chunk_by(|a, b| a.fired == b.fired) {
            out.count(alike.len());
            out.put(alike[0].fired);
        }
        let since = |transition, round| self.evidence.since(transition, round);
        self.save_times(&mut out, since, |transition| {
            self.states[transition].fired..self.states[transition].seen
        });
        let dates = |transition, round| self.dates.of(transition, round);
        self.save_times(&mut out, dates, |transition| {
            self.oldest_date(transition)..self.states[transition].fired
        });
        out.bytes
    }

    /// Times of these rounds, of transitions that have any.
    fn save_times(
        &self,
        out: &mut Writer,
        time: impl Fn(usize, u64) -> Time,
        rounds: impl Fn(usize) -> Range<u64>,
    ) {
        let all = (0..self.states.len()).map(|transition| (transition, rounds(transition)));
        let some: Vec<_> = all.filter(|(_, rounds)| !rounds.is_empty()).collect();
        out.count(some.len());
        let mut next = 0;
        for (transition, rounds) in some {
            out.count(transition - next);
            next = transition + 1;
            out.count((rounds.end - rounds.start) as usize);
            rounds.for_each(|round| out.put(time(transition, round).as_nanos()));
        }
    }

    /// The first round of a transition whose token may be looked at for its date. While there is no evidence of the
    /// consumer's round there will be later than that, and counts instead.
    fn oldest_date(&self, transition: usize) -> u64 {
        let fired = self.states[transition].fired;
        let outputs = self.net.outputs.of(transition).iter().map(|place| {
            let arc = &self.tables.arcs[*place as usize];
            let consumer = &self.states[arc.consumer as usize];
            let is_looked_at = consumer.seen > consumer.fired && u64::from(arc.initial) < self.window;
            if is_looked_at { consumer.fired.saturating_sub(u64::from(arc.initial)) } else { fired }
        });
        outputs.min().unwrap_or(fired).min(fired)
    }

    fn save_units(&self) -> Vec<SavedUnits> {
        let mut units: Vec<SavedUnits> = Vec::new();
        // What is known of a unit is evidence of its round.
        for round in self.base..self.base.saturating_add(self.window).min(self.evidence.end()) {
            for (unit, slot) in (self.net.unit(round, 0)..).zip(self.slots.round(round)) {
                let known = match slot {
                    Slot::Unknown => continue,
                    Slot::Held => SavedKnown::Held,
                    Slot::Delivered => SavedKnown::Delivered,
                    Slot::Absent => SavedKnown::Absent,
                    Slot::Missed => SavedKnown::Missed,
                };
                match units.last_mut() {
                    Some(run) if run.last + 1 == unit && run.known == known => run.last = unit,
                    _ => units.push(SavedUnits { first: unit, last: unit, known }),
                }
            }
        }
        units
    }

    fn restore_fired(&mut self, saved: &mut Differences<'_>) -> Result<(), Unfit> {
        let mut rest = &mut self.states[..];
        while !rest.is_empty() {
            let (count, fired) = (saved.count()? as usize, saved.number()?);
            let parts = rest.split_at_mut_checked(count).filter(|(alike, _)| !alike.is_empty());
            let (alike, others) = parts.ok_or(unfit("it has other transitions"))?;
            alike.iter_mut().for_each(|state| (state.fired, state.seen) = (fired, fired));
            rest = others;
        }
        self.base = self.states.iter().map(|state| state.fired).min().unwrap_or(0);
        let end = self.base.saturating_add(self.window);
        check(self.net.unit(end, 0) < NUMBER_MAX, "it is in too high a round")?;
        check(self.states.iter().all(|state| state.fired <= end), "a transition is ahead of the window")?;
        self.behind = self.states.iter().filter(|state| state.fired == self.base).count();
        self.forget();
        for arc in &self.tables.arcs {
            let tokens = self.states[arc.producer as usize].fired + u64::from(arc.initial);
            check(
                self.states[arc.consumer as usize].fired <= tokens,
                "a token was taken that was not there",
            )?;
        }
        Ok(())
    }

    fn restore_evidence(&mut self, saved: &mut Differences<'_>) -> Result<(), Unfit> {
        let end = self.base.saturating_add(self.window);
        self.restore_times(saved, |engine, transition, saved| {
            let (fired, rounds) = (engine.states[transition].fired, saved.count()?);
            check(rounds <= end - fired, "evidence of too many rounds")?;
            for round in fired..fired + rounds {
                engine.evidence.set(transition, round, Time::from_nanos(saved.number()?));
            }
            engine.states[transition].seen = fired + rounds;
            Ok(())
        })?;
        let seen = |transition: usize| self.states[transition].seen;
        check(self.evidence.go_on(seen, self.tables.places.len() as u64), "evidence in another order")
    }

    fn restore_dates(&mut self, saved: &mut Differences<'_>) -> Result<(), Unfit> {
        let mut dated = 0;
        self.restore_times(saved, |engine, transition, saved| {
            let fired = engine.states[transition].fired;
            let first = fired.checked_sub(saved.count()?).ok_or(unfit("dates of too many rounds"))?;
            let oldest = engine.oldest_date(transition);
            check(first <= oldest, "a token has no date")?;
            dated += usize::from(oldest < fired);
            for round in first..fired {
                let time = saved.number()?;
                if round >= oldest {
                    engine.dates.set(transition, round, Time::from_nanos(time));
                }
            }
            Ok(())
        })?;
        let needs_date = |(transition, state): &(usize, &State)| self.oldest_date(*transition) < state.fired;
        let needed = self.states.iter().enumerate().filter(needs_date).count();
        check(dated == needed, "a token has no date")
    }

    /// What [`save_times`](Self::save_times) has written.
    fn restore_times(
        &mut self,
        saved: &mut Differences<'_>,
        mut restore: impl FnMut(&mut Self, usize, &mut Differences<'_>) -> Result<(), Unfit>,
    ) -> Result<(), Unfit> {
        let mut next = 0;
        for _ in 0..saved.count()? {
            let transition = saved.count()?.saturating_add(next);
            check(transition < self.states.len() as u64, "a transition that there is not")?;
            restore(self, transition as usize, saved)?;
            next = transition + 1;
        }
        Ok(())
    }

    fn restore_units(&mut self, saved: &[SavedUnits]) -> Result<(), Unfit> {
        let mut next = self.net.unit(self.base, 0);
        for run in saved {
            check(next <= run.first && run.first <= run.last, "units in another order")?;
            check(run.last < self.window_end(), "units beyond the window")?;
            for unit in run.first..=run.last {
                self.restore_unit(unit, run.known)?;
            }
            next = run.last + 1;
        }
        Ok(())
    }

    fn restore_unit(&mut self, unit: u64, known: SavedKnown) -> Result<(), Unfit> {
        let (round, object) = self.net.split(unit);
        let arc = self.tables.arcs[self.tables.places[object] as usize];
        let fired = self.states[arc.consumer as usize].fired;
        check(fired <= round, "something is known of a unit that is over")?;
        let (slot, is_open) = match known {
            SavedKnown::Held => (Slot::Held, false),
            SavedKnown::Absent => (Slot::Absent, false),
            SavedKnown::Delivered => (Slot::Delivered, true),
            SavedKnown::Missed => (Slot::Missed, true),
        };
        let may_be_open = fired == round && self.holds(&arc, round);
        check(!is_open || may_be_open, "a unit was delivered before its turn")?;
        *self.slots.of(round, object) = slot;
        Ok(())
    }

    /// Works out what follows for a transition from what is known of its round.
    fn resume(&mut self, transition: usize) {
        let round = self.states[transition].fired;
        (self.states[transition].missing, self.states[transition].there) = (0, 0);
        for at in self.net.inputs.range(transition) {
            let arc = self.tables.arcs[self.net.inputs.item(at)];
            let is_marked = self.holds(&arc, round);
            self.states[transition].missing += u32::from(!is_marked);
            if arc.object == NO_OBJECT {
                continue;
            }
            match self.slots.get(round, arc.object as usize) {
                Slot::Unknown => continue,
                Slot::Delivered | Slot::Missed => self.states[transition].ready += 1,
                Slot::Held | Slot::Absent if is_marked => self.open(&arc, round),
                Slot::Held | Slot::Absent => (),
            }
            self.states[transition].there += 1;
        }
        if self.states[transition].missing == 0 {
            self.enqueue(transition);
        }
    }
}
