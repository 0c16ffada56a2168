//! Levels: how a stream is thinned for sinks that want less of it.
//!
//! There are three ways, behind one trait ([`Levels`]): layers of RTP ([`layers`]), branches of a transport
//! stream ([`ts`]), and renditions ([`super::renditions`]). The levels of a branch are all of one kind; which
//! one is known here ([`Distribution::levels_at`]) and nowhere else.

mod bounds;
mod change;
mod coming;
mod frames;
mod layers;
#[cfg(test)]
mod tests;
mod ts;

use outflow_graph::Unfit;
use outflow_media::Time;
use outflow_packet::{Level, Parsed};

pub use bounds::LevelBounds;
pub(in crate::control) use coming::Coming;
pub(in crate::control) use frames::{TsLevelBranch, TsLevels};
pub(in crate::control) use ts::TsBranches;

use self::layers::Layers;
use super::branches::ORIGINAL;
use super::distribution::Distribution;
use super::renditions::Simulcast;
use super::state::State;
use super::stream::Stream;
use crate::buffer::Seq;
use crate::schedule::{Place, SinkKey};

/// One way to thin a stream. What it knows is with the branches; its methods are given these.
pub(in crate::control) trait Levels: Copy {
    /// How many levels there are; 0 before that is known.
    fn count(self, out: &Distribution) -> u8;

    /// Bits a second of each level, the best first.
    fn rates(self, out: &Distribution, now: Time) -> Vec<u64>;

    /// The branch that a sink reads which wants this level; made if need be.
    fn branch_for(self, out: &mut Distribution, now: Time, level: Level) -> usize;

    /// A sink is to get another level, as soon as it can.
    fn take(self, out: &mut Distribution, key: SinkKey, level: Level);

    /// The least number of layers there are, whatever comes.
    fn set_least(self, _: &mut Distribution, _: u8) {}

    /// The source begins again.
    fn restart(self, _: &mut Distribution) {}

    /// A packet is about to come into the branch of this index.
    fn comes(self, _: &Distribution, _: usize, _: &Parsed) -> Coming {
        Coming::default()
    }

    /// It has come: into this branch, where it stands at this position if the ring took it.
    fn came(self, _: &mut Distribution, _: Time, _: (usize, Seq, bool), _: Coming) {}

    /// If more is known than before, looks which sinks change now. Returns whether any may have something to
    /// do.
    fn look(self, _: &mut Distribution, _: Time) -> bool {
        false
    }

    /// Lets a sink go on at the level that it wants if this is where it can, or stop where that will be.
    /// Returns whether it still takes another one.
    fn change(self, _: &mut Distribution, _: Time, _: SinkKey) -> bool {
        false
    }

    /// How many branches the source fills, from [`ORIGINAL`] on.
    fn roots(self, _: &Distribution) -> usize {
        1
    }

    /// The one of these that a level is made of.
    fn root_for(self, _: &Distribution, _: Level) -> usize {
        ORIGINAL
    }

    /// All branches are made again.
    fn begin(self, _: &mut Distribution) {}

    /// A branch is gone; its index may be another one's.
    fn forget(self, _: &mut Distribution, _: usize) {}

    /// Whether some sink is about to go to a branch that no sink reads.
    fn is_awaited(self, _: &mut Distribution, _: Time, _: usize) -> bool {
        false
    }
}

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

    fn comes(self, out: &Distribution, index: usize, understood: &Parsed) -> Coming {
        each!(self, levels => levels.comes(out, index, understood))
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

    fn forget(self, out: &mut Distribution, index: usize) {
        each!(self, levels => levels.forget(out, index));
    }

    fn is_awaited(self, out: &mut Distribution, now: Time, index: usize) -> bool {
        each!(self, levels => levels.is_awaited(out, now, index))
    }
}

impl Stream {
    /// Changes the quality that a sink wants. It gets less from the next frame on, and more from where that
    /// can be decoded; no more than its bound allows ([`Stream::set_bounds`]).
    ///
    /// # Errors
    /// There is no such level; the sink keeps the one it has.
    pub fn set_level(&mut self, key: SinkKey, level: Level) -> Result<(), Unfit> {
        let out = &mut self.state.out;
        let Some(sink) = out.sinks.get(key.0) else { return Ok(()) };
        let levels = sink.branch.map_or(0, |index| out.levels_at(index).count(out));
        if levels > 0 && level.number() > levels {
            let help = format!("write 1 (the best) to {levels}");
            return Err(Unfit::new(format!("there is no level {level}: the stream has {levels}"), help));
        }
        out.sinks[key.0].wanted_level = level;
        out.take_level(key);
        Ok(())
    }
}

impl State {
    /// Bits a second of each level of the stream as it comes in, the best first.
    pub fn rate_table(&self, now: Time) -> Vec<u64> {
        self.out.levels_at(ORIGINAL).rates(&self.out, now)
    }

    /// Bits a second of each level of what a sink receives, the best first.
    pub fn rates_of(&self, now: Time, key: SinkKey) -> Vec<u64> {
        let branch = self.out.sinks.get(key.0).and_then(|sink| sink.branch);
        branch.map_or_else(Vec::new, |branch| self.out.levels_at(branch).rates(&self.out, now))
    }

    /// How many levels there are of the stream as it comes in; 0 before that is known.
    pub fn levels(&self) -> u8 {
        self.out.levels_at(ORIGINAL).count(&self.out).max(self.out.options.layers)
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

    /// Gives a sink the level that it wants, or that its bound leaves of it.
    pub(in crate::control) fn take_level(&mut self, key: SinkKey) {
        let Some(sink) = self.sinks.get(key.0) else { return };
        let level = self.bounded(sink);
        match sink.branch {
            Some(index) => self.levels_at(index).take(self, key, level),
            None => self.sinks[key.0].spec.level = level,
        }
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

    fn place_of(&self, key: SinkKey) -> Option<(usize, Place)> {
        let sink = self.sinks.get(key.0)?;
        Some((sink.branch?, sink.place))
    }

    pub(in crate::control) fn go_on(&mut self, index: usize, key: SinkKey) {
        if let Some(branch) = self.branches.get_mut(index) {
            branch.go_on(&mut self.sinks, key);
        }
    }

    /// Takes a sink out of its branch, to be put into another.
    pub(in crate::control) fn take_out(&mut self, from: usize, key: SinkKey) {
        if let Some(branch) = self.branches.get_mut(from) {
            branch.remove(&mut self.sinks, key);
        }
        if let Some(sink) = self.sinks.get_mut(key.0) {
            sink.branch = None;
        }
    }
}
