//! What a stream keeps of all its sinks together: how many there are of each class, which wait for something,
//! and what those had that have left.

use std::collections::VecDeque;

use outflow_packet::Drops;

use super::levels::LevelBounds;
use crate::schedule::{Counters, Priority, Sink, SinkKey};

/// The sinks of a stream, taken together.
#[derive(Debug, Default)]
pub(super) struct Audience {
    /// How many there are of each class.
    of_class: [usize; Priority::ALL.len()],
    /// Those that joined before the stream had a format.
    awaiting: Vec<SinkKey>,
    /// Those that have begun, and are to be sent sender reports at once.
    begun: VecDeque<SinkKey>,
    bounds: LevelBounds,
    /// What those that have left were sent, ...
    past: Counters,
    /// ... and did not get.
    past_drops: Drops,
    joins: u64,
}

impl Audience {
    /// A sink joins.
    pub(super) fn join(&mut self, priority: Priority) {
        self.joins += 1;
        self.of_class[priority as usize] += 1;
    }

    /// A sink has left: what it was sent stays known.
    pub(super) fn leave(&mut self, sink: &Sink) {
        self.of_class[sink.spec.priority as usize] -= 1;
        self.past.packets += sink.counters.packets;
        self.past.bytes += sink.counters.bytes;
        self.past_drops.merge(&sink.drops);
    }

    /// A sink goes to another class.
    pub(super) fn change_class(&mut self, from: Priority, to: Priority) {
        self.of_class[from as usize] -= 1;
        self.of_class[to as usize] += 1;
    }

    /// The classes in which there are sinks.
    pub(super) fn classes(&self) -> impl Iterator<Item = Priority> + '_ {
        Priority::ALL.into_iter().filter(|class| self.of_class[*class as usize] > 0)
    }

    /// A sink waits for a branch.
    pub(super) fn awaits(&mut self, key: SinkKey) {
        self.awaiting.push(key);
    }

    /// Whether sinks wait for a branch.
    pub(super) fn is_awaiting(&self) -> bool {
        !self.awaiting.is_empty()
    }

    /// Takes out the sinks that wait for a branch.
    pub(super) fn take_awaiting(&mut self) -> Vec<SinkKey> {
        core::mem::take(&mut self.awaiting)
    }

    /// A sink has begun.
    pub(super) fn begins(&mut self, key: SinkKey) {
        self.begun.push_back(key);
    }

    /// The next sink that has begun.
    pub(super) fn next_begun(&mut self) -> Option<SinkKey> {
        self.begun.pop_front()
    }

    /// A sink waits for nothing any more.
    pub(super) fn withdraw(&mut self, key: SinkKey) {
        self.awaiting.retain(|&k| k != key);
        self.begun.retain(|&k| k != key);
    }

    /// Goes on from what another process has counted, once its sinks have joined.
    pub(super) fn restore_past(&mut self, past: Counters, drops: Drops, joins: u64) {
        (self.past, self.past_drops, self.joins) = (past, drops, joins);
    }

    pub(super) fn bounds(&self) -> &LevelBounds {
        &self.bounds
    }

    pub(super) fn set_bounds(&mut self, bounds: LevelBounds) {
        self.bounds = bounds;
    }

    /// What sinks that have left were sent and did not get, and how many ever joined.
    pub(super) fn past(&self) -> (Counters, Drops, u64) {
        (self.past, self.past_drops, self.joins)
    }
}
