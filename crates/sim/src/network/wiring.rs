//! Where packets of IP come from and go to: the ports of ends and nodes, and the ways between them.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::model::{Network, NetworkError};
use super::paths::ways;
use crate::limits::PLACES_MAX;

/// What a port is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum On {
    /// The paths of an end.
    Paths,
    /// A segment, by its place in the order of their names.
    Segment(usize),
}

/// Where an end or a node sends packets, and gets them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortPlace {
    /// The end or node: ends first, then nodes, each in the order of their names.
    pub place: usize,
    /// Its number among those of the same end or node.
    pub number: usize,
    /// What it is on.
    pub on: On,
    /// The addresses that packets to it have: one of IPv4, one of IPv6.
    pub addresses: [IpAddr; 2],
}

/// Links one behind the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Way {
    pub(super) links: Vec<usize>,
    pub(super) leads: Leads,
    /// The port where it begins, if it begins at one.
    pub(super) from: Option<usize>,
}

/// Where a way ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Leads {
    /// At a port.
    Port(usize),
    /// Where a segment parts, for what this port has sent.
    Segment(usize, usize),
}

/// Ports and ways.
#[derive(Debug, Clone, Default)]
pub(super) struct Wiring {
    pub(super) ports: Vec<PortPlace>,
    pub(super) ways: Vec<Way>,
    /// By port: the ways that begin there.
    begins: Vec<Vec<usize>>,
    /// By segment: its ports, each with the way to it, if that has links.
    segments: Vec<Vec<(usize, Option<usize>)>>,
    /// The names of ends and nodes, in the order of places.
    pub(super) names: Vec<String>,
    ends: usize,
}

/// The addresses of an end on paths: `10.213.NETWORK.END`, and `fd6f:7574:666c:NETWORK::END`.
const fn of_end(network: u8, end: u8) -> [IpAddr; 2] {
    let six = Ipv6Addr::new(0xfd6f, 0x7574, 0x666c, network as u16, 0, 0, 0, end as u16);
    [IpAddr::V4(Ipv4Addr::new(10, 213, network, end)), IpAddr::V6(six)]
}

/// The addresses on a segment: `10.214.SEGMENT.PLACE`, and `fd6f:7574:666d:SEGMENT::PLACE`. Both begin with 1.
const fn on_segment(segment: u8, place: u8) -> [IpAddr; 2] {
    let six = Ipv6Addr::new(0xfd6f, 0x7574, 0x666d, segment as u16, 0, 0, 0, place as u16);
    [IpAddr::V4(Ipv4Addr::new(10, 214, segment, place)), IpAddr::V6(six)]
}

/// Where ends and nodes of a network send packets and get them, as in a [`World`](super::World) of this number.
///
/// # Errors
/// The network is none.
pub fn ports(network: &Network, number: u8) -> Result<Vec<PortPlace>, NetworkError> {
    Wiring::new(network, number).map(|wiring| wiring.ports)
}

impl Wiring {
    /// That of a network, whose ends have the addresses of the emulated network of this number.
    ///
    /// # Errors
    /// It joins what is not there, or cannot be joined, or there is too much of something.
    pub(super) fn new(network: &Network, number: u8) -> Result<Self, NetworkError> {
        let names: Vec<String> = network.ends.keys().chain(network.nodes.keys()).cloned().collect();
        for (key, count) in [("nodes", names.len()), ("segments", network.segments.len())] {
            if count > PLACES_MAX {
                let must = format!("must be at most {PLACES_MAX}: leave some out");
                return Err(NetworkError::Value { key: key.to_owned(), must });
            }
        }
        if let Some(name) = network.ends.keys().find(|name| network.nodes.contains_key(*name)) {
            let must = "has the name of an end, too: give it another one".to_owned();
            return Err(NetworkError::Value { key: format!("nodes.{name}"), must });
        }
        let mut wiring = Wiring { names, ends: network.ends.len(), ..Wiring::default() };
        wiring.add_paths(network, number)?;
        let links: BTreeMap<&str, usize> =
            network.links.keys().enumerate().map(|(at, name)| (name.as_str(), at)).collect();
        for name in network.segments.keys() {
            wiring.add_segment(network, name, &links)?;
        }
        wiring.begins = vec![Vec::new(); wiring.ports.len()];
        for (at, way) in wiring.ways.iter().enumerate() {
            way.from.into_iter().for_each(|port| wiring.begins[port].push(at));
        }
        Ok(wiring)
    }

    /// The ports of ends that paths join, and of those that nothing joins.
    fn add_paths(&mut self, network: &Network, number: u8) -> Result<(), NetworkError> {
        for (end, name) in network.ends.keys().enumerate() {
            let is_on_paths = network.paths.iter().any(|path| &path.from == name || &path.to == name);
            let is_on_segments = network.segments.values().any(|segment| segment.joins.contains(name));
            if is_on_paths || !is_on_segments {
                self.add_port(end, On::Paths, of_end(number, end as u8 + 1));
            }
        }
        let port = |ports: &[PortPlace], end| ports.iter().position(|port| port.place == end);
        for path in ways(network)? {
            let (from, to) = (port(&self.ports, path.from), port(&self.ports, path.to));
            // Both were given one above.
            if let (Some(_), Some(to)) = (from, to) {
                self.ways.push(Way { links: path.links, leads: Leads::Port(to), from });
            }
        }
        Ok(())
    }

