//! Trees: where data of a source network to a group comes from, where it goes, and at which level
//! (sections 3.3, 3.5 and 3.6).
//!
//! A tree begins with the first data of it. Data goes to the interfaces for which we are the designated
//! forwarder and where a member is, or a dependent neighbour that has not pruned it. What these want is the
//! demand of the tree ([`crate::demand`]); what is asked for above is kept to it by prunes, grafts and
//! demands.

mod above;
mod below;
mod flow;
mod tree;

use core::net::Ipv4Addr;
use std::collections::{BTreeMap, BTreeSet};

use outflow_media::{Prefix, Time};

use super::event::Event;
use super::interface::Interfaces;
use super::limits::{FLOW_TIMEOUT, FLOWS_OF_INTERFACE_MAX, GROUPS_OF_INTERFACE_MAX};
use super::outbox::Outbox;
use super::routes::{RouteTable, Via};
use super::{Counters, InterfaceId, Peer, Refusal, earliest};
use crate::demand::{Level, Table};
use crate::{Random, demand};
use tree::{Above, Tree};

pub use flow::{Flow, Outgoing};

/// What trees are made of, from outside.
pub(super) struct Context<'a> {
    pub(super) now: Time,
    pub(super) interfaces: &'a Interfaces,
    pub(super) routes: &'a RouteTable,
    pub(super) random: &'a mut Random,
    pub(super) outbox: &'a mut Outbox,
    pub(super) counters: &'a mut Counters,
    /// Whether levels are spoken of with neighbours that understand them.
    pub(super) has_levels: bool,
}

/// All trees.
#[derive(Debug)]
pub(super) struct Forwarding {
    trees: BTreeMap<Flow, Tree>,
    by_group: BTreeSet<(Ipv4Addr, Prefix)>,
    of_interface: BTreeMap<InterfaceId, usize>,
    members: BTreeMap<(InterfaceId, Ipv4Addr), Level>,
    demand: Table<Flow, InterfaceId>,
    timers: BTreeSet<(Time, Flow)>,
    changed: BTreeSet<Flow>,
    /// Of the demand that was sent last.
    sequence: u32,
}

impl Forwarding {
    pub(super) const fn new(settings: demand::Settings) -> Self {
        Forwarding {
            trees: BTreeMap::new(),
            by_group: BTreeSet::new(),
            of_interface: BTreeMap::new(),
            members: BTreeMap::new(),
            demand: Table::new(settings),
            timers: BTreeSet::new(),
            changed: BTreeSet::new(),
            sequence: 0,
        }
    }

    /// Data came (section 3.3.2). If it is not wanted, that is said above (section 3.5.4).
    pub(super) fn handle_data(
        &mut self,
        cx: &mut Context<'_>,
        from: InterfaceId,
        source: Ipv4Addr,
        group: Ipv4Addr,
    ) -> Result<Flow, Refusal> {
        if !is_routed_group(group) || source.is_multicast() || source.is_unspecified() {
            return Err(Refusal::NotRouted);
        }
        let (network, path) = cx.routes.lookup(source).ok_or(Refusal::NoRoute)?;
        if path.via.interface() != from {
            return Err(Refusal::WrongInterface);
        }
        let flow = Flow { source: network, group };
        if !self.trees.contains_key(&flow) {
            let count = self.of_interface.entry(from).or_default();
            if *count >= FLOWS_OF_INTERFACE_MAX {
                return Err(Refusal::FlowsFull);
            }
            *count += 1;
            self.trees.insert(flow, Tree::new(source, path.via));
            self.by_group.insert((group, network));
            self.changed.insert(flow);
            self.refresh(cx, flow);
        }
        if let Some(tree) = self.trees.get_mut(&flow) {
            tree.host = source;
            tree.idle_at = cx.now + FLOW_TIMEOUT;
        }
        if self.demand.demand(&flow).is_none() {
            self.handle_unwanted(cx, flow);
        }
        self.schedule(flow);
        Ok(flow)
    }

