//! What is known of devices, neighbours and routes, and for which flows it has changed. Nothing
//! here talks to the kernel: it is fed with what [`wire`](super::wire) has read.

#[cfg(test)]
pub(super) mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::Bound;

use outflow_media::{Time, group_mac};

use super::hop::{Changes, Flow, Hop, Mac, NoHop};
use super::wire::Heard;
use crate::limits::{NEIGHBOUR_CONFIRM_EVERY, NEIGHBOURS_CONFIRMED_AT_ONCE, ROUTED_FLOWS_MAX};

/// A device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) name: String,
    pub(super) kind: LinkKind,
    pub(super) mac: Option<Mac>,
    pub(super) broadcast: Option<Mac>,
    pub(super) mtu: u32,
    /// For packets of IPv6: routers of the link may have told a smaller one. None where the device has no IPv6.
    pub(super) mtu_v6: Option<u32>,
    /// Switched on, and with a carrier.
    pub(super) up: bool,
    pub(super) no_arp: bool,
    pub(super) point_to_point: bool,
}

/// What headers a device's packets have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LinkKind {
    Ethernet,
    Loopback,
    Other,
}

/// A neighbour on a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NextHop {
    pub(super) ifindex: u32,
    /// A route of IPv4 may lead by a gateway of IPv6 (RFC 8950).
    pub(super) address: IpAddr,
}

/// What is known of a neighbour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// The kernel is asking for its MAC address, or has it in its table only.
    Asked,
    Known {
        mac: Mac,
        /// Set by an administrator or a program: the kernel never doubts it.
        fixed: bool,
    },
    Failed,
}

/// An address of this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LocalAddress {
    pub(super) ifindex: u32,
    pub(super) ip: IpAddr,
    /// Bits of its network.
    pub(super) length: u8,
}

/// The kernel's answer when it was asked for a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Path {
    Via {
        next: NextHop,
        source: IpAddr,
        /// Where the route or what was learned of the path says so.
        mtu: Option<u32>,
    },
    Local,
    Broadcast,
    Encapsulated,
    /// None; an error number.
    Nowhere(i32),
}

/// Everything that is known.
#[derive(Debug, Default)]
pub(super) struct Tables {
    links: BTreeMap<u32, Link>,
    neighbours: BTreeMap<NextHop, Reach>,
    addresses: BTreeSet<LocalAddress>,
    /// Devices that were asked whether they transmit XDP frames, and what they said.
    transmits: BTreeMap<u32, bool>,
    /// Routes that were asked for.
    paths: BTreeMap<Flow, Path>,
    /// Neighbours that packets go through, and when they are to be confirmed next.
    used: BTreeMap<NextHop, Time>,
    /// What has changed since [`Tables::take_changes`].
    news: News,
    /// The kernel may be changing routes without saying so.
    unsettled: bool,
}

#[derive(Debug, Default)]
struct News {
    all: bool,
    flows: Vec<Flow>,
    next_hops: BTreeSet<NextHop>,
    interfaces: BTreeSet<u32>,
}

impl Tables {
    /// Forgets what events and dumps have told: some were lost, and a dump follows.
    pub(super) fn restart(&mut self) {
        self.links.clear();
        self.transmits.clear();
        self.neighbours.clear();
        self.addresses.clear();
        self.news.all = true;
    }

    /// Takes in an event or a part of a dump.
    pub(super) fn hear(&mut self, heard: Heard) {
        match heard {
            Heard::Link { index, link } => self.hear_link(index, link),
            Heard::MtuV6 { index, mtu } => self.hear_mtu_v6(index, mtu),
            Heard::Neighbour { at, reach } => self.hear_neighbour(at, reach),
            Heard::Address { address, there } => self.hear_address(address, there),
            Heard::Route { length: 0, .. } | Heard::Rules => self.news.all = true,
            Heard::Route { to, length } => self.hear_route(to, length),
            Heard::NextHops => self.unsettled = true,
        }
    }

