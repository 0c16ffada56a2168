//! A run: events in virtual time, one after another.

use std::collections::BTreeMap;

use bytes::Bytes;
use outflow_link::{ApplicationId, Departed, FlowId, Medium, Next};
use outflow_media::{Tag, Time};
use outflow_packet::Level;

use super::hop::{Hop, Parcel, Travelling};
use super::impair::{Channel, Outcome};
use super::ledger::Ledger;
use super::model::{LinkModel, Network, NetworkError, ReceiverModel, TrafficModel};
use super::node::{Node, Outgoing};
use super::outcome::{NetworkOutcome, TrafficOutcome};
use super::rng::{Draws, generator};
use super::traffic::{Emission, HEADERS, Source};
use crate::agenda::Agenda;
use crate::outcome::Digest;

#[derive(Debug, Clone, Copy)]
enum Event {
    /// A flow sends what is due.
    Send(u32),
    /// A link can take the next packet.
    Free(u32),
    /// What travels first behind a link arrives.
    Arrive(u32),
    /// A packet that is late arrives.
    Late(u32),
    /// A receiver joins at a relay, and is sent this flow.
    Join(u32),
    /// A relay wants to be asked.
    Poll(u32),
}

struct Flow {
    /// The relay at its end.
    to: Option<u32>,
    /// What it is counted with: traffic, or receivers.
    traffic: usize,
    ledger: Ledger,
    /// Where its numbers stand, and how many links it goes through.
    first_id: usize,
    hops: usize,
}

/// Where a flow's packets come from. Apart from what is counted of them, so that all fit into a cache.
enum Origin {
    Source(Box<dyn Source>),
    /// A relay, at this level.
    Relay(u32, Level),
}

struct World {
    now: Time,
    from: Time,
    agenda: Agenda<Event>,
    hops: Vec<Hop>,
    flows: Vec<Flow>,
    /// By flow.
    origins: Vec<Origin>,
    /// Of all flows: the number at each link of its way, if that has a buffer.
    ids: Vec<Option<FlowId>>,
    nodes: Vec<Node>,
    outgoing: Vec<Outgoing>,
    /// By traffic, then receivers: the links of its way.
    ways: Vec<Vec<usize>>,
    outcomes: Vec<TrafficOutcome>,
    late: slab::Slab<Travelling>,
    events: u64,
    digest: Digest,
}

/// Runs a network with its seed.
///
/// # Errors
/// It is none (see [`Network::parse`]).
pub fn play(network: &Network) -> Result<NetworkOutcome, NetworkError> {
    let mut world = World::new(network)?;
    world.run(Time::ZERO + network.duration);
    Ok(world.close(network.traffic.keys().chain(network.receivers.keys())))
}

/// The same, and the packets of each flow that are still on their way.
#[cfg(test)]
pub(super) fn played_to_the_end(network: &Network) -> (NetworkOutcome, Vec<usize>) {
    let mut world = World::new(network).expect("it is valid");
    world.run(Time::ZERO + network.duration);
    let open = world.flows.iter().map(|flow| flow.ledger.open()).collect();
    (world.close(network.traffic.keys().chain(network.receivers.keys())), open)
}

impl World {
    fn new(network: &Network) -> Result<Self, NetworkError> {
        let mut world = World {
            now: Time::ZERO,
            from: Time::ZERO + network.warm_up,
            agenda: Agenda::new(),
            hops: Vec::new(),
            flows: Vec::new(),
            origins: Vec::new(),
            ids: Vec::new(),
            nodes: Vec::new(),
            outgoing: Vec::new(),
            ways: Vec::new(),
            outcomes: Vec::new(),
            late: slab::Slab::new(),
            events: 0,
            digest: Digest::default(),
        };
        for (at, (name, model)) in network.links.iter().enumerate() {
            world.hops.push(hop(network.seed, at, name, model)?);
        }
        let places: BTreeMap<&str, usize> =
            network.links.keys().enumerate().map(|(at, name)| (name.as_str(), at)).collect();
        let way = |via: &[String]| via.iter().filter_map(|name| places.get(name.as_str()).copied()).collect();
        let applications = applications(network);
        for (at, traffic) in network.traffic.values().enumerate() {
            world.ways.push(way(&traffic.via));
            world.outcomes.push(TrafficOutcome::new());
            for member in 0..traffic.flows {
                world.add_traffic(network, traffic, applications[at], (at, member));
            }
        }
        for (at, receivers) in network.receivers.values().enumerate() {
            world.ways.push(way(&receivers.via));
            world.outcomes.push(TrafficOutcome::new());
            world.add_receivers(network, receivers, network.traffic.len() + at);
        }
        Ok(world)
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
        let relay = traffic.to.as_ref().and_then(|to| network.relays.get(to));
        for source in sources {
            let to = relay.map(|relay| {
                let seed = network.seed.wrapping_add(self.nodes.len() as u64);
                self.nodes.push(Node::new(crate::source::Source::format(), relay.ring.as_usize(), seed));
                self.nodes.len() as u32 - 1
            });
            if let Some(at) = source.due() {
                self.agenda.add(at, Event::Send(self.flows.len() as u32));
            }
            self.add_flow(network, Origin::Source(source), to, group, (application, traffic.class));
        }
    }

