//! The router: what comes is given to its parts, what they want to say is put together.

mod receive;
mod reports;
mod schedule;

use core::net::Ipv4Addr;
use std::collections::{BTreeMap, VecDeque};

use outflow_media::Time;

use super::event::Event;
use super::forwarding::{Context, Flow, Forwarding, Outgoing};
use super::interface::{Interface, InterfaceSettings, Interfaces};
use super::limits::{EVENTS_MAX, INTERFACES_MAX, PROBE_INTERVAL};
use super::neighbour::{Neighbour, Neighbours};
use super::outbox::{Outbox, Transmit};
use super::packet::{ALL_ROUTERS, Addresses, GENERATIONS, LEVELS, Message, PRUNES, TRACES};
use super::routes::{RouteTable, Via};
use super::{Counters, InterfaceId, Peer, Refusal, earliest, routes};
use crate::demand::Level;
use crate::{Random, demand};
use schedule::Schedule;

/// How a router is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// What its generations begin with: larger than when it ran before, as seconds of the day's clock are
    /// (section 3.2.2).
    pub generation: u32,
    /// What jitter is taken from. With the same seed, and the same input, all is the same.
    pub seed: u64,
    /// Whether neighbours that understand levels are told them.
    pub has_levels: bool,
    /// How long to wait before less is asked for above.
    pub demand: demand::Settings,
}

/// A router of DVMRP.
///
/// Its parts only change by what has `&mut self`; [`Self::next_timeout`], [`Self::poll_transmit`] and
/// [`Self::poll`] may have something new after each of these.
#[derive(Debug)]
pub struct Router {
    settings: Settings,
    random: Random,
    interfaces: Interfaces,
    /// How often an interface came up.
    came_up: u32,
    routes: RouteTable,
    forwarding: Forwarding,
    schedule: Schedule,
    outbox: Outbox,
    events: VecDeque<Event>,
    counters: Counters,
}

impl Router {
    /// One without interfaces.
    pub const fn new(settings: Settings) -> Self {
        let levels = if settings.has_levels { LEVELS } else { 0 };
        Router {
            settings,
            random: Random::new(settings.seed),
            interfaces: BTreeMap::new(),
            came_up: 0,
            routes: RouteTable::new(),
            forwarding: Forwarding::new(settings.demand),
            schedule: Schedule::new(),
            outbox: Outbox::new(PRUNES | GENERATIONS | TRACES | levels),
            events: VecDeque::new(),
            counters: Counters::new(),
        }
    }

    /// An interface comes up (section 3.7.1). One that is up is taken down first. Refused if there are
    /// [`INTERFACES_MAX`].
    pub fn add_interface(
        &mut self,
        now: Time,
        id: InterfaceId,
        settings: InterfaceSettings,
    ) -> Result<(), Refusal> {
        self.remove_interface(now, id);
        if self.interfaces.len() >= INTERFACES_MAX {
            return self.count(Err(Refusal::InterfacesFull));
        }
        let generation = self.settings.generation.wrapping_add(self.came_up);
        self.came_up = self.came_up.wrapping_add(1);
        let metric = settings.metric.clamp(1, routes::INFINITY - 1);
        let link = routes::Link { address: settings.address, metric };
        self.routes.add_interface(id, link, settings.network());
        let neighbours = Neighbours::default();
        self.interfaces.insert(id, Interface { settings, generation, neighbours, probe_at: now });
        self.schedule.begin(now, &mut self.random);
        self.follow_routes(now);
        Ok(())
    }

    /// An interface goes down: all its neighbours are gone, and its members are forgotten.
    pub fn remove_interface(&mut self, now: Time, id: InterfaceId) {
        let Some(interface) = self.interfaces.remove(&id) else { return };
        for (address, neighbour) in interface.neighbours.iter() {
            if neighbour.is_two_way() {
                self.event(Event::NeighbourDown(Peer { interface: id, address }));
            }
        }
        self.routes.remove_interface(now, id);
        self.follow_routes(now);
        let (forwarding, mut cx) = self.parts(now);
        forwarding.handle_interface_down(&mut cx, id);
    }

    /// Says to all neighbours that no network can be reached over us any more (section 3.4.9). Then only
    /// [`Self::poll_transmit`] is to be called, until there is nothing left to send.
    pub fn shut_down(&mut self) {
        let interfaces: Vec<_> = self.interfaces.keys().copied().collect();
        interfaces.into_iter().for_each(|id| self.tell_unreachable(id));
    }

    /// Whether members of a group are on a link, and at which level the best of them wants it. What it was
    /// before does not matter.
    pub fn set_member(
        &mut self,
        now: Time,
        interface: InterfaceId,
        group: Ipv4Addr,
        level: Option<Level>,
    ) -> Result<(), Refusal> {
        if !self.interfaces.contains_key(&interface) {
            return self.count(Err(Refusal::UnknownInterface));
        }
        let (forwarding, mut cx) = self.parts(now);
        let set = forwarding.set_member(&mut cx, interface, group, level);
        self.count(set)
    }

