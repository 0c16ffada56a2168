//! When each of many has something to do: which is the first, and which are due, is found without a look at the others.

use std::collections::BTreeSet;

use outflow_media::Time;

/// The times of those that have one.
#[derive(Debug)]
pub(super) struct Timers<K>(BTreeSet<(Time, K)>);

impl<K> Default for Timers<K> {
    fn default() -> Self {
        Timers(BTreeSet::new())
    }
}

impl<K: Copy + Ord> Timers<K> {
    /// One that had this time, or none, has another one from now on, or none.
    pub(super) fn change(&mut self, key: K, before: Option<Time>, after: Option<Time>) {
        if before == after {
            return;
        }
        if let Some(at) = before {
            self.0.remove(&(at, key));
        }
        self.0.extend(after.map(|at| (at, key)));
    }

    /// When the first of them has something to do.
    pub(super) fn first(&self) -> Option<Time> {
        self.0.first().map(|(at, _)| *at)
    }

    /// Those whose time has come. They keep it.
    pub(super) fn due(&self, now: Time) -> impl Iterator<Item = K> + '_ {
        self.0.iter().take_while(move |(at, _)| *at <= now).map(|(_, key)| *key)
    }

    /// Takes out the first one whose time has come. It has none any more.
    pub(super) fn pop(&mut self, now: Time) -> Option<K> {
        let due = self.0.first().copied().filter(|(at, _)| *at <= now)?;
        self.0.remove(&due);
        Some(due.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_are_due_whose_time_has_come_in_the_order_of_their_times() {
        let at = Time::from_millis;
        let mut timers = Timers::default();
        for (key, time) in [(1, 7), (2, 3), (3, 9), (4, 3)] {
            timers.change(key, None, Some(at(time)));
        }
        timers.change(1, Some(at(7)), Some(at(2)));
        timers.change(4, Some(at(3)), None);
        assert_eq!(timers.first(), Some(at(2)));
        assert_eq!(timers.due(at(1)).count(), 0);
        assert_eq!(timers.due(at(8)).collect::<Vec<_>>(), [1, 2]);
        assert_eq!([timers.pop(at(2)), timers.pop(at(2)), timers.pop(at(9))], [Some(1), None, Some(2)]);
        assert_eq!(timers.first(), Some(at(9)), "of the one that is left");
    }
}
