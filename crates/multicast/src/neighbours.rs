//! Interfaces with routers of DVMRP: one router of it, and which interface of ours is which of its own.
//!
//! All interfaces that take part are the router's as soon as there is one with neighbours: the networks of the
//! others are told to neighbours, and their members count. It only speaks where it is to.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};

use outflow_media::{Network, Prefix, Time};
use outflow_routing::demand;
use outflow_routing::dvmrp::forwarding::Flow;
use outflow_routing::dvmrp::packet::ALL_ROUTERS;
use outflow_routing::dvmrp::{InterfaceId, InterfaceSettings, Link, Refusal, Router, Settings, Transmit};
use outflow_routing::membership::{Family, Level};

use crate::error::Error;
use crate::interfaces::Interface;
use crate::sys::Membership;

/// From here on the router's interfaces are further networks of one that has a number below.
const FURTHER: u32 = 1 << 31;

/// The router's interface that is this machine itself: no interface of the system has this number.
const OWN: InterfaceId = InterfaceId(0);

/// An interface on which routers of DVMRP are, or may be.
#[derive(Debug, Clone)]
pub struct Neighbours {
    /// The interface.
    pub interface: Interface,
    /// What a hop over it counts, from 1 to 31; others are moved there.
    pub metric: u8,
}

impl Neighbours {
    /// One that counts a single hop.
    pub const fn new(interface: Interface) -> Self {
        Neighbours { interface, metric: 1 }
    }
}

/// The type of all messages of DVMRP (draft-ietf-idmr-dvmrp-v3-11 section 3.1).
const DVMRP: u8 = 0x13;

/// Whether a packet of IGMP is one of DVMRP.
pub(crate) fn is_dvmrp(packet: &[u8]) -> bool {
    let message = packet.first().map_or(0, |first| usize::from(first & 0x0f) * 4);
    packet.get(message) == Some(&DVMRP)
}

/// An interface of ours as the router has it.
#[derive(Debug)]
struct Port {
    /// Its further networks: each an interface of the router, as that has one network each.
    further: Vec<InterfaceId>,
    /// In the group of routers, where there may be some.
    membership: Option<Membership>,
}

/// The router, and its interfaces.
#[derive(Debug)]
pub(crate) struct Dvmrp {
    pub(crate) router: Router,
    /// By the index of the interface.
    ports: BTreeMap<u32, Port>,
    further: BTreeMap<InterfaceId, u32>,
    next: u32,
    /// The address that the relay is a source by.
    own: Option<Ipv4Addr>,
    /// Groups that it is a member of, and the level that it wants.
    received: BTreeMap<Ipv4Addr, Level>,
}

impl Dvmrp {
    /// Without interfaces. The generation is to be larger than when it ran before.
    pub(crate) fn new(generation: u32, seed: u64) -> Self {
        let demand = demand::Settings::default();
        let router = Router::new(Settings { generation, seed, has_levels: true, demand });
        Dvmrp {
            router,
            ports: BTreeMap::new(),
            further: BTreeMap::new(),
            next: FURTHER,
            own: None,
            received: BTreeMap::new(),
        }
    }

    /// Adds an interface, or makes it another one: with neighbours if it has a metric; with all its networks,
    /// and those behind it.
    pub(crate) fn add(
        &mut self,
        now: Time,
        interface: &Interface,
        metric: Option<u8>,
        behind: &[Network],
    ) -> Result<(), Error> {
        self.remove(now, interface.index);
        let membership = match metric {
            Some(_) => Some(
                Membership::new(&[ALL_ROUTERS.into()], interface.index)
                    .map_err(|error| Error::Join { name: interface.name.clone(), error })?,
            ),
            None => None,
        };
        let mut networks =
            interface.networks.iter().chain(behind).filter_map(Network::v4).collect::<Vec<_>>();
        let mut seen = BTreeSet::new();
        networks.retain(|network| seen.insert(*network));
        let mut networks = networks.into_iter();
        let full = |_| Error::TooManyInterfaces(interface.name.clone());
        let (Some(first), IpAddr::V4(address)) = (networks.next(), interface.address) else {
            return Err(Error::NoAddress { name: interface.name.clone(), family: Family::V4 });
        };
        let metric = metric.unwrap_or(1);
        let settings = InterfaceSettings { address, link: Link::Lan(first), metric };
        self.router.add_interface(now, InterfaceId(interface.index), settings).map_err(full)?;
        self.ports.insert(interface.index, Port { further: Vec::new(), membership });
        for network in networks {
            let id = InterfaceId(self.next);
            let link = Link::PointToPoint { peer: None, network: Some(network) };
            let settings = InterfaceSettings { address, link, metric };
            self.router.add_interface(now, id, settings).map_err(full)?;
            self.next = self.next.checked_add(1).unwrap_or(FURTHER);
            self.further.insert(id, interface.index);
            self.ports.entry(interface.index).and_modify(|port| port.further.push(id));
        }
        Ok(())
    }

