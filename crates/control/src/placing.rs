//! A stream as control knows it, and where its receivers are served: at its owner, and once there are too
//! many of them for one worker, by others as well.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use outflow_engine::ReplicaEnd;
use outflow_engine::message::{Command, StreamId};
use outflow_media::Time;
use outflow_relay::{LevelBounds, StreamOptions};
use tokio::sync::watch;

use crate::limits::REPLICA_LINGER;
use crate::reserves::Reserves;
use crate::turn::{Turn, TurnRules};
use crate::workers::{Owner, Workers};

/// Receivers by worker.
pub(crate) type Load = BTreeMap<usize, usize>;

/// Replicas that serve and have no receivers: since when, and their numbers.
pub(crate) type Idle = BTreeSet<(Instant, StreamId)>;

/// All become true once a replica can serve.
pub(crate) type Ready = Vec<watch::Receiver<bool>>;

/// What control knows of a stream.
#[derive(Debug, Clone)]
pub(crate) struct StreamEntry {
    /// Its owner: where its source is.
    pub(crate) owner: Owner,
    pub(crate) options: StreamOptions,
    /// The owners of its renditions, if it has no source of its own.
    pub(crate) renditions: Vec<Owner>,
    /// What rules leave of its levels.
    pub(crate) bounds: LevelBounds,
    /// Whether its source is what publishers bring.
    pub(crate) is_pushed: bool,
    pub(crate) turns: TurnRules,
    pub(crate) receivers_max: usize,
    /// With its owner and elsewhere.
    pub(crate) receivers: usize,
    pub(crate) publisher: Option<Turn>,
    /// Where else it is, or was, served.
    pub(crate) replicas: Vec<Replica>,
}

/// A stream at a worker that is not its owner.
#[derive(Debug, Clone)]
pub(crate) struct Replica {
    pub(crate) owner: Owner,
    receivers: usize,
    /// Since when it has none.
    idle_since: Option<Instant>,
    /// `None` while it rests.
    ready: Option<Ready>,
}

/// A replica that is to serve from now on.
#[derive(Debug)]
pub(crate) struct Replication {
    owner: StreamId,
    /// The streams that hand it packets: its owner, or those of its renditions.
    from: Vec<Owner>,
    replica: Owner,
    options: StreamOptions,
    bounds: LevelBounds,
}

/// What decides about a receiver that is to be admitted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terms {
    /// Receivers of the whole relay.
    pub(crate) relay_max: usize,
    pub(crate) placing: Placing,
    /// The worker was chosen before.
    pub(crate) worker: Option<usize>,
}

/// What decides where a receiver is served.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Placing {
    /// How many workers there are.
    pub(crate) workers: usize,
    /// Receivers of one stream at one worker, from which on others help.
    pub(crate) split: usize,
}

/// A receiver's place.
#[derive(Debug)]
pub(crate) struct Admitted {
    pub(crate) owner: Owner,
    /// To wait for before it joins.
    ready: Option<Ready>,
}

impl StreamEntry {
    /// Whether a publisher may have it now.
    pub(crate) fn is_free(&self, now: Time) -> bool {
        self.publisher.as_ref().is_none_or(|turn| turn.may_be_taken_over(self.turns, now))
    }

    /// Whether it comes from other relays.
    pub(crate) fn is_of_relays(&self) -> bool {
        self.options.is_relayed
    }

