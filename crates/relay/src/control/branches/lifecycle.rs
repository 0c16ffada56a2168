//! Branches come and go.

use outflow_media::{Format, Time};

use super::slot::{Made, Slot};
use super::table::ORIGINAL;
use crate::control::SinkEnd;
use crate::control::distribution::Distribution;
use crate::control::levels::{Levels, TsLevels};
use crate::limits::BRANCH_LINGER;
use crate::schedule::{Branch, Sink, SinkKey};

impl Distribution {
    /// Makes all branches again, for another format.
    pub(in crate::control) fn begin_branches(&mut self, format: &Format) {
        self.clear_branches();
        let ring = self.ring(format.main_track());
        let original = Slot::new(Branch::new(ORIGINAL, ring), Made::Original, None);
        self.branches.push(Slot { levels: TsLevels::of(format), ..original });
        let levels = self.levels_at(ORIGINAL);
        levels.begin(self);
        for index in 1..levels.roots(self) {
            let slot = Slot::new(Branch::new(index, self.ring(format.main_track())), Made::Rendition, None);
            self.branches.push(Slot { levels: TsLevels::of(format), ..slot });
        }
        self.set_layers(self.options.layers);
        self.services.bind(format);
    }

    /// The least number of layers that the source has.
    pub(in crate::control) fn set_layers(&mut self, layers: u8) {
        (0..self.branches.end()).for_each(|index| self.levels_at(index).set_least(self, layers));
    }

    /// No branches, until there is a format again.
    pub(in crate::control) fn clear_branches(&mut self) {
        self.branches.clear();
        self.services.rest();
    }

    /// A sink has left a branch: it rests soon if nothing else wants it.
    pub(in crate::control) fn left_branch(&mut self, now: Time, index: usize) {
        let lasts = |slot: &Slot| matches!(slot.made, Made::Original | Made::Rendition);
        if self.branches.slot(index).is_none_or(lasts) {
            return;
        }
        let is_of = |(_, sink): (usize, &Sink)| sink.branch == Some(index);
        let derives = |(_, slot): (usize, &Slot)| slot.needs(index);
        let wanted = self.sinks.iter().any(is_of) || self.branches.slots().any(derives);
        if let Some(slot) = self.branches.slot_mut(index)
            && !wanted
        {
            slot.idle_since.get_or_insert(now);
        }
    }

    /// Lets branches go that no sink has read for a while.
    pub(in crate::control) fn check_linger(&mut self, now: Time) {
        for index in 0..self.branches.end() {
            let idle_since = self.branches.slot(index).and_then(|slot| slot.idle_since);
            if idle_since.is_none_or(|since| now.since(since) < BRANCH_LINGER) {
                continue;
            }
            if self.levels_at(index).is_awaited(self, now, index) {
                self.branches.slot_mut(index).into_iter().for_each(|slot| slot.idle_since = Some(now));
            } else {
                self.remove_branch(now, index);
            }
        }
    }

    /// When the first branch goes that no sink reads.
    pub(in crate::control) fn linger_ends(&self) -> Option<Time> {
        let idle = self.branches.slots().filter_map(|(_, slot)| slot.idle_since);
        idle.min().map(|since| since + BRANCH_LINGER)
    }

    /// The branch at `index` goes.
    pub(in crate::control) fn remove_branch(&mut self, now: Time, index: usize) {
        let Some(slot) = self.branches.take(index) else { return };
        self.levels_at(index).forget(self, index);
        match slot.made {
            Made::Original | Made::Rendition => {}
            Made::Declared(id) => {
                self.services.map_exits(&self.branches);
                self.services.unwanted(id);
            }
            Made::Derived { base, chain, .. } => {
                self.branches.keep_drops(&chain);
                self.left_branch(now, base);
            }
            Made::Marked { base, .. } | Made::Level { base, .. } => self.left_branch(now, base),
            Made::Joined { base, others } => {
                [base, others].into_iter().for_each(|at| self.left_branch(now, at))
            }
        }
    }

    /// Brings the branches into line with the services that are there now.
    pub(in crate::control) fn reconcile(&mut self, now: Time) {
        self.services.map_exits(&self.branches);
        for index in 0..self.branches.end() {
            let Some(Slot { made: Made::Declared(id), format, .. }) = self.branches.slot(index) else {
                continue;
            };
            let exit = self.services.exit(*id);
            let gives = exit.and_then(|exit| self.services.graph()?.exit_format(exit).ok());
            if exit.is_some() && gives == format.as_ref() {
                continue;
            }
            let end = if exit.is_some() { SinkEnd::FormatChanged } else { SinkEnd::BranchRemoved };
            self.end_branch(now, index, end);
        }
    }

    /// A branch carries this from now on: what is derived from it is made again, if that is something else.
    pub(in crate::control) fn set_branch_format(&mut self, now: Time, index: usize, format: Option<Format>) {
        let Some(slot) = self.branches.slot_mut(index) else { return };
        if slot.format == format {
            return;
        }
        slot.format = format;
        for derived in self.branches.derived_from(index) {
            self.end_branch(now, derived, SinkEnd::FormatChanged);
        }
    }

    /// A branch ends, and what is derived from it. Sinks that cannot be served on end, too; the others
    /// are placed again.
    pub(super) fn end_branch(&mut self, now: Time, index: usize, end: SinkEnd) {
        let derived = self.branches.derived_from(index);
        let keys = self
            .sinks
            .iter()
            .filter(|(_, sink)| sink.branch.is_some_and(|at| at == index || derived.contains(&at)));
        let keys: Vec<_> = keys.map(|(key, _)| SinkKey(key)).collect();
        for key in &keys {
            self.displace(*key);
        }
        derived.into_iter().rev().for_each(|at| self.remove_branch(now, at));
        self.remove_branch(now, index);
        for key in keys {
            let is_rtp = self.sinks[key.0].spec.encapsulation.is_rtp();
            if end == SinkEnd::BranchRemoved || is_rtp {
                self.end_sink(now, key, end);
            } else {
                self.place(now, key);
            }
        }
    }

    /// What a branch carries.
    pub(in crate::control) fn branch_format(&self, index: usize) -> Option<&Format> {
        let slot = self.branches.slot(index)?;
        slot.format.as_ref().or_else(|| self.format())
    }
}