    /// Removes an interface. Its members are to be said again if it is added again.
    pub(crate) fn remove(&mut self, now: Time, index: u32) {
        let Some(port) = self.ports.remove(&index) else { return };
        for id in port.further.into_iter().chain([InterfaceId(index)]) {
            self.further.remove(&id);
            self.router.remove_interface(now, id);
        }
    }

    /// The address that the relay is a source by, and a member.
    pub(crate) const fn own(&self) -> Option<Ipv4Addr> {
        self.own
    }

    /// Sets it. True if it is another one.
    pub(crate) fn set_own(&mut self, now: Time, address: Option<Ipv4Addr>) -> bool {
        if self.own == address {
            return false;
        }
        self.router.remove_interface(now, OWN);
        self.own = address.filter(|address| {
            let link = Link::PointToPoint { peer: None, network: Some(Prefix::of(*address, 32)) };
            let settings = InterfaceSettings { address: *address, link, metric: 1 };
            // With as many interfaces as there can be, it is none: that is counted there.
            self.router.add_interface(now, OWN, settings).is_ok()
        });
        true
    }

    /// The relay sends these groups, and receives those at these levels.
    pub(crate) fn settle_own(
        &mut self,
        now: Time,
        sent: impl Iterator<Item = Ipv4Addr>,
        received: BTreeMap<Ipv4Addr, Level>,
    ) {
        let Some(own) = self.own else { return };
        for group in self.received.keys().filter(|group| !received.contains_key(group)) {
            let _counted_there = self.router.set_member(now, OWN, *group, None);
        }
        for (group, level) in &received {
            let _counted_there = self.router.set_member(now, OWN, *group, Some(*level));
        }
        self.received = received;
        for group in sent {
            let _counted_there = self.router.handle_data(now, OWN, own, group);
        }
    }

    /// Whether neighbours may be there.
    pub(crate) fn has_neighbours_on(&self, index: u32) -> bool {
        self.ports.get(&index).is_some_and(|port| port.membership.is_some())
    }

    /// The index of an interface of the router.
    pub(crate) fn index(&self, id: InterfaceId) -> u32 {
        self.further.get(&id).copied().unwrap_or(id.0)
    }

    /// Data came in by an interface: whether that is where it is to come from.
    pub(crate) fn handle_data(
        &mut self,
        now: Time,
        index: u32,
        source: Ipv4Addr,
        group: Ipv4Addr,
    ) -> Result<Flow, Refusal> {
        let at = self.router.routes().lookup(source).map(|(_, path)| path.via.interface());
        let at = at.filter(|at| self.index(*at) == index).unwrap_or(InterfaceId(index));
        self.router.handle_data(now, at, source, group)
    }

    /// By which interface data of a source is to come in.
    pub(crate) fn origin(&self, source: Ipv4Addr) -> Option<u32> {
        let (_, path) = self.router.routes().lookup(source)?;
        Some(self.index(path.via.interface()))
    }

    /// Whether data of a source belongs to a tree.
    pub(crate) fn has_tree(&self, source: Ipv4Addr, group: Ipv4Addr) -> bool {
        let found = self.router.routes().lookup(source);
        found.is_some_and(|(source, _)| self.router.forwarding(Flow { source, group }).is_some())
    }

    /// Where data goes and at which level, if it does, and whether neighbours want it there.
    pub(crate) fn wants(
        &self,
        source: Ipv4Addr,
        group: Ipv4Addr,
    ) -> impl Iterator<Item = (u32, Level, bool)> {
        let routes = self.router.routes();
        let flow = routes.lookup(source).map(|(source, _)| Flow { source, group });
        let found = flow.and_then(|flow| Some((flow, self.router.forwarding(flow)?.1)));
        found.into_iter().flat_map(move |(flow, outgoing)| {
            outgoing.iter().map(move |one| {
                let has_dependents = routes.dependents(flow.source, one.interface).next().is_some();
                (self.index(one.interface), one.level, has_dependents)
            })
        })
    }

    /// The next packet to be sent where neighbours may be: by which interface, and to which address.
    pub(crate) fn poll_transmit(&mut self, out: &mut Vec<u8>) -> Option<(u32, IpAddr)> {
        while let Some(Transmit { interface, destination }) = self.router.poll_transmit(out) {
            if self.has_neighbours_on(interface.0) {
                return Some((interface.0, destination.into()));
            }
        }
        None
    }
}
