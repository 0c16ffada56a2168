//! Routers on links, in virtual time. Messages take some milliseconds and may be lost; data takes no time.

use core::net::Ipv4Addr;
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use fastrand::Rng;
use outflow_media::{Prefix, Time};

use crate::demand;
use crate::demand::Level;
use crate::dvmrp::packet::ALL_ROUTERS;
use crate::dvmrp::{InterfaceId, InterfaceSettings, Link, Router, Settings};

#[derive(Debug)]
pub(super) struct Node {
    pub(super) router: Router,
    pub(super) has_levels: bool,
    /// Its links, each of which is the interface of the same number, and what a hop over it counts.
    pub(super) links: BTreeMap<usize, u8>,
    generation: u32,
    due: Option<Time>,
    /// Packets sent so far.
    pub(super) sent: u64,
}

#[derive(Debug)]
pub(super) struct Wire {
    pub(super) nodes: Vec<usize>,
    pub(super) is_lan: bool,
    /// Whether interfaces are up.
    pub(super) is_up: bool,
    /// Whether nothing gets through, which no router notices.
    pub(super) is_cut: bool,
    pub(super) members: BTreeMap<Ipv4Addr, Level>,
}

#[derive(Debug)]
pub(super) struct Network {
    pub(super) now: Time,
    pub(super) nodes: Vec<Node>,
    pub(super) wires: Vec<Wire>,
    pub(super) random: Rng,
    /// Of a hundred messages, this many are lost.
    pub(super) loss: u32,
    due: BTreeSet<(Time, usize)>,
    flying: BTreeMap<(Time, u64), (usize, usize, Vec<u8>)>,
    count: u64,
}

pub(super) fn address(wire: usize, node: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, wire as u8, node as u8, 1 + (wire >> 8 << 4 | node >> 8) as u8)
}

pub(super) fn network(wire: usize) -> Prefix {
    Prefix::of(address(wire, 0), 16)
}

/// A host, not a router.
pub(super) fn host(wire: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, wire as u8, 255, 77)
}

const fn id(wire: usize) -> InterfaceId {
    InterfaceId(wire as u32)
}

fn router(seed: u64, generation: u32, has_levels: bool) -> Router {
    Router::new(Settings { generation, seed, has_levels, demand: demand::Settings::default() })
}

impl Network {
    pub(super) fn new(seed: u64) -> Self {
        Network {
            now: Time::from_millis(1000),
            nodes: Vec::new(),
            wires: Vec::new(),
            random: Rng::with_seed(seed),
            loss: 0,
            due: BTreeSet::new(),
            flying: BTreeMap::new(),
            count: 0,
        }
    }

    pub(super) fn add_node(&mut self, has_levels: bool) -> usize {
        let router = router(self.random.u64(..), 1000, has_levels);
        let links = BTreeMap::new();
        self.nodes.push(Node { router, has_levels, links, generation: 1000, due: None, sent: 0 });
        self.nodes.len() - 1
    }

    /// A link of these routers; of two, it may be one from point to point, which has no network of its own.
    pub(super) fn add_wire(&mut self, nodes: &[usize], is_lan: bool, metric: u8) -> usize {
        let wire = self.wires.len();
        let (nodes, members) = (nodes.to_vec(), BTreeMap::new());
        for node in &nodes {
            self.nodes[*node].links.insert(wire, metric);
        }
        self.wires.push(Wire { nodes, is_lan, is_up: false, is_cut: false, members });
        self.set_up(wire, true);
        wire
    }

    /// Interfaces go up or down, as their routers notice.
    pub(super) fn set_up(&mut self, wire: usize, is_up: bool) {
        self.wires[wire].is_up = is_up;
        for node in self.wires[wire].nodes.clone() {
            if is_up {
                self.bring_up(node, wire);
            } else {
                self.nodes[node].router.remove_interface(self.now, id(wire));
            }
            self.drain(node);
        }
    }

    fn bring_up(&mut self, node: usize, wire: usize) {
        let settings = InterfaceSettings {
            address: address(wire, node),
            link: match self.wires[wire].is_lan {
                true => Link::Lan(network(wire)),
                false => Link::PointToPoint { peer: None, network: None },
            },
            metric: self.nodes[node].links[&wire],
        };
        let router = &mut self.nodes[node].router;
        router.add_interface(self.now, id(wire), settings).expect("few interfaces");
        for (group, level) in &self.wires[wire].members {
            router.set_member(self.now, id(wire), *group, Some(*level)).expect("few groups");
        }
    }

