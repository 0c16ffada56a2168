//! Traffic: where it begins, and where it sets out.

use std::collections::BTreeMap;

use bytes::Bytes;
use outflow_config::Weight;
use outflow_link::{ApplicationId, Medium};
use outflow_media::{Tag, Time};
use outflow_packet::Level;

use super::carriage::{Carriage, Carried};
use super::flows::Flow;
use super::{Event, Origin, World};
use crate::network::ledger::Ledger;
use crate::network::links::Travelling;
use crate::network::model::{Network, ReceiverModel, TrafficModel};
use crate::network::node::{Node, Outgoing};
use crate::network::outcome::TrafficOutcome;
use crate::network::parcel::Parcel;
use crate::network::rng::{Draws, generator};
use crate::network::traffic::{Emission, HEADERS};

impl World {
    pub(super) fn add_all_traffic(&mut self, network: &Network) {
        let places: BTreeMap<&str, usize> =
            network.links.keys().enumerate().map(|(at, name)| (name.as_str(), at)).collect();
        let way = |via: &[String]| via.iter().filter_map(|name| places.get(name.as_str()).copied()).collect();
        let applications = applications(network);
        for (at, traffic) in network.traffic.values().enumerate() {
            self.carriage.flows.ways.push(way(&traffic.via));
            self.carriage.flows.outcomes.push(TrafficOutcome::new());
            for member in 0..traffic.flows {
                self.add_traffic(network, traffic, applications[at], (at, member));
            }
        }
        for (at, receivers) in network.receivers.values().enumerate() {
            self.carriage.flows.ways.push(way(&receivers.via));
            self.carriage.flows.outcomes.push(TrafficOutcome::new());
            self.add_receivers(network, receivers, network.traffic.len() + at);
        }
    }

    fn add_traffic(
        &mut self,
        network: &Network,
        traffic: &TrafficModel,
        application: ApplicationId,
        (group, member): (usize, usize),
    ) {
        let mut rng = generator(network.seed, Draws::Start, group, member);
        let start = Time::ZERO + traffic.start_within.mul_f64(rng.f64());
        let sources = traffic.model.flows(start, generator(network.seed, Draws::Sends, group, member));
        let node = traffic.from.as_ref().and_then(|from| network.nodes.keys().position(|name| name == from));
        let relay = traffic.to.as_ref().and_then(|to| network.relays.get(to));
        for source in sources {
            if let Some(at) = source.due() {
                self.agenda.add(at, Event::Send(self.origins.len() as u32));
            }
            let to = relay.map(|relay| {
                let seed = network.seed.wrapping_add(self.relays.len() as u64);
                self.relays.push(Node::new(crate::source::Source::format(), relay.ring.as_usize(), seed));
                self.relays.len() as u32 - 1
            });
            let stream = (self.carriage.flows.flows.len(), traffic.weight);
            let place = (application, traffic.class, stream);
            // What becomes of packets that are given to a node is the node's.
            let origin = match node {
                Some(node) => Origin::At(node as u32, source),
                None => Origin::Source(source),
            };
            self.add_flow(network, origin, to, group, place);
        }
    }

    /// Receivers at relays, which take turns among the flows of their traffic.
    fn add_receivers(&mut self, network: &Network, receivers: &ReceiverModel, group: usize) {
        let traffic = network.traffic.keys().position(|name| *name == receivers.traffic);
        let flows = self.carriage.flows.flows.iter().enumerate();
        let flows = flows.filter(|(_, flow)| Some(flow.traffic) == traffic);
        let relays: Vec<(usize, u32)> = flows.filter_map(|(number, flow)| Some((number, flow.to?))).collect();
        let weight = network.traffic.get(&receivers.traffic).map(|traffic| traffic.weight);
        let level = Level::new(receivers.level).unwrap_or(Level::BEST);
        for (member, (stream, relay)) in relays.iter().cycle().take(receivers.count).enumerate() {
            let mut rng = generator(network.seed, Draws::Start, group, member);
            let joins = Time::ZERO + receivers.join_within.mul_f64(rng.f64());
            self.agenda.add(joins, Event::Join(self.origins.len() as u32));
            let stream = (*stream, weight.unwrap_or_default());
            let place = (ApplicationId::of(Medium::Video, 0), 0, stream);
            self.add_flow(network, Origin::Relay(*relay, level), None, group, place);
        }
    }

