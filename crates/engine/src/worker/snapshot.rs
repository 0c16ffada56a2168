//! Snapshots of the worker's streams, for every client that looks.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use outflow_graph::{Graph, NodeReport};
use outflow_media::{Growth, Time};
use outflow_packet::{DropReason, Drops};
use outflow_relay::requests::{Asked, Refusal};
use outflow_relay::schedule::{Counters, Place, Sink};
use outflow_relay::{Priority, SinkKey};

use super::links::Links;
use super::sink::{LiveSink, Out};
use super::stream::LiveStream;
use super::streams::Streams;
use crate::limits::{REPORTED_SHOWN, SNAPSHOT_EVERY, SNAPSHOT_EVERY_RECEIVER, SNAPSHOT_LATE, SNAPSHOT_STEP};
use crate::message::{
    BranchState, ElementState, LinkState, ReceiverId, ReceiverState, SourceState, StreamPart, StreamState,
    WorkerState, named,
};
use crate::send::fanout::{Fanout, FanoutPath};

/// A snapshot in the making: a few receivers at a time, so that it never holds packets up.
#[derive(Debug)]
pub(super) struct Snapshot {
    published: Arc<arc_swap::ArcSwap<WorkerState>>,
    next: Time,
    /// When this one was begun.
    begun: Time,
    /// How often they are made, at least.
    every: Duration,
    done: Vec<StreamPart>,
    /// The stream being taken in, by its index, and the receiver at which to go on.
    at: (usize, ReceiverId),
    current: Option<Partial>,
}

/// What has been taken in of a stream.
#[derive(Debug, Default)]
struct Partial {
    receivers: Vec<ReceiverState>,
    sum: Counters,
    drops: Drops,
}

impl Snapshot {
    pub(super) fn new(published: Arc<arc_swap::ArcSwap<WorkerState>>) -> Self {
        let (every, done) = (SNAPSHOT_EVERY, Vec::new());
        let (next, begun) = (Time::ZERO, Time::ZERO);
        Snapshot { published, next, begun, every, done, at: (0, 0), current: None }
    }

    /// They are made this often from now on, at least.
    pub(super) fn set_every(&mut self, every: Duration) {
        self.every = every;
    }

    /// When the next is to be made.
    pub(super) fn due(&self) -> Time {
        self.next
    }

    pub(super) fn is_due(&self, now: Time) -> bool {
        now >= self.next
    }

    /// The class in which it is made: the lowest, so that packets do not wait for it, until it is late.
    pub(super) fn class(&self, now: Time) -> Priority {
        if now >= self.next + SNAPSHOT_LATE { Priority::High } else { Priority::Low }
    }

    fn publish(&mut self, now: Time, links: Vec<LinkState>, rtcp_strangers: u64) {
        let streams = core::mem::take(&mut self.done);
        let receivers: usize = streams.iter().map(|part| part.state.receivers.len()).sum();
        self.next = now + self.every.max(SNAPSHOT_EVERY_RECEIVER * receivers as u32);
        self.at = (0, 0);
        self.published.store(Arc::new(WorkerState { streams, links, rtcp_strangers, as_of: self.begun }));
    }

    /// Takes the next receivers in; publishes it when it is whole. Returns whether it is to go on.
    pub(super) fn go_on(
        &mut self,
        now: Time,
        streams: &mut Streams,
        links: &mut Links,
        (fanout, rtcp_strangers): (&Fanout, u64),
        worked_us: impl Fn(usize) -> u64,
    ) -> bool {
        let (index, from) = self.at;
        // It may have been put down in two classes, and be finished.
        if (index, from) == (0, 0) {
            if !self.is_due(now) {
                return false;
            }
            self.begun = now;
        }
        let Some(index) = streams.next_from(index) else {
            self.publish(now, links.states(now), rtcp_strangers);
            return false;
        };
        let stream = &mut streams[index];
        let begun = self.current.take().filter(|_| self.at.0 == index);
        let mut partial = begun.unwrap_or_else(|| stream.begin_snapshot());
        match stream.take_in(now, (index, from), (fanout, links), &mut partial) {
            Some(next) => {
                self.at = (index, next);
                self.current = Some(partial);
            }
            None => {
                self.at = (index + 1, 0);
                let (owner, is_replica) = (stream.owner, stream.owner != stream.id);
                let state = stream.state(now, (partial, worked_us(index)));
                self.done.push(StreamPart { owner, is_replica, state });
            }
        }
        true
    }
}

