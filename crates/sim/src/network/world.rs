//! A run: events in virtual time, one after another.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use outflow_config::Weight;
use outflow_link::{ApplicationId, Dropped, FlowId, Medium};
use outflow_media::{Tag, Time};
use outflow_packet::Level;

use super::ledger::Ledger;
use super::links::{Carrier, LinkEvent, Links, Travelling};
use super::model::{Network, NetworkError, ReceiverModel, TrafficModel};
use super::node::{Node, Outgoing};
use super::outcome::{NetworkOutcome, TrafficOutcome};
use super::parcel::{Parcel, fate};
use super::rng::{Draws, generator};
use super::traffic::{Emission, HEADERS, Source};
use crate::agenda::Agenda;
use crate::outcome::Digest;

#[derive(Debug, Clone, Copy)]
enum Event {
    /// A flow sends what is due.
    Send(u32),
    /// Something happens at a link.
    Link(LinkEvent),
    /// A receiver joins at a relay, and is sent this flow.
    Join(u32),
    /// A relay wants to be asked.
    Poll(u32),
}

impl From<LinkEvent> for Event {
    fn from(event: LinkEvent) -> Self {
        Event::Link(event)
    }
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
    agenda: Agenda<Event>,
    links: Links<Parcel>,
    ways: Ways,
    /// By flow.
    origins: Vec<Origin>,
    nodes: Vec<Node>,
    outgoing: Vec<Outgoing>,
}

/// Flows, the ways that they go, and what has become of their packets.
struct Ways {
    from: Time,
    flows: Vec<Flow>,
    /// Of all flows: the number at each link of its way, if that has a buffer.
    ids: Vec<Option<FlowId>>,
    /// By traffic, then receivers: the links of its way.
    ways: Vec<Vec<usize>>,
    outcomes: Vec<TrafficOutcome>,
    /// What has come to relays, and when.
    arrived: VecDeque<(u32, Time, Bytes)>,
    events: u64,
    digest: Digest,
}

impl Ways {
    /// A packet goes no further.
    fn missing(&mut self, packet: &Travelling<Parcel>) -> &mut Flow {
        let flow = &mut self.flows[packet.item.flow as usize];
        flow.ledger.settle(fate(packet), false);
        flow
    }
}

impl Carrier for Ways {
    type Item = Parcel;

    fn next(&self, parcel: &Parcel) -> Option<(usize, Option<FlowId>)> {
        let flow = &self.flows[parcel.flow as usize];
        let hop = usize::from(parcel.hops);
        Some((*self.ways[flow.traffic].get(hop)?, self.ids[flow.first_id + hop]))
    }

    fn is_final(&self, parcel: &Parcel) -> bool {
        let flow = &self.flows[parcel.flow as usize];
        flow.to.is_none() && usize::from(parcel.hops) == flow.hops
    }

    fn departed(&mut self) {
        self.events += 1;
    }

    fn passed(&mut self, parcel: &mut Parcel) {
        parcel.hops += 1;
    }

    fn dropped(&mut self, _: usize, Dropped { packet, item, reason }: Dropped<Parcel>) {
        self.events += 1;
        let counts = item.sent >= self.from;
        let packet = Travelling { at: packet.arrived, item, tag: packet.tag, bytes: packet.bytes };
        let traffic = self.missing(&packet).traffic;
        if counts {
            self.outcomes[traffic].drops.add(reason, 1);
        }
    }

    fn lost(&mut self, _: usize, packet: Travelling<Parcel>) {
        let traffic = self.missing(&packet).traffic;
        if packet.item.sent >= self.from {
            self.outcomes[traffic].lost += 1;
        }
    }

    fn copied(&mut self, _: usize, packet: &Travelling<Parcel>) {
        self.flows[packet.item.flow as usize].ledger.copied(fate(packet));
    }

    fn delivered(&mut self, packet: Travelling<Parcel>) {
        let (fate, at, parcel) = (fate(&packet), packet.at, packet.item);
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
            self.arrived.push_back((node, at, payload));
        }
    }
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
    let open = world.ways.flows.iter().map(|flow| flow.ledger.open()).collect();
    (world.close(network.traffic.keys().chain(network.receivers.keys())), open)
}

