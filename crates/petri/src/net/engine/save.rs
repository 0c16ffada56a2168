//! An engine is handed over, and goes on elsewhere.

use std::sync::Arc;

use outflow_media::Time;

use super::slots::Slot;
use super::tables::NO_OBJECT;
use super::{Engine, Net};
use crate::limits::NUMBER_MAX;
use crate::save::{SavedEngine, SavedKnown, SavedTransitions, SavedUnits, Unfit};

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
        let transitions = engine.each(&saved.transitions)?;
        engine.restore_transitions(&transitions)?;
        engine.restore_evidence(&transitions)?;
        engine.restore_units(&saved.units)?;
        let least = engine.net.unit(engine.base, 0);
        check((least..=engine.window_end()).contains(&saved.settled), "it is further than its window")?;
        engine.settled = saved.settled;
        (0..engine.states.len()).for_each(|transition| engine.resume(transition));
        engine.run();
        engine.settle();
        Ok(engine)
    }

    fn save_transitions(&self) -> Vec<SavedTransitions> {
        let mut runs: Vec<SavedTransitions> = Vec::new();
        for transition in 0..self.states.len() {
            let saved = self.save_transition(transition);
            let is_alike = |run: &&mut SavedTransitions| {
                run.fired == saved.fired && run.times == saved.times && run.evidence == saved.evidence
            };
            match runs.last_mut().filter(is_alike) {
                Some(run) => run.count += 1,
                None => runs.push(saved),
            }
        }
        runs
    }

    /// What was saved of each transition.
    fn each<'a>(&self, saved: &'a [SavedTransitions]) -> Result<Vec<&'a SavedTransitions>, Unfit> {
        let count = saved.iter().fold(0, |count: u64, run| count.saturating_add(run.count));
        check(count == self.states.len() as u64, "it has other transitions")?;
        Ok(saved.iter().flat_map(|run| core::iter::repeat_n(run, run.count as usize)).collect())
    }

    fn save_transition(&self, transition: usize) -> SavedTransitions {
        let state = &self.states[transition];
        let time = |round: u64| self.dates.of(transition, round).as_nanos();
        let since = |round: u64| self.evidence.since(transition, round).as_nanos();
        SavedTransitions {
            count: 1,
            fired: state.fired,
            times: (self.oldest_token(transition)..state.fired).map(time).collect(),
            evidence: (state.fired..state.seen).map(since).collect(),
        }
    }

    /// The first round of a transition whose tokens may be left.
    fn oldest_token(&self, transition: usize) -> u64 {
        let fired = self.states[transition].fired;
        let outputs = self.net.outputs.of(transition).iter().map(|place| {
            let arc = &self.tables.arcs[*place as usize];
            self.states[arc.consumer as usize].fired.saturating_sub(u64::from(arc.initial))
        });
        outputs.min().unwrap_or(fired).min(fired)
    }

    fn save_units(&self) -> Vec<SavedUnits> {
        let mut units: Vec<SavedUnits> = Vec::new();
        let first = self.net.unit(self.base, 0);
        for unit in first..self.window_end() {
            let (round, object) = self.net.split(unit);
            let known = match self.slots.get(round, object) {
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
        units
    }

    fn restore_transitions(&mut self, saved: &[&SavedTransitions]) -> Result<(), Unfit> {
        self.base = saved.iter().map(|transition| transition.fired).min().unwrap_or(0);
        let end = self.base.saturating_add(self.window);
        check(self.net.unit(end, 0) < NUMBER_MAX, "it is in too high a round")?;
        for (state, transition) in self.states.iter_mut().zip(saved) {
            check(transition.fired <= end, "a transition is ahead of the window")?;
            check(transition.evidence.len() as u64 <= end - transition.fired, "evidence of too many rounds")?;
            state.fired = transition.fired;
            state.seen = transition.fired + transition.evidence.len() as u64;
        }
        self.behind = self.states.iter().filter(|state| state.fired == self.base).count();
        for arc in &self.tables.arcs {
            let tokens = self.states[arc.producer as usize].fired + u64::from(arc.initial);
            check(
                self.states[arc.consumer as usize].fired <= tokens,
                "a token was taken that was not there",
            )?;
        }
        for (transition, saved) in saved.iter().enumerate() {
            let (oldest, fired) = (self.oldest_token(transition), saved.fired);
            let needed = (fired - oldest) as usize;
            let times = saved.times.len().checked_sub(needed).map(|first| &saved.times[first..]);
            let times = times.ok_or(unfit("a token has no date"))?;
            for (round, time) in (oldest..).zip(times) {
                self.dates.set(transition, round, Time::from_nanos(*time));
            }
        }
        Ok(())
    }

    fn restore_evidence(&mut self, saved: &[&SavedTransitions]) -> Result<(), Unfit> {
        for (transition, saved) in saved.iter().enumerate() {
            for (round, since) in (saved.fired..).zip(&saved.evidence) {
                self.evidence.set(transition, round, Time::from_nanos(*since));
            }
        }
        let seen = |transition: usize| self.states[transition].seen;
        check(self.evidence.go_on(seen, self.tables.places.len() as u64), "evidence in another order")
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
