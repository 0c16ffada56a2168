//! What is between the kernel and the state machines: packets, timers and commands in, packets, entries and
//! events out. It makes system calls, but waits for nothing.

mod flows;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::time::Instant;

use outflow_media::Time;

use crate::error::Error;
use crate::event::{Counts, Event, Events, Snapshot};
use crate::forward::Flows;
use crate::interfaces::Interface;
use crate::limits::{PACKET_BYTES_MAX, PACKETS_AT_ONCE, SWEEP_EVERY};
use crate::querier::{Concerns, Downstream, Querier};
use crate::sys::{Routing, Upcall, VIFS_MAX, Vif};
use crate::upstream::Upstream;
use crate::wanted::Wanted;

/// Monotonic time as the state machines want it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    zero: Instant,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Clock { zero: Instant::now() }
    }

    pub(crate) fn now(self) -> Time {
        Time::ZERO + self.zero.elapsed()
    }

    pub(crate) fn instant(self, time: Time) -> Instant {
        self.zero + time.since(Time::ZERO)
    }
}

/// All state of the driver.
#[derive(Debug)]
pub(crate) struct Driver {
    pub(crate) clock: Clock,
    is_forwarding: bool,
    seed: u64,
    /// By the index of their interface.
    queriers: BTreeMap<u32, Querier>,
    upstream: Option<Upstream>,
    flows: Flows,
    sweep_at: Time,
    events: Events,
    counts: Counts,
    buffer: Vec<u8>,
    packet: Vec<u8>,
    /// Groups of which something changed, and whether it is all of them.
    dirty: BTreeSet<Ipv4Addr>,
    is_all_dirty: bool,
}

impl Driver {
    pub(crate) fn new(events: Events, forward: bool, seed: u64) -> Self {
        let clock = Clock::start();
        Driver {
            clock,
            is_forwarding: forward,
            seed,
            queriers: BTreeMap::new(),
            upstream: None,
            flows: Flows::default(),
            sweep_at: clock.now() + SWEEP_EVERY,
            events,
            counts: Counts::default(),
            buffer: vec![0; PACKET_BYTES_MAX],
            packet: Vec::new(),
            dirty: BTreeSet::new(),
            is_all_dirty: false,
        }
    }

