//! A stream's way through contexts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use outflow_graph::{Item, Message, NodeReport, Stage, Target};
use outflow_media::Time;
use outflow_relay::control::Far;
use rtrb::RingBuffer;

use crate::hop::{Hop, Shown};
use crate::inlet::Inlet;
use crate::limits::CONTEXT_PACKETS;
use crate::outlet::{Outbound, Outlet};
use crate::passed::{Carried, ForAll, Passed};
use crate::ringer::Ringer;

/// The owner's ends of a line.
#[derive(Debug)]
pub struct Line {
    outlet: Outlet,
    inlet: Inlet,
    /// By context and lane.
    shown: Vec<Vec<Arc<Shown>>>,
    back: Arc<AtomicU64>,
}

/// What came back to a line's owner.
#[derive(Debug)]
pub enum Arrived {
    /// A packet for a branch, by the number of its exit.
    Packet(u16, Item),
    /// What the source tells such branches.
    Messages(Time, Vec<(Target, Message)>),
    /// All stages, as they were asked for.
    Stages(Vec<Stage>),
}

/// The queues from all lanes of one context to all lanes of the next.
struct Joint {
    /// By lane that writes.
    outlets: Vec<Outlet>,
    /// By lane that reads.
    inlets: Vec<Inlet>,
    /// Packets that found a queue full, by lane that reads.
    dropped: Vec<Arc<AtomicU64>>,
}

impl Joint {
    fn new(writers: usize, readers: &[Ringer]) -> Self {
        let dropped: Vec<_> = readers.iter().map(|_| Arc::new(AtomicU64::new(0))).collect();
        let mut consumers: Vec<Vec<_>> = readers.iter().map(|_| Vec::new()).collect();
        let outlet = |writer: usize| {
            let queue = |reader: usize| {
                let (queue, consumer) = RingBuffer::new(CONTEXT_PACKETS);
                consumers[reader].push(consumer);
                Outbound::new(queue, readers[reader].clone(), Arc::clone(&dropped[reader]))
            };
            Outlet::new((0..readers.len()).map(queue).collect(), (writer, writers))
        };
        let outlets = (0..writers).map(outlet).collect();
        let inlet = |(reader, lanes)| Inlet::new(lanes, (reader, readers.len()));
        let inlets = consumers.into_iter().enumerate().map(inlet).collect();
        Joint { outlets, inlets, dropped }
    }
}

impl Line {
    /// A line past these contexts, each with one or more lanes, back to its owner; and the parts of the
    /// lanes, in the same order.
    pub(super) fn new(contexts: &[Vec<Ringer>], owner: Ringer) -> (Line, Vec<Vec<Hop>>) {
        let owner = vec![owner];
        let along = contexts.iter().chain([&owner]);
        let writers = [1].into_iter().chain(contexts.iter().map(Vec::len));
        let mut joints: Vec<Joint> =
            writers.zip(along).map(|(writers, readers)| Joint::new(writers, readers)).collect();
        let outlet = joints[0].outlets.pop().expect("the owner writes");
        let mut hops = Vec::new();
        for context in 0..contexts.len() {
            let [before, after] = &mut joints[context..context + 2] else { break };
            let ends = before.inlets.drain(..).zip(after.outlets.drain(..)).zip(&before.dropped);
            let hop = |(lane, ((inlet, outlet), dropped)): (usize, ((Inlet, Outlet), &Arc<AtomicU64>))| {
                Hop::new((context, lane), inlet, outlet, Arc::clone(dropped))
            };
            hops.push(ends.enumerate().map(hop).collect::<Vec<_>>());
        }
        let mut last = joints.pop().expect("the last is the owner's");
        let inlet = last.inlets.pop().expect("the owner reads");
        let back = last.dropped.pop().expect("the owner reads");
        let shown = hops.iter().map(|lanes| lanes.iter().map(Hop::shown).collect()).collect();
        (Line { outlet, inlet, shown, back }, hops)
    }

    /// Sends something along.
    pub fn give(&mut self, now: Time, far: Far) {
        match far {
            Far::Packet(to, item) => self.outlet.packet(now, to, item),
            Far::End(now) => self.outlet.end(now),
            Far::Message(now, to, message) => self.outlet.all(ForAll::Messages(now, vec![(to, message)])),
            Far::Wanted(wanted) => self.outlet.all(ForAll::Wanted(wanted)),
            Far::Bypass(name, bypass) => self.outlet.all(ForAll::Bypass(name, bypass)),
        }
    }

    /// Sends stages to their contexts.
    pub fn launch(&mut self, stages: Vec<Stage>) {
        let lanes = |stage: Stage| stage.split().into_iter().map(Some).collect();
        self.outlet.all(ForAll::Stages(Carried::new(stages.into_iter().map(lanes).collect())));
        self.wake();
    }

    /// Asks all stages back; they come behind all packets that were given before.
    pub fn recall(&mut self) {
        let places = |lanes: &Vec<_>| lanes.iter().map(|_| None).collect();
        self.outlet.all(ForAll::Recall(Carried::new(self.shown.iter().map(places).collect())));
        self.wake();
    }

    /// The reader may begin.
    pub fn wake(&self) {
        self.outlet.ring();
    }

    /// The next that came back.
    pub fn take(&mut self) -> Option<Arrived> {
        self.outlet.flush();
        while let Some(passed) = self.inlet.take() {
            match passed {
                Passed::Packet(Target::Exit(exit), item) => return Some(Arrived::Packet(exit, item)),
                Passed::ForAll(ForAll::Messages(now, told)) => return Some(Arrived::Messages(now, told)),
                Passed::ForAll(ForAll::Recall(stages)) => return Some(Arrived::Stages(stages.joined())),
                // It has been everywhere.
                Passed::Packet(..) | Passed::End(_) | Passed::Turn(_) | Passed::ForAll(_) => {}
            }
        }
        None
    }

    /// What the elements of its contexts show of themselves; with the first of each, how many packets
    /// found the queues to it full, and how many are in them.
    pub fn reports(&self) -> Vec<(NodeReport, u64, u64)> {
        let mut all: Vec<(NodeReport, u64, u64)> = Vec::new();
        for lanes in &self.shown {
            let first = all.len();
            for shown in lanes {
                shown.add_to(&mut all, first);
            }
        }
        if let Some((_, dropped, _)) = all.last_mut() {
            *dropped += self.back.load(Ordering::Relaxed);
        }
        all
    }
}
