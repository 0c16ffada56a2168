//! What will happen, in the order in which it will.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use outflow_media::Time;

/// Events by time; those of equal time in the order in which they were put down.
#[derive(Debug)]
pub struct Agenda<E> {
    heap: BinaryHeap<Reverse<Entry<E>>>,
    next: u64,
    /// The first one was taken, and is still in its place: most events put down another one, which takes it in one
    /// step instead of two.
    is_taken: bool,
}

#[derive(Debug)]
struct Entry<E> {
    at: Time,
    order: u64,
    event: E,
}

impl<E> Entry<E> {
    /// In one number, as most of what an agenda does is to compare.
    fn key(&self) -> u128 {
        u128::from(self.at.as_nanos()) << 64 | u128::from(self.order)
    }
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<E> Eq for Entry<E> {}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Entry<E> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

impl<E: Copy> Default for Agenda<E> {
    fn default() -> Self {
        Agenda { heap: BinaryHeap::new(), next: 0, is_taken: false }
    }
}

impl<E: Copy> Agenda<E> {
    /// An empty one.
    pub fn new() -> Self {
        Agenda::default()
    }

    /// Puts an event down.
    pub fn add(&mut self, at: Time, event: E) {
        let entry = Reverse(Entry { at, order: self.next, event });
        self.next += 1;
        if core::mem::take(&mut self.is_taken)
            && let Some(mut first) = self.heap.peek_mut()
        {
            *first = entry;
            return;
        }
        self.heap.push(entry);
    }

    /// When the next event is.
    pub fn next_at(&mut self) -> Option<Time> {
        if core::mem::take(&mut self.is_taken) {
            self.heap.pop();
        }
        self.heap.peek().map(|Reverse(entry)| entry.at)
    }

    /// Takes the next event.
    pub fn take(&mut self) -> Option<(Time, E)> {
        self.next_at()?;
        self.is_taken = true;
        self.heap.peek().map(|Reverse(entry)| (entry.at, entry.event))
    }

    /// Takes the next event, if it is not later than that.
    pub fn take_until(&mut self, end: Time) -> Option<(Time, E)> {
        self.next_at().filter(|at| *at <= end)?;
        self.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_by_time_and_then_as_they_were_put_down() {
        let mut agenda = Agenda::new();
        for (ms, name) in [(2, 'c'), (1, 'a'), (2, 'd'), (1, 'b')] {
            agenda.add(Time::from_millis(ms), name);
        }
        let order: String = std::iter::from_fn(|| agenda.take().map(|(_, name)| name)).collect();
        assert_eq!(order, "abcd");
    }

    #[test]
    fn events_that_put_down_others_come_in_the_same_order() {
        let mut rng = fastrand::Rng::with_seed(1);
        let (mut agenda, mut expected) = (Agenda::new(), std::collections::BTreeSet::new());
        let mut number = 0;
        for _ in 0..5_000 {
            // As many come as go, on average.
            for _ in 0..rng.u8(0..3) {
                let at = Time::from_nanos(rng.u64(0..50));
                agenda.add(at, number);
                expected.insert((at, number));
                number += 1;
            }
            assert_eq!(agenda.take(), expected.pop_first());
            assert!(rng.u8(0..4) > 0 || agenda.next_at() == expected.first().map(|first| first.0));
        }
    }
}
