//! The handle on a running relay.

use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use outflow_config::{Branches, Config, Elements, Protocols, StreamConfig};
use outflow_door::{Door, Rules};
use outflow_engine::message::{
    CloseReason, Command, ControlError, Demand, Described, ReceiverId, RelayState, Reply, ServicesCommand,
};
use outflow_engine::{Clock, Contexts, Line, WorkerHandle};
use outflow_graph::View;
use outflow_media::Time;
use outflow_packet::Level;
use outflow_relay::{LevelBounds, Priority, Selection, StreamOptions};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::{mpsc, oneshot, watch};

use crate::change::{Changed, ConfigChange, ConfigRequest, StreamLimits};
use crate::decisions::Decisions;
use crate::front::Fronts;
use crate::links::LinkBook;
use crate::pushes::Pushes;
use crate::reach::Reach;
use crate::registry::{Owner, Registry, StreamEntry};
use crate::shared::Shared;

/// A handle on the running relay; clones are the same relay.
#[derive(Debug, Clone)]
pub struct Control {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    clock: Clock,
    registry: Registry,
    pushes: Pushes,
    links: LinkBook,
    workers: Vec<WorkerHandle>,
    config: arc_swap::ArcSwap<Config>,
    door: Arc<Door>,
    state: watch::Receiver<Arc<RelayState>>,
    next_id: AtomicU64,
    changes: mpsc::Sender<ConfigRequest>,
    fronts: Fronts,
    shared: Shared,
    demands: Mutex<Option<UnboundedReceiver<Demand>>>,
    contexts: Contexts,
    decisions: Decisions,
    /// Fetches streams of other relays, if there is such.
    reach: OnceLock<Arc<dyn Reach>>,
}

