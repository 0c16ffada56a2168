//! Packets on the paths of a network.

use core::time::Duration;
use std::net::IpAddr;

use bytes::Bytes;
use outflow_link::{Dropped, FlowId};
use outflow_media::Time;
use outflow_sim::network::{Agenda, Carrier, LinkEvent, Links, NetworkError, Travelling, Way};

use crate::flows::Flows;
use crate::key::look;
use crate::limits::HELD_MAX;
use crate::network::Network;
use crate::report::{LinkReport, Report};

/// A packet that is at an end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrived {
    /// The end's place in the network.
    pub end: usize,
    /// When it should be there.
    pub at: Time,
    /// All of it.
    pub packet: Bytes,
}

/// A packet on its way.
#[derive(Debug, Clone)]
struct Parcel {
    packet: Bytes,
    path: u16,
    /// How many links it has behind it.
    hops: u16,
    flow: u32,
}

/// A network with its packets. What comes in is given to it, and time; it has no clock.
///
/// ```
/// # use outflow_emulate::{Emulation, link, Network};
/// # use outflow_media::Time;
/// let network = Network::between(["home", "studio"], link("8 Mbit/s, 5 ms")?, link("0 ms")?, 1);
/// let ends = [vec!["10.0.0.1".parse()?], vec!["10.0.0.2".parse()?]];
/// let mut emulation = Emulation::new(&network, &ends)?;
/// # let mut packet = Vec::new();
/// # etherparse::PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 9).udp(1, 2).write(&mut packet, &[7; 972])?;
/// emulation.handle(Time::ZERO, 0, packet.into());
/// while let Some(at) = emulation.next_at() {
///     // A driver waits until then.
///     emulation.advance(at);
/// }
/// let arrived: Vec<_> = emulation.arrived().collect();
/// assert_eq!((arrived[0].end, arrived[0].at), (1, Time::from_millis(6)));
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Emulation {
    links: Links<Parcel>,
    agenda: Agenda<LinkEvent>,
    paths: Paths,
    network: Network,
    /// By end: those that are reached there.
    addresses: Vec<Vec<IpAddr>>,
    /// By end: one path leads from there, so that all goes there.
    only: Vec<bool>,
}

/// Paths, and what becomes of packets there.
#[derive(Debug)]
struct Paths {
    ways: Vec<Way>,
    flows: Flows,
    arrived: Vec<Arrived>,
    /// Packets on their way.
    held: usize,
    reports: Vec<LinkReport>,
    report: Report,
}

impl Paths {
    fn gone(&mut self, parcel: &Parcel) {
        self.held -= 1;
        self.flows.count(parcel.flow, false);
    }
}

impl Carrier for Paths {
    type Item = Parcel;

    fn next(&self, parcel: &Parcel) -> Option<(usize, Option<FlowId>)> {
        let hop = usize::from(parcel.hops);
        let link = *self.ways[usize::from(parcel.path)].links.get(hop)?;
        Some((link, self.flows.id(parcel.flow, hop)))
    }

    fn is_final(&self, _: &Parcel) -> bool {
        // It arrives at its time, and not before.
        false
    }

    fn entered(&mut self, link: usize, packet: &Travelling<Parcel>) {
        self.reports[link].packets += 1;
        self.reports[link].bytes += packet.bytes as u64;
    }

    fn passed(&mut self, parcel: &mut Parcel) {
        parcel.hops += 1;
    }

    fn dropped(&mut self, link: usize, Dropped { item, reason, .. }: Dropped<Parcel>) {
        self.reports[link].drops.add(reason, 1);
        self.gone(&item);
    }

    fn lost(&mut self, link: usize, packet: Travelling<Parcel>) {
        self.reports[link].lost += 1;
        self.gone(&packet.item);
    }

    fn copied(&mut self, link: usize, packet: &Travelling<Parcel>) {
        self.reports[link].copied += 1;
        self.held += 1;
        self.flows.count(packet.item.flow, true);
    }

    fn delivered(&mut self, packet: Travelling<Parcel>) {
        self.gone(&packet.item);
        let end = self.ways[usize::from(packet.item.path)].to;
        self.report.arrived += 1;
        self.arrived.push(Arrived { end, at: packet.at, packet: packet.item.packet });
    }
}