impl LiveStream {
    fn begin_snapshot(&self) -> Partial {
        let (sum, drops, _) = self.core.past();
        Partial { receivers: Vec::with_capacity(self.receivers.len()), sum, drops }
    }

    /// Takes in the next receivers, from the number `from` on. Returns where to go on.
    fn take_in(
        &mut self,
        now: Time,
        (index, from): (usize, ReceiverId),
        (fanout, links): (&Fanout, &mut Links),
        partial: &mut Partial,
    ) -> Option<ReceiverId> {
        let mut last = None;
        for (&id, &key) in self.receivers.range(from..).take(SNAPSHOT_STEP) {
            last = Some(id);
            let (Some(Some(live)), Some(sink)) = (self.sinks.get_mut(key.0), self.core.sink(key)) else {
                continue;
            };
            if let Some(behind) = &live.behind {
                links.reserve(now, &self.core, (key, id, behind));
            }
            let counters = self.core.sink_counters(key);
            partial.sum.packets += counters.packets;
            partial.sum.bytes += counters.bytes;
            let lost = self.core.sink_drops(key);
            partial.drops.merge(&lost);
            let (path, path_because) = path(live, fanout, index, key);
            let (queued, oldest) = self.core.sink_queue(key).unwrap_or_default();
            partial.receivers.push(ReceiverState {
                id: live.id,
                stream: self.name.clone(),
                kind: live.kind,
                path,
                path_because,
                left_out: self.core.left_out(key),
                to: live.to.clone(),
                name: live.name.clone(),
                token: live.token.clone(),
                link: live.behind.as_ref().and_then(|behind| links.name(behind)).map(str::to_owned),
                priority: priority_name(sink.spec.priority),
                level: sink.spec.level.number(),
                level_asked: sink.wish.asked.number(),
                state: place_name(sink),
                age_ms: now.since(sink.joined).as_millis() as u64,
                bps: live.sent_bytes.bps(now, counters.bytes),
                packets: counters.packets,
                bytes: counters.bytes,
                queue_packets: queued,
                queue_delay_ms: oldest.map_or(0, |oldest| now.since(oldest).as_millis() as u64),
                drops: named(&lost),
                level_requests: sink.asked.taken,
                level_refusals: refusals(&sink.asked),
                rtcp_drops: live.rtcp.counts().named(),
                reports: live.reports.clone(),
                carries_bps: live.carries_bps,
                key_frame_requests: live.key_frame_requests,
            });
        }
        last.map(|last| last + 1)
    }

    fn state(&mut self, now: Time, (partial, worker_us): (Partial, u64)) -> StreamState {
        let Partial { receivers, sum, drops } = partial;
        // A receiver that leaves while the snapshot is made may be missing in it; the next one has it.
        let (shown, shown_drops) = &mut self.shown;
        shown.packets = shown.packets.max(sum.packets);
        shown.bytes = shown.bytes.max(sum.bytes);
        shown_drops.raise_to(&drops);
        let (sum, drops) = self.shown;
        let (_, _, joins) = self.core.past();
        let (ring_bytes, ring_packets) = self.core.ring_use();
        StreamState {
            name: self.name.clone(),
            source: self.source_state(now),
            levels: self.core.rate_table(now),
            ring_bytes: ring_bytes as u64,
            ring_packets: ring_packets as u64,
            ring_bytes_max: self.core.options().ring_bytes as u64,
            out_bps: self.out_bytes.bps(now, sum.bytes),
            out_packets: sum.packets,
            out_bytes: sum.bytes,
            worker_us,
            joins,
            out_drops: named(&drops),
            elements: self.elements(now),
            branches: self.branches(),
            services_note: self.services.note().cloned(),
            reported: self
                .reported
                .filter(|(at, _)| now.since(*at) < REPORTED_SHOWN)
                .map(|(_, said)| said.into()),
            receivers: receivers.into(),
        }
    }

    fn elements(&mut self, now: Time) -> Vec<ElementState> {
        let LiveStream { core, work, services, .. } = self;
        let here = core.services().into_iter().flat_map(Graph::report).map(|report| (report, 0, 0));
        let elsewhere = services.reports_elsewhere();
        here.chain(elsewhere).map(|report| element_state(now, work, report)).collect()
    }