    /// The stream wherever it is, its owner first.
    pub(crate) fn owners(&self) -> impl Iterator<Item = Owner> + '_ {
        core::iter::once(self.owner).chain(self.replicas.iter().map(|replica| replica.owner))
    }

    /// The workers that serve it, its owner first.
    pub(crate) fn serving(&self) -> impl Iterator<Item = usize> + '_ {
        let serving = self.replicas.iter().filter(|replica| replica.ready.is_some());
        core::iter::once(self.owner).chain(serving.map(|replica| replica.owner)).map(|owner| owner.worker)
    }

    /// The worker for the stream's next receiver: its owner, until there are too many of them.
    /// Beyond, a worker with fewer receivers of all streams helps: first those that do so already,
    /// because every further one has to be handed every packet. Another one has to have room for what it reserves.
    pub(super) fn place(
        &self,
        (load, reserves): (&Load, &Reserves),
        Placing { workers, split }: Placing,
    ) -> usize {
        let owner = self.owner.worker;
        let elsewhere: usize = self.replicas.iter().map(|replica| replica.receivers).sum();
        if self.receivers.saturating_sub(elsewhere) < split {
            return owner;
        }
        let load = |worker: &usize| load.get(worker).copied().unwrap_or(0);
        let is_less_loaded = |worker: &usize| load(worker) < load(&owner);
        let helps = |replica: &&Replica| replica.ready.is_some() && replica.receivers < split;
        let helping = self.replicas.iter().filter(helps).map(|replica| replica.owner.worker);
        let helping = helping.min_by_key(load).filter(is_less_loaded);
        let serves = |worker: usize| self.owners().any(|owner| owner.worker == worker);
        let has_room = |worker: &usize| self.has_room(reserves, *worker);
        let least = || (0..workers).filter(has_room).min_by_key(|worker| (load(worker), !serves(*worker)));
        helping.or_else(least).filter(is_less_loaded).unwrap_or(owner)
    }

    /// Whether a worker has room for what it reserves, as one that serves it has.
    pub(super) fn has_room(&self, reserves: &Reserves, worker: usize) -> bool {
        reserves.fits(worker, self.options.reserve) || self.serving().any(|serving| serving == worker)
    }

    /// A receiver more, at this worker.
    pub(super) fn take_in(
        &mut self,
        worker: usize,
        number: impl FnOnce() -> StreamId,
        replicate: impl FnOnce(Replication) -> Ready,
    ) -> Admitted {
        self.receivers += 1;
        if worker == self.owner.worker {
            return Admitted { owner: self.owner, ready: None };
        }
        let known = self.replicas.iter().position(|replica| replica.owner.worker == worker);
        let at = known.unwrap_or_else(|| {
            let owner = Owner { worker, stream: number() };
            self.replicas.push(Replica { owner, receivers: 0, idle_since: None, ready: None });
            self.replicas.len() - 1
        });
        let replica = &mut self.replicas[at];
        replica.receivers += 1;
        replica.idle_since = None;
        let (options, bounds, owner) = (self.options, &self.bounds, self.owner.stream);
        let there = replica.owner;
        let from = if self.renditions.is_empty() { vec![self.owner] } else { self.renditions.clone() };
        let replicate =
            || replicate(Replication { owner, from, replica: there, options, bounds: bounds.clone() });
        let ready = replica.ready.get_or_insert_with(replicate).clone();
        Admitted { owner: there, ready: Some(ready) }
    }

    /// Its replicas that serve and have no receivers.
    pub(super) fn idle(&self) -> impl Iterator<Item = (Instant, StreamId)> + '_ {
        self.replicas.iter().filter_map(Replica::idle)
    }

    /// Its replica with this worker, if that serves and has no receivers.
    pub(super) fn idle_at(&self, worker: usize) -> Option<(Instant, StreamId)> {
        self.replicas.iter().find(|replica| replica.owner.worker == worker)?.idle()
    }

    /// The replica of this number rests from now on. Answers where it is.
    pub(super) fn rest(&mut self, number: StreamId) -> Option<Owner> {
        let replica = self.replicas.iter_mut().find(|replica| replica.owner.stream == number)?;
        replica.ready = None;
        Some(replica.owner)
    }

    /// A receiver less.
    pub(super) fn let_go(&mut self, owner: Owner) {
        self.receivers = self.receivers.saturating_sub(1);
        if let Some(replica) = self.replicas.iter_mut().find(|replica| replica.owner == owner) {
            replica.receivers = replica.receivers.saturating_sub(1);
            replica.idle_since = (replica.receivers == 0).then(Instant::now);
        }
    }
}

impl Replication {
    /// Has the stream, which has this name, served at one worker more. What it has to wait for is returned. `knows`: it
    /// has all that has been before.
    pub(crate) fn carry_out(self, name: &str, workers: &Workers, knows: bool) -> Ready {
        let Replication { owner, from, replica, options, bounds } = self;
        tracing::info!(stream = name, worker = replica.worker, "a stream is served by one more worker");
        let (stream, name) = (replica.stream, name.to_owned());
        let mut ready = Vec::new();
        workers.feed(&from, (&replica, knows), |replica_ends| {
            ready.extend(replica_ends.iter().map(ReplicaEnd::ready));
            workers.tell(&replica, Command::Replicate { stream, owner, name, options, replica_ends });
            workers.tell(&replica, Command::SetBounds { stream, bounds });
        });
        ready
    }
}

impl Admitted {
    /// Waits until receivers can join. `false`: the stream is gone.
    pub(crate) async fn ready(self) -> bool {
        for mut ready in self.ready.into_iter().flatten() {
            if ready.wait_for(|ready| *ready).await.is_err() {
                return false;
            }
        }
        true
    }
}

impl Replica {
    fn idle(&self) -> Option<(Instant, StreamId)> {
        self.idle_since.filter(|_| self.ready.is_some()).map(|since| (since, self.owner.stream))
    }
}

/// Whether a replica that has had no receivers since then need not serve any longer.
pub(crate) fn has_lingered(since: Instant, now: Instant) -> bool {
    now.saturating_duration_since(since) >= REPLICA_LINGER
}
