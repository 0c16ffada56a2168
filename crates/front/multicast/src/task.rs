//! The task that has the driver, and the receivers that there are because of it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};

use outflow_config::SinkUrl;
use outflow_control::{Control, PushOptions};
use outflow_engine::message::{ControlError, Demand as Wish, DemandQueue};
use outflow_multicast::{Error, Event, Multicast, Options};
use outflow_packet::Level;
use outflow_relay::Selection;
use outflow_routing::membership::Family;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};

use super::demand::{Changes, Sent, Touched};
use super::drivers::{Driver, Drivers};
use super::handle::{Ask, ReportedLevel};
use super::interfaces::ask_alike;
use super::plan::{Plan, Served};
use super::received::Receivers;
use super::state::{
    IGMP, MLD, MulticastDvmrp, MulticastInterface, MulticastNeighbours, MulticastReported, MulticastState,
    MulticastUpstream,
};
use crate::filtering::Filtering;
use crate::limits::{MULTICAST_LOOK, MULTICAST_ROUTED_TTL};
use crate::settings::Forward;

/// A group on an interface.
type Key = (String, IpAddr);

/// Does what is asked, and what follows from what hosts say, until it is aborted.
pub(super) async fn run(control: Control, mut asks: mpsc::Receiver<Ask>, mut wishes: Option<DemandQueue>) {
    let mut task = Task::new(control);
    let mut ticks = interval(MULTICAST_LOOK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            ask = asks.recv() => match ask {
                Some(Ask::Plan(plan, filter, reply)) => _ = reply.send(task.follow(*plan, filter).await),
                Some(Ask::State(reply)) => _ = reply.send(task.state().await),
                Some(Ask::SayLevel(said, reply)) => _ = reply.send(task.say_level(said).await),
                None => return,
            },
            (family, event) = task.drivers.next() => task.hear(family, event).await,
            wish = wished(&mut wishes) => match wish {
                Some(wish) => task.hear_receivers(wish).await,
                None => wishes = None,
            },
            _ = ticks.tick() => task.look().await,
        }
    }
}

async fn wished(wishes: &mut Option<DemandQueue>) -> Option<Wish> {
    match wishes {
        Some(wishes) => wishes.recv().await,
        None => std::future::pending().await,
    }
}

/// A receiver that there is because hosts want it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Sending {
    stream: String,
    name: String,
    to: SinkUrl,
    /// The address that it is sent from, if that is not the interface's.
    from: Option<Ipv4Addr>,
    level: Level,
}

struct Task {
    control: Control,
    plan: Plan,
    /// What leaves out packets in the kernel; or why nothing does.
    filter: Filtering,
    drivers: Drivers,
    /// What receivers want of streams that may come in as groups.
    receivers: Receivers,
    sending: BTreeMap<Key, Sending>,
    /// Why something that is wanted is not sent.
    failed: BTreeMap<Key, String>,
    /// Why there is no driver of a family.
    problems: BTreeMap<Family, String>,
    changes: BTreeMap<(Family, String), Changes>,
}

impl Task {
    fn new(control: Control) -> Self {
        Task {
            control,
            plan: Plan::default(),
            filter: Err(String::new()),
            drivers: Drivers::default(),
            receivers: Receivers::default(),
            sending: BTreeMap::new(),
            failed: BTreeMap::new(),
            problems: BTreeMap::new(),
            changes: BTreeMap::new(),
        }
    }

    /// Another plan is to be followed.
    async fn follow(&mut self, plan: Plan, filter: Filtering) -> Result<(), ControlError> {
        let before = std::mem::replace(&mut self.plan, plan);
        self.filter = filter;
        let (old, new) = (before.settings, self.plan.settings.clone());
        for family in Family::ALL {
            let is_other = options(family, &old) != options(family, &new) || old.filter != new.filter;
            if !new.has(family) || is_other {
                self.end(family).await;
            } else if let Some(driver) = self.drivers.at(family)
                && !ask_alike(&old, &new)
            {
                driver.interfaces.let_all_go(&driver.multicast, &mut driver.demand).await;
            }
        }
        let started = self.start_all();
        self.tell_groups().await;
        self.look().await;
        self.settle_all().await;
        started
    }

    /// Starts the drivers that are to run and do not.
    fn start_all(&mut self) -> Result<(), ControlError> {
        Family::ALL.map(|family| self.start(family)).into_iter().collect()
    }

