//! Levels: how a stream is thinned for sinks that want less of it.
//!
//! There are three ways, behind one trait ([`Levels`]): layers of RTP ([`layers`]), branches of a transport
//! stream ([`ts`]), and renditions ([`super::renditions`]). The levels of a branch are all of one kind; which
//! one is known here ([`Distribution::levels_at`]) and nowhere else.

mod bounds;
mod change;
mod choice;
mod coming;
mod frames;
mod layers;
mod showing;
#[cfg(test)]
mod tests;
mod ts;
mod way;

use outflow_media::Time;
use outflow_packet::{Level, Parsed};

pub use bounds::LevelBounds;
pub(in crate::control) use choice::{bound_by_order, order_shown};
pub(in crate::control) use coming::Coming;
pub(in crate::control) use frames::{TsLevelBranch, TsLevels};
pub(in crate::control) use showing::Showing;
pub(in crate::control) use ts::TsBranches;
pub(in crate::control) use way::Levels;

use self::layers::Layers;
use super::branches::ORIGINAL;
use super::distribution::Distribution;
use super::renditions::Simulcast;
use crate::schedule::SinkKey;
use outflow_ring::Seq;

/// The levels of a branch, of whichever kind.
#[derive(Debug, Clone, Copy)]
pub(in crate::control) enum Kind {
    Layers(Layers),
    Ts(TsBranches),
    Renditions(Simulcast),
}

macro_rules! each {
    ($self:ident, $levels:ident => $call:expr) => {
        match $self {
            Kind::Layers($levels) => $call,
            Kind::Ts($levels) => $call,
            Kind::Renditions($levels) => $call,
        }
    };
}

impl Levels for Kind {
    fn count(self, out: &Distribution) -> u8 {
        each!(self, levels => levels.count(out))
    }

    fn rates(self, out: &Distribution, now: Time) -> Vec<u64> {
        each!(self, levels => levels.rates(out, now))
    }

    fn branch_for(self, out: &mut Distribution, now: Time, level: Level) -> usize {
        each!(self, levels => levels.branch_for(out, now, level))
    }

    fn take(self, out: &mut Distribution, key: SinkKey, level: Level) {
        each!(self, levels => levels.take(out, key, level));
    }

    fn set_least(self, out: &mut Distribution, layers: u8) {
        each!(self, levels => levels.set_least(out, layers));
    }

    fn restart(self, out: &mut Distribution) {
        each!(self, levels => levels.restart(out));
    }

    fn comes(self, out: &Distribution, index: usize, parsed: &Parsed) -> Coming {
        each!(self, levels => levels.comes(out, index, parsed))
    }

    fn came(self, out: &mut Distribution, now: Time, at: (usize, Seq, bool), coming: Coming) {
        each!(self, levels => levels.came(out, now, at, coming));
    }

    fn look(self, out: &mut Distribution, now: Time) -> bool {
        each!(self, levels => levels.look(out, now))
    }

    fn change(self, out: &mut Distribution, now: Time, key: SinkKey) -> bool {
        each!(self, levels => levels.change(out, now, key))
    }

    fn roots(self, out: &Distribution) -> usize {
        each!(self, levels => levels.roots(out))
    }

    fn root_for(self, out: &Distribution, level: Level) -> usize {
        each!(self, levels => levels.root_for(out, level))
    }

    fn begin(self, out: &mut Distribution) {
        each!(self, levels => levels.begin(out));
    }

    fn begin_with_held(self, out: &mut Distribution, index: usize) {
        each!(self, levels => levels.begin_with_held(out, index));
    }

    fn forget(self, out: &mut Distribution, index: usize) {
        each!(self, levels => levels.forget(out, index));
    }

    fn is_awaited(self, out: &mut Distribution, now: Time, index: usize) -> bool {
        each!(self, levels => levels.is_awaited(out, now, index))
    }
}

impl Distribution {
    /// The levels of what a branch carries.
    pub(in crate::control) fn levels_at(&self, index: usize) -> Kind {
        if self.renditions.is_some() {
            return Kind::Renditions(Simulcast::at(index));
        }
        let whole = self.branches.whole(index);
        match self.branches.slot(whole).is_some_and(|slot| slot.levels.is_some()) {
            true => Kind::Ts(TsBranches::of(whole)),
            false => Kind::Layers(Layers { branch: index }),
        }
    }

    /// Packets got lost that the source's reader has seen.
    pub(in crate::control) fn miss(&mut self) {
        let levels = self.branches.slot_mut(ORIGINAL).and_then(|slot| slot.levels.as_mut());
        levels.into_iter().for_each(|levels| levels.miss());
    }

    /// Looks where sinks change their levels that want to. Returns whether any may have something to do.
    pub(in crate::control) fn change_levels(&mut self, now: Time) -> bool {
        let mut any = false;
        for index in 0..self.branches.end() {
            let levels = self.levels_at(index);
            any |= levels.look(self, now);
            let stopped = self.branches.get(index).map_or_else(Vec::new, |branch| branch.stopped().to_vec());
            any |= !stopped.is_empty();
            for key in stopped {
                levels.change(self, now, key);
            }
        }
        any
    }
}
