//! Which branch a sink reads.

use outflow_media::{Format, Time};

use super::{Made, ORIGINAL, Slot, held};
use crate::buffer::Ring;
use crate::control::share::Understood;
use crate::control::{Stream, StreamOptions};
use crate::graph::{CoreOnly, ElementPlan, Graph, Input, Plan, Unfit};
use crate::schedule::{Branch, BranchId, Carriage, SinkKey, SinkSpec};

impl Stream {
    /// What a sink of this kind would get.
    ///
    /// # Errors
    /// Nothing, and why.
    pub fn offer(&self, spec: &SinkSpec) -> Result<Option<Format>, Unfit> {
        let Some(format) = self.carries(spec.branch)? else { return Ok(None) };
        match (spec.carriage, &format) {
            (Carriage::Ts, Format::Rtp(_)) => to_ts(&format).map(|_| Some(Format::Ts)),
            (Carriage::Rtp, Format::Images) => {
                Err(Unfit::new("images have no RTP form", "send them to a udp:// address"))
            }
            _ => Ok(Some(format)),
        }
    }

    /// What a branch carries, or the stream as it comes in; `None` before there was a source.
    ///
    /// # Errors
    /// There is no such branch, or nothing comes out of it, and why.
    pub fn carries(&self, branch: Option<BranchId>) -> Result<Option<Format>, Unfit> {
        let Some(input) = &self.input else { return Ok(None) };
        let Some(id) = branch else { return Ok(Some(input.format.clone())) };
        let (Some(exit), Some(graph)) = (self.branches.exit(id), self.branches.graph.as_ref()) else {
            let name = self.branches.names.get(id.0 as usize).map_or("", String::as_str);
            let known: Vec<_> = self.services().into_iter().flat_map(Graph::exits).collect();
            let help = match known.as_slice() {
                [] => "leave it out: this stream has no branches".to_owned(),
                known => format!("there are {}", known.join(", ")),
            };
            return Err(Unfit::new(format!("the stream has no branch '{name}'"), help));
        };
        graph.exit_format(exit).cloned().map(Some).map_err(Clone::clone)
    }

    /// Finds a sink's branch, making it if need be, and lets it join there.
    pub(in crate::control) fn place(&mut self, now: Time, key: SinkKey) {
        let Some(spec) = self.sinks.get(key.0).map(|sink| sink.spec) else { return };
        let slot = self.input.is_some().then(|| self.slot_for(now, &spec)).flatten();
        match slot {
            Some(slot) => {
                let Some(Some(slot)) = self.branches.slots.get_mut(slot) else { return };
                slot.idle_since = None;
                slot.branch.join(&mut self.sinks, key);
            }
            None => self.homeless.push(key),
        }
    }

    fn slot_for(&mut self, now: Time, spec: &SinkSpec) -> Option<usize> {
        let base = match spec.branch {
            None => ORIGINAL,
            Some(id) => self.declared(now, id)?,
        };
        let slot = self.branches.slots.get(base)?.as_ref()?;
        let format = slot.format.clone().or_else(|| Some(self.input.as_ref()?.format.clone()))?;
        match (spec.carriage, &format) {
            (Carriage::Ts, Format::Rtp(_)) => self.derived(now, base, &format),
            _ => Some(base),
        }
    }

    /// The slot of a declared branch; it begins with what the ring of the stream holds.
    fn declared(&mut self, now: Time, id: BranchId) -> Option<usize> {
        let is = |slot: &Slot| matches!(slot.made, Made::Declared(known) if known == id);
        if let Some(known) = self.branches.find(is) {
            return Some(known);
        }
        let exit = self.branches.exit(id)?;
        let format = self.branches.graph.as_ref()?.exit_format(exit).ok()?.clone();
        self.serve(now);
        let ring = self.ring(format.main_track());
        let slot = |index| Slot::new(Branch::new(index, ring), Made::Declared(id), Some(format));
        let index = self.branches.insert(slot);
        let held = self.held(ORIGINAL);
        let graph = self.branches.graph.as_mut()?;
        // Stages elsewhere cannot be run ahead of what they are given.
        let primes = graph.is_whole() && !graph.shares(exit);
        graph.set_wanted(exit, true);
        let mut made = Vec::new();
        if primes {
            graph.prime(now, exit, held, &mut |understood| made.push(understood));
        }
        self.wishes_changed();
        made.into_iter().for_each(|understood| self.push_to(now, index, understood));
        Some(index)
    }

    /// The slot of a transport stream made of another branch; it begins with what the ring of that
    /// holds.
    fn derived(&mut self, now: Time, base: usize, format: &Format) -> Option<usize> {
        if let Some(known) = self.branches.find(|slot| slot.base() == Some(base)) {
            return Some(known);
        }
        let mut chain = Box::new(to_ts(format).ok()?);
        self.serve(now);
        chain.set_wanted(0, true);
        self.held(base).into_iter().for_each(|understood| chain.enter(understood));
        let format = chain.exit_format(0).ok().cloned();
        let ring = self.ring(0);
        let slot = |index| Slot::new(Branch::new(index, ring), Made::Derived { base, chain }, format);
        let index = self.branches.insert(slot);
        self.branches.waiting += 1;
        self.serve(now);
        Some(index)
    }

    /// What a ring holds from where one joins on.
    fn held(&self, index: usize) -> Vec<Understood> {
        let Some(branch) = self.branches.get(index) else { return Vec::new() };
        let ring = branch.ring();
        held(ring, ring.join_point().unwrap_or_else(|| ring.head()))
    }

    /// An empty ring, joined at key frames of `main_track`.
    pub(in crate::control) fn ring(&self, main_track: u8) -> Ring {
        let StreamOptions { ring_bytes, when_full, seed, .. } = self.options;
        Ring::new(ring_bytes, when_full, seed, main_track)
    }
}

/// The chain that makes a transport stream of RTP.
fn to_ts(format: &Format) -> Result<Graph, Unfit> {
    let element = ElementPlan { kind: "to-ts".to_owned(), ..ElementPlan::default() };
    let plan = Plan {
        elements: [("to-ts".to_owned(), element)].into(),
        branches: [(String::new(), vec![Input { from: "to-ts".to_owned(), output: None }])].into(),
    };
    let mut graph = Graph::new(&plan, &mut CoreOnly).map_err(|(_, unfit)| unfit)?;
    graph.bind(format);
    let help = "play it by RTSP, or send it to an rtp:// address";
    graph.exit_format(0).map_err(|unfit| Unfit::new(&unfit.what, help))?;
    Ok(graph)
}
