//! The task that has the driver, and the receivers that there are because of it.

use std::collections::{BTreeMap, BTreeSet};
use std::future::pending;
use std::net::Ipv4Addr;

use outflow_config::SinkUrl;
use outflow_control::{Control, PushOptions};
use outflow_engine::message::{ControlError, Demand as Wish, DemandQueue};
use outflow_multicast::{Error, Event, Multicast, Options};
use outflow_packet::Level;
use outflow_relay::Selection;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};

use super::demand::{Changes, Demand, Sent, Touched};
use super::handle::{Ask, ReportedLevel};
use super::interfaces::{Interfaces, ask_alike};
use super::plan::{Plan, Served};
use super::received::Receivers;
use super::state::{
    MulticastDvmrp, MulticastInterface, MulticastNeighbours, MulticastReported, MulticastState,
    MulticastUpstream,
};
use crate::filtering::Filtering;
use crate::limits::{MULTICAST_LOOK, MULTICAST_ROUTED_TTL};
use crate::settings::Forward;

/// A group on an interface.
type Key = (String, Ipv4Addr);

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
            event = next(&mut task.driver) => task.hear(event).await,
            wish = wished(&mut wishes) => match wish {
                Some(wish) => task.hear_receivers(wish).await,
                None => wishes = None,
            },
            _ = ticks.tick() => task.look().await,
        }
    }
}

async fn next(driver: &mut Option<Driver>) -> Option<Event> {
    match driver {
        Some(driver) => driver.events.recv().await,
        None => pending().await,
    }
}

async fn wished(wishes: &mut Option<DemandQueue>) -> Option<Wish> {
    match wishes {
        Some(wishes) => wishes.recv().await,
        None => pending().await,
    }
}

/// The driver that runs.
struct Driver {
    multicast: Multicast,
    events: mpsc::Receiver<Event>,
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
    driver: Option<Driver>,
    interfaces: Interfaces,
    demand: Demand,
    /// What receivers want of streams that may come in as groups.
    receivers: Receivers,
    /// What the driver was told last to ask of those groups.
    asked: BTreeMap<Ipv4Addr, outflow_routing::Level>,
    sending: BTreeMap<Key, Sending>,
    /// Why something that is wanted is not sent.
    failed: BTreeMap<Key, String>,
    /// Why there is no driver.
    problem: Option<String>,
    changes: BTreeMap<String, Changes>,
}

impl Task {
    fn new(control: Control) -> Self {
        Task {
            control,
            plan: Plan::default(),
            filter: Err(String::new()),
            driver: None,
            interfaces: Interfaces::default(),
            demand: Demand::default(),
            receivers: Receivers::default(),
            asked: BTreeMap::new(),
            sending: BTreeMap::new(),
            failed: BTreeMap::new(),
            problem: None,
            changes: BTreeMap::new(),
        }
    }

    /// Another plan is to be followed.
    async fn follow(&mut self, plan: Plan, filter: Filtering) -> Result<(), ControlError> {
        let before = std::mem::replace(&mut self.plan, plan);
        self.filter = filter;
        let (old, new) = (&before.settings, &self.plan.settings);
        if !new.is_on() || options(old) != options(new) || old.filter != new.filter {
            self.end().await;
        } else if let Some(driver) = &self.driver
            && !ask_alike(old, new)
        {
            self.interfaces.let_all_go(&driver.multicast, &mut self.demand).await;
        }
        let started = self.start().await;
        self.tell_groups().await;
        self.look().await;
        self.settle_all().await;
        started
    }

    /// Starts the driver, if it is to run and does not.
    async fn start(&mut self) -> Result<(), ControlError> {
        if self.driver.is_some() || !self.plan.settings.is_on() {
            self.problem = None;
            return Ok(());
        }
        match Multicast::start(options(&self.plan.settings), self.filter.clone()) {
            Ok((multicast, events)) => {
                self.driver = Some(Driver { multicast, events });
                self.problem = None;
                Ok(())
            }
            Err(error) => {
                let text = format!("[multicast]: {error}");
                if self.problem.as_ref() != Some(&text) {
                    tracing::error!("{text}; it is tried again");
                    self.problem = Some(text.clone());
                }
                Err(ControlError::Configuration(text))
            }
        }
    }

    /// Ends the driver, and waits until the kernel's table is free again.
    async fn end(&mut self) {
        if let Some(Driver { multicast, mut events }) = self.driver.take() {
            drop(multicast);
            while events.recv().await.is_some() {}
        }
        self.forget();
    }

    /// There is no driver any more.
    fn forget(&mut self) {
        self.interfaces = Interfaces::default();
        self.demand.clear();
        self.asked.clear();
    }

    async fn tell_groups(&mut self) {
        if let Some(driver) = &self.driver {
            // One that has ended is noticed by its events.
            let _ended = driver.multicast.set_relayed(self.plan.relayed()).await;
            let _ended = driver.multicast.set_described(self.plan.described.clone()).await;
        }
        self.ask_received().await;
    }

    /// Receivers want something else of a stream: if it comes in as a group, other routers are asked for that.
    async fn hear_receivers(&mut self, wish: Wish) {
        let stream = self.control.known_by_number(wish.stream).map(|(stream, _)| stream);
        self.receivers.want(wish.stream, stream, wish.level);
        self.ask_received().await;
    }

