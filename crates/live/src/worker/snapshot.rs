//! Snapshots of the worker's streams, for everyone who looks.

use std::sync::Arc;

use outflow_media::Time;
use outflow_relay::Priority;
use outflow_relay::schedule::{Place, Sink};

use super::Worker;
use super::stream::LiveStream;
use crate::limits::{SNAPSHOT_EVERY, SNAPSHOT_MANY};
use crate::message::{ReceiverState, SourceState, StreamState, named};

impl Worker {
    /// Makes a snapshot when it is time for one.
    pub(super) fn publish_if_due(&mut self) {
        let now = self.clock.now();
        if now < self.next_snapshot {
            return;
        }
        let states: Vec<_> = self.streams.iter_mut().map(|(_, stream)| stream.state(now)).collect();
        let receivers: usize = states.iter().map(|state| state.receivers.len()).sum();
        let every = if receivers < SNAPSHOT_MANY { SNAPSHOT_EVERY } else { 4 * SNAPSHOT_EVERY };
        self.next_snapshot = now + every;
        self.published.store(Arc::new(states));
    }
}

impl LiveStream {
    fn state(&mut self, now: Time) -> StreamState {
        let (past, mut drops, joins) = self.core.past();
        let (mut packets, mut bytes) = (past.packets, past.bytes);
        let mut receivers = Vec::with_capacity(self.receivers.len());
        for (key, sink) in self.core.sinks() {
            drops.merge(&sink.drops);
            let counters = self.core.sink_counters(key);
            packets += counters.packets;
            bytes += counters.bytes;
            if let Some(Some(live)) = self.sinks.get_mut(key.0) {
                let queue = self.core.sink_queue(key);
                let (queued, oldest) = queue.unwrap_or_default();
                receivers.push(ReceiverState {
                    id: live.id,
                    stream: self.name.clone(),
                    kind: live.kind,
                    to: live.to.clone(),
                    name: live.name.clone(),
                    priority: priority_name(sink.spec.priority),
                    state: place_name(sink),
                    age_ms: now.since(sink.joined).as_millis() as u64,
                    bps: live.sent_bytes.bps(now, counters.bytes),
                    packets: counters.packets,
                    bytes: counters.bytes,
                    queue_packets: queued,
                    queue_delay_ms: oldest.map_or(0, |oldest| now.since(oldest).as_millis() as u64),
                    drops: named(&sink.drops),
                    reports: live.reports.clone(),
                });
            }
        }
        receivers.sort_by_key(|receiver| receiver.id);
        let (ring_bytes, ring_packets) = self.core.ring_use();
        StreamState {
            name: self.name.clone(),
            source: self.source_state(now),
            ring_bytes: ring_bytes as u64,
            ring_packets: ring_packets as u64,
            ring_bytes_max: self.core.options().ring_bytes as u64,
            out_bps: self.out_bytes.bps(now, bytes),
            out_packets: packets,
            out_bytes: bytes,
            joins,
            out_drops: named(&drops),
            receivers,
        }
    }

    fn source_state(&self, now: Time) -> SourceState {
        let counters = self.core.source_counters();
        let (up, since) = self.core.source_up();
        SourceState {
            url: self.url.clone(),
            up,
            peer: self.source.as_ref().map(|source| source.peer.clone()),
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
        }
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
