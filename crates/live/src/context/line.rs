//! A stream's way through contexts.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use outflow_relay::control::Far;
use outflow_relay::graph::{Item, NodeReport, Stage, Target};
use rtrb::{Consumer, Producer, RingBuffer};

use super::thread::Parked;
use crate::limits::{CONTEXT_PACKETS, CONTEXT_RESERVE};
use crate::worker::Bell;

/// What goes along a line.
#[derive(Debug)]
pub(super) enum Passed {
    Far(Far),
    /// Stages for the contexts from here on, in their order.
    Stages(VecDeque<Stage>),
    /// The stages of the contexts before, in their order; the next adds its own.
    Recall(Vec<Stage>),
}

/// What wakes whoever reads the next queue.
#[derive(Debug, Clone)]
pub(super) enum Ringer {
    Context(Arc<Parked>),
    Home(Arc<Bell>),
}

impl Ringer {
    fn ring(&self) {
        match self {
            Ringer::Context(parked) => parked.wake(),
            Ringer::Home(bell) => bell.ring(),
        }
    }
}

/// The writing end of a queue.
#[derive(Debug)]
struct Outbound {
    queue: Producer<Passed>,
    ringer: Ringer,
    /// What must not be lost waits here if the queue is full; nothing overtakes it.
    waiting: VecDeque<Passed>,
    dropped: Arc<AtomicU64>,
}

impl Outbound {
    fn give(&mut self, passed: Passed) {
        self.flush();
        let is_packet = matches!(passed, Passed::Far(Far::Packet(..)));
        let room = self.queue.slots();
        if is_packet && (!self.waiting.is_empty() || room <= CONTEXT_RESERVE) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        } else if !self.waiting.is_empty() || room == 0 {
            self.waiting.push_back(passed);
        } else {
            // There is room.
            let _ = self.queue.push(passed);
        }
    }

    fn flush(&mut self) {
        while self.queue.slots() > 0
            && let Some(passed) = self.waiting.pop_front()
        {
            let _ = self.queue.push(passed);
        }
    }
}

/// What can be seen of a context's part of a line from elsewhere.
#[derive(Debug, Default)]
pub(super) struct Shown {
    reports: arc_swap::ArcSwap<Vec<NodeReport>>,
    /// Packets that found the queue to this context full.
    dropped: Arc<AtomicU64>,
    /// Packets in that queue when it was last looked at.
    queued: AtomicU64,
}

/// A context's part of a line.
#[derive(Debug)]
pub(super) struct Hop {
    inbound: Consumer<Passed>,
    outbound: Outbound,
    stage: Option<Stage>,
    shown: Arc<Shown>,
}

/// The home's ends of a line.
#[derive(Debug)]
pub(crate) struct Line {
    outbound: Outbound,
    inbound: Consumer<Passed>,
    shown: Vec<Arc<Shown>>,
    back: Arc<AtomicU64>,
}

/// What came back to a line's home.
#[derive(Debug)]
pub(crate) enum Arrived {
    /// A packet for a branch, by the number of its exit.
    Packet(u16, Item),
    /// All stages, as they were asked for.
    Stages(Vec<Stage>),
}

impl Line {
    /// A line past these, the last of whom is its home; and the parts of the others.
    pub(super) fn new(ringers: Vec<Ringer>) -> (Line, Vec<Hop>) {
        let mut producers = Vec::new();
        let mut consumers = VecDeque::new();
        let mut counts = Vec::new();
        for ringer in ringers {
            let (queue, consumer) = RingBuffer::new(CONTEXT_PACKETS);
            let dropped = Arc::new(AtomicU64::new(0));
            counts.push(Arc::clone(&dropped));
            producers.push(Outbound { queue, ringer, waiting: VecDeque::new(), dropped });
            consumers.push_back(consumer);
        }
        let mut producers = producers.into_iter();
        let outbound = producers.next().expect("a line comes home at least");
        let hop = |(outbound, dropped): (Outbound, &Arc<AtomicU64>)| {
            let shown = Arc::new(Shown { dropped: Arc::clone(dropped), ..Shown::default() });
            let inbound = consumers.pop_front().expect("one a ringer");
            Hop { inbound, outbound, stage: None, shown }
        };
        let hops: Vec<_> = producers.zip(&counts).map(hop).collect();
        let inbound = consumers.pop_front().expect("the last is the home's");
        let shown = hops.iter().map(|hop| Arc::clone(&hop.shown)).collect();
        let back = counts.pop().expect("the last is the home's");
        (Line { outbound, inbound, shown, back }, hops)
    }