    fn start(&mut self, family: Family) -> Result<(), ControlError> {
        let settings = &self.plan.settings;
        if self.drivers.of(family).is_some() || !settings.has(family) {
            self.problems.remove(&family);
            return Ok(());
        }
        match Multicast::start(options(family, settings), self.filter.clone()) {
            Ok((multicast, events)) => {
                *self.drivers.at(family) = Some(Driver::new(family, multicast, events));
                self.problems.remove(&family);
                Ok(())
            }
            Err(error) => {
                let is_needed = settings.needs(family);
                let text = format!("[multicast]: {error}");
                if self.problems.get(&family) != Some(&text) {
                    match is_needed {
                        true => tracing::error!("{text}; it is tried again"),
                        false => tracing::info!("no groups of IPv6: {text}; it is tried again"),
                    }
                    self.problems.insert(family, text.clone());
                }
                if is_needed { Err(ControlError::Configuration(text)) } else { Ok(()) }
            }
        }
    }

    /// Ends a driver, and waits until the kernel's table is free again.
    async fn end(&mut self, family: Family) {
        if let Some(Driver { multicast, mut events, .. }) = self.drivers.at(family).take() {
            drop(multicast);
            while events.recv().await.is_some() {}
        }
    }

    async fn tell_groups(&mut self) {
        for (family, driver) in self.drivers.iter() {
            // One that has ended is noticed by its events.
            let _ended = driver.multicast.set_relayed(self.plan.relayed(family)).await;
            let _ended = driver.multicast.set_described(of_family(family, &self.plan.described)).await;
        }
        self.ask_received().await;
    }

    /// Receivers want something else of a stream: if it comes in as a group, other routers are asked for that.
    async fn hear_receivers(&mut self, wish: Wish) {
        let stream = self.control.known_by_number(wish.stream).map(|(stream, _)| stream);
        self.receivers.want(wish.stream, stream, wish.level);
        self.ask_received().await;
    }

    /// Has drivers ask for what receivers want of streams that come in as groups, if that is something else.
    async fn ask_received(&mut self) {
        let all = self.receivers.levels(&self.plan.received);
        for family in Family::ALL {
            let levels = of_family(family, &all);
            if let Some(driver) = self.drivers.at(family)
                && levels != driver.asked
            {
                driver.asked.clone_from(&levels);
                let _ended = driver.multicast.set_received(levels).await;
            }
        }
    }

    /// Looks which interfaces are there, and tries again what failed.
    async fn look(&mut self) {
        let running = self.drivers.iter().count();
        let _said = self.start_all();
        if self.drivers.iter().count() > running {
            self.tell_groups().await;
        }
        let (mut is_changed, is_with_v6) = (false, self.drivers.of(Family::V6).is_some());
        for family in Family::ALL {
            let Some(driver) = self.drivers.at(family) else { continue };
            let Driver { multicast, interfaces, demand, .. } = driver;
            is_changed |= interfaces.look(multicast, (&self.plan.settings, is_with_v6), demand).await;
        }
        if is_changed {
            self.settle_all().await;
        }
        let control = &self.control;
        let is_lost = |(_, sending): &(&Key, &Sending)| !control.has_push(&sending.stream, &sending.name);
        let lost = self.sending.iter().filter(is_lost).map(|(key, _)| key);
        let again: BTreeSet<_> = self.failed.keys().chain(lost).cloned().collect();
        for (interface, group) in again {
            self.settle(&interface, group).await;
        }
    }

    async fn hear(&mut self, family: Family, event: Option<Event>) {
        let Some((driver, event)) = self.drivers.at(family).as_mut().zip(event) else {
            tracing::error!("a multicast driver has ended; it is started again");
            *self.drivers.at(family) = None;
            return self.settle_all().await;
        };
        match driver.demand.handle(event) {
            Touched::Nothing => (),
            Touched::Group(interface, group, changes) => {
                self.settle(&interface, group).await;
                let sum = self.changes.entry((family, interface)).or_default();
                sum.joins += changes.joins;
                sum.leaves += changes.leaves;
            }
            Touched::Interface(interface) => {
                for group in self.groups(family) {
                    self.settle(&interface, group).await;
                }
            }
            Touched::Routed(group) => {
                for interface in driver.demand.routed().cloned().collect::<Vec<_>>() {
                    self.settle(&interface, group).await;
                }
            }
            Touched::Everything => {
                if let Ok(snapshot) = driver.multicast.snapshot().await {
                    driver.demand.become_like(snapshot);
                }
                self.settle_all().await;
            }
        }
    }

