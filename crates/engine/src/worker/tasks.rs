//! What is to be done, by class and stream, and whose turn it is: the higher class first, but for what lower ones
//! are promised and streams have reserved; within a class each stream by its weight (the class queues of
//! one-to-many streaming, "Priority-based task scheduling", with a share for each; `turns`).

use std::collections::VecDeque;

use outflow_config::{Limits, Share};
use outflow_media::Time;
use outflow_relay::{LinkId, Priority, StreamOptions};
use outflow_turns::limits::WEIGHT_MAX;
use outflow_turns::{Claim, Part, Turn, Turns};

use crate::limits::PARTS_BELOW;

/// A piece of work, after which more urgent work may have its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Task {
    /// Read a socket of a stream's source.
    Receive {
        /// As it is waited for.
        token: usize,
        /// The stream.
        stream: usize,
    },
    /// Carry out what a stream owes its sinks of the class.
    Serve(usize),
    /// Send what a link lets go.
    Depart(LinkId),
    /// Send what peers of a stream in the class have to send.
    Transmit(usize),
    /// Go on with the sender reports of a stream.
    Report(usize),
    /// Go on with the snapshot.
    Snapshot,
}

/// Kinds of tasks.
const KINDS: usize = 6;

/// Classes.
const CLASSES: usize = Priority::ALL.len();

/// What is of no stream is a flow, too: the first one. It is short, and streams wait for it.
const OWN: usize = 0;

impl Task {
    /// Its kind, and its number among those of this kind.
    const fn place(self) -> (usize, usize) {
        match self {
            Task::Receive { token, .. } => (0, token),
            Task::Serve(stream) => (1, stream),
            Task::Depart(link) => (2, link.0 as usize),
            Task::Transmit(stream) => (3, stream),
            Task::Report(stream) => (4, stream),
            Task::Snapshot => (5, 0),
        }
    }

    const fn flow(self) -> usize {
        match self {
            Task::Receive { stream, .. } | Task::Serve(stream) => flow(stream),
            Task::Transmit(stream) | Task::Report(stream) => flow(stream),
            Task::Depart(_) | Task::Snapshot => OWN,
        }
    }
}

/// The flow that a stream is.
const fn flow(stream: usize) -> usize {
    stream + 1
}

/// The queues, one a class of each flow.
#[derive(Debug)]
pub(super) struct Tasks {
    turns: Turns<CLASSES>,
    /// By flow.
    queues: Vec<[VecDeque<Task>; CLASSES]>,
    /// In which classes a task stands, a bit each: by kind and number. These are small, as places of streams and
    /// sockets are used again and links are made by people: a byte each.
    queued: [Vec<u8>; KINDS],
    /// The highest class of any receiver here.
    highest: Priority,
    /// Whether the current task is within what its stream has reserved.
    is_reserved: bool,
}

impl Tasks {
    /// None yet; the limits say what lower classes are promised.
    pub(super) fn new(limits: &Limits) -> Self {
        let mut turns =
            Turns::new([Part::NONE, Share::promised(limits.normal_share), Share::promised(limits.low_share)]);
        turns.claim(OWN, Claim { weight: WEIGHT_MAX, ..Claim::default() });
        Tasks {
            turns,
            queues: Vec::new(),
            queued: Default::default(),
            highest: Priority::default(),
            is_reserved: false,
        }
    }

    /// Adds a task at the end of its queue, unless it stands there.
    pub(super) fn add(&mut self, class: Priority, task: Task) {
        let (kind, number) = task.place();
        let queued = &mut self.queued[kind];
        if queued.len() <= number {
            queued.resize(number + 1, 0);
        }
        let bit = 1 << class as u8;
        if queued[number] & bit == 0 {
            queued[number] |= bit;
            let flow = task.flow();
            if self.queues.len() <= flow {
                self.queues.resize_with(flow + 1, Default::default);
            }
            self.queues[flow][class as usize].push_back(task);
            self.turns.wakes(class as usize, flow);
        }
    }

    /// Takes the next task, which begins now; the one before has ended.
    pub(super) fn next(&mut self, now: Time) -> Option<(Priority, Task)> {
        let Turn { class, flow, is_reserved } = self.turns.next(now.as_nanos())?;
        self.is_reserved = is_reserved;
        let queue = &mut self.queues[flow][class];
        let task = queue.pop_front()?;
        if !queue.is_empty() {
            self.turns.wakes(class, flow);
        }
        let (kind, number) = task.place();
        self.queued[kind][number] &= !(1 << class as u8);
        Some((Priority::ALL[class], task))
    }