    fn branches(&self) -> Vec<BranchState> {
        let Some(graph) = self.core.services() else { return Vec::new() };
        let state = |(exit, name): (usize, &str)| BranchState {
            name: name.to_owned(),
            wanted: graph.is_wanted(exit),
            unfit: graph.exit_format(exit).err().map(ToString::to_string),
        };
        graph.exits().enumerate().map(state).collect()
    }

    fn source_state(&self, now: Time) -> SourceState {
        let counters = self.core.source_counters();
        let (up, since) = self.core.source_up();
        SourceState {
            url: self.url.clone(),
            up,
            peer: self.source.as_ref().map(|source| source.peer().to_owned()),
            format: self.core.describe(),
            since_ms: now.since(since).as_millis() as u64,
            bps: if up { self.core.source_bps(now) } else { 0 },
            packets: counters.packets,
            bytes: counters.bytes,
            lost: self.core.source_lost(),
            jitter_ms: self.core.source_jitter_s() * 1000.0,
            key_interval_ms: self.core.key_interval_ns() / 1_000_000,
            starts: counters.starts,
            drops: named(&counters.drops),
            advice: self.core.has_deep_reordering().then_some(DEEP),
        }
    }
}

/// B pictures that others refer to.
const DEEP: &str = "it has B pictures that others refer to, which browsers show in jerks: encode without \
    B pictures (ffmpeg: -bf 0), or without a pyramid (x264: b-pyramid=none)";

/// What a receiver asked for in vain, by reason.
fn refusals(asked: &Asked) -> BTreeMap<&'static str, u64> {
    let all = Refusal::ALL.iter().zip(asked.refused);
    all.filter(|(_, count)| *count > 0).map(|(refusal, count)| (refusal.as_str(), count)).collect()
}

fn element_state(
    now: Time,
    work: &mut BTreeMap<String, [Growth; 3]>,
    (report, dropped, queue_packets): (NodeReport, u64, u64),
) -> ElementState {
    let NodeReport { name, kind, context, gauge, mut drops, fault, faults, unfit, .. } = report;
    drops.add(DropReason::ContextFull, dropped);
    let [share, bits_in, bits_out] = work.entry(name.clone()).or_default();
    ElementState {
        element: kind,
        context,
        wanted: report.wanted,
        bypass: report.bypass,
        unfit,
        packets_in: gauge.packets_in,
        bytes_in: gauge.bytes_in,
        packets_out: gauge.packets_out,
        bytes_out: gauge.bytes_out,
        drops: named(&drops),
        queue_packets,
        packet_ns: gauge.packet_ns(),
        in_bps: bits_in.bps(now, gauge.bytes_in),
        out_bps: bits_out.bps(now, gauge.bytes_out),
        cpu_percent: share.percent(now, gauge.work_ns()),
        turn_us: gauge.turn_ns / 1_000,
        long_turns: gauge.long_turns,
        memory_bytes: report.memory_bytes,
        faults,
        fault,
        name,
    }
}

/// By which way a receiver's packets go, and why by no faster one.
fn path(
    sink: &LiveSink,
    fanout: &Fanout,
    stream: usize,
    key: SinkKey,
) -> (&'static str, Option<&'static str>) {
    match sink.out {
        Out::Udp { .. } => {
            let (path, why) = fanout.path(stream, key);
            (path.as_str(), why)
        }
        Out::Stream { .. } | Out::Peer { .. } => (FanoutPath::User.as_str(), None),
    }
}

fn priority_name(priority: Priority) -> &'static str {
    match priority {
        Priority::High => "high",
        Priority::Normal => "normal",
        Priority::Low => "low",
    }
}

fn place_name(sink: &Sink) -> &'static str {
    match sink.place() {
        Place::Paused => "paused",
        Place::Waiting => "waiting",
        Place::Behind(_) => "behind",
        Place::Live { .. } => "live",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_made_as_often_as_was_said_last() {
        let published = Arc::default();
        let mut snapshot = Snapshot::new(Arc::clone(&published));
        let now = Time::from_millis(100);
        snapshot.publish(now, Vec::new(), 7);
        assert_eq!((snapshot.due(), published.load().rtcp_strangers), (now + SNAPSHOT_EVERY, 7));
        snapshot.set_every(SNAPSHOT_EVERY * 10);
        snapshot.publish(now, Vec::new(), 8);
        assert_eq!(snapshot.due(), now + SNAPSHOT_EVERY * 10);
    }
}
