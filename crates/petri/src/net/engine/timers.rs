//! What is due when: a heap in which entries can be moved, so that nothing outdated is left in it.

use outflow_media::Time;

const NONE: u32 = u32::MAX;

/// Children of a node of the heap: four lie in one line of the cache.
const WIDTH: usize = 4;

/// At most one time for each of a fixed count of numbers.
#[derive(Debug)]
pub(super) struct Timers {
    /// Numbers, the earliest first, as a heap.
    heap: Vec<u32>,
    /// Where each number is in the heap.
    at: Vec<u32>,
    /// When each number is due; by the number where two are due at once, so that runs can be repeated.
    due: Vec<Time>,
}

impl Timers {
    pub(super) fn new(count: usize) -> Self {
        Timers { heap: Vec::with_capacity(count), at: vec![NONE; count], due: vec![Time::ZERO; count] }
    }

    /// The one that is due first.
    pub(super) fn first(&self) -> Option<(Time, usize)> {
        let number = *self.heap.first()? as usize;
        Some((self.due[number], number))
    }

    /// Sets or moves the time of a number.
    pub(super) fn set(&mut self, number: usize, due: Time) {
        if self.at[number] == NONE {
            self.at[number] = self.heap.len() as u32;
            self.heap.push(number as u32);
        } else if self.due[number] == due {
            return;
        }
        self.due[number] = due;
        let at = self.rise(self.at[number] as usize);
        self.sink(at);
    }

    pub(super) fn cancel(&mut self, number: usize) {
        let at = self.at[number];
        if at == NONE {
            return;
        }
        self.at[number] = NONE;
        let last = self.heap.pop();
        if let Some(moved) = last.filter(|last| *last as usize != number) {
            self.put(at as usize, moved);
            let at = self.rise(at as usize);
            self.sink(at);
        }
    }

    fn put(&mut self, at: usize, number: u32) {
        self.heap[at] = number;
        self.at[number as usize] = at as u32;
    }

    fn key(&self, number: u32) -> (Time, u32) {
        (self.due[number as usize], number)
    }

    fn rise(&mut self, mut at: usize) -> usize {
        let number = self.heap[at];
        while at > 0 {
            let above = (at - 1) / WIDTH;
            if self.key(self.heap[above]) <= self.key(number) {
                break;
            }
            self.put(at, self.heap[above]);
            at = above;
        }
        self.put(at, number);
        at
    }

    fn sink(&mut self, mut at: usize) {
        let number = self.heap[at];
        loop {
            let children = at * WIDTH + 1..(at * WIDTH + 1 + WIDTH).min(self.heap.len());
            let Some(least) = children.min_by_key(|child| self.key(self.heap[*child])) else { break };
            if self.key(number) <= self.key(self.heap[least]) {
                break;
            }
            self.put(at, self.heap[least]);
            at = least;
        }
        self.put(at, number);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_heap_is_a_set_in_order(steps in prop::collection::vec((0..20_usize, 0..12_u64), 1..200)) {
            let (mut timers, mut model) = (Timers::new(20), BTreeSet::new());
            for (number, due) in steps {
                model.retain(|(_, other)| *other != number);
                if due < 2 {
                    timers.cancel(number);
                } else {
                    timers.set(number, Time::from_nanos(due));
                    model.insert((Time::from_nanos(due), number));
                }
                prop_assert_eq!(timers.first(), model.first().copied());
            }
        }
    }
}
