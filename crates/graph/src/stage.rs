//! The elements of one execution context, and how packets go from one to the next.

use std::collections::BTreeSet;

use outflow_media::{Format, Time};
use outflow_packet::DropReason;

use super::frames::Frames;
use super::kind::Kind;
use super::report::{Gauge, NodeReport};
use super::{Budget, Control, Element, ElementPlan, Item, Message, Signal, Tally, Unfit, Unit};

/// A clock that is only read to say how long something took, never to decide anything: nanoseconds
/// since some beginning. The driver gives it.
pub type Probe = fn() -> u64;

/// Where a packet goes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// To an element, by its number in the graph.
    Node(u16),
    /// Out, to a branch, by its number in the graph.
    Exit(u16),
}

/// An element in its place.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) name: String,
    pub(super) kind: &'static Kind,
    pub(super) element: Box<dyn Element>,
    /// The same once more for each further lane.
    pub(super) others: Vec<Box<dyn Element>>,
    /// Where its packets go, by output.
    pub(super) outs: Vec<Vec<Target>>,
    /// From how many places packets come.
    pub(super) fan_in: usize,
    /// Whether what comes out is wanted.
    pub(super) wanted: bool,
    pub(super) bypass: bool,
    /// Some of its packets come from outside of its stage.
    pub(super) begins: bool,
    /// Its own.
    pub(super) budget: Option<Budget>,
    /// It cannot work on what comes in: nothing goes through it.
    pub(super) unfit: Option<Unfit>,
    pub(super) control: Control,
    /// It is given whole frames.
    pub(super) frames: Option<Frames>,
    pub(super) batch: Vec<Item>,
    /// What it is to be told.
    pub(super) inbox: Vec<Message>,
    pub(super) tally: Tally,
    pub(super) gauge: Gauge,
}

/// Elements that run in one context, each behind all that it takes from.
#[derive(Debug)]
pub struct Stage {
    /// The context; empty for the stream's own worker.
    pub(super) context: String,
    /// The number of its first element in the graph.
    pub(super) first: u16,
    pub(super) nodes: Vec<Node>,
    /// For all of its elements together.
    pub(super) budget: Option<Budget>,
}

impl Node {
    pub(super) fn new(
        name: &str,
        kind: &'static Kind,
        plan: &ElementPlan,
        (element, others): (Box<dyn Element>, Vec<Box<dyn Element>>),
        fan_in: usize,
    ) -> Self {
        let contract = (kind.contract)(&plan.settings);
        Node {
            name: name.to_owned(),
            kind,
            element,
            others,
            outs: vec![Vec::new(); kind.outputs.len()],
            fan_in,
            wanted: false,
            bypass: plan.bypass,
            begins: true,
            budget: plan.budget.map(Budget::new),
            unfit: None,
            control: contract.control,
            frames: (contract.unit == Unit::Frames).then(Frames::default),
            batch: Vec::new(),
            inbox: Vec::new(),
            tally: Tally::default(),
            gauge: Gauge::default(),
        }
    }

    pub(super) fn bind(&mut self, input: Result<&Format, &Unfit>) -> Option<Format> {
        let bound = input.map_err(Clone::clone).and_then(|format| {
            self.others.iter_mut().try_for_each(|other| other.bind(format).map(drop))?;
            self.element.bind(format)
        });
        match bound {
            Ok(format) => {
                self.unfit = None;
                Some(format)
            }
            Err(unfit) => {
                self.unfit = Some(unfit);
                None
            }
        }
    }

