//! Services in the path: elements, what fits what, and the graph that they make.
//!
//! A [`Plan`] is what a configuration says: elements by name, what goes where, which branches come
//! out. It is checked by the contracts of the [`CATALOGUE`] before anything runs. A [`Graph`] is made
//! of it aside, bound to what the stream carries, and then put into the stream as a value: what was
//! there before comes back, and leaves its state to elements that kept their name.
//!
//! Packets go through a graph in batches, from element to element in one order; where flows part and
//! come together again, they are in the order in which they came in. Elements whose output nothing
//! wants do not work. The elements of one execution context are a [`Stage`]; packets go through
//! the stages in order, each into the next by one queue, so that no two packets change places.

mod bind;
mod budget;
mod catalogue;
mod content;
mod contract;
mod element;
pub mod elements;
mod exit;
mod fit;
mod frames;
mod goes_on;
mod item;
mod kind;
mod lanes;
pub mod limits;
mod message;
mod number;
mod plan;
mod report;
mod save;
mod settings;
mod stage;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use outflow_media::{Format, Time};

pub use budget::Budget;
pub use catalogue::{CATALOGUE, find};
pub use content::{Content, Contents};
pub use contract::{Contract, Control, Gives, Unit};
pub use element::{Element, Replay, Tally, Unfit};
pub use elements::to_opus::needs_opus;
pub use elements::to_rtp::Tracks;
pub use elements::view::View;
pub use goes_on::GoesOn;
pub use item::Item;
pub use kind::{Kind, Make, OUT};
pub use message::{Message, Signal, Signals, TrackTime};
pub use number::{Numbering, Places};
pub use plan::{At, Checked, ElementPlan, Input, Plan, PlanError, SOURCE};
pub use report::{Gauge, NodeReport};
pub use save::SavedElement;
pub use settings::{Form, Opt, Setting, Settings};
pub use stage::{Probe, Stage, Target};

use exit::{Exit, leave};
use outflow_packet::Parsed;
use outflow_packet::limits::TRACKS_MAX;
use stage::Node;

/// The services of a stream, ready to run.
#[derive(Debug)]
pub struct Graph {
    /// The first runs in the stream's own worker. The others, too, unless the driver has taken them
    /// out ([`Graph::take_stages`]).
    stages: Vec<Stage>,
    /// Where packets go that come in.
    source: Vec<Target>,
    exits: Vec<Exit>,
    bound: Option<Format>,
    count: Count,
    /// Packets that came in and go past the first stage.
    direct: Vec<(Target, Item)>,
    /// Where each element's packets go, by its number and output, wherever it is.
    wires: Vec<Vec<Vec<Target>>>,
    /// Whether what comes out of each element is wanted.
    wanted: Vec<bool>,
    /// Elements that make something else of what comes in.
    turning: Vec<String>,
}

/// How many packets came in.
#[derive(Debug, Clone, Copy, Default)]
struct Count {
    all: u32,
    of_track: [Places; TRACKS_MAX],
}

/// Where packets come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    Source,
    Node(u16, u8),
}

/// What makes the elements that the core cannot make; the driver has it.
pub trait Maker {
    /// Makes an element.
    ///
    /// # Errors
    /// What keeps it from being made, and what to do.
    fn make(
        &mut self,
        name: &str,
        kind: &'static Kind,
        settings: &Settings,
    ) -> Result<Box<dyn Element>, Unfit>;
}

/// Makes what needs no driver.
#[derive(Debug, Clone, Copy)]
pub struct CoreOnly;

impl Maker for CoreOnly {
    fn make(&mut self, _: &str, kind: &'static Kind, _: &Settings) -> Result<Box<dyn Element>, Unfit> {
        Err(Unfit::new(format!("\"{}\" does not run here", kind.name), "leave it out"))
    }
}

