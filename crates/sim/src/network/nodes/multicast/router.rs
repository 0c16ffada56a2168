//! A router: which groups are wanted on its segments is asked by IGMP and MLD; where they come from is told among
//! routers by DVMRP, or they are joined above as by a host (RFC 4605); each segment is sent the best level that is wanted
//! behind it, and above the best of all is asked for.

use core::net::{IpAddr, Ipv4Addr};
use core::time::Duration;
use std::collections::BTreeSet;

use bytes::Bytes;
use outflow_media::{Prefix, Time};
use outflow_routing::dvmrp::{self, InterfaceId, InterfaceSettings};
use outflow_routing::forwarding::{Head, Pair};
use outflow_routing::membership::{
    Event, Family, Host, HostSettings, Interest, Router as Querier, RouterSettings, Wants,
};
use outflow_routing::{Level, demand};
use serde::Deserialize;

use super::forwarding::{Forwarding, Told};
use super::{NETWORK_BITS, links};
use crate::network::nodes::{Figures, Node, Place, Port};
use crate::network::units::duration;

/// A router of DVMRP is told again of a flow that comes: once in a while, and sooner if it goes nowhere.
const AGAIN: Duration = Duration::from_secs(60);
const UNWANTED_AGAIN: Duration = Duration::from_secs(1);

/// Protocols of IP: IGMP; and the header that messages of MLD have in front.
const IGMP: u8 = 2;
const HOP_BY_HOP: u8 = 0;
/// The type of messages of DVMRP among those of IGMP.
const DVMRP: u8 = 0x13;

/// What a router is to do.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouterModel {
    /// The router above, at which it joins groups as a host does, of IPv4 and of IPv6. Without one it is a router of
    /// DVMRP, which routes IPv4; what comes of IPv6 on one of its segments then goes to the others.
    pub above: Option<String>,
    /// Between general queries.
    #[serde(default = "query_interval", deserialize_with = "duration")]
    pub query_interval: Duration,
    /// How long hosts may take to answer when one has left.
    #[serde(default = "last_member_interval", deserialize_with = "duration")]
    pub last_member_interval: Duration,
    /// How long it waits before it asks for less, or nothing.
    #[serde(default = "hold", deserialize_with = "duration")]
    pub hold: Duration,
}

const fn query_interval() -> Duration {
    Duration::from_secs(125)
}

const fn last_member_interval() -> Duration {
    Duration::from_secs(1)
}

const fn hold() -> Duration {
    Duration::from_secs(2)
}

/// A router, with an interface on each of its segments.
#[derive(Debug)]
pub(in crate::network::nodes) struct Router {
    /// By port: those of IGMP, and of MLD.
    queriers: Vec<[Querier; 2]>,
    dvmrp: Option<dvmrp::Router>,
    told: Told,
    above: Option<Above>,
    forwarding: Forwarding,
    buffer: Vec<u8>,
    /// Messages that were sent, and their bytes.
    messages: u64,
    message_bytes: u64,
}

/// The members' side of the interface to the router above.
#[derive(Debug)]
struct Above {
    port: usize,
    hosts: [Host; 2],
    /// Which port wants which group at which level.
    demand: demand::Table<IpAddr, usize>,
}

impl Router {
    pub(in crate::network::nodes) fn new(
        now: Time,
        model: &RouterModel,
        place: &Place<'_>,
    ) -> Result<Self, String> {
        if place.ports.is_empty() {
            return Err("a router is on segments: name it in their joins".to_owned());
        }
        let querier = |link| {
            let (query_interval, last_member_interval) = (model.query_interval, model.last_member_interval);
            let settings =
                RouterSettings { query_interval, last_member_interval, ..RouterSettings::new(link) };
            Querier::new(now, settings)
        };
        let demand = demand::Settings { hold: model.hold, linger: model.hold };
        let above = match &model.above {
            None => None,
            Some(name) => {
                let (port, _) = (place.neighbour)(name).ok_or("no segment joins it and the router above")?;
                let host = |link| Host::new(now, HostSettings::new(link, place.seed));
                let hosts = links(&place.ports[port]).map(host);
                Some(Above { port, hosts, demand: demand::Table::new(demand) })
            }
        };
        let mut router = Router {
            queriers: place.ports.iter().map(|port| links(port).map(querier)).collect(),
            dvmrp: above.is_none().then(|| neighbourhood(now, demand, place)).transpose()?,
            told: Told::default(),
            above,
            forwarding: Forwarding::default(),
            buffer: Vec::new(),
            messages: 0,
            message_bytes: 0,
        };
        router.settle(now);
        Ok(router)
    }

