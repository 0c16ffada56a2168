//! Levels of transport streams.
//!
//! The packets of a transport stream share datagrams and continuity counters, so that a level of it is a
//! branch of its own, derived from the whole stream ([`TsLevel`](outflow_graph::elements::ts_level)). For each branch
//! that is a transport stream, [`TsLevels`] knows where its frames begin and what they are, once for all
//! levels, and counts what each costs, whether or not a sink takes it.
//!
//! All branches are cut where frames of the original begin, so that a sink goes from one to another between
//! two frames, and gets what it had got had it been there before: see [`change`](super::change).

use outflow_graph::elements::ts_level::Piece;
use outflow_media::Time;
use outflow_packet::{Level, MaxLayer, Parsed};

use super::coming::Coming;
use super::frames::{TsLevelBranch, TsLevels};
use super::way::Levels;
use crate::control::branches::{Made, ORIGINAL, Slot};
use crate::control::distribution::Distribution;
use crate::save::SavedTsLevel;
use crate::schedule::{Branch, SinkKey};
use outflow_ring::Seq;

/// The levels of a branch that is a transport stream: branches of their own.
#[derive(Debug, Clone, Copy)]
pub(in crate::control) struct TsBranches {
    /// The branch that is the whole stream.
    pub(super) whole: usize,
}

impl TsBranches {
    pub(in crate::control) fn of(whole: usize) -> Self {
        TsBranches { whole }
    }
}

impl Levels for TsBranches {
    fn count(self, out: &Distribution) -> u8 {
        self.frames(out).map_or(0, TsLevels::layers)
    }

    fn rates(self, out: &Distribution, now: Time) -> Vec<u64> {
        self.frames(out).map_or_else(Vec::new, |levels| levels.rate_table(now))
    }

    fn branch_for(self, out: &mut Distribution, now: Time, level: Level) -> usize {
        let max_layer = self.frames(out).map_or(MaxLayer::ALL, |levels| levels.max_layer(level));
        self.at_max_layer(out, now, max_layer)
    }

    fn take(self, out: &mut Distribution, key: SinkKey, level: Level) {
        if let Some(levels) = self.frames_mut(out) {
            levels.wants_other(key);
        }
        out.sinks.get_mut(key.0).into_iter().for_each(|sink| sink.spec.level = level);
    }

    fn set_least(self, out: &mut Distribution, layers: u8) {
        if let Some(levels) = self.frames_mut(out) {
            levels.set_least(layers);
        }
    }

    fn restart(self, out: &mut Distribution) {
        if let Some(levels) = self.frames_mut(out) {
            levels.restart();
        }
    }

    fn comes(self, out: &Distribution, index: usize, parsed: &Parsed) -> Coming {
        // What is a level already has none.
        let is_whole = index == self.whole && self.frames(out).is_some();
        Coming { datagram: is_whole.then(|| parsed.clone()), pushed: None }
    }

    fn came(self, out: &mut Distribution, now: Time, at: (usize, Seq, bool), coming: Coming) {
        let (_, at, is_there) = at;
        if let Some(datagram) = coming.datagram {
            self.part(out, now, (at, is_there), &datagram);
        }
    }

    fn look(self, out: &mut Distribution, now: Time) -> bool {
        self.look_at_news(out, now)
    }

    fn change(self, out: &mut Distribution, now: Time, key: SinkKey) -> bool {
        self.hop_or_stop(out, now, key)
    }
}

impl TsBranches {
    /// The branch that has layers up to `max_layer` of a transport stream; it begins with what the ring of that
    /// holds.
    pub(super) fn at_max_layer(self, out: &mut Distribution, now: Time, max_layer: MaxLayer) -> usize {
        if max_layer == MaxLayer::ALL {
            return self.whole;
        }
        if let Some(known) = self.find_max_layer(out, max_layer) {
            return known;
        }
        self.begin_level(out, now, |_| TsLevelBranch::new(max_layer))
    }

