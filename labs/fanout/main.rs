//! What does a delivered packet cost? Every way to fan out in one run, against a plain C relay: core
//! time a packet (the relay's core, softirqs included), packets lost, and delay. 1000 receivers,
//! 1400 bytes of payload, one packet owed to each at a time (k1) or ten (k10); and ten that are to be
//! spread out (paced). The same by IPv6 (v6) stands beside each way that IPv4 has.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use outflow_labs::bench::{Bench, Contender, Ends, Outcome, Setup};
use outflow_labs::drain::Hook;
use outflow_labs::figures::{Options, progress, quantile, rounded, run_lab};
use outflow_labs::media::Pulses;
use serde_json::{Map, Value, json};

const SINKS: usize = 1000;
const PAYLOAD: u16 = 1400;
/// Packets a second to each receiver of the UDP variants: enough that the core has something to do
/// (next to what the relay does without a source), and is not saturated.
const PLAIN_PPS: f64 = 250.0;
const KERNEL_PPS: f64 = 800.0;
const BURSTS_PPS: f64 = 4000.0;
/// Bursts of ten packets, each of which is spread over two thirds of the time until the next.
const PACED_PPS: f64 = 1000.0;
const PACE: &str = "pace = \"17 Mbit/s\"";
/// 4 Mbit/s to all are more than the plain TCP relay can do. Its packets are the cheaper the more
/// there are, so it gets as many as it can be sure to do.
const TCP_BASELINE_BPS: f64 = 1.5e6;
/// However slow a stream is, a measurement is of at least this many packets to each receiver.
const PACKETS_MIN: f64 = 240.0;
/// A full run ends after this many rounds, a quick one when no further round fits in its time.
const ROUNDS: usize = 5;
const QUICK: Duration = Duration::from_secs(55);

/// A way to fan out. `against` is the baseline that it is compared with.
struct Variant {
    name: &'static str,
    /// Of `[fanout]`; `None` for the plain C relay.
    fanout: Option<&'static str>,
    /// By which way all receivers must be reached then.
    way: Option<&'static str>,
    /// Keys of the stream.
    stream: &'static str,
    ends: Ends,
    packets: u16,
    rate_bps: f64,
}

const TC: Ends = Ends::Udp(Hook::Tc);
const XDP: Ends = Ends::Udp(Hook::Xdp);
const TC_V6: Ends = Ends::UdpV6(Hook::Tc);
const XDP_V6: Ends = Ends::UdpV6(Hook::Xdp);

/// Each of these is measured by IPv4 and at once, as `…_v6`, by IPv6.
const OF_BOTH: [&str; 6] =
    ["user_k1", "user_k10", "kernel_tc_k1", "kernel_tc_k10", "kernel_xdp_k1", "kernel_xdp_k10"];

