//! The configuration carried out: streams, sources and configured receivers are made, and, when
//! the configuration changes, whatever changed in it and nothing else.

mod adopted;
mod reload;
mod sources;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use outflow_config::{
    Action, Branches, Changes, Config, Elements, Share, SinkConfig, SourceUrl, StreamConfig,
};
use outflow_engine::Clock;
use outflow_engine::message::{CloseReason, Command, ControlError, LinkChoice, Receiver};
use outflow_engine::system::random_u32;
use outflow_graph::PlanError;
use outflow_relay::{LevelBounds, LinkClaim, Selection, StreamOptions, WhenFull};
use tokio::task::JoinHandle;

use crate::change::{Changed, StreamLimits};
use crate::control::Control;
use crate::decisions::RuleDecision;
use crate::placing::StreamEntry;
use crate::pushes::PushOptions;
use crate::receiver::{priority, timing};
use crate::rules::{Decision, Rules};
use crate::services::Trials;
use crate::upgrade::Upgrade;
use crate::workers::Owner;
use reload::Pending;

/// What runs because the configuration says so.
pub(crate) struct Supervisor {
    control: Control,
    clock: Clock,
    path: Option<PathBuf>,
    /// By stream: the task that keeps its source.
    sources: BTreeMap<String, JoinHandle<()>>,
    trials: Trials,
    rules: Rules,
    /// Streams that are not configured, and that other relays have.
    adopted: BTreeMap<String, SourceUrl>,
    pending: Pending,
}

impl Supervisor {
    /// `path` is the configuration's file, for reloading and for the files it names; `has_room`: a thread more can
    /// run while one of the workers does.
    pub(crate) fn new(control: Control, clock: Clock, path: Option<PathBuf>, has_room: bool) -> Self {
        Supervisor {
            control,
            clock,
            path,
            sources: BTreeMap::new(),
            trials: Trials::default(),
            rules: Rules::new(has_room),
            adopted: BTreeMap::new(),
            pending: Pending::default(),
        }
    }

    /// The relay that it changes.
    pub(crate) fn control(&self) -> &Control {
        &self.control
    }

    /// Makes links and streams as the configuration says, without their sources.
    ///
    /// # Errors
    /// The first thing that cannot be done, in words that name it.
    pub(crate) async fn make(&mut self, config: &Config) -> Result<(), ControlError> {
        self.check_rings(config)?;
        for (name, link) in &config.links {
            self.control.links().put(self.control.workers(), name, link);
        }
        for name in renditions_first(config, config.streams.keys()) {
            self.make_stream(name, &config.streams[name]).await?;
        }
        Ok(())
    }

    /// Begins their sources, and everything else that the configuration says.
    ///
    /// # Errors
    /// The first thing that cannot be done, in words that name it.
    pub(crate) async fn begin(&mut self, config: &Config) -> Result<(), ControlError> {
        for name in renditions_first(config, config.streams.keys()) {
            let source = self.prepare_source(name, &config.streams[name])?;
            self.begin_source(name, source);
        }
        for sink in &config.sinks {
            self.add_sink(sink).await?;
        }
        self.configure(config).await.into_iter().next().map_or(Ok(()), Err)
    }

    /// Changes limits of a stream until the next reload.
    ///
    /// # Errors
    /// Unknown stream, or an impossible value; nothing has changed then.
    pub(crate) async fn set_limits(
        &mut self,
        stream: &str,
        limits: StreamLimits,
    ) -> Result<Changed, ControlError> {
        let config = self.control.config();
        let known = configured(&config, stream)?;
        self.change_one(stream, known, limits.applied_to(known)?).await
    }

    /// Gives a stream other services until the next reload.
    ///
    /// # Errors
    /// Unknown stream, or services that cannot be made; nothing has changed then.
    pub(crate) async fn set_services(
        &mut self,
        stream: &str,
        elements: Elements,
        branches: Branches,
    ) -> Result<Changed, ControlError> {
        let config = self.control.config();
        let known = configured(&config, stream)?;
        let wrong = |errors: Vec<PlanError>| {
            let errors: Vec<_> = errors.iter().map(|e| format!("{}: {}", e.what, e.help)).collect();
            ControlError::Configuration(errors.join("; "))
        };
        let new = StreamConfig { elements, branches, ..known.clone() };
        new.plan().check(new.contents()).map_err(wrong)?;
        self.change_one(stream, known, new).await
    }