    /// Receivers at relays, which take turns among the flows of their traffic.
    fn add_receivers(&mut self, network: &Network, receivers: &ReceiverModel, group: usize) {
        let traffic = network.traffic.keys().position(|name| *name == receivers.traffic);
        let nodes: Vec<u32> = self
            .flows
            .iter()
            .filter(|flow| Some(flow.traffic) == traffic)
            .filter_map(|flow| flow.to)
            .collect();
        let level = Level::new(receivers.level).unwrap_or(Level::BEST);
        for (member, node) in nodes.iter().cycle().take(receivers.count).enumerate() {
            let mut rng = generator(network.seed, Draws::Start, group, member);
            let joins = Time::ZERO + receivers.join_within.mul_f64(rng.f64());
            self.agenda.add(joins, Event::Join(self.flows.len() as u32));
            let application = (ApplicationId::of(Medium::Video, 0), 0);
            self.add_flow(network, Origin::Relay(*node, level), None, group, application);
        }
    }

    fn add_flow(
        &mut self,
        network: &Network,
        origin: Origin,
        to: Option<u32>,
        traffic: usize,
        (application, class): (ApplicationId, u8),
    ) {
        let (hops, way) = (&mut self.hops, &self.ways[traffic]);
        let first_id = self.ids.len();
        self.ids.extend(way.iter().map(|at| hops[*at].add_flow(application, class)));
        let ledger = Ledger::new(network.counting, self.from);
        self.flows.push(Flow { to, traffic, ledger, first_id, hops: way.len() });
        self.origins.push(origin);
    }

    fn run(&mut self, end: Time) {
        while let Some((at, event)) = self.agenda.take().filter(|(at, _)| *at < end) {
            self.now = at;
            match event {
                Event::Send(flow) => self.send(flow),
                Event::Free(hop) => {
                    self.hops[hop as usize].is_awaited = false;
                    self.serve(hop as usize);
                }
                Event::Arrive(hop) => self.arrive(hop as usize),
                Event::Join(flow) => self.join(flow),
                Event::Poll(node) => self.ask(node),
                Event::Late(slot) => {
                    let Travelling { at, parcel, tag, bytes } = self.late.remove(slot as usize);
                    self.enter(parcel, tag, bytes, at);
                }
            }
        }
    }

    /// Sends all of a flow that is due.
    fn send(&mut self, number: u32) {
        let now = self.now;
        loop {
            let Origin::Source(source) = &mut self.origins[number as usize] else { return };
            match source.due() {
                Some(at) if at > now => return self.agenda.add(at, Event::Send(number)),
                Some(_) => {
                    let Some(Emission { tag, bytes, payload }) = source.next() else { return };
                    self.set_out(number, tag, bytes, payload);
                }
                None => return,
            }
        }
    }

    /// A packet of a flow sets out.
    fn set_out(&mut self, number: u32, tag: Tag, bytes: usize, payload: Option<Bytes>) {
        let now = self.now;
        let flow = &mut self.flows[number as usize];
        let parcel = Parcel { flow: number, hops: 0, number: flow.ledger.sent(), sent: now, payload };
        self.events += 1;
        if now >= self.from {
            self.outcomes[flow.traffic].sent += 1;
        }
        self.enter(parcel, tag, bytes, now);
    }

    fn join(&mut self, number: u32) {
        let Origin::Relay(node, level) = self.origins[number as usize] else { return };
        self.nodes[node as usize].join(self.now, number, level);
        self.ask(node);
    }

    /// Sends what a relay wants to be sent.
    fn ask(&mut self, number: u32) {
        let mut outgoing = core::mem::take(&mut self.outgoing);
        if let Some(at) = self.nodes[number as usize].poll(self.now, &mut outgoing) {
            self.agenda.add(at, Event::Poll(number));
        }
        for Outgoing { flow, tag, payload } in outgoing.drain(..) {
            self.set_out(flow, tag, payload.len() + HEADERS, Some(payload));
        }
        self.outgoing = outgoing;
    }

    /// A packet comes to the next link on its way, or to its end.
    fn enter(&mut self, parcel: Parcel, tag: Tag, bytes: usize, at: Time) {
        let flow = &mut self.flows[parcel.flow as usize];
        let Some(&place) = self.ways[flow.traffic].get(usize::from(parcel.hops)) else {
            return self.deliver(Travelling { at, parcel, tag, bytes });
        };
        let id = self.ids[flow.first_id + usize::from(parcel.hops)];
        let hop = &mut self.hops[place];
        match (&mut hop.link, id) {
            (Some(link), Some(id)) => {
                link.offer(at, id, tag, bytes, parcel);
                for dropped in link.dropped() {
                    let (parcel, packet) = (dropped.item, dropped.packet);
                    let flow = &mut self.flows[parcel.flow as usize];
                    flow.ledger.settle(parcel.fate(packet.tag, packet.bytes), false);
                    self.events += 1;
                    if parcel.sent >= self.from {
                        self.outcomes[flow.traffic].drops.add(dropped.reason, 1);
                    }
                }
                if !hop.is_awaited {
                    self.serve(place);
                }
            }
            _ => self.travel(place, Travelling { at, parcel, tag, bytes }),
        }
    }