    /// Works on its batch; `budget` is that of its stage.
    pub(super) fn work(&mut self, now: Time, probe: Option<Probe>, budget: &mut Option<Budget>) {
        if self.fan_in > 1 && !self.batch.is_sorted_by_key(|item| item.ordinal) {
            let first = self.batch[0].ordinal;
            // Ordinals wrap; those of a batch are near each other.
            self.batch.sort_by_key(|item| item.ordinal.wrapping_sub(first).cast_signed());
        }
        self.batch.iter_mut().for_each(|item| item.found = None);
        let before = self.batch.len();
        self.gauge.enters(&self.batch);
        if self.unfit.is_some() {
            self.tally.drops.add(DropReason::Unfit, before as u64);
            self.batch.clear();
            return;
        }
        if self.bypass {
            if let Some(frames) = &mut self.frames {
                frames.release(&mut self.batch);
            }
            return;
        }
        if let Some(frames) = &mut self.frames {
            frames.gather(&mut self.batch);
        }
        let before = self.batch.len();
        if before == 0 {
            return;
        }
        let of_stage = budget.as_mut().filter(|_| self.begins);
        for budget in self.budget.as_mut().into_iter().chain(of_stage) {
            budget.admit(now, &mut self.batch, |reason| self.tally.drop(reason));
        }
        let is_limited = self.budget.is_some() || budget.is_some();
        let has_frames = self.frames.is_some() || self.tally.memory_bytes > 0;
        let is_timed = is_limited || has_frames || self.gauge.is_sampled();
        let probe = probe.filter(|_| is_timed);
        let began = probe.map(|probe| probe());
        self.element.work(now, &mut self.batch, &mut self.tally);
        if let (Some(probe), Some(began)) = (probe, began) {
            let nanos = probe().wrapping_sub(began);
            self.gauge.sampled(nanos, before);
            self.budget.iter_mut().chain(budget).for_each(|budget| budget.spend(nanos));
        }
    }

    /// Tells it what it is to be told by its contract; what goes on.
    pub(super) fn tell(&mut self, now: Time, message: Message) -> Option<Message> {
        let signal = message.signal();
        if signal == Signal::Break
            && let Some(frames) = &mut self.frames
        {
            self.tally.drops.add(DropReason::Incomplete, frames.clear());
        }
        if self.unfit.is_some() || !self.control.told().has(signal) {
            return Some(message);
        }
        let made = self.element.message(now, message);
        match self.control {
            _ if self.bypass => Some(message),
            control if control.ends.has(signal) => None,
            control if control.changes.has(signal) => made,
            _ => Some(message),
        }
    }

    /// Nothing takes what leaves by this output.
    fn untaken(&mut self, item: &Item) {
        self.gauge.untaken(item);
        self.tally.drop(item.otherwise);
    }
}

impl Stage {
    pub(super) fn new(context: &str, first: u16) -> Self {
        Stage { context: context.to_owned(), first, nodes: Vec::new(), budget: None }
    }

    /// The context that it runs in; empty for the stream's own worker.
    pub fn context(&self) -> &str {
        &self.context
    }

    /// Says of every element of the graph, by its number, whether what comes out is wanted.
    pub fn set_wanted(&mut self, wanted: &[bool]) {
        for (node, wanted) in self.nodes.iter_mut().zip(wanted.iter().skip(usize::from(self.first))) {
            node.wanted = *wanted;
        }
    }

    /// Lets an element pass everything as it is, or no longer. Returns whether it is here.
    pub fn set_bypass(&mut self, name: &str, bypass: bool) -> bool {
        let node = self.nodes.iter_mut().find(|node| node.name == name);
        node.map(|node| node.bypass = bypass).is_some()
    }

    fn local(&self, target: Target) -> Option<usize> {
        match target {
            Target::Node(number) => {
                let local = usize::from(number.checked_sub(self.first)?);
                (local < self.nodes.len()).then_some(local)
            }
            Target::Exit(_) => None,
        }
    }

    /// Puts a packet where it goes, if it is wanted there; says where else if that is not here.
    pub(super) fn enter(&mut self, target: Target, item: impl FnOnce() -> Item) -> Option<(Target, Item)> {
        match self.local(target).map(|local| &mut self.nodes[local]) {
            Some(node) if !node.wanted => None,
            Some(node) => {
                node.batch.push(item());
                None
            }
            None => Some((target, item())),
        }
    }

    /// Puts a packet where it goes; gives it back if that is not here.
    pub fn take(&mut self, target: Target, item: Item) -> Option<Item> {
        match self.local(target) {
            Some(local) => {
                self.nodes[local].batch.push(item);
                None
            }
            None => Some(item),
        }
    }

    /// Lets the elements work on all that they were given. What goes further than this stage goes to
    /// `out`, in order.
    pub fn run(&mut self, now: Time, probe: Option<Probe>, out: &mut dyn FnMut(Target, Item)) {
        for index in 0..self.nodes.len() {
            if self.nodes[index].batch.is_empty() {
                continue;
            }
            self.nodes[index].work(now, probe, &mut self.budget);
            self.route(index, out);
        }
    }

