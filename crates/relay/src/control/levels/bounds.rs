//! Bounds of the levels: receivers get no more than these, whatever they ask for. What they asked for stays
//! known, and is what they get again when a bound goes.

use std::collections::BTreeMap;

use outflow_packet::Level;

use crate::control::distribution::Distribution;
use crate::control::stream::Stream;
use crate::schedule::{Sink, SinkKey};

/// The best levels that receivers of a stream get. One beyond the last level is the base.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LevelBounds {
    /// Of all receivers.
    pub stream: Level,
    /// Of those of a declared branch, by its name; it need not be there yet.
    pub branches: BTreeMap<String, Level>,
}

impl LevelBounds {
    /// Adds a bound, of a branch or of the whole stream. The lowest level holds.
    pub fn lower(&mut self, branch: Option<&str>, to: Level) {
        let bound = match branch {
            Some(name) => self.branches.entry(name.to_owned()).or_default(),
            None => &mut self.stream,
        };
        *bound = to.max(*bound);
    }

    /// The bound of sinks of a declared branch, or the stream as it comes in.
    pub(in crate::control) fn of(&self, branch: Option<&str>) -> Level {
        let of_branch = branch.and_then(|name| self.branches.get(name));
        self.stream.max(of_branch.copied().unwrap_or_default())
    }
}

impl Stream {
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

impl Distribution {
    /// The level that a sink gets.
    pub(in crate::control) fn bounded(&self, sink: &Sink) -> Level {
        let name = sink.spec.branch.and_then(|branch| self.services.name(branch));
        sink.wanted_level.max(self.audience.bounds().of(name))
    }
}
