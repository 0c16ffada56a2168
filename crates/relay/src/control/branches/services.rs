//! The declared services of a stream: their graph, and what is for those of its stages that run elsewhere.

use core::mem;

use outflow_graph::{Graph, Item, Message, Probe, SavedElement, Stage, Target, Unfit};
use outflow_media::{Format, Time};
use outflow_packet::{DropReason, Drops, Parsed};

use super::far::{Far, Stages};
use super::slot::{Made, Slot};
use super::table::Branches;
use crate::limits::SERVICE_HELD_MAX;
use crate::schedule::BranchId;

/// The declared services of a stream: their graph, what waits for it, and which branch each exit feeds.
#[derive(Debug, Default)]
pub(in crate::control) struct Services {
    graph: Option<Box<Graph>>,
    /// By number of an exit: the slot of that branch, if there is one.
    exits: Vec<Option<usize>>,
    /// Names of declared branches that were ever asked for; their indices are [`BranchId`]s.
    names: Vec<String>,
    /// Packets that wait for services, or for chains.
    waiting: usize,
    /// Packets that came while the services may not work.
    held: Option<Vec<Parsed>>,
    /// What is for stages that run elsewhere.
    far: Vec<Far>,
    /// Where the driver was told to bring the stages, as long as that is to be done.
    told: Option<Place>,
    probe: Option<Probe>,
    /// Kept so that no memory is asked for a batch.
    made: Vec<(usize, Parsed)>,
    /// What could not be held.
    drops: Drops,
}

/// Where the stages of other contexts are to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Here,
    There,
}

impl Services {
    pub(in crate::control) fn graph(&self) -> Option<&Graph> {
        self.graph.as_deref()
    }

    pub(in crate::control) fn drops(&self) -> &Drops {
        &self.drops
    }

    /// What its elements say of themselves for another process.
    pub(in crate::control) fn save(&self) -> Option<Vec<SavedElement>> {
        self.graph.as_ref().map(|graph| graph.save()).filter(|saved| !saved.is_empty())
    }

    /// They go on from what those of another process have said, with what comes next.
    pub(in crate::control) fn restore(&mut self, saved: &[SavedElement]) {
        if let Some(graph) = &mut self.graph {
            graph.restore_before(saved, None);
            graph.restore_after(saved);
        }
    }

    /// The graph is for packets of this format.
    pub(super) fn bind(&mut self, format: &Format) {
        if let Some(graph) = &mut self.graph {
            graph.bind(format);
        }
    }

    /// There are no branches until there is a format again: nothing is wanted, and nothing waits.
    pub(super) fn rest(&mut self) {
        if let Some(graph) = &mut self.graph {
            (0..graph.exits().count()).for_each(|exit| graph.set_wanted(exit, false));
        }
        self.waiting = 0;
        self.map_exits(&Branches::default());
    }

    /// Looks again which slot belongs to which exit.
    pub(super) fn map_exits(&mut self, branches: &Branches) {
        let Services { graph, names, exits, .. } = self;
        let name = |slot: &Slot| match slot {
            Slot { made: Made::Declared(id), .. } => names.get(id.0 as usize).map(String::as_str),
            _ => None,
        };
        let slot = |exit: &str| branches.find(|slot| name(slot) == Some(exit));
        *exits = graph.as_ref().map_or_else(Vec::new, |graph| graph.exits().map(slot).collect());
    }

    /// The branch that an exit feeds.
    pub(super) fn branch_at(&self, exit: usize) -> Option<usize> {
        self.exits.get(exit).copied().flatten()
    }

    /// The name under which a branch is declared, or was.
    pub(in crate::control) fn name(&self, id: BranchId) -> Option<&str> {
        self.names.get(id.0 as usize).map(String::as_str)
    }

    /// The number that a branch has among what the graph makes.
    pub(super) fn exit(&self, id: BranchId) -> Option<usize> {
        let name = self.name(id)?;
        self.graph.as_ref()?.exits().position(|exit| exit == name)
    }

    /// The tracks that have no place in a declared branch.
    pub(super) fn left_out(&self, id: BranchId) -> &[String] {
        let graph = self.exit(id).zip(self.graph.as_ref());
        graph.map_or(&[], |(exit, graph)| graph.exit_left_out(exit))
    }

