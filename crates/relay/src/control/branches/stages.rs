//! The services of a stream as its driver sees them: put in place, and their stages run elsewhere.

use outflow_graph::{Graph, Item, Message, Probe, Stage, Target, Unfit};
use outflow_media::Time;

use super::far::Far;
use crate::control::distribution::Distribution;
use crate::control::stream::Stream;
use crate::schedule::BranchId;

impl Stream {
    /// The clock by which the work of services is timed, for people to see; it decides nothing.
    pub fn set_probe(&mut self, probe: Probe) {
        self.state.out.services.set_probe(probe);
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
    /// now on what is for the first of them is an output ([`Stages::Give`](crate::control::Stages::Give)); what
    /// comes out of the last comes back by [`Stream::handle_near`].
    pub fn take_stages(&mut self) -> Vec<Stage> {
        self.state.out.services.take_stages()
    }

    /// Lets no packet into the services until [`Stream::release_services`]; those that come wait. What came
    /// before has gone through as far as the services are here. Returns what is left of that for the stages
    /// elsewhere.
    pub fn hold_services(&mut self, now: Time) -> Vec<Far> {
        self.state.out.serve(now);
        self.state.out.services.hold()
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

    /// A packet comes out of the last of the stages that run elsewhere.
    pub fn handle_near(&mut self, now: Time, exit: u16, item: Item) {
        let out = &mut self.state.out;
        let mut made = out.services.take_room();
        out.services.leave(exit, item, &mut made);
        out.push_out(now, &mut made);
        out.services.keep_room(made);
    }

    /// Messages come out of the last of the stages that run elsewhere; or come back without having been in
    /// all of them, because those were on their way.
    pub fn hear_near(&mut self, now: Time, messages: Vec<(Target, Message)>) {
        self.state.out.hear_near(now, messages);
    }
}