    /// Has the driver ask for what receivers want of streams that come in as groups, if that is something else.
    async fn ask_received(&mut self) {
        let levels = self.receivers.levels(&self.plan.received);
        if let Some(driver) = &self.driver
            && levels != self.asked
        {
            self.asked.clone_from(&levels);
            let _ended = driver.multicast.set_received(levels).await;
        }
    }

    /// Looks which interfaces are there, and tries again what failed.
    async fn look(&mut self) {
        if self.driver.is_none() && self.start().await.is_ok() {
            self.tell_groups().await;
        }
        let Some(driver) = &self.driver else { return };
        let (settings, demand) = (&self.plan.settings, &mut self.demand);
        if self.interfaces.look(&driver.multicast, settings, demand).await {
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

    async fn hear(&mut self, event: Option<Event>) {
        let Some(event) = event else {
            tracing::error!("the multicast driver has ended; it is started again");
            self.driver = None;
            self.forget();
            return self.settle_all().await;
        };
        match self.demand.handle(event) {
            Touched::Nothing => (),
            Touched::Group(interface, group, changes) => {
                self.settle(&interface, group).await;
                let sum = self.changes.entry(interface).or_default();
                sum.joins += changes.joins;
                sum.leaves += changes.leaves;
            }
            Touched::Interface(interface) => {
                for group in self.plan.groups.keys().copied().collect::<Vec<_>>() {
                    self.settle(&interface, group).await;
                }
            }
            Touched::Routed(group) => {
                for interface in self.demand.routed().cloned().collect::<Vec<_>>() {
                    self.settle(&interface, group).await;
                }
            }
            Touched::Everything => {
                if let Some(driver) = &self.driver
                    && let Ok(snapshot) = driver.multicast.snapshot().await
                {
                    self.demand.become_like(snapshot);
                }
                self.settle_all().await;
            }
        }
    }

    async fn settle_all(&mut self) {
        let groups: Vec<_> = self.plan.groups.keys().copied().collect();
        let wanted =
            self.demand.interfaces().flat_map(|name| groups.iter().map(|group| (name.clone(), *group)));
        let keys: BTreeSet<Key> =
            wanted.chain(self.sending.keys().chain(self.failed.keys()).cloned()).collect();
        for (interface, group) in keys {
            self.settle(&interface, group).await;
        }
    }

    /// Has a group sent by an interface, changed, or no longer sent.
    async fn settle(&mut self, interface: &str, group: Ipv4Addr) {
        let served = self.plan.groups.get(&group);
        let target = served.and_then(|served| {
            let sent = self.demand.sent(interface, served)?;
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
        // What is looped back the kernel would take for packets to be forwarded.
        PushOptions { from: target.from, loops: false, ..options }
    }

    async fn say_level(&self, said: ReportedLevel) -> Result<MulticastReported, ControlError> {
        let ReportedLevel { host, group, level } = said;
        let Some(driver) = &self.driver else {
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
        let problem = |name: &str| self.interfaces.problem(name).cloned();
        let interface = |one: &outflow_config::Interface| {
            let Changes { joins, leaves } = self.changes.get(&one.0).copied().unwrap_or_default();
            let (name, problem) = (one.0.clone(), problem(&one.0));
            MulticastInterface { name, problem, joins, leaves, ..MulticastInterface::default() }
        };
        let upstream = settings.upstream.as_ref().map(|one| MulticastUpstream {
            name: one.0.clone(),
            problem: problem(&one.0),
            ..MulticastUpstream::default()
        });
        let neighbours = |one: &outflow_config::Interface| {
            let (name, problem) = (one.0.clone(), problem(&one.0));
            MulticastNeighbours { name, problem, ..MulticastNeighbours::default() }
        };
        let with_neighbours = settings.neighbours.0.iter().map(neighbours).collect::<Vec<_>>();
        let dvmrp = MulticastDvmrp { interfaces: with_neighbours, ..MulticastDvmrp::default() };
        let mut state = MulticastState {
            dvmrp: Some(dvmrp).filter(|dvmrp| !dvmrp.interfaces.is_empty()),
            on: settings.is_on(),
            problem: self.problem.clone(),
            forward: settings.forward.as_str(),
            table: options(settings).table,
            upstream: upstream.filter(|_| settings.is_on()),
            interfaces: settings.interfaces.0.iter().map(interface).collect(),
            ..MulticastState::default()
        };
        state.interfaces.sort_by(|a, b| a.name.cmp(&b.name));
        state.dvmrp.iter_mut().for_each(|dvmrp| dvmrp.interfaces.sort_by(|a, b| a.name.cmp(&b.name)));
        if let Some(driver) = &self.driver
            && let Ok(snapshot) = driver.multicast.snapshot().await
        {
            state.add(snapshot);
        }
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
    let by = if from.is_some() { "dvmrp" } else { "igmp" };
    let name = format!("{by}:{interface}:{}", group.to);
    Sending { stream: served.stream.clone(), name, to: group.by(interface), from, level }
}

fn options(settings: &crate::settings::Multicast) -> Options {
    let table = settings.table.and_then(|table| u32::try_from(table).ok());
    Options { table, forward: settings.forward == Forward::Auto, timings: false }
}