    /// Groups of a family that are streams.
    fn groups(&self, family: Family) -> Vec<IpAddr> {
        self.plan.groups.keys().copied().filter(|group| Family::of(*group) == family).collect()
    }

    async fn settle_all(&mut self) {
        let wanted = self.drivers.iter().flat_map(|(family, driver)| {
            let groups = self.groups(family);
            let names = driver.demand.interfaces();
            names.flat_map(move |name| groups.clone().into_iter().map(move |group| (name.clone(), group)))
        });
        let keys: BTreeSet<Key> =
            wanted.chain(self.sending.keys().chain(self.failed.keys()).cloned()).collect();
        for (interface, group) in keys {
            self.settle(&interface, group).await;
        }
    }

    /// Has a group sent by an interface, changed, or no longer sent.
    async fn settle(&mut self, interface: &str, group: IpAddr) {
        let served = self.plan.groups.get(&group);
        let target = served.and_then(|served| {
            let sent = self.drivers.of(Family::of(group))?.demand.sent(interface, served)?;
            Some(sending(interface, served, sent))
        });
        let key = (interface.to_owned(), group);
        if let Some(now) = self.sending.get(&key)
            && (target.as_ref().is_none_or(|target| !target.is_there(now))
                || !self.control.has_push(&now.stream, &now.name))
        {
            // A caller that removed it through the API before has done the work.
            let _gone_already = self.control.remove_push(&now.stream, &now.name);
            self.sending.remove(&key);
        }
        let Some(target) = target else {
            self.failed.remove(&key);
            return;
        };
        let done = match self.sending.get(&key) {
            Some(now) if now.level == target.level => return,
            Some(_) => self.control.set_push_level(&target.stream, &target.name, target.level),
            None => self.control.add_push(self.options(&target)).await.map(drop),
        };
        match done {
            Ok(()) => {
                self.failed.remove(&key);
                self.sending.insert(key, target);
            }
            Err(error) => self.fail(key, &target, &error),
        }
    }

    /// Says once why something is not sent; it is tried again.
    fn fail(&mut self, key: Key, target: &Sending, error: &ControlError) {
        let text = error.to_string();
        if self.failed.get(&key) != Some(&text) {
            tracing::warn!(
                name = target.name,
                stream = target.stream,
                error = text,
                "hosts that join get nothing"
            );
            self.failed.insert(key, text);
        }
    }

    fn options(&self, target: &Sending) -> PushOptions {
        let selection = Selection { level: target.level, ..Selection::default() };
        let options = PushOptions::new(&target.stream, target.to.clone(), target.name.clone(), selection);
        PushOptions { from: target.from, ..options }
    }

    async fn say_level(&self, said: ReportedLevel) -> Result<MulticastReported, ControlError> {
        let ReportedLevel { host, group, level } = said;
        let Some(driver) = self.drivers.of(Family::of(group)) else {
            let what =
                "hosts join no groups here: name interfaces with hosts in [multicast] of the configuration";
            return Err(ControlError::NoMember(what.to_owned()));
        };
        let answer = driver.multicast.say_level(host, group, level).await.map_err(|error| match error {
            Error::TooOften(_) => ControlError::TooOften(error.to_string()),
            Error::Ended => ControlError::ShuttingDown,
            error => ControlError::NoMember(error.to_string()),
        })?;
        Ok(MulticastReported {
            host: host.to_string(),
            group: group.to_string(),
            interface: answer.interface.to_string(),
            level: level.number(),
            best: answer.best.number(),
        })
    }

