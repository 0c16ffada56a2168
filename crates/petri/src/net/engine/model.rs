//! The definitions of [`net`](crate::net), carried out directly: slow, and without anything remembered that
//! could be worked out.

use std::collections::BTreeMap;

use super::super::{Carries, Driver, PlaceId, Upper};
use super::*;

/// What the model knows of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    Held,
    Delivered,
    Absent,
}

pub(super) struct Model {
    net: Arc<Net>,
    start: Time,
    pub(super) now: Time,
    window: u64,
    /// When each transition fired its rounds.
    fired: Vec<Vec<Time>>,
    /// Since when there is evidence of a round of a transition.
    evidence: BTreeMap<(usize, u64), Time>,
    units: BTreeMap<u64, Known>,
    events: Vec<Event>,
}

impl Model {
    pub(super) fn new(net: Arc<Net>, window: u64, start: Time) -> Self {
        let fired = vec![Vec::new(); net.transitions().len()];
        Model {
            net,
            start,
            now: start,
            window,
            fired,
            evidence: BTreeMap::new(),
            units: BTreeMap::new(),
            events: Vec::new(),
        }
    }

    fn round(&self, transition: usize) -> u64 {
        self.fired[transition].len() as u64
    }

    pub(super) fn end(&self) -> u64 {
        self.fired.iter().map(Vec::len).min().unwrap_or(0) as u64 + self.window
    }

    /// The date of the token of the consumer's round in a place, if it is there.
    fn date(&self, place: PlaceId) -> Option<Time> {
        let place = &self.net.places()[place.index()];
        let round = self.round(place.consumer.index());
        let since = self.evidence.get(&(place.consumer.index(), round)).copied();
        let put = match round.checked_sub(u64::from(place.initial)) {
            None => Some(self.start),
            Some(fired) => self.fired[place.producer.index()].get(fired as usize).copied(),
        };
        Some(put?.max(since?))
    }

    fn is_marked(&self, place: PlaceId) -> bool {
        let place = &self.net.places()[place.index()];
        let round = self.round(place.consumer.index());
        round < self.round(place.producer.index()) + u64::from(place.initial)
    }

    fn inputs(&self, transition: usize) -> Vec<PlaceId> {
        self.net.inputs(TransitionId(transition as u32)).collect()
    }

    /// The unit that is in a place in the round of its consumer.
    fn unit(&self, place: PlaceId) -> Option<u64> {
        let object = (0..self.net.objects()).find(|object| self.net.place_of(*object) == place)?;
        let consumer = self.net.places()[place.index()].consumer.index();
        Some(self.net.unit(self.round(consumer), object))
    }

    /// When what is known of the unit of a place counts: from then on it can be delivered.
    fn ready(&self, place: PlaceId) -> Option<Time> {
        self.units.get(&self.unit(place)?)?;
        Some(self.date(place)? + self.net.places()[place.index()].interval.earliest)
    }

    /// The earliest and latest time of a transition, if it is enabled and there is evidence of its round.
    fn fires(&self, transition: usize) -> Option<Time> {
        let inputs = self.inputs(transition);
        let dates: Option<Vec<_>> = inputs.iter().map(|place| self.date(*place)).collect();
        let (dates, what) = (dates?, &self.net.transitions()[transition]);
        let from = |i: usize| dates[i] + self.net.places()[inputs[i].index()].interval.earliest;
        let until = |i: usize| match self.net.places()[inputs[i].index()].interval.latest {
            Some(latest) => dates[i] + latest,
            None => NEVER,
        };
        let all = || 0..inputs.len();
        let is_object = |i: &usize| self.net.places()[inputs[*i].index()].carries == Carries::Object;
        let objects: Vec<_> = all().filter(is_object).collect();
        let master = inputs.iter().position(|place| Some(*place) == what.master);
        let upper = match what.rule.upper() {
            Upper::Strong => all().map(until).min(),
            Upper::Weak => all().map(until).max(),
            Upper::Master => master.map(until),
        }?;
        let is_there = |i: usize| !is_object(&i) || self.ready(inputs[i]).is_some();
        let lower = match what.rule.driver() {
            Driver::Any if objects.is_empty() => all().map(from).min(),
            Driver::Any => objects.iter().filter_map(|i| self.ready(inputs[*i])).min(),
            Driver::All => all().map(from).max().filter(|_| all().all(is_there)),
            Driver::Master => master.filter(|i| is_there(*i)).map(from),
        };
        Some(lower.unwrap_or(NEVER).min(upper))
    }

