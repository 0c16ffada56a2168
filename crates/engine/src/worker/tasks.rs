//! What is to be done, by class: strictly the higher class first, and in turn within a class
//! (the class queues of one-to-many streaming, "Priority-based task scheduling").

use std::collections::VecDeque;

use outflow_relay::{LinkId, Priority};

use crate::limits::PARTS_BELOW;

/// A piece of work, after which more urgent work may have its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Task {
    /// Read a source's socket: its token.
    Receive(usize),
    /// Carry out what a stream owes its sinks of the class.
    Serve(usize),
    /// Send what a link lets go.
    Depart(LinkId),
    /// Send what peers of the class have to send.
    Transmit,
    /// Go on with the sender reports of a stream.
    Report(usize),
    /// Go on with the snapshot.
    Snapshot,
}

/// Kinds of tasks.
const KINDS: usize = 6;

impl Task {
    /// Its kind, and its number among those of this kind.
    const fn place(self) -> (usize, usize) {
        match self {
            Task::Receive(token) => (0, token),
            Task::Serve(stream) => (1, stream),
            Task::Depart(link) => (2, link.0 as usize),
            Task::Transmit => (3, 0),
            Task::Report(stream) => (4, stream),
            Task::Snapshot => (5, 0),
        }
    }
}

/// The queues, one a class.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    queues: [VecDeque<Task>; Priority::ALL.len()],
    /// In which classes a task stands, a bit each: by kind and number. These are small, as places of streams and
    /// sockets are used again and links are made by people: a byte each.
    queued: [Vec<u8>; KINDS],
    /// The highest class of any receiver here.
    highest: Priority,
}

impl Tasks {
    /// Adds a task at the end of its class, unless it stands there.
    pub(super) fn add(&mut self, class: Priority, task: Task) {
        let (kind, number) = task.place();
        let queued = &mut self.queued[kind];
        if queued.len() <= number {
            queued.resize(number + 1, 0);
        }
        let bit = 1 << class as u8;
        if queued[number] & bit == 0 {
            queued[number] |= bit;
            self.queues[class as usize].push_back(task);
        }
    }

    /// Takes the next task of the highest class that has one.
    pub(super) fn next(&mut self) -> Option<(Priority, Task)> {
        let mut first = |class: Priority| Some((class, self.queues[class as usize].pop_front()?));
        let (class, task) = Priority::ALL.into_iter().find_map(&mut first)?;
        let (kind, number) = task.place();
        self.queued[kind][number] &= !(1 << class as u8);
        Some((class, task))
    }

    /// This is the highest class of any receiver here now.
    pub(super) fn set_highest(&mut self, class: Priority) {
        self.highest = class;
    }

    /// Of what is owed in a class one in this many parts is done at once: all, if there is none above it.
    pub(super) fn parts(&self, class: Priority) -> u32 {
        if class > self.highest { PARTS_BELOW } else { 1 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queues.iter().all(VecDeque::is_empty)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_strict_and_within_one_all_have_their_turn() {
        let mut tasks = Tasks::default();
        tasks.add(Priority::Low, Task::Serve(1));
        tasks.add(Priority::Normal, Task::Serve(2));
        tasks.add(Priority::Normal, Task::Serve(3));
        tasks.add(Priority::Normal, Task::Serve(2));
        assert_eq!(tasks.next(), Some((Priority::Normal, Task::Serve(2))));
        tasks.add(Priority::Normal, Task::Serve(2));
        tasks.add(Priority::High, Task::Receive(9));
        let rest: Vec<_> = std::iter::from_fn(|| tasks.next()).collect();
        let expected = [
            (Priority::High, Task::Receive(9)),
            (Priority::Normal, Task::Serve(3)),
            (Priority::Normal, Task::Serve(2)),
            (Priority::Low, Task::Serve(1)),
        ];
        assert_eq!(rest, expected);
        assert!(tasks.is_empty());
    }

    #[test]
    fn each_task_stands_once_in_a_class() {
        let mut tasks = Tasks::default();
        let all = [
            Task::Receive(3),
            Task::Serve(3),
            Task::Depart(LinkId(3)),
            Task::Transmit,
            Task::Report(3),
            Task::Snapshot,
            Task::Serve(70),
        ];
        for _ in 0..2 {
            for class in [Priority::Normal, Priority::High] {
                all.into_iter().chain(all).for_each(|task| tasks.add(class, task));
            }
            let rest: Vec<_> = std::iter::from_fn(|| tasks.next()).collect();
            let of = |class| all.map(|task| (class, task));
            assert_eq!(rest, [of(Priority::High), of(Priority::Normal)].concat());
        }
    }
}
