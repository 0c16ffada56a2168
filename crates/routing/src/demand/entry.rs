//! What the children of one key want.

use std::collections::{BTreeMap, BTreeSet};

use outflow_media::Time;

use super::{Counters, Level, Settings};

#[derive(Debug, Clone)]
struct Want {
    level: Level,
    until: Option<Time>,
}

/// One key of a table.
#[derive(Debug, Clone)]
pub(super) struct Entry<C> {
    wants: BTreeMap<C, Want>,
    /// How many want each level, so that the best one need not be searched for.
    levels: BTreeMap<Level, usize>,
    expiries: BTreeSet<(Time, C)>,
    /// What is asked for above.
    pub(super) demand: Option<Level>,
    /// What the one above was told last.
    pub(super) told: Option<Level>,
    /// Since when less is wanted than is asked for.
    worse_since: Option<Time>,
    /// When the table looks after it.
    pub(super) timer: Option<Time>,
}

impl<C> Default for Entry<C> {
    fn default() -> Self {
        Entry {
            wants: BTreeMap::new(),
            levels: BTreeMap::new(),
            expiries: BTreeSet::new(),
            demand: None,
            told: None,
            worse_since: None,
            timer: None,
        }
    }
}

impl<C: Ord + Clone> Entry<C> {
    /// Whether the child is a new one.
    pub(super) fn want(&mut self, child: C, level: Level, until: Option<Time>) -> bool {
        let is_new = !self.leave(&child);
        *self.levels.entry(level).or_default() += 1;
        until.map(|until| self.expiries.insert((until, child.clone())));
        self.wants.insert(child, Want { level, until });
        is_new
    }

    /// Whether the child was there.
    pub(super) fn leave(&mut self, child: &C) -> bool {
        let Some((child, want)) = self.wants.remove_entry(child) else { return false };
        if let Some(count) = self.levels.get_mut(&want.level) {
            *count -= 1;
            if *count == 0 {
                self.levels.remove(&want.level);
            }
        }
        want.until.map(|until| self.expiries.remove(&(until, child)));
        true
    }

    /// How many children were to say again what they want, and did not.
    pub(super) fn expire(&mut self, now: Time) -> usize {
        let before = self.wants.len();
        while let Some((until, child)) = self.expiries.first()
            && *until <= now
        {
            let child = child.clone();
            self.leave(&child);
        }
        before - self.wants.len()
    }

    /// Whether what is asked for changed.
    pub(super) fn settle(&mut self, now: Time, settings: &Settings, counters: &mut Counters) -> bool {
        let best = self.best();
        if best == self.demand {
            counters.taken_back += u64::from(self.worse_since.take().is_some());
            return false;
        }
        let is_better = match (best, self.demand) {
            (Some(best), Some(demand)) => best < demand,
            (best, _) => best.is_some(),
        };
        if !is_better {
            self.worse_since.get_or_insert(now);
            if self.hold_ends(settings).is_some_and(|end| now < end) {
                return false;
            }
        }
        *(if is_better { &mut counters.better } else { &mut counters.worse }) += 1;
        self.demand = best;
        self.worse_since = None;
        true
    }

    fn hold_ends(&self, settings: &Settings) -> Option<Time> {
        let wait = if self.wants.is_empty() { settings.linger } else { settings.hold };
        Some(self.worse_since? + wait)
    }

    pub(super) fn next_timeout(&self, settings: &Settings) -> Option<Time> {
        let expiry = self.expiries.first().map(|(until, _)| *until);
        expiry.into_iter().chain(self.hold_ends(settings)).min()
    }

    pub(super) fn best(&self) -> Option<Level> {
        self.levels.first_key_value().map(|(level, _)| *level)
    }

    pub(super) fn level_of(&self, child: &C) -> Option<Level> {
        self.wants.get(child).map(|want| want.level)
    }

    pub(super) fn children(&self) -> impl Iterator<Item = (&C, Level)> {
        self.wants.iter().map(|(child, want)| (child, want.level))
    }

    pub(super) fn len(&self) -> usize {
        self.wants.len()
    }

    /// Whether there is nothing left to remember.
    pub(super) fn is_over(&self) -> bool {
        self.wants.is_empty() && self.demand.is_none() && self.told.is_none()
    }
}
