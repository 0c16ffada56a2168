//! A network with what goes through it: events, one after another.

mod carriage;
mod flows;
mod packets;
mod traffic;

use std::collections::BTreeMap;

use bytes::Bytes;
use outflow_media::Time;
use outflow_packet::Level;
use outflow_rtp::sdp::MediaDescription;
use slab::Slab;

use super::links::{LinkEvent, Links};
use super::model::{LinkModel, Network, NetworkError};
use super::node::{Node, Outgoing};
use super::outcome::NetworkOutcome;
use super::packets::{Arrived, LinkReport, Lost, Packets, Report, TrafficReport};
use super::parcel::Payloads;
use super::traffic::Source;
use super::wiring::{PortPlace, Wiring};
use crate::agenda::Agenda;
use carriage::{Carriage, Carried};
use flows::Flows;
use packets::Machine;
pub(super) use packets::machines;

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
    /// A node has something to do.
    Wake(u32),
    /// A link is another one.
    Change(u32),
}

impl From<LinkEvent> for Event {
    fn from(event: LinkEvent) -> Self {
        Event::Link(event)
    }
}

/// Where a flow's packets come from. Apart from what is counted of them, so that all fit into a cache.
enum Origin {
    /// A source, whose packets go through links.
    Source(Box<dyn Source>),
    /// A source at this node.
    At(u32, Box<dyn Source>),
    /// A relay, at this level.
    Relay(u32, Level),
}

/// A network with its traffic, its nodes and its packets. What ends send is given to it, and time; it has no clock.
///
/// ```
/// # use outflow_media::Time;
/// # use outflow_sim::network::{Network, World};
/// let network = Network::parse(r#"
///     seed = 1
///     duration = "1 s"
///     [links.there]
///     rate = "8 Mbit/s"
///     buffer = "100 kB"
///     delay = "5 ms"
///     [ends.home]
///     [ends.studio]
///     [[paths]]
///     from = "home"
///     to = "studio"
///     via = ["there"]
/// "#)?;
/// let mut world = World::new(&network, &[], 0)?;
/// # let mut packet = Vec::new();
/// # etherparse::PacketBuilder::ipv4([10, 213, 0, 1], [10, 213, 0, 2], 9).udp(1, 2).write(&mut packet, &[7; 972])?;
/// world.handle(Time::ZERO, 0, packet.into());
/// while let Some(at) = world.next_at() {
///     // A driver waits until then.
///     world.advance(at);
/// }
/// let arrived: Vec<_> = world.arrived().collect();
/// assert_eq!((arrived[0].port, arrived[0].at), (1, Time::from_millis(6)));
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
pub struct World {
    now: Time,
    agenda: Agenda<Event>,
    links: Links<Carried>,
    /// What links become: their numbers, and how they are then.
    changes: Slab<(usize, LinkModel)>,
    seed: u64,
    carriage: Carriage,
    /// By flow of traffic.
    origins: Vec<Origin>,
    relays: Vec<Node>,
    outgoing: Vec<Outgoing>,
    machines: Vec<Machine>,
    described: Vec<MediaDescription>,
    names: Names,
}

/// What things are called, in the order of their numbers.
struct Names {
    links: Vec<String>,
    /// Traffic, then receivers; and whether it goes through links.
    traffic: Vec<(String, bool)>,
    nodes: Vec<String>,
}

/// Runs a network with its seed. Ends send nothing.
///
/// # Errors
/// It is none (see [`Network::parse`]).
pub fn play(network: &Network) -> Result<NetworkOutcome, NetworkError> {
    let mut world = World::new(network, &[], 0)?;
    world.run(Time::ZERO + network.duration);
    Ok(world.close())
}

/// The same, and the packets of each flow that are still on their way.
#[cfg(test)]
pub(super) fn played_to_the_end(network: &Network) -> (NetworkOutcome, Vec<usize>) {
    let mut world = World::new(network, &[], 0).expect("it is valid");
    world.run(Time::ZERO + network.duration);
    let open = world.carriage.flows.open();
    (world.close(), open)
}

impl World {
    /// One in which nothing travels yet. Session descriptions say what media of ends may be; addresses of ends on
    /// paths are those of the emulated network of this number (see [`World::ports`]).
    ///
    /// # Errors
    /// The network is none.
    pub fn new(network: &Network, described: &[MediaDescription], number: u8) -> Result<Self, NetworkError> {
        let wiring = Wiring::new(network, number)?;
        let machines = machines(network, &wiring)?;
        let traffic = network.traffic.iter().map(|(name, traffic)| (name, traffic.from.is_none()));
        let all_traffic = traffic.chain(network.receivers.keys().map(|name| (name, true)));
        let mut world = World {
            now: Time::ZERO,
            agenda: Agenda::new(),
            links: Links::default(),
            changes: Slab::new(),
            seed: network.seed,
            carriage: Carriage {
                flows: Flows::new(Time::ZERO + network.warm_up),
                packets: Packets::new(wiring),
                payloads: Payloads::default(),
                reports: vec![LinkReport::default(); network.links.len()],
            },
            origins: Vec::new(),
            relays: Vec::new(),
            outgoing: Vec::new(),
            machines,
            described: described.to_vec(),
            names: Names {
                links: network.links.keys().cloned().collect(),
                traffic: all_traffic.map(|(name, is_ours)| (name.clone(), is_ours)).collect(),
                nodes: network.nodes.keys().cloned().collect(),
            },
        };
        for (name, model) in &network.links {
            let wrong =
                |must: &str| NetworkError::Value { key: format!("links.{name}"), must: must.to_owned() };
            world.links.add(network.seed, model).map_err(wrong)?;
        }
        world.add_all_traffic(network);
        world.start_nodes();
        Ok(world)
    }