    /// Makes a stream otherwise than it is configured, and no other.
    async fn change_one(
        &mut self,
        name: &str,
        known: &StreamConfig,
        new: StreamConfig,
    ) -> Result<Changed, ControlError> {
        let mut waited = None;
        if new.ring > known.ring {
            self.check_rings(&self.with(name, new.clone()))?;
        }
        if *known != new {
            self.change_stream(name, known, &new, &mut waited).await?;
        }
        Ok(Changed { lines: self.put_one(name, Some(new)), waited, ..Changed::default() })
    }

    /// What is configured, with another stream of this name.
    fn with(&self, name: &str, stream: StreamConfig) -> Config {
        let mut config = Config::clone(&self.control.config());
        config.streams.insert(name.to_owned(), Arc::new(stream));
        config
    }

    /// Whether the relay may take as much memory as the rings of all streams could.
    fn check_rings(&self, config: &Config) -> Result<(), ControlError> {
        let Some(memory) = self.control.health().overload().memory(config) else { return Ok(()) };
        config.check_rings(memory).map_err(|invalid| ControlError::Configuration(invalid.to_string()))
    }

    /// A stream is configured so now, or no more. Returns a line for what changed.
    fn put_one(&self, name: &str, stream: Option<StreamConfig>) -> Vec<String> {
        let mut config = Config::clone(&self.control.config());
        let known = config.streams.get(name).map(Arc::as_ref);
        let changes = Changes::of_stream(name, known, stream.as_ref());
        match stream {
            Some(stream) => config.streams.insert(name.to_owned(), Arc::new(stream)),
            None => config.streams.remove(name),
        };
        self.is_now(&changes, config)
    }

    /// Looks at what is measured, and changes services and levels as the rules say; and tries again what could not
    /// be made.
    pub(crate) async fn look(&mut self) {
        self.try_again().await;
        let (control, config) = (self.control.clone(), self.control.config());
        let decisions = self.rules.look(Instant::now(), &control.state(), &config);
        for Decision { stream, rule, begins, why, changes } in decisions {
            let now = if begins { "in force" } else { "no longer in force" };
            tracing::warn!(stream, rule, why, "a rule is {now}");
            let mut failed = None;
            if let Some(of) = config.streams.get(&stream) {
                let done = self.carry_out(&stream, of, &changes).await;
                failed = done.err().map(|error| error.to_string());
            }
            if let Some(error) = &failed {
                tracing::error!(stream, rule, error, "what the rule says cannot be done");
            }
            let in_force = self.rules.in_force(&stream);
            let changes = changes.iter().map(Action::to_string).collect();
            let decision = RuleDecision { stream, rule, in_force: begins, why, changes, failed };
            control.decisions().put(decision, in_force);
        }
    }

    /// Makes a stream what it is with all rules that are in force, now that these changes came or went.
    async fn carry_out(
        &mut self,
        name: &str,
        config: &StreamConfig,
        changes: &[Action],
    ) -> Result<(), ControlError> {
        let control = self.control.clone();
        control.registry().set_bounds(name, control.workers(), self.rules.bounds(name, config));
        if changes.iter().any(Action::is_of_services) {
            let plan = self.rules.plan(name, config);
            self.trials.put(&control, name, plan, config.cpu_budget).await?;
        }
        Ok(())
    }

    /// The configuration is this one now. Returns a line for each change.
    fn is_now(&self, changes: &Changes, new: Config) -> Vec<String> {
        let lines = changes.lines();
        self.control.set_config(Arc::new(new));
        for line in &lines {
            tracing::info!(change = line, "configuration changed");
        }
        lines
    }

    /// Makes a stream with its source and its services, or none.
    async fn add_stream(&mut self, name: &str, config: &StreamConfig) -> Result<(), ControlError> {
        let source = self.prepare_source(name, config)?;
        if let Err(error) = self.make_stream(name, config).await {
            self.remove_stream(name).await;
            return Err(error);
        }
        self.begin_source(name, source);
        Ok(())
    }

