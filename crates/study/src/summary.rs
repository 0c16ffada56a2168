//! What came of a point: all its replications together.

use std::collections::BTreeMap;

use outflow_packet::Drops;

use super::axis::Label;
use super::stats::Interval;
use outflow_sim::network::{Delays, NetworkOutcome, TrafficOutcome};

/// A point of a study.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// The values that vary, by name.
    pub at: Vec<(String, Label)>,
    /// The value that was sought; `None` if none was, or if none is enough.
    pub found: Option<u64>,
    /// By name; empty if no value is enough.
    pub traffic: BTreeMap<String, TrafficSummary>,
    /// By name of a node or link: its figures.
    pub figures: BTreeMap<String, BTreeMap<&'static str, Interval>>,
    /// Packets sent, that left links or were dropped, and that arrived, in all runs together.
    pub packet_events: u64,
}

/// Of the flows of one kind. Intervals are of the replications' means.
#[derive(Debug, Clone, PartialEq)]
pub struct TrafficSummary {
    /// The mean goodput of a connection, 0 to 1.
    pub goodput: Interval,
    /// The least that any connection had in any run.
    pub least_goodput: f64,
    /// Mean delay of a packet, in milliseconds.
    pub delay_ms: Interval,
    /// All packets' delays.
    pub delays: Delays,
    /// Share of frames that cannot be decoded.
    pub frames_lost: Interval,
    /// Packets sent.
    pub sent: u64,
    /// Packets lost behind links.
    pub lost: u64,
    /// Packets dropped, by reason.
    pub drops: Drops,
}

impl Point {
    pub(super) fn new(at: Vec<(String, Label)>, result: Option<(Option<u64>, Vec<NetworkOutcome>)>) -> Self {
        let Some((found, runs)) = result else {
            return Point {
                at,
                found: None,
                traffic: BTreeMap::new(),
                figures: BTreeMap::new(),
                packet_events: 0,
            };
        };
        let names = runs.first().into_iter().flat_map(|run| run.traffic.keys());
        let of = |name: &String| runs.iter().filter_map(|run| run.traffic.get(name)).collect::<Vec<_>>();
        let traffic = names.map(|name| (name.clone(), TrafficSummary::new(&of(name)))).collect();
        let packet_events = runs.iter().map(|run| run.packet_events).sum();
        Point { at, found, traffic, figures: figures(&runs), packet_events }
    }

    /// The value of that name.
    pub fn label(&self, name: &str) -> Option<&Label> {
        self.at.iter().find(|(known, _)| known == name).map(|(_, label)| label)
    }
}

/// The figures of all nodes, and of links if there are nodes. One that is missing in some runs, as there was nothing to
/// say, is that of the others.
fn figures(runs: &[NetworkOutcome]) -> BTreeMap<String, BTreeMap<&'static str, Interval>> {
    let mut values: BTreeMap<(String, &'static str), Vec<f64>> = BTreeMap::new();
    for run in runs.iter().filter(|run| !run.nodes.is_empty()) {
        let nodes =
            run.nodes.iter().flat_map(|(name, of)| of.iter().map(move |(key, value)| (name, *key, *value)));
        let links = run.links.iter().flat_map(|(name, link)| {
            let dropped = link.drops.total() as f64;
            let of = [("packets", link.packets as f64), ("bytes", link.bytes as f64), ("dropped", dropped)];
            of.into_iter().chain([("lost", link.lost as f64)]).map(move |(key, value)| (name, key, value))
        });
        for (name, key, value) in nodes.chain(links) {
            values.entry((name.clone(), key)).or_default().push(value);
        }
    }
    let mut all: BTreeMap<String, BTreeMap<&'static str, Interval>> = BTreeMap::new();
    for ((name, key), values) in values {
        all.entry(name).or_default().insert(key, Interval::of(&values));
    }
    all
}

impl TrafficSummary {
    fn new(runs: &[&TrafficOutcome]) -> Self {
        let interval = |of: fn(&TrafficOutcome) -> f64| {
            Interval::of(&runs.iter().map(|run| of(run)).collect::<Vec<_>>())
        };
        let (mut delays, mut drops) = (Delays::default(), Drops::default());
        for run in runs {
            delays.merge(&run.delays);
            drops.merge(&run.drops);
        }
        let frames_lost = |run: &TrafficOutcome| {
            let (frames, good) = run.frames();
            if frames == 0 { 0.0 } else { 1.0 - good as f64 / frames as f64 }
        };
        TrafficSummary {
            goodput: interval(TrafficOutcome::goodput),
            least_goodput: runs.iter().flat_map(|run| run.goodputs()).fold(1.0, f64::min),
            delay_ms: interval(|run| run.delays.mean_ms()),
            delays,
            frames_lost: interval(frames_lost),
            sent: runs.iter().map(|run| run.sent).sum(),
            lost: runs.iter().map(|run| run.lost).sum(),
            drops,
        }
    }
}
