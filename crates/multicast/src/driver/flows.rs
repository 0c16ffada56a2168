//! New packets that come in, and entries of the kernel and of user space.

use std::io;
use std::net::IpAddr;

use outflow_media::Time;
use outflow_routing::forwarding::Pair;
use outflow_routing::membership::Level;

use super::Driver;
use crate::event::{Event, Flow, Name};
use crate::forward::{Entry, Relayed, Route, Use};
use crate::forwarder::Arrival;
use crate::ports::PortId;
use crate::sys::{FlowCounts, Routing, Upcall};

impl Driver {
    pub(super) fn handle_upcall(&mut self, kernel: &Routing, now: Time, upcall: &Upcall) {
        let pair = Pair { group: upcall.group, source: upcall.source };
        match self.ports.at(upcall.vif).map(|port| port.id) {
            Some(at) => self.handle_new(kernel, now, at, pair),
            None => self.counts.upcalls_unknown += 1,
        }
    }

    /// User space has packets that it knows nothing of.
    pub(crate) fn handle_arrival(&mut self, kernel: &Routing, arrival: Arrival) {
        self.counts.upcalls += 1;
        match self.ports.id(arrival.interface).filter(|_| self.is_forwarding) {
            Some(at) => self.handle_new(kernel, self.clock.now(), at, arrival.pair),
            None => self.counts.upcalls_unknown += 1,
        }
    }

    /// Packets come in for which there is no entry, or one by which they come in elsewhere.
    fn handle_new(&mut self, kernel: &Routing, now: Time, at: PortId, pair: Pair) {
        let Some(is_placed) = self.may_send(now, at.index, pair) else {
            self.counts.upcalls_unknown += 1;
            return;
        };
        let before = self.flows.get(pair).map(|entry| entry.parent).filter(|parent| *parent != at);
        if let Some(before) = before {
            let has_routes = self.dvmrp.is_some();
            let is_moved = is_placed
                && (has_routes || {
                    let counts = self.flow_counts(kernel, pair, before);
                    self.flows.is_moved(pair, &counts)
                });
            if !is_moved {
                self.counts.flows_doubled += 1;
                return;
            }
            self.unplace(kernel, pair, before);
        }
        if !is_placed {
            self.counts.flows_misplaced += 1;
        }
        if self.flows.insert(now, pair, at, is_placed) {
            self.set_route(kernel, pair, true);
        } else {
            self.counts.flows_refused += 1;
        }
    }

    /// What came in of a pair. The kernel counts what comes in by interfaces that have a number.
    fn flow_counts(&self, kernel: &Routing, pair: Pair, parent: PortId) -> FlowCounts {
        let user = self.forwarder.flow_counts(pair);
        if parent.vif.is_none() {
            return user;
        }
        // If the kernel forgot it, nothing comes by it.
        let mut counts = kernel.flow_counts(pair.source, pair.group).unwrap_or_default();
        counts.packets += user.wrong_interface;
        counts.wrong_interface += user.wrong_interface;
        counts
    }

    /// Whether a source's packets may come in there; none if no interface is there. With DVMRP, routes say so.
    /// From upstream all may.
    fn may_send(&mut self, now: Time, index: u32, pair: Pair) -> Option<bool> {
        if let Some(dvmrp) = &mut self.dvmrp {
            let (source, group) = pair.v4()?;
            return Some(dvmrp.handle_data(now, index, source, group).is_ok());
        }
        if self.upstream.as_ref().is_some_and(|upstream| upstream.interface.index == index) {
            return Some(true);
        }
        Some(self.queriers.get(&index)?.may_send(pair.source))
    }

    /// Has packets go where they are wanted now, if that changed.
    pub(super) fn route(&mut self, kernel: &Routing, pair: Pair) {
        self.set_route(kernel, pair, false);
    }

    /// The same; if it `is_new`, in any case.
    pub(super) fn set_route(&mut self, kernel: &Routing, pair: Pair, is_new: bool) {
        let Some(entry) = self.flows.get(pair) else { return };
        let (parent, before) = (entry.parent, entry.route.clone());
        let route = if entry.is_placed { self.route_of(pair, parent, &before) } else { Route::default() };
        if !self.flows.set_route(pair, route.clone()) && !is_new {
            return;
        }
        self.own.touch(pair.group);
        if self.place(kernel, pair, parent, (&route, &before)).is_err() {
            self.counts.kernel_errors += 1;
        }
        if let Some(flow) = self.flows.get(pair).and_then(|entry| self.flow(pair, entry)) {
            self.events.tell(Event::Flow(flow));
        }
    }

