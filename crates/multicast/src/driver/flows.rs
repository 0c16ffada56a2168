//! Upcalls and entries of the kernel.

use std::net::Ipv4Addr;

use outflow_media::Time;
use outflow_routing::membership::Level;

use super::Driver;
use crate::event::{Event, Flow};
use crate::forward::{Entry, Pair, Relayed, Route, Use};
use crate::sys::{Routing, Upcall, UpcallKind, Vif};

impl Driver {
    pub(super) fn handle_upcall(&mut self, kernel: &Routing, now: Time, upcall: &Upcall) {
        let pair = Pair { group: upcall.group, source: upcall.source };
        let Some(is_placed) = self.may_send(now, upcall.vif, pair) else {
            self.counts.upcalls_unknown += 1;
            return;
        };
        if upcall.kind == UpcallKind::WrongVif && self.flows.get(pair).is_some() {
            let has_routes = self.dvmrp.is_some();
            let is_moved = is_placed
                && (has_routes || {
                    let counts = kernel.flow_counts(pair.source, pair.group).unwrap_or_default();
                    self.flows.is_moved(pair, &counts)
                });
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

    /// Whether a source's packets may come in there; none if no interface is there. With DVMRP, routes say so.
    /// From upstream all may.
    fn may_send(&mut self, now: Time, vif: Vif, pair: Pair) -> Option<bool> {
        let index = self.ports.at(vif)?.interface.index;
        if let Some(dvmrp) = &mut self.dvmrp {
            return Some(dvmrp.handle_data(now, index, pair.source, pair.group).is_ok());
        }
        if self.upstream.as_ref().is_some_and(|upstream| upstream.vif == vif) {
            return Some(true);
        }
        Some(self.queriers.get(&index)?.may_send(pair.source))
    }

    /// Has packets go where they are wanted now, if that changed.
    pub(super) fn route(&mut self, kernel: &Routing, pair: Pair) {
        self.set_route(kernel, pair, false);
    }

    fn set_route(&mut self, kernel: &Routing, pair: Pair, is_new: bool) {
        let Some(entry) = self.flows.get(pair) else { return };
        let (parent, is_placed) = (entry.parent, entry.is_placed);
        let route = if is_placed { self.route_of(pair, parent) } else { Route::default() };
        let outputs = route.kernel;
        if !self.flows.set_route(pair, route) && !is_new {
            return;
        }
        self.own.touch(pair.group);
        if kernel.set_flow(pair.source, pair.group, parent, outputs).is_err() {
            self.counts.kernel_errors += 1;
        }
        if let Some(flow) = self.flows.get(pair).and_then(|entry| self.flow(pair, entry)) {
            self.events.tell(Event::Flow(flow));
        }
    }

    /// Where packets are to go. What the relay itself sends to a group goes where it is wanted already.
    fn route_of(&self, pair: Pair, parent: Vif) -> Route {
        let relayed = self.relayed.get(&pair.group);
        if relayed == Some(&Relayed::All) || relayed.is_some() && self.is_own(pair.source) {
            return Route::default();
        }
        // Routers below take what comes from this one as well.
        let hears_us = |vif: Vif| {
            let below = self.queriers.values().find(|one| one.vif == vif);
            below.is_none_or(|one| one.hears_us(pair.group))
        };
        let is_relayed = |vif: Vif| relayed.is_some() && hears_us(vif);
        if self.dvmrp.is_some() {
            Route::new(parent, self.wants_by_tree(pair), is_relayed)
        } else {
            Route::new(parent, self.wants(pair), is_relayed)
        }
    }

    /// Whether this is an address of an interface that takes part.
    fn is_own(&self, source: Ipv4Addr) -> bool {
        self.ports.interfaces().any(|one| one.is_own(source))
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
        let name = |vif: Vif| self.ports.name(vif);
        let by_relay = entry.route.relay.iter().filter_map(|(vif, level)| Some((name(*vif)?, *level)));
        Some(Flow {
            source: pair.source,
            group: pair.group,
            from: name(entry.parent).filter(|_| entry.is_placed)?,
            by_kernel: entry.route.kernel.iter().filter_map(name).collect(),
            by_relay: by_relay.collect(),
        })
    }

    /// Removes entries that are no longer of use, and says of others that data comes.
    pub(super) fn sweep(&mut self, kernel: &Routing, now: Time, is_meant: impl Fn(&Entry) -> bool) {
        let meant = self.flows.iter().filter(|(_, entry)| is_meant(entry)).map(|(pair, _)| pair);
        for pair in meant.collect::<Vec<_>>() {
            // The kernel forgot it: nothing comes by it.
            let counts = kernel.flow_counts(pair.source, pair.group).unwrap_or_default();
            match self.flows.settle(now, pair, counts) {
                Use::Remove => self.remove_flow(kernel, pair),
                Use::Keep => (),
                Use::Data(vif) => {
                    // By a tree that is gone it does not come any more: that is told of, or it is misplaced.
                    let _counted_there = self.may_send(now, vif, pair);
                }
            }
        }
    }

    /// Removes some entries.
    pub(super) fn remove_flows(&mut self, kernel: &Routing, is_meant: impl Fn(&Entry) -> bool) {
        let pairs = self.flows.iter().filter(|(_, entry)| is_meant(entry)).map(|(pair, _)| pair);
        for pair in pairs.collect::<Vec<_>>() {
            self.remove_flow(kernel, pair);
        }
    }

    pub(super) fn remove_flow(&mut self, kernel: &Routing, pair: Pair) {
        let Some(entry) = self.flows.remove(pair) else { return };
        self.own.touch(pair.group);
        let _gone_already = kernel.remove_flow(pair.source, pair.group, entry.parent);
        if entry.is_placed {
            self.events.tell(Event::FlowGone { source: pair.source, group: pair.group });
        }
    }
}