    /// Puts a message where it goes, behind all packets before it; gives it back if that is not here.
    pub fn hear(&mut self, target: Target, message: Message) -> Option<Message> {
        let Some(local) = self.local(target) else { return Some(message) };
        let inbox = &mut self.nodes[local].inbox;
        // It may come by several ways.
        if !inbox.contains(&message) {
            inbox.push(message);
        }
        None
    }

    /// Tells the elements what they are to be told. What goes further than this stage goes to `out`.
    pub fn tell(&mut self, now: Time, out: &mut dyn FnMut(Target, Message)) {
        for index in 0..self.nodes.len() {
            for message in core::mem::take(&mut self.nodes[index].inbox) {
                let Some(message) = self.nodes[index].tell(now, message) else { continue };
                let targets: BTreeSet<_> = self.nodes[index].outs.iter().flatten().copied().collect();
                for target in targets {
                    if let Some(message) = self.hear(target, message) {
                        out(target, message);
                    }
                }
            }
        }
    }

    fn route(&mut self, index: usize, out: &mut dyn FnMut(Target, Item)) {
        let node = &mut self.nodes[index];
        node.gauge.leaves(&node.batch);
        // Taken out while the packets go to other elements of the stage; both come back.
        let mut batch = core::mem::take(&mut node.batch);
        let outs = core::mem::take(&mut node.outs);
        match &outs[..] {
            [only] if let [target] = only[..] => self.hand_on(target, &mut batch, out),
            _ => {
                for mut item in batch.drain(..) {
                    let port = usize::from(core::mem::take(&mut item.port));
                    match outs.get(port).map_or(&[][..], Vec::as_slice) {
                        [] => self.nodes[index].untaken(&item),
                        targets => self.spread(targets, item, out),
                    }
                }
            }
        }
        let node = &mut self.nodes[index];
        // What was handed on as a whole left an empty batch, whose memory serves the next.
        batch.clear();
        (node.batch, node.outs) = (batch, outs);
    }

    /// A whole batch to one place.
    fn hand_on(&mut self, target: Target, batch: &mut Vec<Item>, out: &mut dyn FnMut(Target, Item)) {
        match self.local(target).map(|local| &mut self.nodes[local]) {
            Some(next) if !next.wanted => {}
            Some(next) if next.batch.is_empty() => core::mem::swap(&mut next.batch, batch),
            Some(next) => next.batch.append(batch),
            None => batch.drain(..).for_each(|item| out(target, item)),
        }
    }

    /// A packet to each of several places.
    fn spread(&mut self, targets: &[Target], item: Item, out: &mut dyn FnMut(Target, Item)) {
        let Some((last, others)) = targets.split_last() else { return };
        for target in others {
            self.put(*target, item.clone(), out);
        }
        self.put(*last, item, out);
    }

    fn put(&mut self, target: Target, item: Item, out: &mut dyn FnMut(Target, Item)) {
        match self.local(target).map(|local| &mut self.nodes[local]) {
            Some(next) if !next.wanted => {}
            Some(next) => next.batch.push(item),
            None => out(target, item),
        }
    }

    /// Takes over the state of elements of the same name and kind, and what was counted of them.
    pub fn resume(&mut self, before: &mut Stage) {
        for node in &mut self.nodes {
            let same = |other: &&mut Node| other.name == node.name && other.kind.name == node.kind.name;
            let Some(other) = before.nodes.iter_mut().find(same) else { continue };
            if let Some(state) = other.element.state() {
                node.element.resume(state);
            }
            if let (Some(frames), Some(before)) = (&mut node.frames, other.frames.take()) {
                *frames = before;
            }
            node.gauge = other.gauge;
            let memory_bytes = node.tally.memory_bytes;
            node.tally = Tally { memory_bytes, ..core::mem::take(&mut other.tally) };
        }
    }

    /// What its elements show of themselves.
    pub fn report(&self) -> impl Iterator<Item = NodeReport> + '_ {
        self.nodes.iter().map(|node| node.report(&self.context))
    }
}
