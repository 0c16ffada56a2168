//! Which interfaces take part and as what; they may go and come back.

use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;

use outflow_media::Time;
use outflow_routing::membership::Family;

use super::Driver;
use super::role::Role;
use crate::error::Error;
use crate::event::{Event, Name};
use crate::interfaces::{Addresses, Interface};
use crate::limits::{PORTS_MAX, REFRESH_INTERVAL, REFRESH_INTERVAL_MIN};
use crate::neighbours::{Dvmrp, Neighbours};
use crate::querier::{Downstream, Querier};
use crate::sys::Routing;
use crate::upstream::Upstream;

impl Driver {
    /// Adds an interface with hosts.
    pub(crate) fn add(&mut self, kernel: &Routing, downstream: Downstream) -> Result<(), Error> {
        let name = downstream.interface.name.clone();
        if self.roles.get(&name).is_some_and(|role| role.hosts.is_some() || role.is_upstream) {
            return Err(Error::Twice(name));
        }
        self.start_hosts(kernel, downstream.clone())?;
        self.roles.entry(name).or_default().hosts = Some(downstream);
        Ok(())
    }

    /// Adds an interface with neighbours.
    pub(crate) fn add_neighbours(&mut self, kernel: &Routing, neighbours: Neighbours) -> Result<(), Error> {
        if self.family == Family::V6 {
            return Err(Error::Dvmrp);
        }
        let Neighbours { interface, metric } = neighbours;
        let name = interface.name.clone();
        if let Some(above) = self.upstream_name() {
            return Err(Error::UpstreamAndNeighbours { upstream: above, neighbours: name });
        }
        if self.roles.get(&name).is_some_and(|role| role.metric.is_some()) {
            return Err(Error::Twice(name));
        }
        self.start_neighbours(kernel, &interface, metric).inspect_err(|_| self.end_dvmrp(kernel))?;
        self.roles.entry(name).or_default().metric = Some(metric);
        Ok(())
    }

    /// Sets the interface on which is joined what is wanted elsewhere.
    pub(crate) fn set_upstream(&mut self, kernel: &Routing, to: Option<Interface>) -> Result<(), Error> {
        if let Some(old) = self.upstream.take() {
            self.leave_all(kernel, old);
        }
        self.roles.values_mut().for_each(|role| role.is_upstream = false);
        self.roles.retain(|_, role| !role.is_empty());
        let Some(interface) = to else { return Ok(()) };
        let name = interface.name.clone();
        if let Some((other, _)) = self.roles.iter().find(|(_, role)| role.metric.is_some()) {
            return Err(Error::UpstreamAndNeighbours { upstream: name, neighbours: other.clone() });
        }
        if self.roles.contains_key(&name) {
            return Err(Error::Twice(name));
        }
        self.start_upstream(kernel, interface)?;
        self.roles.entry(name).or_default().is_upstream = true;
        Ok(())
    }

    fn upstream_name(&self) -> Option<String> {
        self.roles.iter().find(|(_, role)| role.is_upstream).map(|(name, _)| name.clone())
    }

    /// Removes an interface with hosts or neighbours, by its name: it may be gone already.
    pub(crate) fn remove(&mut self, kernel: &Routing, name: &str) -> Result<(), Error> {
        if self.roles.get(name).is_none_or(|role| role.is_upstream) {
            return Err(Error::Unknown(name.to_owned()));
        }
        self.roles.remove(name);
        self.end_dvmrp(kernel);
        self.take_down(kernel, name);
        Ok(())
    }

    /// Says to all that nothing is wanted, and that nothing can be reached over us, any more.
    pub(crate) fn end(&mut self, kernel: &Routing) {
        if let Some(old) = self.upstream.take() {
            self.leave_all(kernel, old);
        }
        self.roles.clear();
        self.end_dvmrp(kernel);
    }

