//! Packets go through the services, and into the branches.

use core::mem;

use outflow_media::Time;

use super::{Branches, Far, Made, ORIGINAL, Slot};
use crate::control::Stream;
use crate::control::renditions::Pushed;
use crate::control::share::Understood;
use crate::drops::DropReason;
use crate::graph::{Graph, Item, Probe, Stage, Unfit};
use crate::limits::{SERVICE_BATCH, SERVICE_HELD_MAX};
use crate::schedule::BranchId;

impl Stream {
    /// The clock by which the work of services is timed, for people to see; it decides nothing.
    pub fn set_probe(&mut self, probe: Probe) {
        self.branches.probe = Some(probe);
    }

    /// The number of a branch that is declared by this name, or was.
    ///
    /// # Errors
    /// There is none, and never was: names that people ask for are not kept.
    pub fn branch_named(&mut self, name: &str) -> Result<BranchId, Unfit> {
        let Branches { names, graph, .. } = &mut self.branches;
        let known = names.iter().position(|known| known == name);
        let is_declared = graph.iter().flat_map(|graph| graph.exits()).any(|exit| exit == name);
        match known {
            Some(index) => Ok(BranchId(index as u32)),
            None if is_declared => {
                names.push(name.to_owned());
                Ok(BranchId(names.len() as u32 - 1))
            }
            None => Err(self.no_branch(name)),
        }
    }

    /// What to say to whoever asks for a branch that is not there.
    pub(super) fn no_branch(&self, name: &str) -> Unfit {
        let known: Vec<_> = self.services().into_iter().flat_map(Graph::exits).collect();
        let help = match known.as_slice() {
            [] => "leave it out: this stream has no branches".to_owned(),
            known => format!("there are {}", known.join(", ")),
        };
        Unfit::new(format!("the stream has no branch '{name}'"), help)
    }

    /// Puts other services in place of those that are there, between two packets. Elements that keep
    /// their name go on where those before them stopped, and so do branches with their receivers.
    /// Returns what was there before, for whoever made it to let it go, or to put it back.
    ///
    /// Stages that were taken out are to be put back before.
    ///
    /// Receivers of branches that are no longer there end; so do those of RTP branches that carry
    /// something else now.
    pub fn set_services(&mut self, now: Time, mut graph: Option<Box<Graph>>) -> Option<Box<Graph>> {
        self.serve(now);
        let mut before = self.branches.graph.take();
        if let Some(graph) = &mut graph {
            if let Some(input) = &self.input {
                graph.bind(&input.format);
            }
            if let Some(before) = &mut before {
                graph.resume(before);
            }
        }
        // Branches know their clocks, unless elements change them, or did.
        let changes = [&before, &graph].into_iter().flatten().any(|graph| graph.hears_clocks());
        self.branches.graph = graph;
        self.reconcile(now);
        self.house(now);
        if changes {
            self.repeat_clocks(now);
        }
        before
    }

    /// The stream's services, as they run.
    pub fn services(&self) -> Option<&Graph> {
        self.branches.graph.as_deref()
    }

    /// Lets an element pass everything as it is, or no longer. Returns whether there is one; of stages
    /// that run elsewhere nobody knows, they are told.
    pub fn set_bypass(&mut self, element: &str, bypass: bool) -> bool {
        let Branches { graph: Some(graph), far, .. } = &mut self.branches else { return false };
        if graph.set_bypass(element, bypass) {
            return true;
        }
        let elsewhere = !graph.is_whole();
        if elsewhere {
            far.push(Far::Bypass(element.into(), bypass));
        }
        elsewhere
    }

    /// Takes out the stages that run in other contexts, in the order in which packets go through. From
    /// now on [`Stream::far`] is for the first of them; what comes out of the last comes back by
    /// [`Stream::handle_near`].
    pub fn take_stages(&mut self) -> Vec<Stage> {
        self.branches.graph.as_mut().map(|graph| graph.take_stages()).unwrap_or_default()
    }

    /// Lets no packet into the services until [`Stream::put_stages`]; those that come wait. What came
    /// before has gone through as far as the services are here.
    pub fn hold_services(&mut self, now: Time) {
        self.serve(now);
        self.branches.held.get_or_insert_default();
    }

    /// Puts stages back that were taken out, in their order. Services that had to be bound anew for
    /// that are bound now.
    pub fn put_stages(&mut self, now: Time, stages: Vec<Stage>) {
        let Some(graph) = &mut self.branches.graph else { return };
        graph.put_stages(stages);
        if let Some(input) = &self.input {
            graph.bind(&input.format);
        }
        let late = mem::take(&mut self.branches.far).into_iter().filter_map(|far| match far {
            Far::Message(_, target, message) => Some((target, message)),
            _ => None,
        });
        self.hear_near(now, late.collect());
        self.reconcile(now);
        self.house(now);
        self.repeat_clocks(now);
    }

    /// Lets those packets into the services that waited since [`Stream::hold_services`].
    pub fn release_services(&mut self) {
        let held = self.branches.held.take().unwrap_or_default();
        let Branches { graph: Some(graph), waiting, .. } = &mut self.branches else { return };
        *waiting += held.len();
        held.into_iter().for_each(|understood| graph.enter(understood));
    }

    /// Whether the services cannot work before they are whole again: they are to be bound anew.
    pub fn services_wait(&self) -> bool {
        self.services().is_some_and(|graph| !graph.is_whole() && graph.is_unbound())
    }