    /// What to say to a request for a branch that is not there.
    pub(super) fn no_branch(&self, name: &str) -> Unfit {
        let known: Vec<_> = self.graph().into_iter().flat_map(Graph::exits).collect();
        let help = match known.as_slice() {
            [] => "leave it out: this stream has no branches".to_owned(),
            known => format!("there are {}", known.join(", ")),
        };
        Unfit::new(format!("the stream has no branch '{name}'"), help)
    }

    /// The number of a branch that is declared by this name, or was.
    pub(super) fn branch_named(&mut self, name: &str) -> Result<BranchId, Unfit> {
        let known = self.names.iter().position(|known| known == name);
        let is_declared = self.graph().into_iter().flat_map(Graph::exits).any(|exit| exit == name);
        match known {
            Some(index) => Ok(BranchId(index as u32)),
            None if is_declared => {
                self.names.push(name.to_owned());
                Ok(BranchId(self.names.len() as u32 - 1))
            }
            None => Err(self.no_branch(name)),
        }
    }

    /// No sink reads a declared branch any more.
    pub(super) fn unwanted(&mut self, id: BranchId) {
        let exit = self.exit(id);
        if let (Some(exit), Some(graph)) = (exit, &mut self.graph) {
            graph.set_wanted(exit, false);
        }
        self.wishes_changed();
    }

    /// A declared branch is wanted. Returns what the packets `held` become in it: nothing where stages run
    /// elsewhere, which cannot be run ahead of what comes to them.
    pub(super) fn wanted(&mut self, now: Time, exit: usize, held: Vec<Parsed>) -> Vec<Parsed> {
        let mut made = Vec::new();
        if let Some(graph) = &mut self.graph {
            let primes = graph.is_whole() && !graph.shares(exit);
            graph.set_wanted(exit, true);
            if primes {
                graph.prime(now, exit, held, &mut |parsed| made.push(parsed));
            }
        }
        self.wishes_changed();
        made
    }

    /// Tells the graph something; what comes out of its exits goes to `each`.
    pub(super) fn tell(
        &mut self,
        now: Time,
        tell: impl FnOnce(&mut Graph, &mut dyn FnMut(Target, Message), &mut dyn FnMut(usize, Message)),
        each: &mut dyn FnMut(usize, Message),
    ) {
        let Services { graph: Some(graph), far, .. } = self else { return };
        let mut further = |target, message| far.push(Far::Message(now, target, message));
        tell(graph, &mut further, each);
    }

    /// What the driver is to do for stages that run elsewhere, if it was not told so.
    pub(in crate::control) fn next_of_stages(&mut self) -> Option<Stages> {
        let graph = self.graph.as_ref()?;
        if !self.far.is_empty() {
            return Some(Stages::Give(self.take_far()));
        }
        if graph.contexts().next().is_none() && graph.is_whole() {
            return None;
        }
        let next = match (graph.is_whole(), graph.is_unbound()) {
            (true, false) => Some(Place::There),
            (false, true) => Some(Place::Here),
            _ => None,
        };
        let before = mem::replace(&mut self.told, next);
        next.filter(|_| next != before).map(|place| match place {
            Place::There => Stages::TakeOut,
            Place::Here => Stages::Recall,
        })
    }

    /// A packet waits in a chain.
    pub(super) fn chain_waits(&mut self) {
        self.waiting += 1;
    }

    /// How many packets wait, for the graph or for chains.
    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    /// The packets that wait are worked on now. Returns how many these are.
    pub(super) fn take_waiting(&mut self) -> usize {
        mem::take(&mut self.waiting)
    }

    /// Room for what a batch becomes, to be given back by [`Self::keep_room`].
    pub(super) fn take_room(&mut self) -> Vec<(usize, Parsed)> {
        mem::take(&mut self.made)
    }

    pub(super) fn keep_room(&mut self, made: Vec<(usize, Parsed)>) {
        self.made = made;
    }

    /// The clock by which work is timed.
    pub(super) fn probe(&self) -> Option<Probe> {
        self.probe
    }

    pub(super) fn set_probe(&mut self, probe: Probe) {
        self.probe = Some(probe);
    }

    /// Takes out the stages that run in other contexts.
    pub(super) fn take_stages(&mut self) -> Vec<Stage> {
        self.graph.as_mut().map(|graph| graph.take_stages()).unwrap_or_default()
    }

