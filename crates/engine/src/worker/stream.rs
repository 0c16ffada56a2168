//! A stream as its worker holds it: the core, and beside it what the core does not know.

use std::collections::BTreeMap;

use outflow_graph::{Unfit, View};
use outflow_media::{Growth, Time};
use outflow_packet::{Drops, Level};
use outflow_relay::control::Stages;
use outflow_relay::feedback::Reception;
use outflow_relay::schedule::Counters;
use outflow_relay::{Handed, Priority, Report, SinkKey, Stream, StreamOptions};

use super::agenda::Seen;
use super::demand::Demands;
use super::services::LiveServices;
use super::share::{OwnerEnd, Queues, ReplicaEnd};
use super::sink::{LiveSink, Out};
use super::source::LiveSource;
use crate::clock::Clock;
use crate::limits::INGEST_ROUND_PACKETS;
use crate::message::{ControlError, Demanders, ReceiverId, Reply, Services, StreamId, Swapped};

/// A stream and everything that is connected to it.
pub(super) struct LiveStream {
    pub(super) id: StreamId,
    /// Its number at its owner, which is this one unless it is a replica.
    pub(super) owner: StreamId,
    pub(super) name: String,
    pub(super) url: String,
    pub(super) core: Stream,
    pub(super) source: Option<LiveSource>,
    /// To other workers that have it, or from them.
    pub(super) queues: Queues,
    /// By [`SinkKey`].
    pub(super) sinks: Vec<Option<LiveSink>>,
    pub(super) receivers: BTreeMap<ReceiverId, SinkKey>,
    /// When the core wants to be polled again.
    pub(super) wake: Option<Time>,
    /// Something came in since it was polled last.
    pub(super) touched: bool,
    pub(super) out_bytes: Growth,
    /// What the last snapshot said was sent and dropped: later ones say no less.
    pub(super) shown: (Counters, Drops),
    pub(super) services: LiveServices,
    /// Of each element, by name: its work, and what came in and went out, between two snapshots.
    pub(super) work: BTreeMap<String, [Growth; 3]>,
    /// What receivers want.
    demands: Demands,
    /// What they have reported last, wherever they are served.
    pub(super) reported: Option<(Time, Reception)>,
    /// The sink at which the sender reports that are due go on.
    pub(super) reporting: Option<usize>,
}

impl LiveStream {
    /// A stream without a source and without receivers.
    pub(super) fn new(
        (id, owner): (StreamId, StreamId),
        name: String,
        url: String,
        options: StreamOptions,
        replica_ends: Vec<ReplicaEnd>,
        told: Demanders,
    ) -> Self {
        // It has one owner, but several renditions.
        let mut core = match replica_ends.len() {
            0 | 1 => Stream::new(options),
            renditions => Stream::of_renditions(options, renditions),
        };
        core.set_probe(crate::clock::probe);
        LiveStream {
            id,
            owner,
            name,
            url,
            core,
            source: None,
            queues: Queues::new(replica_ends),
            sinks: Vec::new(),
            receivers: BTreeMap::new(),
            wake: None,
            touched: false,
            out_bytes: Growth::default(),
            shown: Default::default(),
            services: LiveServices::default(),
            work: BTreeMap::new(),
            demands: Demands::new(id, &told),
            reported: None,
            reporting: None,
        }
    }

    /// The class in which its source is read: that of its most urgent sinks, wherever they are.
    pub(super) fn class(&self) -> Priority {
        let elsewhere = self.queues.class();
        self.core.classes().next().into_iter().chain(elsewhere).min().unwrap_or_default()
    }

    pub(super) fn sink_mut(&mut self, key: SinkKey) -> Option<&mut LiveSink> {
        self.sinks.get_mut(key.0)?.as_mut()
    }

    pub(super) fn put(&mut self, key: SinkKey, sink: LiveSink) {
        if self.sinks.len() <= key.0 {
            self.sinks.resize_with(key.0 + 1, || None);
        }
        self.receivers.insert(sink.id, key);
        self.sinks[key.0] = Some(sink);
        self.count_wish(key);
    }

    /// Takes a receiver out that the core no longer has. It wants nothing any more.
    pub(super) fn take_out(&mut self, key: SinkKey) -> Option<LiveSink> {
        let sink = self.sinks.get_mut(key.0).and_then(Option::take)?;
        self.receivers.remove(&sink.id);
        self.demands.change(sink.wants, None);
        Some(sink)
    }

