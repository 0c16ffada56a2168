//! Is the relay never down? A relay with two workers, three streams and 500 viewers of all kinds: sent to by UDP, RTSP
//! over UDP and over TCP, HTTP, the partial-order transport. First nothing happens, then one fault after the other,
//! and in the end faults at random, one or two at a time. Of each are told the packets that were lost by viewers that
//! it does not concern, and the longest time for which one of them got none (`gap_ms`; compare it with that of the
//! `calm` time, which the machine causes); the most memory that the relay had; and whether health told the truth:
//! `/healthz` answers 200 while media flow, and something else, or not at all, when those of a stream have been away
//! for two seconds. A relay that ended tells nothing: that is false. What viewers that a fault concerns noticed is
//! told as `own_lost` and `own_gap_ms`.
//!
//! Numbers in the packets say what was lost, up to what the source has sent, three seconds after the fault at the
//! latest. If the relay or a viewer does not recover from a fault by then (`recovered`), all are started again for the
//! next one (`restarts`). Attackers are other hosts, which stand back behind relay and viewers here, as they would
//! have machines of their own.
//!
//! Not here are faults that cannot be had from outside of the relay's process: a worker that is killed, a control task
//! that panics. Nor is a clock that is set: a time namespace has no CLOCK_REALTIME of its own (time_namespaces(7)), so
//! that it would be set for the whole machine.

mod audience;
mod background;
mod fault;
mod faults;
mod logs;
mod places;
mod scene;
mod watch;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use clap::Parser;
use outflow_labs::figures::{Options, conclude, progress, rounded};
use outflow_labs::net::cannot_make_namespaces;
use outflow_labs::process::be_preferred;
use outflow_labs::programs::missing;
use serde_json::{Map, Value, json};

use audience::Viewer;
use fault::Fault;
use faults::ALL;
use logs::LogTo;
use places::Places;
use scene::Scene;
use watch::{Noticed, measure};

/// What the lab can do.
#[derive(Debug, Parser)]
struct Arguments {
    #[command(flatten)]
    options: Options,
    /// The faults at random are up to this
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only these faults; all if not given
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
}

/// How much of everything.
struct Plan {
    viewers: usize,
    /// Without a fault.
    calm: Duration,
    /// Each fault.
    fault: Duration,
    /// Faults at random, all together.
    random: Duration,
}

impl Plan {
    fn new(is_quick: bool) -> Self {
        let [calm, fault, random] = if is_quick { [3000, 700, 0] } else { [20_000, 8_000, 180_000] };
        Plan {
            viewers: if is_quick { 100 } else { 500 },
            calm: Duration::from_millis(calm),
            fault: Duration::from_millis(fault),
            random: Duration::from_millis(random),
        }
    }
}

fn main() -> ExitCode {
    conclude("chaos", lab(&Arguments::parse()))
}

fn lab(arguments: &Arguments) -> Result<Value> {
    let needed = ["nft", "openssl", "prlimit"].into_iter().find_map(missing);
    if let Some(why) = cannot_make_namespaces().or(needed) {
        bail!("{why}: see scripts/setup");
    }
    let faults = chosen(&arguments.only)?;
    let plan = Plan::new(arguments.options.quick);
    be_preferred();
    let places = Places::new()?;
    let mut stage = Stage::new(&places, Viewer::all(plan.viewers));
    progress(format!("{} viewers, nothing else, for {:?}", plan.viewers, plan.calm));
    let calm = stage.play(&[], plan.calm)?;
    progress(calm.figures());
    let mut all = Map::new();
    for fault in &faults {
        let noticed = stage.play(&[fault], plan.fault)?;
        progress(format!("{}: {}", fault.name, noticed.figures()));
        all.insert(fault.name.to_owned(), noticed.figures());
    }
    let at_random = stage.play_at_random(&faults, arguments.seed, &plan)?;
    let mut figures = json!({
        "faults": all,
        "lost": stage.lost,
        "worst_gap_ms": rounded(stage.worst_gap.as_secs_f64() * 1e3),
        "calm": calm.figures(),
        "seed": arguments.seed,
        "viewers": plan.viewers,
        "restarts": stage.restarts,
    });
    if let Some(at_random) = at_random {
        figures["at_random"] = at_random;
    }
    Ok(figures)
}

/// The faults of these names, or all that can be had here.
fn chosen(names: &[String]) -> Result<Vec<&'static Fault>> {
    for name in names {
        let known = ALL.iter().map(|fault| fault.name).collect::<Vec<_>>();
        ensure!(known.contains(&name.as_str()), "there is no fault '{name}': there are {}", known.join(", "));
    }
    let no_nats = missing("nats-server");
    if let Some(why) = &no_nats {
        progress(format!("nats_away is left out: {why}"));
    }
    let is_wanted = |fault: &&Fault| {
        let is_named = names.is_empty() || names.iter().any(|name| name == fault.name);
        is_named && (fault.name != "nats_away" || no_nats.is_none())
    };
    Ok(ALL.iter().filter(is_wanted).collect())
}

/// Where faults happen: the scene, set up again whenever it has to be.
struct Stage<'p> {
    places: &'p Places,
    viewers: Vec<Viewer>,
    scene: Option<Scene<'p>>,
    /// How often it was set up again because a fault had left damage.
    restarts: usize,
    /// Of all faults.
    lost: u64,
    worst_gap: Duration,
}

impl<'p> Stage<'p> {
    fn new(places: &'p Places, viewers: Vec<Viewer>) -> Self {
        Self { places, viewers, scene: None, restarts: 0, lost: 0, worst_gap: Duration::ZERO }
    }

    /// Has these faults happen together; none is a calm time.
    fn play(&mut self, faults: &[&Fault], time: Duration) -> Result<Noticed> {
        let to = faults.iter().find_map(|fault| fault.log);
        let is_so = |scene: &Scene<'_>| to.is_none_or(|to| scene.log.is_to(to));
        let mut scene = match self.scene.take().filter(is_so) {
            Some(scene) => scene,
            None => Scene::open(self.places, &self.viewers, to.unwrap_or(LogTo::Disk))?,
        };
        let noticed = measure(&mut scene, faults, time)?;
        if !faults.is_empty() {
            self.lost += noticed.lost;
            self.worst_gap = self.worst_gap.max(noticed.gap);
        }
        if noticed.is_well {
            self.scene = Some(scene);
        } else {
            self.restarts += 1;
        }
        Ok(noticed)
    }

    /// Faults by chance, one or two at a time, until the time is over.
    fn play_at_random(&mut self, faults: &[&Fault], seed: u64, plan: &Plan) -> Result<Option<Value>> {
        let mut random = fastrand::Rng::with_seed(seed);
        let (began, mut count) = (Instant::now(), 0);
        let mut sum = Noticed::nothing();
        while began.elapsed() < plan.random {
            let Some(first) = random.choice(faults) else { break };
            let others: Vec<_> = faults.iter().filter(|fault| fault.goes_with(first)).collect();
            let second = random.choice(&others).filter(|_| random.bool());
            let both: Vec<&Fault> =
                [Some(*first), second.map(|fault| **fault)].into_iter().flatten().collect();
            let time = plan.fault.mul_f64(0.1 + 0.9 * random.f64());
            let noticed = self.play(&both, time)?;
            let names = both.iter().map(|fault| fault.name).collect::<Vec<_>>().join(" and ");
            progress(format!("{names}, for {time:.1?}: {}", noticed.figures()));
            count += both.len();
            sum.add(&noticed);
        }
        Ok((count > 0).then(|| {
            let mut figures = sum.figures();
            figures["count"] = json!(count);
            figures
        }))
    }
}