    /// Routes go with the device that they lead by, without an event of their own and a moment
    /// after the device's; and some come back with it (`fib_sync_down_dev`, `fib_sync_up`,
    /// net/ipv4/fib_semantics.c).
    fn hear_link(&mut self, index: u32, mut link: Option<Link>) {
        let is_up = link.as_ref().is_some_and(|link| link.up);
        if let (Some(link), Some(old)) = (&mut link, self.links.get(&index))
            && link.mtu != old.mtu
        {
            // That of IPv6 becomes the same, a moment after the event (`addrconf_notify`, net/ipv6/addrconf.c).
            link.mtu_v6 = Some(link.mtu);
        }
        let old = match &link {
            Some(link) => self.links.insert(index, link.clone()),
            None => self.links.remove(&index),
        };
        if old == link {
            return;
        }
        if let (Some(old), Some(link)) = (&old, &link)
            && *link == (Link { mtu_v6: link.mtu_v6, ..old.clone() })
        {
            return self.touch_v6(index);
        }
        self.transmits.remove(&index);
        if is_up == old.is_some_and(|old| old.up) {
            self.news.interfaces.insert(index);
            return;
        }
        self.unsettled = true;
        self.doubt(|flow, path| {
            path.leads_by(index)
                || flow.interface == Some(index)
                || (is_up && matches!(path, Path::Nowhere(_)))
        });
    }

    fn hear_mtu_v6(&mut self, index: u32, mtu: u32) {
        let Some(link) = self.links.get_mut(&index) else { return };
        if link.mtu_v6.replace(mtu) != Some(mtu) {
            self.touch_v6(index);
        }
    }

    /// Something of IPv6 has changed of a device: flows of IPv4 are not concerned.
    fn touch_v6(&mut self, index: u32) {
        let concerned = |(flow, path): &(&Flow, &Path)| flow.to.is_ipv6() && path.leads_by(index);
        self.news.flows.extend(self.paths.iter().filter(concerned).map(|(flow, _)| *flow));
    }

    fn hear_neighbour(&mut self, at: NextHop, reach: Option<Reach>) {
        let old = match reach {
            Some(reach) => self.neighbours.insert(at, reach),
            None => self.neighbours.remove(&at),
        };
        let seen = |reach: Option<Reach>| match reach {
            None | Some(Reach::Asked) => None,
            Some(Reach::Known { mac, .. }) => Some(Some(mac)),
            Some(Reach::Failed) => Some(None),
        };
        if self.used.contains_key(&at) && seen(old) != seen(reach) {
            self.news.next_hops.insert(at);
        }
    }

    /// Renewed leases repeat what is known. With an address go the routes that prefer it, and with a device's last one
    /// all of its routes: without an event, and a moment later. One that comes may be what was missing to send from.
    /// Those of the other family stay: addresses of IPv6 come by themselves, some seconds after their device.
    fn hear_address(&mut self, address: LocalAddress, there: bool) {
        let is_new = if there {
            self.addresses.insert(address)
        } else {
            self.addresses.remove(&address);
            true
        };
        if is_new {
            self.unsettled = true;
            self.doubt(|flow, path| {
                let from_it = matches!(path, Path::Via { source, .. } if *source == address.ip);
                let is_missed = there
                    && matches!(path, Path::Nowhere(_))
                    && flow.interface.is_none_or(|index| index == address.ifindex);
                let is_concerned =
                    path.leads_by(address.ifindex) || from_it || is_missed || flow.from == Some(address.ip);
                is_concerned && flow.to.is_ipv4() == address.ip.is_ipv4()
            });
        }
    }

    fn hear_route(&mut self, to: IpAddr, length: u8) {
        let (first, last) = ends_of(to, length);
        let first = Flow { to: first, from: None, interface: None };
        let within = (Bound::Included(first), Bound::Unbounded);
        let flows: Vec<Flow> =
            self.paths.range(within).map(|(flow, _)| *flow).take_while(|flow| flow.to <= last).collect();
        for flow in flows {
            self.paths.remove(&flow);
            self.news.flows.push(flow);
        }
    }

