//! What does a delivered packet cost? Every way to fan out in one run, against a plain C relay: core
//! time a packet, softirqs included, packets lost, and delay.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use outflow_labs::bench::{Bench, Contender, Trial};
use outflow_labs::drain::Hook;
use outflow_labs::figures::{Options, progress, run_lab};
use outflow_labs::media::Pulses;
use serde_json::{Value, json};

fn main() -> ExitCode {
    run_lab("fanout", lab)
}

fn lab(options: &Options) -> Result<Value> {
    let mut bench = Bench::new()?;
    for round in 0..3 {
        for (name, contender, k) in [
            ("baseline", Contender::Baseline, 1),
            ("user", Contender::Outflow { tables: String::new(), stream: String::new() }, 1),
            ("user10", Contender::Outflow { tables: String::new(), stream: String::new() }, 10),
        ] {
            let trial = Trial {
                contender,
                hook: Hook::Tc,
                sinks: 1000,
                pulses: Pulses { payload: 1400, packets: k, per_second: if k == 1 { 80.0 } else { 20.0 } },
                time: Duration::from_secs(if options.quick { 2 } else { 4 }),
                idle: Duration::from_millis(500),
            };
            progress(format!("{round} {name}: {:?}", bench.udp(&trial)?));
        }
    }
    Ok(json!({}))
}
