//! A stage that works in several lanes at a time: one stage for each, and one again.

use super::report::NodeReport;
use super::stage::Node;
use super::{Budget, Stage};

impl Stage {
    /// In how many lanes it is to work.
    pub fn lanes(&self) -> usize {
        1 + self.nodes.first().map_or(0, |node| node.others.len())
    }

    /// A stage for each lane, this one first. What is limited is so for each to an equal part.
    pub fn split(mut self) -> Vec<Stage> {
        let count = self.lanes();
        let mut lanes: Vec<Stage> = (1..count).map(|_| Stage::new(&self.context, self.first)).collect();
        for node in &mut self.nodes {
            let others = core::mem::take(&mut node.others);
            scale(&mut node.budget, |all| all / count as u64);
            for (lane, element) in lanes.iter_mut().zip(others) {
                lane.nodes.push(node.twin(element));
            }
        }
        scale(&mut self.budget, |all| all / count as u64);
        lanes.iter_mut().for_each(|lane| lane.budget = self.budget.as_ref().map(Budget::renewed));
        lanes.insert(0, self);
        lanes
    }

    /// What was split, as one again.
    pub fn join(lanes: Vec<Stage>) -> Option<Stage> {
        let count = lanes.len();
        let mut lanes = lanes.into_iter();
        let mut first = lanes.next()?;
        for lane in lanes {
            for (node, other) in first.nodes.iter_mut().zip(lane.nodes) {
                node.gauge.add(&other.gauge);
                node.tally.drops.merge(&other.tally.drops);
                node.tally.faults += other.tally.faults;
                node.tally.fault = node.tally.fault.take().or(other.tally.fault);
                node.others.push(other.element);
            }
        }
        let budgets = first.nodes.iter_mut().map(|node| &mut node.budget).chain([&mut first.budget]);
        budgets.for_each(|budget| scale(budget, |each| each.saturating_mul(count as u64)));
        Some(first)
    }
}

fn scale(budget: &mut Option<Budget>, of: impl Fn(u64) -> u64) {
    *budget = budget.take().map(|budget| budget.scaled(of));
}

impl Node {
    /// The same in another lane, which has counted nothing.
    fn twin(&self, element: Box<dyn super::Element>) -> Node {
        Node {
            name: self.name.clone(),
            element,
            others: Vec::new(),
            outs: self.outs.clone(),
            budget: self.budget.as_ref().map(Budget::renewed),
            unfit: self.unfit.clone(),
            frames: self.frames.as_ref().map(|_| Default::default()),
            batch: Vec::new(),
            inbox: Vec::new(),
            tally: Default::default(),
            gauge: Default::default(),
            ..*self
        }
    }
}

impl NodeReport {
    /// Adds what the same element shows in another lane.
    pub fn add(&mut self, lane: &NodeReport) {
        self.gauge.add(&lane.gauge);
        self.drops.merge(&lane.drops);
        self.faults += lane.faults;
        self.fault = self.fault.take().or_else(|| lane.fault.clone());
        self.unfit |= lane.unfit;
        self.memory_bytes += lane.memory_bytes;
    }
}
