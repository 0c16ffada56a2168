//! How many receivers of a 256 kbit/s stream does one core sustain without loss, what does a packet
//! cost as they grow from one to a hundred thousand, and how much memory does each take? The OMSS
//! paper's machine did 4,000 by UDP and 3,500 by TCP.
//!
//! A number that fails is tried once more: `…_retried` were, and `…_forgiven` of them went well then.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use outflow_labs::bench::{Bench, Contender, Ends, Outcome, Setup, Stage};
use outflow_labs::drain::Hook;
use outflow_labs::figures::{Options, progress, rounded, run_lab};
use outflow_labs::media::Pulses;
use outflow_labs::search::{Found, Search, Verdict};
use serde_json::{Map, Value, json};

const RATE_BPS: f64 = 256e3;
const PAYLOAD: u16 = 1400;
/// Receivers on connections may wait so long for packets to be gathered, as in the lab `fanout`.
const TCP_BUDGET: &str = "latency_budget = \"400 ms\"";
/// A relay that keeps up is no later than that with 99 of 100 packets (and its latency budget). One
/// that does not is later with every packet, whatever its buffers hold.
const LATE_UDP: Duration = Duration::from_millis(250);
const LATE_TCP: Duration = Duration::from_millis(650);
/// The numbers of receivers at which a packet's cost is measured.
const GROWTH: [usize; 6] = [1, 10, 100, 1000, 10_000, 100_000];
/// Packets that all receivers together get a second then, as far as the pace allows.
const GROWTH_PPS: f64 = 200_000.0;

/// How long the parts may take.
struct Plan {
    time: Duration,
    udp: Duration,
    tcp: Duration,
    precision: f64,
    first: usize,
    growth: &'static [usize],
}

const FULL: Plan = Plan {
    time: Duration::from_secs(8),
    udp: Duration::from_secs(400),
    tcp: Duration::from_secs(400),
    precision: 0.03,
    first: 2000,
    growth: &GROWTH,
};

const QUICK: Plan = Plan {
    time: Duration::from_millis(1200),
    udp: Duration::from_secs(12),
    tcp: Duration::from_secs(5),
    precision: 0.2,
    first: 8000,
    growth: &[1, 100, 1000, 10_000],
};

fn main() -> ExitCode {
    run_lab("scale", lab)
}

fn lab(options: &Options) -> Result<Value> {
    let plan = if options.quick { &QUICK } else { &FULL };
    let bench = Bench::new()?;
    let growth = growth(&bench, plan)?;
    let udp = most_udp(&bench, plan)?;
    let (tcp, tcp_bytes) = most_tcp(&bench, plan)?;
    let ns: Map<String, Value> =
        growth.iter().map(|(sinks, outcome)| (sinks.to_string(), json!(rounded(outcome.ns)))).collect();
    Ok(json!({
        "udp_sinks": udp.most,
        "udp_too_many": udp.too_many,
        "tcp_sinks": tcp.most,
        "tcp_too_many": tcp.too_many,
        "udp_retried": udp.retried,
        "udp_forgiven": udp.forgiven,
        "tcp_retried": tcp.retried,
        "tcp_forgiven": tcp.forgiven,
        "cost_growth": cost_growth(&growth).map(rounded),
        "bytes_per_sink": slope(&growth).map(f64::round),
        "tcp_bytes_per_sink": tcp_bytes.map(f64::round),
        "ns": ns,
        "lost": growth.iter().map(|(_, outcome)| outcome.lost).sum::<u64>(),
    }))
}

/// A packet's cost at each number of receivers, as far as the relay takes that many.
fn growth(bench: &Bench, plan: &Plan) -> Result<Vec<(usize, Outcome)>> {
    let mut outcomes = Vec::new();
    for &sinks in plan.growth {
        let per_second = (GROWTH_PPS / sinks as f64).clamp(2.0, 4000.0);
        let pulses = Pulses { payload: PAYLOAD, packets: 1, per_second };
        match bench.measure(&setup(Ends::Udp(Hook::Tc), sinks, pulses), plan.time) {
            Ok(outcome) => {
                progress(format!("{sinks:>6} UDP receivers: {outcome}"));
                outcomes.push((sinks, outcome));
            }
            Err(error) => {
                progress(format!("{sinks:>6} UDP receivers: {error:#}"));
                break;
            }
        }
    }
    ensure!(outcomes.len() > 1, "nothing could be measured");
    Ok(outcomes)
}

