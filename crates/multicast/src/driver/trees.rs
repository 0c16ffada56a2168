//! DVMRP among what the driver does: its packets, members, and what follows for entries of the kernel.

use std::collections::BTreeSet;
use std::net::IpAddr;

use outflow_media::{Prefix, Time};
use outflow_routing::dvmrp;
use outflow_routing::dvmrp::forwarding::Flow;
use outflow_routing::dvmrp::{InterfaceId, Peer};
use outflow_routing::forwarding::Pair;
use outflow_routing::membership::Level;

use super::Driver;
use crate::event::{Event, Name, NeighbourState, Neighbourhood, RouteState};
use crate::forward::Relayed;
use crate::ports::PortId;
use crate::sys::Routing;

impl Driver {
    /// A message of DVMRP; it counts where neighbours may be.
    pub(super) fn handle_dvmrp(&mut self, now: Time, bytes: &[u8], interface: u32) {
        match self.dvmrp.as_mut().filter(|dvmrp| dvmrp.has_neighbours_on(interface)) {
            Some(dvmrp) => dvmrp.router.handle_packet(now, InterfaceId(interface), bytes),
            None => self.counts.elsewhere += 1,
        }
    }

    /// Members of a group, as far as this router is to serve them: where other routers may be, the designated
    /// forwarder does, and elsewhere the querier. What the relay sends them is not to come from elsewhere.
    pub(super) fn set_members(&mut self, now: Time, group: IpAddr) {
        let (Some(dvmrp), IpAddr::V4(routed)) = (&mut self.dvmrp, group) else { return };
        let is_relayed = self.relayed.get(&group) == Some(&Relayed::All);
        for (index, querier) in &self.queriers {
            let is_ours = !is_relayed && (querier.router.is_querier() || dvmrp.has_neighbours_on(*index));
            let wanted = querier.router.wanted(group).filter(|_| is_ours);
            let level = wanted.map(|wanted| wanted.level);
            let _counted_there = dvmrp.router.set_member(now, InterfaceId(*index), routed, level);
        }
    }

    /// The ports that want packets, by the trees of DVMRP.
    pub(super) fn wants_by_tree(&self, pair: Pair) -> Vec<(PortId, Level)> {
        let Some(dvmrp) = &self.dvmrp else { return Vec::new() };
        let Some((source, group)) = pair.v4() else { return Vec::new() };
        let wants = dvmrp.wants(source, group).filter(|(index, _, has_dependents)| {
            // Trees know no sources of members: a member that chose others is no reason to forward.
            let querier = self.queriers.get(index);
            let wanted = querier.and_then(|one| one.router.wanted(pair.group));
            *has_dependents || wanted.is_none_or(|wanted| wanted.receives(pair.source))
        });
        wants.filter_map(|(index, level, _)| Some((self.ports.id(index)?, level))).collect()
    }

    /// Does what is due, sends, and has the kernel follow.
    pub(super) fn settle_dvmrp(&mut self, kernel: &Routing, now: Time) {
        let Some(dvmrp) = &mut self.dvmrp else { return };
        if dvmrp.router.next_timeout().is_some_and(|at| at <= now) {
            dvmrp.router.handle_timeout(now);
        }
        while let Some((index, to)) = dvmrp.poll_transmit(&mut self.out.packet) {
            self.out.send(kernel, to, index);
        }
        let (mut flows, mut networks) = (BTreeSet::new(), BTreeSet::new());
        while let Some(event) = dvmrp.router.poll() {
            let (peer, said): (Peer, fn(Name, IpAddr) -> Event) = match event {
                dvmrp::Event::ForwardingChanged { flow, .. } | dvmrp::Event::ForwardingEnded(flow) => {
                    self.own.touch(flow.group.into());
                    flows.insert(flow);
                    continue;
                }
                dvmrp::Event::RouteChanged(network) => {
                    networks.insert(network);
                    continue;
                }
                dvmrp::Event::NeighbourUp(peer) => {
                    (peer, |interface, neighbour| Event::NeighbourUp { interface, neighbour })
                }
                dvmrp::Event::NeighbourDown(peer) => {
                    (peer, |interface, neighbour| Event::NeighbourDown { interface, neighbour })
                }
                dvmrp::Event::NeighbourRestarted(peer) => {
                    (peer, |interface, neighbour| Event::NeighbourRestarted { interface, neighbour })
                }
            };
            // One whose interface is gone has been told of as that.
            if let Some(port) = self.ports.get(peer.interface.0) {
                self.events.tell(said(Name::clone(&port.name), peer.address.into()));
            }
        }
        self.follow(kernel, &flows, &networks);
    }

    fn follow(&mut self, kernel: &Routing, flows: &BTreeSet<Flow>, networks: &BTreeSet<Prefix>) {
        for Flow { source, group } in flows {
            let pairs = self.flows.pairs(Some((*group).into()));
            pairs
                .into_iter()
                .filter(|pair| pair.v4().is_some_and(|(from, _)| source.contains(from)))
                .for_each(|pair| {
                    self.follow_tree(kernel, pair, false);
                });
        }
        if networks.is_empty() {
            return;
        }
        for pair in self.flows.pairs(None) {
            if pair.v4().is_some_and(|(source, _)| networks.iter().any(|network| network.contains(source))) {
                self.follow_tree(kernel, pair, true);
            }
        }
    }

    /// An entry goes where its tree goes; if there is none, or it comes from elsewhere, it is to be asked again.
    fn follow_tree(&mut self, kernel: &Routing, pair: Pair, has_moved: bool) {
        let (Some(dvmrp), Some(entry)) = (&self.dvmrp, self.flows.get(pair)) else { return };
        let Some((source, group)) = pair.v4() else { return };
        let origin = dvmrp.origin(source).and_then(|index| self.ports.id(index));
        let has_tree = dvmrp.has_tree(source, group);
        if entry.is_placed && has_tree && origin == Some(entry.parent) {
            self.route(kernel, pair);
        } else if entry.is_placed || has_moved {
            self.remove_flow(kernel, pair);
        }
    }

    /// Neighbours and routes.
    pub(super) fn neighbourhood(&self) -> Option<Neighbourhood> {
        let dvmrp = self.dvmrp.as_ref()?;
        let name = |id| self.ports.get(dvmrp.index(id)).map(|port| Name::clone(&port.name));
        let neighbours = dvmrp.router.neighbours().filter_map(|(peer, neighbour)| {
            Some(NeighbourState {
                interface: name(peer.interface)?,
                address: peer.address,
                is_two_way: neighbour.is_two_way(),
                has_levels: neighbour.has_levels(),
            })
        });
        let routes = dvmrp.router.routes().paths().filter_map(|(network, path)| {
            let via = match path.via {
                dvmrp::routes::Via::Connected(_) => None,
                dvmrp::routes::Via::Neighbour(peer) => Some(peer.address),
            };
            let interface = name(path.via.interface())?;
            Some(RouteState { network, metric: path.metric, interface, via })
        });
        Some(Neighbourhood {
            neighbours: neighbours.collect(),
            own: dvmrp.own(),
            routes: routes.collect(),
            refused: dvmrp.router.counters().iter().filter(|(_, times)| *times > 0).collect(),
        })
    }
}
