//! How far groups of IPv6 come: routers of DVMRP route IPv4, and send what comes of IPv6 to their own segments alone.

use core::net::{IpAddr, SocketAddr};
use std::collections::BTreeSet;

use super::model::{Network, NetworkError};
use super::nodes::NodeModel;

/// Names of segments.
type Segments<'n> = BTreeSet<&'n String>;

/// What may come where in a network.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reach<'n>(&'n Network);

impl<'n> Reach<'n> {
    pub(super) const fn of(network: &'n Network) -> Self {
        Reach(network)
    }

    /// Whether hosts get what simulated hosts send to a group of IPv6 that they want. What no way leads to at all is left
    /// alone: that is meant.
    pub(super) fn check_groups(self) -> Result<(), NetworkError> {
        for (name, traffic) in &self.0.traffic {
            let to = traffic.to.as_ref().and_then(|to| to.parse::<SocketAddr>().ok());
            let (Some(from), Some(group)) = (&traffic.from, to.map(|to| to.ip()).filter(IpAddr::is_ipv6))
            else {
                continue;
            };
            for host in self.hosts_that_want(group) {
                if self.is_connected(from, host) && !self.is_reached(from, host) {
                    let why = "routers of DVMRP route IPv4, and a group of IPv6 comes through one of them: \
                               write above = \"NODE\" at all of the others, or take a group of IPv4";
                    let (one, other) = (format!("traffic {name}"), host.clone());
                    return Err(NetworkError::Joined { one, other, why: why.to_owned() });
                }
            }
        }
        Ok(())
    }

    fn hosts_that_want(self, group: IpAddr) -> impl Iterator<Item = &'n String> {
        let wants = move |node: &NodeModel| {
            let NodeModel::Host(host) = node else { return false };
            host.wants.iter().any(|want| want.group == group)
        };
        self.0.nodes.iter().filter(move |(_, node)| wants(node)).map(|(name, _)| name)
    }

    /// Whether any way leads from one node to the other.
    fn is_connected(self, from: &String, to: &String) -> bool {
        let ways = |at: &String| self.between().flat_map(|name| self.others(name, at)).collect();
        closure(self.segments_of(from), ways).iter().any(|at| self.joins(at, to))
    }

    /// Whether a packet of a group of IPv6 comes from one host to another that wants it.
    fn is_reached(self, from: &String, to: &String) -> bool {
        // It is wanted on the segment of the host, and where routers join for what is wanted below.
        let asks = |at: &'n String| {
            self.routers_on(at).filter_map(|name| self.above(name)).chain(self.behind_ends(at)).collect()
        };
        let wanted = closure(self.segments_of(to), asks);
        let sends = |at: &String| {
            let through = self.routers_on(at).flat_map(|name| {
                let down = self.others(name, at).filter(|to| wanted.contains(to));
                down.chain(self.above(name))
            });
            through.chain(self.behind_ends(at)).collect()
        };
        closure(self.segments_of(from), sends).iter().any(|at| self.joins(at, to))
    }

    /// The other segments of ends on this one: what real programs join or pass on there is not known here.
    fn behind_ends(self, at: &String) -> impl Iterator<Item = &'n String> {
        self.0.ends.keys().flat_map(move |name| self.others(name, at))
    }

    /// What may pass packets on: routers, and real programs.
    fn between(self) -> impl Iterator<Item = &'n String> {
        let routers = self.0.nodes.iter().filter(|(_, node)| matches!(node, NodeModel::Router(_)));
        routers.map(|(name, _)| name).chain(self.0.ends.keys())
    }

    fn routers_on(self, segment: &String) -> impl Iterator<Item = &'n String> {
        self.between().filter(move |name| self.0.nodes.contains_key(*name) && self.joins(segment, name))
    }

    fn joins(self, segment: &String, name: &String) -> bool {
        self.0.segments.get(segment).is_some_and(|segment| segment.joins.contains(name))
    }

    fn segments_of(self, name: &String) -> Segments<'n> {
        self.0.segments.keys().filter(|segment| self.joins(segment, name)).collect()
    }

    /// The other segments of what is on this one.
    fn others(self, name: &String, at: &String) -> impl Iterator<Item = &'n String> {
        let mut all = self.segments_of(name);
        let is_there = all.remove(at);
        all.into_iter().filter(move |_| is_there)
    }

    /// The segment on which a router joins at the one above.
    fn above(self, router: &String) -> Option<&'n String> {
        let Some(NodeModel::Router(model)) = self.0.nodes.get(router) else { return None };
        let above = model.above.as_ref()?;
        self.segments_of(router).into_iter().find(|segment| self.joins(segment, above))
    }
}

/// All segments that are come to from these, one step after the other.
fn closure<'n>(from: Segments<'n>, step: impl Fn(&'n String) -> Vec<&'n String>) -> Segments<'n> {
    let (mut all, mut next): (_, Vec<_>) = (from.clone(), from.into_iter().collect());
    while let Some(at) = next.pop() {
        next.extend(step(at).into_iter().filter(|to| all.insert(to)));
    }
    all
}