    /// The task before has ended, and no other one begins yet.
    pub(super) fn rest(&mut self, now: Time) {
        self.turns.rest(now.as_nanos());
    }

    /// This is the highest class of any receiver here now.
    pub(super) fn set_highest(&mut self, class: Priority) {
        self.highest = class;
    }

    /// What a stream is to have of the worker's time.
    pub(super) fn claim(&mut self, stream: usize, options: &StreamOptions) {
        let claim = Claim { weight: options.weight, reserved: Part::of_100_000(options.reserve) };
        self.turns.claim(flow(stream), claim);
    }

    /// There is no such stream any more.
    pub(super) fn forget(&mut self, stream: usize) {
        self.turns.forget(flow(stream));
    }

    /// How long tasks of a stream have taken, in sum, microseconds.
    pub(super) fn worked_us(&self, stream: usize) -> u64 {
        self.turns.worked(flow(stream)) / 1_000
    }

    /// Of what is owed in a class one in this many parts is done at once: all, if there is none that goes before it.
    pub(super) fn parts(&self, class: Priority) -> u32 {
        let is_below = class > self.highest || self.turns.has_reserves() && !self.is_reserved;
        if is_below { PARTS_BELOW } else { 1 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.turns.is_idle()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strict() -> Tasks {
        Tasks::new(&Limits { normal_share: None, low_share: None, ..Limits::default() })
    }

    /// All that is to be done, each in no time.
    fn rest(tasks: &mut Tasks) -> Vec<(Priority, Task)> {
        std::iter::from_fn(|| tasks.next(Time::ZERO)).collect()
    }

    #[test]
    fn classes_are_strict_if_nothing_else_is_promised_and_within_one_all_have_their_turn() {
        let mut tasks = strict();
        let read = Task::Receive { token: 9, stream: 1 };
        tasks.add(Priority::Low, Task::Serve(1));
        tasks.add(Priority::Normal, Task::Serve(2));
        tasks.add(Priority::Normal, Task::Serve(3));
        tasks.add(Priority::Normal, Task::Serve(2));
        assert_eq!(tasks.next(Time::ZERO), Some((Priority::Normal, Task::Serve(2))));
        // It takes its time, and has more to do.
        tasks.add(Priority::Normal, Task::Serve(2));
        tasks.rest(Time::from_millis(1));
        tasks.add(Priority::High, read);
        let expected = [
            (Priority::High, read),
            (Priority::Normal, Task::Serve(3)),
            (Priority::Normal, Task::Serve(2)),
            (Priority::Low, Task::Serve(1)),
        ];
        assert_eq!(rest(&mut tasks), expected);
        assert!(tasks.is_empty());
        assert_eq!([1, 2, 3].map(|stream| tasks.worked_us(stream)), [0, 1_000, 0]);
    }

    #[test]
    fn each_task_stands_once_in_a_class() {
        let mut tasks = strict();
        let all = [
            Task::Depart(LinkId(3)),
            Task::Snapshot,
            Task::Receive { token: 5, stream: 3 },
            Task::Serve(3),
            Task::Transmit(3),
            Task::Report(3),
            Task::Serve(70),
        ];
        for _ in 0..2 {
            for class in [Priority::Normal, Priority::High] {
                all.into_iter().chain(all).for_each(|task| tasks.add(class, task));
            }
            let of = |class| all.map(|task| (class, task));
            assert_eq!(rest(&mut tasks), [of(Priority::High), of(Priority::Normal)].concat());
        }
    }

    #[test]
    fn what_a_stream_has_reserved_goes_first_and_the_others_are_cut_into_parts() {
        let mut tasks = strict();
        tasks.set_highest(Priority::High);
        assert_eq!((tasks.parts(Priority::High), tasks.parts(Priority::Low)), (1, PARTS_BELOW));
        tasks.claim(7, &StreamOptions { reserve: 20_000, ..StreamOptions::default() });
        // It has earned some of it.
        tasks.rest(Time::from_millis(100));
        tasks.add(Priority::High, Task::Serve(1));
        tasks.add(Priority::Normal, Task::Serve(7));
        let now = Time::from_millis(100);
        assert_eq!(tasks.next(now), Some((Priority::Normal, Task::Serve(7))));
        tasks.set_highest(Priority::Normal);
        assert_eq!(tasks.parts(Priority::Normal), 1);
        assert_eq!(tasks.next(now), Some((Priority::High, Task::Serve(1))));
        assert_eq!(tasks.parts(Priority::High), PARTS_BELOW, "what is reserved may come");
        tasks.forget(7);
        assert_eq!(tasks.parts(Priority::High), 1);
    }
}