    /// Members of a group came, went or want another level (section 2.5.1).
    pub(super) fn set_member(
        &mut self,
        cx: &mut Context<'_>,
        interface: InterfaceId,
        group: Ipv4Addr,
        level: Option<Level>,
    ) -> Result<(), Refusal> {
        if !is_routed_group(group) {
            return Err(Refusal::NotRouted);
        }
        let of_interface = (interface, Ipv4Addr::UNSPECIFIED)..=(interface, Ipv4Addr::BROADCAST);
        let is_known = self.members.contains_key(&(interface, group));
        if level.is_some() && !is_known && self.members.range(of_interface).count() >= GROUPS_OF_INTERFACE_MAX
        {
            return Err(Refusal::GroupsFull);
        }
        match level {
            Some(level) => self.members.insert((interface, group), level),
            None => self.members.remove(&(interface, group)),
        };
        let of_group = self.by_group.range((group, Prefix::ALL)..=(group, Prefix::LAST));
        for (group, source) in of_group.copied().collect::<Vec<_>>() {
            self.refresh(cx, Flow { source, group });
        }
        Ok(())
    }

    /// No host or neighbour is on an interface that is not there any more.
    pub(super) fn handle_interface_down(&mut self, cx: &mut Context<'_>, interface: InterfaceId) {
        self.members.retain(|(on, _), _| *on != interface);
        let goes_there = |tree: &Tree| tree.outgoing.iter().any(|outgoing| outgoing.interface == interface);
        let flows = self.trees.iter().filter(|(_, tree)| goes_there(tree)).map(|(flow, _)| *flow);
        for flow in flows.collect::<Vec<_>>() {
            self.refresh(cx, flow);
        }
    }

    /// Forwarders, dependents or the path of a network may be others.
    pub(super) fn handle_route(&mut self, cx: &mut Context<'_>, network: Prefix) {
        for flow in self.flows_of(network) {
            self.refresh(cx, flow);
        }
    }

    fn flows_of(&self, source: Prefix) -> Vec<Flow> {
        let (first, last) = (Ipv4Addr::UNSPECIFIED, Ipv4Addr::BROADCAST);
        let range = Flow { source, group: first }..=Flow { source, group: last };
        self.trees.range(range).map(|(flow, _)| *flow).collect()
    }

    /// A neighbour has forgotten what it was told and what it told (section 3.2.2), or understands other
    /// messages than before.
    pub(super) fn handle_restart(&mut self, cx: &mut Context<'_>, peer: Peer) {
        for flow in self.trees.keys().copied().collect::<Vec<_>>() {
            let Some(tree) = self.trees.get_mut(&flow) else { continue };
            let was_below = tree.below.remove(&peer).is_some();
            let is_above = tree.upstream == Via::Neighbour(peer);
            tree.pruned_at.remove(&peer);
            if is_above {
                tree.above = Above::Nothing;
            }
            if was_below || is_above {
                self.refresh(cx, flow);
                self.ask(cx, flow);
            }
        }
    }

    /// Works out again where data goes, and asks for more or less above if need be.
    fn refresh(&mut self, cx: &mut Context<'_>, flow: Flow) {
        let Some(tree) = self.trees.get_mut(&flow) else { return };
        let Some(path) = cx.routes.path(flow.source) else { return self.suspend(cx.now, flow) };
        let has_moved = tree.upstream != path.via || !tree.is_routed;
        if has_moved {
            tree.upstream = path.via;
            tree.is_routed = true;
            tree.above = Above::Unknown;
            self.changed.insert(flow);
        }
        tree.forget_independent(cx.routes, flow.source);
        let outgoing = self.outgoing(cx, flow);
        let Some(tree) = self.trees.get_mut(&flow) else { return };
        if outgoing != tree.outgoing {
            let before = core::mem::replace(&mut tree.outgoing, outgoing.clone());
            self.want(cx, flow, &before, &outgoing);
            self.changed.insert(flow);
        }
        self.tell(cx);
        if has_moved && self.demand.demand(&flow).is_some() {
            self.ask(cx, flow);
        }
        self.schedule(flow);
    }

    /// The interfaces with members or dependents that want data (section 3.3.3).
    fn outgoing(&self, cx: &Context<'_>, flow: Flow) -> Vec<Outgoing> {
        let Some(tree) = self.trees.get(&flow) else { return Vec::new() };
        let forwarded = cx.interfaces.keys().filter(|on| cx.routes.is_forwarder(flow.source, **on));
        let wanted = forwarded.filter_map(|on| {
            let member = self.members.get(&(*on, flow.group)).copied();
            let dependents = cx.routes.dependents(flow.source, *on).filter_map(|peer| tree.wanted(peer));
            Some(Outgoing { interface: *on, level: member.into_iter().chain(dependents).min()? })
        });
        wanted.collect()
    }

