//! What a stream shows of itself.

use outflow_media::Time;
use outflow_packet::Drops;

use super::intake::Intake;
use super::options::StreamOptions;
use super::source::SourceCounters;
use super::state::State;
use crate::schedule::{Counters, Sink, SinkKey, SinkSpec};
use outflow_ring::Ring;

impl State {
    /// Its options.
    pub fn options(&self) -> &StreamOptions {
        &self.out.options
    }

    /// What came from its source.
    pub fn source_counters(&self) -> SourceCounters {
        let mut counters = self.source.counters();
        counters.drops.merge(&self.out.branches.drops());
        counters.drops.merge(self.out.services.drops());
        counters
    }

    /// Whether packets come in, and since when that is so.
    pub fn source_up(&self) -> (bool, Time) {
        (self.source.is_up(), self.source.since())
    }

    /// Bits a second that come in.
    pub fn source_bps(&self, now: Time) -> u64 {
        self.source.bps(now)
    }

    /// Nanoseconds between the last two key frames of the main track; 0 before the second.
    pub fn key_interval_ns(&self) -> u64 {
        self.source.key_interval_ns()
    }

    /// Whether pictures that others refer to are shown before some that came sooner. Known of what comes by RTP, and of a
    /// transport stream once a receiver shows its pictures as they come.
    pub fn has_deep_reordering(&self) -> bool {
        self.out.branches.slots().any(|(_, slot)| slot.showing.is_deep())
    }

    /// Packets that were lost before they came here.
    pub fn source_lost(&self) -> u64 {
        self.intake.as_ref().map_or(0, Intake::lost)
    }

    /// Interarrival jitter of the first track that comes by RTP, in seconds.
    pub fn source_jitter_s(&self) -> f64 {
        self.intake.as_ref().map_or(0.0, Intake::jitter_s)
    }

    /// The format in words; empty until there was a source, and in replicas.
    pub fn describe(&self) -> String {
        if let Some(renditions) = &self.out.renditions {
            return renditions.describe();
        }
        let described = self.intake.as_ref().zip(self.format());
        described.map(|(intake, format)| intake.describe(format)).unwrap_or_default()
    }

    /// The rings: bytes and packets held, all branches together.
    pub fn ring_use(&self) -> (usize, usize) {
        let sum = |f: fn(&Ring) -> usize| self.out.branches.iter().map(|branch| f(branch.ring())).sum();
        (sum(Ring::bytes), sum(Ring::len))
    }

    /// Its sinks.
    pub fn sinks(&self) -> impl Iterator<Item = (SinkKey, &Sink)> {
        self.out.sinks.iter().map(|(key, sink)| (SinkKey(key), sink))
    }

    /// A sink.
    pub fn sink(&self, key: SinkKey) -> Option<&Sink> {
        self.out.sinks.get(key.0)
    }

    /// What a sink wants.
    pub fn spec(&self, key: SinkKey) -> Option<SinkSpec> {
        self.out.sinks.get(key.0).map(|sink| sink.spec)
    }

    /// Whether a sink that has begun takes nothing now.
    pub fn is_blocked(&self, key: SinkKey) -> bool {
        self.out.sinks.get(key.0).is_some_and(|sink| sink.blocked && !sink.spec.held)
    }

    /// What a sink was sent.
    pub fn sink_counters(&self, key: SinkKey) -> Counters {
        self.out.sent_to(key)
    }

    /// What a sink should have had and did not get.
    pub fn sink_drops(&self, key: SinkKey) -> Drops {
        let sink = self.out.sinks.get(key.0);
        match sink.and_then(|sink| self.out.branches.get(sink.branch?)) {
            Some(branch) => branch.drops(&self.out.sinks, key),
            None => sink.map(|sink| sink.drops).unwrap_or_default(),
        }
    }

    /// What waits for a sink: packets, and since when the oldest of them.
    pub fn sink_queue(&self, key: SinkKey) -> Option<(u64, Option<Time>)> {
        let branch = self.out.branches.get(self.out.sinks.get(key.0)?.branch?)?;
        let cursor = branch.cursor(&self.out.sinks, key)?;
        let oldest = branch.ring().get(cursor).map(|entry| entry.packet.arrived);
        Some((branch.ring().head() - cursor, oldest))
    }

    /// How many renditions it has; 0 if it has a source of its own.
    pub fn rendition_count(&self) -> usize {
        self.out.rendition_count()
    }

    /// What sinks that have left were sent and did not get, and how many ever joined.
    pub fn past(&self) -> (Counters, Drops, u64) {
        self.out.audience.past()
    }
}
