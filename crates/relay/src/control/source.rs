//! What a stream knows of its source.

use outflow_media::Time;

use super::Meter;
use crate::drops::Drops;

/// What came from the source. Cumulative.
#[derive(Debug, Clone, Copy, Default)]
pub struct SourceCounters {
    /// Packets that came in and were understood.
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
pub(crate) struct Source {
    pub(crate) counters: SourceCounters,
    pub(crate) meter: Meter,
    pub(crate) up: bool,
    /// When it last came or went.
    pub(crate) since: Time,
    pub(crate) last_packet: Time,
    last_key: Option<Time>,
    pub(crate) key_interval_ns: u64,
}

impl Source {
    /// A packet was taken. Returns whether the source was away before.
    pub(crate) fn packet(&mut self, now: Time, bytes: usize) -> bool {
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

    pub(crate) fn key_frame(&mut self, now: Time) {
        if let Some(last) = self.last_key.replace(now) {
            self.key_interval_ns = u64::try_from(now.since(last).as_nanos()).unwrap_or(u64::MAX);
        }
    }

    pub(crate) fn went_away(&mut self, now: Time) {
        self.up = false;
        self.since = now;
        self.last_key = None;
    }
}
