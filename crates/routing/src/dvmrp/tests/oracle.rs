//! What is to become of a network, worked out from its links.

use core::net::Ipv4Addr;
use std::collections::BTreeMap;

use super::network::{Network, address, network};
use crate::demand::Level;
use crate::dvmrp::forwarding::{Flow, Outgoing};
use crate::dvmrp::routes::{INFINITY, Path, Via};
use crate::dvmrp::{InterfaceId, Peer};

/// Shortest paths from one link: how far each router is, and where its path begins.
pub(super) struct Paths<'a> {
    net: &'a Network,
    source: usize,
    paths: Vec<Option<Path>>,
}

impl<'a> Paths<'a> {
    pub(super) fn new(net: &'a Network, source: usize) -> Self {
        let paths = vec![None; net.nodes.len()];
        let mut all = Paths { net, source, paths };
        // Bellman and Ford, until nothing changes.
        for _ in 0..100 {
            let before = all.paths.clone();
            for node in 0..net.nodes.len() {
                all.paths[node] = all.best(node);
            }
            if before == all.paths {
                return all;
            }
        }
        panic!("paths do not settle: {:?}", all.paths);
    }

    fn best(&self, node: usize) -> Option<Path> {
        let links = self.net.nodes[node].links.iter().filter(|(wire, _)| self.net.wires[**wire].is_up);
        let mut all = Vec::new();
        for (wire, metric) in links {
            if *wire == self.source {
                return Some(Path { metric: *metric, via: Via::Connected(InterfaceId(*wire as u32)) });
            }
            for other in self.net.wires[*wire].nodes.iter().filter(|other| **other != node) {
                let Some(path) = self.paths[*other].filter(|path| path.via.interface().0 != *wire as u32)
                else {
                    continue;
                };
                let peer = Peer { interface: InterfaceId(*wire as u32), address: address(*wire, *other) };
                all.push((path.metric + metric, peer.address, peer));
            }
        }
        let (metric, _, peer) = all.into_iter().filter(|(metric, ..)| *metric < INFINITY).min()?;
        Some(Path { metric, via: Via::Neighbour(peer) })
    }

    /// The router that forwards onto a link.
    fn forwarder(&self, wire: usize) -> Option<usize> {
        let nodes = self.net.wires[wire].nodes.iter().filter(|_| self.net.wires[wire].is_up);
        let able = nodes.filter_map(|node| {
            let path = self.paths[*node].filter(|path| path.via.interface().0 != wire as u32)?;
            Some((path.metric, address(wire, *node), *node))
        });
        able.min().map(|(_, _, node)| node)
    }

    /// The level that is wanted on a link by members and by routers that depend on its forwarder.
    fn wanted(&self, wire: usize, group: Ipv4Addr) -> Option<Level> {
        let forwarder = self.forwarder(wire)?;
        let member = self.net.wires[wire].members.get(&group).copied();
        let below = self.net.wires[wire].nodes.iter().filter_map(|node| {
            self.paths[*node].filter(|path| path.via.interface().0 == wire as u32)?;
            let wanted = self.demanded(*node, group)?;
            let is_told = self.net.nodes[*node].has_levels && self.net.nodes[forwarder].has_levels;
            Some(if is_told { wanted } else { Level::BEST })
        });
        member.into_iter().chain(below).min()
    }

    /// What a router asks for above.
    fn demanded(&self, node: usize, group: Ipv4Addr) -> Option<Level> {
        self.outgoing(node, group).iter().map(|outgoing| outgoing.level).min()
    }

    fn outgoing(&self, node: usize, group: Ipv4Addr) -> Vec<Outgoing> {
        let forwarded = self.net.nodes[node].links.keys().filter(|wire| self.forwarder(**wire) == Some(node));
        let wanted = forwarded.filter_map(|wire| {
            let interface = InterfaceId(*wire as u32);
            Some(Outgoing { interface, level: self.wanted(*wire, group)? })
        });
        wanted.collect()
    }

    /// How many copies are to be on each link.
    pub(super) fn copies(&self, group: Ipv4Addr) -> BTreeMap<usize, usize> {
        let carried = (0..self.net.wires.len()).filter(|wire| {
            let is_carried = || self.forwarder(*wire).is_some() && self.wanted(*wire, group).is_some();
            *wire == self.source || is_carried()
        });
        carried.map(|wire| (wire, 1)).collect()
    }

    /// Whether routes, trees and levels of all routers are as they have to be.
    pub(super) fn check(&self, groups: &[Ipv4Addr]) {
        let source = network(self.source);
        for (number, node) in self.net.nodes.iter().enumerate() {
            assert_eq!(node.router.routes().path(source), self.paths[number], "router {number} to {source}");
            for group in groups {
                let flow = Flow { source, group: *group };
                let Some((_, outgoing)) = node.router.forwarding(flow) else { continue };
                assert_eq!(outgoing, self.outgoing(number, *group), "router {number}, {flow:?}");
                let demanded = self.demanded(number, *group);
                assert_eq!(node.router.demand(flow), demanded, "router {number}, {flow:?}");
            }
        }
    }
}