    /// Forgets the routes for which this is true: they are asked for again.
    fn doubt(&mut self, mut is_doubtful: impl FnMut(&Flow, &Path) -> bool) {
        let flows = &mut self.news.flows;
        self.paths.retain(|flow, path| {
            let doubtful = is_doubtful(flow, path);
            if doubtful {
                flows.push(*flow);
            }
            !doubtful
        });
    }

    /// The flows for which something has changed since this was called last.
    pub(super) fn take_changes(&mut self) -> Changes {
        let News { all, mut flows, next_hops, interfaces } = core::mem::take(&mut self.news);
        if all {
            self.paths.clear();
            self.used.clear();
            return Changes { all, flows: Vec::new() };
        }
        if !next_hops.is_empty() || !interfaces.is_empty() {
            let touched = |path: &Path| {
                matches!(path, Path::Via { next, .. }
                    if next_hops.contains(next) || interfaces.contains(&next.ifindex))
            };
            flows.extend(self.paths.iter().filter(|(_, path)| touched(path)).map(|(flow, _)| *flow));
        }
        // Mostly sorted, which makes it cheap.
        flows.sort();
        flows.dedup();
        Changes { all, flows }
    }

    /// Whether routes may have changed without an event since this was called last.
    pub(super) fn take_unsettled(&mut self) -> bool {
        core::mem::take(&mut self.unsettled)
    }

    /// The route of a flow, if the kernel was asked for it.
    pub(super) fn path(&self, flow: &Flow) -> Option<Path> {
        self.paths.get(flow).copied()
    }

    /// How many routes are known.
    pub(super) fn paths(&self) -> usize {
        self.paths.len()
    }

    /// Takes in the kernel's answer for a flow.
    ///
    /// # Errors
    /// There are too many flows.
    pub(super) fn learn(&mut self, flow: Flow, path: Path) -> io::Result<()> {
        if self.paths.len() >= ROUTED_FLOWS_MAX && !self.paths.contains_key(&flow) {
            return Err(io::Error::other("too many receivers with addresses of their own"));
        }
        self.paths.insert(flow, path);
        Ok(())
    }

    /// Takes in the kernel's answer to a question that was asked before.
    pub(super) fn learn_again(&mut self, flow: Flow, path: Path) {
        if let Some(known) = self.paths.get_mut(&flow)
            && *known != path
        {
            *known = path;
            self.news.flows.push(flow);
        }
    }

    /// The `count` flows behind one, in order; from the first on at the end.
    pub(super) fn flows_after(&self, after: Option<Flow>, count: usize) -> Vec<Flow> {
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.paths.range((start, Bound::Unbounded)).map(|(flow, _)| *flow).take(count).collect()
    }

    /// Keeps only the flows for which this is true, and the neighbours that they need.
    pub(super) fn retain(&mut self, mut is_used: impl FnMut(&Flow) -> bool) {
        self.paths.retain(|flow, _| is_used(flow));
        let needed: BTreeSet<NextHop> = self
            .paths
            .values()
            .filter_map(|path| match path {
                Path::Via { next, .. } => Some(*next),
                _ => None,
            })
            .collect();
        self.used.retain(|next, _| needed.contains(next));
    }

    /// Whether a device transmits XDP frames, if it was asked.
    pub(super) fn transmits(&self, ifindex: u32) -> Option<bool> {
        self.transmits.get(&ifindex).copied()
    }

    /// Takes in what a device says of XDP frames.
    pub(super) fn hear_transmits(&mut self, ifindex: u32, transmits: bool) {
        if self.transmits.insert(ifindex, transmits).is_some_and(|old| old != transmits) {
            self.news.interfaces.insert(ifindex);
        }
    }

    /// Devices are asked again whether they transmit XDP frames: events were lost.
    pub(super) fn forget_transmits(&mut self) {
        let asked = core::mem::take(&mut self.transmits);
        self.news.interfaces.extend(asked.into_keys());
    }