    fn add_flow(
        &mut self,
        network: &Network,
        origin: Origin,
        to: Option<u32>,
        traffic: usize,
        (application, class, (stream, weight)): (ApplicationId, u8, (usize, Weight)),
    ) {
        let flows = &mut self.carriage.flows;
        let way = &flows.ways[traffic];
        let first = flows.places.len();
        for at in way {
            let flow = self.links.add_flow(*at, application, class);
            flow.iter().for_each(|flow| self.links.set_stream(*at, *flow, stream, weight.get()));
            flows.places.push((*at, flow));
        }
        let ledger = Ledger::new(network.counting, flows.from);
        flows.flows.push(Flow { to, traffic, ledger, first, hops: way.len() });
        self.origins.push(origin);
    }

    /// Sends all of a flow that is due, of which there is something.
    pub(super) fn send(&mut self, number: u32) {
        loop {
            let (node, source) = match &mut self.origins[number as usize] {
                Origin::Source(source) => (None, source),
                Origin::At(node, source) => (Some(*node), source),
                Origin::Relay(..) => return,
            };
            let Some(emission) = source.next() else { return };
            let next = source.due();
            self.emit(number, node, emission);
            match next {
                Some(at) if at > self.now => return self.agenda.add(at, Event::Send(number)),
                Some(_) => {}
                None => return,
            }
        }
    }

    fn emit(&mut self, number: u32, node: Option<u32>, emission: Emission) {
        if let Some(node) = node {
            self.give(node, &emission);
            self.arrive();
        } else {
            let Emission { tag, bytes, payload } = emission;
            self.set_out(number, tag, bytes, payload);
        }
    }

    /// A packet of a flow sets out.
    fn set_out(&mut self, number: u32, tag: Tag, bytes: usize, payload: Option<Bytes>) {
        let (now, Carriage { flows, payloads, .. }) = (self.now, &mut self.carriage);
        let flow = &mut flows.flows[number as usize];
        // Nothing else looks into it.
        let payload = payload.filter(|_| flow.to.is_some()).map(|bytes| payloads.put(bytes));
        let item = Parcel { flow: number, hops: 0, number: flow.ledger.sent(), sent: now, payload };
        flows.events += 1;
        if now >= flows.from {
            flows.outcomes[flow.traffic].sent += 1;
        }
        let packet = Travelling { at: now, item: Carried::Traffic(item), tag, bytes };
        self.links.enter(now, packet, &mut self.agenda, &mut self.carriage);
        self.arrive();
    }

    pub(super) fn join(&mut self, number: u32) {
        let Origin::Relay(relay, level) = self.origins[number as usize] else { return };
        self.relays[relay as usize].join(self.now, number, level);
        self.ask(relay);
    }

    /// Sends what a relay wants to be sent.
    pub(super) fn ask(&mut self, number: u32) {
        let mut outgoing = core::mem::take(&mut self.outgoing);
        if let Some(at) = self.relays[number as usize].poll(self.now, &mut outgoing) {
            self.agenda.add(at, Event::Poll(number));
        }
        for Outgoing { flow, tag, payload } in outgoing.drain(..) {
            self.set_out(flow, tag, payload.len() + HEADERS, Some(payload));
        }
        self.outgoing = outgoing;
    }
}

/// The application of each traffic: what it says, or one for all of its medium.
fn applications(network: &Network) -> Vec<ApplicationId> {
    let mut known: Vec<(Medium, Option<&str>)> = Vec::new();
    let mut all = Vec::new();
    for traffic in network.traffic.values() {
        let one = (traffic.model.medium(), traffic.application.as_deref());
        if !known.contains(&one) {
            known.push(one);
        }
        let of_medium = known.iter().filter(|(medium, _)| *medium == one.0);
        let group = of_medium.take_while(|other| **other != one).count();
        all.push(ApplicationId::of(one.0, group as u32));
    }
    all
}
