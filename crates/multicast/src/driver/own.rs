//! The relay itself as a source and a member among routers of DVMRP: where neighbours want what it sends, and
//! that it wants what it receives.
//!
//! What it sends has one address of this machine as its source wherever neighbours are, and that address is a
//! network of its own (/32), with a route. So neighbours depend on this router for it, prune and graft it and
//! say levels, as they do for sources behind it, and where it reaches one over two ways, one is taken.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};

use outflow_media::Time;
use outflow_routing::membership::Level;

use crate::event::{Event, Events, Name, OwnFlow};
use crate::forward::{Flows, Relayed};
use crate::limits::OWN_EVERY;
use crate::neighbours::Dvmrp;
use crate::ports::Ports;
use crate::querier::Querier;

/// What is known of it.
#[derive(Debug, Default)]
pub(super) struct Own {
    /// Groups that the relay receives, and the level that it wants of each.
    received: BTreeMap<IpAddr, Level>,
    /// What was told of groups that it sends.
    told: BTreeMap<Ipv4Addr, OwnFlow>,
    /// Groups of which something changed.
    dirty: BTreeSet<IpAddr>,
    /// When its trees are next said to be in use: now, without.
    at: Option<Time>,
}

impl Own {
    /// Something changed of a group.
    pub(super) fn touch(&mut self, group: IpAddr) {
        self.dirty.insert(group);
    }

    /// The relay sends or receives other groups, or from another address.
    pub(super) fn restart(&mut self) {
        self.at = None;
        self.dirty.extend(self.told.keys().map(|group| IpAddr::V4(*group)));
    }

    /// When [`Own::settle`] has something to do.
    pub(super) const fn next_timeout(&self) -> Option<Time> {
        self.at
    }

    pub(super) fn flows(&self) -> impl Iterator<Item = &OwnFlow> {
        self.told.values()
    }

    /// The relay receives these groups at these levels from now on.
    pub(super) fn set_received(&mut self, groups: BTreeMap<IpAddr, Level>) {
        self.received = groups;
        self.restart();
    }

    /// Gives the relay an address among routers, and has trees grow for what it sends and receives.
    pub(super) fn settle(
        &mut self,
        now: Time,
        dvmrp: Option<&mut Dvmrp>,
        relayed: &BTreeMap<IpAddr, Relayed>,
        ports: &Ports,
    ) {
        let Some(dvmrp) = dvmrp else { return self.restart() };
        let is_there = !relayed.is_empty() || !self.received.is_empty();
        let address = is_there.then(|| own_address(dvmrp, ports)).flatten();
        if dvmrp.set_own(now, address) {
            self.restart();
        }
        if address.is_none() || self.at.is_some_and(|at| at > now) {
            return;
        }
        self.at = Some(now + OWN_EVERY);
        let all = relayed.iter().filter(|(_, relayed)| **relayed == Relayed::All);
        let received = self.received.iter().filter_map(|(group, level)| Some((v4(*group)?, *level)));
        dvmrp.settle_own(now, all.filter_map(|(group, _)| v4(*group)), received.collect());
        self.dirty.extend(relayed.keys());
    }

    /// Tells where neighbours want what the relay sends, if that changed.
    pub(super) fn tell(&mut self, dvmrp: Option<&Dvmrp>, around: &Around<'_>, events: &mut Events) {
        for group in std::mem::take(&mut self.dirty).into_iter().filter_map(v4) {
            let now = dvmrp.and_then(|dvmrp| around.flow(dvmrp, group));
            if now.as_ref() == self.told.get(&group) {
                continue;
            }
            match now {
                Some(flow) => {
                    self.told.insert(group, flow.clone());
                    events.tell(Event::OwnFlow(flow));
                }
                None => {
                    let Some(last) = self.told.remove(&group) else { continue };
                    events.tell(Event::OwnFlow(OwnFlow { by: Vec::new(), ..last }));
                }
            }
        }
    }
}

/// An address, if it is one of IPv4, as all of DVMRP are.
pub(super) const fn v4(address: IpAddr) -> Option<Ipv4Addr> {
    match address {
        IpAddr::V4(address) => Some(address),
        IpAddr::V6(_) => None,
    }
}

/// The one that it has, or else the lowest of those toward neighbours.
fn own_address(dvmrp: &Dvmrp, ports: &Ports) -> Option<Ipv4Addr> {
    let there = ports.interfaces().filter(|one| dvmrp.has_neighbours_on(one.index));
    let addresses = there.filter_map(|one| v4(one.address)).collect::<BTreeSet<_>>();
    dvmrp.own().filter(|own| addresses.contains(own)).or_else(|| addresses.first().copied())
}

/// What is known of what the relay sends, and of those that want it.
pub(super) struct Around<'a> {
    pub(super) relayed: &'a BTreeMap<IpAddr, Relayed>,
    pub(super) queriers: &'a BTreeMap<u32, Querier>,
    pub(super) ports: &'a Ports,
    pub(super) flows: &'a Flows,
}

impl Around<'_> {
    /// Of what the relay sends whole, hosts where neighbours are want it from the same address. Of what the
    /// kernel forwards it sends what is wanted at a lower level.
    fn flow(&self, dvmrp: &Dvmrp, group: Ipv4Addr) -> Option<OwnFlow> {
        let source = dvmrp.own()?;
        let wants: Vec<(u32, Level)> = match self.relayed.get(&group.into())? {
            Relayed::All => {
                let hosts = self.queriers.iter().filter_map(|(index, querier)| {
                    let wanted = querier.router.wanted(group.into())?;
                    wanted.receives(source.into()).then_some((*index, wanted.level))
                });
                let neighbours = dvmrp.wants(source, group).map(|(index, level, _)| (index, level));
                hosts.chain(neighbours).collect()
            }
            Relayed::Lower => {
                let pairs =
                    self.flows.pairs(Some(group.into())).into_iter().filter_map(|pair| self.flows.get(pair));
                pairs.flat_map(|entry| &entry.route.relay).copied().collect()
            }
        };
        let mut by: BTreeMap<Name, Level> = BTreeMap::new();
        for (index, level) in wants.into_iter().filter(|(index, _)| dvmrp.has_neighbours_on(*index)) {
            let Some(port) = self.ports.get(index) else { continue };
            by.entry(Name::clone(&port.name)).and_modify(|best| *best = level.min(*best)).or_insert(level);
        }
        Some(OwnFlow { group, source, by: by.into_iter().collect() }).filter(|flow| !flow.by.is_empty())
    }
}
