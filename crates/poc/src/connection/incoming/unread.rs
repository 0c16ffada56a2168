//! What is to be read: in order of delivery, and the lowest unit of it.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::save::{SavedBytes, SavedWhole};

#[derive(Debug, Default)]
pub(super) struct Unread {
    /// Units, with what they are or without if they were lost.
    queue: VecDeque<(u64, Option<Bytes>)>,
    /// Ascending: the lowest unit of the queue, the lowest behind that one, and so on.
    lowest: VecDeque<u64>,
}

impl Unread {
    pub(super) fn push(&mut self, unit: u64, whole: Option<Bytes>) {
        self.queue.push_back((unit, whole));
        while self.lowest.back().is_some_and(|other| *other > unit) {
            self.lowest.pop_back();
        }
        self.lowest.push_back(unit);
    }

    /// All of it, in order.
    pub(super) fn save(&self) -> Vec<SavedWhole> {
        let whole = |(unit, whole): &(u64, Option<Bytes>)| SavedWhole {
            unit: *unit,
            data: whole.clone().map(SavedBytes),
        };
        self.queue.iter().map(whole).collect()
    }

    pub(super) fn pop(&mut self) -> Option<(u64, Option<Bytes>)> {
        let (unit, whole) = self.queue.pop_front()?;
        if self.lowest.front() == Some(&unit) {
            self.lowest.pop_front();
        }
        Some((unit, whole))
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> u64 {
        self.queue.iter().filter_map(|(_, whole)| Some(whole.as_ref()?.len() as u64)).sum()
    }

    pub(super) fn lowest(&self) -> Option<u64> {
        self.lowest.front().copied()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_lowest_is_known(steps in prop::collection::vec(prop::option::of(0..50_u64), 1..60)) {
            let (mut unread, mut model) = (Unread::default(), VecDeque::new());
            for (at, step) in (0..).zip(steps) {
                match step {
                    // No unit comes twice.
                    Some(unit) => {
                        unread.push(unit * 100 + at, None);
                        model.push_back(unit * 100 + at);
                    }
                    None => prop_assert_eq!(unread.pop().map(|(unit, _)| unit), model.pop_front()),
                }
                prop_assert_eq!(unread.lowest(), model.iter().min().copied());
            }
        }
    }
}
