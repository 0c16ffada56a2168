//! Packets go through the services, and into the branches.

use core::mem;

use outflow_graph::{Graph, Item, Message, Probe, Stage, Target, Unfit};
use outflow_media::{Format, Time};
use outflow_packet::{DropReason, Drops, Parsed};

use super::{Branches, Made, ORIGINAL, Slot};
use crate::control::distribution::Distribution;
use crate::control::levels::Levels;
use crate::control::{Stages, Stream};
use crate::limits::{SERVICE_BATCH, SERVICE_HELD_MAX};
use crate::schedule::BranchId;

/// What goes to the stages of a graph that run elsewhere, in this order, and from each to the next.
#[derive(Debug, Clone)]
pub enum Far {
    /// A packet, and where it goes.
    Packet(Target, Item),
    /// The packets before this belong together: the stage works on them, at this time.
    End(Time),
    /// What the source tells, and where it goes.
    Message(Time, Target, Message),
    /// Whether what comes out of each element is wanted ([`Graph::wishes`]).
    Wanted(std::sync::Arc<[bool]>),
    /// An element is to let everything pass as it is, or no longer.
    Bypass(std::sync::Arc<str>, bool),
}

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
    /// The driver knows that there is something.
    is_far_told: bool,
    /// What the driver was told to do with the stages, as long as that is to be done.
    told: Option<Stages>,
    probe: Option<Probe>,
    /// Kept so that no memory is asked for a batch.
    made: Vec<(usize, Parsed)>,
    /// What could not be held.
    drops: Drops,
}

impl Services {
    pub(in crate::control) fn graph(&self) -> Option<&Graph> {
        self.graph.as_deref()
    }

