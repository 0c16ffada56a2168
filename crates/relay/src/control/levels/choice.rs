//! Which level a sink gets: the one that it wants, or what its bound leaves of it.

use outflow_graph::Unfit;
use outflow_media::Time;
use outflow_packet::Level;

use super::Kind;
use super::bounds::LevelBounds;
use super::way::Levels;
use crate::control::branches::ORIGINAL;
use crate::control::distribution::Distribution;
use crate::control::state::State;
use crate::control::stream::Stream;
use crate::schedule::{Encapsulation, Sink, SinkKey, Wish};

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
        let wish = Wish { asked: level, ..sink.wish };
        self.set_wish(key, wish);
        Ok(())
    }

    /// A sink wishes something else: a level that there is, or one of before.
    pub fn set_wish(&mut self, key: SinkKey, wish: Wish) {
        let out = &mut self.state.out;
        let Some(sink) = out.sinks.get_mut(key.0) else { return };
        sink.wish = wish;
        out.take_level(key);
    }

    /// Puts other bounds in place of those that are there. Sinks that get another level by that get less from
    /// the next frame on, and more from where it can be decoded.
    pub fn set_bounds(&mut self, bounds: LevelBounds) {
        let out = &mut self.state.out;
        out.audience.set_bounds(bounds);
        let changes = |(key, sink): (usize, &Sink)| {
            let is_other = out.bounded(sink) != sink.spec.level;
            is_other.then_some(SinkKey(key))
        };
        let keys: Vec<_> = out.sinks.iter().filter_map(changes).collect();
        keys.into_iter().for_each(|key| out.take_level(key));
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
    /// Gives a sink the level that it wants, or that its bound leaves of it.
    pub(in crate::control) fn take_level(&mut self, key: SinkKey) {
        let Some(sink) = self.sinks.get(key.0) else { return };
        let level = self.bounded(sink);
        match sink.branch {
            Some(index) => self.levels_at(index).take(self, key, level),
            None => self.sinks[key.0].spec.level = level,
        }
    }

    /// The level that a sink gets.
    pub(in crate::control) fn bounded(&self, sink: &Sink) -> Level {
        let name = sink.spec.branch.and_then(|branch| self.services.name(branch));
        let by_order = sink.branch.map_or(Level::BEST, |index| bound_by_order(self, sink, index));
        sink.wish.level().max(self.audience.bounds().of(name)).max(by_order)
    }
}

/// The bound of a sink in a branch by how it shows pictures.
pub(in crate::control) fn bound_by_order(out: &Distribution, sink: &Sink, index: usize) -> Level {
    let levels = out.levels_at(index);
    match (sink.spec.encapsulation, levels, out.branches.slot(index)) {
        (Encapsulation::Tracks, Kind::Layers(_), Some(slot)) => slot.showing.level(levels.count(out)),
        _ => Level::BEST,
    }
}

/// More is known of the order in a branch: its sinks get what is right by that.
pub(in crate::control) fn order_shown(out: &mut Distribution, index: usize) {
    let is_in_it = |(key, sink): (usize, &Sink)| {
        (sink.branch == Some(index) && out.bounded(sink) != sink.spec.level).then_some(SinkKey(key))
    };
    let keys: Vec<_> = out.sinks.iter().filter_map(is_in_it).collect();
    keys.into_iter().for_each(|key| out.take_level(key));
}