#[rustfmt::skip]
const VARIANTS: [Variant; 20] = [
    udp("baseline_udp",      None,                  None,         TC,     1,  PLAIN_PPS),
    udp("default_k1",        Some(""),              None,         TC,     1,  KERNEL_PPS),
    udp("default_k10",       Some(""),              None,         TC,     10, BURSTS_PPS),
    udp("user_k1",           Some("udp = \"user\""),Some("user"), TC,     1,  PLAIN_PPS),
    udp("user_k1_v6",        Some("udp = \"user\""),Some("user"), TC_V6,  1,  PLAIN_PPS),
    udp("user_k10",          Some("udp = \"user\""),Some("user"), TC,     10, BURSTS_PPS),
    udp("user_k10_v6",       Some("udp = \"user\""),Some("user"), TC_V6,  10, BURSTS_PPS),
    udp("kernel_tc_k1",      Some("udp = \"tc\""),  Some("tc"),   TC,     1,  KERNEL_PPS),
    udp("kernel_tc_k1_v6",   Some("udp = \"tc\""),  Some("tc"),   TC_V6,  1,  KERNEL_PPS),
    udp("kernel_tc_k10",     Some("udp = \"tc\""),  Some("tc"),   TC,     10, BURSTS_PPS),
    udp("kernel_tc_k10_v6",  Some("udp = \"tc\""),  Some("tc"),   TC_V6,  10, BURSTS_PPS),
    udp("kernel_xdp_k1",     Some("udp = \"xdp\""), Some("xdp"),  XDP,    1,  KERNEL_PPS),
    udp("kernel_xdp_k1_v6",  Some("udp = \"xdp\""), Some("xdp"),  XDP_V6, 1,  KERNEL_PPS),
    udp("kernel_xdp_k10",    Some("udp = \"xdp\""), Some("xdp"),  XDP,    10, BURSTS_PPS),
    udp("kernel_xdp_k10_v6", Some("udp = \"xdp\""), Some("xdp"),  XDP_V6, 10, BURSTS_PPS),
    Variant { stream: PACE, ..udp("paced_k10", Some(""), None, TC, 10, PACED_PPS) },
    tcp("baseline_tcp",      None,     "",                            TCP_BASELINE_BPS),
    tcp("baseline_tcp_256k", None,     "",                            256e3),
    tcp("tcp_4m",            Some(""), "latency_budget = \"50 ms\"",  4e6),
    tcp("tcp_256k",          Some(""), "latency_budget = \"400 ms\"", 256e3),
];

const fn udp(
    name: &'static str,
    fanout: Option<&'static str>,
    way: Option<&'static str>,
    ends: Ends,
    packets: u16,
    per_second: f64,
) -> Variant {
    let rate_bps = per_second * 8.0 * PAYLOAD as f64;
    Variant { name, fanout, way, stream: "", ends, packets, rate_bps }
}

const fn tcp(
    name: &'static str,
    fanout: Option<&'static str>,
    stream: &'static str,
    rate_bps: f64,
) -> Variant {
    Variant { name, fanout, way: None, stream, ends: Ends::Tcp, packets: 1, rate_bps }
}

/// What was measured of every variant, by which ways, and why the last that was not.
#[derive(Default)]
struct Results {
    outcomes: BTreeMap<&'static str, Vec<Outcome>>,
    ways: BTreeMap<&'static str, String>,
    failed: BTreeMap<&'static str, String>,
}

fn main() -> ExitCode {
    run_lab("fanout", lab)
}

fn lab(options: &Options) -> Result<Value> {
    let began = Instant::now();
    let bench = Bench::new()?;
    let mut results = Results::default();
    let time = Duration::from_millis(if options.quick { 1000 } else { 4000 });
    for round in 1..=ROUNDS {
        let round_began = Instant::now();
        for variant in &VARIANTS {
            results.measure(&bench, variant, time);
        }
        progress(format!("round {round} of {ROUNDS} took {:?}", round_began.elapsed()));
        if options.quick && began.elapsed() + round_began.elapsed() > QUICK {
            break;
        }
    }
    results.figures()
}

impl Variant {
    /// Packets a second to each receiver.
    fn per_second(&self) -> f64 {
        self.rate_bps / 8.0 / f64::from(PAYLOAD)
    }

    fn setup(&self) -> Setup {
        let contender = match self.fanout {
            None => Contender::Baseline,
            Some(fanout) => Contender::outflow(fanout, self.stream),
        };
        let pulses = Pulses::of_rate(self.rate_bps, PAYLOAD, self.packets);
        Setup { contender, way: self.way, ends: self.ends, sinks: SINKS, pulses }
    }
}

impl Results {
    fn measure(&mut self, bench: &Bench, variant: &Variant, time: Duration) {
        let name = variant.name;
        match self.measured(bench, variant, time) {
            Ok(outcome) => {
                progress(format!("{name:<18}{outcome}"));
                self.outcomes.entry(name).or_default().push(outcome);
            }
            Err(error) => {
                let why = format!("{error:#}").split_whitespace().collect::<Vec<_>>().join(" ");
                progress(format!("{name:<18}not measured: {why}"));
                self.failed.insert(name, why);
            }
        }
    }