    /// Sends something along.
    pub(crate) fn give(&mut self, far: Far) {
        self.outbound.give(Passed::Far(far));
    }

    /// Sends stages to their contexts.
    pub(crate) fn launch(&mut self, stages: Vec<Stage>) {
        self.outbound.give(Passed::Stages(stages.into()));
        self.wake();
    }

    /// Asks all stages back; they come behind all packets that were given before.
    pub(crate) fn recall(&mut self) {
        self.outbound.give(Passed::Recall(Vec::new()));
        self.wake();
    }

    /// Whoever reads may begin.
    pub(crate) fn wake(&self) {
        self.outbound.ringer.ring();
    }

    /// The next that came back.
    pub(crate) fn take(&mut self) -> Option<Arrived> {
        self.outbound.flush();
        while let Ok(passed) = self.inbound.pop() {
            match passed {
                Passed::Far(Far::Packet(Target::Exit(exit), item)) => {
                    return Some(Arrived::Packet(exit, item));
                }
                Passed::Recall(stages) => return Some(Arrived::Stages(stages)),
                // It has been everywhere.
                Passed::Far(_) | Passed::Stages(_) => {}
            }
        }
        None
    }

    /// What the elements of its contexts show of themselves; with the first of each, how many packets
    /// found the queue to it full, and how many are in it.
    pub(crate) fn reports(&self) -> Vec<(NodeReport, u64, u64)> {
        let back = self.back.load(Ordering::Relaxed);
        let mut all = Vec::new();
        for shown in &self.shown {
            let (mut dropped, mut queued) =
                (shown.dropped.load(Ordering::Relaxed), shown.queued.load(Ordering::Relaxed));
            for report in shown.reports.load().iter() {
                all.push((report.clone(), core::mem::take(&mut dropped), core::mem::take(&mut queued)));
            }
        }
        if let Some((_, dropped, _)) = all.last_mut() {
            *dropped += back;
        }
        all
    }
}

impl Hop {
    /// Whether the home has let the line go.
    pub(super) fn is_over(&self) -> bool {
        self.inbound.is_abandoned() && self.inbound.is_empty()
    }

    /// Works on what has come, for a while. Returns whether there was anything.
    pub(super) fn work(&mut self) -> bool {
        self.outbound.flush();
        let mut any = false;
        for _ in 0..CONTEXT_PACKETS {
            let Ok(passed) = self.inbound.pop() else { break };
            any = true;
            self.pass(passed);
        }
        if any {
            self.outbound.ringer.ring();
        }
        any
    }

    fn pass(&mut self, passed: Passed) {
        let Hop { stage, outbound, .. } = self;
        match (passed, stage) {
            (Passed::Far(Far::Packet(to, item)), Some(stage)) => {
                if let Some(item) = stage.take(to, item) {
                    outbound.give(Passed::Far(Far::Packet(to, item)));
                }
            }
            (Passed::Far(far), Some(stage)) => {
                match &far {
                    Far::End(now) => {
                        let mut out = |to, item| outbound.give(Passed::Far(Far::Packet(to, item)));
                        stage.run(*now, Some(crate::clock::probe), &mut out);
                    }
                    Far::Message(now, message) => stage.message(*now, *message),
                    Far::Wanted(wanted) => stage.set_wanted(wanted),
                    Far::Bypass(name, bypass) => drop(stage.set_bypass(name, *bypass)),
                    Far::Packet(..) => {}
                }
                outbound.give(Passed::Far(far));
            }
            (Passed::Far(far), None) => outbound.give(Passed::Far(far)),
            (Passed::Stages(mut stages), stage) => {
                *stage = stages.pop_front();
                outbound.give(Passed::Stages(stages));
            }
            (Passed::Recall(mut stages), stage) => {
                stages.extend(stage.take());
                outbound.give(Passed::Recall(stages));
            }
        }
    }

    /// Shows how its elements fare.
    pub(super) fn show(&self) {
        self.shown.queued.store(self.inbound.slots() as u64, Ordering::Relaxed);
        let reports = self.stage.iter().flat_map(Stage::report).collect();
        self.shown.reports.store(Arc::new(reports));
    }
}