    fn start_hosts(&mut self, kernel: &Routing, downstream: Downstream) -> Result<(), Error> {
        let (interface, behind) = (downstream.interface.clone(), downstream.sources.clone());
        self.take_port(kernel, &interface, false)?;
        let now = self.clock.now();
        let querier = Querier::new(now, downstream);
        let added = querier.and_then(|querier| {
            let metric = self.roles.get(&interface.name).and_then(|role| role.metric);
            // Its neighbours need not begin again because there are hosts, too.
            let is_known = |dvmrp: &Dvmrp| dvmrp.has_neighbours_on(interface.index) && behind.is_empty();
            if let Some(dvmrp) = self.dvmrp.as_mut().filter(|dvmrp| !is_known(dvmrp)) {
                dvmrp.add(now, &interface, metric, &behind)?;
            }
            self.queriers.insert(interface.index, querier);
            Ok(())
        });
        self.is_all_dirty = true;
        added.inspect_err(|_| self.give_port(kernel, interface.index))
    }

    fn start_neighbours(&mut self, kernel: &Routing, interface: &Interface, metric: u8) -> Result<(), Error> {
        self.take_port(kernel, interface, false)?;
        let now = self.clock.now();
        if self.dvmrp.is_none() {
            // What was forwarded follows routes from now on: the kernel is to ask again.
            self.remove_flows(kernel, |_| true);
            let mut dvmrp = Dvmrp::new(self.generation, self.seed);
            for querier in self.queriers.values() {
                dvmrp.add(now, &querier.interface, None, querier.sources())?;
            }
            self.dvmrp = Some(dvmrp);
        }
        let behind = self.queriers.get(&interface.index).map_or(&[][..], Querier::sources);
        let dvmrp = self.dvmrp.as_mut().ok_or(Error::Ended)?;
        let added = dvmrp.add(now, interface, Some(metric), behind);
        self.is_all_dirty = true;
        added.inspect_err(|_| self.give_port(kernel, interface.index))
    }

    fn start_upstream(&mut self, kernel: &Routing, interface: Interface) -> Result<(), Error> {
        self.take_port(kernel, &interface, true)?;
        self.upstream = Some(Upstream::new(self.clock.now(), interface, self.seed));
        self.is_all_dirty = true;
        Ok(())
    }

    /// Has an interface take part, if it does not yet: in the kernel's table while that has room.
    fn take_port(&mut self, kernel: &Routing, interface: &Interface, is_upstream: bool) -> Result<(), Error> {
        if self.ports.get(interface.index).is_some() {
            return Ok(());
        }
        let name = || interface.name.clone();
        if self.ports.len() >= PORTS_MAX {
            return Err(Error::TooManyInterfaces(name()));
        }
        let vif = self.ports.free(is_upstream);
        if let Some(vif) = vif {
            let added = kernel.add_vif(vif, interface.index);
            added.map_err(|error| Error::AddInterface { name: name(), error })?;
        }
        if self.is_listened(vif) {
            let watched = self.watch(interface.index, vif.is_none());
            watched.map_err(|error| Error::Watch { name: name(), error }).inspect_err(|_| {
                vif.into_iter().for_each(|vif| _ = kernel.remove_vif(vif));
            })?;
        }
        self.ports.insert(vif, interface.clone());
        Ok(())
    }

    /// Reads in user space messages that come in by an interface, and packets, if the kernel forwards none from there.
    fn watch(&mut self, index: u32, has_data: bool) -> io::Result<()> {
        self.listener.add(index)?;
        if !self.is_forwarding || !has_data {
            return Ok(());
        }
        self.forwarder.watch(index).inspect_err(|_| self.listener.remove(index))
    }

    /// An interface that is nothing any more takes no part.
    fn give_port(&mut self, kernel: &Routing, index: u32) {
        let has_neighbours = self.dvmrp.as_ref().is_some_and(|dvmrp| dvmrp.has_neighbours_on(index));
        let is_above = self.upstream.as_ref().is_some_and(|one| one.interface.index == index);
        if has_neighbours || is_above || self.queriers.contains_key(&index) {
            return;
        }
        let Some(id) = self.ports.id(index) else { return };
        self.remove_flows(kernel, |entry| entry.parent == id);
        self.ports.remove(index);
        if let Some(vif) = id.vif {
            // It is gone with its device, if that is.
            let _gone_already = kernel.remove_vif(vif);
        } else {
            self.forwarder.unwatch(index);
        }
        if self.is_listened(id.vif) {
            self.listener.remove(index);
        }
        self.is_all_dirty = true;
    }

