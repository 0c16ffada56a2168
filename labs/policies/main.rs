//! Which receiver loses what when a link's buffer or a ring is full? `links.rs` has the first: the paper's
//! policies and ours over the same packets.
//!
//! The other: the three policies with two hundred receivers of one stream,
//! of which some cannot keep up, for rings of different sizes. It is the relay's own core in virtual
//! time (`crates/sim/scenarios/policies.toml`), so the same figures come out everywhere.

mod links;
mod table;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use outflow_labs::figures::{Options, progress, rounded, run_anywhere};
use outflow_labs::page;
use outflow_relay::WhenFull;
use outflow_sim::{Scenario, Viewing, run};
use serde_json::{Value, json};

const SCENARIO: &str = include_str!("../../crates/sim/scenarios/policies.toml");
const PAGE: &str = "docs/policies.md";

/// Which receivers cannot keep up.
#[derive(Debug, Clone, Copy)]
struct Case {
    name: &'static str,
    /// Share of receivers whose paths are slower than the stream.
    slow: f64,
    /// Share of receivers that stop reading now and then.
    pausing: f64,
    /// After this many seconds of losses a receiver is let go; if not given, none is.
    hopeless_after: Option<f64>,
}

impl Case {
    const fn new(name: &'static str, slow: f64, pausing: f64) -> Self {
        Case { name, slow, pausing, hopeless_after: None }
    }
}

const CASES: [Case; 6] = [
    Case::new("none", 0.0, 0.0),
    Case::new("5 % slow", 0.05, 0.0),
    Case::new("20 % slow", 0.2, 0.0),
    Case::new("5 % pausing", 0.0, 0.05),
    Case::new("20 % pausing", 0.0, 0.2),
    Case { hopeless_after: Some(10.0), ..Case::new("20 % slow, let go after 10 s", 0.2, 0.0) },
];

/// How much is played.
struct Plan {
    ring_bytes: &'static [usize],
    seeds: u64,
    seconds: f64,
}

const FULL: Plan =
    Plan { ring_bytes: &[250_000, 500_000, 1_000_000, 2_000_000, 4_000_000], seeds: 5, seconds: 60.0 };
const QUICK: Plan = Plan { ring_bytes: &[500_000, 2_000_000], seeds: 2, seconds: 20.0 };

/// What came of one policy in one case with one size of ring, all seeds together.
struct Cell {
    policy: WhenFull,
    case: Case,
    ring_bytes: usize,
    healthy: Viewing,
    lagging: Viewing,
    /// Packets dropped by reason, as a share of all packets to all receivers.
    drops: BTreeMap<&'static str, f64>,
}

fn main() -> ExitCode {
    run_anywhere("policies", lab)
}

fn lab(options: &Options) -> Result<Value> {
    let of_links = links::compare(options.quick)?;
    eprintln!("\n{}", of_links.table);
    let scenario = Scenario::parse(SCENARIO, "policies.toml")?;
    let plan = if options.quick { QUICK } else { FULL };
    let mut cells = Vec::new();
    for case in CASES {
        progress(format!("cannot keep up: {}; {} runs", case.name, WhenFull::ALL.len() * plan.runs()));
        for &ring_bytes in plan.ring_bytes {
            for &policy in WhenFull::ALL {
                cells.push(play(&scenario, &plan, policy, case, ring_bytes)?);
            }
        }
    }
    let tables = table::all(&cells);
    eprintln!("\n{tables}");
    if !options.quick {
        page::write_into(Path::new(PAGE), "policies", &tables)?;
        page::write_into(Path::new(links::PAGE), "link policies", &of_links.table)?;
        progress(format!("written into {PAGE}"));
    }
    Ok(json!({
        "video_goodput_pct": of_links.video_goodput_pct,
        "data_goodput_pct": of_links.data_goodput_pct,
        "video_frames_ok_pct": of_links.video_frames_ok_pct,
        "link_buffer_a_connection_bytes": of_links.buffer_bytes,
        "healthy_goodput": worst(&cells, |cell| Some(cell.healthy.goodput())),
        "lagging_goodput": worst(&cells, |cell| (cell.lagging.frames > 0).then(|| cell.lagging.goodput())),
        "cells": cells.iter().map(Cell::figures).collect::<Vec<_>>(),
    }))
}

impl Plan {
    /// Runs of one policy in one case.
    fn runs(&self) -> usize {
        self.ring_bytes.len() * self.seeds as usize
    }
}

fn play(scenario: &Scenario, plan: &Plan, policy: WhenFull, case: Case, ring_bytes: usize) -> Result<Cell> {
    let mut scenario = scenario.clone();
    scenario.duration = plan.seconds;
    scenario.relay.when_full = policy;
    scenario.relay.ring_bytes = ring_bytes;
    if let Some(seconds) = case.hopeless_after {
        scenario.relay.hopeless_after = seconds;
    }
    scenario.receivers.slow.iter_mut().for_each(|slow| slow.share = case.slow);
    scenario.receivers.pausing.iter_mut().for_each(|pausing| pausing.share = case.pausing);
    let (mut healthy, mut lagging) = (Viewing::default(), Viewing::default());
    let (mut drops, mut packets) = (BTreeMap::<_, u64>::new(), 0);
    for seed in 1..=plan.seeds {
        scenario.seed = seed;
        let outcome = run(&scenario)?;
        healthy.merge(&outcome.healthy);
        lagging.merge(&outcome.lagging);
        packets += outcome.delivered + outcome.drops.values().sum::<u64>();
        outcome.drops.iter().for_each(|(reason, count)| *drops.entry(*reason).or_default() += count);
    }
    let share = |(reason, count)| (reason, count as f64 / packets as f64);
    let drops = drops.into_iter().map(share).collect();
    Ok(Cell { policy, case, ring_bytes, healthy, lagging, drops })
}

impl Cell {
    fn figures(&self) -> Value {
        let percent = |share: f64| rounded(100.0 * share);
        let dropped = self.drops.iter().map(|(reason, share)| (*reason, percent(*share)));
        json!({
            "policy": self.policy.as_str(),
            "case": self.case.name,
            "ring_bytes": self.ring_bytes,
            "healthy_decodable_percent": percent(self.healthy.goodput()),
            "lagging_decodable_percent": (self.lagging.frames > 0).then(|| percent(self.lagging.goodput())),
            "healthy_p99_ms": self.healthy.delays.quantile_ms(0.99),
            "lagging_p50_ms": self.lagging.delays.quantile_ms(0.5),
            "lagging_p99_ms": self.lagging.delays.quantile_ms(0.99),
            "dropped_percent": dropped.collect::<BTreeMap<_, _>>(),
        })
    }
}

/// The lowest share of decodable frames of every policy, whatever the case and the ring.
fn worst(cells: &[Cell], goodput: impl Fn(&Cell) -> Option<f64>) -> BTreeMap<&'static str, f64> {
    let mut worst = BTreeMap::new();
    for cell in cells {
        if let Some(goodput) = goodput(cell) {
            let least = worst.entry(cell.policy.as_str()).or_insert(1.0_f64);
            *least = least.min(rounded(goodput));
        }
    }
    worst
}
