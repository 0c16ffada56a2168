//! What is between the kernel and the state machines: packets, timers and commands in, packets, entries and
//! events out. It makes system calls, but waits for nothing.

mod flows;
mod out;
mod own;
mod role;
mod roles;
mod trees;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use outflow_kernel::thin::Filter;
use outflow_media::Time;
use outflow_packet::gmc::Described;
use outflow_routing::membership::{Family, Level, Reason, Wants};
use tokio::sync::mpsc;

use self::out::Out;
use self::own::{Around, Own};
use self::role::Role;
use crate::clock::Clock;
use crate::error::Error;
use crate::event::{Counts, Events, LevelReported, Name, Snapshot};
use crate::forward::{Flows, Relayed};
use crate::forwarder::{Arrival, Forwarder};
use crate::limits::{PACKET_BYTES_MAX, PACKETS_AT_ONCE, REFRESH_INTERVAL, SWEEP_EVERY, UNWANTED_EVERY};
use crate::neighbours::{Dvmrp, is_dvmrp};
use crate::options::Options;
use crate::ports::Ports;
use crate::querier::{Concerns, Querier};
use crate::sys::{Listener, Received, Routing, Upcall, Vif};
use crate::timing::Stopwatch;
use crate::upstream::Upstream;

/// All state of the driver.
#[derive(Debug)]
pub(crate) struct Driver {
    pub(crate) clock: Clock,
    family: Family,
    is_forwarding: bool,
    seed: u64,
    /// What generations of DVMRP begin with.
    generation: u32,
    /// What interfaces are for, by their name.
    roles: BTreeMap<String, Role>,
    /// Those that are there.
    ports: Ports,
    /// Of those of them that the kernel's table has no room for; of IPv6, of all.
    listener: Arc<Listener>,
    forwarder: Forwarder,
    refreshed_at: Time,
    refresh_at: Time,
    /// By the index of their interface.
    queriers: BTreeMap<u32, Querier>,
    upstream: Option<Upstream>,
    /// As soon as an interface has neighbours.
    dvmrp: Option<Dvmrp>,
    flows: Flows,
    /// What the relay sends itself.
    relayed: BTreeMap<IpAddr, Relayed>,
    own: Own,
    /// What packets of groups are that do not say it themselves.
    described: BTreeMap<IpAddr, Arc<Described>>,
    sweep_at: Time,
    unwanted_at: Time,
    events: Events,
    counts: Counts,
    buffer: Vec<u8>,
    out: Out,
    watch: Stopwatch,
    /// Groups of which something changed, and whether it is all of them.
    dirty: BTreeSet<IpAddr>,
    is_all_dirty: bool,
}

impl Driver {
    /// One without interfaces, and where it is to be given from what user space has forwarded in vain.
    pub(crate) fn new(
        listener: Arc<Listener>,
        events: Events,
        (options, filter): (&Options, Result<Arc<Filter>, String>),
        (seed, generation): (u64, u32),
    ) -> (Self, mpsc::Receiver<Arrival>) {
        let clock = Clock::start();
        let now = clock.now();
        let (forwarder, arrivals) = Forwarder::new(clock, options.family, filter);
        let driver = Driver {
            clock,
            family: options.family,
            is_forwarding: options.forward,
            seed,
            generation,
            roles: BTreeMap::new(),
            ports: Ports::default(),
            listener,
            forwarder,
            refreshed_at: now,
            refresh_at: now + REFRESH_INTERVAL,
            queriers: BTreeMap::new(),
            upstream: None,
            dvmrp: None,
            flows: Flows::default(),
            relayed: BTreeMap::new(),
            own: Own::default(),
            described: BTreeMap::new(),
            sweep_at: now + SWEEP_EVERY,
            unwanted_at: now + UNWANTED_EVERY,
            events,
            counts: Counts::default(),
            buffer: vec![0; PACKET_BYTES_MAX],
            out: Out::default(),
            watch: Stopwatch::new(options.timings),
            dirty: BTreeSet::new(),
            is_all_dirty: false,
        };
        (driver, arrivals)
    }

    /// Reads what is there of the raw socket, but not for ever. True if that was all.
    pub(crate) fn read(&mut self, kernel: &Routing) -> bool {
        self.read_from(
            |buffer| kernel.receive(buffer),
            |driver, bytes, received| driver.handle(kernel, bytes, received),
        )
    }

