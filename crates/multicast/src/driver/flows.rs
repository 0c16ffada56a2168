//! Upcalls and entries of the kernel.

use outflow_media::Time;
use outflow_routing::membership::Level;

use super::Driver;
use crate::event::{Event, Flow, Name};
use crate::forward::{Entry, Pair, Route, Use};
use crate::sys::{Routing, Upcall, UpcallKind, Vif};

impl Driver {
    pub(super) fn handle_upcall(&mut self, kernel: &Routing, now: Time, upcall: &Upcall) {
        let pair = Pair { group: upcall.group, source: upcall.source };
        let Some(is_placed) = self.may_send(upcall.vif, pair) else {
            self.counts.upcalls_unknown += 1;
            return;
        };
        if upcall.kind == UpcallKind::WrongVif && self.flows.get(pair).is_some() {
            let is_moved = is_placed && {
                let counts = kernel.flow_counts(pair.source, pair.group).unwrap_or_default();
                self.flows.is_moved(pair, &counts)
            };
            if !is_moved {
                self.counts.flows_doubled += 1;
                return;
            }
        }
        if !is_placed {
            self.counts.flows_misplaced += 1;
        }
        if self.flows.insert(now, pair, upcall.vif, is_placed) {
            self.set_route(kernel, pair, true);
        } else {
            self.counts.flows_refused += 1;
        }
    }

    /// Whether a source's packets may come in there; none if no interface is there. From upstream all may.
    fn may_send(&self, vif: Vif, pair: Pair) -> Option<bool> {
        if self.upstream.as_ref().is_some_and(|upstream| upstream.vif == vif) {
            return Some(true);
        }
        let querier = self.queriers.values().find(|querier| querier.vif == vif)?;
        Some(querier.may_send(pair.source))
    }

    /// Has packets go where they are wanted now, if that changed.
    pub(super) fn route(&mut self, kernel: &Routing, pair: Pair) {
        self.set_route(kernel, pair, false);
    }

    fn set_route(&mut self, kernel: &Routing, pair: Pair, is_new: bool) {
        let Some(entry) = self.flows.get(pair) else { return };
        let (parent, is_placed) = (entry.parent, entry.is_placed);
        let route = if is_placed { Route::new(parent, self.wants(pair)) } else { Route::default() };
        let outputs = route.kernel;
        if !self.flows.set_route(pair, route) && !is_new {
            return;
        }
        if kernel.set_flow(pair.source, pair.group, parent, outputs).is_err() {
            self.counts.kernel_errors += 1;
        }
        if let Some(flow) = self.flows.get(pair).and_then(|entry| self.flow(pair, entry)) {
            self.events.tell(Event::Flow(flow));
        }
    }

    /// Who wants packets. Upstream gets all of them (RFC 4605 section 4.2).
    fn wants(&self, pair: Pair) -> impl Iterator<Item = (Vif, Level)> {
        let upstream = self.upstream.iter().map(|upstream| (upstream.vif, Level::BEST));
        let below = self.queriers.values();
        let below = below.filter_map(move |one| Some((one.vif, one.wants(pair.source, pair.group)?)));
        upstream.chain(below)
    }

    /// An entry as it is told of; none if it is one that forwards nothing as its source is misplaced.
    pub(super) fn flow(&self, pair: Pair, entry: &Entry) -> Option<Flow> {
        let vifs = self.queriers.values().map(|one| (one.vif, &one.name));
        let vifs = vifs.chain(self.upstream.iter().map(|one| (one.vif, &one.name)));
        let name = |vif: Vif| vifs.clone().find(|(one, _)| *one == vif).map(|(_, name)| Name::clone(name));
        let by_relay = entry.route.relay.iter().filter_map(|(vif, level)| Some((name(*vif)?, *level)));
        Some(Flow {
            source: pair.source,
            group: pair.group,
            from: name(entry.parent).filter(|_| entry.is_placed)?,
            by_kernel: vifs
                .clone()
                .filter(|(vif, _)| entry.route.kernel.contains(*vif))
                .map(|(_, name)| Name::clone(name))
                .collect(),
            by_relay: by_relay.collect(),
        })
    }

    /// Removes entries that are no longer of use.
    pub(super) fn sweep(&mut self, kernel: &Routing, now: Time) {
        for pair in self.flows.pairs(None) {
            // The kernel forgot it: nothing comes by it.
            let counts = kernel.flow_counts(pair.source, pair.group).unwrap_or_default();
            if self.flows.settle(now, pair, counts) == Use::Remove {
                self.remove_flow(kernel, pair);
            }
        }
    }

    /// Removes what comes in by an interface.
    pub(super) fn remove_flows_from(&mut self, kernel: &Routing, vif: Vif) {
        let pairs = self.flows.iter().filter(|(_, entry)| entry.parent == vif).map(|(pair, _)| pair);
        for pair in pairs.collect::<Vec<_>>() {
            self.remove_flow(kernel, pair);
        }
    }

    fn remove_flow(&mut self, kernel: &Routing, pair: Pair) {
        let Some(entry) = self.flows.remove(pair) else { return };
        let _gone_already = kernel.remove_flow(pair.source, pair.group, entry.parent);
        if entry.is_placed {
            self.events.tell(Event::FlowGone { source: pair.source, group: pair.group });
        }
    }
}