    /// Ends DVMRP once no interface is to have neighbours, and tells these.
    fn end_dvmrp(&mut self, kernel: &Routing) {
        if self.roles.values().any(|role| role.metric.is_some()) {
            return;
        }
        let Some(mut dvmrp) = self.dvmrp.take() else { return };
        dvmrp.router.shut_down();
        while let Some((index, to)) = dvmrp.poll_transmit(&mut self.out.packet) {
            self.out.send(kernel, to, index);
        }
        self.remove_flows(kernel, |_| true);
        self.is_all_dirty = true;
    }

    /// Says upstream that nothing is wanted any more: once, as `old` is dropped then and cannot say it again.
    fn leave_all(&mut self, kernel: &Routing, mut old: Upstream) {
        let now = self.clock.now();
        let groups = self.queriers.values().flat_map(|querier| querier.router.groups());
        for group in groups.map(|(group, _)| group).collect::<BTreeSet<IpAddr>>() {
            let _never_joined = old.set(now, group, None);
        }
        old.host.handle_timeout(now);
        self.out.send_all(kernel, old.interface.index, |out| old.host.poll_transmit(out));
        self.give_port(kernel, old.interface.index);
    }

    /// All that an interface was ends; what it is to be is remembered.
    fn take_down(&mut self, kernel: &Routing, name: &str) {
        let Some(port) = self.ports.named(name) else { return };
        let (index, name) = (port.interface.index, Name::clone(&port.name));
        if let Some(querier) = self.queriers.remove(&index) {
            for (group, _) in querier.router.groups() {
                self.dirty.insert(group);
                self.events.tell(Event::Gone { interface: Name::clone(&name), group });
            }
        }
        if let Some(dvmrp) = &mut self.dvmrp {
            dvmrp.remove(self.clock.now(), index);
        }
        if let Some(upstream) = self.upstream.take_if(|one| one.interface.index == index) {
            self.leave_all(kernel, upstream);
        }
        self.give_port(kernel, index);
    }

    fn bring_up(&mut self, kernel: &Routing, interface: &Interface) -> Result<(), Error> {
        let Some(role) = self.roles.get(&interface.name) else { return Ok(()) };
        let Role { hosts, metric, is_upstream } = role;
        let (hosts, metric, is_upstream) = (hosts.clone(), *metric, *is_upstream);
        if let Some(mut hosts) = hosts {
            hosts.settings.link = interface.link();
            hosts.interface = interface.clone();
            self.start_hosts(kernel, hosts)?;
        }
        if let Some(metric) = metric {
            self.start_neighbours(kernel, interface, metric)?;
        }
        if is_upstream {
            self.start_upstream(kernel, interface.clone())?;
        }
        Ok(())
    }

    /// Something changed of the machine's interfaces: the driver looks at them that soon.
    pub(crate) fn handle_interfaces_changed(&mut self) {
        let at = self.refreshed_at + REFRESH_INTERVAL_MIN;
        self.refresh_at = self.refresh_at.min(at.max(self.clock.now()));
    }

    /// Takes down what is gone, and brings up what is back or has another address.
    pub(super) fn refresh(&mut self, kernel: &Routing, now: Time) {
        (self.refreshed_at, self.refresh_at) = (now, now + REFRESH_INTERVAL);
        let Ok(all) = Addresses::list(self.family) else {
            self.counts.read_errors += 1;
            return;
        };
        for name in self.roles.keys().cloned().collect::<Vec<_>>() {
            let before = self.ports.named(&name).map(|port| port.interface.clone());
            let after = all.find(&name).ok();
            if before == after {
                continue;
            }
            if before.is_some() {
                self.take_down(kernel, &name);
                self.events.tell(Event::InterfaceGone { interface: name.as_str().into() });
            }
            let Some(interface) = after else { continue };
            if self.bring_up(kernel, &interface).is_ok() {
                let address = interface.address;
                self.events.tell(Event::InterfaceBack { interface: name.as_str().into(), address });
            } else {
                self.take_down(kernel, &name);
                self.counts.interfaces_refused += 1;
            }
        }
    }
}
