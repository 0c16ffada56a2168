//! How fast is the simulator? The paper's Figure 13 in virtual time, on one core: against ns-3 with the same
//! topology and workload in turns, and with more and more connections through a link that grows with them.

use std::collections::BTreeMap;
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use outflow_labs::figures::{Options, progress, quantile, rounded, run_anywhere};
use outflow_labs::process::{be_preferred, keep_to_cpu};
use outflow_sim::network::{Network, play};
use serde_json::{Value, json};

/// The connections of Figure 13 at which the link is full.
const VIDEOS: usize = 22;
/// What the link takes for a connection then.
const CONNECTION_BPS: usize = 20_000_000 / 33;
/// How ns-3 is told to do it, the leanest first.
const STACKS: [&str; 3] = ["none", "device", "ip"];
/// Policies whose growth is measured: one buffer, one an application, one a connection.
const POLICIES: [&str; 4] = ["shb", "abd", "pfb-ad", "least-value"];

/// How much is run.
struct Plan {
    /// Seconds of virtual time.
    seconds: u64,
    rounds: usize,
    /// Connections, the fewest first.
    connections: &'static [usize],
    /// Connections times seconds of each run for growth.
    work: usize,
}

const FULL: Plan =
    Plan { seconds: 35, rounds: 7, connections: &[30, 100, 300, 1_000, 3_000, 10_000], work: 60_000 };
const QUICK: Plan = Plan { seconds: 10, rounds: 3, connections: &[30, 10_000], work: 10_000 };

/// What a run took.
#[derive(Debug, Clone, Copy)]
struct Speed {
    packets_per_s: f64,
    events_per_s: f64,
}

/// Runs of ns-3, by how it does it.
type Stacks = BTreeMap<&'static str, Vec<Speed>>;

fn main() -> ExitCode {
    run_anywhere("simspeed", lab)
}

fn lab(options: &Options) -> Result<Value> {
    let plan = if options.quick { QUICK } else { FULL };
    keep_to_cpu(1)?;
    be_preferred();
    let (ours, theirs) = compare(&plan)?;
    let ours_packets = median(&ours, |speed| speed.packets_per_s);
    let mut ns3 = serde_json::Map::new();
    let mut best: Option<f64> = None;
    for (stack, runs) in &theirs {
        let packets = median(runs, |speed| speed.packets_per_s);
        best = Some(best.map_or(packets, |best| best.max(packets)));
        let events = median(runs, |speed| speed.events_per_s);
        progress(format!("ns-3 ({stack}): {packets:.0} packets a second, {events:.0} events"));
        let ratio = rounded(ours_packets / packets);
        let figures =
            json!({ "packets_per_s": packets.round(), "events_per_s": events.round(), "ratio": ratio });
        ns3.insert((*stack).to_owned(), figures);
    }
    let growth = growth(&plan)?;
    let worst = growth.values().flatten().map(|(_, factor)| *factor).fold(0.0, f64::max);
    let by_policy = growth.iter().map(|(policy, steps)| {
        let steps: Vec<_> = steps.iter().map(|(flows, factor)| json!([flows, rounded(*factor)])).collect();
        (*policy, steps)
    });
    Ok(json!({
        "events_per_s_core": median(&ours, |speed| speed.events_per_s).round(),
        "packets_per_s_core": ours_packets.round(),
        // Against UDP over IP, as ns-3 is used; below, against the fastest of its ways, without either.
        "ns3_ratio": ns3.get("ip").map(|ip| ip["ratio"].clone()),
        "ns3_ratio_leanest": best.map(|best| rounded(ours_packets / best)),
        "ns3": ns3,
        // Time a packet with the most connections, by that with the fewest: 1 is linear.
        "growth": rounded(worst),
        "growth_by_policy": by_policy.collect::<BTreeMap<_, _>>(),
    }))
}

