//! The handle on a running relay.

use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use outflow_config::{Branches, Config, Elements, Protocols, SourceUrl, StreamConfig};
use outflow_door::{Door, Rules};
use outflow_engine::Clock;
use outflow_engine::message::{
    Command, ControlError, DemandQueue, Described, RelayState, ServicesCommand, StreamId,
};
use outflow_media::Time;
use outflow_relay::{Encapsulation, Selection, StreamOptions};
use tokio::sync::{mpsc, oneshot, watch};

use crate::change::{Changed, ConfigChange, ConfigRequest, StreamLimits};
use crate::decisions::Decisions;
use crate::ending::Ending;
use crate::events::Events;
use crate::front::Fronts;
use crate::health::Health;
use crate::links::LinkBook;
use crate::placing::StreamEntry;
use crate::pushes::Pushes;
use crate::reach::{Known, OtherRelays, Reach};
use crate::registry::Registry;
use crate::shared::Shared;
use crate::turn::EndedTurns;
use crate::workers::Workers;

/// A handle on the running relay; clones are the same relay.
#[derive(Debug, Clone)]
pub struct Control {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    clock: Clock,
    health: Health,
    registry: Registry,
    pushes: Pushes,
    links: LinkBook,
    workers: Workers,
    config: arc_swap::ArcSwap<Config>,
    door: Arc<Door>,
    state: watch::Receiver<Arc<RelayState>>,
    next_id: AtomicU64,
    changes: mpsc::Sender<ConfigRequest>,
    fronts: Fronts,
    shared: Shared,
    demands: Mutex<Vec<DemandQueue>>,
    decisions: Decisions,
    events: Arc<Events>,
    others: OtherRelays,
}

impl Control {
    pub(crate) fn new(
        workers: Workers,
        config: Arc<Config>,
        state: watch::Receiver<Arc<RelayState>>,
        changes: mpsc::Sender<ConfigRequest>,
        demands: Vec<DemandQueue>,
        (clock, fronts, first_id): (Clock, Fronts, u64),
    ) -> Self {
        let (door, events) = (Arc::new(Door::new(Rules::from(&*config))), Arc::<Events>::default());
        let told = Arc::clone(&events);
        door.tell_refusals(move |refusal| told.tell(refusal.into()));
        let inner = Inner {
            clock,
            health: Health::new(clock, workers.iter(), Ending::new(door.clone(), clock)),
            registry: Registry::default(),
            pushes: Pushes::default(),
            links: LinkBook::default(),
            workers,
            door,
            config: arc_swap::ArcSwap::new(config),
            state,
            next_id: AtomicU64::new(first_id),
            changes,
            fronts,
            shared: Shared::default(),
            demands: Mutex::new(demands),
            decisions: Decisions::default(),
            events,
            others: OtherRelays::default(),
        };
        Control { inner: Arc::new(inner) }
    }

    /// Now, by the clock of the workers.
    pub fn now(&self) -> Time {
        self.inner.clock.now()
    }

    /// The moment from which the workers' time counts.
    pub fn epoch(&self) -> Instant {
        self.inner.clock.zero()
    }

    /// Whether the relay goes on.
    pub fn health(&self) -> &Health {
        &self.inner.health
    }

    /// The configuration in force.
    pub fn config(&self) -> Arc<Config> {
        self.inner.config.load_full()
    }

    pub(crate) fn set_config(&self, config: Arc<Config>) {
        self.inner.door.set_rules(Rules::from(&*config));
        self.inner.config.store(config);
    }

    /// What peers of all fronts pass before they are served.
    pub fn door(&self) -> &Arc<Door> {
        &self.inner.door
    }

    /// The newest snapshot of everything; at most a second old.
    pub fn state(&self) -> Arc<RelayState> {
        self.inner.state.borrow().clone()
    }

    /// Snapshots as they are made.
    pub fn watch(&self) -> watch::Receiver<Arc<RelayState>> {
        self.inner.state.clone()
    }

    /// Loads the configuration file again and applies what changed in it. What cannot be made stays as it was, and
    /// is tried again. `allow_empty`: that every stream is removed, or most are, is meant.
    ///
    /// # Errors
    /// The file cannot be read, is not valid, or removes too much; nothing has changed then.
    pub async fn reload(&self, allow_empty: bool) -> Result<Changed, ControlError> {
        self.change(ConfigChange::Reload { allow_empty }).await
    }

    /// Changes limits of a stream until the configuration file is loaded again. Receivers and
    /// packets do not notice. Returns what then holds for the stream.
    ///
    /// # Errors
    /// Unknown stream, or a value that is not possible; nothing has changed then.
    pub async fn set_limits(&self, stream: &str, limits: StreamLimits) -> Result<StreamConfig, ControlError> {
        self.change(ConfigChange::Limits { stream: stream.to_owned(), limits }).await?;
        let config = self.config();
        let changed = config.streams.get(stream).cloned().map(Arc::unwrap_or_clone);
        changed.ok_or_else(|| ControlError::UnknownStream(stream.to_owned()))
    }

    /// Gives a stream other services, until the configuration file is loaded again. No packet gets
    /// lost. Returns what changed.
    ///
    /// # Errors
    /// Unknown stream, or services that do not fit; nothing has changed then.
    pub async fn set_services(
        &self,
        stream: &str,
        elements: Elements,
        branches: Branches,
    ) -> Result<Changed, ControlError> {
        self.change(ConfigChange::Services { stream: stream.to_owned(), elements, branches }).await
    }

