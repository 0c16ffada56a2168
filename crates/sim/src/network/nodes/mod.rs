//! Nodes that speak packets of IP: the state machines that also run live, each at its ports.
//!
//! A node is driven as all of them are: what comes is given to it ([`Node::handle_packet`],
//! [`Node::handle_traffic`], [`Node::handle_timeout`]); after that packets are taken from it
//! ([`Node::poll_transmit`]) until there are none, and [`Node::next_timeout`] is asked again.

mod model;
mod multicast;
mod poc;
mod reorder;
mod tree;
mod udp;
mod viewer;

use core::fmt;
use core::net::{Ipv4Addr, Ipv6Addr};
use std::collections::BTreeMap;

use bytes::Bytes;
use outflow_media::Time;

use super::traffic::Emission;
use viewer::Viewer;

pub use model::NodeModel;
pub use multicast::{GroupWant, HostModel, RouterModel};
pub use poc::{PocReceiverModel, PocSenderModel};
pub use tree::{DirectoryModel, TreeRelayModel, TreeWant};

/// Where a node is on a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Port {
    /// Its address of IPv4, of a network of 24 bits that all on the segment are in.
    pub(super) v4: Ipv4Addr,
    /// Its address of IPv6 beyond the link, of a network of 64 bits.
    pub(super) v6: Ipv6Addr,
}

/// What came of a node: figures by name, in the units that their names end with.
pub type Figures = BTreeMap<&'static str, f64>;

/// What stands in a network and speaks packets of IP.
pub(super) trait Node: fmt::Debug {
    /// A packet of IP, whole, has come by a port.
    fn handle_packet(&mut self, now: Time, port: usize, packet: &Bytes);

    /// Traffic that begins here sends a packet.
    fn handle_traffic(&mut self, _now: Time, _packet: &Emission) {}

    /// Does what is due.
    fn handle_timeout(&mut self, now: Time);

    /// When that is to be called at the latest.
    fn next_timeout(&self) -> Option<Time>;

    /// The next packet of IP that it sends, and by which port.
    fn poll_transmit(&mut self, now: Time) -> Option<(usize, Bytes)>;

    /// What came of it so far.
    fn figures(&self, now: Time) -> Figures;
}

/// What a node is made with.
pub(super) struct Place<'a> {
    /// What chance begins with; differs from node to node.
    pub(super) seed: u64,
    /// The node's ports, by the names of their segments in order.
    pub(super) ports: &'a [Port],
    /// A node of this name that is on one of these segments: the port here that leads there, and where it is.
    pub(super) neighbour: &'a dyn Fn(&str) -> Option<(usize, Port)>,
}