/// How many times dearer the dearest packet is than with a hundred receivers, for that many or more.
fn cost_growth(outcomes: &[(usize, Outcome)]) -> Option<f64> {
    let (_, hundred) = outcomes.iter().find(|(sinks, _)| *sinks == 100)?;
    let later = outcomes.iter().filter(|(sinks, _)| *sinks >= 100);
    later.map(|(_, outcome)| outcome.ns / hundred.ns).reduce(f64::max)
}

/// What a receiver adds to the memory that is held: process and kernel, between the largest number
/// and a tenth of it.
fn slope(outcomes: &[(usize, Outcome)]) -> Option<f64> {
    let [.., (few, small), (many, large)] = outcomes else { return None };
    Some((large.memory as f64 - small.memory as f64) / (many - few) as f64)
}

fn most_udp(bench: &Bench, plan: &Plan) -> Result<Found> {
    let pulses = Pulses::of_rate(RATE_BPS, PAYLOAD, 1);
    search(plan, plan.udp).run(|sinks| {
        match bench.measure(&setup(Ends::Udp(Hook::Tc), sinks, pulses), plan.time) {
            Ok(outcome) => Ok(sustained("UDP", sinks, &outcome, LATE_UDP)),
            Err(error) => {
                progress(format!("{sinks:>6} UDP receivers: {error:#}"));
                Ok(Verdict::Impossible)
            }
        }
    })
}

/// The most receivers on connections, and the memory that each of them takes.
fn most_tcp(bench: &Bench, plan: &Plan) -> Result<(Found, Option<f64>)> {
    let pulses = Pulses::of_rate(RATE_BPS, PAYLOAD, 1);
    // The same relay all the time: receivers come and go.
    let mut stage = None;
    let mut outcomes = Vec::new();
    let found = search(plan, plan.tcp).run(|sinks| {
        let ready = match stage.take() {
            None => bench.open(&setup(Ends::Tcp, sinks, pulses)),
            Some(stage) => resized(stage, sinks),
        };
        match ready.and_then(|mut ready| Ok((ready.measure(plan.time)?, ready))) {
            Ok((outcome, ready)) => {
                outcomes.push((sinks, outcome));
                stage = Some(ready);
                Ok(sustained("TCP", sinks, &outcome, LATE_TCP))
            }
            Err(error) => {
                progress(format!("{sinks:>6} TCP receivers: {error:#}"));
                Ok(Verdict::Impossible)
            }
        }
    })?;
    outcomes.sort_by_key(|(sinks, _)| *sinks);
    outcomes.dedup_by_key(|(sinks, _)| *sinks);
    Ok((found, slope(&outcomes)))
}

fn resized(mut stage: Stage<'_>, sinks: usize) -> Result<Stage<'_>> {
    stage.resize(sinks)?;
    Ok(stage)
}

fn setup(ends: Ends, sinks: usize, pulses: Pulses) -> Setup {
    let budget = if ends == Ends::Tcp { TCP_BUDGET } else { "" };
    Setup { contender: Contender::outflow("", budget), way: None, ends, sinks, pulses }
}

fn search(plan: &Plan, time: Duration) -> Search {
    let until = Instant::now() + time;
    Search { from: plan.first, up_to: 1 << 20, precision: plan.precision, until }
}

fn sustained(what: &str, sinks: usize, outcome: &Outcome, late: Duration) -> Verdict {
    let good = outcome.lost == 0 && outcome.p99_us < late.as_micros() as f64;
    let (verdict, shown) = if good { (Verdict::Good, "sustained") } else { (Verdict::Bad, "are too many") };
    progress(format!("{sinks:>6} {what} receivers {shown}: {outcome}"));
    verdict
}
