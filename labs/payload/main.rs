//! Where does it begin to pay not to copy a packet for every receiver? Figure 7 of the OMSS paper:
//! one source to 800 receivers at 256 kbit/s, payloads from 50 to 1400 bytes, by UDP and by TCP.
//!
//! A core's use follows from the cost of a packet, which is measured at a pace that every relay can
//! keep: at 256 kbit/s, 50 bytes are half a million packets a second for 800 receivers.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use outflow_labs::bench::{Bench, Contender, Ends, Setup};
use outflow_labs::drain::Hook;
use outflow_labs::figures::{Options, progress, quantile, rounded, run_lab};
use outflow_labs::media::Pulses;
use outflow_study::plot::{Panel, Spot, svg};
use serde_json::{Map, Value, json};

const SINKS: usize = 800;
const RATE_BPS: f64 = 256e3;
/// Packets a second at which costs are measured.
const PACE: f64 = 200.0;
const PAYLOADS: [u16; 10] = [50, 100, 150, 200, 300, 400, 600, 800, 1100, 1400];
const QUICK: [u16; 3] = [50, 200, 1400];
const ROUNDS: usize = 3;
/// Where the picture goes: beside what is built.
const PICTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/payload.svg");

/// A way to fan out.
struct Variant {
    name: &'static str,
    /// Of `[fanout]`; `None` for the plain C relay.
    fanout: Option<&'static str>,
    /// By which way all receivers must be reached then.
    way: Option<&'static str>,
    ends: Ends,
}

const UDP: Ends = Ends::Udp(Hook::Tc);

#[rustfmt::skip]
const VARIANTS: [Variant; 5] = [
    Variant { name: "baseline_udp", fanout: None,                   way: None,         ends: UDP },
    Variant { name: "user_udp",     fanout: Some("udp = \"user\""), way: Some("user"), ends: UDP },
    Variant { name: "kernel_udp",   fanout: Some("udp = \"tc\""),   way: Some("tc"),   ends: UDP },
    Variant { name: "baseline_tcp", fanout: None,                   way: None,         ends: Ends::Tcp },
    Variant { name: "tcp",          fanout: Some(""),               way: None,         ends: Ends::Tcp },
];

/// Nanoseconds a packet by variant and payload, one value a round.
type Costs = BTreeMap<(&'static str, u16), Vec<f64>>;

fn main() -> ExitCode {
    run_lab("payload", lab)
}

fn lab(options: &Options) -> Result<Value> {
    let bench = Bench::new()?;
    let (payloads, rounds) = if options.quick { (&QUICK[..], 1) } else { (&PAYLOADS[..], ROUNDS) };
    let time = Duration::from_millis(if options.quick { 800 } else { 2500 });
    let (mut costs, mut lost) = (Costs::new(), 0);
    for _ in 0..rounds {
        for payload in payloads {
            for variant in &VARIANTS {
                let outcome = bench.measure(&variant.setup(*payload), time);
                let outcome = outcome.with_context(|| format!("{}, {payload} bytes", variant.name))?;
                progress(format!("{:<13}{payload:>5} bytes: {outcome}", variant.name));
                costs.entry((variant.name, *payload)).or_default().push(outcome.ns);
                lost += outcome.lost;
            }
        }
    }
    let lines = Lines::new(&costs);
    lines.draw()?;
    progress(format!("drawn: {PICTURE}"));
    Ok(lines.figures(lost))
}

impl Variant {
    fn setup(&self, payload: u16) -> Setup {
        let contender = self.fanout.map_or(Contender::Baseline, |fanout| Contender::outflow(fanout, ""));
        let pulses = Pulses { payload, packets: 1, per_second: PACE };
        Setup { contender, way: self.way, ends: self.ends, sinks: SINKS, pulses }
    }
}

/// The cost of a packet over its payload, of each variant: medians.
struct Lines(BTreeMap<&'static str, BTreeMap<u16, f64>>);

impl Lines {
    fn new(costs: &Costs) -> Self {
        let mut lines = BTreeMap::<_, BTreeMap<_, _>>::new();
        for ((name, payload), values) in costs {
            lines.entry(*name).or_default().insert(*payload, quantile(values, 0.5));
        }
        Self(lines)
    }

    /// The smallest payload from which on a variant's packets cost less than the baseline's.
    fn pays_from(&self, name: &str, baseline: &str) -> Option<u16> {
        let (line, baseline) = (self.0.get(name)?, self.0.get(baseline)?);
        let pays = |payload: &u16| line.get(payload) < baseline.get(payload);
        line.keys().rev().take_while(|payload| pays(payload)).last().copied()
    }

    fn draw(&self) -> Result<()> {
        let panel = |title: &str, ends: Ends| Panel {
            title: format!("{title}: one to {SINKS} at 256 kbit/s"),
            axes: ("payload (bytes)".to_owned(), "use of a core (%)".to_owned()),
            lines: VARIANTS
                .iter()
                .filter(|variant| variant.ends == ends)
                .map(|v| self.line(v.name))
                .collect(),
        };
        Ok(std::fs::write(PICTURE, svg(&[panel("UDP", UDP), panel("TCP", Ends::Tcp)])?)?)
    }

    fn line(&self, name: &str) -> (String, Vec<Spot>) {
        let points = self.0.get(name).into_iter().flatten();
        let points = points.map(|(payload, ns)| (f64::from(*payload), percent(*payload, *ns)).into());
        (name.replace('_', ", "), points.collect())
    }

    fn figures(&self, lost: u64) -> Value {
        let table = |figure: fn(u16, f64) -> f64| -> Map<String, Value> {
            let row = |line: &BTreeMap<u16, f64>| -> Map<String, Value> {
                let cells = line.iter();
                cells
                    .map(|(payload, ns)| (payload.to_string(), json!(rounded(figure(*payload, *ns)))))
                    .collect()
            };
            self.0.iter().map(|(name, line)| ((*name).to_owned(), row(line).into())).collect()
        };
        json!({
            "user_udp_pays_from": self.pays_from("user_udp", "baseline_udp"),
            "kernel_udp_pays_from": self.pays_from("kernel_udp", "baseline_udp"),
            "tcp_pays_from": self.pays_from("tcp", "baseline_tcp"),
            "core_percent": table(percent),
            "ns": table(|_, ns| ns),
            "lost": lost,
            "sinks": SINKS,
        })
    }
}

/// The share of a core that a stream of packets of this cost takes.
fn percent(payload: u16, ns: f64) -> f64 {
    ns * 1e-9 * Pulses::of_rate(RATE_BPS, payload, 1).per_second * SINKS as f64 * 100.0
}