    async fn state(&self) -> MulticastState {
        let settings = &self.plan.settings;
        let problem = |family, name: &str| self.drivers.of(family)?.interfaces.problem(name).cloned();
        let interface = |family, one: &outflow_config::Interface| {
            let key = (family, one.0.clone());
            let Changes { joins, leaves } = self.changes.get(&key).copied().unwrap_or_default();
            let (name, problem, protocol) = (key.1, problem(family, &one.0), protocol(family));
            MulticastInterface { name, protocol, problem, joins, leaves, ..MulticastInterface::default() }
        };
        let upstream = settings.upstream.as_ref().map(|one| MulticastUpstream {
            name: one.0.clone(),
            problem: problem(Family::V4, &one.0).or_else(|| problem(Family::V6, &one.0)),
            ..MulticastUpstream::default()
        });
        let neighbours = |one: &outflow_config::Interface| {
            let (name, problem) = (one.0.clone(), problem(Family::V4, &one.0));
            MulticastNeighbours { name, problem, ..MulticastNeighbours::default() }
        };
        let with_neighbours = settings.neighbours.0.iter().map(neighbours).collect::<Vec<_>>();
        let dvmrp = MulticastDvmrp { interfaces: with_neighbours, ..MulticastDvmrp::default() };
        let mut state = MulticastState {
            dvmrp: Some(dvmrp).filter(|dvmrp| !dvmrp.interfaces.is_empty()),
            on: settings.is_on(),
            problem: self.problems.get(&Family::V4).cloned(),
            mld_problem: self.problems.get(&Family::V6).cloned(),
            forward: settings.forward.as_str(),
            table: options(Family::V4, settings).table,
            upstream: upstream.filter(|_| settings.is_on()),
            ..MulticastState::default()
        };
        for family in Family::ALL.into_iter().filter(|family| settings.has(*family)) {
            state.interfaces.extend(settings.interfaces.0.iter().map(|one| interface(family, one)));
        }
        state.interfaces.sort_by(|a, b| (&a.name, a.protocol).cmp(&(&b.name, b.protocol)));
        state.dvmrp.iter_mut().for_each(|dvmrp| dvmrp.interfaces.sort_by(|a, b| a.name.cmp(&b.name)));
        for (family, driver) in self.drivers.iter() {
            if let Ok(snapshot) = driver.multicast.snapshot().await {
                state.add(protocol(family), snapshot);
            }
        }
        state.leave_out_of_other_family();
        self.add_streams(&mut state);
        state
    }

    /// Adds which groups are streams, and what is sent.
    fn add_streams(&self, state: &mut MulticastState) {
        for interface in &mut state.interfaces {
            for shown in &mut interface.groups {
                let Ok(group) = shown.group.parse() else { continue };
                let key = (interface.name.clone(), group);
                shown.stream = self.plan.groups.get(&group).map(|served| served.stream.clone());
                shown.problem = self.failed.get(&key).cloned();
                if self.sending.contains_key(&key) {
                    shown.served_by = Some("relay");
                }
            }
        }
        for interface in state.dvmrp.iter_mut().flat_map(|dvmrp| &mut dvmrp.interfaces) {
            for shown in &mut interface.sent {
                let Ok(group) = shown.group.parse() else { continue };
                shown.stream = self.plan.groups.get(&group).map(|served| served.stream.clone());
                shown.problem = self.failed.get(&(interface.name.clone(), group)).cloned();
            }
        }
    }
}

/// What is said of the groups of a family.
fn of_family<T: Clone>(family: Family, groups: &BTreeMap<IpAddr, T>) -> BTreeMap<IpAddr, T> {
    let of = groups.iter().filter(|(group, _)| Family::of(**group) == family);
    of.map(|(group, said)| (*group, said.clone())).collect()
}

/// What hosts of a family speak.
const fn protocol(family: Family) -> &'static str {
    match family {
        Family::V4 => IGMP,
        Family::V6 => MLD,
    }
}

impl Sending {
    /// Whether both are the same receiver, but for the level.
    fn is_there(&self, other: &Sending) -> bool {
        (&self.stream, &self.name, &self.to, self.from) == (&other.stream, &other.name, &other.to, other.from)
    }
}

/// Where routers are, they are to carry it on.
fn sending(interface: &str, served: &Served, Sent { level, from }: Sent) -> Sending {
    let mut group = served.group.clone();
    if from.is_some() {
        group.ttl.get_or_insert(MULTICAST_ROUTED_TTL);
    }
    let by = match (from, served.group.to.is_ipv6()) {
        (Some(_), _) => "dvmrp",
        (None, false) => IGMP,
        (None, true) => MLD,
    };
    let name = format!("{by}:{interface}:{}", group.to);
    Sending { stream: served.stream.clone(), name, to: group.by(interface), from, level }
}

fn options(family: Family, settings: &crate::settings::Multicast) -> Options {
    let table = settings.table.and_then(|table| u32::try_from(table).ok());
    Options { family, table, forward: settings.forward == Forward::Auto, timings: false }
}