impl World {
    fn new(network: &Network) -> Result<Self, NetworkError> {
        let mut world = World {
            now: Time::ZERO,
            agenda: Agenda::new(),
            links: Links::default(),
            ways: Ways {
                from: Time::ZERO + network.warm_up,
                flows: Vec::new(),
                ids: Vec::new(),
                ways: Vec::new(),
                outcomes: Vec::new(),
                arrived: VecDeque::new(),
                events: 0,
                digest: Digest::default(),
            },
            origins: Vec::new(),
            nodes: Vec::new(),
            outgoing: Vec::new(),
        };
        for (name, model) in &network.links {
            let wrong =
                |must: &str| NetworkError::Value { key: format!("links.{name}"), must: must.to_owned() };
            world.links.add(network.seed, model).map_err(wrong)?;
        }
        let places: BTreeMap<&str, usize> =
            network.links.keys().enumerate().map(|(at, name)| (name.as_str(), at)).collect();
        let way = |via: &[String]| via.iter().filter_map(|name| places.get(name.as_str()).copied()).collect();
        let applications = applications(network);
        for (at, traffic) in network.traffic.values().enumerate() {
            world.ways.ways.push(way(&traffic.via));
            world.ways.outcomes.push(TrafficOutcome::new());
            for member in 0..traffic.flows {
                world.add_traffic(network, traffic, applications[at], (at, member));
            }
        }
        for (at, receivers) in network.receivers.values().enumerate() {
            world.ways.ways.push(way(&receivers.via));
            world.ways.outcomes.push(TrafficOutcome::new());
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
                self.agenda.add(at, Event::Send(self.ways.flows.len() as u32));
            }
            let stream = (self.ways.flows.len(), traffic.weight);
            let place = (application, traffic.class, stream);
            self.add_flow(network, Origin::Source(source), to, group, place);
        }
    }

    /// Receivers at relays, which take turns among the flows of their traffic.
    fn add_receivers(&mut self, network: &Network, receivers: &ReceiverModel, group: usize) {
        let traffic = network.traffic.keys().position(|name| *name == receivers.traffic);
        let flows = self.ways.flows.iter().enumerate();
        let flows = flows.filter(|(_, flow)| Some(flow.traffic) == traffic);
        let nodes: Vec<(usize, u32)> = flows.filter_map(|(number, flow)| Some((number, flow.to?))).collect();
        let weight = network.traffic.get(&receivers.traffic).map(|traffic| traffic.weight);
        let level = Level::new(receivers.level).unwrap_or(Level::BEST);
        for (member, (stream, node)) in nodes.iter().cycle().take(receivers.count).enumerate() {
            let mut rng = generator(network.seed, Draws::Start, group, member);
            let joins = Time::ZERO + receivers.join_within.mul_f64(rng.f64());
            self.agenda.add(joins, Event::Join(self.ways.flows.len() as u32));
            let stream = (*stream, weight.unwrap_or_default());
            let place = (ApplicationId::of(Medium::Video, 0), 0, stream);
            self.add_flow(network, Origin::Relay(*node, level), None, group, place);
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
        let ways = &mut self.ways;
        let way = &ways.ways[traffic];
        let first_id = ways.ids.len();
        for at in way {
            let flow = self.links.add_flow(*at, application, class);
            flow.iter().for_each(|flow| self.links.set_stream(*at, *flow, stream, weight.get()));
            ways.ids.push(flow);
        }
        let ledger = Ledger::new(network.counting, ways.from);
        ways.flows.push(Flow { to, traffic, ledger, first_id, hops: way.len() });
        self.origins.push(origin);
    }

    fn run(&mut self, end: Time) {
        while let Some((at, event)) = self.agenda.take().filter(|(at, _)| *at < end) {
            self.now = at;
            match event {
                Event::Send(flow) => self.send(flow),
                Event::Link(event) => {
                    self.links.handle(at, event, &mut self.agenda, &mut self.ways);
                    self.arrive();
                }
                Event::Join(flow) => self.join(flow),
                Event::Poll(node) => self.ask(node),
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
        let (now, ways) = (self.now, &mut self.ways);
        let flow = &mut ways.flows[number as usize];
        let item = Parcel { flow: number, hops: 0, number: flow.ledger.sent(), sent: now, payload };
        ways.events += 1;
        if now >= ways.from {
            ways.outcomes[flow.traffic].sent += 1;
        }
        self.links.enter(now, Travelling { at: now, item, tag, bytes }, &mut self.agenda, ways);
        self.arrive();
    }

    /// What has come to relays is theirs.
    fn arrive(&mut self) {
        while let Some((node, at, payload)) = self.ways.arrived.pop_front() {
            self.nodes[node as usize].receive(at, payload);
            self.ask(node);
        }
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

    fn close<'n>(self, names: impl Iterator<Item = &'n String>) -> NetworkOutcome {
        let Ways { flows, mut outcomes, events, digest, .. } = self.ways;
        for flow in flows {
            outcomes[flow.traffic].flows.push(flow.ledger.outcome());
        }
        NetworkOutcome { traffic: names.cloned().zip(outcomes).collect(), packet_events: events, digest }
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