    /// Whether the services know what comes in.
    pub fn services_are_bound(&self) -> bool {
        self.services().is_some_and(|graph| !graph.is_unbound())
    }

    /// Takes out what is for the stages that run elsewhere.
    pub fn far(&mut self) -> impl Iterator<Item = Far> + '_ {
        self.branches.far.drain(..)
    }

    /// A packet comes out of the last of the stages that run elsewhere.
    pub fn handle_near(&mut self, now: Time, exit: u16, item: Item) {
        let mut made = mem::take(&mut self.branches.made);
        if let Some(graph) = &mut self.branches.graph {
            graph.leave(exit, item, &mut |exit, understood| made.push((exit, understood)));
        }
        self.push_out(now, &mut made);
        self.branches.made = made;
    }

    /// Puts what came out of the services into the branches.
    fn push_out(&mut self, now: Time, made: &mut Vec<(usize, Understood)>) {
        for (exit, understood) in made.drain(..) {
            if let Some(slot) = self.branches.exits.get(exit).copied().flatten() {
                self.push_to(now, slot, understood);
            }
        }
    }

    /// Tells the stages that run elsewhere what is wanted now.
    pub(super) fn wishes_changed(&mut self) {
        let Branches { graph: Some(graph), far, .. } = &mut self.branches else { return };
        if !graph.is_whole() {
            far.push(Far::Wanted(graph.wishes().into()));
        }
    }

    /// The services work on all that waits for them.
    pub(in crate::control) fn serve(&mut self, now: Time) {
        if mem::take(&mut self.branches.waiting) == 0 {
            return;
        }
        let mut made = mem::take(&mut self.branches.made);
        let probe = self.branches.probe;
        let Branches { graph, far, .. } = &mut self.branches;
        if let Some(graph) = graph {
            let before = far.len();
            let mut further = |target, item| far.push(Far::Packet(target, item));
            graph.run(now, probe, &mut further, &mut |exit, understood| made.push((exit, understood)));
            if far.len() > before {
                far.push(Far::End(now));
            }
        }
        self.push_out(now, &mut made);
        // What is derived from a derived branch may stand before it.
        loop {
            self.branches.waiting = 0;
            for index in 0..self.branches.slots.len() {
                self.serve_chain(now, index, probe, &mut made);
            }
            if self.branches.waiting == 0 {
                break;
            }
        }
        self.branches.made = made;
    }

    fn serve_chain(
        &mut self,
        now: Time,
        index: usize,
        probe: Option<Probe>,
        made: &mut Vec<(usize, Understood)>,
    ) {
        let Some(Some(Slot { made: Made::Derived { chain, .. }, .. })) = self.branches.slots.get_mut(index)
        else {
            return;
        };
        chain.run(now, probe, &mut |_, _| {}, &mut |_, understood| made.push((index, understood)));
        for (slot, understood) in made.drain(..) {
            self.push_to(now, slot, understood);
        }
    }

    /// Puts a packet into the branches.
    pub(in crate::control) fn spread(&mut self, now: Time, understood: Understood) {
        self.hand_packet(&understood);
        let Branches { graph, held, waiting, .. } = &mut self.branches;
        if let Some(graph) = graph.as_mut().filter(|graph| graph.is_any_wanted()) {
            match held {
                Some(held) if held.len() < SERVICE_HELD_MAX => held.push(understood.clone()),
                Some(_) => self.source.counters.drops.add(DropReason::ContextFull, 1),
                None => {
                    graph.enter(understood.clone());
                    *waiting += 1;
                }
            }
        }
        let newest_key = |stream: &Self| stream.branches.get(ORIGINAL).and_then(|b| b.ring().newest_key());
        let before = newest_key(self);
        self.push_to(now, ORIGINAL, understood);
        if newest_key(self) > before {
            self.source.key_frame(now);
        }
        if self.branches.waiting >= SERVICE_BATCH {
            self.serve(now);
        }
    }

    /// Puts a packet into a branch, before those that are made of it by a chain, and behind them those that are
    /// levels of it.
    pub(in crate::control) fn push_to(&mut self, now: Time, index: usize, understood: Understood) {
        let ntp_at_zero = self.options.ntp_at_zero;
        let Branches { slots, waiting, .. } = &mut self.branches;
        for slot in slots.iter_mut().flatten() {
            if let Made::Derived { base, chain, .. } = &mut slot.made
                && *base == index
            {
                chain.enter(understood.clone());
                *waiting += 1;
            }
        }
        let Some(Some(slot)) = slots.get_mut(index) else { return };
        if index != ORIGINAL {
            slot.note(&understood, ntp_at_zero);
        }
        let whole = slot.levels.is_some().then(|| understood.clone());
        let Understood { packet, rtp_header, preamble } = understood;
        let ring = slot.branch.ring();
        let at = ring.head();
        let pushed = self.renditions.is_some().then(|| Pushed::new(&packet, &rtp_header, ring));
        slot.branch.push(now, &mut self.sinks, packet, rtp_header, || preamble);
        let is_there = slot.branch.ring().head() > at;
        if let Some(whole) = whole {
            self.part(now, index, (at, is_there), &whole);
        }
        if let Some(pushed) = pushed.filter(|_| is_there) {
            self.look_for_entrances(index, pushed);
        }
    }
}
