//! What came of a run.

use core::time::Duration;
use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use outflow_packet::Drops;

use super::nodes::Figures;
use super::packets::LinkReport;
use crate::outcome::Digest;

/// The result of a run. Equal for equal networks, bit for bit.
#[derive(Debug, Clone, PartialEq)]
pub struct NetworkOutcome {
    /// By name of the traffic.
    pub traffic: BTreeMap<String, TrafficOutcome>,
    /// By name of the node.
    pub nodes: BTreeMap<String, Figures>,
    /// By name of the link.
    pub links: BTreeMap<String, LinkReport>,
    /// Packets that were sent, that left a link or were dropped there, and that arrived: each is an event.
    pub packet_events: u64,
    /// Covers every delivery: of which flow, which packet, when.
    pub digest: Digest,
}

/// Of the flows of one kind. Only what was sent after the warm-up counts.
#[derive(Debug, Clone, PartialEq)]
pub struct TrafficOutcome {
    /// Each flow.
    pub flows: Vec<FlowOutcome>,
    /// Packets sent, those that arrived, those lost on the way.
    pub sent: u64,
    /// Packets that arrived, the same one counted once.
    pub arrived: u64,
    /// Packets that links lost behind their buffers.
    pub lost: u64,
    /// Packets that links did not let through, by reason.
    pub drops: Drops,
    /// From sending to arriving.
    pub delays: Delays,
}

/// Of one flow, of frames that are settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FlowOutcome {
    /// Bytes sent.
    pub bytes: u64,
    /// Bytes that can be used.
    pub good_bytes: u64,
    /// Frames sent.
    pub frames: u64,
    /// Frames that arrived, and all that they need.
    pub good_frames: u64,
}

impl FlowOutcome {
    /// The share of its bytes that can be used; 1 if there were none.
    pub fn goodput(&self) -> f64 {
        if self.bytes == 0 { 1.0 } else { self.good_bytes as f64 / self.bytes as f64 }
    }
}

/// Delays of packets, in microseconds.
#[derive(Debug, Clone, PartialEq)]
pub struct Delays(Histogram<u64>);

impl Default for Delays {
    fn default() -> Self {
        // Up to an hour, to three digits.
        let made = Histogram::new_with_bounds(1, 3_600_000_000, 3);
        Delays(made.unwrap_or_else(|_| unreachable!("the bounds are in order")))
    }
}

impl Delays {
    /// A packet took that long.
    pub fn add(&mut self, delay: Duration) {
        self.0.saturating_record(delay.as_micros() as u64);
    }

    /// Takes in those of another run.
    pub fn merge(&mut self, other: &Delays) {
        self.0 += &other.0;
    }

    /// The mean, in milliseconds; 0 without packets.
    pub fn mean_ms(&self) -> f64 {
        if self.0.is_empty() { 0.0 } else { self.0.mean() / 1e3 }
    }

    /// What a share `quantile` of the packets does not exceed, in milliseconds; 0 without packets.
    pub fn quantile_ms(&self, quantile: f64) -> f64 {
        self.0.value_at_quantile(quantile) as f64 / 1e3
    }
}

impl TrafficOutcome {
    pub(super) fn new() -> Self {
        TrafficOutcome {
            flows: Vec::new(),
            sent: 0,
            arrived: 0,
            lost: 0,
            drops: Drops::default(),
            delays: Delays::default(),
        }
    }

    /// The goodput of each flow.
    pub fn goodputs(&self) -> impl Iterator<Item = f64> + '_ {
        self.flows.iter().map(FlowOutcome::goodput)
    }

    /// The mean of the goodputs of its flows; 1 without flows.
    pub fn goodput(&self) -> f64 {
        let count = self.flows.len();
        if count == 0 { 1.0 } else { self.goodputs().sum::<f64>() / count as f64 }
    }

    /// Frames sent, and those that can be decoded.
    pub fn frames(&self) -> (u64, u64) {
        self.flows.iter().fold((0, 0), |all, flow| (all.0 + flow.frames, all.1 + flow.good_frames))
    }
}