    fn measured(&mut self, bench: &Bench, variant: &Variant, time: Duration) -> Result<Outcome> {
        let mut stage = bench.open(&variant.setup())?;
        let outcome = stage.measure(time.max(Duration::from_secs_f64(PACKETS_MIN / variant.per_second())))?;
        let ways: Vec<_> = stage.ways()?.into_keys().collect();
        self.ways.insert(variant.name, ways.join(" "));
        Ok(outcome)
    }

    /// The median over the rounds.
    fn median(&self, name: &str, figure: impl Fn(&Outcome) -> f64) -> Option<f64> {
        let values: Vec<f64> = self.outcomes.get(name)?.iter().map(figure).collect();
        Some(quantile(&values, 0.5))
    }

    fn ns(&self, name: &str) -> Option<f64> {
        self.median(name, |outcome| outcome.ns)
    }

    /// How many times cheaper than the baseline the cheapest of these is.
    fn ratio(&self, baseline: &str, names: &[&str]) -> Option<f64> {
        let best = names.iter().filter_map(|name| self.ns(name)).reduce(f64::min)?;
        Some(rounded(self.ns(baseline)? / best))
    }

    /// What a packet costs by IPv6 next to one by IPv4.
    fn v6_to_v4(&self) -> BTreeMap<&str, f64> {
        let ratio = |name: &&'static str| {
            let v6 = self.ns(&format!("{name}_v6"))?;
            Some((*name, rounded(v6 / self.ns(name)?)))
        };
        OF_BOTH.iter().filter_map(ratio).collect()
    }

    /// Why there is no figure of some variants.
    fn not_measured(&self) -> BTreeMap<&str, &str> {
        let failed = self.failed.iter().filter(|(name, _)| !self.outcomes.contains_key(*name));
        failed.map(|(name, why)| (*name, why.as_str())).collect()
    }

    fn figures(&self) -> Result<Value> {
        let of_each = |figure: fn(&Outcome) -> f64| -> Map<String, Value> {
            let names = self.outcomes.keys();
            names.map(|name| ((*name).to_owned(), json!(self.median(name, figure).map(rounded)))).collect()
        };
        for baseline in ["baseline_udp", "baseline_tcp", "baseline_tcp_256k"] {
            ensure!(self.outcomes.contains_key(baseline), "{baseline}: {:?}", self.failed.get(baseline));
        }
        let udp = |names: &[&str]| self.ratio("baseline_udp", names);
        Ok(json!({
            "user_k1": udp(&["user_k1"]),
            "user_k10": udp(&["user_k10"]),
            "kernel_tc_k1": udp(&["kernel_tc_k1"]),
            "kernel_best_k1": udp(&["kernel_tc_k1", "kernel_xdp_k1"]),
            "kernel_k10": udp(&["kernel_tc_k10", "kernel_xdp_k10"]),
            "default_k1": udp(&["default_k1"]),
            "default_k10": udp(&["default_k10"]),
            "paced_k10": udp(&["paced_k10"]),
            "tcp_4m": self.ratio("baseline_tcp", &["tcp_4m"]),
            "tcp_256k": self.ratio("baseline_tcp_256k", &["tcp_256k"]),
            "v6_to_v4": self.v6_to_v4(),
            "lost": self.outcomes.values().flatten().map(|outcome| outcome.lost).sum::<u64>(),
            "ns": of_each(|outcome| outcome.ns),
            "p99_us": of_each(|outcome| outcome.p99_us),
            "disturbed": self.outcomes.values().flatten().filter(|outcome| outcome.disturbed).count(),
            "ways": self.ways,
            "not_measured": self.not_measured(),
            "sinks": SINKS,
        }))
    }
}