impl Emulation {
    /// One in which nothing travels yet. `addresses` are those of the ends, in the order of their names.
    ///
    /// # Errors
    /// The network is none.
    pub fn new(network: &Network, addresses: &[Vec<IpAddr>]) -> Result<Self, NetworkError> {
        let ways = network.ways()?;
        let paths_from = |end: usize| ways.iter().filter(|way| way.from == end).count();
        let only = (0..network.ends.len()).map(|end| paths_from(end) == 1).collect();
        let mut links = Links::default();
        for (name, model) in &network.links {
            let wrong =
                |must: &str| NetworkError::Value { key: format!("links.{name}"), must: must.to_owned() };
            links.add(network.seed, model).map_err(wrong)?;
        }
        let paths = Paths {
            ways,
            flows: Flows::default(),
            arrived: Vec::new(),
            held: 0,
            reports: vec![LinkReport::default(); network.links.len()],
            report: Report::default(),
        };
        let (network, addresses) = (network.clone(), addresses.to_vec());
        Ok(Emulation { links, agenda: Agenda::new(), paths, network, addresses, only })
    }

    /// A packet is sent at an end: one of IP, whole. One to a group goes to all ends that a path leads to.
    pub fn handle(&mut self, now: Time, end: usize, packet: Bytes) {
        self.advance(now);
        let Some(looked) = look(&packet) else {
            self.paths.report.malformed += 1;
            return;
        };
        let destination = looked.key.destination.ip();
        let mut is_led = false;
        for path in 0..self.paths.ways.len() {
            if !self.leads(path, end, destination) {
                continue;
            }
            is_led = true;
            if self.paths.held >= HELD_MAX {
                self.paths.report.full += 1;
                continue;
            }
            self.paths.held += 1;
            let way = (path, self.paths.ways.as_slice());
            let (flows, described) = (&mut self.paths.flows, &self.network.described);
            let (flow, tag) = flows.set_out(now, way, (&looked, &packet), described, &mut self.links);
            let item = Parcel { packet: packet.clone(), path: path as u16, hops: 0, flow };
            let travelling = Travelling { at: now, item, tag, bytes: packet.len() };
            self.links.enter(now, travelling, &mut self.agenda, &mut self.paths);
        }
        self.paths.report.no_path += u64::from(!is_led);
    }

    /// Whether a path is one for what an end sends to an address: the only one from there, or that to the address.
    fn leads(&self, path: usize, from: usize, destination: IpAddr) -> bool {
        let way = &self.paths.ways[path];
        let has_it = || self.addresses.get(way.to).is_some_and(|own| own.contains(&destination));
        way.from == from && (self.only[from] || destination.is_multicast() || has_it())
    }

    /// When the next thing happens.
    pub fn next_at(&mut self) -> Option<Time> {
        self.agenda.next_at()
    }

    /// It is `now`: all that was to happen until now happens, each thing at its time.
    pub fn advance(&mut self, now: Time) {
        while let Some((at, event)) = self.agenda.take_until(now) {
            self.links.handle(at, event, &mut self.agenda, &mut self.paths);
        }
    }

    /// Packets that are on their way: those that wait at links, and that travel behind them.
    pub fn held(&self) -> usize {
        self.paths.held
    }

    /// What has come to ends since the last time.
    pub fn arrived(&mut self) -> impl Iterator<Item = Arrived> + '_ {
        self.paths.arrived.drain(..)
    }

    /// An end has taken a packet, so much later than it should have, or has not.
    pub fn tell(&mut self, behind: Option<Duration>) {
        match behind {
            Some(behind) => self.paths.report.behind.add(behind),
            None => self.paths.report.refused += 1,
        }
    }

    /// What came of it so far.
    pub fn report(&self) -> Report {
        let links = self.network.links.keys().cloned().zip(self.paths.reports.iter().cloned());
        let media = self.paths.flows.media().map(|(path, key, carries)| {
            let way = &self.paths.ways[path];
            let name = |end| self.network.ends.keys().nth(end).map_or("", String::as_str);
            let (from, to) = (name(way.from), name(way.to));
            format!("{from} > {to}: {} > {}: {carries}", key.source, key.destination)
        });
        Report { links: links.collect(), media: media.collect(), ..self.paths.report.clone() }
    }
}

#[cfg(test)]
mod tests;