    pub(in crate::control) fn drops(&self) -> &Drops {
        &self.drops
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
    fn branch_named(&mut self, name: &str) -> Result<BranchId, Unfit> {
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
                graph.prime(now, exit, held, &mut |understood| made.push(understood));
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
        if !self.far.is_empty() && !mem::replace(&mut self.is_far_told, true) {
            return Some(Stages::Give);
        }
        if graph.contexts().next().is_none() && graph.is_whole() {
            return None;
        }
        let next = match (graph.is_whole(), graph.is_unbound()) {
            (true, false) => Some(Stages::TakeOut),
            (false, true) => Some(Stages::Recall),
            _ => None,
        };
        let before = mem::replace(&mut self.told, next);
        next.filter(|_| next != before)
    }

    /// A packet waits in a chain.
    pub(super) fn chain_waits(&mut self) {
        self.waiting += 1;
    }

    /// A packet came in: it waits for the graph, if anything is wanted of that.
    fn enter(&mut self, understood: &Parsed) {
        let Services { graph, held, waiting, drops, .. } = self;
        let Some(graph) = graph.as_mut().filter(|graph| graph.is_any_wanted()) else { return };
        match held {
            Some(held) if held.len() < SERVICE_HELD_MAX => held.push(understood.clone()),
            Some(_) => drops.add(DropReason::ContextFull, 1),
            None => {
                graph.enter(understood.clone());
                *waiting += 1;
            }
        }
    }

    /// The graph works on all that waits for it.
    fn run(&mut self, now: Time, made: &mut Vec<(usize, Parsed)>) {
        let Services { graph: Some(graph), far, probe, .. } = self else { return };
        let before = far.len();
        let mut further = |target, item| far.push(Far::Packet(target, item));
        graph.run(now, *probe, &mut further, &mut |exit, understood| made.push((exit, understood)));
        if far.len() > before {
            far.push(Far::End(now));
        }
    }

    /// Lets an element pass everything as it is, or no longer. Returns whether there is one, or may be.
    fn set_bypass(&mut self, element: &str, bypass: bool) -> bool {
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
    fn replace(
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
    fn put_stages(&mut self, stages: Vec<Stage>, format: Option<&Format>) -> Option<Vec<(Target, Message)>> {
        let graph = self.graph.as_mut()?;
        graph.put_stages(stages);
        if let Some(format) = format {
            graph.bind(format);
        }
        self.is_far_told = false;
        let late = mem::take(&mut self.far).into_iter().filter_map(|far| match far {
            Far::Message(_, target, message) => Some((target, message)),
            _ => None,
        });
        Some(late.collect())
    }

    /// Lets those packets in that were held.
    fn release(&mut self) {
        let held = self.held.take().unwrap_or_default();
        let Services { graph: Some(graph), waiting, .. } = self else { return };
        *waiting += held.len();
        held.into_iter().for_each(|understood| graph.enter(understood));
    }

    /// Tells the stages that run elsewhere what is wanted now.
    fn wishes_changed(&mut self) {
        let Services { graph: Some(graph), far, .. } = self else { return };
        if !graph.is_whole() {
            far.push(Far::Wanted(graph.wishes().into()));
        }
    }
}

impl Stream {
    /// The clock by which the work of services is timed, for people to see; it decides nothing.
    pub fn set_probe(&mut self, probe: Probe) {
        self.state.out.services.probe = Some(probe);
    }

    /// The number of a branch that is declared by this name, or was.
    ///
    /// # Errors
    /// There is none, and never was: names that people ask for are not kept.
    pub fn branch_named(&mut self, name: &str) -> Result<BranchId, Unfit> {
        self.state.out.services.branch_named(name)
    }

    /// Puts other services in place of those that are there, between two packets. Elements that keep
    /// their name go on where those before them stopped, and so do branches with their receivers.
    /// Returns what was there before, for the caller to let it go, or to put it back.
    ///
    /// Stages that were taken out are to be put back before.
    ///
    /// Receivers of branches that are no longer there end; so do those of RTP branches that carry
    /// something else now.
    pub fn set_services(&mut self, now: Time, graph: Option<Box<Graph>>) -> Option<Box<Graph>> {
        let out = &mut self.state.out;
        out.serve(now);
        let Distribution { services, origin, .. } = out;
        let format = origin.as_ref().map(|origin| origin.format());
        let (before, changes) = services.replace(graph, format);
        out.reconcile(now);
        out.house(now);
        // Branches know their clocks, unless elements change them, or did.
        if changes {
            out.repeat_clocks(now);
        }
        before
    }

    /// Lets an element pass everything as it is, or no longer. Returns whether there is one; of stages
    /// that run elsewhere this is not known, they are told.
    pub fn set_bypass(&mut self, element: &str, bypass: bool) -> bool {
        self.state.out.services.set_bypass(element, bypass)
    }

    /// Takes out the stages that run in other contexts, in the order in which packets go through. From
    /// now on [`Stream::far`] is for the first of them; what comes out of the last comes back by
    /// [`Stream::handle_near`].
    pub fn take_stages(&mut self) -> Vec<Stage> {
        self.state.out.services.graph.as_mut().map(|graph| graph.take_stages()).unwrap_or_default()
    }

    /// Lets no packet into the services until [`Stream::put_stages`]; those that come wait. What came
    /// before has gone through as far as the services are here.
    pub fn hold_services(&mut self, now: Time) {
        self.state.out.serve(now);
        self.state.out.services.held.get_or_insert_default();
    }

    /// Puts stages back that were taken out, in their order. Services that had to be bound again for
    /// that are bound now.
    pub fn put_stages(&mut self, now: Time, stages: Vec<Stage>) {
        let out = &mut self.state.out;
        let format = out.origin.as_ref().map(|origin| origin.format());
        let Some(late) = out.services.put_stages(stages, format) else { return };
        out.hear_near(now, late);
        out.reconcile(now);
        out.house(now);
        out.repeat_clocks(now);
    }

    /// Lets those packets into the services that waited since [`Stream::hold_services`].
    pub fn release_services(&mut self) {
        self.state.out.services.release();
    }

    /// Takes out what is for the stages that run elsewhere; the driver does so when it is told to
    /// ([`Stages::Give`]), or earlier.
    pub fn far(&mut self) -> impl Iterator<Item = Far> + '_ {
        self.state.out.services.is_far_told = false;
        self.state.out.services.far.drain(..)
    }

    /// A packet comes out of the last of the stages that run elsewhere.
    pub fn handle_near(&mut self, now: Time, exit: u16, item: Item) {
        let out = &mut self.state.out;
        let mut made = mem::take(&mut out.services.made);
        if let Some(graph) = &mut out.services.graph {
            graph.leave(exit, item, &mut |exit, understood| made.push((exit, understood)));
        }
        out.push_out(now, &mut made);
        out.services.made = made;
    }

    /// Messages come out of the last of the stages that run elsewhere; or come back without having been in
    /// all of them, because those were on their way.
    pub fn hear_near(&mut self, now: Time, messages: Vec<(Target, Message)>) {
        self.state.out.hear_near(now, messages);
    }
}

impl Distribution {
    /// Puts what came out of the services into the branches.
    fn push_out(&mut self, now: Time, made: &mut Vec<(usize, Parsed)>) {
        for (exit, understood) in made.drain(..) {
            if let Some(slot) = self.services.branch_at(exit) {
                self.push_to(now, slot, understood);
            }
        }
    }

    /// The services work on all that waits for them.
    pub(in crate::control) fn serve(&mut self, now: Time) {
        if mem::take(&mut self.services.waiting) == 0 {
            return;
        }
        let mut made = mem::take(&mut self.services.made);
        self.services.run(now, &mut made);
        self.push_out(now, &mut made);
        // What is derived from a derived branch may stand before it.
        loop {
            self.services.waiting = 0;
            for index in 0..self.branches.end() {
                self.serve_chain(now, index, &mut made);
            }
            if self.services.waiting == 0 {
                break;
            }
        }
        self.services.made = made;
    }

    fn serve_chain(&mut self, now: Time, index: usize, made: &mut Vec<(usize, Parsed)>) {
        let Some(Slot { made: Made::Derived { chain, .. }, .. }) = self.branches.slot_mut(index) else {
            return;
        };
        let probe = self.services.probe;
        chain.run(now, probe, &mut |_, _| {}, &mut |_, understood| made.push((index, understood)));
        for (slot, understood) in made.drain(..) {
            self.push_to(now, slot, understood);
        }
    }

    /// Puts a packet of the source into the branches. Returns whether a key frame begins with it.
    pub(in crate::control) fn spread(&mut self, now: Time, understood: Parsed) -> bool {
        self.services.enter(&understood);
        let before = self.branches.newest_key(ORIGINAL);
        self.push_to(now, ORIGINAL, understood);
        let is_key = self.branches.newest_key(ORIGINAL) > before;
        if self.services.waiting >= SERVICE_BATCH {
            self.serve(now);
        }
        is_key
    }

    /// Puts a packet into a branch, before those that are made of it by a chain, and behind them those that are
    /// levels of it.
    pub(in crate::control) fn push_to(&mut self, now: Time, index: usize, understood: Parsed) {
        let ntp_at_zero = self.options.ntp_at_zero;
        for (_, slot) in self.branches.slots_mut() {
            if let Made::Derived { base, chain, .. } = &mut slot.made
                && *base == index
            {
                chain.enter(understood.clone());
                self.services.waiting += 1;
            }
        }
        let Some(slot) = self.branches.slot_mut(index) else { return };
        if index != ORIGINAL {
            slot.note(&understood, ntp_at_zero);
        }
        let levels = self.levels_at(index);
        let coming = levels.comes(self, index, &understood);
        let Some(branch) = self.branches.get_mut(index) else { return };
        let Parsed { packet, rtp_header, preamble } = understood;
        let at = branch.ring().head();
        branch.push(now, &mut self.sinks, packet, rtp_header, || preamble);
        let is_there = branch.ring().head() > at;
        levels.came(self, now, (index, at, is_there), coming);
    }
}
