//! Peers to which something has happened, by class and stream.

use std::collections::{BTreeMap, VecDeque};

use outflow_relay::Priority;

/// A queue for each class of each stream that has any.
#[derive(Debug, Default)]
pub(super) struct Ready {
    queues: BTreeMap<(Priority, usize), VecDeque<usize>>,
    /// Queues that have begun since this was asked last.
    begun: Vec<(Priority, usize)>,
}

impl Ready {
    /// Puts a peer down.
    pub(super) fn push(&mut self, of: (Priority, usize), place: usize) {
        let queue = self.queues.entry(of).or_insert_with(|| {
            self.begun.push(of);
            VecDeque::new()
        });
        queue.push_back(place);
    }

    /// Takes the queue of a class of a stream, to be worked off.
    pub(super) fn take(&mut self, of: (Priority, usize)) -> VecDeque<usize> {
        self.queues.remove(&of).unwrap_or_default()
    }

    /// Puts back what is left of a queue, before those that were put down meanwhile. Answers whether there are any.
    pub(super) fn put_back(&mut self, of: (Priority, usize), mut rest: VecDeque<usize>) -> bool {
        rest.extend(self.take(of));
        let is_more = !rest.is_empty();
        if is_more {
            self.queues.insert(of, rest);
        }
        is_more
    }

    /// The queues that have begun since this was asked last.
    pub(super) fn begun(&mut self) -> impl Iterator<Item = (Priority, usize)> + '_ {
        self.begun.drain(..)
    }
}
