//! What will happen, in the order in which it will.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use outflow_media::Time;

/// Events by time; those of equal time in the order in which they were put down.
#[derive(Debug)]
pub(crate) struct Agenda<E> {
    heap: BinaryHeap<Reverse<Entry<E>>>,
    next: u64,
}

#[derive(Debug)]
struct Entry<E> {
    at: Time,
    order: u64,
    event: E,
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.order) == (other.at, other.order)
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
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}

impl<E> Agenda<E> {
    pub(crate) fn new() -> Self {
        Agenda { heap: BinaryHeap::new(), next: 0 }
    }

    /// Puts an event down.
    pub(crate) fn add(&mut self, at: Time, event: E) {
        self.heap.push(Reverse(Entry { at, order: self.next, event }));
        self.next += 1;
    }

    /// When the next event is.
    pub(crate) fn next_at(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse(entry)| entry.at)
    }

    /// Takes the next event.
    pub(crate) fn take(&mut self) -> Option<(Time, E)> {
        self.heap.pop().map(|Reverse(entry)| (entry.at, entry.event))
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
}
