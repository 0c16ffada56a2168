//! Links of a router (section 3.7).

use core::net::Ipv4Addr;
use std::collections::BTreeMap;

use outflow_media::{Prefix, Time};

use super::limits::NEIGHBOURS_MAX;
use super::neighbour::{Neighbour, Neighbours};
use super::packet::{ALL_ROUTERS, Packet};
use super::{InterfaceId, Peer, Refusal};

/// What a link is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// Several routers and hosts may be there, with addresses of this network, which is told to others.
    Lan(Prefix),
    /// One router is at the other end. All messages go to all routers (section 3.7).
    PointToPoint {
        /// Its address, if it is known: others are refused.
        peer: Option<Ipv4Addr>,
        /// The network that is told to others, if sources may be there.
        network: Option<Prefix>,
    },
}

/// An interface as the driver knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InterfaceSettings {
    /// Our address there.
    pub address: Ipv4Addr,
    /// What is there.
    pub link: Link,
    /// What a hop over it counts, from 1 to 31; others are moved there.
    pub metric: u8,
}

impl InterfaceSettings {
    pub(super) const fn network(&self) -> Option<Prefix> {
        match self.link {
            Link::Lan(network) => Some(network),
            Link::PointToPoint { network, .. } => network,
        }
    }
}

/// An interface that is up.
#[derive(Debug)]
pub(super) struct Interface {
    pub(super) settings: InterfaceSettings,
    /// Another one each time it comes up (section 3.7.1).
    pub(super) generation: u32,
    pub(super) neighbours: Neighbours,
    pub(super) probe_at: Time,
}

/// Those that are up.
pub(super) type Interfaces = BTreeMap<InterfaceId, Interface>;

impl Interface {
    /// Whether a packet may have come from where it says, over one link.
    pub(super) fn admits(&self, packet: &Packet<'_>) -> Result<(), Refusal> {
        let Packet { source, destination, ttl, .. } = *packet;
        let InterfaceSettings { address, link, .. } = self.settings;
        if source == address {
            return Err(Refusal::OwnAddress);
        }
        let is_on_link = match link {
            Link::Lan(network) => {
                let edge = network.length() < 31
                    && (source == network.network() || source.to_bits() | network.mask() == u32::MAX);
                network.contains(source) && !edge
            }
            Link::PointToPoint { peer: Some(peer), .. } => source == peer,
            Link::PointToPoint { .. } => !source.is_multicast() && !source.is_broadcast(),
        };
        if !is_on_link || source.is_unspecified() || source.is_loopback() {
            return Err(Refusal::SourceOffLink);
        }
        if destination != ALL_ROUTERS && destination != address {
            return Err(Refusal::Destination);
        }
        // To one router, others send with the largest TTL, which no host farther away can make look so.
        let is_near = ttl == 1 || (ttl == 255 && destination == address);
        if is_near { Ok(()) } else { Err(Refusal::Ttl) }
    }

    /// Where to send what is meant for one neighbour.
    pub(super) const fn destination(&self, neighbour: Ipv4Addr) -> Ipv4Addr {
        match self.settings.link {
            Link::Lan(_) => neighbour,
            Link::PointToPoint { .. } => ALL_ROUTERS,
        }
    }

    /// How many neighbours may be there.
    pub(super) const fn neighbours_max(&self) -> usize {
        match self.settings.link {
            Link::Lan(_) => NEIGHBOURS_MAX,
            Link::PointToPoint { .. } => 1,
        }
    }
}

/// A neighbour on any interface.
pub(super) fn neighbour(interfaces: &Interfaces, peer: Peer) -> Option<&Neighbour> {
    interfaces.get(&peer.interface)?.neighbours.get(peer.address)
}