    /// A message of IGMP, MLD or DVMRP.
    fn handle_message(&mut self, now: Time, port: usize, family: Family, packet: &[u8]) {
        if let Some(above) = self.above.as_mut().filter(|above| above.port == port) {
            return above.hosts[family as usize].handle_packet(now, packet);
        }
        let header = usize::from(packet[0] & 0xf) * 4;
        let is_dvmrp = family == Family::V4 && packet.get(header) == Some(&DVMRP);
        match &mut self.dvmrp {
            Some(dvmrp) if is_dvmrp => dvmrp.handle_packet(now, InterfaceId(port as u32), packet),
            _ => self.queriers[port][family as usize].handle_packet(now, packet),
        }
    }

    /// The ports that want packets of a flow that comes by one.
    fn wants(&mut self, now: Time, port: usize, pair: Pair) -> Vec<(usize, Level)> {
        if let (Some(_), Some((source, group))) = (&self.dvmrp, pair.v4()) {
            return self.wants_by_tree(now, port, pair, (source, group));
        }
        let family = Family::of(pair.group) as usize;
        let above = self.above.as_ref().map(|above| above.port);
        let wants = self.queriers.iter().enumerate().filter_map(|(at, queriers)| {
            let querier = &queriers[family];
            let wanted = querier.wanted(pair.group).filter(|wanted| wanted.receives(pair.source));
            let level = wanted.filter(|_| querier.is_querier()).map(|wanted| wanted.level);
            // What comes from below goes to the router above, as a whole (RFC 4605, section 4.3).
            let level = if above == Some(at) { Some(Level::BEST) } else { level };
            Some((at, level?)).filter(|_| at != port)
        });
        wants.collect()
    }

    fn wants_by_tree(
        &mut self,
        now: Time,
        port: usize,
        pair: Pair,
        (source, group): (Ipv4Addr, Ipv4Addr),
    ) -> Vec<(usize, Level)> {
        let Some(dvmrp) = &mut self.dvmrp else { return Vec::new() };
        let again = |flow| if dvmrp.demand(flow).is_some() { AGAIN } else { UNWANTED_AGAIN };
        let flow = match self.told.flow(now, pair, port, again) {
            Some(flow) => flow,
            None => match dvmrp.handle_data(now, InterfaceId(port as u32), source, group) {
                Ok(flow) => {
                    self.told.tell(now, pair, port, flow);
                    flow
                }
                Err(_) => {
                    self.forwarding.dropped += 1;
                    return Vec::new();
                }
            },
        };
        let Some((via, outgoing)) = dvmrp.forwarding(flow) else { return Vec::new() };
        if via.interface() != InterfaceId(port as u32) {
            self.forwarding.dropped += 1;
            return Vec::new();
        }
        outgoing.iter().map(|outgoing| (outgoing.interface.0 as usize, outgoing.level)).collect()
    }

    /// All that follows from what came in.
    fn settle(&mut self, now: Time) {
        let mut changed = BTreeSet::new();
        for (port, queriers) in self.queriers.iter_mut().enumerate() {
            for event in queriers.iter_mut().flat_map(|querier| core::iter::from_fn(|| querier.poll())) {
                match event {
                    Event::GroupWanted { group, .. } | Event::GroupGone { group } => {
                        changed.insert((port, group));
                    }
                    Event::QuerierChanged { .. } => {}
                }
            }
        }
        for (port, group) in changed {
            self.settle_group(now, port, group);
        }
        if let Some(dvmrp) = &mut self.dvmrp {
            while let Some(event) = dvmrp.poll() {
                match event {
                    dvmrp::Event::ForwardingEnded(flow) | dvmrp::Event::ForwardingChanged { flow, .. } => {
                        let is_of = |source: Ipv4Addr| flow.source.contains(source);
                        self.told.forget(|pair| {
                            pair.v4().is_some_and(|(source, group)| group == flow.group && is_of(source))
                        });
                    }
                    dvmrp::Event::RouteChanged(_) => self.told.forget(|_| true),
                    _ => {}
                }
            }
        }
        self.ask_above(now);
    }

    /// What is wanted of a group on a segment is another.
    fn settle_group(&mut self, now: Time, port: usize, group: IpAddr) {
        let level = self.queriers[port][Family::of(group) as usize].wanted(group).map(|wanted| wanted.level);
        if let (Some(dvmrp), IpAddr::V4(routed)) = (&mut self.dvmrp, group) {
            // What is refused is counted there.
            let _counted = dvmrp.set_member(now, InterfaceId(port as u32), routed, level);
        }
        let Some(above) = &mut self.above else { return };
        match level {
            // What there is no room for is not asked for.
            Some(level) => drop(above.demand.handle_want(now, group, port, level, None)),
            None => above.demand.handle_leave(now, group, &port),
        }
    }