    fn add_port(&mut self, place: usize, on: On, addresses: [IpAddr; 2]) -> usize {
        let number = self.ports.iter().filter(|port| port.place == place).count();
        self.ports.push(PortPlace { place, number, on, addresses });
        self.ports.len() - 1
    }

    fn add_segment(
        &mut self,
        network: &Network,
        name: &str,
        links: &BTreeMap<&str, usize>,
    ) -> Result<(), NetworkError> {
        let Some(segment) = network.segments.get(name) else { return Ok(()) };
        let wrong = |must: String| NetworkError::Value { key: format!("segments.{name}"), must };
        let of = |via: Option<&Vec<String>>| -> Result<Vec<usize>, NetworkError> {
            let all = via.into_iter().flatten().map(|link| {
                let unknown = || wrong(format!("there is no link '{link}'"));
                links.get(link.as_str()).copied().ok_or_else(unknown)
            });
            all.collect()
        };
        if segment.joins.len() < 2 || segment.joins.len() > PLACES_MAX {
            return Err(wrong(format!("must join 2 to {PLACES_MAX} ends or nodes")));
        }
        if let Some(other) =
            segment.from.keys().chain(segment.to.keys()).find(|other| !segment.joins.contains(other))
        {
            return Err(wrong(format!("has links of '{other}', which it does not join: name it in joins")));
        }
        let (at, shared) = (self.segments.len(), of(Some(&segment.via))?);
        let mut ports = Vec::new();
        for (place, member) in segment.joins.iter().enumerate() {
            let found = self.names.iter().position(|known| known == member);
            let unknown = || {
                let possible = self.names.join(", ");
                wrong(format!("joins '{member}', but there is no such end or node: possible are {possible}"))
            };
            let found = found.ok_or_else(unknown)?;
            if segment.joins[..place].contains(member) {
                return Err(wrong(format!("joins '{member}' twice: leave one out")));
            }
            let port = self.add_port(found, On::Segment(at), on_segment(at as u8, place as u8 + 1));
            let mut out = of(segment.from.get(member))?;
            out.extend(&shared);
            self.ways.push(Way { links: out, leads: Leads::Segment(at, port), from: Some(port) });
            let into = of(segment.to.get(member))?;
            let way = (!into.is_empty()).then_some(self.ways.len());
            way.iter().for_each(|_| {
                self.ways.push(Way { links: into.clone(), leads: Leads::Port(port), from: None });
            });
            ports.push((port, way));
        }
        self.segments.push(ports);
        Ok(())
    }

    /// The ways that begin at a port.
    pub(super) fn begins(&self, port: usize) -> &[usize] {
        self.begins.get(port).map_or(&[], Vec::as_slice)
    }

    /// Whether a way is one for what is sent to an address: the only path from an end, or that to the address; on a
    /// segment, if one that it joins has the address.
    pub(super) fn leads(&self, way: usize, to: IpAddr) -> bool {
        let Way { leads, from, .. } = self.ways[way];
        match leads {
            Leads::Port(port) => {
                let is_only = from.is_some_and(|from| self.begins(from).len() == 1);
                is_only || is_to_all(to) || self.ports[port].addresses.contains(&to)
            }
            Leads::Segment(segment, from) => self.taken(segment, from, to).next().is_some(),
        }
    }

    /// The ports of a segment to which a packet goes that this one has sent, each with the way to it, if that has
    /// links. Addresses of the link are of no list: what is sent to one comes to all.
    pub(super) fn taken(
        &self,
        segment: usize,
        from: usize,
        to: IpAddr,
    ) -> impl Iterator<Item = (usize, Option<usize>)> + '_ {
        let all = self.segments.get(segment).into_iter().flatten().copied();
        all.filter(move |(port, _)| {
            *port != from && (is_to_all(to) || self.ports[*port].addresses.contains(&to))
        })
    }

    /// The node that a port is of; ends are none.
    pub(super) fn node(&self, port: usize) -> Option<usize> {
        self.ports[port].place.checked_sub(self.ends)
    }

    /// The ports of a node, in order.
    pub(super) fn ports_of(&self, node: usize) -> impl Iterator<Item = usize> + '_ {
        let place = node + self.ends;
        (0..self.ports.len()).filter(move |port| self.ports[*port].place == place)
    }

    /// A node or end of this name that is on one of the segments of a place: the port there, and its own.
    pub(super) fn joined(&self, place: usize, name: &str) -> Option<(usize, usize)> {
        let of = |port: usize| &self.names[self.ports[port].place];
        self.segments.iter().find_map(|segment| {
            let own = segment.iter().find(|(port, _)| self.ports[*port].place == place)?.0;
            let other = segment.iter().find(|(port, _)| of(*port) == name && *port != own)?.0;
            Some((own, other))
        })
    }
}

/// Whether packets to an address come to all on a segment: to a group, to the link, to all.
fn is_to_all(to: IpAddr) -> bool {
    match to {
        IpAddr::V4(to) => to.is_multicast() || to.is_broadcast(),
        IpAddr::V6(to) => to.is_multicast() || to.is_unicast_link_local(),
    }
}