    /// Reads what is there, but not for ever. True if that was all.
    pub(crate) fn read(&mut self, kernel: &Routing) -> bool {
        for _ in 0..PACKETS_AT_ONCE {
            let mut buffer = std::mem::take(&mut self.buffer);
            let received = kernel.receive(&mut buffer);
            match &received {
                Ok(received) => self.handle(kernel, &buffer[..received.length], received.interface),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => (),
                Err(_) => self.counts.read_errors += 1,
            }
            self.buffer = buffer;
            if received.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock) {
                return true;
            }
        }
        false
    }

    fn handle(&mut self, kernel: &Routing, bytes: &[u8], interface: u32) {
        let now = self.clock.now();
        if let Some(upcall) = Upcall::parse(bytes) {
            self.counts.upcalls += 1;
            match upcall {
                Some(upcall) if self.is_forwarding => self.handle_upcall(kernel, now, &upcall),
                _ => self.counts.upcalls_unknown += 1,
            }
            return;
        }
        self.counts.packets += 1;
        if let Some(querier) = self.queriers.get_mut(&interface) {
            querier.router.handle_packet(now, bytes);
        } else if let Some(upstream) = self.upstream.as_mut().filter(|one| one.interface.index == interface) {
            upstream.host.handle_packet(now, bytes);
        } else {
            self.counts.elsewhere += 1;
        }
    }

    /// When [`Driver::settle`] is to be called at the latest.
    pub(crate) fn next_timeout(&self) -> Instant {
        let routers = self.queriers.values().map(|querier| querier.router.next_timeout());
        let host = self.upstream.as_ref().and_then(|upstream| upstream.host.next_timeout());
        let next = routers.chain(host).fold(self.sweep_at, Time::min);
        self.clock.instant(next)
    }

    /// Does what is due, and all that follows from what came in: answers first, for which hosts wait.
    pub(crate) fn settle(&mut self, kernel: &Routing) {
        let now = self.clock.now();
        for querier in self.queriers.values_mut() {
            if querier.router.next_timeout() <= now {
                querier.router.handle_timeout(now);
            }
            let (index, router) = (querier.interface.index, &mut querier.router);
            while let Some(to) = router.poll_transmit(&mut self.packet) {
                send(kernel, &self.packet, to, index, &mut self.counts);
            }
            while let Some((event, concerns)) = querier.poll() {
                self.events.tell(event);
                match concerns {
                    Concerns::Group(group) => _ = self.dirty.insert(group),
                    Concerns::All => self.is_all_dirty = true,
                }
            }
        }
        self.settle_groups(kernel, now);
        if let Some(upstream) = &mut self.upstream {
            upstream.host.handle_timeout(now);
            while let Some(to) = upstream.host.poll_transmit(&mut self.packet) {
                send(kernel, &self.packet, to, upstream.interface.index, &mut self.counts);
            }
        }
        if self.sweep_at <= now {
            self.sweep_at = now + SWEEP_EVERY;
            self.sweep(kernel, now);
        }
    }

    /// What changed of groups goes to the kernel and upstream.
    fn settle_groups(&mut self, kernel: &Routing, now: Time) {
        if std::mem::take(&mut self.is_all_dirty) {
            let wanted = self.queriers.values().flat_map(|querier| querier.router.groups());
            let wanted = wanted.filter_map(|(group, _)| v4(group)).collect::<Vec<_>>();
            self.dirty.extend(wanted);
            self.dirty.extend(self.flows.pairs(None).iter().map(|pair| pair.group));
        }
        for group in std::mem::take(&mut self.dirty) {
            for pair in self.flows.pairs(Some(group)) {
                self.route(kernel, pair);
            }
            let wanted = self.wanted(group);
            if let Some(upstream) = &mut self.upstream
                && upstream.set(now, group, wanted.as_ref()).is_err()
            {
                self.counts.upstream_refused += 1;
            }
        }
    }

    /// What all interfaces below want of a group.
    fn wanted(&self, group: Ipv4Addr) -> Option<Wanted> {
        self.queriers.values().filter_map(|querier| querier.wanted(group)).reduce(Wanted::or)
    }

    /// Adds an interface with hosts.
    pub(crate) fn add(&mut self, kernel: &Routing, downstream: Downstream) -> Result<(), Error> {
        let index = downstream.interface.index;
        if downstream.settings.link.address.is_ipv6() {
            return Err(Error::Family(downstream.settings.link.address));
        }
        let vif = self.add_vif(kernel, &downstream.interface)?;
        let now = self.clock.now();
        let querier = Querier::new(now, vif, downstream).inspect_err(|_| remove_vif(kernel, vif))?;
        self.queriers.insert(index, querier);
        self.is_all_dirty = true;
        Ok(())
    }

    /// Sets the interface on which is joined what is wanted elsewhere.
    pub(crate) fn set_upstream(&mut self, kernel: &Routing, to: Option<Interface>) -> Result<(), Error> {
        if let Some(old) = self.upstream.take() {
            self.leave_all(kernel, old);
        }
        let Some(interface) = to else { return Ok(()) };
        let vif = self.add_vif(kernel, &interface)?;
        self.upstream = Some(Upstream::new(self.clock.now(), vif, interface, self.seed));
        self.is_all_dirty = true;
        Ok(())
    }

    /// Says upstream that nothing is wanted any more: once, as nobody will be there to say it again.
    fn leave_all(&mut self, kernel: &Routing, mut old: Upstream) {
        let now = self.clock.now();
        let groups = self.queriers.values().flat_map(|querier| querier.router.groups());
        for group in groups.filter_map(|(group, _)| v4(group)).collect::<BTreeSet<_>>() {
            let _never_joined = old.set(now, group, None);
        }
        old.host.handle_timeout(now);
        while let Some(to) = old.host.poll_transmit(&mut self.packet) {
            send(kernel, &self.packet, to, old.interface.index, &mut self.counts);
        }
        self.forget(kernel, old.vif);
    }

    /// Removes an interface with hosts, by its name: it may be gone already.
    pub(crate) fn remove(&mut self, kernel: &Routing, name: &str) -> Result<(), Error> {
        let index = self.queriers.iter().find(|(_, querier)| &*querier.name == name).map(|(index, _)| *index);
        let Some(querier) = index.and_then(|index| self.queriers.remove(&index)) else {
            return Err(Error::Unknown(name.to_owned()));
        };
        for (group, _) in querier.router.groups() {
            self.dirty.extend(v4(group));
            self.events.tell(Event::Gone { interface: querier.name.clone(), group });
        }
        self.forget(kernel, querier.vif);
        Ok(())
    }

    fn forget(&mut self, kernel: &Routing, vif: Vif) {
        self.remove_flows_from(kernel, vif);
        remove_vif(kernel, vif);
        self.is_all_dirty = true;
    }

    fn add_vif(&self, kernel: &Routing, interface: &Interface) -> Result<Vif, Error> {
        let upstream = self.upstream.as_ref();
        if self.queriers.contains_key(&interface.index)
            || upstream.is_some_and(|one| one.interface.index == interface.index)
        {
            return Err(Error::Twice(interface.name.clone()));
        }
        let mut used = self.queriers.values().map(|one| one.vif).collect::<BTreeSet<_>>();
        used.extend(upstream.map(|one| one.vif));
        let vif = (0..VIFS_MAX as Vif).find(|vif| !used.contains(vif));
        let vif = vif.ok_or_else(|| Error::TooManyInterfaces(interface.name.clone()))?;
        let added = kernel.add_vif(vif, interface.index);
        added.map_err(|error| Error::AddInterface { name: interface.name.clone(), error })?;
        Ok(vif)
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        let refused = |one: &Upstream| one.host.counters().iter().filter(|(_, times)| *times > 0).collect();
        Snapshot {
            interfaces: self.queriers.values().map(Querier::state).collect(),
            upstream: self.upstream.as_ref().map(|one| (one.name.clone(), refused(one))),
            flows: self.flows.iter().filter_map(|(pair, entry)| self.flow(pair, entry)).collect(),
            counts: Counts { events_missed: self.events.missed, ..self.counts },
        }
    }
}

const fn v4(address: IpAddr) -> Option<Ipv4Addr> {
    match address {
        IpAddr::V4(address) => Some(address),
        IpAddr::V6(_) => None,
    }
}

fn remove_vif(kernel: &Routing, vif: Vif) {
    // It is gone with its device, if that is.
    let _gone_already = kernel.remove_vif(vif);
}

fn send(kernel: &Routing, packet: &[u8], to: IpAddr, interface: u32, counts: &mut Counts) {
    let is_sent = v4(to).is_some_and(|to| kernel.send(packet, to, interface).is_ok());
    counts.send_errors += u64::from(!is_sent);
}
