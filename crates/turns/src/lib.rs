//! Whose turn it is: the time of a worker, shared among classes and, within a class, among flows.
//!
//! - A flow that has reserved a part of the time goes first, within that part.
//! - The highest class goes before the others, as in one-to-many streaming ("Priority-based task scheduling"). A
//!   lower one may be promised a part of the time, which it gets whatever those above it have to do.
//! - Within a class, flows have time by their weights (stride scheduling; Waldspurger and Weihl, 1995).
//!
//! What one does not use, others have; none saves time up for later than [`limits::WINDOW`]. Nothing here has a clock: the
//! caller says what time it is. All times are nanoseconds.

mod claim;
mod class;
mod flow;
pub mod limits;

pub use claim::{Claim, Part};
use class::Class;
use flow::Flow;
use limits::WINDOW;

/// A turn: one piece of work of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// The class of the work; the smaller, the more urgent.
    pub class: usize,
    /// The flow.
    pub flow: usize,
    /// Whether it is within what the flow has reserved.
    pub is_reserved: bool,
}

/// The flows of a worker, in this many classes.
#[derive(Debug)]
pub struct Turns<const CLASSES: usize> {
    classes: [Class; CLASSES],
    flows: Vec<Flow<CLASSES>>,
    /// The flows that have reserved something.
    reserved: Vec<usize>,
    /// When the current turn began; or, when there is none, up to when the time is accounted for.
    since: u64,
    current: Option<Turn>,
}

impl<const CLASSES: usize> Turns<CLASSES> {
    /// No flow has anything to do. These parts of the time are promised to the classes; together they must not be
    /// the whole. What is promised to the highest class that has work is not looked at: it has all that is left.
    pub fn new(promised: [Part; CLASSES]) -> Self {
        let classes = promised.map(Class::new);
        Turns { classes, flows: Vec::new(), reserved: Vec::new(), since: 0, current: None }
    }

    /// The parts that are promised to the classes from now on.
    pub fn promise(&mut self, promised: [Part; CLASSES]) {
        self.classes.iter_mut().zip(promised).for_each(|(class, part)| class.promised = part);
    }

    /// What a flow is to have from now on.
    pub fn claim(&mut self, flow: usize, claim: Claim) {
        self.flow(flow).claim = claim;
        self.reserved.retain(|reserved| *reserved != flow);
        if claim.reserved > Part::NONE {
            self.reserved.push(flow);
        }
    }

    /// There is no such flow any more: another one may have its number.
    pub fn forget(&mut self, flow: usize) {
        self.claim(flow, Claim::default());
        self.flow(flow).worked = 0;
    }

    /// How long a flow has had its turn, in sum.
    pub fn worked(&self, flow: usize) -> u64 {
        self.flows.get(flow).map_or(0, |flow| flow.worked)
    }

    /// Whether no flow has work.
    pub fn is_idle(&self) -> bool {
        self.classes.iter().all(Class::is_idle)
    }

    /// Whether any flow has reserved something.
    pub fn has_reserves(&self) -> bool {
        !self.reserved.is_empty()
    }

    /// A flow has work in this class. It may have had before.
    pub fn wakes(&mut self, class: usize, flow: usize) {
        self.flow(flow);
        let place = &mut self.flows[flow].places[class];
        if !place.waits {
            place.waits = true;
            place.pass = place.pass.max(self.classes[class].now);
            self.classes[class].enter(flow, place.pass);
        }
    }

    /// The next turn, which begins now; the one before has ended. A flow that has more to do after it has to wake
    /// again.
    pub fn next(&mut self, now: u64) -> Option<Turn> {
        self.rest(now);
        let reserved = self.next_reserved();
        let is_reserved = reserved.is_some();
        let (class, flow) = reserved.or_else(|| self.next_of_classes())?;
        let place = &mut self.flows[flow].places[class];
        place.waits = false;
        self.classes[class].leave(flow, place.pass);
        if !is_reserved {
            self.classes[class].now = self.classes[class].now.max(place.pass);
        }
        self.current = Some(Turn { class, flow, is_reserved });
        self.current
    }

    /// The current turn has ended, and no other one begins yet.
    pub fn rest(&mut self, now: u64) {
        let took = now.saturating_sub(core::mem::replace(&mut self.since, now));
        for &flow in &self.reserved {
            self.flows[flow].earns(took);
        }
        let Some(Turn { class: at, flow, is_reserved }) = self.current.take() else { return };
        self.charge(at, flow, took);
        if is_reserved {
            self.flows[flow].left -= took as i64;
        }
        // What a flow has reserved is beside what its class is promised.
        for (place, class) in self.classes.iter_mut().enumerate() {
            class.passes(took, if place == at && !is_reserved { took } else { 0 });
        }
    }

    fn flow(&mut self, flow: usize) -> &mut Flow<CLASSES> {
        if self.flows.len() <= flow {
            self.flows.resize_with(flow + 1, Flow::default);
        }
        &mut self.flows[flow]
    }

    fn charge(&mut self, class: usize, flow: usize, took: u64) {
        let Flow { claim, worked, places, .. } = &mut self.flows[flow];
        *worked += took;
        let (class, place) = (&mut self.classes[class], &mut places[class]);
        let before = place.pass;
        place.pass = (before + claim.stride(took)).min(class.now + claim.stride(WINDOW));
        if place.waits {
            class.leave(flow, before);
            class.enter(flow, place.pass);
        }
    }

    fn next_reserved(&self) -> Option<(usize, usize)> {
        let waits = |flow: &&usize| self.flows[**flow].left > 0 && self.flows[**flow].waits().is_some();
        let flow = self.reserved.iter().filter(waits).max_by_key(|flow| self.flows[**flow].left)?;
        Some((self.flows[*flow].waits()?, *flow))
    }

    fn next_of_classes(&self) -> Option<(usize, usize)> {
        let mut waiting = (0..CLASSES).filter(|class| !self.classes[*class].is_idle());
        let highest = waiting.next()?;
        let is_owed = |class: &usize| self.classes[*class].owed > 0;
        let owed = waiting.filter(is_owed).max_by_key(|class| self.classes[*class].owed);
        let class = owed.unwrap_or(highest);
        Some((class, self.classes[class].first()?))
    }
}

#[cfg(test)]
mod tests;