    /// Lets an element pass everything as it is, or no longer.
    ///
    /// # Errors
    /// Unknown stream or element.
    pub async fn set_bypass(&self, stream: &str, element: &str, bypass: bool) -> Result<(), ControlError> {
        let owner = self.entry(stream)?.owner;
        let element = element.to_owned();
        let stream = owner.stream;
        let command = |reply| Command::Services(ServicesCommand::Bypass { stream, element, bypass, reply });
        self.workers().ask(&owner, command).await
    }

    pub(crate) async fn change(&self, change: ConfigChange) -> Result<Changed, ControlError> {
        let (reply, answer) = oneshot::channel();
        let request = ConfigRequest { change, reply };
        self.inner.changes.send(request).await.map_err(|_| ControlError::ShuttingDown)?;
        answer.await.map_err(|_| ControlError::ShuttingDown)?
    }

    /// Makes a stream that is not configured, with a source that a receiver has asked for.
    ///
    /// # Errors
    /// It cannot be made.
    pub async fn adopt(&self, stream: &str, source: SourceUrl) -> Result<(), ControlError> {
        self.change(ConfigChange::Adopt { stream: stream.to_owned(), source }).await.map(drop)
    }

    /// Removes it again, if it has no receivers.
    pub async fn abandon(&self, stream: &str) {
        // A relay that ends removes all of them.
        let _ = self.change(ConfigChange::Abandon { stream: stream.to_owned() }).await;
    }

    /// What a stream carries, as its source described it last, or what a branch of it does; for receivers that take a
    /// picture and a sound by RTP each ([`Encapsulation::Tracks`]), what they get.
    ///
    /// # Errors
    /// Unknown stream or branch, one that never had a source, or one that has nothing of that form.
    pub async fn describe(
        &self,
        stream: &str,
        wanted: Selection,
        form: Encapsulation,
    ) -> Result<Described, ControlError> {
        self.others().reach(self.registry(), stream, wanted.level).await?;
        let owner = self.entry(stream)?.owner;
        let (stream, wanted) = (owner.stream, (wanted, form));
        self.workers().ask(&owner, |reply| Command::Describe { stream, wanted, reply }).await
    }

    /// The stream of this name, be it without a source.
    pub fn known(&self, stream: &str) -> Option<Known> {
        self.registry().get(stream).as_ref().map(Known::from)
    }

    /// The stream that has this number with any worker, and its name.
    pub fn known_by_number(&self, number: StreamId) -> Option<(String, Known)> {
        self.registry().of_number(number).map(|(name, entry)| (name, Known::from(&entry)))
    }

    /// The least number of layers that a stream has at its source, though fewer may come.
    pub fn set_layers(&self, stream: &str, layers: u8) {
        let change = |options| StreamOptions { layers, ..options };
        self.registry().change_options(stream, self.workers(), change);
    }

    /// Has streams of other relays fetched by this one from now on; the first one stays.
    pub fn set_reach(&self, reach: Arc<dyn Reach>) {
        self.inner.others.set(reach);
    }

    pub(crate) fn others(&self) -> &OtherRelays {
        &self.inner.others
    }

    /// Whether there is a link of this name.
    ///
    /// # Errors
    /// There is none.
    pub fn knows_link(&self, name: &str) -> Result<(), ControlError> {
        self.links().get(name).map(drop)
    }

    /// The link that receivers of a stream are behind, if they do not say otherwise.
    pub fn stream_link(&self, stream: &str) -> Option<String> {
        let config = self.config();
        config.streams.get(stream)?.link.as_ref().map(|link| link.0.clone())
    }

    pub(crate) fn registry(&self) -> &Registry {
        &self.inner.registry
    }

    pub(crate) fn pushes(&self) -> &Pushes {
        &self.inner.pushes
    }

    /// What the fronts of this relay add to the configuration.
    pub fn protocols(&self) -> &Protocols {
        self.inner.fronts.protocols()
    }

    pub(crate) fn fronts(&self) -> &Fronts {
        &self.inner.fronts
    }

    /// The value of this type that all fronts share, made when one asks for it first.
    pub fn shared<T: Any + Send + Sync + Default>(&self) -> Arc<T> {
        self.inner.shared.get()
    }

    /// What receivers want of streams, as it changes, for a front that asks for no more of them elsewhere. It is to be
    /// taken when the front starts, and there is one for each front.
    pub fn take_demands(&self) -> Option<DemandQueue> {
        self.inner.demands.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    /// How many publishers' turns the relay has ended.
    pub fn ended_turns(&self) -> EndedTurns {
        self.inner.registry.ended_turns()
    }

    /// What rules have decided.
    pub fn decisions(&self) -> &Decisions {
        &self.inner.decisions
    }

    /// What happens.
    pub fn events(&self) -> &Events {
        &self.inner.events
    }

    pub(crate) fn links(&self) -> &LinkBook {
        &self.inner.links
    }

    pub(crate) fn workers(&self) -> &Workers {
        &self.inner.workers
    }

    pub(crate) fn entry(&self, stream: &str) -> Result<StreamEntry, ControlError> {
        self.inner.registry.get(stream).ok_or_else(|| ControlError::UnknownStream(stream.to_owned()))
    }

    pub(crate) fn new_id(&self) -> u64 {
        self.inner.next_id.fetch_add(1, Ordering::Relaxed)
    }
}

/// The zero of the relay's clock on the system's monotonic one, in nanoseconds, and the NTP time of that.
pub(crate) fn zero(control: &Control) -> (u64, u64) {
    (control.inner.clock.zero_ns(), control.inner.clock.ntp_at_zero())
}

/// Numbers below this one were given by another process.
pub(crate) fn skip_ids(control: &Control, next_id: u64) {
    control.inner.next_id.fetch_max(next_id, Ordering::Relaxed);
}