    /// The hop of a route, as devices and neighbours are now.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) fn hop(&mut self, path: Path) -> Result<Hop, NoHop> {
        let (next, source, path_mtu) = match path {
            Path::Via { next, source, mtu } => (next, source, mtu),
            Path::Local => return Err(NoHop::Local),
            Path::Broadcast => return Err(NoHop::Broadcast),
            Path::Encapsulated => return Err(NoHop::Encapsulated),
            Path::Nowhere(number) => return Err(NoHop::NoRoute(io::Error::from_raw_os_error(number))),
        };
        // Of a device that has just come, the event is on its way.
        let link = self.links.get(&next.ifindex).ok_or(NoHop::Unresolved(next.address))?;
        let source_mac = match (link.kind, link.mac) {
            (LinkKind::Loopback, _) => return Err(NoHop::Local),
            (LinkKind::Ethernet, Some(mac)) => mac,
            _ => return Err(NoHop::NotEthernet(link.name.clone())),
        };
        if !link.up {
            return Err(NoHop::Down(link.name.clone()));
        }
        let target_mac = if next.address.is_multicast() {
            group_mac(next.address)
        } else {
            self.used.entry(next).or_insert(Time::ZERO);
            match self.neighbours.get(&next) {
                Some(Reach::Known { mac, .. }) => *mac,
                Some(Reach::Failed) => return Err(NoHop::Unreachable(next.address)),
                Some(Reach::Asked) | None => {
                    link.mac_without_asking().ok_or(NoHop::Unresolved(next.address))?
                }
            }
        };
        let xdp_transmit = self.transmits.get(&next.ifindex).copied().unwrap_or(false);
        let link_mtu = link.mtu.min(link.mtu_v6.filter(|_| source.is_ipv6()).unwrap_or(link.mtu));
        let mtu = path_mtu.map_or(link_mtu, |mtu| mtu.min(link_mtu));
        Ok(Hop { ifindex: next.ifindex, source_mac, target_mac, source, mtu, xdp_transmit })
    }

    /// Neighbours of which the kernel must make sure now.
    pub(super) fn due_for_confirmation(&mut self, now: Time) -> Vec<NextHop> {
        let doubtful =
            |at: &NextHop| matches!(self.neighbours.get(at), Some(Reach::Known { fixed: false, .. }));
        let mut due = Vec::new();
        for (at, when) in self.used.iter_mut().filter(|(at, when)| **when <= now && doubtful(at)) {
            if due.len() == NEIGHBOURS_CONFIRMED_AT_ONCE {
                break;
            }
            *when = now + NEIGHBOUR_CONFIRM_EVERY;
            due.push(*at);
        }
        due
    }
}

/// The first and the last address of a network.
fn ends_of(network: IpAddr, length: u8) -> (IpAddr, IpAddr) {
    match network {
        IpAddr::V4(ip) => {
            let hosts = u32::MAX.checked_shr(length.into()).unwrap_or(0);
            let (first, last) = (ip.to_bits() & !hosts, ip.to_bits() | hosts);
            (Ipv4Addr::from_bits(first).into(), Ipv4Addr::from_bits(last).into())
        }
        IpAddr::V6(ip) => {
            let hosts = u128::MAX.checked_shr(length.into()).unwrap_or(0);
            let (first, last) = (ip.to_bits() & !hosts, ip.to_bits() | hosts);
            (Ipv6Addr::from_bits(first).into(), Ipv6Addr::from_bits(last).into())
        }
    }
}

impl Path {
    fn leads_by(&self, index: u32) -> bool {
        matches!(self, Path::Via { next, .. } if next.ifindex == index)
    }
}

impl Link {
    /// Where the kernel does not ask, it takes these (`arp_constructor`, net/ipv4/arp.c; `ndisc_constructor`,
    /// net/ipv6/ndisc.c).
    fn mac_without_asking(&self) -> Option<Mac> {
        match (self.no_arp, self.point_to_point) {
            (true, _) => self.mac,
            (false, true) => self.broadcast,
            (false, false) => None,
        }
    }
}
