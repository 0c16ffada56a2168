//! What a stream knows of its source.

use outflow_media::Time;
use outflow_packet::{DropReason, Drops};

use super::Meter;
use crate::save::{SavedCounts, SavedSource};
use crate::schedule::Counters;

/// What came from the source. Cumulative.
#[derive(Debug, Clone, Copy, Default)]
pub struct SourceCounters {
    /// Packets that came in and were parsed.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Packets that were dropped on receipt.
    pub drops: Drops,
    /// How often the source came (1: it never went away).
    pub starts: u64,
}

/// Whether packets come, and how many.
#[derive(Debug, Default)]
pub(super) struct Source {
    counters: SourceCounters,
    meter: Meter,
    up: bool,
    /// When it last came or went.
    since: Time,
    last_packet: Time,
    last_key: Option<Time>,
    key_interval_ns: u64,
}

impl Source {
    /// A packet was taken. Returns whether the source was away before.
    pub(super) fn packet(&mut self, now: Time, bytes: usize) -> bool {
        self.counters.packets += 1;
        self.counters.bytes += bytes as u64;
        self.meter.add(now, bytes);
        self.last_packet = now;
        if self.up {
            return false;
        }
        self.up = true;
        self.since = now;
        self.counters.starts += 1;
        true
    }

    /// What goes on in another process.
    pub(super) fn save(&self) -> SavedSource {
        let SourceCounters { packets, bytes, drops, starts } = self.counters;
        SavedSource {
            counts: SavedCounts { packets, bytes, drops: drops.save() },
            starts,
            up: self.up,
            since_ns: self.since.as_nanos(),
            last_packet_ns: self.last_packet.as_nanos(),
            last_key_ns: self.last_key.map(Time::as_nanos),
            key_interval_ns: self.key_interval_ns,
        }
    }

    /// Goes on from what another process has saved, with the rate of the packets that came here since.
    pub(super) fn restore(&mut self, saved: &SavedSource) {
        let (Counters { packets, bytes }, drops) = saved.counts.counted();
        *self = Source {
            counters: SourceCounters { packets, bytes, drops, starts: saved.starts.min(1 << 56) },
            meter: self.meter,
            up: saved.up,
            since: Time::from_nanos(saved.since_ns),
            last_packet: Time::from_nanos(saved.last_packet_ns),
            last_key: saved.last_key_ns.map(Time::from_nanos),
            key_interval_ns: saved.key_interval_ns,
        };
    }

    /// A packet came that another process has counted.
    pub(super) fn restored(&mut self, arrived: Time, bytes: usize) {
        self.meter.add(arrived, bytes);
    }

    pub(super) fn key_frame(&mut self, now: Time) {
        if let Some(last) = self.last_key.replace(now) {
            self.key_interval_ns = u64::try_from(now.since(last).as_nanos()).unwrap_or(u64::MAX);
        }
    }

    pub(super) fn went_away(&mut self, now: Time) {
        self.up = false;
        self.since = now;
        self.last_key = None;
    }

    /// Counts packets that were dropped.
    pub(super) fn drop(&mut self, reason: DropReason, packets: u64) {
        self.counters.drops.add(reason, packets);
    }

    pub(super) fn is_up(&self) -> bool {
        self.up
    }

    /// Whether it has been there, and is away.
    pub(super) fn is_away(&self) -> bool {
        !self.up && self.counters.starts > 0
    }

    /// When it last came or went.
    pub(super) fn since(&self) -> Time {
        self.since
    }

    pub(super) fn last_packet(&self) -> Time {
        self.last_packet
    }

    pub(super) fn counters(&self) -> SourceCounters {
        self.counters
    }

    pub(super) fn bps(&self, now: Time) -> u64 {
        self.meter.bps(now)
    }

    /// Nanoseconds between the last two key frames; 0 before the second.
    pub(super) fn key_interval_ns(&self) -> u64 {
        self.key_interval_ns
    }
}