    async fn make_stream(&mut self, name: &str, config: &StreamConfig) -> Result<(), ControlError> {
        let control = self.control.clone();
        let options = self.options(config);
        let worker = self.worker_for(name, config, options.reserve)?;
        let owner = Owner { worker, stream: control.new_id() };
        let renditions = config.source.renditions().iter().map(|name| Ok(control.entry(name)?.owner));
        let renditions = renditions.collect::<Result<Vec<_>, ControlError>>()?;
        let entry = StreamEntry {
            owner,
            options,
            renditions: renditions.clone(),
            bounds: LevelBounds::default(),
            is_pushed: config.source.is_push(),
            turns: config.into(),
            receivers_max: config.max_receivers,
            receivers: 0,
            publisher: None,
            replicas: Vec::new(),
        };
        control.registry().insert(name.to_owned(), entry);
        let url = config.source.to_string();
        let (stream, name_there) = (owner.stream, name.to_owned());
        control.workers().feed(&renditions, (&owner, false), |replica_ends| {
            control
                .workers()
                .tell(&owner, Command::AddStream { stream, name: name_there, url, options, replica_ends });
        });
        if !config.plan().is_empty() {
            let plan = self.rules.placed(name, config);
            self.trials.put(&control, name, plan, config.cpu_budget).await?;
        }
        Ok(())
    }

    /// The worker of a new stream, where its receivers will be: the one of before an upgrade, the link's, else the one
    /// that has least to do of those that have room for what it reserves.
    fn worker_for(&self, name: &str, config: &StreamConfig, reserve: u32) -> Result<usize, ControlError> {
        let registry = self.control.registry();
        let (load, reserves) = (registry.load(self.control.workers().count()), registry.reserves_but(name));
        let with_room = load.iter().enumerate().filter(|(worker, _)| reserves.fits(*worker, reserve));
        let least = with_room.min_by_key(|(_, load)| **load).map_or(0, |(worker, _)| worker);
        let link = config.link.as_ref().and_then(|link| self.control.links().get(&link.0).ok());
        let before = self.control.shared::<Upgrade>().place(name).filter(|worker| *worker < load.len());
        let worker = before.or(link.map(|link| link.worker)).unwrap_or(least);
        reserves.demand(name, worker, reserve)?;
        Ok(worker)
    }

    async fn remove_stream(&mut self, name: &str) {
        self.end_source(name).await;
        if let Some(entry) = self.control.registry().remove(name) {
            let reason = CloseReason::StreamRemoved;
            for owner in entry.owners() {
                self.control.workers().tell(&owner, Command::RemoveStream { stream: owner.stream, reason });
                self.control.workers().settled(&owner).await;
            }
        }
    }

    /// Changes a stream while its packets flow on, or leaves it as it is. Only another source means a new beginning,
    /// and even then receivers stay. `waited` is how long packets have waited at most.
    async fn change_stream(
        &mut self,
        name: &str,
        old: &StreamConfig,
        new: &StreamConfig,
        waited: &mut Option<Duration>,
    ) -> Result<(), ControlError> {
        let entry = self.control.entry(name)?;
        let options = self.options(new);
        let reserves = self.control.registry().reserves_but(name);
        entry.serving().try_for_each(|worker| reserves.demand(name, worker, options.reserve))?;
        let is_same_source = (&old.source, &old.sdp) == (&new.source, &new.sdp);
        let source = match is_same_source && !old.more.is_another_source(&new.more) {
            true => None,
            false => Some(self.prepare_another(name, old, new).await?),
        };
        match self.change_services(name, old, new).await {
            Ok(put) => *waited = (*waited).max(put),
            Err(error) => {
                drop(source);
                self.go_on_with(name, old);
                return Err(error);
            }
        }
        // Nothing of what follows can fail.
        let control = self.control.clone();
        let (registry, workers) = (control.registry(), control.workers());
        registry.update(name, |entry| {
            (entry.receivers_max, entry.turns) = (new.max_receivers, new.into());
        });
        let change = |now: StreamOptions| StreamOptions { ssrc: now.ssrc, layers: now.layers, ..options };
        registry.change_options(name, workers, change);
        registry.set_bounds(name, workers, self.rules.bounds(name, new));
        if let Some(source) = source {
            self.end_source(name).await;
            registry.update(name, |entry| entry.is_pushed = new.source.is_push());
            self.begin_source(name, source);
        }
        Ok(())
    }

