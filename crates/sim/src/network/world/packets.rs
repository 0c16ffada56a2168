//! Packets of IP, and the nodes that send and get them.

use bytes::Bytes;
use outflow_media::Time;

use super::carriage::{Carriage, Carried};
use super::{Event, World};
use crate::limits::HELD_MAX;
use crate::network::links::Travelling;
use crate::network::model::{Network, NetworkError};
use crate::network::nodes::{Figures, Node, Place, Port};
use crate::network::packets::{Arrived, Looked, look};
use crate::network::parcel::PacketParcel;
use crate::network::rng::{Draws, generator};
use crate::network::traffic::Emission;
use crate::network::wiring::{Leads, Wiring};

/// A node, and when it is woken next.
#[derive(Debug)]
pub(in crate::network) struct Machine {
    node: Box<dyn Node>,
    /// Its ports.
    ports: Vec<usize>,
    awaited: Option<Time>,
}

impl Machine {
    pub(super) fn figures(&self, now: Time) -> Figures {
        self.node.figures(now)
    }
}

fn port(wiring: &Wiring, port: usize) -> Option<Port> {
    use std::net::IpAddr::{V4, V6};
    match wiring.ports[port].addresses {
        [V4(v4), V6(v6)] => Some(Port { v4, v6 }),
        _ => None,
    }
}

/// The nodes of a network, each at its ports.
///
/// # Errors
/// One cannot be what it is to be.
pub(in crate::network) fn machines(network: &Network, wiring: &Wiring) -> Result<Vec<Machine>, NetworkError> {
    let mut machines = Vec::new();
    for (number, (name, model)) in network.nodes.iter().enumerate() {
        let ports: Vec<usize> = wiring.ports_of(number).collect();
        let places: Vec<Port> = ports.iter().filter_map(|at| port(wiring, *at)).collect();
        let neighbour = |other: &str| {
            let (own, other) = wiring.joined(network.ends.len() + number, other)?;
            Some((wiring.ports[own].number, port(wiring, other)?))
        };
        let seed = generator(network.seed, Draws::Node, number, 0).u64(..);
        let place = Place { seed, ports: &places, neighbour: &neighbour };
        let mut traffic = network.traffic.values();
        let to = traffic.find(|traffic| traffic.from.as_ref() == Some(name)).and_then(|one| one.to.as_ref());
        let node = model.node(Time::ZERO, to.and_then(|to| to.parse().ok()), &place);
        let wrong = |must| NetworkError::Value { key: format!("nodes.{name}"), must };
        machines.push(Machine { node: node.map_err(wrong)?, ports, awaited: None });
    }
    Ok(machines)
}

impl World {
    pub(super) fn start_nodes(&mut self) {
        (0..self.machines.len()).for_each(|node| self.drain(node));
        self.arrive();
    }

    /// A packet sets out at a port.
    pub(super) fn send_packet(&mut self, port: usize, packet: Bytes) {
        let Some(looked) = look(&packet) else {
            self.carriage.packets.report.malformed += 1;
            return;
        };
        let to = looked.key.destination.ip();
        let mut is_led = false;
        for at in 0..self.carriage.packets.wiring.begins(port).len() {
            let way = self.carriage.packets.wiring.begins(port)[at];
            if self.carriage.packets.wiring.leads(way, to) {
                is_led = true;
                self.set_out_on(way, &looked, packet.clone());
            }
        }
        self.carriage.packets.report.no_path += u64::from(!is_led);
    }

    /// A packet sets out on a way.
    fn set_out_on(&mut self, way: usize, looked: &Looked, packet: Bytes) {
        let Carriage { packets, payloads, .. } = &mut self.carriage;
        if packets.held >= HELD_MAX {
            packets.report.full += 1;
            return;
        }
        packets.held += 1;
        let ways = (way, packets.wiring.ways.as_slice());
        let (flow, tag) =
            packets.flows.set_out(self.now, ways, (looked, &packet), &self.described, &mut self.links);
        let bytes = packet.len();
        let item =
            Carried::Packet(PacketParcel { packet: payloads.put(packet), way: way as u16, hops: 0, flow });
        let travelling = Travelling { at: self.now, item, tag, bytes };
        self.links.enter(self.now, travelling, &mut self.agenda, &mut self.carriage);
    }

    /// A packet is at the end of a way.
    pub(super) fn go_on(&mut self, way: usize, packet: Bytes) {
        let wiring = &self.carriage.packets.wiring;
        match wiring.ways[way].leads {
            Leads::Port(port) => self.come(port, packet),
            Leads::Segment(segment, from) => {
                let Some(looked) = look(&packet) else { return };
                let to = looked.key.destination.ip();
                let taken: Vec<_> = wiring.taken(segment, from, to).collect();
                for (port, way) in taken {
                    match way {
                        Some(way) => self.set_out_on(way, &looked, packet.clone()),
                        None => self.come(port, packet.clone()),
                    }
                }
            }
        }
    }

    /// A packet is at a port.
    fn come(&mut self, port: usize, packet: Bytes) {
        let now = self.now;
        self.carriage.flows.digest_packet(port, now, packet.len());
        let packets = &mut self.carriage.packets;
        let Some(node) = packets.wiring.node(port) else {
            packets.report.arrived += 1;
            packets.arrived.push(Arrived { port, at: now, packet });
            return;
        };
        let number = packets.wiring.ports[port].number;
        if let Some(machine) = self.machines.get_mut(node) {
            machine.node.handle_packet(now, number, &packet);
            self.drain(node);
        }
    }

    /// Traffic that begins at a node sends a packet.
    pub(super) fn give(&mut self, node: u32, emission: &Emission) {
        self.machines[node as usize].node.handle_traffic(self.now, emission);
        self.drain(node as usize);
    }

    pub(super) fn wake(&mut self, node: u32) {
        let (now, machine) = (self.now, &mut self.machines[node as usize]);
        machine.awaited = machine.awaited.filter(|at| *at > now);
        machine.node.handle_timeout(now);
        self.drain(node as usize);
        self.arrive();
    }

    /// What a node wants to be sent sets out.
    fn drain(&mut self, node: usize) {
        let now = self.now;
        while let Some((number, packet)) = self.machines[node].node.poll_transmit(now) {
            if let Some(port) = self.machines[node].ports.get(number).copied() {
                self.send_packet(port, packet);
            }
        }
        let machine = &mut self.machines[node];
        // What is due already is due as soon as time goes on.
        let next = machine.node.next_timeout().map(|at| at.max(now + core::time::Duration::from_micros(1)));
        if let Some(at) = next.filter(|at| machine.awaited.is_none_or(|awaited| *at < awaited)) {
            machine.awaited = Some(at);
            self.agenda.add(at, Event::Wake(node as u32));
        }
    }
}
