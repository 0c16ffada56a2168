//! Levels of transport streams.
//!
//! The packets of a transport stream share datagrams and continuity counters, so that a level of it is a
//! branch of its own, derived from the whole stream ([`TsLevel`](crate::element::ts_level)). For each branch
//! that is a transport stream, [`TsLevels`] knows where its frames begin and what they are, once for all
//! levels, and counts what each costs, whether or not somebody takes it.
//!
//! All branches are cut where frames of the original begin, so that a sink goes from one to another between
//! two frames, and gets what it had got had it been there before: see [`change`].

mod bounds;
mod change;
mod frames;
#[cfg(test)]
mod tests;

use outflow_media::Time;

pub use bounds::LevelBounds;
pub(in crate::control) use frames::{TsLevelBranch, TsLevels};

use super::branches::{Made, ORIGINAL, Slot};
use super::distribution::Distribution;
use super::share::Understood;
use super::state::State;
use super::stream::Stream;
use crate::buffer::Seq;
use crate::element::ts_level::Piece;
use crate::graph::Unfit;
use crate::schedule::{Branch, Cut, Level, SinkKey};

impl Stream {
    /// Changes the quality that a sink wants. It gets less from the next frame on, and more from where that
    /// can be decoded; no more than its bound allows ([`Stream::set_bounds`]).
    ///
    /// # Errors
    /// There is no such level; the sink keeps the one it has.
    pub fn set_level(&mut self, key: SinkKey, level: Level) -> Result<(), Unfit> {
        let out = &mut self.state.out;
        let Some(sink) = out.sinks.get(key.0) else { return Ok(()) };
        let levels = sink.branch.map_or(0, |index| out.levels_of(index));
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
        self.out.rates_at(now, ORIGINAL)
    }

    /// Bits a second of each level of what a sink receives, the best first.
    pub fn rates_of(&self, now: Time, key: SinkKey) -> Vec<u64> {
        let branch = self.out.sinks.get(key.0).and_then(|sink| sink.branch);
        branch.map_or_else(Vec::new, |branch| self.out.rates_at(now, branch))
    }

    /// How many levels there are of the stream as it comes in; 0 before that is known.
    pub fn levels(&self) -> u8 {
        self.out.levels_of(ORIGINAL).max(self.out.options.layers)
    }
}

impl Distribution {
    /// Gives a sink the level that it wants, or that its bound leaves of it.
    pub(in crate::control) fn take_level(&mut self, key: SinkKey) {
        let Some(sink) = self.sinks.get(key.0) else { return };
        let level = self.bounded(sink);
        let Some(index) = sink.branch else {
            self.sinks[key.0].spec.level = level;
            return;
        };
        let whole = self.whole(index);
        if self.renditions.is_some() {
            self.wants_other_rendition(key);
            self.sinks[key.0].spec.level = level;
        } else if let Some(levels) = self.ts_levels_mut(whole) {
            levels.wants_other(key);
            self.sinks[key.0].spec.level = level;
        } else if let Some(branch) = self.branches.get_mut(index) {
            branch.set_level(&mut self.sinks, key, level);
        }
    }

    fn rates_at(&self, now: Time, index: usize) -> Vec<u64> {
        if self.renditions.is_some() {
            return self.rendition_rates(now);
        }
        match self.ts_levels(self.whole(index)) {
            Some(levels) => levels.rate_table(now),
            None => self.branches.get(index).map_or_else(Vec::new, |branch| branch.rate_table(now)),
        }
    }

    /// How many levels there are of what a branch carries; 0 before that is known.
    fn levels_of(&self, index: usize) -> u8 {
        if self.renditions.is_some() {
            return self.rendition_count() as u8;
        }
        match self.ts_levels(self.whole(index)) {
            Some(levels) => levels.layers(),
            None => self.branches.get(index).map_or(0, Branch::levels),
        }
    }

    /// The branch of which this one is a level, or itself.
    fn whole(&self, index: usize) -> usize {
        match self.branches.slot(index) {
            Some(slot) => slot.level().map_or(index, |(whole, _)| whole),
            _ => index,
        }
    }