    /// Gives a stream other services, if they are to be others. Returns how long packets have waited.
    async fn change_services(
        &mut self,
        name: &str,
        old: &StreamConfig,
        new: &StreamConfig,
    ) -> Result<Option<Duration>, ControlError> {
        let services = |config: &StreamConfig| (self.rules.plan(name, config), config.cpu_budget);
        if services(old) == services(new) {
            return Ok(None);
        }
        let (plan, budget) = services(new);
        let control = self.control.clone();
        self.trials.put(&control, name, plan, budget).await.map(Some)
    }

    fn options(&self, config: &StreamConfig) -> StreamOptions {
        StreamOptions {
            ring_bytes: config.ring.as_usize(),
            hopeless_after: config.hopeless_after,
            source_timeout: config.source_timeout,
            when_full: when_full(config.when_full),
            ssrc: random_u32(),
            seed: random_u32().into(),
            ntp_at_zero: self.clock.ntp_at_zero(),
            layers: 0,
            is_relayed: config.source.is_on_demand(),
            weight: config.weight.get(),
            reserve: config.reserve.map_or(0, Share::thousandths),
            reserve_bps: config.reserve_rate.map_or(0, |rate| rate.0),
        }
    }

    /// Ends a configured source. Its ports are free afterwards.
    async fn end_source(&mut self, name: &str) {
        let Some(task) = self.sources.remove(name) else { return };
        task.abort();
        // It ends by being aborted, which is what was wanted.
        let _ = task.await;
        if let Ok(entry) = self.control.entry(name) {
            self.control.workers().settled(&entry.owner).await;
        }
    }

    fn remove_sink(&mut self, name: &str) {
        let config = self.control.config();
        let Some(sink) = config.sinks.iter().find(|sink| sink.name == name) else { return };
        // If the API has removed it before, the work is done.
        let _ = self.control.remove_push(&sink.stream, &sink.name);
    }

    async fn add_sink(&mut self, sink: &SinkConfig) -> Result<(), ControlError> {
        self.control.add_push(push_options(sink)).await.map(drop)
    }
}

/// A stream as it is configured.
fn configured<'c>(config: &'c Config, stream: &str) -> Result<&'c StreamConfig, ControlError> {
    let known = config.streams.get(stream).map(Arc::as_ref);
    known.ok_or_else(|| ControlError::UnknownStream(stream.to_owned()))
}

/// These streams, in an order in which each comes behind its renditions.
fn renditions_first<'n>(config: &Config, names: impl Iterator<Item = &'n String>) -> Vec<&'n String> {
    let mut names: Vec<_> = names.collect();
    names.sort_by_key(|name| !config.streams[*name].source.renditions().is_empty());
    names
}

fn push_options(sink: &SinkConfig) -> PushOptions {
    let selection = Selection { branch: sink.branch.clone(), view: sink.view, level: sink.level };
    let mut options = PushOptions::new(&sink.stream, sink.to.clone(), sink.name.clone(), selection);
    options.receiver = Receiver {
        class: Some(priority(sink.priority)),
        timing: Some(timing(sink.latency_budget, sink.pace)),
        link: LinkChoice::of(sink.link.as_ref().map(|link| link.0.clone())),
        claim: LinkClaim {
            weight: sink.weight.get(),
            reserve_bps: sink.reserve_rate.map_or(0, |rate| rate.0),
        },
        ..options.receiver
    };
    options
}

/// The policy that the configuration names.
fn when_full(policy: outflow_config::WhenFull) -> WhenFull {
    match policy {
        outflow_config::WhenFull::SlowestSink => WhenFull::SlowestSink,
        outflow_config::WhenFull::Tail => WhenFull::Tail,
        outflow_config::WhenFull::Red => WhenFull::Red,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_policy_of_the_core_has_its_word_in_the_configuration() {
        let words = outflow_config::WhenFull::ALL;
        assert_eq!(words.len(), WhenFull::ALL.len());
        for &word in words {
            assert_eq!(when_full(word).as_str(), word.as_str());
        }
    }
}