impl Graph {
    /// Makes what a plan says, which is to be checked before.
    ///
    /// # Errors
    /// The name of the element that could not be made, and why; or what is wrong with the plan.
    pub fn new(plan: &Plan, maker: &mut dyn Maker) -> Result<Self, (String, Unfit)> {
        let wrong = |errors: Vec<PlanError>| {
            let error = errors.into_iter().next().map(|error| Unfit::new(error.what, error.help));
            (String::new(), error.unwrap_or_else(|| Unfit::new("the plan is wrong", "check it")))
        };
        let checked = plan.check(Contents::ANY).map_err(wrong)?;
        let mut stages = vec![Stage::new("", 0)];
        let names: Vec<&str> = checked.order.iter().map(|(name, _)| *name).collect();
        for (number, &(name, stage)) in (0_u16..).zip(&checked.order) {
            let context = stage.checked_sub(1).map_or("", |index| checked.contexts[index]);
            if stages.last().is_some_and(|stage| stage.context != context) {
                stages.push(Stage::new(context, number));
            }
            let lanes = stage.checked_sub(1).map_or(1, |context| checked.lanes[context]);
            let node = Self::node(plan, name, lanes, maker);
            let mut node = node.map_err(|unfit| (name.to_owned(), unfit))?;
            let stage = stages.last_mut().expect("one was made");
            let is_inside = |input: &Input| {
                names.iter().position(|other| *other == input.from) >= Some(usize::from(stage.first))
            };
            node.begins = !plan.inputs(name).iter().all(is_inside);
            stage.nodes.push(node);
        }
        let mut graph = Graph {
            stages,
            source: Vec::new(),
            exits: Vec::new(),
            bound: None,
            count: Count::default(),
            direct: Vec::new(),
            wires: Vec::new(),
            wanted: vec![false; checked.order.len()],
            turning: Vec::new(),
        };
        graph.wire(plan, &names);
        graph.wires = graph.nodes().map(|node| node.outs.clone()).collect();
        Ok(graph)
    }

    fn node(plan: &Plan, name: &str, lanes: usize, maker: &mut dyn Maker) -> Result<Node, Unfit> {
        let element = &plan.elements[name];
        let kind = find(&element.kind)
            .ok_or_else(|| Unfit::new("there is no such element", "see `outflow elements`"))?;
        let mut make = || match kind.make {
            Make::Core(make) => make(&element.settings),
            Make::Driver => maker.make(name, kind, &element.settings),
        };
        let first = make()?;
        let others = (1..lanes).map(|_| make()).collect::<Result<_, _>>()?;
        Ok(Node::new(name, kind, element, (first, others), plan.inputs(name).len()))
    }

    /// Puts the connections down at their beginnings.
    fn wire(&mut self, plan: &Plan, order: &[&str]) {
        let number = |name: &str| order.iter().position(|other| *other == name).unwrap_or(0) as u16;
        let origin = |graph: &Self, input: &Input| match input.from.as_str() {
            SOURCE => Origin::Source,
            from => {
                let node = graph.node_at(number(from));
                let output = input.output.as_deref().and_then(|output| node.kind.output(output));
                Origin::Node(number(from), output.unwrap_or(0))
            }
        };
        for (to, &name) in (0_u16..).zip(order) {
            for input in plan.inputs(name) {
                let from = origin(self, &input);
                self.connect(from, Target::Node(to));
            }
        }
        for (to, (name, inputs)) in (0_u16..).zip(&plan.branches) {
            let inputs = if inputs.is_empty() { &[Input::source()][..] } else { inputs };
            let from: Vec<_> = inputs.iter().map(|input| origin(self, input)).collect();
            from.iter().for_each(|from| self.connect(*from, Target::Exit(to)));
            self.exits.push(Exit::new(name, from));
        }
    }

    fn connect(&mut self, from: Origin, to: Target) {
        match from {
            Origin::Source => self.source.push(to),
            Origin::Node(number, output) => self.node_at_mut(number).outs[usize::from(output)].push(to),
        }
    }

    fn node_at(&self, number: u16) -> &Node {
        let stage = self.stages.iter().rfind(|stage| stage.first <= number).expect("the first begins at 0");
        &stage.nodes[usize::from(number - stage.first)]
    }

    fn node_at_mut(&mut self, number: u16) -> &mut Node {
        let stage =
            self.stages.iter_mut().rfind(|stage| stage.first <= number).expect("the first begins at 0");
        &mut stage.nodes[usize::from(number - stage.first)]
    }

    fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.stages.iter().flat_map(|stage| &stage.nodes)
    }

    /// Names of the branches, in order.
    pub fn exits(&self) -> impl Iterator<Item = &str> {
        self.exits.iter().map(|exit| exit.name.as_str())
    }

    /// What comes out to a branch, once the graph is bound.
    ///
    /// # Errors
    /// Which element cannot work on what comes in, and why.
    pub fn exit_format(&self, exit: usize) -> Result<&Format, &Unfit> {
        self.exits[exit].format.as_ref()
    }

    /// The tracks of the stream that have no place in a branch, by their names.
    pub fn exit_left_out(&self, exit: usize) -> &[String] {
        &self.exits[exit].left_out
    }

    /// Whether a branch is wanted.
    pub fn is_wanted(&self, exit: usize) -> bool {
        self.exits.get(exit).is_some_and(|exit| exit.wanted)
    }

    /// Whether any branch is wanted.
    pub fn is_any_wanted(&self) -> bool {
        self.exits.iter().any(|exit| exit.wanted)
    }

    /// Says whether a branch is wanted. Elements of which nothing is wanted rest.
    pub fn set_wanted(&mut self, exit: usize, wanted: bool) {
        if let Some(exit) = self.exits.get_mut(exit).filter(|exit| exit.wanted != wanted) {
            exit.wanted = wanted;
            exit.numbering.restart();
            self.spread_wishes();
        }
    }

    /// From the end: what something wanted takes from is wanted.
    fn spread_wishes(&mut self) {
        for number in (0..self.wires.len()).rev() {
            let is_wanted = |target: &Target| match target {
                Target::Node(next) => self.wanted[usize::from(*next)],
                Target::Exit(exit) => self.exits[usize::from(*exit)].wanted,
            };
            self.wanted[number] = self.wires[number].iter().flatten().any(is_wanted);
        }
        self.stages.iter_mut().for_each(|stage| stage.set_wanted(&self.wanted));
    }

    /// Whether what comes out of each element is wanted, by its number; for stages that were taken
    /// out ([`Stage::set_wanted`]).
    pub fn wishes(&self) -> &[bool] {
        &self.wanted
    }

    /// Whether an element works already that a branch is made by.
    pub fn shares(&self, exit: usize) -> bool {
        let origins = self.origins();
        let mut look: Vec<Origin> = self.exits.get(exit).map(|exit| exit.from.clone()).unwrap_or_default();
        while let Some(origin) = look.pop() {
            let Origin::Node(number, _) = origin else { continue };
            if self.wanted[usize::from(number)] {
                return true;
            }
            look.extend(&origins[usize::from(number)]);
        }
        false
    }

    /// A packet comes in; it goes through with the next [`Graph::run`].
    pub fn enter(&mut self, parsed: Parsed) {
        let track = usize::from(parsed.packet.tag.track) % TRACKS_MAX;
        let Count { all, of_track } = &mut self.count;
        let mut item = Item::entering(parsed, *all);
        *all = all.wrapping_add(1);
        of_track[track].place(&mut item);
        let Some((last, others)) = self.source.split_last() else { return };
        let [first, ..] = &mut self.stages[..] else { return };
        for target in others {
            self.direct.extend(first.enter(*target, || item.clone()));
        }
        self.direct.extend(first.enter(*last, || item));
    }

    /// Lets only what makes one branch work on packets that the stream has had before, as if they had
    /// come in until now. Nothing of that branch may have worked yet.
    pub fn prime(&mut self, now: Time, exit: usize, packets: Vec<Parsed>, each: &mut dyn FnMut(Parsed)) {
        let wanted: Vec<bool> = self.exits.iter().map(|exit| exit.wanted).collect();
        let counted = self.count;
        for (number, exit_now) in self.exits.iter_mut().enumerate() {
            exit_now.wanted = number == exit;
        }
        self.spread_wishes();
        for parsed in &packets {
            self.count.before(parsed.packet.tag.track);
        }
        packets.into_iter().for_each(|parsed| self.enter(parsed));
        self.run(now, None, &mut |_, _| {}, &mut |_, parsed| each(parsed));
        self.count = counted;
        for (exit, wanted) in self.exits.iter_mut().zip(wanted) {
            exit.wanted = wanted;
        }
        self.spread_wishes();
    }

    /// Lets the stages that are here work on all that came in. What comes out goes to `each`, with
    /// the number of its branch; what goes to stages that were taken out goes to `further`.
    pub fn run(
        &mut self,
        now: Time,
        probe: Option<Probe>,
        further: &mut dyn FnMut(Target, Item),
        each: &mut dyn FnMut(usize, Parsed),
    ) {
        let Graph { stages, exits, direct, .. } = self;
        for (target, item) in direct.drain(..) {
            let mut item = Some(item);
            for stage in stages.iter_mut() {
                item = item.and_then(|item| stage.take(target, item));
            }
            if let Some(item) = item {
                leave(exits, further, each, target, item);
            }
        }
        for index in 0..stages.len() {
            let [stage, later @ ..] = &mut stages[index..] else { break };
            stage.run(now, probe, &mut |target, item| {
                let mut item = Some(item);
                for next in later.iter_mut() {
                    item = item.and_then(|item| next.take(target, item));
                }
                if let Some(item) = item {
                    leave(exits, further, each, target, item);
                }
            });
        }
    }

    /// A packet comes back from the last of the stages that were taken out.
    pub fn leave(&mut self, exit: u16, item: Item, each: &mut dyn FnMut(usize, Parsed)) {
        // Others may have been dropped on the way between contexts.
        let item = Item { found: None, ..item };
        leave(&mut self.exits, &mut |_, _| {}, each, Target::Exit(exit), item);
    }

    /// The source tells something; all packets before it have gone through. What comes out goes to
    /// `each`, with the number of its branch; what goes to stages that were taken out to `further`.
    pub fn tell(
        &mut self,
        now: Time,
        message: Message,
        further: &mut dyn FnMut(Target, Message),
        each: &mut dyn FnMut(usize, Message),
    ) {
        let targets: BTreeSet<_> = self.source.iter().copied().collect();
        let on = targets.into_iter().map(|target| (target, message)).collect();
        self.tell_on(now, on, further, each);
    }

    /// The same for messages that are on their way already.
    pub fn tell_on(
        &mut self,
        now: Time,
        mut on: Vec<(Target, Message)>,
        further: &mut dyn FnMut(Target, Message),
        each: &mut dyn FnMut(usize, Message),
    ) {
        for stage in &mut self.stages {
            // What another stage hears waits there until its turn.
            on.retain(|(target, message)| stage.hear(*target, *message).is_some());
            stage.tell(now, &mut |target, message| on.push((target, message)));
        }
        for (target, message) in on {
            match target {
                Target::Exit(exit) => each(exit.into(), message),
                Target::Node(_) => further(target, message),
            }
        }
    }

    /// Keeps the work of all elements to `parts` of [`BUDGET_PARTS`](crate::limits::BUDGET_PARTS) parts of a
    /// core, each stage to an equal part of them; `None` lets it take what it needs.
    pub fn set_budget(&mut self, parts: Option<u64>) {
        let stages = self.stages.len() as u64;
        for stage in &mut self.stages {
            stage.budget = parts.map(|parts| Budget::new((parts / stages).max(1)));
        }
    }

    /// Takes out the stages that run in other contexts, in the order in which packets go through.
    pub fn take_stages(&mut self) -> Vec<Stage> {
        self.stages.split_off(1)
    }

    /// Puts stages back that were taken out, in their order.
    pub fn put_stages(&mut self, stages: Vec<Stage>) {
        self.stages.extend(stages);
        self.stages.iter_mut().for_each(|stage| stage.set_wanted(&self.wanted));
    }

    /// Whether no stage is taken out.
    pub fn is_whole(&self) -> bool {
        self.nodes().count() == self.wires.len()
    }

    /// Whether the graph is to be bound again, once it is whole.
    pub fn is_unbound(&self) -> bool {
        self.bound.is_none()
    }

    /// The contexts in which its stages run besides the stream's own worker, in the order in which
    /// packets go through, each with how many lanes it has.
    pub fn contexts(&self) -> impl Iterator<Item = (&str, usize)> {
        self.stages.iter().skip(1).map(|stage| (stage.context(), stage.lanes()))
    }

    /// Goes on where `before` stops: elements that kept their name and kind take over the state of
    /// those, with what was counted.
    pub fn resume(&mut self, before: &mut Graph) {
        self.count = before.count;
        for stage in &mut self.stages {
            for other in &mut before.stages {
                stage.resume(other);
            }
        }
        for exit in &mut self.exits {
            if let Some(other) = before.exits.iter().find(|other| other.name == exit.name) {
                (exit.wanted, exit.numbering) = (other.wanted, other.numbering.clone());
            }
        }
        self.spread_wishes();
    }

    /// A moment, and the timestamp that a track of what it makes has then, where an element that is here knows that.
    pub fn clock(&self, track: u8) -> Option<(Time, u32)> {
        self.stages.iter().flat_map(|stage| &stage.nodes).find_map(|node| node.element.clock(track))
    }

    /// Whether an element that is here does something with clocks.
    pub fn hears_clocks(&self) -> bool {
        self.nodes().any(|node| node.control.told().has(Signal::Clock))
    }

    /// Whether an element makes something else of what comes in: to pass it by, the graph is to be bound
    /// again.
    pub fn turns(&self, name: &str) -> bool {
        self.turning.iter().any(|turning| turning == name)
    }

    /// Lets an element pass everything as it is, or no longer. Returns whether there is one.
    pub fn set_bypass(&mut self, name: &str, bypass: bool) -> bool {
        self.stages.iter_mut().any(|stage| stage.set_bypass(name, bypass))
    }

    /// What its elements show of themselves, as far as they are here.
    pub fn report(&self) -> impl Iterator<Item = NodeReport> + '_ {
        self.stages.iter().flat_map(Stage::report)
    }
}

impl Count {
    /// Takes the count back by one packet of a track.
    fn before(&mut self, track: u8) {
        self.all = self.all.wrapping_sub(1);
        self.of_track[usize::from(track) % TRACKS_MAX].go_back();
    }
}