    /// Reads what is there of messages that do not come by the raw socket, but not for ever. True if that was all.
    pub(crate) fn listen(&mut self, kernel: &Routing) -> bool {
        let listener = Arc::clone(&self.listener);
        self.read_from(
            |buffer| listener.receive(buffer),
            |driver, bytes, received| {
                // All others come from the raw socket.
                if driver.is_listened_to(received.interface) {
                    driver.handle_message(kernel, driver.clock.now(), bytes, received);
                }
            },
        )
    }

    fn read_from(
        &mut self,
        mut receive: impl FnMut(&mut [u8]) -> io::Result<Received>,
        mut handle: impl FnMut(&mut Self, &[u8], &Received),
    ) -> bool {
        for _ in 0..PACKETS_AT_ONCE {
            let mut buffer = std::mem::take(&mut self.buffer);
            let received = receive(&mut buffer);
            match &received {
                Ok(received) => handle(self, &buffer[..received.length.min(buffer.len())], received),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => (),
                Err(_) => self.counts.read_errors += 1,
            }
            self.buffer = buffer;
            if received.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock) {
                return true;
            }
        }
        false
    }

    /// Whether an interface takes part whose messages do not come by the raw socket: it has no number in the kernel's
    /// table, or they are of MLD.
    fn is_listened_to(&self, interface: u32) -> bool {
        self.ports.id(interface).is_some_and(|id| self.is_listened(id.vif))
    }

    fn is_listened(&self, vif: Option<Vif>) -> bool {
        vif.is_none() || self.family == Family::V6
    }

    /// Takes a packet or an upcall of the raw socket.
    fn handle(&mut self, kernel: &Routing, bytes: &[u8], received: &Received) {
        let now = self.clock.now();
        if let Some(upcall) = Upcall::parse(self.family, bytes) {
            self.counts.upcalls += 1;
            match upcall {
                Some(upcall) if self.is_forwarding => self.handle_upcall(kernel, now, &upcall),
                _ => self.counts.upcalls_unknown += 1,
            }
        } else if !self.is_listened_to(received.interface) {
            self.handle_message(kernel, now, bytes, received);
        }
    }

    /// Takes a packet, and answers at once: hosts wait for that, and not for what else follows.
    fn handle_message(&mut self, kernel: &Routing, now: Time, bytes: &[u8], received: &Received) {
        self.counts.packets += 1;
        let interface = received.interface;
        if self.family == Family::V4 && is_dvmrp(bytes) {
            self.handle_dvmrp(now, bytes, interface);
        } else if let Some(querier) = self.queriers.get_mut(&interface) {
            self.watch.received(received.came_ns);
            querier.router.handle_packet(now, bytes);
            answer(kernel, querier, &mut self.out, &mut self.watch);
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
        let dvmrp = self.dvmrp.as_ref();
        let trees = dvmrp.and_then(|one| one.router.next_timeout());
        let unwanted = dvmrp.map(|_| self.unwanted_at);
        let own = dvmrp.and_then(|_| self.own.next_timeout());
        let others = host.into_iter().chain(trees).chain(unwanted).chain(own);
        let next = routers.chain(others).fold(self.sweep_at.min(self.refresh_at), Time::min);
        self.clock.instant(next)
    }

    /// Does what is due, and all that follows from what came in and was answered.
    pub(crate) fn settle(&mut self, kernel: &Routing) {
        let now = self.clock.now();
        if self.refresh_at <= now {
            self.refresh(kernel, now);
        }
        for querier in self.queriers.values_mut() {
            if querier.router.next_timeout() <= now {
                querier.router.handle_timeout(now);
                self.out.send_all(kernel, querier.interface.index, |out| querier.router.poll_transmit(out));
            }
        }
        self.watch.begin();
        for querier in self.queriers.values_mut() {
            while let Some((event, concerns)) = querier.poll() {
                self.events.tell(event);
                match concerns {
                    Concerns::Group(group) => _ = self.dirty.insert(group),
                    Concerns::All => self.is_all_dirty = true,
                }
            }
        }
        self.settle_groups(kernel, now);
        self.own.settle(now, self.dvmrp.as_mut(), &self.relayed, &self.ports);
        self.settle_dvmrp(kernel, now);
        let (relayed, queriers) = (&self.relayed, &self.queriers);
        let around = Around { relayed, queriers, ports: &self.ports, flows: &self.flows };
        self.own.tell(self.dvmrp.as_ref(), &around, &mut self.events);
        self.watch.updated();
        if let Some(upstream) = &mut self.upstream {
            upstream.host.handle_timeout(now);
            self.out.send_all(kernel, upstream.interface.index, |out| upstream.host.poll_transmit(out));
        }
        if self.sweep_at <= now {
            self.sweep_at = now + SWEEP_EVERY;
            self.sweep(kernel, now, |_| true);
        } else if self.dvmrp.is_some() && self.unwanted_at <= now {
            self.unwanted_at = now + UNWANTED_EVERY;
            self.sweep(kernel, now, |entry| entry.is_placed && entry.route.is_empty());
        }
    }

    /// What changed of groups goes to the kernel and upstream.
    fn settle_groups(&mut self, kernel: &Routing, now: Time) {
        if std::mem::take(&mut self.is_all_dirty) {
            let wanted = self.queriers.values().flat_map(|querier| querier.router.groups());
            let wanted = wanted.map(|(group, _)| group).collect::<Vec<_>>();
            self.dirty.extend(wanted);
            self.dirty.extend(self.flows.pairs(None).iter().map(|pair| pair.group));
        }
        for group in std::mem::take(&mut self.dirty) {
            self.own.touch(group);
            self.set_members(now, group);
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

    /// The relay sends these groups from now on.
    pub(crate) fn set_relayed(&mut self, groups: BTreeMap<IpAddr, Relayed>) {
        let before = std::mem::replace(&mut self.relayed, groups);
        let now = &self.relayed;
        let changed = before.keys().chain(now.keys()).filter(|group| before.get(group) != now.get(group));
        self.dirty.extend(changed);
        self.own.restart();
    }

    /// The relay receives these groups at these levels from now on, whatever other interfaces want of them.
    pub(crate) fn set_received(&mut self, groups: BTreeMap<IpAddr, Level>) {
        self.own.set_received(groups);
    }

    /// Packets of these groups are this from now on, as far as they do not say it themselves.
    pub(crate) fn set_described(&mut self, kernel: &Routing, groups: BTreeMap<IpAddr, Arc<Described>>) {
        let before = std::mem::replace(&mut self.described, groups);
        for pair in self.flows.pairs(None) {
            if before.get(&pair.group) != self.described.get(&pair.group) {
                self.set_route(kernel, pair, true);
            }
        }
    }

    /// A host says which level it wants: on the interface on which it is a member.
    pub(crate) fn say_level(
        &mut self,
        host: IpAddr,
        group: IpAddr,
        level: Level,
    ) -> Result<LevelReported, Error> {
        let now = self.clock.now();
        for querier in self.queriers.values_mut().filter(|one| one.interface.is_of_link(host)) {
            match querier.router.say_level(now, host, group, level) {
                Ok(()) => {
                    let best = querier.router.wanted(group).map_or(level, |wanted| wanted.level);
                    return Ok(LevelReported { interface: Name::clone(&querier.name), best });
                }
                Err(Reason::RateLimit) => return Err(Error::TooOften(host)),
                Err(_) => (),
            }
        }
        Err(Error::NoMember { host, group })
    }

    /// What all interfaces below want of a group that is to come from elsewhere.
    fn wanted(&self, group: IpAddr) -> Option<Wants> {
        if self.relayed.get(&group) == Some(&Relayed::All) {
            return None;
        }
        self.queriers.values().filter_map(|querier| querier.wanted(group)).reduce(Wants::or)
    }

    pub(crate) fn snapshot(&mut self) -> Snapshot {
        let refused = |one: &Upstream| one.host.counters().iter().filter(|(_, times)| *times > 0).collect();
        Snapshot {
            interfaces: self.queriers.values().map(Querier::state).collect(),
            upstream: self.upstream.as_ref().map(|one| (one.name.clone(), refused(one))),
            dvmrp: self.neighbourhood(),
            own: self.own.flows().cloned().collect(),
            flows: self.flows.iter().filter_map(|(pair, entry)| self.flow(pair, entry)).collect(),
            counts: Counts {
                events_missed: self.events.missed,
                send_errors: self.out.errors,
                user: self.forwarder.counts(),
                filter: self.forwarder.filter_counts(),
                ..self.counts
            },
            filter_refused: self.forwarder.filter_refused().cloned(),
            timings: self.watch.take(),
        }
    }
}

/// Sends what a router has to say to what it was just told.
fn answer(kernel: &Routing, querier: &mut Querier, out: &mut Out, watch: &mut Stopwatch) {
    loop {
        let next = querier.router.poll_transmit(&mut out.packet);
        watch.processed();
        let Some(to) = next else { return };
        out.send(kernel, to, querier.interface.index);
        watch.replied();
    }
}