    /// Where ends and nodes send packets and get them. The ports of ends that paths join come first.
    pub fn ports(&self) -> &[PortPlace] {
        &self.carriage.packets.wiring.ports
    }

    /// A packet is sent at a port of an end: one of IP, whole. One to a group goes to all ends that a path leads to.
    pub fn handle(&mut self, now: Time, port: usize, packet: Bytes) {
        self.advance(now);
        self.now = now;
        self.send_packet(port, packet);
        self.arrive();
    }

    /// When the next thing happens.
    pub fn next_at(&mut self) -> Option<Time> {
        self.agenda.next_at()
    }

    /// It is `now`: all that was to happen until now happens, each thing at its time.
    pub fn advance(&mut self, now: Time) {
        while let Some((at, event)) = self.agenda.take_until(now) {
            self.happen(at, event);
        }
    }

    /// All happens that is to happen before the end.
    fn run(&mut self, end: Time) {
        while let Some((at, event)) = self.agenda.take().filter(|(at, _)| *at < end) {
            self.happen(at, event);
        }
        self.now = end;
    }

    fn happen(&mut self, at: Time, event: Event) {
        self.now = at;
        match event {
            Event::Send(flow) => self.send(flow),
            Event::Link(event) => {
                self.links.handle(at, event, &mut self.agenda, &mut self.carriage);
                self.arrive();
            }
            Event::Join(flow) => self.join(flow),
            Event::Poll(relay) => self.ask(relay),
            Event::Wake(node) => self.wake(node),
            Event::Change(change) => {
                let (link, model) = self.changes.remove(change as usize);
                self.links.change(at, link, self.seed, &model, &mut self.carriage);
            }
        }
    }

    /// What has come to relays and to the ends of ways goes on.
    fn arrive(&mut self) {
        while self.carriage.has_come() {
            if let Some((relay, at, payload)) = self.carriage.flows.arrived.pop_front() {
                self.relays[relay as usize].receive(at, payload);
                self.ask(relay);
            } else if let Some((way, packet)) = self.carriage.packets.came.pop_front() {
                self.go_on(way, packet);
            }
        }
    }

    /// Packets of IP that are on their way: those that wait at links, and that travel behind them.
    pub fn held(&self) -> usize {
        self.carriage.packets.held
    }

    /// What has come to ends since the last time.
    pub fn arrived(&mut self) -> impl Iterator<Item = Arrived> + '_ {
        self.carriage.packets.arrived.drain(..)
    }

    /// A link is another one from a moment on, or from now on if that is over. What waits at it goes on waiting; it
    /// keeps its delay, and whether it has a rate. Impairments that are others begin then, with what the seed brings.
    ///
    /// # Errors
    /// There is no such link, or it cannot become that.
    pub fn change(&mut self, at: Time, link: &str, model: &LinkModel) -> Result<(), NetworkError> {
        let wrong = |must: &str| NetworkError::Value { key: format!("links.{link}"), must: must.to_owned() };
        let place = self.names.links.iter().position(|name| name == link);
        let place = place.ok_or_else(|| wrong("there is no such link"))?;
        self.links.may_become(place, model).map_err(wrong)?;
        let change = self.changes.insert((place, model.clone()));
        self.agenda.add(at.max(self.now), Event::Change(change as u32));
        Ok(())
    }

    /// Keeps packets of IP that are lost behind links from now on, until they are asked for; no more than this many at
    /// a time. All are counted.
    pub fn keep_lost(&mut self, most: usize) {
        self.carriage.packets.keeps = most;
    }

    /// Packets of IP that were lost behind links since the last time, if they are kept.
    pub fn lost(&mut self) -> impl Iterator<Item = Lost> + '_ {
        self.carriage.packets.lost.drain(..)
    }

    /// An end has taken a packet, so much later than it should have, or has not.
    pub fn tell(&mut self, behind: Option<core::time::Duration>) {
        let report = &mut self.carriage.packets.report;
        match behind {
            Some(behind) => report.behind.add(behind),
            None => report.refused += 1,
        }
    }

    /// What came of it so far.
    pub fn report(&self) -> Report {
        let links = self.names.links.iter().cloned().zip(self.carriage.reports.iter().cloned());
        let figures = self.machines.iter().map(|machine| machine.figures(self.now));
        let traffic = self.names.traffic.iter().zip(self.carriage.flows.outcomes_so_far());
        let traffic = traffic.filter(|((_, is_ours), _)| *is_ours).map(|((name, _), outcome)| {
            let (sent, arrived, goodput) = (outcome.sent, outcome.arrived, outcome.goodput());
            (name.clone(), TrafficReport { sent, arrived, goodput })
        });
        Report {
            links: links.collect(),
            nodes: self.names.nodes.iter().cloned().zip(figures).collect(),
            traffic: traffic.collect(),
            ..self.carriage.packets.report()
        }
    }

    fn close(self) -> NetworkOutcome {
        let figures = self.machines.iter().map(|machine| machine.figures(self.now));
        let nodes: BTreeMap<_, _> = self.names.nodes.iter().cloned().zip(figures).collect();
        let links = self.names.links.into_iter().zip(self.carriage.reports).collect();
        let (outcomes, packet_events, digest) = self.carriage.flows.close();
        let traffic = self.names.traffic.into_iter().zip(outcomes).filter(|((_, is_ours), _)| *is_ours);
        let traffic = traffic.map(|((name, _), outcome)| (name, outcome)).collect();
        NetworkOutcome { traffic, nodes, links, packet_events, digest }
    }
}