    /// Joins above what is wanted below, at the best level of all.
    fn ask_above(&mut self, now: Time) {
        let Some(above) = &mut self.above else { return };
        while let Some(demand::Change { key: group, demand }) = above.demand.poll() {
            let family = Family::of(group) as usize;
            let below = self.queriers.iter().enumerate().filter(|(at, _)| *at != above.port);
            let wanted = below.filter_map(|(_, queriers)| Some(Wants::from(queriers[family].wanted(group)?)));
            let wants = wanted.reduce(Wants::or);
            let interest = match (demand, &wants) {
                (Some(level), Some(wants)) => Interest { level, ..Interest::from(wants) },
                (Some(level), None) => Interest::all(level),
                (None, _) => Interest::nothing(),
            };
            // A group that cannot be joined is not.
            let _refused = above.hosts[family].set(now, group, interest);
        }
    }

    /// Writes the next message into the buffer: by which port it goes.
    fn write(&mut self) -> Option<usize> {
        let buffer = &mut self.buffer;
        for (port, queriers) in self.queriers.iter_mut().enumerate() {
            // At the interface to the router above it is a host.
            let is_above = self.above.as_ref().is_some_and(|above| above.port == port);
            if queriers.iter_mut().any(|querier| querier.poll_transmit(buffer).is_some() && !is_above) {
                return Some(port);
            }
        }
        if let Some(above) = &mut self.above
            && above.hosts.iter_mut().any(|host| host.poll_transmit(buffer).is_some())
        {
            return Some(above.port);
        }
        self.dvmrp.as_mut()?.poll_transmit(buffer).map(|transmit| transmit.interface.0 as usize)
    }
}

/// A router of DVMRP with an interface on each segment.
fn neighbourhood(now: Time, demand: demand::Settings, place: &Place<'_>) -> Result<dvmrp::Router, String> {
    let settings =
        dvmrp::Settings { generation: place.seed as u32, seed: place.seed, has_levels: true, demand };
    let mut router = dvmrp::Router::new(settings);
    for (at, Port { v4, .. }) in (0..).zip(place.ports) {
        let link = dvmrp::Link::Lan(Prefix::of(*v4, NETWORK_BITS));
        let settings = InterfaceSettings { address: *v4, link, metric: 1 };
        let added = router.add_interface(now, InterfaceId(at), settings);
        added.map_err(|_| "a router has too many segments: take it out of some".to_owned())?;
    }
    Ok(router)
}

/// The family of a message between routers and hosts; nothing if the packet is none.
fn message(packet: &[u8]) -> Option<Family> {
    match packet.first()? >> 4 {
        4 if packet.get(9) == Some(&IGMP) => Some(Family::V4),
        6 if packet.get(6) == Some(&HOP_BY_HOP) => Some(Family::V6),
        _ => None,
    }
}

impl Node for Router {
    fn handle_packet(&mut self, now: Time, port: usize, packet: &Bytes) {
        if let Some(family) = message(packet) {
            self.handle_message(now, port, family, packet);
        } else if let Ok(head) = Head::parse(packet) {
            let wants = self.wants(now, port, head.pair());
            self.forwarding.forward(&head, packet, wants);
        } else {
            self.forwarding.dropped += 1;
        }
        self.settle(now);
    }

    fn handle_timeout(&mut self, now: Time) {
        self.queriers.iter_mut().flatten().for_each(|querier| querier.handle_timeout(now));
        if let Some(dvmrp) = &mut self.dvmrp {
            dvmrp.handle_timeout(now);
        }
        if let Some(above) = &mut self.above {
            above.hosts.iter_mut().for_each(|host| host.handle_timeout(now));
            above.demand.handle_timeout(now);
        }
        self.settle(now);
    }

    fn next_timeout(&self) -> Option<Time> {
        let queriers = self.queriers.iter().flatten().map(Querier::next_timeout);
        let dvmrp = self.dvmrp.as_ref().and_then(dvmrp::Router::next_timeout);
        let above = self.above.iter().flat_map(|above| {
            above.hosts.iter().filter_map(Host::next_timeout).chain(above.demand.next_timeout())
        });
        queriers.chain(dvmrp).chain(above).min()
    }

    fn poll_transmit(&mut self, _: Time) -> Option<(usize, Bytes)> {
        if let Some(copy) = self.forwarding.out.pop_front() {
            return Some(copy);
        }
        let port = self.write()?;
        self.messages += 1;
        self.message_bytes += self.buffer.len() as u64;
        Some((port, Bytes::copy_from_slice(&self.buffer)))
    }

    fn figures(&self, _: Time) -> Figures {
        let Forwarding { forwarded, left_out, dropped, .. } = self.forwarding;
        let mut figures = Figures::from([
            ("forwarded", forwarded as f64),
            ("left_out", left_out as f64),
            ("dropped", dropped as f64),
            ("messages", self.messages as f64),
            ("message_bytes", self.message_bytes as f64),
        ]);
        if let Some(dvmrp) = &self.dvmrp {
            let neighbours = dvmrp.neighbours().filter(|(_, neighbour)| neighbour.is_two_way()).count();
            figures.insert("neighbours", neighbours as f64);
            figures.insert("routes", dvmrp.routes().paths().count() as f64);
        }
        figures
    }
}