/// Ours and theirs in turns. Without ns-3, ours alone.
fn compare(plan: &Plan) -> Result<(Vec<Speed>, Stacks)> {
    let program = std::env::var("NS3_PROGRAM").ok().filter(|program| !program.is_empty());
    if program.is_none() {
        progress("SKIPPED: the comparison with ns-3 (it could not be installed, see above)");
    }
    let network = figure_13(VIDEOS, "shb", plan.seconds)?;
    let (mut ours, mut theirs) = (Vec::new(), Stacks::new());
    for round in 0..plan.rounds {
        progress(format!("round {} of {}", round + 1, plan.rounds));
        ours.push(run(&network)?);
        for stack in STACKS {
            if let Some(program) = &program {
                theirs.entry(stack).or_default().push(run_ns3(program, stack, plan.seconds)?);
            }
        }
    }
    Ok((ours, theirs))
}

/// Time a packet for more and more connections, by that of the fewest.
fn growth(plan: &Plan) -> Result<BTreeMap<&'static str, Vec<(usize, f64)>>> {
    let mut times = BTreeMap::<_, Vec<(usize, f64)>>::new();
    for policy in POLICIES {
        let mut first = None;
        for &connections in plan.connections {
            let seconds = (plan.work / connections).max(2) as u64;
            let network = figure_13(connections * 2 / 3, policy, seconds)?;
            let runs = (0..plan.rounds.min(3)).map(|_| run(&network)).collect::<Result<Vec<_>>>()?;
            let time = 1.0 / median(&runs, |speed| speed.packets_per_s);
            let factor = time / *first.get_or_insert(time);
            progress(format!("{policy}, {connections} connections: {:.0} ns a packet", time * 1e9));
            times.entry(policy).or_default().push((connections, factor));
        }
    }
    Ok(times)
}

/// `videos` connections of Video, half as many of Data, with 1.5 kB of buffer each, by a link that takes
/// just these.
fn figure_13(videos: usize, policy: &str, seconds: u64) -> Result<Network> {
    let datas = videos / 2;
    let rate = (videos + datas) * CONNECTION_BPS;
    let text = format!(
        "seed = 1\nduration = '{seconds} s'\n\
         [links.out]\nrate = '{rate} bit/s'\nbuffer_per_flow = '1.5 kB'\npolicy = '{policy}'\n\
         [traffic.video]\nmodel = 'video'\nflows = {videos}\nvia = ['out']\nstart_within = '333333 us'\n\
         [traffic.data]\nmodel = 'data'\nflows = {datas}\nvia = ['out']\n"
    );
    Ok(Network::parse(&text)?)
}

fn run(network: &Network) -> Result<Speed> {
    let began = Instant::now();
    let outcome = play(network)?;
    let seconds = began.elapsed().as_secs_f64();
    let packets: u64 = outcome.traffic.values().map(|traffic| traffic.sent).sum();
    Ok(Speed {
        packets_per_s: packets as f64 / seconds,
        events_per_s: outcome.packet_events as f64 / seconds,
    })
}

fn run_ns3(program: &str, stack: &str, seconds: u64) -> Result<Speed> {
    let rate = (VIDEOS + VIDEOS / 2) * CONNECTION_BPS;
    let output = Command::new(program)
        .args([format!("--video={VIDEOS}"), format!("--rate={rate}"), format!("--seconds={seconds}")])
        .args(["--seed=1".to_owned(), format!("--stack={stack}")])
        .output()
        .with_context(|| format!("cannot run {program}"))?;
    ensure!(output.status.success(), "ns-3: {}", String::from_utf8_lossy(&output.stderr));
    let told: Value = serde_json::from_slice(&output.stdout)?;
    let figure =
        |name: &str| told[name].as_f64().with_context(|| format!("ns-3 does not say {name}: {told}"));
    let took = figure("wall_s")?;
    Ok(Speed { packets_per_s: figure("offered")? / took, events_per_s: figure("events")? / took })
}

fn median(runs: &[Speed], of: impl Fn(&Speed) -> f64) -> f64 {
    quantile(&runs.iter().map(of).collect::<Vec<_>>(), 0.5)
}