    /// Data of a source came from a link. To be called for what belongs to no flow that was told of, for what
    /// came from somewhere else than its flow does, and of each flow once in a while as long as data comes
    /// (every minute; more often, each second say, where it goes nowhere, so that it is pruned again).
    pub fn handle_data(
        &mut self,
        now: Time,
        from: InterfaceId,
        source: Ipv4Addr,
        group: Ipv4Addr,
    ) -> Result<Flow, Refusal> {
        let (forwarding, mut cx) = self.parts(now);
        let flow = forwarding.handle_data(&mut cx, from, source, group);
        self.count(flow)
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Time) {
        let mut gone = Vec::new();
        let mut probing = Vec::new();
        for (id, interface) in &mut self.interfaces {
            let left = interface.neighbours.handle_timeout(now);
            gone.extend(left.into_iter().map(|address| Peer { interface: *id, address }));
            if interface.probe_at <= now {
                interface.probe_at = now + PROBE_INTERVAL;
                probing.push(*id);
            }
        }
        probing.into_iter().for_each(|id| self.probe(id));
        for peer in gone {
            self.routes.forget_neighbour(now, peer);
            self.event(Event::NeighbourDown(peer));
        }
        self.routes.handle_timeout(now);
        self.follow_routes(now);
        let (forwarding, mut cx) = self.parts(now);
        forwarding.handle_timeout(&mut cx);
        self.report(now);
    }

    /// When [`Self::handle_timeout`] is due; never without interfaces and flows.
    pub fn next_timeout(&self) -> Option<Time> {
        let of_interface =
            |interface: &Interface| earliest([Some(interface.probe_at), interface.neighbours.next_timeout()]);
        earliest([
            self.interfaces.values().filter_map(of_interface).min(),
            self.routes.next_timeout(),
            self.forwarding.next_timeout(),
            self.schedule.next_timeout().filter(|_| !self.interfaces.is_empty()),
        ])
    }

    /// The next packet to be sent, written with its header of IP to `out`, which is cleared.
    pub fn poll_transmit(&mut self, out: &mut Vec<u8>) -> Option<Transmit> {
        let transmit = self.outbox.poll(&self.interfaces, out)?;
        self.counters.sent += 1;
        Some(transmit)
    }

    /// The next event. Of a flow or route that changed several times, it is told how it is now.
    pub fn poll(&mut self) -> Option<Event> {
        if let Some(event) = self.events.pop_front() {
            return Some(event);
        }
        if let Some(network) = self.routes.take_moved() {
            return Some(Event::RouteChanged(network));
        }
        self.forwarding.poll()
    }

    /// Where sources are.
    pub const fn routes(&self) -> &RouteTable {
        &self.routes
    }

    /// The neighbours that are heard, in order.
    pub fn neighbours(&self) -> impl Iterator<Item = (Peer, &Neighbour)> {
        self.interfaces.iter().flat_map(|(id, interface)| {
            let peer = |address| Peer { interface: *id, address };
            interface.neighbours.iter().map(move |(address, neighbour)| (peer(address), neighbour))
        })
    }

    /// Where a flow comes from and where it goes.
    pub fn forwarding(&self, flow: Flow) -> Option<(Via, &[Outgoing])> {
        self.forwarding.get(flow)
    }

    /// The level of a flow that is asked for above.
    pub fn demand(&self, flow: Flow) -> Option<Level> {
        self.forwarding.demand(flow)
    }

    /// The flows that are known, in order.
    pub fn flows(&self) -> impl Iterator<Item = Flow> {
        self.forwarding.flows()
    }

    /// What happened so far.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    fn parts(&mut self, now: Time) -> (&mut Forwarding, Context<'_>) {
        let Router { forwarding, interfaces, routes, random, outbox, counters, settings, .. } = self;
        let has_levels = settings.has_levels;
        (forwarding, Context { now, interfaces, routes, random, outbox, counters, has_levels })
    }

    /// Trees follow what changed of routes.
    fn follow_routes(&mut self, now: Time) {
        let touched = self.routes.take_touched();
        let (forwarding, mut cx) = self.parts(now);
        touched.into_iter().for_each(|network| forwarding.handle_route(&mut cx, network));
        self.schedule.flash(now, &self.routes);
    }

    fn probe(&mut self, id: InterfaceId) {
        let Some(interface) = self.interfaces.get(&id) else { return };
        let octets: Vec<_> = interface.neighbours.iter().map(|(address, _)| address.octets()).collect();
        let probe = Message::Probe { generation: interface.generation, neighbours: Addresses::new(&octets) };
        let to = Transmit { interface: id, destination: ALL_ROUTERS };
        self.outbox.send(to, &probe, &mut self.counters);
    }

    fn count<T>(&mut self, result: Result<T, Refusal>) -> Result<T, Refusal> {
        result.inspect_err(|why| self.counters.refuse(*why))
    }

    fn event(&mut self, event: Event) {
        if self.events.len() >= EVENTS_MAX {
            self.events.pop_front();
            self.counters.refuse(Refusal::EventsFull);
        }
        self.events.push_back(event);
    }
}
