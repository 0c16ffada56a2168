//! Which child wants what, at which level, and what is to be asked for above because of it.
//!
//! A [`Table`] has keys (streams, trees of relays, pairs of source and group) and, of each, children
//! (receivers, neighbours, interfaces) with the level that each wants. The demand of a key is the best of
//! them, which is the smallest number: one transmission of it serves all (generalized multicast, Dong and
//! Yau, section III.B). It changes at once when it gets better, so that no child starves; when it gets worse,
//! only after a hold, so that a link does not flap with a receiver that tries what it can take.
//!
//! Between two changes for worse of a key there is a hold (or a linger) at the least.

mod entry;
pub mod limits;

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};

use outflow_media::Time;

use entry::Entry;
use limits::{CHILDREN_MAX, CHILDREN_OF_KEY_MAX, KEYS_MAX};

pub use crate::Level;

/// How long a table waits before it asks for less.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// From when the best level that is wanted is worse than what was asked for, to when that is asked for.
    pub hold: Duration,
    /// The same when no child wants anything any more.
    pub linger: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { hold: Duration::from_secs(2), linger: Duration::from_secs(2) }
    }
}

/// What is to be asked for above.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change<K> {
    /// Of what.
    pub key: K,
    /// The best level that is wanted; nothing if no child wants it any more.
    pub demand: Option<Level>,
}

/// Why a want is refused: a limit of the table is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Full {
    /// [`KEYS_MAX`].
    #[error("{KEYS_MAX} streams or groups are wanted already")]
    Keys,
    /// [`CHILDREN_OF_KEY_MAX`].
    #[error("{CHILDREN_OF_KEY_MAX} receivers and neighbours want it already")]
    ChildrenOfKey,
    /// [`CHILDREN_MAX`].
    #[error("there are {CHILDREN_MAX} receivers and neighbours already")]
    Children,
}

/// What happened, since the table was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Changes for better.
    pub better: u64,
    /// Changes for worse, to nothing included.
    pub worse: u64,
    /// Changes for worse that were taken back during their hold.
    pub taken_back: u64,
    /// Children that did not say again in time that they want something.
    pub expired: u64,
    /// Wants refused because of a limit ([`Full`]).
    pub refused: u64,
}

/// Which child wants what.
#[derive(Debug, Clone)]
pub struct Table<K, C> {
    settings: Settings,
    entries: BTreeMap<K, Entry<C>>,
    timers: BTreeSet<(Time, K)>,
    changed: BTreeSet<K>,
    children: usize,
    counters: Counters,
}

impl<K: Ord + Clone, C: Ord + Clone> Table<K, C> {
    /// An empty one: no child wants anything.
    pub const fn new(settings: Settings) -> Self {
        Table {
            settings,
            entries: BTreeMap::new(),
            timers: BTreeSet::new(),
            changed: BTreeSet::new(),
            children: 0,
            counters: Counters { better: 0, worse: 0, taken_back: 0, expired: 0, refused: 0 },
        }
    }

    /// A child wants this level from now on, in place of what it wanted before. With `until` it has to say so
    /// again before then; it is forgotten otherwise.
    pub fn handle_want(
        &mut self,
        now: Time,
        key: K,
        child: C,
        level: Level,
        until: Option<Time>,
    ) -> Result<(), Full> {
        if let Err(full) = self.admits(&key, &child) {
            self.counters.refused += 1;
            return Err(full);
        }
        let entry = self.entries.entry(key.clone()).or_default();
        self.children += usize::from(entry.want(child, level, until));
        self.settle(now, key);
        Ok(())
    }

    fn admits(&self, key: &K, child: &C) -> Result<(), Full> {
        let entry = self.entries.get(key);
        if entry.is_some_and(|entry| entry.level_of(child).is_some()) {
            return Ok(());
        }
        match entry {
            None if self.entries.len() >= KEYS_MAX => Err(Full::Keys),
            Some(entry) if entry.len() >= CHILDREN_OF_KEY_MAX => Err(Full::ChildrenOfKey),
            _ if self.children >= CHILDREN_MAX => Err(Full::Children),
            _ => Ok(()),
        }
    }

    /// A child wants nothing any more. Nothing happens if it did not.
    pub fn handle_leave(&mut self, now: Time, key: K, child: &C) {
        let Some(entry) = self.entries.get_mut(&key) else { return };
        self.children -= usize::from(entry.leave(child));
        self.settle(now, key);
    }

    /// Forgets a key at once, and says nothing of it: no parent is there to be asked.
    pub fn forget(&mut self, key: &K) {
        let Some(entry) = self.entries.remove(key) else { return };
        self.children -= entry.len();
        if let Some(at) = entry.timer {
            self.timers.remove(&(at, key.clone()));
        }
        self.changed.remove(key);
    }

    /// Ends the holds that are over, and forgets children that did not say again that they want something.
    pub fn handle_timeout(&mut self, now: Time) {
        while let Some((at, _)) = self.timers.first()
            && *at <= now
        {
            let Some((_, key)) = self.timers.pop_first() else { break };
            if let Some(entry) = self.entries.get_mut(&key) {
                entry.timer = None;
                let expired = entry.expire(now);
                self.children -= expired;
                self.counters.expired += expired as u64;
                self.settle(now, key);
            }
        }
    }

    /// When [`Self::handle_timeout`] is due: a hold or a want ends. Changed by all that takes `now`, and by
    /// [`Self::forget`].
    pub fn next_timeout(&self) -> Option<Time> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// The next change that is to be told above. Of several of one key that were not asked for in between, it
    /// is the last one; if nothing is different after all, none.
    pub fn poll(&mut self) -> Option<Change<K>> {
        while let Some(key) = self.changed.pop_first() {
            let Some(entry) = self.entries.get_mut(&key) else { continue };
            let demand = entry.demand;
            let is_new = core::mem::replace(&mut entry.told, demand) != demand;
            if entry.is_over() {
                self.entries.remove(&key);
            }
            if is_new {
                return Some(Change { key, demand });
            }
        }
        None
    }

    /// What is asked for above: what is wanted, or what was a moment ago.
    pub fn demand(&self, key: &K) -> Option<Level> {
        self.entries.get(key)?.demand
    }

    /// The best level that a child wants now, whatever is still held.
    pub fn wanted(&self, key: &K) -> Option<Level> {
        self.entries.get(key)?.best()
    }

    /// The children of a key, in order, and what each wants.
    pub fn children(&self, key: &K) -> impl Iterator<Item = (&C, Level)> {
        self.entries.get(key).into_iter().flat_map(Entry::children)
    }

    /// How many children of all keys there are.
    pub const fn len(&self) -> usize {
        self.children
    }

    /// Whether no child wants anything.
    pub const fn is_empty(&self) -> bool {
        self.children == 0
    }

    /// What happened so far.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Brings a key's demand to what its children want, as far as that is allowed now.
    fn settle(&mut self, now: Time, key: K) {
        let Some(entry) = self.entries.get_mut(&key) else { return };
        let before = entry.timer;
        if entry.settle(now, &self.settings, &mut self.counters) {
            self.changed.insert(key.clone());
        }
        entry.timer = entry.next_timeout(&self.settings);
        let after = entry.timer;
        if entry.is_over() && !self.changed.contains(&key) {
            self.entries.remove(&key);
        }
        if before != after {
            before.map(|at| self.timers.remove(&(at, key.clone())));
            after.map(|at| self.timers.insert((at, key)));
        }
    }
}

#[cfg(test)]
mod tests;
