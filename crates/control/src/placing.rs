//! Where a stream's receivers are served: at its home, and once there are too many of them for one
//! worker, by others as well.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Instant;

use outflow_engine::Inlet;
use outflow_engine::message::{Command, ControlError, ReceiverId, StreamId, UdpSite};
use outflow_relay::{LevelBounds, Selection, StreamOptions};
use tokio::sync::watch;

use super::registry::StreamEntry;
use crate::control::Control;
use crate::limits::REPLICA_LINGER;
use crate::links::LinkPlace;
use crate::registry::Owner;

/// Receivers by worker.
pub(crate) type Load = BTreeMap<usize, usize>;

/// All become true once a replica can serve.
pub(crate) type Ready = Vec<watch::Receiver<bool>>;

/// A stream at a worker that is not its home.
#[derive(Debug, Clone)]
pub(crate) struct Replica {
    pub(crate) owner: Owner,
    receivers: usize,
    /// Since when it has none.
    idle_since: Option<Instant>,
    /// `None` while it rests.
    pub(super) ready: Option<Ready>,
}

/// A replica that is to serve from now on.
#[derive(Debug)]
pub(crate) struct Replication {
    home: StreamId,
    /// The streams that hand it packets: its home, or those of its renditions.
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
    /// The stream wherever it is, its home first.
    pub(crate) fn owners(&self) -> impl Iterator<Item = Owner> + '_ {
        core::iter::once(self.owner).chain(self.replicas.iter().map(|replica| replica.owner))
    }

    /// The worker for the stream's next receiver: its home, until there are too many of them.
    /// Beyond, a worker with fewer receivers of all streams helps: first those that do so already,
    /// because every further one has to be handed every packet.
    pub(super) fn place(&self, load: &Load, Placing { workers, split }: Placing) -> usize {
        let home = self.owner.worker;
        let elsewhere: usize = self.replicas.iter().map(|replica| replica.receivers).sum();
        if self.receivers.saturating_sub(elsewhere) < split {
            return home;
        }
        let load = |worker: &usize| load.get(worker).copied().unwrap_or(0);
        let is_less_loaded = |worker: &usize| load(worker) < load(&home);
        let helps = |replica: &&Replica| replica.ready.is_some() && replica.receivers < split;
        let helping = self.replicas.iter().filter(helps).map(|replica| replica.owner.worker);
        let helping = helping.min_by_key(load).filter(is_less_loaded);
        let serves = |worker: usize| self.owners().any(|owner| owner.worker == worker);
        let least = || (0..workers).min_by_key(|worker| (load(worker), !serves(*worker)));
        helping.or_else(least).filter(is_less_loaded).unwrap_or(home)
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
        let (options, bounds, owner) = (self.options, &self.bounds, replica.owner);
        let from = if self.renditions.is_empty() { vec![self.owner] } else { self.renditions.clone() };
        let home = self.owner.stream;
        let replicate =
            || replicate(Replication { home, from, replica: owner, options, bounds: bounds.clone() });
        let ready = replica.ready.get_or_insert_with(replicate).clone();
        Admitted { owner, ready: Some(ready) }
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
    /// Whether it serves and has not had a receiver for a while.
    pub(super) fn is_idle(&self, now: Instant) -> bool {
        let long = |since: Instant| now.saturating_duration_since(since) >= REPLICA_LINGER;
        self.ready.is_some() && self.idle_since.is_some_and(long)
    }
}

impl Control {
    /// The worker that a receiver by UDP is to be served by, and its ports; it has asked at this address.
    /// Branches are made at the stream's home, and served from there; receivers behind a link are with it.
    ///
    /// # Errors
    /// Unknown stream or link.
    pub fn udp_site(&self, stream: &str, wanted: &Selection, from: IpAddr) -> Result<UdpSite, ControlError> {
        let worker = match (self.stream_link_place(stream)?, wanted.is_all()) {
            (Some(link), _) => link.worker,
            (None, true) => self.registry().place(stream, self.placing())?,
            (None, false) => self.entry(stream)?.owner.worker,
        };
        let (rtp, rtcp) = self.workers()[worker].rtp_ports;
        Ok(UdpSite { worker, from, rtp, rtcp })
    }

    /// Writes a receiver down with the worker that is to serve it.
    pub(crate) fn admit(
        &self,
        stream: &str,
        receiver: ReceiverId,
        site: Option<UdpSite>,
        (wanted, link): (&Selection, Option<(LinkPlace, &str)>),
    ) -> Result<Admitted, ControlError> {
        let relay_max = self.config().limits.receivers;
        let home = if wanted.is_all() { None } else { Some(self.entry(stream)?.owner.worker) };
        if let (Some(home), Some((link, name))) = (home, link)
            && home != link.worker
        {
            return Err(ControlError::Unsupported(format!(
                "a branch, view or level of stream '{stream}' cannot be had behind link '{name}', which is \
                 with another worker: put the stream itself behind it ([streams.{stream}] link = \"{name}\") \
                 and start the relay anew"
            )));
        }
        let link = link.map(|(link, _)| link.worker);
        let worker = site.map(|site| site.worker).or(link).or(home);
        let terms = Terms { relay_max, placing: self.placing(), worker };
        let replicate = |replication| self.replicate(stream, replication);
        self.registry().admit(stream, receiver, terms, || self.new_id(), replicate)
    }

    /// Lets replicas rest that no receiver needs any more.
    pub(crate) fn rest_idle_replicas(&self) {
        let rest = |owner: Owner| self.tell(&owner, Command::Rest { stream: owner.stream });
        self.registry().rest_idle(Instant::now(), rest);
    }

    fn replicate(&self, name: &str, replication: Replication) -> Ready {
        let Replication { home, from, replica, options, bounds } = replication;
        tracing::info!(stream = name, worker = replica.worker, "a stream is served by one more worker");
        let (stream, name) = (replica.stream, name.to_owned());
        let mut ready = Vec::new();
        self.feed(&from, replica.worker, |inlets| {
            ready.extend(inlets.iter().map(Inlet::ready));
            self.tell(&replica, Command::Replicate { stream, home, name, options, inlets });
            self.tell(&replica, Command::SetBounds { stream, bounds });
        });
        ready
    }

    /// Lets streams hand their packets to another one, at this worker, which is told of the queues first.
    pub(crate) fn feed(&self, from: &[Owner], worker: usize, tell: impl FnOnce(Vec<Inlet>)) {
        let queue = |home: &Owner| {
            let upward = self.workers()[home.worker].upward(home.stream);
            self.workers()[worker].queue(upward)
        };
        let (outlets, inlets): (Vec<_>, Vec<_>) = from.iter().map(queue).unzip();
        tell(inlets);
        for (home, outlet) in from.iter().zip(outlets) {
            self.tell(home, Command::Share { stream: home.stream, outlet });
        }
    }

    fn placing(&self) -> Placing {
        Placing { workers: self.workers().len(), split: self.config().limits.split }
    }
}
