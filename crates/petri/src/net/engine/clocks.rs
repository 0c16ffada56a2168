//! The dates of tokens, and since when there is evidence that a round has begun.

use std::collections::VecDeque;

use outflow_media::Time;

use super::super::{Carries, Net};

/// Rounds that are over and kept for later ones.
const SPARE_MAX: usize = 2;

/// A time of each transition for each round, from a round on to the last one that has any.
#[derive(Debug)]
pub(super) struct Dates {
    transitions: usize,
    first: u64,
    /// In nanoseconds, from the round `first` on.
    rounds: VecDeque<Box<[u64]>>,
    /// Of rounds that are over. What stands there is not asked for before it is set again.
    spare: Vec<Box<[u64]>>,
}

impl Dates {
    pub(super) fn new(transitions: usize) -> Self {
        Dates { transitions, first: 0, rounds: VecDeque::new(), spare: Vec::new() }
    }

    /// Sets the time of a round. One that was forgotten remains so.
    pub(super) fn set(&mut self, transition: usize, round: u64, time: Time) {
        let Some(at) = round.checked_sub(self.first) else { return };
        while self.rounds.len() as u64 <= at {
            let times = self.spare.pop().unwrap_or_else(|| vec![0; self.transitions].into());
            self.rounds.push_back(times);
        }
        self.rounds[at as usize][transition] = time.as_nanos();
    }

    /// The time that was set. Long ago for a round that was forgotten.
    pub(super) fn of(&self, transition: usize, round: u64) -> Time {
        let times = round.checked_sub(self.first).and_then(|at| self.rounds.get(at as usize));
        Time::from_nanos(times.map_or(0, |times| times[transition]))
    }

    /// Rounds below are not asked for any more.
    pub(super) fn forget_below(&mut self, round: u64) {
        while self.first < round {
            let Some(times) = self.rounds.pop_front() else { break };
            self.first += 1;
            if self.spare.len() < SPARE_MAX {
                self.spare.push(times);
            }
        }
        self.first = self.first.max(round);
    }
}

/// Goes through the rounds of transitions in the order of their first units, once.
#[derive(Debug)]
pub(super) struct Evidence {
    /// The first object of each transition, and the transition, in order.
    firsts: Vec<(u32, u32)>,
    /// The next one without evidence: its place in `firsts`, and the round.
    next: usize,
    round: u64,
    /// Its first unit.
    unit: u64,
    /// Since when there was evidence.
    since: Dates,
}

impl Evidence {
    pub(super) fn new(net: &Net) -> Self {
        let mut first = vec![u32::MAX; net.transitions().len()];
        for object in (0..net.objects()).rev() {
            let place = &net.places()[net.place_of(object).index()];
            debug_assert_eq!(place.carries, Carries::Object);
            first[place.consumer.index()] = object as u32;
        }
        // One without objects begins with its round.
        let first = first.into_iter().map(|first| if first == u32::MAX { 0 } else { first });
        let mut firsts: Vec<_> = first.zip(0..).collect();
        firsts.sort_unstable();
        let unit = u64::from(firsts[0].0);
        let since = Dates::new(firsts.len());
        Evidence { firsts, next: 0, round: 0, unit, since }
    }

    /// The next transition and round that this unit is evidence of; of rounds before `end`.
    pub(super) fn next(&mut self, unit: u64, end: u64, objects: u64, now: Time) -> Option<(usize, u64)> {
        if unit < self.unit || self.round >= end {
            return None;
        }
        let (transition, round) = (self.firsts[self.next].1 as usize, self.round);
        self.since.set(transition, round, now);
        self.next += 1;
        if self.next == self.firsts.len() {
            (self.next, self.round) = (0, self.round + 1);
        }
        self.unit = self.round.saturating_mul(objects).saturating_add(u64::from(self.firsts[self.next].0));
        Some((transition, round))
    }

    /// There is evidence of a round since then. To be followed by [`go_on`](Self::go_on).
    pub(super) fn set(&mut self, transition: usize, round: u64, since: Time) {
        self.since.set(transition, round, since);
    }

    /// Goes on where there is evidence of these numbers of rounds, one a transition. Whether that can be.
    pub(super) fn go_on(&mut self, seen: impl Fn(usize) -> u64, objects: u64) -> bool {
        let counts = || self.firsts.iter().map(|(_, transition)| seen(*transition as usize));
        let round = counts().min().unwrap_or(0);
        let next = counts().take_while(|seen| *seen == round + 1).count();
        let is_right = counts().skip(next).all(|seen| seen == round);
        (self.next, self.round) = (next, round);
        self.unit = round.saturating_mul(objects).saturating_add(u64::from(self.firsts[next].0));
        is_right
    }

    /// The first round that there may be no evidence of at all.
    pub(super) fn end(&self) -> u64 {
        self.round.saturating_add(1)
    }

    /// Rounds below are over.
    pub(super) fn forget_below(&mut self, round: u64) {
        self.since.forget_below(round);
    }

    /// Since when there was evidence of a round of the window, if there was.
    pub(super) fn since(&self, transition: usize, round: u64) -> Time {
        self.since.of(transition, round)
    }
}
