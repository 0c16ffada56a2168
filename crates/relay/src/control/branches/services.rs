//! Packets go through the services, and into the branches.

use core::mem;

use outflow_media::Time;

use super::{Branches, Made, ORIGINAL, Slot};
use crate::control::Stream;
use crate::control::share::Understood;
use crate::graph::{Graph, Message, Probe};
use crate::limits::SERVICE_BATCH;
use crate::schedule::BranchId;

impl Stream {
    /// The clock by which the work of services is timed, for people to see; it decides nothing.
    pub fn set_probe(&mut self, probe: Probe) {
        self.branches.probe = Some(probe);
    }

    /// The number of a branch that is declared, or will be, by this name.
    pub fn branch_named(&mut self, name: &str) -> BranchId {
        let names = &mut self.branches.names;
        let known = names.iter().position(|known| known == name);
        let index = known.unwrap_or_else(|| {
            names.push(name.to_owned());
            names.len() - 1
        });
        BranchId(index as u32)
    }

    /// Puts other services in place of those that are there, between two packets. Elements that keep
    /// their name go on where those before them stopped, and so do branches with their receivers.
    /// Returns what was there before, for whoever made it to let it go, or to put it back.
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
        self.branches.graph = graph;
        self.reconcile(now);
        before
    }

    /// The stream's services, as they run.
    pub fn services(&self) -> Option<&Graph> {
        self.branches.graph.as_deref()
    }

    /// Lets an element pass everything as it is, or no longer. Returns whether there is one.
    pub fn set_bypass(&mut self, element: &str, bypass: bool) -> bool {
        self.branches.graph.as_mut().is_some_and(|graph| graph.set_bypass(element, bypass))
    }

    /// The services work on all that waits for them.
    pub(in crate::control) fn serve(&mut self, now: Time) {
        if mem::take(&mut self.branches.waiting) == 0 {
            return;
        }
        let mut made = mem::take(&mut self.branches.made);
        let probe = self.branches.probe;
        if let Some(graph) = &mut self.branches.graph {
            graph.run(now, probe, &mut |_, _| {}, &mut |exit, understood| made.push((exit, understood)));
        }
        for (exit, understood) in made.drain(..) {
            if let Some(slot) = self.branches.exits.get(exit).copied().flatten() {
                self.push_to(now, slot, understood);
            }
        }
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
        if let Some(graph) = self.branches.graph.as_mut().filter(|graph| graph.is_any_wanted()) {
            graph.enter(understood.clone());
            self.branches.waiting += 1;
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

    /// Puts a packet into a branch, and before those that are derived from it.
    pub(super) fn push_to(&mut self, now: Time, index: usize, understood: Understood) {
        let Branches { slots, waiting, .. } = &mut self.branches;
        for slot in slots.iter_mut().flatten() {
            if let Made::Derived { base, chain } = &mut slot.made
                && *base == index
            {
                chain.enter(understood.clone());
                *waiting += 1;
            }
        }
        let Some(Some(slot)) = slots.get_mut(index) else { return };
        if index != ORIGINAL {
            slot.note_ssrc(&understood);
        }
        let Understood { packet, rtp_header, preamble } = understood;
        slot.branch.push(now, &mut self.sinks, packet, rtp_header, || preamble);
    }

    /// Tells all services what the source tells.
    pub(in crate::control) fn tell_services(&mut self, now: Time, message: Message) {
        self.serve(now);
        let Branches { slots, graph, .. } = &mut self.branches;
        let chains = slots.iter_mut().flatten().filter_map(|slot| match &mut slot.made {
            Made::Derived { chain, .. } => Some(chain),
            Made::Original | Made::Declared(_) => None,
        });
        chains.chain(graph).for_each(|graph| graph.message(now, message));
    }
}