impl Control {
    pub(crate) fn new(
        workers: Vec<WorkerHandle>,
        config: Arc<Config>,
        state: watch::Receiver<Arc<RelayState>>,
        changes: mpsc::Sender<ConfigRequest>,
        demands: UnboundedReceiver<Demand>,
        (clock, fronts): (Clock, Fronts),
    ) -> Self {
        let inner = Inner {
            clock,
            registry: Registry::default(),
            pushes: Pushes::default(),
            links: LinkBook::default(),
            workers,
            door: Arc::new(Door::new(Rules::from(&*config))),
            config: arc_swap::ArcSwap::new(config),
            state,
            next_id: AtomicU64::new(1),
            changes,
            fronts,
            shared: Shared::default(),
            demands: Mutex::new(Some(demands)),
            contexts: Contexts::default(),
            decisions: Decisions::default(),
            reach: OnceLock::new(),
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

    /// Loads the configuration file again and applies what changed in it. Returns a line for each
    /// change that was made, and one for each that needs a restart.
    ///
    /// # Errors
    /// The file cannot be read or is not valid; nothing has changed then.
    pub async fn reload(&self) -> Result<Vec<String>, ControlError> {
        self.change(ConfigChange::Reload).await.map(|changed| changed.lines)
    }

    /// Changes limits of a stream until the configuration file is loaded again. Receivers and
    /// packets do not notice. Returns what then holds for the stream.
    ///
    /// # Errors
    /// Unknown stream, or a value that is not possible; nothing has changed then.
    pub async fn set_limits(&self, stream: &str, limits: StreamLimits) -> Result<StreamConfig, ControlError> {
        self.change(ConfigChange::Limits { stream: stream.to_owned(), limits }).await?;
        let config = self.config();
        config.streams.get(stream).cloned().ok_or_else(|| ControlError::UnknownStream(stream.to_owned()))
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
        self.ask(&owner, command).await
    }

    pub(crate) async fn change(&self, change: ConfigChange) -> Result<Changed, ControlError> {
        let (reply, answer) = oneshot::channel();
        let request = ConfigRequest { change, reply };
        self.inner.changes.send(request).await.map_err(|_| ControlError::ShuttingDown)?;
        answer.await.map_err(|_| ControlError::ShuttingDown)?
    }

    /// What a stream carries, as its source described it last, or what a branch of it does.
    ///
    /// # Errors
    /// Unknown stream or branch, or one that never had a source.
    pub async fn describe(&self, stream: &str, wanted: Selection) -> Result<Described, ControlError> {
        self.reach(stream, wanted.level).await?;
        let entry = self.entry(stream)?;
        self.ask(&entry.owner, |reply| Command::Describe { stream: entry.owner.stream, wanted, reply }).await
    }

    /// Ends a receiver.
    ///
    /// # Errors
    /// There is no such receiver.
    pub fn remove_receiver(&self, receiver: ReceiverId) -> Result<(), ControlError> {
        let owner = self.receiver_owner(receiver)?;
        self.tell(&owner, Command::Leave { stream: owner.stream, receiver, reason: CloseReason::Removed });
        Ok(())
    }

    /// Lets a receiver see something else of images from now on.
    ///
    /// # Errors
    /// There is no such receiver, or nothing like that to be seen; it sees what it saw then.
    pub async fn set_view(&self, receiver: ReceiverId, view: View) -> Result<(), ControlError> {
        let owner = self.receiver_owner(receiver)?;
        let stream = owner.stream;
        let command = |reply| Command::Services(ServicesCommand::View { stream, receiver, view, reply });
        self.ask(&owner, command).await
    }

    /// Lets a receiver have another quality from now on: less from the next frame on, more from where that
    /// can be decoded.
    ///
    /// # Errors
    /// There is no such receiver, or no such level; it keeps the one it has.
    pub async fn set_level(&self, receiver: ReceiverId, level: Level) -> Result<(), ControlError> {
        let owner = self.receiver_owner(receiver)?;
        let stream = owner.stream;
        let command = |reply| Command::Services(ServicesCommand::Level { stream, receiver, level, reply });
        self.ask(&owner, command).await
    }

    /// Lets a stream be otherwise, wherever it is served.
    pub(crate) fn change_options(&self, stream: &str, change: impl FnOnce(StreamOptions) -> StreamOptions) {
        self.registry().update(stream, |entry| {
            let options = change(entry.options);
            if entry.options == options {
                return;
            }
            // Under the book's lock: a replica either is among these, or begins with the new ones.
            for owner in entry.owners() {
                self.tell(&owner, Command::SetOptions { stream: owner.stream, options });
            }
            entry.options = options;
        });
    }

    /// Lets receivers of a stream have no more than this, wherever they are served.
    pub(crate) fn set_bounds(&self, stream: &str, bounds: LevelBounds) {
        self.registry().update(stream, |entry| {
            if entry.bounds == bounds {
                return;
            }
            // Under the book's lock: a replica either is among these, or begins with the new ones.
            for owner in entry.owners() {
                self.tell(&owner, Command::SetBounds { stream: owner.stream, bounds: bounds.clone() });
            }
            entry.bounds = bounds;
        });
    }

    /// Changes a receiver's class; nothing it is owed gets lost.
    ///
    /// # Errors
    /// There is no such receiver.
    pub fn set_priority(&self, receiver: ReceiverId, priority: Priority) -> Result<(), ControlError> {
        let owner = self.receiver_owner(receiver)?;
        self.tell(&owner, Command::SetPriority { stream: owner.stream, receiver, priority });
        Ok(())
    }

    /// A line from a stream's worker through these contexts, and back.
    pub(crate) fn line(&self, owner: &Owner, contexts: &[(String, usize)]) -> Result<Line, ControlError> {
        self.inner.contexts.line(contexts, self.inner.workers[owner.worker].bell())
    }

    /// Names of all streams.
    pub fn stream_names(&self) -> Vec<String> {
        self.inner.registry.names()
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

    pub(crate) fn reached_by(&self) -> &OnceLock<Arc<dyn Reach>> {
        &self.inner.reach
    }

    /// The value of this type that all fronts share, made when one asks for it first.
    pub fn shared<T: Any + Send + Sync + Default>(&self) -> Arc<T> {
        self.inner.shared.get()
    }

    /// What receivers want of streams, as it changes; for the front that fetches streams. There is one such.
    pub fn take_demands(&self) -> Option<UnboundedReceiver<Demand>> {
        self.inner.demands.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(crate) fn decisions(&self) -> &Decisions {
        &self.inner.decisions
    }

    pub(crate) fn links(&self) -> &LinkBook {
        &self.inner.links
    }

    pub(crate) fn workers(&self) -> &[WorkerHandle] {
        &self.inner.workers
    }

    pub(crate) fn entry(&self, stream: &str) -> Result<StreamEntry, ControlError> {
        self.inner.registry.get(stream).ok_or_else(|| ControlError::UnknownStream(stream.to_owned()))
    }

    pub(crate) fn new_id(&self) -> u64 {
        self.inner.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Sends a command whose effect needs no answer. A worker that is gone has nothing to do it to.
    pub(crate) fn tell(&self, owner: &Owner, command: Command) {
        self.inner.workers[owner.worker].send(command);
    }

    pub(crate) async fn ask<T>(
        &self,
        owner: &Owner,
        command: impl FnOnce(Reply<T>) -> Command,
    ) -> Result<T, ControlError> {
        let (reply, answer) = oneshot::channel();
        self.inner.workers[owner.worker].send(command(reply));
        answer.await.map_err(|_| ControlError::ShuttingDown)?
    }

    /// Waits until the worker has done everything that it was told before.
    pub(crate) async fn settled(&self, owner: &Owner) {
        let (done, settled) = oneshot::channel();
        self.tell(owner, Command::Settle { done });
        // A worker that has ended has done all that it ever will.
        let _ = settled.await;
    }

    fn receiver_owner(&self, receiver: ReceiverId) -> Result<Owner, ControlError> {
        self.inner.registry.receiver(receiver).ok_or(ControlError::UnknownReceiver(receiver))
    }
}