    fn ts_levels(&self, index: usize) -> Option<&TsLevels> {
        self.branches.slot(index)?.levels.as_deref()
    }

    fn ts_levels_mut(&mut self, index: usize) -> Option<&mut TsLevels> {
        self.branches.slot_mut(index)?.levels.as_deref_mut()
    }

    /// The branch for a sink that wants this level of a branch: if that is a transport stream with layers, one
    /// of its own.
    pub(in crate::control) fn at_level(&mut self, now: Time, whole: usize, level: Level) -> usize {
        match self.ts_levels(whole).map(|levels| levels.cut(level)) {
            // Renditions are taken whole.
            Some(cut) if self.renditions.is_none() => self.at_cut(now, whole, cut),
            _ => whole,
        }
    }

    /// The branch that has layers up to `cut` of a transport stream; it begins with what the ring of that
    /// holds.
    fn at_cut(&mut self, now: Time, whole: usize, cut: Cut) -> usize {
        if cut == Cut::ALL {
            return whole;
        }
        if let Some(known) = self.find_cut(whole, cut) {
            return known;
        }
        let (ring, level) = (self.ring(0), Box::new(TsLevelBranch::new(cut)));
        let index = self.insert(|index| Slot::of_level(now, Branch::new(index, ring), (whole, level)));
        let mut pieces = Vec::new();
        if let (Some(levels), Some(branch)) = (self.ts_levels(whole), self.branches.get(whole)) {
            levels.replay(branch.ring(), |piece| pieces.push(piece));
        }
        pieces.iter().for_each(|piece| self.feed(now, index, piece));
        index
    }

    fn find_cut(&self, whole: usize, cut: Cut) -> Option<usize> {
        let is = |(of, branch): (usize, &TsLevelBranch)| of == whole && branch.filter.cut() == cut;
        self.branches.find(|slot| slot.level().is_some_and(is))
    }

    /// A datagram of a transport stream stands at `at` in its ring, or was refused there: its packets go into
    /// the branches that are levels of it.
    pub(in crate::control) fn part(
        &mut self,
        now: Time,
        index: usize,
        at: (Seq, bool),
        datagram: &Understood,
    ) {
        let Some(slot) = self.branches.slot_mut(index) else { return };
        let Some(levels) = &mut slot.levels else { return };
        let mut pieces = core::mem::take(&mut self.pieces);
        levels.push(now, at, datagram, &mut pieces);
        levels.forget_before(slot.branch.ring().first());
        for level in 0..self.branches.end() {
            let slot = self.branches.slot(level);
            if slot.and_then(|slot| slot.level()).is_some_and(|(whole, _)| whole == index) {
                pieces.iter().for_each(|piece| self.feed(now, level, piece));
            }
        }
        pieces.clear();
        self.pieces = pieces;
    }

    /// Gives packets to a branch that is a level.
    fn feed(&mut self, now: Time, index: usize, piece: &Piece) {
        if piece.starts {
            let ended = self.level_mut(index).and_then(|level| level.filter.begin(piece));
            ended.into_iter().for_each(|datagram| self.push_to(now, index, datagram));
            let reach = self.branches.get(index).map(|branch| (branch.ring().first(), branch.ring().head()));
            if let (Some((first, head)), Some(level)) = (reach, self.level_mut(index)) {
                level.forget_before(first);
                level.start(piece, head);
            }
        }
        let mut made = core::mem::take(&mut self.made);
        if let Some(level) = self.level_mut(index) {
            level.filter.push(piece, &mut |datagram| made.push(datagram));
        }
        made.drain(..).for_each(|datagram| self.push_to(now, index, datagram));
        self.made = made;
    }

    fn level_mut(&mut self, index: usize) -> Option<&mut TsLevelBranch> {
        match &mut self.branches.slot_mut(index)?.made {
            Made::Level { level, .. } => Some(level),
            _ => None,
        }
    }
}