    /// The branch at a level that another process has made up to now.
    pub(in crate::control) fn restore_level(
        self,
        out: &mut Distribution,
        now: Time,
        saved: SavedTsLevel,
    ) -> usize {
        let known = self.find_max_layer(out, MaxLayer::up_to(saved.max_layer));
        known.unwrap_or_else(|| {
            let index = self.begin_level(out, now, |pieces| TsLevelBranch::restore(saved, pieces));
            let ended = level_mut(out, index).and_then(|level| level.settle(saved));
            ended.into_iter().for_each(|datagram| out.push_to(now, index, datagram));
            index
        })
    }

    /// Makes a branch that is a level, of what the ring of the whole stream holds.
    fn begin_level(
        self,
        out: &mut Distribution,
        now: Time,
        make: impl FnOnce(&[Piece]) -> TsLevelBranch,
    ) -> usize {
        let mut pieces = Vec::new();
        if let (Some(levels), Some(branch)) = (self.frames(out), out.branches.get(self.whole)) {
            levels.replay(branch.ring(), |piece| pieces.push(piece));
        }
        let (ring, level) = (out.ring(0), Box::new(make(&pieces)));
        let index = out.insert(|index| Slot::of_level(now, Branch::new(index, ring), (self.whole, level)));
        pieces.iter().for_each(|piece| self.feed(out, now, index, piece));
        index
    }

    fn find_max_layer(self, out: &Distribution, max_layer: MaxLayer) -> Option<usize> {
        let is = |(of, branch): (usize, &TsLevelBranch)| {
            of == self.whole && branch.filter.max_layer() == max_layer
        };
        out.branches.find(|slot| slot.level().is_some_and(is))
    }

    /// A datagram of a transport stream stands at `at` in its ring, or was refused there: its packets go into
    /// the branches that are levels of it.
    pub(in crate::control) fn part(
        self,
        out: &mut Distribution,
        now: Time,
        at: (Seq, bool),
        datagram: &Parsed,
    ) {
        let Some(slot) = out.branches.slot_mut(self.whole) else { return };
        let Some(levels) = &mut slot.levels else { return };
        let mut pieces = core::mem::take(&mut out.pieces);
        let found = match &datagram.found {
            Some(found) => &found[..],
            None if self.whole == ORIGINAL => &out.found[..],
            None => &[],
        };
        levels.push(now, at, (datagram, found), &mut pieces);
        levels.forget_before(slot.branch.ring().first());
        for level in 0..out.branches.end() {
            let slot = out.branches.slot(level);
            if slot.and_then(|slot| slot.level()).is_some_and(|(whole, _)| whole == self.whole) {
                pieces.iter().for_each(|piece| self.feed(out, now, level, piece));
            }
        }
        pieces.clear();
        out.pieces = pieces;
    }

    /// Gives packets to a branch that is a level.
    fn feed(self, out: &mut Distribution, now: Time, index: usize, piece: &Piece) {
        if piece.starts {
            let ended = level_mut(out, index).and_then(|level| level.filter.begin(piece));
            ended.into_iter().for_each(|datagram| out.push_to(now, index, datagram));
            let reach = out.branches.get(index).map(|branch| (branch.ring().first(), branch.ring().head()));
            if let (Some((first, head)), Some(level)) = (reach, level_mut(out, index)) {
                level.forget_before(first);
                level.start(piece, head);
            }
        }
        let mut made = core::mem::take(&mut out.made);
        if let Some(level) = level_mut(out, index) {
            level.filter.push(piece, &mut |datagram| made.push(datagram));
        }
        made.drain(..).for_each(|datagram| out.push_to(now, index, datagram));
        out.made = made;
    }

    pub(super) fn frames(self, out: &Distribution) -> Option<&TsLevels> {
        out.branches.slot(self.whole)?.levels.as_deref()
    }

    pub(super) fn frames_mut(self, out: &mut Distribution) -> Option<&mut TsLevels> {
        out.branches.slot_mut(self.whole)?.levels.as_deref_mut()
    }
}

fn level_mut(out: &mut Distribution, index: usize) -> Option<&mut TsLevelBranch> {
    match &mut out.branches.slot_mut(index)?.made {
        Made::Level { level, .. } => Some(level),
        _ => None,
    }
}