    fn want(&mut self, cx: &mut Context<'_>, flow: Flow, before: &[Outgoing], after: &[Outgoing]) {
        for Outgoing { interface, level } in after {
            if self.demand.handle_want(cx.now, flow, *interface, *level, None).is_err() {
                cx.counters.refuse(Refusal::FlowsFull);
            }
        }
        let gone = before.iter().filter(|old| !after.iter().any(|new| new.interface == old.interface));
        gone.for_each(|old| self.demand.handle_leave(cx.now, flow, &old.interface));
    }

    /// Tells above what has changed of what is wanted.
    fn tell(&mut self, cx: &mut Context<'_>) {
        while let Some(change) = self.demand.poll() {
            self.ask(cx, change.key);
            self.schedule(change.key);
        }
    }

    /// No route leads to the source any more (section 3.4.8). If there may be one again to a neighbour that
    /// was sent a prune, that is remembered.
    fn suspend(&mut self, now: Time, flow: Flow) {
        let Some(tree) = self.trees.get_mut(&flow) else { return };
        if !tree.is_pruned_somewhere(now) {
            return self.remove(flow);
        }
        tree.is_routed = false;
        tree.above = Above::Unknown;
        tree.below.clear();
        tree.outgoing.clear();
        self.demand.forget(&flow);
        self.changed.insert(flow);
        self.schedule(flow);
    }

    fn remove(&mut self, flow: Flow) {
        let Some(tree) = self.trees.remove(&flow) else { return };
        self.by_group.remove(&(flow.group, flow.source));
        if let Some(at) = tree.timer {
            self.timers.remove(&(at, flow));
        }
        if let Some(count) = self.of_interface.get_mut(&tree.first_upstream) {
            *count -= 1;
            if *count == 0 {
                self.of_interface.remove(&tree.first_upstream);
            }
        }
        self.demand.forget(&flow);
        self.changed.insert(flow);
    }

    fn schedule(&mut self, flow: Flow) {
        let Some(tree) = self.trees.get_mut(&flow) else { return };
        let next = tree.next_timeout();
        if next != tree.timer {
            tree.timer.map(|at| self.timers.remove(&(at, flow)));
            next.map(|at| self.timers.insert((at, flow)));
            tree.timer = next;
        }
    }

    pub(super) fn handle_timeout(&mut self, cx: &mut Context<'_>) {
        while let Some((at, flow)) = self.timers.first().copied()
            && at <= cx.now
        {
            self.timers.pop_first();
            let Some(tree) = self.trees.get_mut(&flow) else { continue };
            tree.timer = None;
            if tree.is_over(cx.now) {
                self.remove(flow);
                continue;
            }
            if tree.expire_below(cx.now) {
                self.refresh(cx, flow);
            }
            self.handle_above_timeout(cx, flow);
            self.schedule(flow);
        }
        self.demand.handle_timeout(cx.now);
        self.tell(cx);
    }

    pub(super) fn next_timeout(&self) -> Option<Time> {
        earliest([self.timers.first().map(|(at, _)| *at), self.demand.next_timeout()])
    }

    /// The next flow that changed, as it is now.
    pub(super) fn poll(&mut self) -> Option<Event> {
        let flow = self.changed.pop_first()?;
        Some(match self.trees.get(&flow).filter(|tree| tree.is_routed) {
            Some(Tree { upstream, outgoing, .. }) => {
                Event::ForwardingChanged { flow, upstream: *upstream, outgoing: outgoing.clone() }
            }
            None => Event::ForwardingEnded(flow),
        })
    }

    pub(super) fn get(&self, flow: Flow) -> Option<(Via, &[Outgoing])> {
        let tree = self.trees.get(&flow).filter(|tree| tree.is_routed)?;
        Some((tree.upstream, &tree.outgoing))
    }

    pub(super) fn flows(&self) -> impl Iterator<Item = Flow> {
        self.trees.iter().filter(|(_, tree)| tree.is_routed).map(|(flow, _)| *flow)
    }

    /// What is asked for above.
    pub(super) fn demand(&self, flow: Flow) -> Option<Level> {
        self.demand.demand(&flow)
    }
}

/// Whether a group is one that is forwarded: those of 224.0.0.0/24 stay on their link.
fn is_routed_group(group: Ipv4Addr) -> bool {
    group.is_multicast() && group.octets()[..3] != [224, 0, 0]
}