    /// A router forgets all, and begins again.
    pub(super) fn restart(&mut self, node: usize) {
        let seed = self.random.u64(..);
        let old = &mut self.nodes[node];
        old.generation += 100;
        old.router = router(seed, old.generation, old.has_levels);
        for wire in old.links.keys().copied().collect::<Vec<_>>() {
            if self.wires[wire].is_up {
                self.bring_up(node, wire);
            }
        }
        self.drain(node);
    }

    pub(super) fn set_member(&mut self, wire: usize, group: Ipv4Addr, level: Option<u8>) {
        let level = level.and_then(Level::new);
        match level {
            Some(level) => self.wires[wire].members.insert(group, level),
            None => self.wires[wire].members.remove(&group),
        };
        if !self.wires[wire].is_up {
            return;
        }
        for node in self.wires[wire].nodes.clone() {
            let router = &mut self.nodes[node].router;
            router.set_member(self.now, id(wire), group, level).expect("few groups");
            self.drain(node);
        }
    }

    /// Takes what a router sends, and when it wants to be called.
    fn drain(&mut self, node: usize) {
        let mut packet = Vec::new();
        while let Some(transmit) = self.nodes[node].router.poll_transmit(&mut packet) {
            self.nodes[node].sent += 1;
            let wire = transmit.interface.0 as usize;
            for to in &self.wires[wire].nodes {
                let is_meant =
                    transmit.destination == ALL_ROUTERS || transmit.destination == address(wire, *to);
                let is_lost = self.random.u32(0..100) < self.loss || self.wires[wire].is_cut;
                if *to == node || !is_meant || is_lost {
                    continue;
                }
                self.count += 1;
                // In order: a link does not let messages overtake each other.
                let at = self.now + Duration::from_millis(2);
                self.flying.insert((at, self.count), (wire, *to, packet.clone()));
            }
        }
        while self.nodes[node].router.poll().is_some() {}
        let next = self.nodes[node].router.next_timeout();
        if next != self.nodes[node].due {
            self.nodes[node].due.map(|at| self.due.remove(&(at, node)));
            next.map(|at| self.due.insert((at, node)));
            self.nodes[node].due = next;
        }
    }

    /// Lets time pass.
    pub(super) fn run(&mut self, duration: Duration) {
        let end = self.now + duration;
        loop {
            let timeout = self.due.first().copied().map(|(at, node)| (at.max(self.now), node));
            let arrival = self.flying.first_key_value().map(|((at, _), _)| *at);
            let next = arrival.into_iter().chain(timeout.map(|(at, _)| at)).min();
            let Some(next) = next.filter(|at| *at <= end) else { break };
            self.now = next;
            if arrival == Some(next) {
                let Some((_, (wire, node, packet))) = self.flying.pop_first() else { break };
                if self.wires[wire].is_up {
                    self.nodes[node].router.handle_packet(next, id(wire), &packet);
                    self.drain(node);
                }
            } else if let Some((_, node)) = timeout {
                let router = &mut self.nodes[node].router;
                router.handle_timeout(next);
                let due = router.next_timeout();
                assert!(due.is_none_or(|due| due > next), "it has done what was due");
                self.drain(node);
            }
        }
        self.now = end;
    }

    /// A packet of data from a host on a link: how many copies of it there are on each link. Ends when there
    /// are far too many, as by a TTL: while routes change, data may go in circles.
    pub(super) fn data(&mut self, from: usize, group: Ipv4Addr) -> BTreeMap<usize, usize> {
        let mut copies = BTreeMap::new();
        let mut there = VecDeque::from([(from, None)]);
        while let Some((wire, sender)) = there.pop_front()
            && copies.values().sum::<usize>() < 500
        {
            *copies.entry(wire).or_default() += 1;
            if self.wires[wire].is_cut || !self.wires[wire].is_up {
                continue;
            }
            for node in self.wires[wire].nodes.clone() {
                if Some(node) == sender {
                    continue;
                }
                let router = &mut self.nodes[node].router;
                if let Ok(flow) = router.handle_data(self.now, id(wire), host(from), group)
                    && let Some((_, outgoing)) = router.forwarding(flow)
                {
                    let onto = outgoing.iter().map(|outgoing| outgoing.interface.0 as usize);
                    there.extend(onto.map(|wire| (wire, Some(node))));
                }
                self.drain(node);
            }
        }
        copies
    }
}