    /// A link sends what it can.
    fn serve(&mut self, place: usize) {
        loop {
            let Some(link) = &mut self.hops[place].link else { return };
            match link.depart(self.now) {
                Next::Departs(Departed { packet, item, until }) => {
                    self.events += 1;
                    let travelling =
                        Travelling { at: until, parcel: item, tag: packet.tag, bytes: packet.bytes };
                    self.travel(place, travelling);
                }
                Next::Later(at) => {
                    self.hops[place].is_awaited = true;
                    return self.agenda.add(at, Event::Free(place as u32));
                }
                Next::Nothing => return,
            }
        }
    }

    /// A packet has left a link, and travels behind it.
    fn travel(&mut self, place: usize, mut travelling: Travelling) {
        let hop = &mut self.hops[place];
        travelling.at = travelling.at + hop.delay;
        travelling.parcel.hops += 1;
        let Some(channel) = &mut hop.channel else { return self.follow(place, travelling) };
        match channel.pass() {
            Outcome::Lost => {
                let (fate, parcel) = (travelling.fate(), travelling.parcel);
                let flow = &mut self.flows[parcel.flow as usize];
                flow.ledger.settle(fate, false);
                if parcel.sent >= self.from {
                    self.outcomes[flow.traffic].lost += 1;
                }
            }
            Outcome::Arrives { late_by, twice } => {
                if twice {
                    self.flows[travelling.parcel.flow as usize].ledger.copied(travelling.fate());
                    self.follow(place, travelling.clone());
                }
                if late_by.is_zero() {
                    self.follow(place, travelling);
                } else {
                    travelling.at = travelling.at + late_by;
                    let at = travelling.at;
                    let slot = self.late.insert(travelling);
                    self.agenda.add(at, Event::Late(slot as u32));
                }
            }
        }
    }

    /// It arrives behind those that left before it.
    fn follow(&mut self, place: usize, travelling: Travelling) {
        let flow = &self.flows[travelling.parcel.flow as usize];
        // Nothing behind the last link depends on when it is told.
        if flow.to.is_none() && usize::from(travelling.parcel.hops) == flow.hops {
            return self.deliver(travelling);
        }
        let queue = &mut self.hops[place].travelling;
        if queue.is_empty() {
            self.agenda.add(travelling.at, Event::Arrive(place as u32));
        }
        queue.push_back(travelling);
    }

    fn arrive(&mut self, place: usize) {
        let queue = &mut self.hops[place].travelling;
        let Some(Travelling { at, parcel, tag, bytes }) = queue.pop_front() else { return };
        if let Some(next) = queue.front() {
            self.agenda.add(next.at, Event::Arrive(place as u32));
        }
        self.enter(parcel, tag, bytes, at);
    }

    /// A packet is where it was to go.
    fn deliver(&mut self, travelling: Travelling) {
        let (fate, at, parcel) = (travelling.fate(), travelling.at, travelling.parcel);
        let flow = &mut self.flows[parcel.flow as usize];
        let is_new = flow.ledger.settle(fate, true);
        self.events += 1;
        self.digest.word(u64::from(parcel.flow));
        self.digest.word(parcel.number);
        self.digest.word(at.as_nanos());
        if is_new && parcel.sent >= self.from {
            let outcome = &mut self.outcomes[flow.traffic];
            outcome.arrived += 1;
            outcome.delays.add(at.since(parcel.sent));
        }
        if let (Some(node), Some(payload)) = (flow.to, parcel.payload) {
            self.nodes[node as usize].receive(at, payload);
            self.ask(node);
        }
    }

    fn close<'n>(mut self, names: impl Iterator<Item = &'n String>) -> NetworkOutcome {
        for flow in self.flows {
            self.outcomes[flow.traffic].flows.push(flow.ledger.outcome());
        }
        NetworkOutcome {
            traffic: names.cloned().zip(self.outcomes).collect(),
            packet_events: self.events,
            digest: self.digest,
        }
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

fn hop(seed: u64, at: usize, name: &str, model: &LinkModel) -> Result<Hop, NetworkError> {
    let link = model.link();
    let link =
        link.map_err(|must| NetworkError::Value { key: format!("links.{name}"), must: must.to_owned() })?;
    Ok(Hop {
        link,
        delay: model.delay,
        channel: Channel::new(model.impairments, generator(seed, Draws::Impairs, at, 0)),
        is_awaited: false,
        travelling: std::collections::VecDeque::new(),
    })
}
