//! The dates of tokens, and since when there is evidence that a round has begun.

use outflow_media::Time;

use super::super::{Carries, Net};

/// When transitions fired, for as many rounds as tokens can be left of.
#[derive(Debug)]
pub(super) struct Dates {
    /// Round by round, in nanoseconds: of zeros, the system gives only those that are used.
    times: Vec<u64>,
    transitions: usize,
    /// A power of two rounds, less one.
    mask: u64,
}

impl Dates {
    pub(super) fn new(transitions: usize, rounds: usize) -> Self {
        let rounds = rounds.next_power_of_two();
        Dates { times: vec![0; transitions * rounds], transitions, mask: rounds as u64 - 1 }
    }

    pub(super) fn set(&mut self, transition: usize, round: u64, time: Time) {
        let at = self.at(transition, round);
        self.times[at] = time.as_nanos();
    }

    pub(super) fn of(&self, transition: usize, round: u64) -> Time {
        Time::from_nanos(self.times[self.at(transition, round)])
    }

    fn at(&self, transition: usize, round: u64) -> usize {
        (round & self.mask) as usize * self.transitions + transition
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
    pub(super) fn new(net: &Net, rounds: usize) -> Self {
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
        let since = Dates::new(firsts.len(), rounds);
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

    /// Since when there was evidence of a round of the window, if there was.
    pub(super) fn since(&self, transition: usize, round: u64) -> Time {
        self.since.of(transition, round)
    }
}