    /// Tells both forwarders of it, the kernel and user space, as far as it is theirs; and what went where before.
    fn place(
        &mut self,
        kernel: &Routing,
        pair: Pair,
        parent: PortId,
        (route, before): (&Route, &Route),
    ) -> io::Result<()> {
        if let Some(vif) = parent.vif.filter(|_| route.user.is_empty()) {
            kernel.set_flow(pair.source, pair.group, vif, route.kernel)?;
            self.forwarder.remove_flow(pair);
            return Ok(());
        }
        let by_kernel = before.kernel.iter().filter_map(|vif| Some(self.ports.at(vif)?.id.index));
        let had_all = by_kernel.chain(before.user.whole.iter().copied()).collect::<Vec<_>>();
        let described = self.described.get(&pair.group).cloned().unwrap_or_default();
        let outputs = (&route.user, &had_all[..], described);
        self.forwarder.set_flow(pair, parent.index, outputs)?;
        // Behind it: for a moment both forward, and no packet is lost between them.
        parent.vif.map_or(Ok(()), |vif| kernel.set_flow(pair.source, pair.group, vif, route.kernel))
    }

    /// Has both forget it.
    fn unplace(&mut self, kernel: &Routing, pair: Pair, parent: PortId) {
        if let Some(vif) = parent.vif {
            let _gone_already = kernel.remove_flow(pair.source, pair.group, vif);
        }
        self.forwarder.remove_flow(pair);
    }

    /// Where packets are to go. What the relay itself sends to a group goes where it is wanted already.
    fn route_of(&self, pair: Pair, parent: PortId, before: &Route) -> Route {
        let relayed = self.relayed.get(&pair.group);
        if relayed == Some(&Relayed::All) || relayed.is_some() && self.is_own(pair.source) {
            return Route::default();
        }
        // Routers below take what comes from this one as well.
        let hears_us = |index: u32| self.queriers.get(&index).is_none_or(|one| one.hears_us(pair.group));
        let is_relayed = |index: u32| relayed.is_some() && hears_us(index);
        if self.dvmrp.is_some() {
            Route::new(parent, self.wants_by_tree(pair), is_relayed, before)
        } else {
            Route::new(parent, self.wants(pair), is_relayed, before)
        }
    }

    /// Whether this is an address of an interface that takes part.
    fn is_own(&self, source: IpAddr) -> bool {
        self.ports.interfaces().any(|one| one.is_own(source))
    }

    /// The ports that want packets. Upstream gets all of them (RFC 4605 section 4.2).
    fn wants(&self, pair: Pair) -> impl Iterator<Item = (PortId, Level)> {
        let upstream = self.upstream.iter().map(|upstream| (upstream.interface.index, Level::BEST));
        let below = self.queriers.iter();
        let below = below.filter_map(move |(index, one)| Some((*index, one.wants(pair.source, pair.group)?)));
        upstream.chain(below).filter_map(|(index, level)| Some((self.ports.id(index)?, level)))
    }

    /// An entry as it is told of; none if it is one that forwards nothing as its source is misplaced.
    pub(super) fn flow(&self, pair: Pair, entry: &Entry) -> Option<Flow> {
        let name = |index: u32| self.ports.name(index);
        let at = |vif| self.ports.at(vif).map(|port| Name::clone(&port.name));
        let at_level = |(index, level): &(u32, Level)| Some((name(*index)?, *level));
        Some(Flow {
            source: pair.source,
            group: pair.group,
            from: name(entry.parent.index).filter(|_| entry.is_placed)?,
            by_kernel: entry.route.kernel.iter().filter_map(at).collect(),
            by_user: entry.route.user.whole.iter().filter_map(|index| name(*index)).collect(),
            thinned: entry.route.user.thinned.iter().filter_map(at_level).collect(),
            is_filtered: self.forwarder.is_filtered(pair),
            by_relay: entry.route.relay.iter().filter_map(at_level).collect(),
        })
    }

    /// Removes entries that are no longer of use, and says of others that data comes.
    pub(super) fn sweep(&mut self, kernel: &Routing, now: Time, is_meant: impl Fn(&Entry) -> bool) {
        let meant = self.flows.iter().filter(|(_, entry)| is_meant(entry));
        for (pair, parent) in meant.map(|(pair, entry)| (pair, entry.parent)).collect::<Vec<_>>() {
            let counts = self.flow_counts(kernel, pair, parent);
            match self.flows.settle(now, pair, counts) {
                Use::Remove => self.remove_flow(kernel, pair),
                Use::Keep => (),
                Use::Data(at) => {
                    // By a tree that is gone it does not come any more: that is told of, or it is misplaced.
                    let _counted_there = self.may_send(now, at.index, pair);
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
        self.unplace(kernel, pair, entry.parent);
        if entry.is_placed {
            self.events.tell(Event::FlowGone { source: pair.source, group: pair.group });
        }
    }
}