    /// Says in the log which tracks have no place in what receivers get that were there before the source.
    pub(super) fn look_for_left_out(&self) {
        let (mut receivers, mut left_out) = (0, Vec::new());
        for lacks in self.receivers.values().map(|key| self.core.left_out(*key)).filter(|l| !l.is_empty()) {
            receivers += 1;
            left_out.extend(lacks);
        }
        left_out.sort_unstable();
        left_out.dedup();
        self.warn_of_left_out(&left_out, receivers);
    }

    /// Says in the log which tracks have no place in what receivers get.
    pub(super) fn warn_of_left_out(&self, left_out: &[String], receivers: usize) {
        if !left_out.is_empty() {
            let (stream, left_out) = (&self.name, left_out.join(", "));
            tracing::warn!(stream, left_out, receivers, "MPEG-TS has no place for these tracks");
        }
    }

    /// Takes note of what a receiver wants now. One that wants something that is made of the stream here,
    /// wants all of it.
    pub(super) fn count_wish(&mut self, key: SinkKey) {
        let spec = self.core.spec(key);
        let wants = spec.map(|spec| match spec.branch.is_none() && spec.view == View::default() {
            true => spec.level,
            false => Level::BEST,
        });
        let Some(sink) = self.sinks.get_mut(key.0).and_then(Option::as_mut) else { return };
        let before = std::mem::replace(&mut sink.wants, wants);
        self.demands.change(before, wants);
    }

    /// A UDP socket takes packets again for which a sink has waited: that may be sent to, if it is still there.
    pub(super) fn port_writable(&mut self, port: usize, key: SinkKey) {
        let out = self.sink_mut(key).map(|sink| &sink.out);
        let serves = matches!(out, Some(Out::Udp { route, .. }) if route.socket == port);
        if serves && self.core.is_blocked(key) {
            self.core.handle_report(key, Report::Writable);
            self.touched = true;
        }
    }

    /// What its worker looks at.
    pub(super) fn seen(&self) -> Seen {
        Seen { class: self.class(), wake: self.wake, is_touched: self.touched }
    }

    /// Takes what was put down for it. Returns whether there may be more.
    pub(super) fn take_put_down(&mut self, clock: &Clock) -> bool {
        let is_more = self.drain_queue(clock);
        let now = clock.now();
        let is_more = self.take_handed(now) || is_more;
        self.take_near(now, clock);
        is_more
    }

    /// Takes what its publisher has put into the queue. Returns whether there may be more.
    pub(super) fn drain_queue(&mut self, clock: &Clock) -> bool {
        let Some(source) = &mut self.source else { return false };
        let taken = source.drain(&mut self.core, clock);
        self.touched |= taken > 0;
        taken == INGEST_ROUND_PACKETS
    }

    /// Hands this over to other workers.
    pub(super) fn hand_over(&mut self, handed: Vec<Handed>) {
        self.queues.hand_over(&mut self.core, handed);
    }

    /// Hands over to one more worker from now on. `knows`: that has all that has been before.
    pub(super) fn share(&mut self, owner_end: OwnerEnd, knows: bool) {
        self.queues.share(&mut self.core, owner_end, knows);
    }

    /// Takes what its owner has handed over. Returns whether there may be more.
    pub(super) fn take_handed(&mut self, now: Time) -> bool {
        let (any, is_more) = self.queues.take_handed(&mut self.core, now);
        self.touched |= any;
        is_more
    }

    /// Tells the streams that hand it packets how urgent its sinks are.
    pub(super) fn tell_class(&self) {
        self.queues.tell_class(&self.core);
    }

    /// Puts other services in place, once all stages are here.
    pub(super) fn put_services(&mut self, services: Services, reply: Reply<Swapped>, clock: &Clock) {
        self.touched |= self.services.put(&mut self.core, services, reply, clock);
    }

    /// Does what is to be done for stages of its services in other contexts.
    pub(super) fn see_to_stages(&mut self, now: Time, what: Stages) {
        self.services.see_to_stages(&mut self.core, now, what);
    }

    /// Takes what comes back from other contexts.
    pub(super) fn take_near(&mut self, now: Time, clock: &Clock) {
        self.touched |= self.services.take_near(&mut self.core, now, clock);
    }

    /// What it cannot do, in words.
    pub(super) fn unsupported(&self, unfit: &Unfit) -> ControlError {
        ControlError::Unsupported(format!("'{}': {unfit}", self.name))
    }
}