    /// Units that wait for their time, and when that is.
    fn opening(&self) -> Vec<(Time, u64)> {
        let places = (0..self.net.objects()).map(|object| self.net.place_of(object));
        let ready = places.filter(|place| self.is_marked(*place)).filter_map(|place| {
            let unit = self.unit(place)?;
            let is_waiting = matches!(self.units.get(&unit), Some(Known::Held));
            if is_waiting { Some((self.ready(place)?, unit)) } else { None }
        });
        ready.collect()
    }

    fn firing(&self) -> Vec<(Time, usize)> {
        let fires = |transition| Some((self.fires(transition)?, transition));
        (0..self.fired.len()).filter_map(fires).filter(|(time, _)| *time < NEVER).collect()
    }

    /// When something happens next, if no unit comes.
    pub(super) fn next(&self) -> Option<Time> {
        let opening = self.opening().into_iter().map(|(time, _)| time);
        opening.chain(self.firing().into_iter().map(|(time, _)| time)).min()
    }

    /// Does all that is due, in the order in which it is.
    fn advance(&mut self, now: Time) {
        while let Some(next) = self.next().filter(|next| *next <= now) {
            self.now = self.now.max(next);
            for (_, unit) in self.opening().into_iter().filter(|(time, _)| *time <= self.now) {
                self.units.insert(unit, Known::Delivered);
                self.events.push(Event::Deliver(unit));
            }
            if let Some((_, transition)) = self.firing().into_iter().find(|(time, _)| *time <= self.now) {
                self.fire(transition);
            }
        }
        self.now = self.now.max(now);
    }

    fn fire(&mut self, transition: usize) {
        let units: Vec<_> =
            self.inputs(transition).into_iter().filter_map(|place| self.unit(place)).collect();
        for unit in units {
            match self.units.get(&unit) {
                None => self.events.push(Event::Lost(unit)),
                Some(Known::Held) => self.events.push(Event::Delete(unit)),
                Some(_) => {}
            }
        }
        let round = self.round(transition);
        self.events.push(Event::Fired { transition: TransitionId(transition as u32), round });
        self.fired[transition].push(self.now);
    }

    fn note_evidence(&mut self, unit: u64) {
        for transition in 0..self.fired.len() {
            let of = |object: &usize| self.net.places()[self.net.place_of(*object).index()].consumer.index();
            let first = (0..self.net.objects()).find(|object| of(object) == transition).unwrap_or(0);
            for round in 0..self.end() {
                if self.net.unit(round, first) <= unit {
                    self.evidence.entry((transition, round)).or_insert(self.now);
                }
            }
        }
    }

    pub(super) fn handle(&mut self, now: Time, step: Step) -> Option<Verdict> {
        self.advance(now);
        let (Step::Received(unit) | Step::Absent(unit) | Step::Announced(unit)) = step else { return None };
        let (round, object) = self.net.split(unit);
        let consumer = self.net.places()[self.net.place_of(object).index()].consumer.index();
        let is_late = round < self.round(consumer);
        let is_beyond = round >= self.end();
        let known = if matches!(step, Step::Received(_)) { Known::Held } else { Known::Absent };
        self.note_evidence(unit);
        let verdict = match (step, self.units.get(&unit)) {
            (Step::Announced(_), _) => None,
            _ if is_late => Some(Verdict::Late),
            _ if is_beyond => Some(Verdict::BeyondWindow),
            (Step::Received(_), Some(Known::Absent)) | (_, None) => {
                self.units.insert(unit, known);
                Some(Verdict::Memorise)
            }
            _ => Some(Verdict::Duplicate),
        };
        let before = self.events.len();
        self.advance(now);
        let is_delivered = self.events[before..].contains(&Event::Deliver(unit));
        if is_delivered { Some(Verdict::Deliver) } else { verdict }
    }

    /// What happened, in the order of a list: what happens at once has no order of its own.
    pub(super) fn events(&mut self) -> Vec<Event> {
        let mut events = core::mem::take(&mut self.events);
        events.sort_unstable();
        events
    }
}

/// What an engine is told.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step {
    Received(u64),
    Absent(u64),
    Announced(u64),
    Timeout,
}

/// Tells an engine.
pub(super) fn tell(engine: &mut Engine, now: Time, step: Step) -> Option<Verdict> {
    match step {
        Step::Received(unit) => Some(engine.handle_received(now, unit)),
        Step::Absent(unit) => Some(engine.handle_absent(now, unit)),
        Step::Announced(unit) => {
            engine.handle_announced(now, unit);
            None
        }
        Step::Timeout => {
            engine.handle_timeout(now);
            None
        }
    }
}