    /// Packets that come wait until [`Self::release`]. Returns what is for stages elsewhere.
    pub(super) fn hold(&mut self) -> Vec<Far> {
        self.held.get_or_insert_default();
        self.take_far()
    }

    /// Takes out what is for stages that run elsewhere. As much room is kept for what comes next.
    fn take_far(&mut self) -> Vec<Far> {
        let room = Vec::with_capacity(self.far.len());
        mem::replace(&mut self.far, room)
    }

    /// A packet comes out of the last of these stages.
    pub(super) fn leave(&mut self, exit: u16, item: Item, made: &mut Vec<(usize, Parsed)>) {
        if let Some(graph) = &mut self.graph {
            graph.leave(exit, item, &mut |exit, parsed| made.push((exit, parsed)));
        }
    }

    /// A packet came in: it waits for the graph, if anything is wanted of that.
    pub(super) fn enter(&mut self, parsed: &Parsed) {
        let Services { graph, held, waiting, drops, .. } = self;
        let Some(graph) = graph.as_mut().filter(|graph| graph.is_any_wanted()) else { return };
        match held {
            Some(held) if held.len() < SERVICE_HELD_MAX => held.push(parsed.clone()),
            Some(_) => drops.add(DropReason::ContextFull, 1),
            None => {
                graph.enter(parsed.clone());
                *waiting += 1;
            }
        }
    }

    /// The graph works on all that waits for it.
    pub(super) fn run(&mut self, now: Time, made: &mut Vec<(usize, Parsed)>) {
        let Services { graph: Some(graph), far, probe, .. } = self else { return };
        let before = far.len();
        let mut further = |target, item| far.push(Far::Packet(target, item));
        graph.run(now, *probe, &mut further, &mut |exit, parsed| made.push((exit, parsed)));
        if far.len() > before {
            far.push(Far::End(now));
        }
    }

    /// Lets an element pass everything as it is, or no longer. Returns whether there is one, or may be.
    pub(super) fn set_bypass(&mut self, element: &str, bypass: bool) -> bool {
        let Services { graph: Some(graph), far, .. } = self else { return false };
        if graph.set_bypass(element, bypass) {
            return true;
        }
        let elsewhere = !graph.is_whole();
        if elsewhere {
            far.push(Far::Bypass(element.into(), bypass));
        }
        elsewhere
    }

    /// Puts another graph in place. Returns the one before, and whether either changes clocks.
    pub(super) fn replace(
        &mut self,
        mut graph: Option<Box<Graph>>,
        format: Option<&Format>,
    ) -> (Option<Box<Graph>>, bool) {
        let mut before = self.graph.take();
        if let Some(graph) = &mut graph {
            if let Some(format) = format {
                graph.bind(format);
            }
            if let Some(before) = &mut before {
                graph.resume(before);
            }
        }
        let changes = [&before, &graph].into_iter().flatten().any(|graph| graph.hears_clocks());
        (self.graph, self.told) = (graph, None);
        (before, changes)
    }

    /// Puts stages back. Returns the messages that were on their way to them; `None` without a graph.
    pub(super) fn put_stages(
        &mut self,
        stages: Vec<Stage>,
        format: Option<&Format>,
    ) -> Option<Vec<(Target, Message)>> {
        let graph = self.graph.as_mut()?;
        graph.put_stages(stages);
        if let Some(format) = format {
            graph.bind(format);
        }
        let late = mem::take(&mut self.far).into_iter().filter_map(|far| match far {
            Far::Message(_, target, message) => Some((target, message)),
            _ => None,
        });
        Some(late.collect())
    }

    /// Lets those packets in that were held.
    pub(super) fn release(&mut self) {
        let held = self.held.take().unwrap_or_default();
        let Services { graph: Some(graph), waiting, .. } = self else { return };
        *waiting += held.len();
        held.into_iter().for_each(|parsed| graph.enter(parsed));
    }

    /// Tells the stages that run elsewhere what is wanted now.
    fn wishes_changed(&mut self) {
        let Services { graph: Some(graph), far, .. } = self else { return };
        if !graph.is_whole() {
            far.push(Far::Wanted(graph.wishes().into()));
        }
    }
}
