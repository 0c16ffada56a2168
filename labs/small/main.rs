//! What does a small box do? The relay held to a twentieth of a core and 16 MB of memory (the OMSS
//! paper's router had 180 MHz and 16 MB): how many receivers of a 256 kbit/s stream by TCP does it
//! sustain, against a plain C relay in the same cage? The paper went from 45 to 85.
//!
//! A number that fails is tried once more: `…_retried` were, and `…_forgiven` of them went well then.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Result;
use outflow_labs::bench::{Bench, Contender, Ends, Outcome, Setup, Stage};
use outflow_labs::cage::Limits;
use outflow_labs::figures::{Options, progress, rounded, run_lab};
use outflow_labs::media::Pulses;
use outflow_labs::search::{Found, Search, Verdict};
use serde_json::{Value, json};

const RATE_BPS: f64 = 256e3;
const PAYLOAD: u16 = 1400;
/// A short period: a slow processor works all the time, it does not stop for a tenth of a second.
const CAGE: Limits =
    Limits { core: Duration::from_millis(1), period: Duration::from_millis(20), memory: 16 << 20 };
/// What one writes for such a box: no table in the kernel for receivers that it will never have, a
/// ring for 16 s of the stream, and packets sent in few writes.
const FANOUT: &str = "udp = \"user\"";
const STREAM: &str = "latency_budget = \"400 ms\"\nring = \"512 KiB\"";
/// A relay that keeps up is no later than that with 99 of 100 packets, its latency budget included.
/// One that does not is later with every packet, whatever its buffers hold.
const LATE: Duration = Duration::from_millis(650);

fn main() -> ExitCode {
    run_lab("small", lab)
}

/// What one relay did.
struct Most {
    found: Found,
    best: Option<Outcome>,
}

fn lab(options: &Options) -> Result<Value> {
    let bench = Bench::new()?.held_to(CAGE)?;
    let (time, each, precision) = if options.quick { (1500, 25, 0.2) } else { (8000, 400, 0.03) };
    let time = Duration::from_millis(time);
    let search = |from| {
        let until = Instant::now() + Duration::from_secs(each);
        Search { from, up_to: 1 << 16, precision, until }
    };
    let baseline = most(&bench, &Contender::Baseline, &search(64), time)?;
    let outflow = most(&bench, &Contender::outflow(FANOUT, STREAM), &search(128), time)?;
    let of = |of: &Most, figure: fn(&Outcome) -> f64| of.best.as_ref().map(figure).map(rounded);
    Ok(json!({
        "outflow_sinks": outflow.found.most,
        "baseline_sinks": baseline.found.most,
        "gain": rounded(outflow.found.most as f64 / baseline.found.most as f64),
        "outflow_too_many": outflow.found.too_many,
        "baseline_too_many": baseline.found.too_many,
        "outflow_retried": outflow.found.retried,
        "outflow_forgiven": outflow.found.forgiven,
        "baseline_retried": baseline.found.retried,
        "baseline_forgiven": baseline.found.forgiven,
        "outflow_memory_mb": of(&outflow, |outcome| outcome.memory as f64 / 1e6),
        "baseline_memory_mb": of(&baseline, |outcome| outcome.memory as f64 / 1e6),
        "outflow_p99_ms": of(&outflow, |outcome| outcome.p99_us / 1e3),
        "baseline_p99_ms": of(&baseline, |outcome| outcome.p99_us / 1e3),
        "core_share": CAGE.core.as_secs_f64() / CAGE.period.as_secs_f64(),
        "memory_mb": rounded(CAGE.memory as f64 / 1e6),
    }))
}

/// The most receivers that one relay sustains.
fn most(bench: &Bench, contender: &Contender, search: &Search, time: Duration) -> Result<Most> {
    let name = if *contender == Contender::Baseline { "baseline" } else { "outflow" };
    let mut best = None;
    let mut stage: Option<Stage<'_>> = None;
    let found = search.run(|sinks| {
        let pulses = Pulses::of_rate(RATE_BPS, PAYLOAD, 1);
        let setup = Setup { contender: contender.clone(), way: None, ends: Ends::Tcp, sinks, pulses };
        // Outflow's receivers come and go; the plain relay takes a fixed number, and must have ended
        // before another one can have its place.
        let old = stage.take().filter(|_| *contender != Contender::Baseline);
        let ready = match old {
            Some(mut old) => old.resize(sinks).map(|()| old),
            None => bench.open(&setup),
        };
        match ready.and_then(|mut ready| Ok((ready.measure(time)?, ready))) {
            Ok((outcome, ready)) => {
                stage = Some(ready);
                let good = outcome.lost == 0 && outcome.p99_us < LATE.as_micros() as f64;
                let shown = if good { "sustained" } else { "are too many" };
                let megabytes = outcome.memory as f64 / 1e6;
                progress(format!("{name}: {sinks} {shown}: {outcome}, {megabytes:.1} MB"));
                if good {
                    best = Some(outcome);
                }
                Ok(if good { Verdict::Good } else { Verdict::Bad })
            }
            Err(error) => {
                progress(format!("{name}: {sinks} are too many: {error:#}"));
                Ok(Verdict::Bad)
            }
        }
    })?;
    Ok(Most { found, best })
}
