//! Which level of a stream its receivers with this worker want at best: the tasks that fetch streams are told
//! when that changes.

use std::collections::BTreeMap;

use outflow_packet::Level;

use crate::message::{Demander, Demanders, StreamId};

/// What the receivers of a stream want.
#[derive(Debug)]
pub(super) struct Demands {
    told: Demander,
    /// Receivers by level.
    wanted: BTreeMap<Level, usize>,
    best: Option<Level>,
}

impl Demands {
    pub(super) fn new(stream: StreamId, told: &Demanders) -> Self {
        Demands { told: told.of(stream), wanted: BTreeMap::new(), best: None }
    }

    /// A receiver wants `after` where it wanted `before`.
    pub(super) fn change(&mut self, before: Option<Level>, after: Option<Level>) {
        if before == after {
            return;
        }
        if let Some(level) = after {
            *self.wanted.entry(level).or_default() += 1;
        }
        if let Some(level) = before
            && let Some(count) = self.wanted.get_mut(&level)
        {
            *count -= 1;
            if *count == 0 {
                self.wanted.remove(&level);
            }
        }
        let best = self.wanted.keys().next().copied();
        if best != self.best {
            self.best = best;
            self.told.tell(best);
        }
    }
}

impl Drop for Demands {
    /// Of a stream that has gone nothing is wanted.
    fn drop(&mut self) {
        if self.best.is_some() {
            self.told.tell(None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::demands;

    #[test]
    fn only_a_change_of_the_best_is_told() {
        let (sender, mut queues) = demands(1);
        let mut told = queues.pop().expect("one");
        let mut demands = Demands::new(7, &sender);
        let [one, two, three] = [1, 2, 3].map(Level::new);
        let mut next = || told.try_recv().map(|demand| (demand.stream, demand.level));
        demands.change(None, two);
        assert_eq!(next(), Some((7, two)));
        demands.change(None, two);
        demands.change(None, three);
        demands.change(two, three);
        assert_eq!(next(), None);
        demands.change(three, one);
        assert_eq!(next(), Some((7, one)));
        demands.change(one, None);
        assert_eq!(next(), Some((7, two)));
        demands.change(two, None);
        assert_eq!(next(), Some((7, three)));
        demands.change(three, None);
        assert_eq!((next(), next()), (Some((7, None)), None));
        demands.change(None, one);
        assert_eq!(next(), Some((7, one)));
        drop(demands);
        assert_eq!(next(), Some((7, None)), "the stream has gone");
    }
}
